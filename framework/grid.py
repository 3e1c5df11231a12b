"""Ablation grids: axes (product) and variants (one change each) -> cells; cells and seeds -> distinct runs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from framework.cell import Cell, ExamSpec, RunSpec
from framework.convert import Notes
from framework.errors import did_you_mean
from framework.names import name_fault
from framework.schema import Ablation


@dataclass(frozen=True)
class GridCell:
    """A named cell of the study: an experiment, or a point of an ablation."""

    name: str
    group: str  # "experiments", or the ablation's name
    changes: Mapping[str, Any]
    cell: Cell
    seeds: tuple[int, ...]
    baseline: bool = False
    exams: tuple[ExamSpec, ...] = ()

    @property
    def label(self) -> str:
        return self.name if self.group == "experiments" else f"{self.group}/{self.name}"

    def runs(self) -> list[RunSpec]:
        return [RunSpec(self.cell, seed, (self.label,), self.exams) for seed in self.seeds]


@dataclass(frozen=True)
class Point:
    """A point of a grid before it is checked: which settings it changes, and where the file says so."""

    name: str
    changes: Mapping[str, Any]
    origin: str  # "ablations.masks.axes" or "ablations.masks.variants.no_mask"
    baseline: bool

    def locate(self, path: str) -> str:
        """The place in the file that a problem at ``path`` comes from: the change nearest to it."""
        within = [change for change in self.changes if path == change or path.startswith(f"{change}.")]
        beside = [change for change in self.changes if change.startswith(f"{path}.")]
        beside += [change for change in self.changes if change.split(".")[0] == path.split(".")[0]]
        owners = sorted(within, key=len, reverse=True) or beside or list(self.changes)
        return f"{self.origin}.{owners[0]}" if owners else self.origin


def count(ablation: Ablation) -> int:
    """How many cells the grid has, without building it."""
    lengths = [len(values) if isinstance(values, list | tuple) else 1 for values in ablation.axes.values()]
    return (math.prod(lengths) if lengths else 0) + len(ablation.variants) + bool(ablation.variants)


def expand(ablation: Ablation, path: str, notes: Notes) -> list[Point]:
    """All points of the grid; mistakes in its shape are noted."""
    if not ablation.axes and not ablation.variants:
        notes.add(path, "the grid is empty: give 'axes' or 'variants'", "ablations")
        return []
    if not isinstance(ablation.baseline, str | Mapping | None):
        what = "{dotted path: value} for axes, or the name of a variant"
        notes.add(f"{path}.baseline", f"the baseline is {what}, not {ablation.baseline!r}", "ablations")
    if ablation.axes and ablation.variants and ablation.baseline is None:
        told = "with axes and variants, name the baseline: {dotted path: value}, a variant, or the base"
        notes.add(path, f"{told} ('{ablation.base}')", "ablations")
    points = _product(ablation, path, notes) + _variants(ablation, path, notes)
    if not points and not any(p.path.startswith(path) for p in notes.problems):
        notes.add(path, "the grid is empty: 'exclude' leaves no cell", "ablations")
    return points


def _product(ablation: Ablation, path: str, notes: Notes) -> list[Point]:
    axes: dict[str, list[Any]] = {}
    for axis, values in ablation.axes.items():
        if not isinstance(values, list | tuple):
            notes.add(f"{path}.axes.{axis}", f"an axis is a list of values, got {values!r}", "ablations")
        elif not values:
            notes.add(f"{path}.axes.{axis}", "the grid is empty: this axis has no values", "ablations")
        elif (twice := _listed_twice(values)) is not None:
            told = f"{_word(values[twice])} is listed twice; a cell of the grid would be there twice"
            notes.add(f"{path}.axes.{axis}.{twice}", told, "ablations")
        else:
            axes[axis] = list(values)
    excluded: list[Mapping[str, Any]] = [{str(k): v for k, v in rule.items()} for rule in ablation.exclude]
    if isinstance(ablation.baseline, str) and not ablation.variants:
        notes.add(f"{path}.baseline", "the baseline of axes is a mapping {dotted path: value}", "ablations")
    wanted = {str(k): v for k, v in ablation.baseline.items()} if isinstance(ablation.baseline, Mapping) else None
    rules = [(f"{path}.exclude.{i}", rule) for i, rule in enumerate(excluded)]
    if ablation.axes:
        rules += [(f"{path}.baseline", wanted)] if wanted else []
    for spot, rule in rules:
        for key in rule:
            if key not in ablation.axes:
                notes.add(
                    f"{spot}.{key}", f"'{key}' is no axis of this grid{did_you_mean(key, list(axes))}", "ablations"
                )
            elif key in axes and rule[key] not in axes[key]:  # it would match no cell, silently
                near = did_you_mean(_word(rule[key]), [_word(value) for value in axes[key]])
                notes.add(f"{spot}.{key}", f"{_word(rule[key])} is no value of this axis{near}", "ablations")
    if len(axes) < len(ablation.axes) or not axes:
        return []
    short = _short_names(axes)
    points = []
    for i, values in enumerate(itertools.product(*axes.values())):
        changes = dict(zip(axes, values, strict=True))
        if any(_matches(rule, changes) for rule in excluded):
            continue
        name = ",".join(f"{short[axis]}={_word(value)}" for axis, value in changes.items())
        is_baseline = _matches(wanted, changes) if wanted else (i == 0 and not ablation.variants)
        points.append(Point(name, changes, f"{path}.axes", is_baseline))
    if points and not wanted and not ablation.variants and not any(p.baseline for p in points):
        points[0] = Point(points[0].name, points[0].changes, points[0].origin, True)  # the first cell was excluded
    return points


def _variants(ablation: Ablation, path: str, notes: Notes) -> list[Point]:
    if not ablation.variants:
        return []
    named = ablation.baseline if isinstance(ablation.baseline, str) else None
    if isinstance(ablation.baseline, Mapping) and not ablation.axes:
        notes.add(f"{path}.baseline", "the baseline of variants is the name of one of them", "ablations")
    if named is not None and named not in (*ablation.variants, ablation.base):
        known = [*ablation.variants, ablation.base]
        notes.add(f"{path}.baseline", f"no variant is called '{named}'{did_you_mean(named, known)}", "ablations")
    points = [Point(ablation.base, {}, path, named == ablation.base or (named is None and not ablation.axes))]
    for name, changes in ablation.variants.items():
        if not isinstance(changes, Mapping) or not changes:
            notes.add(f"{path}.variants.{name}", "a variant is a mapping of dotted path to value", "ablations")
        elif fault := name_fault(name):
            notes.add(f"{path}.variants", fault, "ablations")
        elif name == ablation.base:
            told = f"a variant cannot be called '{name}': the base, as it is, is a cell of that name; rename it"
            notes.add(f"{path}.variants.{name}", told, "ablations")
        else:
            plain = {str(key): value for key, value in changes.items()}
            points.append(Point(name, plain, f"{path}.variants.{name}", name == named))
    return points


def merge(cells: Iterable[GridCell]) -> tuple[RunSpec, ...]:
    """The distinct runs of a study, in order; a run that serves several cells carries all their labels and exams."""
    runs: dict[str, RunSpec] = {}
    for cell in cells:
        for run in cell.runs():
            known = runs.get(run.id, run)
            labels = tuple(dict.fromkeys(known.labels + run.labels))
            exams = {(exam.key, exam.name): exam for exam in known.exams + run.exams}
            runs[run.id] = RunSpec(run.cell, run.seed, labels, tuple(exams.values()))
    return tuple(runs.values())


def deep_merge(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """``base`` with ``changes`` laid over it, mappings merged key by key."""
    merged = dict(base)
    for key, value in changes.items():
        old = merged.get(key)
        merged[key] = deep_merge(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return merged


def replace(tree: Mapping[str, Any], path: str, value: Any) -> dict[str, Any]:
    """``tree`` with one dotted path set; nothing is changed in place."""
    head, _, rest = path.partition(".")
    if not rest:
        return {**tree, head: value}
    inner = tree.get(head)
    return {**tree, head: replace(inner if isinstance(inner, Mapping) else {}, rest, value)}


def _listed_twice(values: Iterable[Any]) -> int | None:
    """Index of the first value that was there before. Compared as text: true is not 1, and lists are values too."""
    seen = set[str]()
    for i, value in enumerate(values):
        if repr(value) in seen:
            return i
        seen.add(repr(value))
    return None


def _matches(rule: Mapping[str, Any], changes: Mapping[str, Any]) -> bool:
    return all(key in changes and changes[key] == value for key, value in rule.items())


def _short_names(axes: Iterable[str]) -> dict[str, str]:
    """Last part of each axis' path, or the whole path where two would be the same."""
    axes = list(axes)
    tails = [axis.rpartition(".")[2] for axis in axes]
    return {axis: tail if tails.count(tail) == 1 else axis for axis, tail in zip(axes, tails, strict=True)}


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return str(value.get("plugin", "...")) + "".join(f"+{k}:{_word(v)}" for k, v in value.items() if k != "plugin")
    return "".join(c if c.isprintable() else "?" for c in str(value))
