"""registry.yaml -> a checked study. Every mistake is found before anything runs, and all are told at once."""

from __future__ import annotations

import dataclasses
import fnmatch
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from framework import grid
from framework.cell import Cell, RunSpec, build_cell, build_part
from framework.convert import Notes, convert
from framework.errors import Problem, UserError, did_you_mean
from framework.exams import check_after, check_reached, exams_of
from framework.grid import GridCell
from framework.interfaces.component import KINDS, Kind
from framework.plugin_manager import FOLDERS, PluginHost, PluginRef
from framework.schema import (
    MAX_CELLS,
    MOST_RUNS,
    Ablation,
    Components,
    Experiment,
    Registry,
    Report,
    Training,
)
from framework.sections import observer_refs, plugin_refs, well_formed
from framework.source import Source, read


@dataclass(frozen=True)
class Study:
    """A registry that has been read and checked."""

    name: str
    report: Report
    cells: tuple[GridCell, ...]
    runs: tuple[RunSpec, ...]
    host: PluginHost
    plugins: tuple[PluginRef, ...]
    exams: tuple[str, ...] = ()
    """Names of the further evaluations."""
    reuse: tuple[Path, ...] = ()
    """Runs folders to take finished runs from."""
    part: tuple[str, ...] = ()
    """What the command line left out or changed."""


class TooManyCells(UserError):
    """The grid is so large that it may be a slip; the command line asks, or takes --yes."""

    def __init__(self, problem: Problem, count: int) -> None:
        super().__init__(problem)
        self.count = count


def load(file: Path, overrides: list[str] | None = None, max_cells: int = MAX_CELLS) -> Study:
    """Read and check everything; raises UserError with all problems."""
    source = read(file, overrides)
    notes = Notes(source.locate)
    registry = well_formed(source, notes)
    refs = plugin_refs(source, file.parent, notes) + observer_refs(source, notes)
    host = PluginHost(refs, strict=False)
    notes.problems += host.problems
    study = _Checker(source, registry, host, notes, max_cells, file.parent).study(refs)
    changed = tuple(change for change in overrides or () if not change.startswith("report."))
    return dataclasses.replace(study, part=changed)


