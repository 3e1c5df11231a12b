"""Safety-Gymnasium's published tasks SafetyPointGoal0-v0 and SafetyPointGoal1-v0 on the batched engines.

The same robot, things, physics, observation, reward and cost, and the same way of drawing places: a test plays its own
task classes beside these worlds. What differs is the stream of random numbers, and that layouts come from a set.

Of its other tasks: Goal2 charges vases that move faster than 0.1 mm/s, which the fast engine takes as resting; Button,
Push and Circle have things that these engines do not know.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hazardworld.constraint import suggest
from hazardworld.rng import derive, key_of
from hazardworld.robot.arrays import RobotStep, Scene
from hazardworld.robot.exact import ExactEngine
from hazardworld.robot.fast import FastEngine
from hazardworld.robot.layout import COUNTS, Layouts, Recipe, draw_goal
from hazardworld.robot.rows import Endless, RobotEngine
from hazardworld.robot.things import BINS, HAZARDS, SENSORS, VASES

ENGINES: dict[str, type[RobotEngine]] = {"fast": FastEngine, "exact": ExactEngine}
MAX_STEPS = 1000
GOAL_BONUS = 1.0


class Task(NamedTuple):
    """What is on the floor, which goes from -extent to extent. ``lidars``: those that are shown."""

    extent: float
    counts: tuple[int, ...]
    lidars: tuple[str, ...]


TASKS = {
    "goal0": Task(1.0, (0, 0, 0, 0, 0), ("goal",)),
    "goal1": Task(1.5, (8, 1, 0, 0, 0), ("goal", "hazards", "vases")),
}
ORDER = (HAZARDS, VASES)
"""In which Safety-Gymnasium places things, after robot and goal."""


class PointStep(NamedTuple):
    """What all rows show after a step; fresh arrays."""

    obs: NDArray[np.float32]  # [N, 12 + 16 * lidars]
    reward: NDArray[np.float32]  # [N] metres nearer to the goal, and 1 for reaching it
    cost: NDArray[np.float32]  # [N] 1 within a hazard
    terminated: NDArray[np.bool_]  # [N]
    truncated: NDArray[np.bool_]  # [N]
    episode_start: NDArray[np.bool_]  # [N]


class PointWorlds:
    """N rows of a task. ``maps``: how many layouts there are to draw from (default: 10,000 and, to evaluate, 1,000)."""

    def __init__(
        self,
        task: str,
        rows: int,
        *,
        split: str = "train",
        engine: str = "fast",
        maps: int | None = None,
        map_seed: int = 0,
        max_steps: int = MAX_STEPS,
        seed: int = 0,
        dtype: type[np.floating] = np.float32,
    ) -> None:
        if task not in TASKS:
            raise ValueError(f"unknown task {task!r}{suggest(task, tuple(TASKS))}")
        if engine not in ENGINES:
            raise ValueError(f"unknown engine {engine!r}{suggest(engine, tuple(ENGINES))}")
        self.task, self.rows = TASKS[task], rows
        self.engine = ENGINES[engine](
            layouts(task, split, map_seed, maps),
            rows,
            goals=Endless(self.task.extent),
            max_steps=max_steps,
            order="random" if split == "train" else "sequential",
            stagger=split == "train",  # nothing but the clock ends an episode
            seed=seed,
            dtype=dtype,
        )
        self._distance = np.zeros(rows)  # to the goal that is now shown

    @property
    def size(self) -> int:
        """Numbers of an observation."""
        return 3 * len(SENSORS) + BINS * len(self.task.lidars)

    def reset(self) -> PointStep:
        return self._show(self.engine.reset())

    def step(self, actions: NDArray[np.floating]) -> PointStep:
        return self._show(self.engine.step(actions))

    def _show(self, step: RobotStep) -> PointStep:
        reward = self._distance - step.goal_distance + GOAL_BONUS * step.goal_reached
        self._distance = step.obs[:, -1].astype(np.float64)
        return PointStep(
            obs=step.obs[:, : self.size].copy(),  # what else it shows of a robot's world comes after these
            reward=np.where(step.episode_start, 0.0, reward).astype(np.float32),
            cost=step.touching[:, HAZARDS].astype(np.float32),
            terminated=step.terminated.copy(),
            truncated=step.truncated.copy(),
            episode_start=step.episode_start.copy(),
        )

    def scene(self, row: int) -> Scene:
        return self.engine.scene(row)

    def state(self) -> dict[str, NDArray]:
        """Copies of all that changes."""
        return {f"engine.{name}": array for name, array in self.engine.state().items()} | {
            "distance": self._distance.copy()
        }

    def restore(self, state: Mapping[str, NDArray]) -> None:
        """Go on exactly where ``state()`` was taken, with worlds built the same way."""
        self._distance[...] = state["distance"]
        self.engine.restore({name.removeprefix("engine."): a for name, a in state.items() if name != "distance"})


def layouts(task: str, split: str = "train", seed: int = 0, maps: int | None = None) -> Layouts:
    """Places as Safety-Gymnasium draws them: with a goal, which is then drawn anew at the start of the episode."""
    extent, counts, _ = TASKS[task]
    recipe = Recipe(split, seed, counts, goals=1, extent=extent, order=ORDER)
    count = COUNTS[split] if maps is None else maps
    drawn = recipe.generate(range(count))
    key = key_of(seed, list(TASKS).index(task), split == "eval")
    states = np.array([derive(key, m) for m in range(count)], np.uint64)
    goals = drawn.goals.copy()
    for m in range(count):
        if not draw_goal(states, m, extent, np.array(counts), drawn.robot[m], drawn.things[m], goals[m, 0]):
            raise ValueError(f"map {m} of {task} is too full for a goal")
    return dataclasses.replace(drawn, goals=goals)
