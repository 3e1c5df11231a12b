"""Finds plugins, loads them, and checks what they hand over.

pluggy alone silently skips a duplicate entry point, gives a bare ImportError for a broken one, and accepts whatever a
hook returns; here each of those becomes a message that names the plugin and its file or distribution.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import importlib.util
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, cast, get_type_hints

import pluggy

import framework
from framework import hookspecs
from framework.catalog import Catalog, Entry
from framework.convert import Notes, convert, from_yaml
from framework.errors import Problem, UserError, did_you_mean
from framework.hookspecs import ENTRY_POINT_GROUP, PROJECT, NamedObserver, RunInfo, RunObserver
from framework.interfaces import ConstraintEnv, ConstraintInterpreter, PolicyNet, SafeOptimizer
from framework.interfaces.component import KINDS, Component, Kind
from framework.missing import beside, missing_requirements, not_found

INTERFACES: dict[Kind, Any] = {
    "interpreter": ConstraintInterpreter,
    "policy": PolicyNet,
    "optimizer": SafeOptimizer,
    "env": ConstraintEnv,
}
FOLDERS: dict[Kind, str] = {
    "interpreter": "interpreters",
    "policy": "policies",
    "optimizer": "optimizers",
    "env": "envs",
}
NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
LONGEST_PATH = 1_000
DIGEST = "__heed_digest__"


@dataclass(frozen=True)
class PluginRef:
    """What a registry asks for: a plugin file (``path``, absolute), an importable ``module``, or an ``observer``."""

    path: str | None = None
    module: str | None = None
    where: str = ""
    observer: str | None = None
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Of the observer."""


