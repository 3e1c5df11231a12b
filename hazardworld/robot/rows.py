"""What both engines share: rows, episodes, goals, refusing bad actions, saving. How things move is in subclasses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hazardworld.constraint import suggest
from hazardworld.rng import below, derive, key_of
from hazardworld.robot.arrays import RobotStep, Scene
from hazardworld.robot.layout import Layouts, draw_goal
from hazardworld.robot.sensing import arrive, show
from hazardworld.robot.things import BINS, KINDS, OBSERVATION

ORDERS = ("random", "sequential")


@dataclass(frozen=True)
class Endless:
    """A new goal whenever one is reached, drawn anywhere on the floor where there is room."""

    extent: float
    """The floor goes from -extent to extent."""


class RobotEngine(ABC):
    """N worlds stepped together. A finished row starts its next episode at the following step (NEXT_STEP autoreset).

    ``order``: ``random`` draws a map at every reset (training); ``sequential`` gives row n the maps n, n + N, ...
    ``goals``: how many of a map's goals an episode has, or Endless. When one is reached the next appears; the last
    ends it.
    ``stagger``: the first episodes begin with part of their time gone, each row with another part. Otherwise rows whose
    episodes all take their full time end together, and most batches of a learner hold no finished episode.
    ``dtype``: of the observation; float64 is for comparing worlds.
    """

    def __init__(
        self,
        layouts: Layouts,
        rows: int,
        *,
        goals: int | Endless = 1,
        max_steps: int = 1000,
        order: str = "random",
        seed: int = 0,
        stagger: bool = False,
        dtype: type[np.floating] = np.float32,
    ) -> None:
        if order not in ORDERS:
            raise ValueError(f"unknown order {order!r}{suggest(order, ORDERS)}")
        for name, number in (("rows", rows), ("max_steps", max_steps), ("layouts", len(layouts))):
            if number < 1:
                raise ValueError(f"{name} is {number}, but must be at least 1")
        known = layouts.goals.shape[1]
        if not isinstance(goals, Endless) and not 1 <= goals <= known:
            raise ValueError(f"goals is {goals}, but must be in 1..{known}")
        self.layouts, self.rows, self.goals, self.max_steps = layouts, rows, goals, max_steps
        self._sequential = order == "sequential"
        self._head_start = np.arange(rows) * max_steps // rows if stagger else np.zeros(rows, np.int64)
        self._key = key_of(seed)
        self._counts = np.array(layouts.counts, np.int64)
        self._lidar = np.zeros(BINS)
        # Where an episode stands.
        self._map = np.zeros(rows, np.int64)
        self._clock = np.zeros((rows, 2), np.int64)  # steps in this episode, episodes begun
        self._goal = np.zeros(rows, np.int64)  # how many were reached
        self._target = np.zeros((rows, 2))  # where the next one is
        self._done = np.ones(rows, np.bool_)
        self._rng = np.zeros(rows, np.uint64)
        # Where everything is; written by subclasses.
        self._pose = np.zeros((rows, 4))  # x, y, cosine and sine of the heading
        self._sensors = np.zeros((rows, 12))
        self._places = np.full((rows, *layouts.things.shape[1:]), np.nan)
        self._contact = np.zeros((rows, len(KINDS)), np.bool_)
        self._step = RobotStep(
            obs=np.zeros((rows, OBSERVATION), dtype),
            touching=np.zeros((rows, len(KINDS)), np.bool_),
            gap=np.zeros((rows, len(KINDS)), np.float32),
            goal_reached=np.zeros(rows, np.bool_),
            goal_distance=np.zeros(rows),
            terminated=np.zeros(rows, np.bool_),
            truncated=np.zeros(rows, np.bool_),
            episode_start=np.zeros(rows, np.bool_),
        )

    @abstractmethod
    def _begin(self, n: int) -> None:
        """Put row n at the start of its map: pose, sensors, places; no contact."""

    @abstractmethod
    def _move(self, rows: NDArray[np.int64], actions: NDArray[np.float64]) -> None:
        """One control step of these rows with actions [N, 2] that are in range: pose, sensors, places, contact."""

    @abstractmethod
    def _parts(self) -> dict[str, NDArray]:
        """The arrays that say how things move on, beside those of this class."""

    def reset(self) -> RobotStep:
        """Start all rows afresh from the seed."""
        self._clock[:] = 0
        self._rng[:] = [derive(self._key, n) for n in range(self.rows)]
        self._done[:] = True
        return self.step(np.zeros((self.rows, 2)))

    def begin_again(self) -> RobotStep:
        """Every row starts its next episode, finished or not."""
        self._done[:] = True
        return self.step(np.zeros((self.rows, 2)))

    def step(self, actions: NDArray[np.floating], moved: NDArray[np.bool_] | None = None) -> RobotStep:
        """Move every row; actions [N, 2] beyond [-1, 1] are clipped. The arrays are overwritten by the next step.

        ``moved`` [N]: move only these rows, and leave the others as they are, even those that are done.
        """
        actions = self._checked(actions)
        start = self._done.copy() if moved is None else np.zeros(self.rows, np.bool_)
        moved = ~start if moved is None else moved
        self._step.episode_start[:] = start
        for n in np.flatnonzero(start):
            self._map[n] = self._next_map(int(n))
            self._goal[n] = 0
            self._target[n] = self.layouts.goals[self._map[n], 0]
            self._clock[n, 0] = 0 if self._clock[n, 1] else self._head_start[n]
            self._clock[n, 1] += 1
            self._contact[n] = False
            self._done[n] = False
            self._begin(int(n))
        self._move(np.flatnonzero(moved), actions)
        last = 0 if isinstance(self.goals, Endless) else self.goals
        arrive(last, self.max_steps, self._target, self._pose, moved, self._clock, self._goal, self._done, self._step)
        for n in np.flatnonzero(self._step.goal_reached & ~self._step.terminated & moved):
            self._next_goal(int(n))
        show(
            self._counts, self._target, self._pose, self._sensors, self._places, self._contact, self._lidar, self._step
        )
        return self._step

    def _next_goal(self, n: int) -> None:
        if not isinstance(self.goals, Endless):
            self._target[n] = self.layouts.goals[self._map[n], self._goal[n]]
            return
        extent, places = self.goals.extent, self._places[n]
        if not draw_goal(self._rng, n, extent, self._counts, self._pose[n], places, self._target[n]):
            self._step.terminated[n] = self._done[n] = True  # no room: the episode ends, as in Safety-Gymnasium
            self._step.truncated[n] = False

    def _next_map(self, n: int) -> int:
        if self._sequential:
            return int((n + self._clock[n, 1] * self.rows) % len(self.layouts))
        return int(below(self._rng, n, len(self.layouts)))

    def _checked(self, actions: NDArray) -> NDArray[np.float64]:
        if actions.shape != (self.rows, 2) or actions.dtype.kind not in "fiu":
            raise ValueError(
                f"actions must be {self.rows} pairs of numbers, one per row; got shape {actions.shape}, {actions.dtype}"
            )
        if not np.isfinite(actions).all():
            row = int(np.flatnonzero(~np.isfinite(actions).all(1))[0])
            raise ValueError(f"action of row {row} is {actions[row].tolist()}, but must be two finite numbers")
        return np.clip(actions.astype(np.float64), -1.0, 1.0)

    @property
    def map_index(self) -> NDArray[np.int64]:
        """[N]: which map each row plays."""
        return self._map.copy()

    def layout(self, row: int) -> Layouts:
        """The one map that a row plays."""
        return self.layouts.pick([int(self._map[row])])

    def scene(self, row: int) -> Scene:
        """Where everything in a row is now."""
        x, y, cos, sin = self._pose[row]
        return Scene(np.array([x, y, np.arctan2(sin, cos)]), self._target[row].copy(), self._places[row].copy())

    def state(self) -> dict[str, NDArray]:
        """Copies of everything that changes."""
        return {name: array.copy() for name, array in self._all_parts().items()}

    def restore(self, state: Mapping[str, NDArray]) -> None:
        """Go on exactly where ``state()`` was taken, from an engine built with the same arguments."""
        own = self._all_parts()
        if set(state) != set(own):
            raise ValueError(f"engine state has the parts {sorted(state)}, expected {sorted(own)}")
        for name, array in own.items():
            if state[name].shape != array.shape:
                raise ValueError(f"engine state {name!r} has shape {state[name].shape}, expected {array.shape}")
        for name, array in own.items():
            array[...] = state[name]

    def _all_parts(self) -> dict[str, NDArray]:
        return {
            "map": self._map,
            "clock": self._clock,
            "goal": self._goal,
            "target": self._target,
            "done": self._done,
            "rng": self._rng,
            "pose": self._pose,
            "places": self._places,
        } | self._parts()
