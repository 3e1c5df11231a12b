"""The report's main table: each system summed up over its seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from framework.grid import GridCell
from framework.outcomes import Scores
from framework.stats import mean_interval
from framework.tables import Column, Sheet

COLUMNS = ("group", "system", "seeds", "reward", "reward_low", "reward_high", "safe_reward", "safe_reward_low",
           "safe_reward_high", "violation", "violation_low", "violation_high", "violation_in_sight",
           "violation_rate", "length", "discounted_reward", "ceiling_share",
           "discounted_ceiling_share", "learning_violation")  # fmt: skip

CAPTION = "95 % intervals over seeds (one seed: over episodes)"
MEANINGS = {
    "system": "in an ablation, * marks the baseline that the others are compared with",
    "reward": "sum of the rewards of an episode",
    "safe reward": "the part of it that came before the constraint was first violated",
    "violations Δ_C": "cost past the budget, max(0, cost - h_C), by the true cost and the true budget h_C",
    "in sight": "the part of Δ_C that could be seen coming",
    "while learning": "Δ_C, mean over all episodes of training",
    "violating": "share of episodes with any violation",
    "steps": "length of an episode",
    "of ceiling": "reward as a share of what a planner gets that knows the map and never violates",
    "discounted": "the same with discounted reward",
    "seeds": "finished runs",
}
SPARE = {
    "discounted": 7,
    "of ceiling": 6,
    "steps": 5,
    "while learning": 4,
    "violating": 3,
    "in sight": 2,
    "safe reward": 1,
}
"""What is left out first where there is no room."""


@dataclass(frozen=True)
class Row:
    """One system, summed up over its seeds."""

    cell: GridCell
    values: dict[str, float]
    seeds: int


def rows(found: Sequence[Scores]) -> list[Row]:
    return [Row(s.cell, _over_seeds(s), len(s.seeds)) for s in found]


def _over_seeds(s: Scores) -> dict[str, float]:
    """Means over seeds. The interval is over seeds; with a single seed, over its episodes."""
    values = {name: float(np.mean(s.summary(name))) for name in s.results[0]["summary"]}
    if len(s.seeds) > 1:
        for name, floor in (("reward", -math.inf), ("safe_reward", -math.inf), ("violation", 0.0)):
            low, high = mean_interval(s.summary(name), floor)
            values |= {f"{name}_low": low, f"{name}_high": high}
    return values


def flat(made: Sequence[Row]) -> list[dict[str, object]]:
    """Lines of the CSV, with COLUMNS."""
    return [{"group": row.cell.group, "system": row.cell.name, "seeds": row.seeds} | row.values for row in made]


def table(title: str, made: Sequence[Row], file: str) -> Sheet:
    """*In sight* is shown where it differs from Delta_C."""
    unseen = any(v["violation"] - v.get("violation_in_sight", v["violation"]) > 0.005 for v in (r.values for r in made))
    heads = [head for head in MEANINGS if head != "in sight" or unseen]
    lines, sections, group = list[list[str]](), list[int](), ""
    for row in made:
        if row.cell.group != group:
            group = row.cell.group
            sections.append(len(lines))
            lines += [[f"ablation {group}", *[""] * (len(heads) - 1)]] if group != "experiments" else []
        shown = _cells(row)
        lines.append([shown[head] for head in heads])
    headings = [i for i, line in enumerate(lines) if not any(line[1:])]
    columns = [Column(head, SPARE.get(head, 0), words=head == "system") for head in heads]
    legend = [(head, MEANINGS[head]) for head in heads]
    return Sheet(title, columns, lines, CAPTION, file, legend, sections, headings)


def _cells(row: Row) -> dict[str, str]:
    v = row.values
    return {
        "system": row.cell.name + (" *" if row.cell.baseline else ""),
        "reward": _with_interval(v, "reward"),
        "safe reward": _with_interval(v, "safe_reward"),
        "violations Δ_C": _with_interval(v, "violation"),
        "in sight": _told(v, "violation_in_sight", ".2f"),
        "while learning": _told(v, "learning_violation", ".2f"),
        "violating": _told(v, "violation_rate", ".0%"),
        "steps": _told(v, "length", ".0f"),
        "of ceiling": _told(v, "ceiling_share", ".0%"),
        "discounted": _told(v, "discounted_ceiling_share", ".0%"),
        "seeds": str(row.seeds),
    }


def _told(values: Mapping[str, float], name: str, form: str) -> str:
    """A dash for what is not known, as in runs of a version that did not measure it yet."""
    value = values.get(name, math.nan)
    return "-" if math.isnan(value) else format(value, form)


def _with_interval(values: Mapping[str, float], name: str) -> str:
    middle, low, high = (values.get(f"{name}{end}", math.nan) for end in ("", "_low", "_high"))
    return "-" if math.isnan(middle) else f"{middle:.2f} [{low:.2f}, {high:.2f}]"
