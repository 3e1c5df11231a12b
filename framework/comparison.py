"""Tables that compare systems: by budget, how sure it is that one is better, what the cells of an ablation change.

IQM and probability of improvement follow Agarwal et al. (2021). A task is a kind of constraint with a budget; the score
of a system in it is the mean of one seed's episodes. Where they train for each task, here one policy plays them all: a
seed is summed up over its tasks first, and intervals are over seeds.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

import numpy as np

from framework.outcomes import Array, Scores, Task, ablations, changes
from framework.stats import iqm, mean_interval, probability_of_improvement
from framework.tables import Column, Sheet

FLOOR = {"reward": -math.inf, "violation": 0.0}
"""A violation cannot be negative, and no interval of one should say so."""
DELTAS = ("group", "system", "baseline", "seeds", "reward", "reward_low", "reward_high",
          "violation", "violation_low", "violation_high")  # fmt: skip


def by_budget(title: str, found: Sequence[Scores], what: str, file: str) -> Sheet | None:
    """``what`` ("reward" or "violation") of each system at each true h_C; None if there is only one budget."""
    budgets = sorted({h for s in found for _, h in s.tasks})
    if len(budgets) < 2:
        return None
    columns = [Column("system", words=True), Column("kind", words=True), *(Column(f"h_C = {h}") for h in budgets)]
    rows = []
    for s in found:
        for kind in dict.fromkeys(kind for kind, _ in s.tasks):
            cells = [_cell(getattr(s, what), s.tasks, (kind, h), FLOOR[what]) for h in budgets]
            rows.append([s.cell.label, kind, *cells])
    legend = [("h_C", "the true budget: how often the sentence allows what it speaks of"), ("kind", "of constraint")]
    return Sheet(title, columns, rows, "mean [95 % interval over seeds]; by true budget h_C", file, legend)


def _cell(values: Array, tasks: Sequence[Task], task: Task, floor: float) -> str:
    if task not in tasks:
        return ""
    column = values[:, tasks.index(task)]
    return _mean(column[~np.isnan(column)], floor)


def _mean(values: Array, floor: float = -math.inf, sign: str = "") -> str:
    """With its interval, if there are several values."""
    if not len(values) or np.isnan(values).any():
        return "-"
    low, high = mean_interval(values, floor)
    around = f" [{low:{sign}.2f}, {high:{sign}.2f}]" if len(values) > 1 else ""
    return f"{values.mean():{sign}.2f}{around}"


def against(title: str, found: Sequence[Scores], file: str) -> Sheet | None:
    """Each experiment over all tasks, and the chance that the first of its env beats it; None with fewer than two
    seeds, or with nobody to compare."""
    systems = [s for s in found if s.cell.group == "experiments" and len(s.seeds) > 1]
    firsts = {_place(s): s for s in reversed(systems)}
    if len(systems) <= len(firsts):
        return None
    heads = ("IQM reward", "mean Δ_C", "P(first has more reward)", "P(first violates less)")
    rows = []
    for s in systems:
        first = firsts[_place(s)]
        known = [task for task in s.tasks if _everywhere(s, task)]
        # The IQM would leave out the quarter of the tasks where violations happen: those with the tightest budgets.
        cells = [_mean(iqm(_of(s, "reward", known))), _mean(_of(s, "violation", known).mean(-1), 0.0)] if known else []
        shared = [task for task in known if _everywhere(first, task)] if s is not first else []
        better = (_of(first, "reward", shared), _of(s, "reward", shared))
        safer = (-_of(first, "violation", shared), -_of(s, "violation", shared))
        rows.append([s.cell.name, *(cells or ["-", "-"]), *(_chance(*pair) for pair in (better, safer))])
    legend = [
        (heads[0], "the interquartile mean over kinds and budgets of each seed, and the mean of the seeds"),
        (heads[1], "violations, mean over kinds and budgets; an IQM would leave out the tightest budgets"),
        (
            "P(first ...)",
            "the chance that a run of the study's first system in the same env beats a run of this one, ties half, "
            "mean over kinds and budgets; 0.5: no difference. With fewer than ten runs each there is no interval that "
            "would hold",
        ),
    ]
    columns = [Column("system", words=True), *(Column(head) for head in heads)]
    return Sheet(title, columns, rows, "over kinds and budgets; 95 % intervals over seeds", file, legend)


def _chance(ours: Array, theirs: Array) -> str:
    if not ours.shape[1]:
        return "-"
    middle, low, high = probability_of_improvement(ours, theirs)
    runs = f"({len(ours)} and {len(theirs)} runs)"
    return f"{middle:.2f} " + (runs if math.isnan(low) else f"[{low:.2f}, {high:.2f}]")


def _place(s: Scores) -> str:
    """Systems are compared with those in the same env, whatever their names say."""
    return json.dumps(s.cell.cell.env.identity(), sort_keys=True, default=str)


def _everywhere(s: Scores, task: Task) -> bool:
    """Whether the task came up in every seed of this system: what is not known is neither won nor lost."""
    return task in s.tasks and not bool(np.isnan(s.reward[:, s.tasks.index(task)]).any())


def _of(s: Scores, what: str, tasks: Sequence[Task]) -> Array:
    values: Array = getattr(s, what)[:, [s.tasks.index(task) for task in tasks]]
    return values


def deltas(title: str, found: Sequence[Scores], file: str) -> Sheet | None:
    """What each cell of an ablation changes against its baseline; None without an ablation."""
    rows, headings, group = list[list[str]](), list[int](), ""
    for s, base in ablations(found):
        if s.cell.group != group:
            group = s.cell.group
            headings.append(len(rows))
            rows.append([f"ablation {group}, against {base.cell.name}", "", "", ""])
        cells = [_mean(changes(s, base, what)[0], sign="+") for what in ("reward", "violation")]
        rows.append([s.cell.name, *cells, str(changes(s, base, "reward")[1])])
    if not rows:
        return None
    heads = ("change in reward", "change in Δ_C", "seeds")
    legend = [
        (heads[0], "reward of the cell less that of its baseline, seed by seed; more is better"),
        (heads[1], "violations likewise; less is better"),
        ("seeds", "that both have finished; 0: no seed in common, so the difference of the means, with no interval"),
    ]
    columns = [Column("system", words=True), *(Column(head) for head in heads)]
    caption = "cell less baseline, seed by seed [95 % interval]"
    return Sheet(title, columns, rows, caption, file, legend, headings, headings)


def flat_deltas(found: Sequence[Scores]) -> list[dict[str, object]]:
    """The same as numbers, with DELTAS."""
    lines = []
    for s, base in ablations(found):
        line: dict[str, object] = {"group": s.cell.group, "system": s.cell.name, "baseline": base.cell.name}
        for what in ("reward", "violation"):
            values, line["seeds"] = changes(s, base, what)
            line[what] = float(values.mean())
            if len(values) > 1:
                line[f"{what}_low"], line[f"{what}_high"] = mean_interval(values)
        lines.append(line)
    return lines
