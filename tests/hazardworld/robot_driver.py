"""Driving at things, so that tests see contacts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hazardworld.robot.arrays import RobotStep, Scene
from hazardworld.robot.rows import RobotEngine
from hazardworld.robot.things import KINDS


def steer(scene: Scene, target: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turn to the target, and push when it is ahead."""
    dx, dy = target - scene.robot[:2]
    off = (np.arctan2(dy, dx) - scene.robot[2] + np.pi) % (2 * np.pi) - np.pi
    return np.array([1.0 if abs(off) < 0.7 else 0.0, np.clip(2 * off, -1, 1)])


class Tour:
    """Each row drives at the nearest thing of one kind, and after some steps at another; the goal is one of them."""

    def __init__(self, rows: int, patience: int = 60) -> None:
        self.patience, self.steps = patience, 0
        self.stage = np.arange(rows)

    def actions(self, engine: RobotEngine) -> NDArray[np.float64]:
        self.steps += 1
        if self.steps % self.patience == 0:
            self.stage += 1
        return np.stack([self._act(engine.scene(n), int(self.stage[n]) % (len(KINDS) + 1)) for n in range(engine.rows)])

    @staticmethod
    def _act(scene: Scene, kind: int) -> NDArray[np.float64]:
        if kind == len(KINDS) or np.isnan(scene.things[kind, :, 0]).all():
            return steer(scene, scene.goal)
        away = np.linalg.norm(scene.things[kind, :, :2] - scene.robot[:2], axis=1)
        return steer(scene, scene.things[kind, np.nanargmin(away), :2])


def copy(step: RobotStep) -> RobotStep:
    return RobotStep(*(array.copy() for array in step))
