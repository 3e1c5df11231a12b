"""The world as Safety-Gymnasium itself plays it: slow, and the yardstick for the engines.

The physics, the sensors, the lidars and what counts as a contact are its code. Ours are the layout, the order of the
numbers in an observation, and the gaps.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hazardworld.robot.arrays import RobotStep, Scene
from hazardworld.robot.layout import Layouts
from hazardworld.robot.picture import draw
from hazardworld.robot.task import classes
from hazardworld.robot.things import BINS, LIDARS, RADIUS, ROBOT_RADIUS, SENSORS

COSTS = ("cost_hazards", "cost_vases_contact", "cost_pillars", "cost_buttons", "cost_gremlins")
BODIES = ("hazard{}", "vase{}", "pillar{}", "button{}", "gremlin{}obj")


class ReferenceWorld:
    """One world. Its steps have the fields of ``RobotStep`` without the row axis, in double precision."""

    def __init__(self, layouts: Layouts, *, goals: int = 1, max_steps: int = 1000) -> None:
        self.layouts = layouts
        self.env = classes().Env(layouts, goals, max_steps)

    def reset(self, map_index: int) -> RobotStep:
        obs = self.env.reset_map(map_index)
        return self._show(obs, {}, True)

    def step(self, action: ArrayLike) -> RobotStep:
        """``action``: two numbers, clipped to [-1, 1]."""
        obs, _, _, _, _, info = self.env.step(np.asarray(action, np.float64))
        return self._show(obs, info, False)

    def scene(self) -> Scene:
        """Where everything is now."""
        data, task = self.env.task.data, self.env.task
        things = np.full(self.layouts.things.shape[1:], np.nan)
        for kind, name in enumerate(BODIES):
            for i in range(self.layouts.counts[kind]):
                body = data.body(name.format(i))
                things[kind, i] = *body.xpos[:2], _heading(body.xmat)
        return Scene(np.array([*task.agent.pos[:2], _heading(task.agent.mat)]), task.goal.pos[:2], things)

    def render(self, size: int = 256) -> NDArray[np.uint8]:
        """[size, size, 3]: the floor from above."""
        return draw(self.scene(), size)

    def _show(self, obs: dict[str, NDArray[np.float64]], info: dict[str, float], start: bool) -> RobotStep:
        nothing = np.zeros(BINS)  # of a kind that is not there
        parts = [obs[name] for name in SENSORS] + [obs.get(f"{name}_lidar", nothing) for name in LIDARS]
        scene = self.scene()
        away = np.linalg.norm(scene.things[..., :2] - scene.robot[:2], axis=-1)
        away[np.isnan(away)] = np.inf
        return RobotStep(
            obs=np.concatenate([*parts, [self.env.task.dist_goal()]]),
            touching=np.array([info.get(name, 0) > 0 for name in COSTS]),
            gap=(away.min(1) - ROBOT_RADIUS - RADIUS).astype(np.float32),
            goal_reached=np.array("goal_met" in info),
            goal_distance=np.array(self.env.task.dist_goal() if start else self.env.task.away),
            terminated=np.array(self.env.terminated),
            truncated=np.array(self.env.truncated and not self.env.terminated),
            episode_start=np.array(start),
        )


def _heading(matrix: NDArray[np.float64]) -> float:
    """The rotation about the vertical of a 3x3 matrix, flat or not."""
    flat = np.ravel(matrix)
    return float(np.arctan2(flat[3], flat[0]))