class PluginHost:
    """Loads every plugin once and offers the catalog of components and the observers of a run."""

    def __init__(self, refs: Iterable[PluginRef] = (), strict: bool = True) -> None:
        self.catalog = Catalog()
        self._manager = pluggy.PluginManager(PROJECT)
        self._manager.add_hookspecs(hookspecs)
        self.problems: list[Problem] = []
        """Why plugins could not be loaded. With ``strict`` they are raised; else the caller tells them with its own."""
        self._origins: dict[str, str] = {}
        self.observer_types: dict[str, tuple[type[NamedObserver], str]] = {}
        """Observers that can be switched on: name -> class and origin."""
        self._switched_on: list[tuple[str, type[NamedObserver], Any]] = []
        self.external: list[str] = []
        """Plugin code that is not built in; a run prints it, because it runs with the user's rights."""
        self._load_builtins()
        self._load_entry_points()
        for ref in refs:
            self._load_ref(ref)
        self.catalog.incomplete = bool(self.problems)
        if strict and self.problems:
            raise UserError(self.problems)

    def observers(self, run: RunInfo) -> Iterator[tuple[str, RunObserver]]:
        """The observers that want to watch this run, each with the origin of its plugin."""
        for impl in self._manager.hook.heed_observe.get_hookimpls():
            origin = self._origins[impl.plugin_name]
            try:
                observer = impl.function(*([run] if impl.argnames else []))
            except Exception as error:
                print(f"observer {origin} raised {type(error).__name__}: {error}; it is dropped", file=sys.stderr)
                continue
            if observer is not None:
                yield origin, cast(RunObserver, observer)
        for name, cls, config in self._switched_on:
            try:
                yield f"'{name}'", cls(config, run)
            except Exception as error:
                print(f"observer '{name}' raised {type(error).__name__}: {error}; it is dropped", file=sys.stderr)

    def agent_folders(self) -> Iterator[tuple[str, Path]]:
        """Runs folders with trained agents that come with plugins, each with the origin of its plugin."""
        for impl in self._manager.hook.heed_agents.get_hookimpls():
            origin = self._origins[impl.plugin_name]
            try:
                folders = [Path(folder) for folder in cast(Any, impl.function())]
            except Exception as error:
                print(f"plugin {origin}: heed_agents() raised {type(error).__name__}: {error}", file=sys.stderr)
                continue
            yield from ((origin, folder) for folder in folders)

    # Where plugins come from.

    def _load_builtins(self) -> None:
        root = _own_plugins()
        for kind, folder in FOLDERS.items():
            for file in sorted((root / folder).glob("[!_]*.py")):
                module_name = f"plugins.{folder}.{file.stem}"
                self._load(module_name, f"plugins/{folder}/{file.name}", fallback=(kind, file.stem), builtin=True)
        for file in sorted((root / "observers").glob("[!_]*.py")):
            self._load(f"plugins.observers.{file.stem}", f"plugins/observers/{file.name}", ("interpreter", file.stem))

    def _load_entry_points(self) -> None:
        seen: dict[str, str] = {}
        for point in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda p: (p.name, p.value)):
            dist = f"{point.dist.name} {point.dist.version}" if point.dist else "unknown package"
            origin = f"package {dist}, entry point '{point.name}'"
            if point.value in seen:
                continue  # the same module listed twice (two installs of one package) is harmless
            if point.name in seen.values():
                other = next(v for v, n in seen.items() if n == point.name)
                self.problems.append(
                    Problem(f"two entry points are called '{point.name}': {other} and {point.value} ({dist})")
                )
                continue
            seen[point.value] = point.name
            self.external.append(origin)
            version = point.dist.version if point.dist else ""
            self._load(point.module, origin, fallback=("interpreter", point.name), version=version)

    def _load_ref(self, ref: PluginRef) -> None:
        if ref.observer is not None:
            self._switch_on(ref.observer, ref)
            return
        if ref.module:
            origin = f"module {ref.module}"
            self.external.append(origin)
            name = ref.module.split(".")[-1]
            self._load(ref.module, origin, fallback=("interpreter", name), where=ref.where, by_content=True)
            return
        file = Path(ref.path or "")
        origin = str(file)
        if len(origin) > LONGEST_PATH or "\0" in origin or not file.is_file():
            short = len(origin) <= LONGEST_PATH and "\0" not in origin
            what = "is a folder; name the .py file" if short and file.is_dir() else "no such file"
            self.problems.append(Problem(f"plugin file {origin[:LONGEST_PATH]}: {what}", where=ref.where))
            return
        self.external.append(origin)
        self._load(file, origin, fallback=("interpreter", file.stem), where=ref.where, by_content=True)

    def _switch_on(self, name: str, ref: PluginRef) -> None:
        if name not in self.observer_types:
            said = f"no observer is called '{name}'{did_you_mean(name, sorted(self.observer_types))}"
            self.problems.append(Problem(said, where=ref.where, path="observers"))
            return
        cls, origin = self.observer_types[name]
        owner, missing = f"observer '{name}' ({origin})", missing_requirements(cls)
        notes = Notes(lambda path: ref.where)
        config = convert(cls.Config, dict(ref.settings), "observers", notes, owner)
        if missing:
            notes.add("observers", f"observer '{name}' is not available: {missing}", origin)
        self.problems += notes.problems
        if not notes.problems:
            self._switched_on.append((name, cls, config))

    # Loading one, and checking what it hands over.

    def _load(
        self,
        target: str | Path,
        origin: str,
        fallback: tuple[Kind, str],
        where: str = "",
        version: str = "",
        builtin: bool = False,
        by_content: bool = False,
    ) -> None:
        """``by_content``: its version is a hash of its file, for code that has no version of its own."""
        try:
            module = import_file(target) if isinstance(target, Path) else importlib.import_module(target)
        except SyntaxError as error:
            spot = f"{error.filename}:{error.lineno}"
            self.problems.append(Problem(f"plugin {origin}: syntax error: {error.msg} ({spot})", where=where))
            return
        except ModuleNotFoundError as error:
            missing = (error.name or "").split(".")[0]
            if missing and (advice := beside(target, missing)):
                self.problems.append(Problem(f"plugin {origin}: {advice}", where=where))
            elif missing and missing not in (str(target).split(".")[0], "framework", "plugins"):
                kind, name = fallback
                self._add(Entry(kind, name, origin, None, not_found(missing), version, guessed=not builtin), where)
            else:
                self.problems.append(Problem(f"plugin {origin}: cannot be imported: {error}", where=where))
            return
        except Exception as error:
            spot = _last_line(error)
            self.problems.append(
                Problem(f"plugin {origin}: raised at import: {type(error).__name__}: {error}{spot}", where=where)
            )
            return
        except SystemExit as error:
            self.problems.append(Problem(f"plugin {origin}: called exit({error.code}) at import", where=where))
            return
        version = _content_version(module) if by_content else version
        name = f"{origin}"
        self._origins[name] = origin
        try:
            if self._manager.register(module, name) is None:
                return
        except ValueError:
            self.problems.append(Problem(f"plugin {origin}: listed twice", where=where))
            return
        except pluggy.PluginValidationError as error:
            self.problems.append(Problem(f"plugin {origin}: {_plain(error)}", where=where))
            return
        if not self._manager.get_hookcallers(module):
            self.problems.append(
                Problem(
                    f"plugin {origin}: has no hook; add '@hookimpl def heed_components(): return [YourClass]' "
                    "(hookimpl is in framework.hookspecs)",
                    where=where,
                )
            )
            return
        for impl in self._manager.hook.heed_components.get_hookimpls():
            if impl.plugin is module:
                self._take(impl.function, origin, where, version, fallback[1] if builtin else "")
        for impl in self._manager.hook.heed_observers.get_hookimpls():
            if impl.plugin is module:
                self._take_observers(impl.function, origin, where)

    def _take(self, hook: Any, origin: str, where: str, version: str, file_stem: str) -> None:
        for cls in self._classes(hook, "heed_components", origin, where):
            faults = class_faults(cls)
            if not faults and file_stem and cls.name != file_stem:
                faults = [f"its name is '{cls.name}' but its file is {file_stem}.py; a built-in's must be the same"]
            for fault in faults:
                label = getattr(cls, "__name__", repr(cls))
                self.problems.append(Problem(f"plugin {origin}: {label}: {fault}", where=where))
            if not faults:
                self._add(Entry(cls.kind, cls.name, origin, cls, missing_requirements(cls), version), where)

    def _classes(self, hook: Any, name: str, origin: str, where: str) -> list[Any]:
        """What a hook hands over; nothing, and a problem, if that is no list."""
        try:
            returned = hook()
            if isinstance(returned, Iterable) and not isinstance(returned, type | str):
                return list(returned)
            got = f"the class {returned.__name__} itself" if isinstance(returned, type) else repr(returned)
            said = f"{name}() must return a list of classes, got {got}"
        except Exception as error:
            said = f"{name}() raised {type(error).__name__}: {error}{_last_line(error)}"
        self.problems.append(Problem(f"plugin {origin}: {said}", where=where))
        return []

    def _take_observers(self, hook: Any, origin: str, where: str) -> None:
        for cls in self._classes(hook, "heed_observers", origin, where):
            faults = observer_faults(cls)
            if not faults and self.observer_types.setdefault(cls.name, (cls, origin))[0] is not cls:
                faults = [f"two observers are called '{cls.name}': the other is {self.observer_types[cls.name][1]}"]
            label = getattr(cls, "__name__", repr(cls))
            self.problems += [Problem(f"plugin {origin}: {label}: {fault}", where=where) for fault in faults]

    def _add(self, entry: Entry, where: str) -> None:
        problem = self.catalog.add(entry)
        if problem is not None:
            self.problems.append(dataclasses.replace(problem, where=where))


