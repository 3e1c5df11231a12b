"""Which sentences were broken, and how the interpreter had understood them: the first thing to ask of a bad result."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch

from framework.evaluator import Result
from framework.explaining import explained
from framework.interfaces import ConstraintInterpreter

MOST = 20
"""Sentences that are kept of an evaluation."""


@torch.no_grad()
def most_broken(result: Result, sentences: Sequence[str], interpreter: ConstraintInterpreter) -> list[dict[str, Any]]:
    """The sentences that account for most of Delta_C, worst first: their share of it, and per episode with them."""
    violation = (result.cost - result.threshold).clamp(min=0).double().flatten()
    text = result.text.flatten().long()
    total = torch.zeros(len(sentences), dtype=torch.float64).index_add_(0, text, violation)
    episodes = torch.bincount(text, minlength=len(sentences))
    worst = [i for i in torch.argsort(total, descending=True, stable=True)[:MOST].tolist() if total[i] > 0]
    words = explained(interpreter, [sentences[i] for i in worst])
    return [
        {
            "sentence": sentences[i],
            "read_as": told.text if told else None,
            "episodes": int(episodes[i]),
            "violation": float(total[i] / episodes[i]),
            "share": float(total[i] / total.sum()),
        }
        for i, told in zip(worst, words, strict=True)
    ]


def over_seeds(found: Sequence[Sequence[dict[str, Any]]]) -> list[dict[str, Any]]:
    """The same of several seeds together: shares are means over the seeds (0 where it was not among the worst)."""
    rows: dict[str, dict[str, Any]] = {}
    for seed in found:
        for entry in seed:
            row = rows.setdefault(entry["sentence"], {"sentence": entry["sentence"], "entries": []})
            row["entries"].append(entry)
    merged = [
        {
            "sentence": row["sentence"],
            "read_as": "; ".join(_distinct(entry["read_as"] for entry in row["entries"])),
            "episodes": sum(entry["episodes"] for entry in row["entries"]),
            "violation": _mean(row["entries"]),
            "share": sum(entry["share"] for entry in row["entries"]) / len(found),
        }
        for row in rows.values()
    ]
    return sorted(merged, key=lambda row: -row["share"])


def _distinct(told: Iterable[str | None]) -> list[str]:
    return list(dict.fromkeys(text for text in told if text))


def _mean(entries: Sequence[dict[str, Any]]) -> float:
    episodes = sum(entry["episodes"] for entry in entries)
    return float(sum(entry["violation"] * entry["episodes"] for entry in entries) / episodes)
