"""A cell: one fully resolved system, four plugins with all their settings and how to train it. Pure data.

Its hash names the run, so two experiments that come to the same cell share one run, and a finished run is found again.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from framework.catalog import Catalog
from framework.convert import Notes, convert, join
from framework.errors import Problem, UserError
from framework.interfaces.component import KINDS, Component, Kind
from framework.schema import Training, identity


@dataclass(frozen=True)
class Part:
    """One component of a cell."""

    kind: Kind
    plugin: str
    config: Any
    version: str = ""
    content: str = ""
    """Digest of files that it reads (``Component.content``). Not in ``as_dict``: it is found anew."""

    def as_dict(self) -> dict[str, Any]:
        return self._with(dataclasses.asdict(self.config))

    def identity(self) -> dict[str, Any]:
        """What names it."""
        settings = identity(self.config, paths=not self.content)
        return self._with(settings) | ({"plugin_content": self.content} if self.content else {})

    def _with(self, settings: dict[str, Any]) -> dict[str, Any]:
        return {"plugin": self.plugin, **settings} | ({"plugin_version": self.version} if self.version else {})


@dataclass(frozen=True)
class Cell:
    """Four parts and the training settings."""

    env: Part
    interpreter: Part
    policy: Part
    optimizer: Part
    training: Training

    def as_dict(self) -> dict[str, Any]:
        return {kind: getattr(self, kind).as_dict() for kind in KINDS} | {"training": dataclasses.asdict(self.training)}

    def identity(self) -> dict[str, Any]:
        """What names it."""
        return {kind: getattr(self, kind).identity() for kind in KINDS} | {"training": identity(self.training)}


@dataclass(frozen=True)
class ExamSpec:
    """A safety evaluation of a trained cell: in which env, after how much fine-tuning, how long."""

    name: str
    env: Part
    finetune: int
    episodes: int
    greedy: bool
    soften: float = 1.0
    after: str = ""
    """Key of the evaluation whose fine-tuned policy is taken; '' for the trained one."""

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready; ``exam_from_dict`` is its undo."""
        settings: dict[str, Any] = {"finetune": self.finetune, "episodes": self.episodes, "greedy": self.greedy}
        settings |= {"soften": self.soften} if self.finetune else {}
        settings |= {"after": self.after} if self.after else {}
        return {"name": self.name, "env": self.env.as_dict(), **settings}

    @property
    def key(self) -> str:
        """Its folder's name. The same evaluation under another name is the same evaluation."""
        settings = {k: v for k, v in self.as_dict().items() if k != "name"} | {"env": self.env.identity()}
        # Fine-tuning used to play the maps of the evaluation itself: such results are not to be found again.
        return _digest(settings | ({"finetuned_on": "other maps"} if self.finetune else {}))


@dataclass(frozen=True)
class RunSpec:
    """A cell with a seed: what one process does."""

    cell: Cell
    seed: int
    labels: tuple[str, ...] = ()
    exams: tuple[ExamSpec, ...] = ()
    """Not part of the id: what is asked later does not change what was learned."""

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready; ``run_from_dict`` is its undo."""
        return self.cell.as_dict() | {"seed": self.seed}

    @functools.cached_property
    def id(self) -> str:
        """Readable and unique: plugins, seed, and the hash of everything that determines the run."""
        names = [getattr(self.cell, kind).plugin for kind in ("env", "interpreter", "policy", "optimizer")]
        return "-".join([*names, f"s{self.seed}", _digest(self.cell.identity() | {"seed": self.seed})])


def _digest(value: Mapping[str, Any]) -> str:
    text = json.dumps(_plain(value), sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _plain(value: Any) -> Any:
    """Mappings with text keys all the way down, so that they can be sorted."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def build_cell(
    raw: Mapping[str, Any], catalog: Catalog, notes: Notes, path: str = "", folder: Path | None = None
) -> Cell | None:
    """Check a raw cell ``{env: {plugin: ..., ...}, ..., training: {...}}``; None when problems were noted."""
    parts = {kind: build_part(kind, raw.get(kind), catalog, notes, join(path, kind), folder) for kind in KINDS}
    training = convert(Training, raw.get("training", {}), join(path, "training"), notes, "training")
    if training is None or any(part is None for part in parts.values()):
        return None
    return Cell(training=training, **parts)  # type: ignore[arg-type]


def build_part(
    kind: Kind, raw: object, catalog: Catalog, notes: Notes, path: str, folder: Path | None = None
) -> Part | None:
    """Check ``{plugin: name, settings...}`` against the plugin's own Config. Paths among the settings are relative to
    ``folder``, the registry's."""
    if raw is None:
        names = ", ".join(catalog.names(kind))
        notes.add(path, f"missing component: which {kind}? plugins: {names}")
        return None
    if not isinstance(raw, Mapping) or not isinstance(raw.get("plugin"), str):
        notes.add(path, f"expected the name of a component or a plugin, or {{plugin: name, ...}}, got {raw!r}")
        return None
    entry = catalog.find(kind, raw["plugin"])
    if isinstance(entry, Problem):
        notes.add(path, entry.message, entry.owner)
        return None
    assert entry.cls is not None
    settings = {key: value for key, value in raw.items() if key not in ("plugin", "plugin_version")}
    config = convert(entry.cls.Config, settings, path, notes, entry.owner)
    if config is None:
        return None
    if folder is not None:
        config = _anchored(config, folder)
    try:
        return Part(kind, entry.name, config, entry.version, entry.cls.content(config))
    except Exception as error:  # somebody else's code
        notes.add(path, f"content() raised {type(error).__name__}: {error}", entry.owner)
        return None


def _anchored(config: Any, folder: Path) -> Any:
    """``config`` with absolute paths: a worker, or whoever shows the run later, may be anywhere."""
    paths = [f.name for f in dataclasses.fields(config) if f.metadata.get("path")]
    given = {name: value for name in paths if (value := getattr(config, name)) is not None}
    return dataclasses.replace(config, **{name: os.path.abspath(folder / value) for name, value in given.items()})


def run_from_dict(
    raw: Mapping[str, Any],
    catalog: Catalog,
    labels: tuple[str, ...] = (),
    exams: Sequence[Mapping[str, Any]] = (),
) -> RunSpec:
    """Undo of ``RunSpec.as_dict``, in another process; refuses what does not fit the plugins found there."""
    notes = Notes()
    cell = build_cell(raw, catalog, notes)
    if cell is None:
        raise UserError(notes.problems)
    return RunSpec(cell, int(raw["seed"]), labels, tuple(exam_from_dict(exam, catalog) for exam in exams))


def exam_from_dict(raw: Mapping[str, Any], catalog: Catalog) -> ExamSpec:
    """Undo of ``ExamSpec.as_dict``."""
    notes = Notes()
    env = build_part("env", raw["env"], catalog, notes, "env")
    if env is None:
        raise UserError(notes.problems)
    fixed = (raw["name"], env, raw["finetune"], raw["episodes"], raw["greedy"])
    return ExamSpec(*fixed, raw.get("soften", 1.0), raw.get("after", ""))


def class_of(part: Part, catalog: Catalog) -> type[Component]:
    cls = catalog.get(part.kind, part.plugin).cls
    assert cls is not None
    return cls
