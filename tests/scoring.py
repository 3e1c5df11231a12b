"""Made-up results of a system, as a report reads them from its runs."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from framework.outcomes import Scores


def scored(name, reward, violation=None, *, group="experiments", baseline=False, env="ford", seeds=None, kinds=None):
    """``reward`` and ``violation``: [seeds, tasks]. A task is a budget of one kind, or of each of ``kinds``."""
    place = SimpleNamespace(identity=lambda: {"plugin": env})
    label = name if group == "experiments" else f"{group}/{name}"
    cell = SimpleNamespace(name=name, group=group, label=label, baseline=baseline, cell=SimpleNamespace(env=place))
    rewards = np.array(reward, float)
    violations = np.zeros_like(rewards) if violation is None else np.array(violation, float)
    kinds = kinds or ["budgetary"]
    tasks = tuple((kind, h) for kind in kinds for h in range(rewards.shape[1] // len(kinds)))
    results = [
        {"summary": {"reward": float(r), "violation": float(v)}}
        for r, v in zip(np.nanmean(rewards, 1), np.nanmean(violations, 1), strict=True)
    ]
    episodes = np.where(np.isnan(rewards), 0, 100)
    return Scores(cell, tasks, rewards, violations, tuple(seeds or range(len(rewards))), tuple(results), episodes)
