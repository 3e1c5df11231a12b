"""Statistics that a table may print: never a mean alone.

IQM and bootstrap intervals follow Agarwal et al. (2021), "Deep RL at the Edge of the Statistical Precipice".
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]
RESAMPLES = 2_000
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306)
"""97.5 % quantiles of Student's t, for 1 to 8 degrees of freedom."""
ENOUGH = len(STUDENT) + 2
"""Runs from which on a bootstrap is about as wide as it should be."""


def mean_interval(values: Array, floor: float = -math.inf) -> tuple[float, float]:
    """95 % interval of the mean, no lower than ``floor``. With one value there is none: (value, value).

    Of a few values (seeds) Student's; of ten and more (episodes) by bootstrap. The bootstrap of three values holds the
    true mean three times out of four and that of two every other time, which is not what 95 % means.
    """
    values = np.asarray(values, dtype=np.float64)
    if 2 <= len(values) < ENOUGH:
        half = STUDENT[len(values) - 2] * float(values.std(ddof=1)) / len(values) ** 0.5
        return max(floor, float(values.mean()) - half), float(values.mean()) + half
    return _bootstrap_mean(values)


def iqm(values: Array) -> NDArray[np.float64]:
    """Interquartile mean along the last axis: the mean of the middle half."""
    ordered = np.sort(np.asarray(values, dtype=np.float64), axis=-1)
    cut = ordered.shape[-1] // 4
    return np.asarray(ordered[..., cut : ordered.shape[-1] - cut].mean(-1), dtype=np.float64)


def probability_of_improvement(ours: Array, theirs: Array) -> tuple[float, float, float]:
    """Chance that a run of ours beats one of theirs, mean over tasks ([runs, tasks] each, ties half); and interval.

    With fewer than ten runs on either side the interval is NaN: of three runs each of the same system, a bootstrap's
    leaves out 0.5 in one case of five. Runs are drawn whole: what a policy brings in one task says something about the
    next, and drawing within each task, as if it did not, gives intervals that are far too narrow.
    """
    ours, theirs = np.asarray(ours, dtype=np.float64), np.asarray(theirs, dtype=np.float64)
    won = ((ours[:, None] > theirs[None]) + 0.5 * (ours[:, None] == theirs[None])).mean(-1)  # [runs, runs]
    middle = float(won.mean())
    if min(won.shape) < ENOUGH:
        return middle, math.nan, math.nan
    rng = np.random.default_rng(0)
    a = rng.integers(0, won.shape[0], size=(RESAMPLES, won.shape[0], 1))
    b = rng.integers(0, won.shape[1], size=(RESAMPLES, 1, won.shape[1]))
    low, high = _quantiles(won[a, b].mean((1, 2)))
    return middle, low, high


def _bootstrap_mean(values: Array) -> tuple[float, float]:
    if len(values) < 2:
        only = float(values[0]) if len(values) else float("nan")
        return only, only
    rng = np.random.default_rng(0)  # the same data give the same interval
    per_draw = max(1, 2_000_000 // len(values))
    means: list[Array] = []
    for start in range(0, RESAMPLES, per_draw):
        picks = rng.integers(0, len(values), size=(min(per_draw, RESAMPLES - start), len(values)))
        means.append(values[picks].mean(-1))
    return _quantiles(np.concatenate(means))


def _quantiles(estimates: Array) -> tuple[float, float]:
    low, high = np.quantile(estimates, [0.025, 0.975])
    return float(low), float(high)
