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
    low, high = np.quantile(np.concatenate(estimates), [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