def _own_plugins() -> Path:
    """Folder of the built-in plugins, made importable even where the working directory has a ``plugins`` of its own."""
    home = Path(framework.__file__).resolve().parent.parent
    loaded = sys.modules.get("plugins")
    if loaded is None or str(home / "plugins") not in map(str, loaded.__path__):
        for name in [name for name in sys.modules if name == "plugins" or name.startswith("plugins.")]:
            del sys.modules[name]
        sys.path.insert(0, str(home))
        importlib.invalidate_caches()
        importlib.import_module("plugins")
    return home / "plugins"


def import_file(file: Path) -> ModuleType:
    """Import a plugin file by its path, once: the same file is the same module however often it is named. After an
    edit it is another file: in a notebook the next ``framework.load`` must not get the class of before."""
    source = file.read_bytes()
    place, content = (hashlib.sha256(data).hexdigest() for data in (str(file.resolve()).encode(), source))
    name = f"heed_plugin_{file.stem}_{place[:8]}_{content[:8]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        # Not by the loader: its cache takes an edit within the same second, to the same length, for no edit.
        exec(compile(source, str(file), "exec", dont_inherit=True), module.__dict__)
    except BaseException:
        del sys.modules[name]
        raise
    vars(module)[DIGEST] = (spec, content)
    return module


