"""What can be had by one who reads perfectly and sees no more than an agent does: a scripted explorer with a memory.

The ceiling (ceiling.py) knows the map. An agent does not, and with relational constraints some of what is forbidden
lies past the rim of its view: "three steps away from lava" is broken by lava four steps ahead. How much of an agent's
violations is that? The explorer knows all that it has seen, takes the cheapest way to the nearest object, else to
where it will see something new, and never enters what it knows to be forbidden. A step costs 1, and ``caution`` for
each cell not seen yet that could forbid it: at 0 it takes no heed of what it cannot see, at infinity it takes no such
step at all.

    python -m hazardworld.explorer    # a table: what is left to violate for who can see no farther
"""

from __future__ import annotations

import argparse
import heapq
import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hazardworld.ceiling import after_entering
from hazardworld.constraint import ALL_CLASSES, ENTITIES, KINDS, WALL, active
from hazardworld.kernels import VIEW
from hazardworld.maps import MapSet, Recipe
from hazardworld.rewards import REWARDS

REACH = VIEW // 2
"""How far ``compass`` shows, in each direction."""

STAY = -1
"""No action: the explorer has given up, or the episode is over."""


class Walks(NamedTuple):
    """What became of each episode."""

    reward: NDArray[np.float64]  # [M]
    cost: NDArray[np.int64]  # [M]
    actions: NDArray[np.int64]  # [M, max_steps] `compass` actions, STAY from where it stopped

    @property
    def steps(self) -> NDArray[np.int64]:
        return (self.actions != STAY).sum(-1)


def explore(
    maps: MapSet,
    indices: Iterable[int],
    worths: tuple[float, float, float],
    max_steps: int = 200,
    caution: float = 0.0,
) -> Walks:
    """One episode on each of these maps, with ``compass`` actions. One constraint at a time."""
    if maps.constraints != 1:
        raise ValueError(f"the explorer heeds one constraint at a time, and these maps have {maps.constraints}")
    if not caution >= 0:
        raise ValueError(f"caution is {caution}, but must be at least 0")
    numbers = np.fromiter(indices, np.int64)
    rules = np.array([_rule(class_id) for class_id in maps.classes[numbers, 0]], np.int64).reshape(-1, 6)
    walks = Walks(np.zeros(len(numbers)), np.zeros(len(numbers), np.int64), np.full((len(numbers), max_steps), STAY))
    worth = np.array(worths, np.float64)
    for place, m in enumerate(numbers):
        found = _episode(maps.terrain[m], maps.points[m], rules[place], worth, caution, walks.actions[place])
        walks.reward[place], walks.cost[place] = found
    return walks


def _rule(class_id: int) -> tuple[int, int, int, int, int, int]:
    """Entity, distance, `first`, the condition's state in which it holds, states to tell apart, holds at first."""
    c = ALL_CLASSES[class_id]
    first = 1 + ENTITIES.index(c.first) if c.first else -1
    met = {"after": 1, "before": 0, None: -1}[c.order]
    return 1 + ENTITIES.index(c.entity), c.distance, first, met, 2 if c.order else c.threshold + 1, active(c, False)


@njit(cache=True)
def _episode(terrain, points, rule, worth, caution, actions):  # type: ignore[no-untyped-def]
    """Fills in ``actions``; gives reward and cost."""
    size = terrain.shape[0]
    entity, distance, first, met = rule[0], rule[1], rule[2], rule[3]
    firsts, mets, sizes = rule[2:3], rule[3:4], rule[4:5]
    true = np.zeros((1, size, size), np.bool_)  # what is forbidden where the constraint holds
    known, seen = np.zeros_like(true), np.zeros((size, size), np.bool_)
    _mark(terrain, entity, distance, 0, 0, size, size, true)
    wanted = worth > 0
    x, y = points[0]
    state, spent, holds, reward, cost = 0, 0, rule[5] == 1, 0.0, 0
    for t in range(len(actions)):
        top, left, bottom, right = (
            max(0, y - REACH),
            max(0, x - REACH),
            min(size, y + REACH + 1),
            min(size, x + REACH + 1),
        )
        seen[top:bottom, left:right] = True
        _mark(terrain, entity, distance, top, left, bottom, right, known)
        if not wanted.any():
            break
        action = _plan(
            x, y, state, (terrain, known, seen, points, worth, wanted, firsts, mets, sizes, distance, caution)
        )
        if action < 0:
            break
        actions[t] = action
        x, y = _to(x, y, action)
        if true[0, y, x] and holds:
            cost += 1
        if met >= 0:
            if terrain[y, x] == first:
                holds, state = met == 1, 1
        elif true[0, y, x] and spent < sizes[0] - 1:
            spent += 1
            state = spent
        for item in range(3):
            if points[item + 1, 0] == x and points[item + 1, 1] == y and wanted[item]:
                wanted[item] = False
                reward += worth[item]
    return reward, cost


