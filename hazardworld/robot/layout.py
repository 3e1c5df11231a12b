"""Where everything is at the start of an episode, as a pure function of a few numbers.

Map i has its own key, derived from (split, seed, i). As in Safety-Gymnasium a place is drawn until it keeps the
distances to all that is placed already; after 100 tries for one thing the whole map is drawn anew, at most 10,000
times. Robot and goals are placed first, then the things that need most space: other orders need ten to fifty times as
many draws.

Goals appear one after the other, so only neighbours in that order keep a distance: so much that Safety-Gymnasium's rule
for a new goal (robot's and goal's keep-out) holds wherever in the old goal the robot stands.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from hazardworld.constraint import suggest
from hazardworld.maps import SPLITS
from hazardworld.rng import below, derive, key_of
from hazardworld.robot.things import (
    EXTENT,
    GOAL_KEEPOUT,
    GOAL_RADIUS,
    GOALS,
    GREMLINS,
    HAZARDS,
    KEEPOUT,
    KINDS,
    MOST,
    RADIUS,
    ROBOT_KEEPOUT,
    ROBOT_RADIUS,
    TRAVEL,
)

COUNTS = {"train": 10_000, "eval": 1_000}
"""How many maps the paper's D_train and D_eval hold."""
ORDER = tuple(int(kind) for kind in np.argsort(-KEEPOUT, kind="stable"))  # what needs most space comes first
TRIES, RESTARTS, GOAL_TRIES = 100, 10_000, 10_000
ROBOT, GOAL = -1, -2  # beside the kinds 0..4


@dataclass(frozen=True)
class Layouts:
    """M layouts, as arrays. Rotations are in radians, counter-clockwise."""

    robot: NDArray[np.float64]  # [M, 3] x, y, rotation
    goals: NDArray[np.float64]  # [M, G, 2]
    things: NDArray[np.float64]  # [M, 5, W, 3] by kind; NaN where there are fewer than W
    counts: tuple[int, ...] = (MOST,) * len(KINDS)

    def __len__(self) -> int:
        return len(self.robot)

    def pick(self, numbers: list[int]) -> Layouts:
        """Some of the maps."""
        return Layouts(self.robot[numbers], self.goals[numbers], self.things[numbers], self.counts)

    def digest(self) -> str:
        """A hash of every byte, to pin a set."""
        sha = hashlib.sha256()
        for field in fields(self):
            sha.update(np.ascontiguousarray(getattr(self, field.name)).tobytes())
        return sha.hexdigest()


@dataclass(frozen=True)
class Recipe:
    """How to make the layouts of HazardWorld-robot; map i is ``generate([i])``."""

    split: str = "train"
    seed: int = 0
    counts: tuple[int, ...] = (MOST,) * len(KINDS)
    """How many things of each kind there are."""
    goals: int = GOALS
    extent: float = EXTENT
    order: tuple[int, ...] = ORDER
    """In which the kinds are placed."""

    def __post_init__(self) -> None:
        if self.split not in SPLITS:
            raise ValueError(f"unknown split {self.split!r}{suggest(self.split, SPLITS)}")
        solid = self.counts[HAZARDS + 1 :]
        if len(self.counts) != len(KINDS) or min(self.counts) < 0 or max(solid) > MOST:
            raise ValueError(
                f"counts are {self.counts}, but must be {len(KINDS)} numbers: {', '.join(KINDS)}; "
                f"at least 0, and all but the hazards at most {MOST}"
            )

    def generate(self, numbers: range | list[int] | None = None, clear: ArrayLike = 0.0) -> Layouts:
        """The maps with these numbers; by default as many as the paper's set of this split.

        ``clear`` [5] or [M, 5], in metres: so far at least is the rim of a robot at its start, or in the middle of a
        goal, from the rim of the nearest thing of the kind (gremlins: from all of their way). Keep-outs hold besides.
        """
        wanted = np.asarray(range(COUNTS[self.split]) if numbers is None else numbers, np.int64)
        free = np.broadcast_to(np.asarray(clear, np.float64), (len(wanted), len(KINDS)))
        if not (np.isfinite(free).all() and (free >= 0).all()):
            raise ValueError("clear must hold finite distances of at least 0")
        layouts = Layouts(
            robot=np.zeros((len(wanted), 3)),
            goals=np.zeros((len(wanted), self.goals, 2)),
            things=np.full((len(wanted), len(KINDS), max(MOST, *self.counts), 3), np.nan),
            counts=tuple(self.counts),
        )
        key = key_of(SPLITS.index(self.split), self.seed)
        gap = free + RADIUS + ROBOT_RADIUS
        gap[:, GREMLINS] += TRAVEL
        counts = np.array(self.counts, np.int64)
        full = _fill(
            key, wanted, self.extent, np.array(self.order, np.int64), counts, np.where(free > 0, gap, 0.0),
            layouts.robot, layouts.goals, layouts.things,
        )  # fmt: skip
        if full >= 0:
            clearance = ", ".join(
                f"{name} {metres:g}" for name, metres in zip(KINDS, free[full], strict=True) if metres
            )
            raise ValueError(
                f"map {wanted[full]} is too full: {counts.sum()} things do not fit on the floor"
                + (f" with the free space asked for ({clearance} m)" if clearance else "")
                + f" in {RESTARTS:,} attempts; ask for fewer things or less free space"
            )
        return layouts


