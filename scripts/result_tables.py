"""Tables of kept results, in Markdown; and pages that hold such tables, written anew from the data.

A page says between two comments what belongs there, and ``scripts/results.py page`` puts it there::

    <!-- table data/systems.csv transfer: reward, Delta_C -->
    <!-- end -->

``table FILE EVALUATION[: COLUMNS]`` has a row for each system and kind of constraint (all columns, if none are named),
``budgets FILE EVALUATION`` their violations by true budget. ``kinds FILE EVALUATION`` has a row for each system and a
column for each kind. Files are relative to the page.
"""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from framework.errors import UserError, did_you_mean
from framework.stats import mean_interval

Rows = list[dict[str, Any]]
SAME_REWARD = "same reward"
"""What the paper calls an evaluation with the training reward."""
BUDGET = "violation_h"
"""Columns of violations by true budget begin with this and end with it (``violation_high`` is another thing)."""

COLUMNS: dict[str, Callable[[Rows], str]] = {
    "reward": lambda rows: with_interval(rows, "reward", 2),
    "of ceiling": lambda rows: _percent(rows, "ceiling_share"),
    "safe reward": lambda rows: with_interval(rows, "safe_reward", 2),
    "Delta_C": lambda rows: with_interval(rows, "violation", 3, floor=0.0),
    "in sight": lambda rows: _mean(rows, "violation_in_sight", 3),
    "while learning": lambda rows: _mean(rows, "learning_violation", 2),
    "violating": lambda rows: _percent(rows, "violation_rate"),
    "steps": lambda rows: _mean(rows, "length", 0),
    "seeds": lambda rows: str(len(rows)),
}


def read(file: Path) -> Rows:
    if not file.is_file():
        return []
    with file.open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def check(file: Path, evaluation: str | None = None) -> Rows:
    """The file's rows; what is not there to be shown is told."""
    rows = read(file)
    if not rows:
        raise UserError(f"{file}: there are no results in it; 'keep' puts some there")
    if evaluation and evaluation not in (known := evaluations(rows)):
        raise UserError(f"{file}: no evaluation is called '{evaluation}'{did_you_mean(evaluation, known)}")
    return rows


def grouped(rows: Rows, evaluation: str) -> dict[tuple[str, str], Rows]:
    """(kind, system) -> its seeds, kind by kind; of a cell of a grid (``inputs/no mask``) the name alone."""
    found: dict[tuple[str, str], Rows] = defaultdict(list)
    for row in rows:
        if row["evaluation"] == evaluation:
            name = row["system"]
            system, _, kind = (name, "", "") if "/" in name else name.partition(" on ")  # a cell of a grid, or a system
            found[kind, system].append(row)
    return dict(sorted(found.items(), key=lambda item: (item[0][0], rank(item[0][1]))))


def label(kind: str, system: str) -> str:
    return f"{system}, {kind}" if kind else system


def rank(system: str) -> tuple[bool, str]:
    """POLCO first."""
    return "polco" not in system, system


def evaluations(rows: Rows) -> list[str]:
    """The training reward first, then as they come."""
    names = dict.fromkeys(row["evaluation"] for row in rows)
    return sorted(names, key=lambda name: name != SAME_REWARD)


def values(rows: Rows, name: str) -> np.ndarray:
    """[seeds]; NaN where it was not measured."""
    return np.array([float(row.get(name) or "nan") for row in rows])


def table(rows: Rows, evaluation: str, columns: list[str]) -> str:
    """Means and Student's 95 % intervals over seeds; with one seed its interval over episodes, in round brackets."""
    lines = [f"| {evaluation} | {' | '.join(columns)} |", f"|{'---|' * (len(columns) + 1)}"]
    for (kind, system), seeds in grouped(rows, evaluation).items():
        lines.append(f"| {label(kind, system)} | {' | '.join(COLUMNS[name](seeds) for name in columns)} |")
    return "\n".join(lines)


