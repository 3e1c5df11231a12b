"""HazardWorld-robot seen through the robot's camera, as the paper's appendix C proposes and does not build.

Instead of the things' lidars there is a picture, and a box around each thing in it, from MuJoCo's segmentation. The
goal keeps its lidar, since the camera looks only ahead. What a sentence forbids is told by entity and distance, as in
hazardworld_robot; a policy can paint it over the boxes.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from framework.hookspecs import hookimpl
from framework.interfaces.env import ConstraintEnv, Split
from framework.interfaces.types import EnvSpec, ObservationSpec, Timestep
from hazardworld.robot.camera import SLOTS, camera
from hazardworld.robot.things import BINS, SENSORS
from hazardworld.robot.worlds import WorldStep
from plugins.envs.hazardworld_robot import HazardWorldRobot, HazardWorldRobotConfig

SENSED = 3 * len(SENSORS) + BINS
"""Numbers of hazardworld_robot's observation that stay: the sensors and the goal's lidar."""


@dataclass(frozen=True)
class HazardWorldRobotPixelsConfig(HazardWorldRobotConfig):
    side: int = 32
    """Width and height of the picture, in pixels."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 8 <= self.side <= 256:
            raise ValueError(f"side is {self.side}, but must be between 8 and 256")


class HazardWorldRobotPixels(HazardWorldRobot):
    """hazardworld_robot with the robot's camera and boxes around things, in place of lidars. Needs OpenGL."""

    name = "hazardworld_robot_pixels"
    requires: ClassVar[dict[str, str]] = HazardWorldRobot.requires | {"OpenGL": "PyOpenGL"}
    Config: ClassVar[type] = HazardWorldRobotPixelsConfig

    def __init__(self, config: HazardWorldRobotPixelsConfig, rows: int, split: Split, seed: int) -> None:
        self._camera = camera(config.side)
        super().__init__(config, rows, split, seed)

    @property
    def spec(self) -> EnvSpec:
        sensed = (*((name, 3) for name in SENSORS), ("goal_lidar", BINS))
        parts = (*sensed, ("boxes", 4 * SLOTS), ("camera", 3 * self.config.side**2))
        size = sum(count for _, count in parts)
        return dataclasses.replace(super().spec, observation=ObservationSpec("vector", (size,), parts=parts))

    def _show(self, step: WorldStep) -> Timestep:
        views = [self._camera.look(self._worlds.scene(row)) for row in range(self.rows)]
        pictures = np.stack([picture.ravel() for picture, _ in views]).astype(np.float32) / 255
        boxes = np.stack([boxes.ravel() for _, boxes in views])
        seen = np.concatenate([step.obs[:, :SENSED], boxes, pictures], 1)
        return dataclasses.replace(super()._show(step), obs=torch.from_numpy(seen))


@hookimpl
def heed_components() -> list[type[ConstraintEnv]]:
    return [HazardWorldRobotPixels]
