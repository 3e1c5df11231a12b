"""Interpreters to try on sentences: which one is meant, and the world that it was trained in."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from framework import checkpoint
from framework.builder import build_env
from framework.cell import Cell, RunSpec, run_from_dict
from framework.errors import Problem, UserError
from framework.interfaces import ConstraintEnv, ConstraintInterpreter
from framework.plugin_manager import PluginHost
from framework.trained import interpreter_from, plugin_host, recorded_run, untrained, warn_of_changes

USUAL_ENV = "hazardworld_grid"
"""Where an interpreter that need not learn is tried if no env is named."""
NOBODY = {"policy": {"plugin": "random_walk"}, "optimizer": {"plugin": "fixed"}}
"""Who acts makes no difference to reading, and need not be there any more."""


@dataclass(frozen=True)
class Reader:
    """An interpreter with a world: from its file and the run it was trained for, or one that has nothing to learn."""

    run: RunSpec
    host: PluginHost
    file: Path | None = None
    note: str = ""

    @property
    def title(self) -> str:
        return (str(self.file) if self.file else self.run.cell.interpreter.plugin) + self.note

    @classmethod
    def load(cls, file: Path, host: PluginHost, note: str = "") -> Reader:
        _, meta = checkpoint.load(file)
        if not isinstance(meta.get("run"), Mapping):  # a policy's file has only the name of its run
            raise UserError(Problem("is no trained interpreter (they are in RUNS/interpreters)", where=str(file)))
        run = recorded_run({**meta["run"], **NOBODY}, host.catalog, file)
        warn_of_changes(run, host.catalog, file, ("env", "interpreter"))
        return cls(run, host, file, note)

    def env(self, rows: int, seed: int, split: str = "eval", **changes: Any) -> ConstraintEnv:
        """The world it was trained in, with other settings."""
        part = self.run.cell.env
        missing = [name for name in changes if not hasattr(part.config, name)]
        if missing:
            raise UserError(f"env '{part.plugin}' has no setting '{missing[0]}', so it cannot take other sentences")
        part = dataclasses.replace(part, config=dataclasses.replace(part.config, **changes))
        training = dataclasses.replace(self.run.cell.training, rows=rows, batch=rows, steps=rows)
        cell = Cell(part, self.run.cell.interpreter, self.run.cell.policy, self.run.cell.optimizer, training)
        return build_env(cell, seed, self.host.catalog, "train" if split == "train" else "eval")

    def interpreter(self, env: ConstraintEnv) -> ConstraintInterpreter:
        if self.file is None:
            return untrained(self.run.cell.interpreter.plugin, env, self.host.catalog)
        return interpreter_from(self.file, self.run, self.host, env)


def choose(asked: str | None, runs: Path, plugins: Sequence[Path], env: str | None) -> Reader:
    """The interpreter in the file ``asked``, or the newest file of the one of that name, or of those that the plugin
    files hand over, or of any. One without a file has nothing to learn, or must come with Heed."""
    host = plugin_host(plugins)
    names = _names(asked, plugins, host)
    found = _newest(runs / "interpreters", names) if names or asked is None else Path(asked)
    if found is not None:
        if env is not None:
            said = "learned in a world of its own; --env is for an interpreter that has nothing to learn"
            raise UserError(Problem(said, where=str(found)))
        return Reader.load(found, host)
    if len(names) > 1:
        raise UserError(f"which one? --interpreter NAME, of {', '.join(names)}")
    if env is not None and not names:
        raise UserError("--env is for an interpreter that has nothing to learn; name it: --interpreter NAME")
    if shipped := _shipped(host, runs, names):
        return shipped
    if names:
        return _without_file(names[0], env, host, runs)
    said = "no trained interpreter here; a study makes one, e.g. make run"
    raise UserError(Problem(said, where=str(runs / "interpreters")))


def _names(asked: str | None, plugins: Sequence[Path], host: PluginHost) -> list[str]:
    """Interpreters that are meant; none: any, or the one in the file ``asked``."""
    if asked is None:
        origins = {str(file.resolve()) for file in plugins}
        return [entry.name for entry in host.catalog if entry.kind == "interpreter" and entry.origin in origins]
    if Path(asked).exists() or len(Path(asked).parts) > 1 or Path(asked).suffix:
        return []
    return [host.catalog.get("interpreter", asked).name]


def _newest(folder: Path, names: Sequence[str]) -> Path | None:
    files = sorted(folder.glob("*.safetensors"), key=lambda file: file.stat().st_mtime, reverse=True)
    return next((file for file in files if not names or _reads_with(file) in names), None)


def _reads_with(file: Path) -> str | None:
    """Name of the interpreter in this file; None if it cannot be read."""
    try:
        return str(checkpoint.load(file)[1]["run"]["interpreter"]["plugin"])
    except (UserError, KeyError, TypeError):
        return None


def _without_file(name: str, env: str | None, host: PluginHost, runs: Path) -> Reader:
    parts = {"interpreter": {"plugin": name}, "env": {"plugin": env or USUAL_ENV}}
    reader = Reader(run_from_dict({**parts, **NOBODY, "training": {}, "seed": 0}, host.catalog), host)
    world = reader.env(rows=1, seed=0)
    try:
        untrained(name, world, host.catalog, f"there is no file of it in {runs / 'interpreters'}")
    finally:
        world.close()
    return dataclasses.replace(reader, note=f" (nothing to learn) in {world.name}")


def _shipped(host: PluginHost, runs: Path, names: Sequence[str]) -> Reader | None:
    """One that comes with a plugin: that of the env's default settings, if there are several."""
    folders = [folder / "interpreters" for _, folder in host.agent_folders()]
    files = sorted(file for folder in folders for file in folder.glob("*.safetensors"))
    readers = [Reader.load(file, host) for file in files if not names or _reads_with(file) in names]
    if not readers:
        return None
    reader = min(readers, key=_changed_settings)
    kind = getattr(reader.run.cell.env.config, "constraint", "")
    learned = f", learned {kind} sentences; others are beside it" if kind else ""
    return dataclasses.replace(reader, note=f" (comes with Heed{learned}; there is none in {runs / 'interpreters'})")


def _changed_settings(reader: Reader) -> int:
    config = reader.run.cell.env.config
    return sum(getattr(config, f.name) != f.default for f in dataclasses.fields(config))
