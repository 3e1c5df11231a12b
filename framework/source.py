"""Reads a YAML file: values through omegaconf (plain YAML takes ``1e-3`` for text), line numbers from node marks.

Nothing in a file can run code: the loader is a safe one, resolvers such as ``${oc.env:...}`` are refused (only
``${a.b}`` references work), and size, nesting and aliases are limited.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import yaml
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from framework.errors import Problem, UserError, did_you_mean
from framework.interfaces.component import KINDS
from framework.references import ONLY_REFERENCES, allowed, weight

MAX_BYTES = 1_000_000
MAX_DEPTH = 40
MAX_NODES = 20_000
NAMED = re.compile(rf"experiments\.[^.]+\.({'|'.join(KINDS)})|observers\.\d+")
"""Where the name of a plugin or component stands, or ``{plugin: name, settings}``."""
QUOTES = '; within {...} or [...] a reference needs quotes: "${training.steps}"'


class Source:
    """A parsed file (or none): its plain values, and where each of them stands."""

    def __init__(self, name: str, values: dict[str, Any], lines: dict[str, int], overridden: set[str]) -> None:
        self.name = name
        self.values = values
        self._lines = lines
        self._overridden = overridden

    def locate(self, path: str) -> str:
        """``file:line`` of a dotted path, or of the nearest enclosing thing that has a line."""
        while path:
            if path in self._overridden:
                return "command line"
            if path in self._lines:
                return f"{self.name}:{self._lines[path]}"
            if any(override.startswith(f"{path}.") for override in self._overridden):
                return "command line"  # which is where it comes from: the file has no such thing
            path = path.rpartition(".")[0]
        return f"{self.name}:1"


def read(file: Path, overrides: list[str] | None = None) -> Source:
    """The registry file with ``a.b=value`` overrides applied."""
    name = str(file)
    text = _text(file)
    node = _compose(text, name)
    lines: dict[str, int] = {}
    problems: list[Problem] = []
    _walk(node, "", name, lines, problems, depth=0)
    if problems:
        raise UserError(problems)
    try:
        config = OmegaConf.create(text)
    except Exception as error:  # whatever a strange tag or value makes the YAML library raise
        raise UserError(Problem(f"not valid YAML: {_first_line(error)}", where=name)) from None
    overridden = _apply(config, overrides or [])
    return Source(name, _resolve(config, name, lines), lines, overridden)


def _text(file: Path) -> str:
    if not file.exists():
        raise UserError(Problem("no such file", where=str(file)))
    if file.is_dir():
        raise UserError(Problem("is a folder; name a YAML file", where=str(file)))
    try:
        with open(file, "rb") as content:
            raw = content.read(MAX_BYTES + 1)
    except OSError as error:
        raise UserError(Problem(f"cannot be read: {error.strerror}", where=str(file))) from None
    if len(raw) > MAX_BYTES:
        raise UserError(Problem(f"is too large; a registry has at most {MAX_BYTES:,} bytes", where=str(file)))
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise UserError(Problem("is not a text file (UTF-8 YAML expected)", where=str(file))) from None
    if "\0" in text:
        raise UserError(Problem("is not a text file (UTF-8 YAML expected)", where=str(file)))
    return text


def _compose(text: str, name: str) -> yaml.Node:
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        broken = text.splitlines()[line - 1] if line <= len(text.splitlines()) else ""
        tab = "\t" in broken[: len(broken) - len(broken.lstrip())]
        message = (
            "a tab is used for indentation; YAML allows only spaces" if tab else f"not valid YAML: {error.problem}"
        )
        message += QUOTES if "${" in broken and not tab else ""
        raise UserError(Problem(message, where=f"{name}:{line}")) from None
    except (yaml.YAMLError, RecursionError) as error:
        raise UserError(Problem(f"not valid YAML: {_first_line(error)}", where=name)) from None
    if node is None:
        raise UserError(Problem("is empty; see docs/registry.md for what a registry holds", where=name))
    if not isinstance(node, yaml.MappingNode):
        raise UserError(Problem("must be a mapping of sections (study, experiments, ...)", where=f"{name}:1"))
    return node


def _walk(node: yaml.Node, path: str, name: str, lines: dict[str, int], problems: list[Problem], depth: int) -> None:
    """Note the line of every path; refuse duplicate keys, deep nesting, and aliases that blow up."""
    line = node.start_mark.line + 1
    lines.setdefault(path, line)
    if depth > MAX_DEPTH or len(lines) > MAX_NODES:
        limit = f"nested more than {MAX_DEPTH} deep" if depth > MAX_DEPTH else f"more than {MAX_NODES:,} values"
        raise UserError(Problem(f"too large: {limit}", where=f"{name}:{line}"))
    if isinstance(node, yaml.MappingNode):
        seen: dict[str, int] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                problems.append(Problem("a key must be plain text", where=f"{name}:{key.start_mark.line + 1}"))
                continue
            inner = f"{path}.{key.value}" if path else key.value
            at = key.start_mark.line + 1
            if key.value in seen and key.value != "<<":
                message = f"key '{key.value}' is given twice; first on line {seen[key.value]}"
                problems.append(Problem(message, where=f"{name}:{at}", path=inner))
            seen[key.value] = at
            _walk(value, inner, name, lines, problems, depth + 1)
            lines[inner] = at
    elif isinstance(node, yaml.SequenceNode):
        for i, item in enumerate(node.value):
            _walk(item, f"{path}.{i}", name, lines, problems, depth + 1)
    elif isinstance(node, yaml.ScalarNode) and not allowed(node.value):
        problems.append(Problem(ONLY_REFERENCES, where=f"{name}:{line}", path=path))


def parse_overrides(overrides: list[str]) -> dict[str, Any]:
    """``["a.b=1e-3"]`` -> ``{"a": {"b": 0.001}}``."""
    config = OmegaConf.create({})
    _apply(config, overrides)
    return _resolve(config, "command line", {})


def _apply(config: Any, overrides: list[str]) -> set[str]:
    problems, done = [], set()
    for override in overrides:
        path, equals, raw = override.partition("=")
        if not equals or not path or any(not part for part in path.split(".")):
            problems.append(Problem(f"'{override}': expected path.to.key=value", where="command line"))
            continue
        if not allowed(raw):
            problems.append(Problem(f"'{override}': {ONLY_REFERENCES}", where="command line"))
            continue
        try:
            parsed = OmegaConf.to_container(OmegaConf.from_dotlist([f"value={raw}"]), resolve=False)
            assert isinstance(parsed, dict)
            if fault := _make_way(config, path):
                problems.append(Problem(f"'{override}': {fault}", where="command line"))
                continue
            OmegaConf.update(config, path, parsed["value"], merge=True, force_add=True)
        except (yaml.YAMLError, OmegaConfBaseException, TypeError, ValueError, RecursionError) as error:
            problems.append(Problem(f"'{override}': {_first_line(error)}", where="command line"))
            continue
        done |= set(_within(path, parsed["value"]))
    if problems:
        raise UserError(problems)
    return done


def _make_way(config: Any, path: str) -> str:
    """A component that is given by its name becomes ``{plugin: name}``, so that settings find room beside the name.
    '' or, where something else without settings stands in the way, what it is."""
    parts = path.split(".")
    for i in range(1, len(parts)):
        outer = ".".join(parts[:i])
        there = OmegaConf.select(config, outer)
        if isinstance(there, str) and NAMED.fullmatch(outer):
            OmegaConf.update(config, outer, {"plugin": there}, merge=False)
        elif there is not None and not OmegaConf.is_config(there):
            return f"{outer} is {there!r}, which has no settings"
    return ""


def _within(path: str, value: Any) -> Iterator[str]:
    """The path, and those of all that the value holds."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield from _within(f"{path}.{key}", item)