class _Checker:
    """Resolves names, expands grids and checks each cell against the plugins it names."""

    def __init__(
        self, source: Source, registry: Registry, host: PluginHost, notes: Notes, max_cells: int, folder: Path
    ) -> None:
        self.source, self.registry, self.host, self.notes, self.max_cells = source, registry, host, notes, max_cells
        self.folder = folder
        self._whole: set[str] = set()
        """Ablations all of whose cells could be made."""

    def study(self, refs: tuple[PluginRef, ...]) -> Study:
        self._check_components()
        convert(Training, self.registry.training, "training", self.notes, "training")
        cells: list[GridCell] = []
        if not self.registry.experiments and not self.source.values.get("experiments"):
            self.notes.add("", "no experiments; there is nothing to run", "registry")
        for name, experiment in self.registry.experiments.items():
            cells += self._experiment(name, experiment)
        self._check_size()
        for name, ablation in self.registry.ablations.items():
            cells += self._ablation(name, ablation)
        self._check_runs(cells)
        self._check_names(cells)
        self._check_exam_systems(cells)
        exams = self.registry.evaluations
        check_after(exams, self.notes)
        cells = [
            dataclasses.replace(cell, exams=exams_of(cell, exams, self.host.catalog, self.notes, self.folder))
            for cell in cells
        ]
        check_reached(exams, {exam.name for cell in cells for exam in cell.exams}, self.notes)
        reuse = self._reused()
        if self.notes.problems:
            raise UserError(self.notes.problems)
        runs, report = grid.merge(cells), self.registry.report
        return Study(self.registry.study, report, tuple(cells), runs, self.host, refs, tuple(exams), reuse)

    def _check_exam_systems(self, cells: list[GridCell]) -> None:
        """Systems that could not be made are systems too: what is wrong with them is told where they stand."""
        labels = list(dict.fromkeys([*self._names("experiments"), *(cell.label for cell in cells)]))
        doubtful = [name for name in self._names("ablations") if name not in self._whole]
        for name, exam in self.registry.evaluations.items():
            for i, pattern in enumerate(exam.systems):
                if any(fnmatch.fnmatchcase(group, pattern.partition("/")[0]) for group in doubtful):
                    continue
                if labels and not any(fnmatch.fnmatchcase(label, pattern) for label in labels):
                    said = f"no system is called '{pattern}'{did_you_mean(pattern, labels)}"
                    self.notes.add(f"evaluations.{name}.systems.{i}", said, "evaluations")

    def _names(self, section: str) -> list[str]:
        """All that the file has there, also what is not well formed."""
        found = self.source.values.get(section)
        return [str(name) for name in found] if isinstance(found, Mapping) else []

    def _reused(self) -> tuple[Path, ...]:
        folders = tuple(self.folder / folder for folder in self.registry.reuse)
        for i, folder in enumerate(folders):
            if not (folder / "cells").is_dir():
                said = f"'{self.registry.reuse[i]}' is not a runs folder (there is no cells/ in it)"
                self.notes.add(f"reuse.{i}", said, "registry")
        return folders

    def _check_components(self) -> None:
        for kind in KINDS:
            for name, body in getattr(self.registry.components, FOLDERS[kind]).items():
                raw = self._component(kind, name)
                path = f"components.{FOLDERS[kind]}.{name}"
                if not isinstance(body, Mapping) and body is not None:
                    self.notes.add(path, f"expected a mapping of settings, got {body!r}", "components")
                else:
                    build_part(kind, raw, self.host.catalog, self.notes, path, self.folder)

    def _component(self, kind: Kind, name: str) -> dict[str, Any]:
        """A component by name, or the plugin of that name without settings."""
        body = getattr(self.registry.components, FOLDERS[kind]).get(name)
        return {"plugin": name} | dict(body) if isinstance(body, Mapping) else {"plugin": name}

    def _part(self, kind: Kind, value: object) -> object:
        """What an experiment or an axis says about a component, as ``{plugin: ..., settings}``."""
        if isinstance(value, str):
            return self._component(kind, value)
        if isinstance(value, Mapping) and isinstance(value.get("plugin"), str):
            return grid.deep_merge(
                self._component(kind, value["plugin"]), {k: v for k, v in value.items() if k != "plugin"}
            )
        return value

    def _raw(self, experiment: Experiment) -> dict[str, Any]:
        raw: dict[str, Any] = {kind: self._part(kind, getattr(experiment, kind)) for kind in KINDS}
        return raw | {"training": grid.deep_merge(self.registry.training, experiment.training)}

    def _experiment(self, name: str, experiment: Experiment) -> list[GridCell]:
        path = f"experiments.{name}"
        notes = Notes()
        cell = self._cell(self._raw(experiment), notes)
        for problem in notes.problems:
            self.notes.add(self._origin(path, experiment, problem.path), problem.message, problem.owner)
        if cell is None:
            return []
        seeds = self._seeds((f"{path}.seeds", experiment.seeds), ("seeds", self.registry.seeds))
        return [GridCell(name, "experiments", {}, cell, seeds)]

    def _cell(self, raw: Mapping[str, Any], notes: Notes) -> Cell | None:
        return build_cell(raw, self.host.catalog, notes, folder=self.folder)

    def _origin(self, path: str, experiment: Experiment, inner: str) -> str:
        """Where in the file the setting ``inner`` of this experiment was written: there, or in what it refers to."""
        here = f"{path}.{inner}"
        head, _, rest = inner.partition(".")
        if head == "training" and not _has(experiment.training, rest) and rest:
            return inner
        reference = getattr(experiment, head, None)
        if isinstance(reference, Mapping) and _has(reference, rest):
            return here
        name = reference.get("plugin") if isinstance(reference, Mapping) else reference
        if head in KINDS and isinstance(name, str) and rest:
            folder = FOLDERS[head]
            if name in getattr(self.registry.components, folder):
                return f"components.{folder}.{name}.{rest}"
        return here

    def _check_size(self) -> None:
        count = len(self.registry.experiments) + sum(grid.count(a) for a in self.registry.ablations.values())
        if count > self.max_cells:
            sizes = {f"ablations.{name}": grid.count(ablation) for name, ablation in self.registry.ablations.items()}
            sizes["experiments"] = len(self.registry.experiments)
            path = max(sizes, key=lambda name: sizes[name])
            hint = "pass --yes if you mean it" if count <= MOST_RUNS else f"{MOST_RUNS:,} is the most that is taken"
            told = f"the grid has {count:,} cells (more than {self.max_cells:,}); {hint}"
            problem = Problem(told, where=self.source.locate(path), path=path)
            if self.notes.problems:  # there is more to mend than a yes; so large a grid takes minutes to check
                raise UserError([*self.notes.problems, problem])
            raise TooManyCells(problem, count)

    def _check_runs(self, cells: list[GridCell]) -> None:
        count = sum(len(cell.seeds) for cell in cells)
        if count > MOST_RUNS:
            self.notes.add("seeds", f"cells times seeds make {count:,} runs; {MOST_RUNS:,} is the most that is taken")

    def _check_names(self, cells: list[GridCell]) -> None:
        """Rows of tables are told apart by name, and so are systems in ``systems`` and ``--only``."""
        taken: dict[str, GridCell] = {}
        for cell in cells:
            other = taken.setdefault(cell.label, cell)
            if other is not cell:
                here = f"experiments.{other.name}" if other.group == "experiments" else f"ablations.{other.group}"
                where = "in this grid" if other.group == cell.group else f"the other is in ablations.{cell.group}"
                self.notes.add(here, f"two systems are called '{cell.label}', {where}; rename one", "registry")

    def _ablation(self, name: str, ablation: Ablation) -> list[GridCell]:
        path = f"ablations.{name}"
        base = self.registry.experiments.get(ablation.base)
        if base is None:
            known = list(self.registry.experiments)
            what = f"no experiment is called '{ablation.base}'" if ablation.base else "missing key 'base'"
            self.notes.add(f"{path}.base", f"{what}{did_you_mean(ablation.base, known)}", "ablations")
            return []
        before = len(self.notes.problems)
        points = grid.expand(ablation, path, self.notes)
        raw, made = self._raw(base), []
        of_base = Notes()
        unchanged = self._cell(raw, of_base)
        base_problems = {(problem.path, problem.message) for problem in of_base.problems}
        seeds = self._seeds(
            (f"{path}.seeds", ablation.seeds),
            (f"experiments.{ablation.base}.seeds", base.seeds),
            ("seeds", self.registry.seeds),
        )
        for point in points:
            notes = Notes()
            cell = self._cell(self._changed(raw, point.changes, notes), notes)
            for problem in notes.problems:
                if (problem.path, problem.message) not in base_problems:  # those are told at the base itself
                    self.notes.add(point.locate(problem.path), problem.message, problem.owner)
            named = point.origin == f"{path}.variants.{point.name}"  # one that axes lead back to is part of a product
            if named and cell is not None and cell == unchanged and not notes.problems:
                self.notes.add(point.origin, "this variant changes nothing: it is the base as it is", "ablations")
            if cell is not None:
                made.append(GridCell(point.name, name, point.changes, cell, seeds, point.baseline))
        if points and len(made) == len(points):
            self._whole.add(name)
        if len(self.notes.problems) == before and points and not any(p.baseline for p in points):
            self.notes.add(f"{path}.baseline", "no cell of this grid matches the baseline", "ablations")
        return made

    def _changed(self, raw: Mapping[str, Any], changes: Mapping[str, Any], notes: Notes) -> dict[str, Any]:
        """The base with an ablation's changes; whole components first, so that settings apply to the new one."""
        for path in sorted(changes, key=lambda p: p.count(".")):
            value = changes[path]
            head, _, rest = path.partition(".")
            if head not in (*KINDS, "training"):
                known = [*KINDS, "training"]
                notes.add(path, f"axis '{path}' does not exist in the base{did_you_mean(head, known)}", "ablations")
                continue
            raw = grid.replace(raw, path, self._part(cast(Kind, head), value) if not rest else value)
        return dict(raw)

    def _seeds(self, *choices: tuple[str, tuple[int, ...] | None]) -> tuple[int, ...]:
        """The first list that is given."""
        path, seeds = next((path, seeds) for path, seeds in choices if seeds is not None)
        if not seeds:
            self.notes.add(path, "no seeds; give at least one", "registry")
        elif len(set(seeds)) < len(seeds):
            self.notes.add(path, f"a seed is listed twice: {list(seeds)}", "registry")
        elif any(not 0 <= seed < 2**32 for seed in seeds):
            self.notes.add(path, f"seeds must be between 0 and 2^32 - 1: {list(seeds)}", "registry")
        return seeds


def _has(tree: object, path: str) -> bool:
    for key in path.split(".") if path else ():
        if not isinstance(tree, Mapping) or key not in tree:
            return False
        tree = tree[key]
    return True


__all__ = ["Components", "Study", "TooManyCells", "load"]