def by_budget(rows: Rows, evaluation: str) -> str:
    """Delta_C for each true budget, of the seeds that have it; '' where budgets do not differ."""
    rows = [row for row in rows if row["evaluation"] == evaluation]
    named = {name for row in rows for name in row if re.fullmatch(rf"{BUDGET}[0-9.]+", name) and row[name]}
    budgets = sorted(named, key=lambda name: float(name.removeprefix(BUDGET)))
    if not budgets:
        return ""
    shown = [name.removeprefix(BUDGET) for name in budgets]
    lines = [f"| {evaluation}: Delta_C by h_C | {' | '.join(shown)} | seeds |", f"|{'---|' * (len(budgets) + 2)}"]
    for (kind, system), seeds in grouped([row for row in rows if row[budgets[0]]], evaluation).items():
        cells = [_mean(seeds, name, 3) for name in budgets]
        lines.append(f"| {label(kind, system)} | {' | '.join(cells)} | {len(seeds)} |")
    return "\n".join(lines)


def by_kind(rows: Rows, evaluation: str) -> str:
    """Reward and violations in brief: a column for each kind of constraint."""
    found = grouped(rows, evaluation)
    kinds = list(dict.fromkeys(kind for kind, _ in found))
    systems = sorted({system for _, system in found}, key=rank)
    lines = [f"| {evaluation}: reward / Delta_C | {' | '.join(kinds)} |", f"|{'---|' * (len(kinds) + 1)}"]
    for system in systems:
        seeds = [found.get((kind, system), []) for kind in kinds]
        cells = [f"{_mean(s, 'reward', 2)} / {_mean(s, 'violation', 2)}" if s else "" for s in seeds]
        lines.append(f"| {system} | {' | '.join(cells)} |")
    return "\n".join(lines)


def every_table(file: Path) -> str:
    rows = check(file)
    names = evaluations(rows)
    made = [table(rows, name, list(COLUMNS)) for name in names] + [by_budget(rows, name) for name in names]
    return "\n\n".join(filter(None, made))


BRIEF = {"budgets": by_budget, "kinds": by_kind}
PLACE = re.compile(r"<!-- (table|budgets|kinds) (\S+) ([^:\n]+?)(?:: ([^\n]+?))? -->\n.*?<!-- end -->", re.DOTALL)


def page(file: Path) -> str:
    """The page with all its tables as the data has them now."""

    def made(place: re.Match[str]) -> str:
        what, data, evaluation, named = place.groups()
        rows = check(file.parent / data, evaluation)
        if named and what in BRIEF:
            raise UserError(f"{file}: '{what}' has columns of its own; only 'table' takes others ({named})")
        columns = named.split(", ") if named else list(COLUMNS)
        for name in columns:
            if name not in COLUMNS:
                raise UserError(f"{file}: no column is called '{name}'{did_you_mean(name, list(COLUMNS))}")
        shown = table(rows, evaluation, columns) if what == "table" else BRIEF[what](rows, evaluation)
        return f"{place[0].splitlines()[0]}\n\n{shown}\n\n<!-- end -->"

    return PLACE.sub(made, file.read_text(encoding="utf-8"))


def with_interval(rows: Rows, name: str, digits: int, floor: float = -np.inf) -> str:
    found = values(rows, name)
    low, high = mean_interval(found, floor)
    brackets = "[]"
    if len(found) == 1:
        low, high = (float(values(rows, f"{name}_{end}")[0]) for end in ("low", "high"))
        brackets = "()"
    if np.isnan(found.mean()):
        return ""
    mean, low, high = (_number(value, digits) for value in (found.mean(), low, high))
    return f"{mean} {brackets[0]}{low}, {high}{brackets[1]}"


def _mean(rows: Rows, name: str, digits: int) -> str:
    mean = values(rows, name).mean()
    return "" if np.isnan(mean) else _number(mean, digits)


def _number(value: float, digits: int) -> str:
    return f"{round(float(value), digits) + 0.0:.{digits}f}"  # no -0.00


def _percent(rows: Rows, name: str) -> str:
    mean = values(rows, name).mean()
    return "" if np.isnan(mean) else f"{mean:.1%}" if mean < 0.02 else f"{mean:.0%}"
