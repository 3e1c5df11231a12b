"""The world written with Safety-Gymnasium's own classes: a task of its kind, and a generator that says where things go.

The classes come from ``loader.load()``, so they are made when first asked for, not when this file is imported.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from hazardworld.robot.layout import Layouts
from hazardworld.robot.loader import load
from hazardworld.robot.things import BUTTONS, EXTENT, GOAL_KEEPOUT, GREMLINS, HAZARDS, KEEPOUT, KINDS, PILLARS, VASES

BUILD_ORDER = ("goal", "hazards", "pillars", "buttons", "vases", "gremlins")
"""In which Safety-Gymnasium asks for rotations."""


class Classes(NamedTuple):
    """Subclasses of RandomGenerator, BaseTask and Builder."""

    Placement: Any
    Task: Any
    Env: Any


@contextmanager
def quiet() -> Iterator[None]:
    """Without Gymnasium's remarks on unbounded spaces."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


@functools.cache
def classes() -> Classes:
    sim = load()

    class Placement(sim.RandomGenerator):  # type: ignore[name-defined, misc]
        """Instead of chance: one map of a set of layouts."""

        layouts: Layouts
        map = 0

        def build_layout(self) -> dict[str, Any]:
            """Names to places."""
            self.layout = {"agent": self.layouts.robot[self.map, :2], "goal": self.layouts.goals[self.map, 0]}
            for kind, name in enumerate(KINDS):
                for i in range(self.layouts.counts[kind]):
                    self.layout[f"{name[:-1]}{i}"] = self.layouts.things[self.map, kind, i, :2]
            names = [name for name in BUILD_ORDER if name == "goal" or self.layouts.counts[KINDS.index(name)]]
            self._rotations = iter(names)
            return self.layout

        def generate_rots(self, num: int = 1) -> list[float]:
            """The rotations of the next kind in BUILD_ORDER."""
            name = next(self._rotations)
            return [0.0] if name == "goal" else list(self.layouts.things[self.map, KINDS.index(name), :num, 2])

    class Task(sim.BaseTask):  # type: ignore[name-defined, misc]
        """Go to one goal after the other. What is forbidden is not its business: it only tells what was touched."""

        def __init__(self, layouts: Layouts, goals: int, max_steps: int) -> None:
            with quiet():
                super().__init__(config={"agent_name": "Point", "observation_flatten": False})
            self.random_generator = Placement()
            self.random_generator.set_random_seed(0)  # asked for the number of physics steps, which is always ten
            self.random_generator.layouts = layouts
            self.num_steps = max_steps
            self.placements_conf.extents = [-EXTENT, -EXTENT, EXTENT, EXTENT]
            self.goals, self.reached, self.away = goals, 0, 0.0
            count = layouts.counts
            self._add_geoms(sim.Goal(keepout=GOAL_KEEPOUT))
            if count[HAZARDS]:
                self._add_geoms(sim.Hazards(num=count[HAZARDS], keepout=float(KEEPOUT[HAZARDS])))
            if count[PILLARS]:
                self._add_geoms(sim.Pillars(num=count[PILLARS]))
            if count[BUTTONS]:
                # None of the buttons is a goal, and none ever rests.
                self._add_geoms(sim.Buttons(num=count[BUTTONS], goal_button=-1, timer=0))
            if count[VASES]:
                self._add_free_geoms(sim.Vases(num=count[VASES]))
            if count[GREMLINS]:
                self._add_mocaps(sim.Gremlins(num=count[GREMLINS]))

        def choose(self, map_index: int) -> None:
            """The next reset begins on this map."""
            self.reached = 0
            self.random_generator.map = map_index
            self.agent.rot = self.random_generator.layouts.robot[map_index, 2]

        def calculate_reward(self) -> float:
            self.away = self.dist_goal()  # before the next goal appears
            return 0.0

        def specific_reset(self) -> None:
            pass

        def specific_step(self) -> None:
            self.mechanism_conf.continue_goal = self.reached + 1 < self.goals

        def update_layout(self) -> None:
            """Called when a goal was reached and another is to come. Where is known: nothing has to be sampled."""
            self.reached += 1

        def update_world(self) -> None:
            """Called at a reset and for each further goal."""
            layouts: Layouts = self.random_generator.layouts
            self._set_goal(layouts.goals[self.random_generator.map, self.reached])

        @property
        def goal_achieved(self) -> bool:
            return bool(self.dist_goal() <= self.goal.size)

    class Env(sim.Builder):  # type: ignore[name-defined, misc]
        """Safety-Gymnasium's environment around our task; ``reset_map`` begins an episode on a map."""

        def __init__(self, layouts: Layouts, goals: int = 1, max_steps: int = 1000) -> None:
            self._make = functools.partial(Task, layouts, goals, max_steps)
            with quiet():
                super().__init__("hazardworld-robot", config={})

        def _get_task(self) -> Any:
            task = self._make()
            task.build_observation_space()
            return task

        def reset_map(self, map_index: int) -> dict[str, np.ndarray]:
            self.task.choose(map_index)
            obs, _ = self.reset()
            return obs  # type: ignore[no-any-return]

    return Classes(Placement, Task, Env)