def _resolve(config: Any, name: str, lines: dict[str, int]) -> dict[str, Any]:
    try:
        if weight(cast(dict[str, Any], OmegaConf.to_container(config, resolve=False))) > MAX_BYTES:
            raise UserError(Problem(f"too large: its references add up to more than {MAX_BYTES:,} bytes", where=name))
        values = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
    except OmegaConfBaseException as error:
        path = str(getattr(error, "full_key", "") or "")
        dotted = path.replace("[", ".").replace("]", "")
        where = f"{name}:{lines[dotted]}" if dotted in lines else name
        others = [path for path in lines if path and not f"{dotted}.".startswith(f"{path}.")]
        told = _missing(error, others) or _first_line(error)
        raise UserError(Problem(told, where=where, path=dotted)) from None
    except RecursionError:
        raise UserError(Problem("references go in a circle, or through too many others", where=name)) from None
    assert isinstance(values, dict)
    return {str(k): v for k, v in values.items()}


def _missing(error: OmegaConfBaseException, known: list[str]) -> str:
    """About a reference to what is not there; "" for other errors."""
    found = re.fullmatch(r"Interpolation key '(.+)' not found", _first_line(error))
    if not found:
        return ""
    near = did_you_mean(found[1], known)
    return f"there is no '{found[1]}' in the registry to refer to{near if near.endswith('?') else ''}"


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
