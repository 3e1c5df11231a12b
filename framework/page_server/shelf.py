"""The agents that can be played with: finished runs in a runs folder, and those that come with plugins.

Each is read when it is first asked for; one that is damaged is told about and the others still work.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from framework.catalog import Catalog
from framework.cell import RunSpec, class_of
from framework.errors import UserError, did_you_mean
from framework.interfaces import ConstraintEnv, ConstraintInterpreter, Playground, PolicyNet
from framework.plugin_manager import PluginHost
from framework.stages import interpreter_file, read_result
from framework.trained import load_interpreter, load_policy, read_run, untrained

MOST = 200
"""Agents in the list, the newest."""


@dataclass(frozen=True)
class Listed:
    """A trained agent that can be chosen."""

    id: str
    label: str
    note: str
    folder: Path
    run: RunSpec
    reader: str
    """Id of its interpreter."""
    kind: str
    """Which kind of constraint it learned to read, if its env says so."""


class Shelf:
    """Finds agents and interpreters, and keeps those that were loaded."""

    def __init__(self, host: PluginHost, runs: Path) -> None:
        self.host = host
        self.problems: list[str] = []
        """What could not be offered, and why."""
        self.agents: dict[str, Listed] = {}
        self.interpreters: dict[str, str] = {}
        """Id -> label. Trained ones first."""
        self._sample: Playground | None = None
        self._policies: dict[str, PolicyNet] = {}
        self._readers: dict[str, ConstraintInterpreter] = {}
        for origin, folder in host.agent_folders():
            self._list(folder, f"comes with {'Heed' if origin.startswith('plugins/') else origin}")
        self._list(runs, f"trained in {runs.name or runs}")
        if self._sample is not None:
            names = _without_parameters(host.catalog, self._sample)
            self.interpreters |= {name: f"{name} (nothing to learn)" for name in names}

    @property
    def sample(self) -> Playground:
        """Some playground, to know what the page has to draw."""
        if self._sample is None:
            reason = "; ".join(self.problems) or "make run trains some"
            raise UserError(f"there is no agent that can be played with: {reason}")
        return self._sample

    def agent(self, name: str) -> Listed:
        if name not in self.agents:
            raise UserError(f"no agent is called '{name[:80]}'{did_you_mean(name[:80], list(self.agents))}")
        return self.agents[name]

    def policy(self, listed: Listed) -> PolicyNet:
        if listed.id not in self._policies:
            self._policies[listed.id] = load_policy(listed.folder, listed.run, self.host.catalog, self.sample)
        return self._policies[listed.id]

    def interpreter(self, name: str) -> ConstraintInterpreter:
        owner = next((listed for listed in self.agents.values() if listed.reader == name), None)
        if owner is None and name not in self.interpreters:
            raise UserError(f"no interpreter is called '{name[:80]}'{did_you_mean(name[:80], list(self.interpreters))}")
        if name not in self._readers:
            self._readers[name] = (
                untrained(name, self.sample, self.host.catalog)
                if owner is None
                else load_interpreter(owner.folder, owner.run, self.host, self.sample)
            )
        return self._readers[name]

    def warm_up(self) -> None:
        """Load the first agent that can be loaded, so that the page answers at once. Damaged ones leave the list."""
        for listed in list(self.agents.values()):
            try:
                self.policy(listed)
                self.interpreter(listed.reader)
                return
            except UserError as error:
                self.problems.append(f"{listed.id}: {error}")
                del self.agents[listed.id]

    def forget_sentences(self) -> None:
        """Interpreters may remember what they read while they are frozen; this is how they are told to stop."""
        for reader in self._readers.values():
            reader.train()
            reader.eval()

    def playground(self, listed: Listed, *arguments: object) -> Playground:
        """The world of an agent: its env's settings, with sentences and a map of somebody's own."""
        part = listed.run.cell.env
        made = _env_class(listed.run, self.host.catalog).playground(part.config, *arguments)  # type: ignore[arg-type]
        assert made is not None  # else it would not be listed
        return made

    def _list(self, runs: Path, note: str) -> None:
        folders = sorted((runs / "cells").glob("*/run.json"), key=lambda file: file.stat().st_mtime, reverse=True)
        if len(folders) > MOST:
            self.problems.append(f"{runs} has {len(folders)} runs; the newest {MOST} are listed")
        for folder in (file.parent for file in folders[:MOST]):
            try:
                run = read_run(folder, self.host.catalog)
                config = run.cell.env.config
                world = _env_class(run, self.host.catalog).playground(config, ["."], 0, None, {})
            except (UserError, ValueError, OSError) as error:
                self.problems.append(f"{folder.name}: {error}")
                continue
            if world is None:
                self.problems.append(f"{folder.name}: env '{run.cell.env.plugin}' has no playground")
            elif run.id not in self.agents:
                self._sample = self._sample or world
                self._add(run, folder, note)

    def _add(self, run: RunSpec, folder: Path, note: str) -> None:
        reader = self._reader_of(run, folder)
        label = f"{run.labels[0] if run.labels else run.cell.policy.plugin}, seed {run.seed}"
        note = f"{note}; {_record(run, folder)}"
        self.agents[run.id] = Listed(run.id, label, note, folder, run, reader, _kind(run))

    def _reader_of(self, run: RunSpec, folder: Path) -> str:
        """Runs share interpreters: equal files are one choice."""
        file = interpreter_file(folder.parent.parent, run, self.host)
        if not file.is_file():
            return run.cell.interpreter.plugin  # nothing to learn, or it is lost: then loading says so
        name = file.stem if file.parent.name == "interpreters" else run.id
        label = f"{run.cell.interpreter.plugin}, seed {run.seed}" + (f", learned {_kind(run)}" if _kind(run) else "")
        self.interpreters.setdefault(name, label)
        return name


def _env_class(run: RunSpec, catalog: Catalog) -> type[ConstraintEnv]:
    return cast(type[ConstraintEnv], class_of(run.cell.env, catalog))


def _kind(run: RunSpec) -> str:
    return str(getattr(run.cell.env.config, "constraint", ""))


def _record(run: RunSpec, folder: Path) -> str:
    """How long it learned, and what its evaluation measured."""
    result = read_result(folder) or {}
    summary = result.get("summary", {})
    measured = [f"{name} {summary[name]:.2f}" for name in ("reward", "violation") if name in summary]
    when = " (measured before it was made small)" if measured and "packed_from" in result else ""
    return ", ".join([f"{run.cell.training.steps:,} steps", *measured]) + when


def _without_parameters(catalog: Catalog, world: Playground) -> Iterator[str]:
    """Interpreters that need no training. One that needs packages of its own is not tried: loading them takes long."""
    for name in catalog.names("interpreter"):
        if catalog.get("interpreter", name).cls.requires:  # type: ignore[union-attr]
            continue
        try:
            untrained(name, world, catalog)
        except UserError:
            continue
        yield name
