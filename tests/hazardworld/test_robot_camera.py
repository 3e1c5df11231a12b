"""The robot's camera, the world seen through it, and a policy that looks at it."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from drawing import cannot_draw

from hazardworld.robot.arrays import Scene
from hazardworld.robot.things import GREMLINS, KINDS, MOST, PILLARS, VASES

SIDE = 32


@pytest.fixture(scope="module")
def camera():
    if reason := cannot_draw():
        pytest.skip(reason)
    from hazardworld.robot.camera import camera

    return camera(SIDE)


def scene(heading: float = 0.0) -> Scene:
    """A pillar straight ahead, a vase ahead to the left, and a gremlin behind the pillar."""
    things = np.full((len(KINDS), MOST, 3), np.nan)
    things[PILLARS, 1], things[VASES, 0], things[GREMLINS, 3] = (1.0, 0.0, 0.0), (1.0, 0.7, 0.0), (2.5, 0.0, 0.0)
    return Scene(np.array([0.0, 0.0, heading]), np.array([-1.0, 0.0]), things)


def test_boxes_are_around_what_is_seen(camera) -> None:
    picture, boxes = camera.look(scene())
    assert picture.shape == (SIDE, SIDE, 3) and picture.dtype == np.uint8
    assert boxes.shape == (len(KINDS) * MOST, 4) and boxes.min() >= 0 and boxes.max() <= 1
    pillar, vase, hidden = boxes[MOST * PILLARS + 1], boxes[MOST * VASES], boxes[MOST * GREMLINS + 3]
    assert pillar[0] < 0.5 < pillar[2] and vase[2] < pillar[0], "the vase is to the left of the pillar in the middle"
    assert not hidden.any() and np.count_nonzero(boxes.any(1)) == 2
    middle = picture[int(pillar[[1, 3]].mean() * SIDE), int(pillar[[0, 2]].mean() * SIDE)].astype(int)
    assert middle[2] > middle[0] + 20, "pillars are blue"


def test_turning_round_the_goal_is_seen_and_hides_nothing(camera) -> None:
    picture, boxes = camera.look(scene(np.pi))
    assert not boxes.any()
    green = picture[..., 1].astype(int) - picture[..., [0, 2]].max(-1)
    assert (green > 20).sum() > 10
    things = scene().things
    things[VASES, 2] = -2.0, 0.0, 0.0  # behind the glass
    assert camera.look(Scene(np.array([0.0, 0.0, np.pi]), np.array([-1.0, 0.0]), things))[1][MOST * VASES + 2].any()


def test_it_trains(camera) -> None:
    """A few updates: the value error falls, the policy moves, and nothing is NaN."""
    from framework.builder import System
    from framework.schema import Training
    from framework.trainer import Trainer
    from plugins.envs.hazardworld_robot_pixels import HazardWorldRobotPixels, HazardWorldRobotPixelsConfig
    from plugins.interpreters.oracle import Oracle
    from plugins.optimizers.cpo import CPO
    from plugins.policies.polco_pixels import Config, PolcoPixels

    torch.manual_seed(0)
    env = HazardWorldRobotPixels(HazardWorldRobotPixelsConfig(train_maps=5, max_steps=20, side=16), 4, "train", 0)
    policy = PolcoPixels(Config(channels=(4, 8), hidden=(16,)), env.spec)
    rows: list[dict[str, float]] = []
    system = System(env, Oracle(None, env.spec), policy, CPO(CPO.Config(critic_minibatch=20), policy))
    before = torch.nn.utils.parameters_to_vector(policy.parameters()).clone()
    training = Training(steps=160, batch=40, rows=4)
    Trainer(system, training, 0, lambda step, metrics: rows.append(dict(metrics))).train()
    after = torch.nn.utils.parameters_to_vector(policy.parameters())
    assert torch.isfinite(after).all() and (after - before).abs().max() > 1e-3
    assert sum(row["kl"] for row in rows) > 1e-3
    assert rows[-1]["value_error"] < rows[0]["value_error"]


def test_masks_are_painted_over_boxes() -> None:
    """No OpenGL is needed for this: boxes are numbers."""
    from framework.interfaces import ActionSpec, EnvSpec, ObservationSpec, PolicyInput
    from plugins.policies.polco_pixels import Config, PolcoPixels

    parts = (("gyro", 3), ("boxes", 80), ("camera", 3 * 16 * 16))
    observation = ObservationSpec("vector", (3 + 80 + 768,), parts=parts)
    spec = EnvSpec(observation, ActionSpec("continuous", 2), (5, 4), 1, 20, 400, KINDS)
    policy = PolcoPixels(Config(), spec)
    blank = PolicyInput.blank(spec, 2)
    inputs = dataclasses.replace(blank, budget=blank.budget.clone())
    inputs.obs[0, 3 + 4 * (MOST * VASES + 2) :][:4] = torch.tensor([0.25, 0.5, 0.5, 0.75])
    inputs.obs[0, 3 + 4 * (MOST * PILLARS) :][:4] = torch.tensor([0.0, 0.0, 0.25, 0.25])
    inputs.mask[0, VASES, 0], inputs.budget[0, VASES, 0] = 1, -3
    planes = policy._planes(inputs)
    assert planes.shape == (2, 5, 16, 16)
    expected = torch.zeros(16, 16)
    expected[8:12, 4:8] = 1
    assert torch.equal(planes[0, 3], expected) and not planes[1, 3].any()
    assert not planes[0, 4].any(), "there is budget left"
    inputs.budget[0, VASES, 0] = 0
    assert torch.equal(policy._planes(inputs)[0, 4], expected)


def test_without_opengl_it_is_said_what_to_install() -> None:
    code = "from hazardworld.robot.camera import Camera; Camera(8)"
    env = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "MUJOCO_GL")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    if done.returncode == 0:
        pytest.skip("this machine draws without being told how")
    assert "the robot's camera cannot draw: MuJoCo finds no OpenGL here" in done.stderr
    assert "libosmesa6" in done.stderr and "PyOpenGL" in done.stderr and "Exception ignored" not in done.stderr
