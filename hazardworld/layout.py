"""Compiled placing of start, objects and hazards on one map.

Relational constraints promise that the task can be done with no cost. So a hazard of the named entity goes only where
it is further than d from the start and from every object, and where start and objects stay connected through cells
that are further than d from all such hazards. A hazard for which no such place is left becomes another kind; if the
constraints name all kinds it is left out. Other constraints make no promise (as in the paper).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hazardworld.rng import below


@njit(cache=True)
def shuffle(cells, states, row):  # type: ignore[no-untyped-def]
    """Fisher-Yates, in place."""
    for last in range(len(cells) - 1, 0, -1):
        other = below(states, row, last + 1)
        cells[last], cells[other] = cells[other], cells[last]


@njit(cache=True)
def _overwrite(target, source):  # type: ignore[no-untyped-def]
    """``target[:] = source``, written out: numba needs a second to compile each slice assignment."""
    for y in range(source.shape[0]):
        for x in range(source.shape[1]):
            target[y, x] = source[y, x]


@njit(cache=True)
def connected(blocked, points, seen, queue):  # type: ignore[no-untyped-def]
    """Whether one can walk from the first of ``points`` [P, 2] (x, y) to all others over cells that are not blocked.

    ``blocked`` [S, S] must have a border of True; ``seen`` and ``queue`` are scratch: a search allocates nothing.
    """
    _overwrite(seen, blocked)
    missing = len(points) - 1
    head, tail = 0, 1
    queue[0, 0], queue[0, 1] = points[0, 0], points[0, 1]
    seen[points[0, 1], points[0, 0]] = True
    while head < tail:
        x, y = queue[head, 0], queue[head, 1]
        head += 1
        for move in range(4):
            nx = x + (1 if move == 0 else -1 if move == 2 else 0)
            ny = y + (1 if move == 1 else -1 if move == 3 else 0)
            if seen[ny, nx]:
                continue
            seen[ny, nx] = True
            queue[tail, 0], queue[tail, 1] = nx, ny
            tail += 1
            for p in range(1, len(points)):
                if points[p, 0] == nx and points[p, 1] == ny:
                    missing -= 1
        if missing == 0:
            return True
    return missing == 0


@njit(cache=True)
def _fence(blocked, x, y, radius):  # type: ignore[no-untyped-def]
    """Block all cells within ``radius`` of (x, y); says whether any of them was open."""
    size = blocked.shape[0]
    changed = False
    for cy in range(max(0, y - radius), min(size, y + radius + 1)):
        reach = radius - abs(cy - y)
        for cx in range(max(0, x - reach), min(size, x + reach + 1)):
            changed |= not blocked[cy, cx]
            blocked[cy, cx] = True
    return changed


@njit(cache=True)
def place(states, row, hazards, radius, terrain, points):  # type: ignore[no-untyped-def]
    """Fill an empty walled map: ``points`` [4, 2] (x, y) of start, ball, box, key; ``hazards`` hazards in ``terrain``.

    ``radius[code]``: the largest distance that a relational constraint keeps from this terrain code, or -1.
    """
    size = terrain.shape[0]
    inner = size - 2
    cells = np.arange(inner * inner)
    shuffle(cells, states, row)
    for p in range(4):
        points[p, 0], points[p, 1] = cells[p] % inner + 1, cells[p] // inner + 1

    closed = np.zeros((4, size, size), np.bool_)  # where a hazard of this code may never go
    for code in range(1, 4):
        if radius[code] >= 0:
            for p in range(4):
                _fence(closed[code], points[p, 0], points[p, 1], radius[code])
    blocked = np.zeros((size, size), np.bool_)
    trial = np.zeros((size, size), np.bool_)
    seen = np.zeros((size, size), np.bool_)
    _overwrite(blocked, terrain)
    queue = np.empty((size * size, 2), np.int64)
    others = 0
    for code in range(1, 4):
        others += radius[code] < 0

    free = 4
    for _ in range(hazards):
        code = 1 + below(states, row, 3)
        if radius[code] >= 0:
            placed = False
            for index in range(4, len(cells)):
                x, y = cells[index] % inner + 1, cells[index] // inner + 1
                if terrain[y, x] != 0 or closed[code, y, x]:
                    continue
                _overwrite(trial, blocked)
                if not _fence(trial, x, y, radius[code]) or connected(trial, points, seen, queue):
                    _overwrite(blocked, trial)
                    terrain[y, x] = code
                    placed = True
                    break
                closed[code, y, x] = True  # fences only grow, so a place that fails once fails for good
            if placed or others == 0:
                continue
            skip = below(states, row, others)
            for other in range(1, 4):
                if radius[other] < 0:
                    if skip == 0:
                        code = other
                    skip -= 1
        while terrain[cells[free] // inner + 1, cells[free] % inner + 1] != 0:
            free += 1
        terrain[cells[free] // inner + 1, cells[free] % inner + 1] = code
