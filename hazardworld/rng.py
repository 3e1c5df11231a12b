"""splitmix64, compiled: one source of chance for maps and for the engine, the same on every machine and version.

Counter-based: the n-th value of a stream is a pure function of its key and n, so a stream is saved as one integer.
Python code calls the compiled functions too, so there is no second implementation that could differ.
"""

from __future__ import annotations

import numpy as np
from numba import njit

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_ONE, _27, _30, _31, _32 = (np.uint64(n) for n in (1, 27, 30, 31, 32))


@njit(cache=True, inline="always")
def _mix(z):  # type: ignore[no-untyped-def]
    z = (z ^ (z >> _30)) * _FIRST
    z = (z ^ (z >> _27)) * _SECOND
    return z ^ (z >> _31)


@njit(cache=True)
def derive(key, index):  # type: ignore[no-untyped-def]
    """The ``index``-th child of a key: an independent stream."""
    return _mix(_mix(key) + _GOLDEN * (np.uint64(index) + _ONE))


@njit(cache=True)
def below(states, row, n):  # type: ignore[no-untyped-def]
    """A whole number in 0..n-1 from stream ``states[row]``, which moves on by one."""
    states[row] += _GOLDEN
    # Multiply-shift instead of a remainder: no division, and a bias below n / 2**32.
    return np.int64(((_mix(states[row]) >> _32) * np.uint64(n)) >> _32)


def key_of(*parts: int) -> np.uint64:
    """One key from several whole numbers, each of any size and sign."""
    key = np.uint64(0)
    for part in parts:
        key = np.uint64(derive(key, np.uint64(part & 0xFFFFFFFFFFFFFFFF)))
    return key
