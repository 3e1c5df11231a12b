"""Pictures of the robot's world."""

from __future__ import annotations

import numpy as np
import pytest

from hazardworld.robot.arrays import Scene
from hazardworld.robot.layout import Recipe
from hazardworld.robot.picture import COLORS, EXTENT, FLOOR, MARGIN, OUTSIDE, ROBOT, TILE, draw
from hazardworld.robot.things import GREMLINS, PILLARS

SIZE = 240


def pixel(image: np.ndarray, x: float, y: float, half: float = EXTENT + MARGIN) -> tuple[int, ...]:
    scale = SIZE / (2 * half)
    return tuple(image[int((half - y) * scale), int((half + x) * scale)].tolist())


def scene(x: float = 0.0, y: float = 0.0) -> Scene:
    things = np.full((5, 4, 3), np.nan)
    things[PILLARS, 0] = 1.0, 1.5, 0.3
    things[GREMLINS, 2] = -1.2, 0.4, 0.5
    return Scene(np.array([x, y, 0.0]), np.array([0.5, -1.2]), things)


def test_everything_is_where_it_is() -> None:
    image = draw(scene(), SIZE)
    assert image.shape == (SIZE, SIZE, 3) and image.dtype == np.uint8
    assert pixel(image, 0, 0) == ROBOT
    assert pixel(image, 1.0, 1.5) == COLORS[PILLARS]
    assert pixel(image, -1.14, 0.42) == COLORS[GREMLINS]
    assert pixel(image, -1.7, -1.7) in (FLOOR, TILE)
    assert pixel(image, 2.2, 2.2) == OUTSIDE
    assert pixel(image, 1.5, 1.0) in (FLOOR, TILE)  # x and y are not swapped


def test_a_robot_off_the_floor_stays_in_the_picture() -> None:
    image = draw(scene(5.0, -3.0), SIZE)
    assert pixel(image, 5.0, -3.0, half=5 + MARGIN) == ROBOT


def test_the_reference_draws_itself() -> None:
    pytest.importorskip("mujoco")
    from hazardworld.robot.reference import ReferenceWorld

    world = ReferenceWorld(Recipe().generate([0]))
    world.reset(0)
    np.testing.assert_array_equal(world.render(96), draw(world.scene(), 96))


def test_the_plugins_mark_what_the_mask_says_and_nothing_else() -> None:
    torch = pytest.importorskip("torch")
    from plugins.envs.hazardworld_robot import HazardWorldRobot, HazardWorldRobotConfig
    from plugins.envs.safety_point import SafetyPoint, SafetyPointConfig

    env = HazardWorldRobot(HazardWorldRobotConfig(train_maps=2), 1, "train", 0)
    env.reset()
    mask = torch.zeros(5, 4)
    plain = env.frame(0, mask)
    np.testing.assert_array_equal(plain, env.frame(0))
    mask[PILLARS, 2] = 1  # 40 cm about pillars
    marked = env.frame(0, mask)
    assert marked.shape == plain.shape == (320, 320, 3) and (marked != plain).any()
    mask[PILLARS], mask[PILLARS, 0] = 0, 1
    assert 0 < (env.frame(0, mask) != plain).sum() < (marked != plain).sum()
    point = SafetyPoint(SafetyPointConfig(train_maps=2), 1, "train", 0)
    point.reset()
    assert (point.frame(0, torch.ones(1)) != point.frame(0, torch.zeros(1))).any()
