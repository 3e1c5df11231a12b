"""The best reward that an episode allows without violation, for one who knows the map.

Breadth-first search over everything that matters: cell, direction (``turn`` only), objects taken, and per constraint
what is spent of its budget or whether its condition is met. Levels of the search are steps, so ``max_steps`` counts.
Reports divide by it: a map whose key lies behind forbidden cells should not be held against an agent.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hazardworld.constraint import ALL_CLASSES, ENTITIES, WALL, forbidden
from hazardworld.maps import MapSet

MOST_STATES = 4_000_000
"""Beyond this (four or more large budgets at once) the answer is nan: not known, rather than not in time."""


def best_rewards(
    maps: MapSet, indices: Iterable[int], worths: tuple[float, float, float], actions: str, max_steps: int
) -> NDArray[np.float64]:
    """[len(indices)]: ceiling of each of these maps, nan where it is not known."""
    return np.array([_best_reward(maps, m, worths, actions == "compass", max_steps) for m in indices])


def _best_reward(maps: MapSet, m: int, worths: tuple[float, float, float], compass: bool, max_steps: int) -> float:
    constraints = [ALL_CLASSES[class_id] for class_id in maps.classes[m]]
    sizes = np.array([2 if c.order else c.threshold + 1 for c in constraints], np.int64)
    if maps.size**2 * (1 if compass else 4) * 8 * math.prod(sizes.tolist()) > MOST_STATES:
        return math.nan
    terrain = maps.terrain[m]
    # A sequential constraint forbids cells in one state of its condition: `met` tells in which.
    closed = np.stack([forbidden(terrain, c, condition_met=c.order == "after") for c in constraints])
    first = np.array([1 + ENTITIES.index(c.first) if c.first else -1 for c in constraints], np.int64)
    met = np.array([{"after": 1, "before": 0, None: -1}[c.order] for c in constraints], np.int64)
    worth = np.array(worths, np.float64)
    return float(
        _search(terrain, maps.points[m], maps.direction[m], closed, first, met, sizes, worth, compass, max_steps)
    )


@njit(cache=True)
def _after_entering(counter, x, y, terrain, closed, first, met, sizes):  # type: ignore[no-untyped-def]
    """The constraints' states after entering (x, y), packed as ``counter`` was; -1 if that would be a violation."""
    new, place = 0, 1
    for k in range(len(sizes)):
        digit = counter // place % sizes[k]
        if met[k] < 0:
            digit += closed[k, y, x]
            if digit == sizes[k]:
                return -1
        else:
            if closed[k, y, x] and digit == met[k]:
                return -1
            if terrain[y, x] == first[k]:
                digit = 1
        new += digit * place
        place *= sizes[k]
    return new


@njit(cache=True)
def _search(terrain, points, direction, closed, first, met, sizes, worth, compass, max_steps):  # type: ignore[no-untyped-def]
    size = terrain.shape[0]
    directions = 1 if compass else 4
    counters = 1
    for k in range(len(sizes)):
        counters *= sizes[k]
    goal, value = 0, np.zeros(8)
    for item in range(3):
        if worth[item] > 0:
            goal |= 1 << item
        for taken in range(8):
            if taken >> item & 1:
                value[taken] += worth[item]

    seen = np.zeros(size * size * directions * 8 * counters, np.bool_)
    queue = np.empty(len(seen), np.int32)
    start = points[0, 1] * size + points[0, 0]
    queue[0] = (start * directions + (0 if compass else direction)) * 8 * counters
    seen[queue[0]] = True
    head, tail, best = 0, 1, 0.0
    for _ in range(max_steps):
        level = tail
        while head < level:
            code = queue[head]
            head += 1
            counter, code = code % counters, code // counters
            taken, code = code % 8, code // 8
            facing, cell = code % directions, code // directions
            if taken & goal == goal:
                continue  # the episode is over here
            for action in range(4):
                turned = facing if compass else (facing + 3) % 4 if action == 0 else (facing + 1) % 4
                new_cell, new_taken, new_counter = cell, taken, counter
                if compass or action >= 2:
                    turned = facing
                    towards = action if compass else facing
                    x = cell % size + (1 if towards == 0 else -1 if towards == 2 else 0)
                    y = cell // size + (1 if towards == 1 else -1 if towards == 3 else 0)
                    item = -1
                    for other in range(3):
                        if points[1 + other, 0] == x and points[1 + other, 1] == y and not taken >> other & 1:
                            item = other
                    if terrain[y, x] == WALL:
                        continue
                    if item >= 0 and (compass or action == 3):
                        new_taken = taken | 1 << item
                    if compass or (action == 2 and item < 0):
                        new_counter = _after_entering(counter, x, y, terrain, closed, first, met, sizes)
                        if new_counter < 0:
                            continue
                        new_cell = y * size + x
                new = ((new_cell * directions + turned) * 8 + new_taken) * counters + new_counter
                if not seen[new]:
                    seen[new] = True
                    queue[tail] = new
                    tail += 1
                    best = max(best, value[new_taken])
        if best == value[goal]:
            return best  # nothing can be worth more
    return best
