"""How well does an interpreter read? Scores on random walks through unseen maps with unseen sentences, per kind.

Cell accuracy, AUC and IoU of the mask M_C; squared error and exact match of the threshold h_C; and the AUC of telling
the moves that cost from those that do not, which is what the ledger lives on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from framework.agent import felt_at, labels_for
from framework.interfaces import ConstraintEnv, ConstraintInterpreter, InterpreterInput, Labels
from framework.interfaces.interpreter import reset_rows
from framework.seeding import generator
from framework.walks import Stroll


@torch.no_grad()
def score(interpreter: ConstraintInterpreter, env: ConstraintEnv, steps: int, seed: int) -> dict[str, dict[str, float]]:
    """Kind of constraint -> scores. Walks at random for ``steps`` steps in all."""
    interpreter.eval()
    code = interpreter.encode(env.sentences)
    k, rows = env.spec.constraints, env.rows * env.spec.constraints
    stroll = Stroll(env, generator(seed, "scoring"))
    state = interpreter.initial_state(rows)
    now = env.reset()
    columns: dict[str, list[Tensor]] = {
        name: [] for name in ("mask", "truth", "h", "true_h", "kind", "sure", "hit", "cost", "moved")
    }
    for _ in range(max(2, steps // env.rows)):
        truth, given = env.labels(), labels_for(interpreter, env)
        folded = None if given is None else Labels(given.mask.flatten(0, 1)[:, None], given.threshold.reshape(-1, 1))
        state = reset_rows(state, interpreter.initial_state(rows), now.episode_start.repeat_interleave(k))
        obs, felt = now.obs.repeat_interleave(k, 0), felt_at(now).repeat_interleave(k, 0)
        inputs = InterpreterInput(obs, code[now.text.flatten()], folded, felt)
        seen, state = interpreter.step(inputs, state)
        sure = seen.confidence if seen.confidence is not None else torch.full((rows,), math.nan)
        now_kind, true_h = now.kind.flatten(), truth.threshold.flatten()
        now = env.step(stroll.next())
        touched = now.touched.repeat_interleave(k, 0).float()
        row = {
            "mask": seen.mask.flatten(1),
            "truth": truth.mask.flatten(0, 1).flatten(1) > 0.5,
            "h": seen.threshold,
            "true_h": true_h,
            "kind": now_kind,
            "sure": sure,
            "hit": (seen.mask * touched).flatten(1).amax(-1),
            "cost": now.cost.flatten() > 0,
            "moved": touched.flatten(1).any(-1),
        }
        for name, value in row.items():
            columns[name].append(value)
    data = {name: torch.cat(parts) for name, parts in columns.items()}
    return {
        env.kinds[i]: _scores({n: v[data["kind"] == i] for n, v in data.items()})
        for i in data["kind"].unique().tolist()
    }


def _scores(data: Mapping[str, Tensor]) -> dict[str, float]:
    said, truth = data["mask"] > 0.5, data["truth"]
    either = (said | truth).sum()
    error = data["h"] - data["true_h"]
    return {
        "cell_accuracy": float((said == truth).float().mean()),
        "auc": auc(data["mask"].flatten(), truth.flatten()),
        "iou": float((said & truth).sum() / either) if either else math.nan,
        "threshold_mse": float(error.square().mean()),
        "threshold_exact": float((torch.floor(data["h"] + 0.5) == data["true_h"]).float().mean()),
        "violation_auc": auc(data["hit"][data["moved"]], data["cost"][data["moved"]]),
        "confidence": float(data["sure"].mean()),
    }


def auc(score: Tensor, positive: Tensor) -> float:
    """Area under the ROC curve: the chance that a positive scores above a negative, ties counting half."""
    positives, negatives = int(positive.sum()), int((~positive).sum())
    if not positives or not negatives:
        return math.nan
    _, inverse, counts = torch.unique(score, return_inverse=True, return_counts=True)
    last = counts.cumsum(0).double()
    middle = last - (counts.double() - 1) / 2  # mean rank of equal scores
    return float((middle[inverse][positive].sum() - positives * (positives + 1) / 2) / (positives * negatives))