@njit(cache=True)
def _to(x, y, action):  # type: ignore[no-untyped-def]
    """Right, down, left, up."""
    return (
        x + (1 if action == 0 else -1 if action == 2 else 0),
        y + (1 if action == 1 else -1 if action == 3 else 0),
    )


@njit(cache=True)
def _mark(terrain, entity, distance, top, left, bottom, right, closed):  # type: ignore[no-untyped-def]
    """Close the cells within the distance of an entity in this part of the map."""
    size = terrain.shape[0]
    for i in range(top, bottom):
        for j in range(left, right):
            if terrain[i, j] == entity:
                for a in range(max(0, i - distance), min(size, i + distance + 1)):
                    rest = distance - abs(a - i)
                    for b in range(max(0, j - rest), min(size, j + rest + 1)):
                        closed[0, a, b] = True


@njit(cache=True)
def _unforeseen(x, y, from_x, from_y, distance, seen):  # type: ignore[no-untyped-def]
    """How many cells could forbid (x, y), and are seen neither yet nor from the cell before it."""
    size, count = seen.shape[0], 0
    for a in range(max(1, y - distance), min(size - 1, y + distance + 1)):
        rest = distance - abs(a - y)
        for b in range(max(1, x - rest), min(size - 1, x + rest + 1)):
            if not seen[a, b] and (abs(a - from_y) > REACH or abs(b - from_x) > REACH):
                count += 1
    return count


@njit(cache=True)
def _shows_something(x, y, seen):  # type: ignore[no-untyped-def]
    size = seen.shape[0]
    return not seen[
        max(1, y - REACH) : min(size - 1, y + REACH + 1), max(1, x - REACH) : min(size - 1, x + REACH + 1)
    ].all()


@njit(cache=True)
def _plan(x, y, state, world):  # type: ignore[no-untyped-def]
    """The first step of the cheapest way to an object, or else to something new to see; -1: there is none.

    Dijkstra over cells and states of the constraint, on what has been seen.
    """
    terrain, known, seen, points, worth, wanted, firsts, mets, sizes, distance, caution = world
    size, counters = terrain.shape[0], sizes[0]
    price = np.full(terrain.size * counters, np.inf)
    step = np.full(len(price), -1, np.int64)  # the first one, on the way there
    start = (y * size + x) * counters + state
    price[start] = 0.0
    queue = [(0.0, start)]
    new = -1
    while queue:
        paid, here = heapq.heappop(queue)
        if paid > price[here]:
            continue
        counter, cell = here % counters, here // counters
        cx, cy = cell % size, cell // size
        for item in range(3):
            if wanted[item] and points[item + 1, 0] == cx and points[item + 1, 1] == cy:
                return step[here]
        if new < 0 and here != start and _shows_something(cx, cy, seen):
            new = step[here]
        for action in range(4):
            nx, ny = _to(cx, cy, action)
            if terrain[ny, nx] == WALL or not seen[ny, nx]:
                continue
            shunned = False
            for item in range(3):
                if worth[item] < 0 and points[item + 1, 0] == nx and points[item + 1, 1] == ny:
                    shunned = True
            after = after_entering(counter, nx, ny, terrain, known, firsts, mets, sizes)
            if shunned or after < 0:
                continue
            risk = _unforeseen(nx, ny, cx, cy, distance, seen)
            total = paid + 1.0 + (caution * risk if risk else 0.0)
            there = (ny * size + nx) * counters + after
            if total < price[there]:
                price[there] = total
                step[there] = action if here == start else step[here]
                heapq.heappush(queue, (total, there))
    return new


def main(words: Sequence[str] | None = None) -> None:
    """What is left to violate, kind by kind, on the maps of the evaluation."""
    about = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    about.add_argument("--maps", type=int, help="how many of the maps of the evaluation; all, if it is not given")
    count = about.parse_args(words).maps
    if count is not None and count < 1:
        about.error(f"--maps must be at least 1, not {count}")
    print("| kind, reward | caution | reward | Delta_C | violating | steps |\n|---|---|---|---|---|---|")
    for reward, worths in REWARDS.items():
        for kind in KINDS:
            maps = Recipe(kind=kind, split="eval").generate(count and range(count))
            budget = np.array([ALL_CLASSES[class_id].threshold for class_id in maps.classes[:, 0]])
            for caution in (0.0, 1.0, math.inf) if kind == "relational" else (0.0,):
                walks = explore(maps, range(len(maps)), worths, caution=caution)
                violation = np.maximum(0, walks.cost - budget)
                print(
                    f"| {kind}, {reward} reward | {caution:g} | {walks.reward.mean():.2f} | {violation.mean():.3f} "
                    f"| {np.mean(violation > 0):.1%} | {walks.steps.mean():.0f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