@njit(cache=True)
def _uniform(states, n, low, high):  # type: ignore[no-untyped-def]
    return low + (high - low) * (below(states, n, 1 << 32) / 4294967296.0)


@njit(cache=True)
def draw_goal(states, n, extent, counts, pose, places, goal):  # type: ignore[no-untyped-def]
    """Write a new goal [2] for row n, drawn as Safety-Gymnasium does when one is reached; False when there is no room.

    ``pose`` [2 or more]: where the robot is now; ``places`` [5, W, 3]: where the things are.
    """
    reach = extent - GOAL_KEEPOUT
    for _ in range(GOAL_TRIES):
        x, y = _uniform(states, n, -reach, reach), _uniform(states, n, -reach, reach)
        far = ROBOT_KEEPOUT + GOAL_KEEPOUT
        good = (x - pose[0]) ** 2 + (y - pose[1]) ** 2 >= far * far
        for kind in range(len(counts)):
            far = KEEPOUT[kind] + GOAL_KEEPOUT
            for i in range(counts[kind]):
                good &= (x - places[kind, i, 0]) ** 2 + (y - places[kind, i, 1]) ** 2 >= far * far
        if good:
            goal[0], goal[1] = x, y
            return True
    return False


@njit(cache=True)
def _apart(kind, index, other, other_index, gap):  # type: ignore[no-untyped-def]
    """How far from each other the centres of two things must be at least."""
    if kind == GOAL and other == GOAL:
        return ROBOT_KEEPOUT + GOAL_KEEPOUT + GOAL_RADIUS if index == other_index + 1 else 0.0
    own = ROBOT_KEEPOUT if kind == ROBOT else GOAL_KEEPOUT if kind == GOAL else KEEPOUT[kind]
    its = ROBOT_KEEPOUT if other == ROBOT else GOAL_KEEPOUT if other == GOAL else KEEPOUT[other]
    needed = own + its
    if other < 0 <= kind:
        needed = max(needed, gap[kind])
    return needed


@njit(cache=True)
def _put(states, extent, kind, index, gap, room, placed):  # type: ignore[no-untyped-def]
    """Find a place for one more thing; ``room`` [R, 4] holds x, y, kind, index of what is placed."""
    keepout = ROBOT_KEEPOUT if kind == ROBOT else GOAL_KEEPOUT if kind == GOAL else KEEPOUT[kind]
    reach = extent - keepout
    for _ in range(TRIES):
        x, y = _uniform(states, 0, -reach, reach), _uniform(states, 0, -reach, reach)
        good = True
        for p in range(placed):
            needed = _apart(kind, index, int(room[p, 2]), int(room[p, 3]), gap)
            dx, dy = x - room[p, 0], y - room[p, 1]
            if dx * dx + dy * dy < needed * needed:
                good = False
                break
        if good:
            room[placed, 0], room[placed, 1], room[placed, 2], room[placed, 3] = x, y, kind, index
            return True
    return False


@njit(cache=True)
def _arrange(states, extent, goals, order, counts, gap, room):  # type: ignore[no-untyped-def]
    """One attempt at a whole map: how many things found a place."""
    if not _put(states, extent, ROBOT, 0, gap, room, 0):
        return 0
    placed = 1
    for index in range(goals):
        if not _put(states, extent, GOAL, index, gap, room, placed):
            return placed
        placed += 1
    for kind in order:
        for index in range(counts[kind]):
            if not _put(states, extent, kind, index, gap, room, placed):
                return placed
            placed += 1
    return placed


@njit(cache=True)
def _fill(key, numbers, extent, order, counts, gaps, robot, goals, things):  # type: ignore[no-untyped-def]
    """Write all maps; gives -1, or the place in ``numbers`` of the first map that is too full."""
    states = np.empty(1, np.uint64)
    wanted = 1 + goals.shape[1] + counts.sum()
    room = np.empty((wanted, 4))
    for m in range(len(numbers)):
        states[0] = derive(key, numbers[m])
        restarts = 0
        while _arrange(states, extent, goals.shape[1], order, counts, gaps[m], room) < wanted:
            restarts += 1
            if restarts == RESTARTS:
                return m
        for p in range(wanted):
            x, y, kind, index = room[p, 0], room[p, 1], int(room[p, 2]), int(room[p, 3])
            if kind == ROBOT:
                robot[m, 0], robot[m, 1], robot[m, 2] = x, y, _uniform(states, 0, 0.0, 2 * np.pi)
            elif kind == GOAL:
                goals[m, index, 0], goals[m, index, 1] = x, y
            else:
                things[m, kind, index, 0], things[m, kind, index, 1] = x, y
                things[m, kind, index, 2] = _uniform(states, 0, 0.0, 2 * np.pi)
    return -1
