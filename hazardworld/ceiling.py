"""The best return that an episode allows without violation, for one who knows the map.

Everything that matters is in the state: cell, direction (``turn`` only), objects taken, and per constraint what is
spent of its budget or whether its condition is met. Undiscounted, a breadth-first search over the states is enough; its
levels are steps, so ``max_steps`` counts. Discounted, *when* an object is taken counts too: the answer is V_k(start) at
k = max_steps,

    V_k(s) = max(0, max_a r(s, a) + gamma V_{k-1}(s'))    over the moves a that violate nothing; V_0 = 0.

The 0 is for stopping, which is all that is left where every move would violate. Reports divide by the ceiling: a map
whose key lies behind forbidden cells should not be held against an agent.
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
    maps: MapSet,
    indices: Iterable[int],
    worths: tuple[float, float, float],
    actions: str,
    max_steps: int,
    gamma: float = 1.0,
) -> NDArray[np.float64]:
    """[len(indices)]: ceiling of each of these maps, nan where it is not known. Reward of move k counts gamma**k."""
    if not 0 <= gamma <= 1:
        raise ValueError(f"gamma is {gamma}, outside 0..1")
    return np.array([_best_reward(maps, m, worths, actions == "compass", max_steps, gamma) for m in indices])


def _best_reward(
    maps: MapSet, m: int, worths: tuple[float, float, float], compass: bool, max_steps: int, gamma: float
) -> float:
    constraints = [ALL_CLASSES[class_id] for class_id in maps.classes[m]]
    sizes = np.array([2 if c.order else c.threshold + 1 for c in constraints], np.int64)
    if maps.size**2 * (1 if compass else 4) * 8 * math.prod(sizes.tolist()) > MOST_STATES:
        return math.nan
    terrain = maps.terrain[m]
    # A sequential constraint forbids cells in one state of its condition: `met` tells in which.
    closed = np.stack([forbidden(terrain, c, condition_met=c.order == "after") for c in constraints])
    first = np.array([1 + ENTITIES.index(c.first) if c.first else -1 for c in constraints], np.int64)
    met = np.array([{"after": 1, "before": 0, None: -1}[c.order] for c in constraints], np.int64)
    start, objects = maps.points[m, 0], maps.points[m, 1:]
    world = (terrain, objects, closed, first, met, sizes, compass)
    worth = np.array(worths, np.float64)
    if gamma == 1:
        return float(_search(world, start, maps.direction[m], worth, max_steps))
    return float(_discounted(world, start, maps.direction[m], worth, max_steps, gamma))


@njit(cache=True)
def after_entering(counter, x, y, terrain, closed, first, met, sizes):  # type: ignore[no-untyped-def]
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
def _shape(world):  # type: ignore[no-untyped-def]
    """How many directions and how many states of the constraints there are."""
    counters = 1
    for size in world[5]:
        counters *= size
    return (1 if world[6] else 4), counters


@njit(cache=True)
def _first_state(world, start, direction):  # type: ignore[no-untyped-def]
    directions, counters = _shape(world)
    cell = start[1] * world[0].shape[0] + start[0]
    return (cell * directions + (0 if world[6] else direction)) * 8 * counters


@njit(cache=True)
def _goal(worth):  # type: ignore[no-untyped-def]
    """Bits of the objects that end the episode when all are taken."""
    goal = 0
    for item in range(3):
        if worth[item] > 0:
            goal |= 1 << item
    return goal


@njit(cache=True)
def _moves(state, world, directions, counters, states, items):  # type: ignore[no-untyped-def]
    """Write the states that one move leads to, and the object that it takes (-1: none); says how many there are.

    Moves that would violate a constraint, or change nothing, are left out.
    """
    terrain, objects, closed, first, met, sizes, compass = world
    size = terrain.shape[0]
    counter, code = state % counters, state // counters
    taken, code = code % 8, code // 8
    facing, cell = code % directions, code // directions
    found = 0
    for action in range(4):
        turned, new_cell, new_taken, new_counter, item = facing, cell, taken, counter, -1
        if compass or action >= 2:
            towards = action if compass else facing
            x = cell % size + (1 if towards == 0 else -1 if towards == 2 else 0)
            y = cell // size + (1 if towards == 1 else -1 if towards == 3 else 0)
            if terrain[y, x] == WALL:
                continue
            for other in range(3):
                if objects[other, 0] == x and objects[other, 1] == y and not taken >> other & 1:
                    item = other
            enters = compass or (action == 2 and item < 0)
            takes = item >= 0 and (compass or action == 3)
            if not (enters or takes):
                continue
            if takes:
                new_taken = taken | 1 << item
            if enters:
                new_counter = after_entering(counter, x, y, terrain, closed, first, met, sizes)
                if new_counter < 0:
                    continue
                new_cell = y * size + x
        else:
            turned = (facing + (3 if action == 0 else 1)) % 4
        states[found] = ((new_cell * directions + turned) * 8 + new_taken) * counters + new_counter
        items[found] = item
        found += 1
    return found


@njit(cache=True)
def _search(world, start, direction, worth, max_steps):  # type: ignore[no-untyped-def]
    directions, counters = _shape(world)
    goal, value = _goal(worth), np.zeros(8)
    for taken in range(8):
        for item in range(3):
            if taken >> item & 1:
                value[taken] += worth[item]
    seen = np.zeros(world[0].size * directions * 8 * counters, np.bool_)
    queue = np.empty(len(seen), np.int32)
    new, items = np.empty(4, np.int64), np.empty(4, np.int64)
    queue[0] = _first_state(world, start, direction)
    seen[queue[0]] = True
    head, tail, best = 0, 1, 0.0
    for _ in range(max_steps):
        level = tail
        while head < level:
            state = queue[head]
            head += 1
            if state // counters % 8 & goal == goal:
                continue  # the episode is over here
            for i in range(_moves(state, world, directions, counters, new, items)):
                if not seen[new[i]]:
                    seen[new[i]] = True
                    queue[tail] = new[i]
                    tail += 1
                    best = max(best, value[new[i] // counters % 8])
        if best == value[goal]:
            return best  # nothing can be worth more
    return best


@njit(cache=True)
def _discounted(world, start, direction, worth, max_steps, gamma):  # type: ignore[no-untyped-def]
    """V_k of the start, k = max_steps.

    One may stop at any time, so V_k never falls with k, and only a state with a successor that rose at k - 1 can rise
    at k. So values travel backwards along the moves in waves, which saves most of the work of sweeps over all states.
    """
    directions, counters = _shape(world)
    goal = _goal(worth)
    number = np.full(world[0].size * directions * 8 * counters, -1, np.int32)  # of each state within reach, or -1
    queue = np.empty(len(number), np.int32)
    source, target = np.empty(4 * len(number), np.int32), np.empty(4 * len(number), np.int32)
    gain = np.empty(4 * len(number))
    new, items = np.empty(4, np.int64), np.empty(4, np.int64)
    queue[0] = _first_state(world, start, direction)
    number[queue[0]] = 0
    head, tail, edges = 0, 1, 0
    while head < tail:
        state = queue[head]
        if state // counters % 8 & goal != goal:  # else the episode is over here
            for i in range(_moves(state, world, directions, counters, new, items)):
                if number[new[i]] < 0:
                    number[new[i]] = tail
                    queue[tail] = new[i]
                    tail += 1
                source[edges], target[edges] = head, number[new[i]]
                gain[edges] = worth[items[i]] if items[i] >= 0 else 0.0
                edges += 1
        head += 1

    into = np.zeros(tail + 1, np.int32)  # moves into state s are by_target[into[s] : into[s + 1]]
    for e in range(edges):
        into[target[e]] += 1
    for s in range(1, tail + 1):
        into[s] += into[s - 1]
    by_target = np.empty(edges, np.int32)
    for e in range(edges):
        into[target[e]] -= 1
        by_target[into[target[e]]] = e

    value, rose_at = np.zeros(tail), np.zeros(tail, np.int32)
    wave, before, next_wave = np.arange(tail), np.zeros(tail), np.empty(tail, np.int64)
    waiting = tail
    for k in range(1, max_steps + 1):
        for i in range(waiting):
            before[i] = value[wave[i]]  # V_{k-1}: some of these rise in this very step
        rising = 0
        for i in range(waiting):
            for place in range(into[wave[i]], into[wave[i] + 1]):
                e = by_target[place]
                s, promise = source[e], gain[e] + gamma * before[i]
                if promise > value[s]:
                    value[s] = promise
                    if rose_at[s] < k:
                        rose_at[s] = k
                        next_wave[rising] = s
                        rising += 1
        wave, next_wave, waiting = next_wave, wave, rising
        if waiting == 0:
            break
    return value[0]
