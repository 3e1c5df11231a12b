"""The exact engine against Safety-Gymnasium's own classes: the same numbers, step by step."""

from __future__ import annotations

import copy

import mujoco
import numpy as np
import pytest
from robot_driver import Tour

from hazardworld.robot.arrays import RobotStep
from hazardworld.robot.exact import ExactEngine
from hazardworld.robot.layout import Layouts, Recipe
from hazardworld.robot.model import Blueprint, physics_xml
from hazardworld.robot.reference import ReferenceWorld
from hazardworld.robot.things import OBSERVATION


class Comparison:
    """Plays an engine and one reference world per row, and keeps what differed and what happened."""

    def __init__(self, layouts: Layouts, rows: int, **settings: int) -> None:
        self.engine = ExactEngine(layouts, rows, order="sequential", dtype=np.float64, **settings)
        self.worlds = [ReferenceWorld(layouts, **settings) for _ in range(rows)]
        self.place = self.sensors = self.lidar = 0.0
        self.touched = np.zeros(5, np.int64)
        self.goals = self.terminated = self.truncated = self.episodes = 0

    def play(self, steps: int, patience: int) -> None:
        tour = Tour(self.engine.rows, patience)
        step, actions = self.engine.reset(), np.zeros((self.engine.rows, 2))
        for _ in range(steps + 1):
            for n, world in enumerate(self.worlds):
                start = step.episode_start[n]
                self._compare(n, step, world.reset(int(self.engine.map_index[n])) if start else world.step(actions[n]))
            actions = tour.actions(self.engine)
            step = self.engine.step(actions)

    def _compare(self, n: int, step: RobotStep, expected: RobotStep) -> None:
        off = np.abs(step.obs[n] - expected.obs)
        self.sensors, self.lidar = max(self.sensors, off[:12].max()), max(self.lidar, off[12:].max())
        here, there = self.engine.scene(n), self.worlds[n].scene()
        for mine, its in zip(here, there, strict=True):
            self.place = max(self.place, np.nanmax(np.abs(mine[..., :2] - its[..., :2])))
        np.testing.assert_allclose(step.gap[n], expected.gap, atol=1e-6)
        np.testing.assert_allclose(step.goal_distance[n], expected.goal_distance, atol=1e-12)
        for name in ("touching", "goal_reached", "terminated", "truncated", "episode_start"):
            np.testing.assert_array_equal(getattr(step, name)[n], getattr(expected, name), err_msg=name)
        self.touched += step.touching[n]
        self.goals += int(step.goal_reached[n])
        self.terminated += int(step.terminated[n])
        self.truncated += int(step.truncated[n])
        self.episodes += int(step.episode_start[n])


def test_a_thousand_steps() -> None:
    """The yaw servo makes any rounding difference visible within tens of steps, so none can have been there."""
    both = Comparison(Recipe().generate([2]), 1, goals=5)
    both.play(1000, patience=70)
    assert both.place == 0 and both.sensors == 0 and both.lidar < 1e-12
    assert (both.touched > 0).all(), both.touched
    assert both.goals > 0


def test_episodes_one_after_the_other() -> None:
    """Re-placing a model that has moved leaves nothing behind; with two goals, and not all of the things."""
    both = Comparison(Recipe("eval", counts=(2, 3, 2, 0, 2)).generate(range(6)), 1, goals=2, max_steps=45)
    both.play(140, patience=40)
    assert both.place == 0 and both.sensors == 0 and both.lidar < 1e-12
    assert both.episodes > 3 and both.truncated


@pytest.mark.slow
def test_many_episodes() -> None:
    both = Comparison(Recipe().generate(range(100)), 4, goals=1, max_steps=400)
    both.play(2500, patience=50)
    assert both.place == 0 and both.sensors == 0 and both.lidar < 1e-12
    assert (both.touched > 20).all() and both.terminated > 5 and both.truncated > 5


def test_observation_layout() -> None:
    """109 numbers in the documented order."""
    world = ReferenceWorld(Recipe().generate([0]))
    step = world.reset(0)
    assert step.obs.shape == (OBSERVATION,) == (109,)
    np.testing.assert_allclose(step.obs[:9], [0, 0, 9.81, 0, 0, 0, 0, 0, 0], atol=1e-12)
    assert (step.obs[12:108] >= 0).all() and (step.obs[12:108] <= 1).all()
    scene = world.scene()
    distance = np.linalg.norm(scene.goal - scene.robot[:2])
    assert step.obs[108] == pytest.approx(distance)
    for lidar, points in enumerate([scene.goal[None], *scene.things[..., :2]]):
        nearest = np.linalg.norm(points - scene.robot[:2], axis=1).min()
        assert step.obs[12 + 16 * lidar : 28 + 16 * lidar].max() == pytest.approx(max(0, 1 - nearest / 3))


OF_MOCAP_GEOMS = {"body_ipos", "body_iquat"}  # the mass of a body that is moved by hand
OF_SPRINGS = {"qpos_spring"}  # there are none


def test_replaced_model_is_the_compiled_one() -> None:
    layouts = Recipe().generate(range(4))
    blueprint = Blueprint(physics_xml(layouts), layouts.counts)
    model = copy.copy(blueprint.model)
    data = mujoco.MjData(model)
    for m in (1, 2, 3):
        blueprint.place(model, data, layouts, m)
        compiled = mujoco.MjModel.from_xml_string(physics_xml(layouts, m))
        for name in set(dir(compiled)) - OF_MOCAP_GEOMS - OF_SPRINGS:
            expected = getattr(compiled, name)
            if isinstance(expected, np.ndarray):
                np.testing.assert_array_equal(getattr(model, name), expected, err_msg=name)
        assert model.stat.meaninertia == compiled.stat.meaninertia
        data.mocap_pos[:] = 0.3  # as after an episode
        mujoco.mj_step(model, data, 5)


def test_another_mujoco_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if mj_setConst no longer filled in the relative poses of welds."""
    monkeypatch.setattr(mujoco, "mj_setConst", lambda model, data: None)
    with pytest.raises(RuntimeError, match=r"does not re-place a model as 3\.3\.7 does \(eq_data"):
        ExactEngine(Recipe().generate([0]), 1)