def _content_version(module: ModuleType) -> str:
    """A hash of the file that a module was made from. Kept with the module: once imported, it is what it was, whatever
    has become of its file; only ``importlib.reload``, which gives it another spec, makes it anew."""
    known, digest = getattr(module, DIGEST, (None, ""))
    if known is not module.__spec__ or not digest:
        try:
            digest = hashlib.sha256(Path(module.__file__ or "").read_bytes()).hexdigest()
        except (OSError, AttributeError):  # a namespace, or packed in a file
            return ""
        vars(module)[DIGEST] = (module.__spec__, digest)
    return f"sha256:{digest[:12]}"


def class_faults(cls: Any) -> list[str]:
    """What keeps a class from being a plugin, in words."""
    if not isinstance(cls, type):
        return ["heed_components() must return classes"]
    if not any(issubclass(cls, interface) for interface in INTERFACES.values()):
        names = ", ".join(interface.__name__ for interface in INTERFACES.values())
        return [f"is not a subclass of one of {names}"]
    return _component_faults(cls)


def observer_faults(cls: Any) -> list[str]:
    """Likewise for an observer."""
    if not isinstance(cls, type) or not issubclass(cls, NamedObserver):
        return ["heed_observers() must return subclasses of NamedObserver (it is in framework.hookspecs)"]
    return _name_faults(cls) + _config_faults(cls)


def _component_faults(cls: type[Component]) -> list[str]:
    faults = _name_faults(cls)
    if cls.kind not in KINDS:
        faults.append(f"kind is {cls.kind!r}; do not override it")
    missing = sorted(getattr(cls, "__abstractmethods__", ()))
    if missing:
        faults.append(f"abstract method{'s' if len(missing) > 1 else ''} missing: {', '.join(missing)}")
    return faults + _config_faults(cls)


def _name_faults(cls: Any) -> list[str]:
    if isinstance(cls.name, str) and NAME.fullmatch(cls.name):
        return []
    return [f"needs a class attribute name in lower_case letters, digits and underscores, not {cls.name!r}"]


def _config_faults(cls: Any) -> list[str]:
    faults = []
    if not dataclasses.is_dataclass(cls.Config) or not _is_frozen(cls.Config):
        faults.append("Config must be a frozen dataclass: @dataclass(frozen=True)")
    else:
        faults += [
            f"Config.{field.name} needs a default value, so that the plugin can be named without settings"
            for field in dataclasses.fields(cls.Config)
            if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        ]
        faults += [
            f"Config.{name} is of type {hint}; use int, float, bool, str, Literal, tuple, dict or a dataclass of these"
            for name, hint in get_type_hints(cls.Config).items()
            if not from_yaml(hint)
        ]
    return faults


def _is_frozen(config: Any) -> bool:
    return bool(config.__dataclass_params__.frozen)


def _last_line(error: BaseException) -> str:
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    return f" ({traceback.tb_frame.f_code.co_filename}:{traceback.tb_lineno})" if traceback else ""


def _plain(error: pluggy.PluginValidationError) -> str:
    return " ".join(str(error.args[-1] if error.args else error).split())
