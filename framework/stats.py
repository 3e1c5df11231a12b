"""Statistics that a table may print: never a mean alone.

IQM and bootstrap intervals follow Agarwal et al. (2021), "Deep RL at the Edge of the Statistical Precipice".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]
RESAMPLES = 2_000


STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306)
"""97.5 % quantiles of Student's t, for 1 to 8 degrees of freedom."""


def mean_interval(values: Array) -> tuple[float, float]:
    """95 % interval of the mean. With one value there is none: (value, value).

    Of a few values (seeds) Student's; of ten and more (episodes) by bootstrap. The bootstrap of three values holds the
    true mean three times out of four and that of two every other time, which is not what 95 % means.
    """
    values = np.asarray(values, dtype=np.float64)
    if 2 <= len(values) <= len(STUDENT) + 1:
        half = STUDENT[len(values) - 2] * float(values.std(ddof=1)) / len(values) ** 0.5
        return float(values.mean()) - half, float(values.mean()) + half
    return _bootstrap_mean(values)


def iqm(values: Array) -> float:
    """Interquartile mean: the mean of the middle half."""
    return float(_iqm(np.asarray(values, dtype=np.float64)[None])[0])


def stratified_iqm(scores: Array) -> tuple[float, float, float]:
    """IQM of scores [runs, tasks] over both, and its interval: runs are drawn anew within each task."""
    scores = np.asarray(scores, dtype=np.float64)
    middle = iqm(scores.ravel())
    if len(scores) < 2:
        return middle, middle, middle
    rng = np.random.default_rng(0)
    tasks = np.arange(scores.shape[1])
    picks = rng.integers(0, len(scores), size=(RESAMPLES, *scores.shape))
    low, high = _quantiles(_iqm(scores[picks, tasks].reshape(RESAMPLES, -1)))
    return middle, low, high


def probability_of_improvement(ours: Array, theirs: Array) -> tuple[float, float, float]:
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
    low, high = _quantiles(won[a, b, tasks].mean((1, 2, 3)))
    return middle, low, high


def _iqm(draws: Array) -> Array:
    ordered = np.sort(draws, axis=-1)
    cut = ordered.shape[-1] // 4
    return np.asarray(ordered[..., cut : ordered.shape[-1] - cut].mean(-1))


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
