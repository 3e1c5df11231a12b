"""Tables that compare systems: violations by budget, and how sure it is that one is better than another.

IQM and probability of improvement follow Agarwal et al. (2021). A task is a kind of constraint with a budget; the score
of a system in it is the mean of one seed's episodes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
from rich.markup import escape
from rich.table import Table

from framework.outcomes import Array, Scores, Task
from framework.stats import mean_interval, probability_of_improvement, stratified_iqm


def by_budget(title: str, found: Sequence[Scores], what: str) -> Table | None:
    """``what`` ("reward" or "violation") of each system at each true h_C; None if there is only one budget."""
    budgets = sorted({h for s in found for _, h in s.tasks})
    if len(budgets) < 2:
        return None
    out = Table(
        title=escape(title), title_justify="left", caption="mean [95 % interval over seeds]; by true budget h_C"
    )
    out.add_column("system")
    out.add_column("kind")
    for h in budgets:
        out.add_column(f"h_C = {h}", justify="right")
    for s in found:
        for kind in dict.fromkeys(kind for kind, _ in s.tasks):
            cells = [_cell(getattr(s, what), s.tasks, (kind, h)) for h in budgets]
            out.add_row(escape(s.cell.label), kind, *map(escape, cells))
    return out


def _cell(values: Array, tasks: Sequence[Task], task: Task) -> str:
    if task not in tasks:
        return ""
    column = values[:, tasks.index(task)]
    column = column[~np.isnan(column)]
    low, high = mean_interval(column)
    return f"{column.mean():.2f}" + (f" [{low:.2f}, {high:.2f}]" if len(column) > 1 else "")


def against(title: str, found: Sequence[Scores]) -> Table | None:
    """IQM of each experiment, and the chance that the first of its env beats it; None with fewer than two seeds."""
    systems = [s for s in found if s.cell.group == "experiments" and len(s.reward) > 1]
    firsts = {_place(s): s for s in reversed(systems)}
    if len(systems) <= len(firsts):
        return None  # nobody to compare with
    caption = (
        "IQM over seeds and budgets, 95 % stratified bootstrap; P: chance that a run of the first system is better"
    )
    out = Table(title=escape(title), title_justify="left", caption=caption)
    out.add_column("system")
    for head in ("IQM reward", "IQM Δ_C", "P(first has more reward)", "P(first violates less)"):
        out.add_column(head, justify="right")
    for s in systems:
        first = firsts[_place(s)]
        cells = [_triple(*stratified_iqm(_complete(values))) for values in (s.reward, s.violation)]
        if s is first:
            cells += ["-", "-"]
        else:
            shared = [task for task in s.tasks if _everywhere(s, task) and _everywhere(first, task)]
            better = (_of(first, "reward", shared), _of(s, "reward", shared))
            safer = (-_of(first, "violation", shared), -_of(s, "violation", shared))
            cells += [_triple(*probability_of_improvement(*pair)) for pair in (better, safer)]
        out.add_row(escape(s.cell.name), *map(escape, cells))
    return out


def _place(s: Scores) -> str:
    """Systems are compared with those in the same env, whatever their names say."""
    return json.dumps(s.cell.cell.env.identity(), sort_keys=True, default=str)


def _everywhere(s: Scores, task: Task) -> bool:
    """Whether the task came up in every seed of this system: what is not known is neither won nor lost."""
    return task in s.tasks and not bool(np.isnan(s.reward[:, s.tasks.index(task)]).any())


def _of(s: Scores, what: str, tasks: Sequence[Task]) -> Array:
    values: Array = getattr(s, what)[:, [s.tasks.index(task) for task in tasks]]
    return values


def _complete(values: Array) -> Array:
    """Tasks that came up in every seed."""
    return values[:, ~np.isnan(values).any(0)]


def _triple(middle: float, low: float, high: float) -> str:
    return f"{middle:.2f} [{low:.2f}, {high:.2f}]"
