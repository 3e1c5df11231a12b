"""Statistics that a table may print: never a mean alone.

IQM and bootstrap intervals follow Agarwal et al. (2021), "Deep RL at the Edge of the Statistical Precipice".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]
RESAMPLES = 2_000


def mean_interval(values: Array, level: float = 0.95) -> tuple[float, float]:
    """Bootstrap interval of the mean. With one value there is none: (value, value)."""
    return _interval(np.asarray(values, dtype=np.float64), lambda draws: draws.mean(-1), level)


def iqm(values: Array) -> float:
    """Interquartile mean: the mean of the middle half."""
    return float(_iqm(np.asarray(values, dtype=np.float64)[None])[0])


def iqm_interval(values: Array, level: float = 0.95) -> tuple[float, float]:
    """Bootstrap interval of the IQM."""
    return _interval(np.asarray(values, dtype=np.float64), _iqm, level)


def stratified_iqm(scores: Array, level: float = 0.95) -> tuple[float, float, float]:
    """IQM of scores [runs, tasks] over both, and its interval: runs are drawn anew within each task."""
    scores = np.asarray(scores, dtype=np.float64)
    middle = iqm(scores.ravel())
    if len(scores) < 2:
        return middle, middle, middle
    rng = np.random.default_rng(0)
    tasks = np.arange(scores.shape[1])
    picks = rng.integers(0, len(scores), size=(RESAMPLES, *scores.shape))
    low, high = _quantiles(_iqm(scores[picks, tasks].reshape(RESAMPLES, -1)), level)
    return middle, low, high


def probability_of_improvement(ours: Array, theirs: Array, level: float = 0.95) -> tuple[float, float, float]:
    """Chance that a run of ours beats one of theirs, mean over tasks ([runs, tasks] each, ties half); and interval."""
    ours, theirs = np.asarray(ours, dtype=np.float64), np.asarray(theirs, dtype=np.float64)
    won = (ours[:, None] > theirs[None]) + 0.5 * (ours[:, None] == theirs[None])  # [runs, runs, tasks]
    middle = float(won.mean())
    if min(len(ours), len(theirs)) < 2:
        return middle, middle, middle
    rng = np.random.default_rng(0)
    tasks = np.arange(ours.shape[1])
    a = rng.integers(0, len(ours), size=(RESAMPLES, len(ours), 1, len(tasks)))
    b = rng.integers(0, len(theirs), size=(RESAMPLES, 1, len(theirs), len(tasks)))
    low, high = _quantiles(won[a, b, tasks].mean((1, 2, 3)), level)
    return middle, low, high


def _iqm(draws: Array) -> Array:
    ordered = np.sort(draws, axis=-1)
    cut = ordered.shape[-1] // 4
    return np.asarray(ordered[..., cut : ordered.shape[-1] - cut].mean(-1))


def _interval(values: Array, statistic: object, level: float) -> tuple[float, float]:
    if len(values) < 2:
        only = float(values[0]) if len(values) else float("nan")
        return only, only
    rng = np.random.default_rng(0)  # the same data give the same interval
    per_draw = max(1, 2_000_000 // len(values))
    estimates: list[Array] = []
    for start in range(0, RESAMPLES, per_draw):
        picks = rng.integers(0, len(values), size=(min(per_draw, RESAMPLES - start), len(values)))
        estimates.append(statistic(values[picks]))  # type: ignore[operator]
    return _quantiles(np.concatenate(estimates), level)


def _quantiles(estimates: Array, level: float) -> tuple[float, float]:
    low, high = np.quantile(estimates, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
