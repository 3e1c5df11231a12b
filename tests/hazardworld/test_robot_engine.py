"""What both engines of the robot's world promise: autoreset, order of maps, goals, saving, refusing."""

from __future__ import annotations

import numpy as np
import pytest
from robot_driver import Tour, copy

from hazardworld.robot.arrays import RobotStep
from hazardworld.robot.exact import ExactEngine
from hazardworld.robot.fast import FastEngine
from hazardworld.robot.layout import Layouts, Recipe
from hazardworld.robot.rows import RobotEngine
from hazardworld.robot.things import GOAL_RADIUS

MAPS = Recipe().generate(range(12))
both = pytest.mark.parametrize("kind", [ExactEngine, FastEngine])


def story(engine: RobotEngine, steps: int, seed: int = 0) -> list[RobotStep]:
    rng = np.random.default_rng(seed)
    return [copy(engine.step(rng.uniform(-1, 1, (engine.rows, 2)))) for _ in range(steps)]


def assert_same(left: list[RobotStep], right: list[RobotStep]) -> None:
    for one, other in zip(left, right, strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)


@both
def test_shapes(kind: type[RobotEngine]) -> None:
    step = kind(MAPS, 3).reset()
    assert step.obs.shape == (3, 109) and step.obs.dtype == np.float32
    assert step.touching.shape == step.gap.shape == (3, 5) and step.gap.dtype == np.float32
    for flag in (step.goal_reached, step.terminated, step.truncated, step.episode_start):
        assert flag.shape == (3,) and flag.dtype == np.bool_


@both
def test_next_step_autoreset(kind: type[RobotEngine]) -> None:
    engine = kind(MAPS, 3, max_steps=3)
    first = copy(engine.reset())
    assert first.episode_start.all() and not first.touching.any()
    maps = [engine.map_index]
    for t in range(1, 9):
        step = engine.step(np.ones((3, 2)))
        assert step.truncated.all() == (t % 4 == 3) and step.episode_start.all() == (t % 4 == 0)
        assert not step.terminated.any()
        if t % 4 == 0:
            np.testing.assert_allclose(step.obs[:, 3:9], 0, atol=1e-12)  # at rest, whatever the action
        maps.append(engine.map_index)
    np.testing.assert_array_equal(maps[0], maps[3])
    assert any((maps[0] != later).any() for later in (maps[4], maps[8]))


@both
def test_equal_seeds_equal_worlds(kind: type[RobotEngine]) -> None:
    one, same, other = (kind(MAPS, 4, seed=seed, max_steps=6) for seed in (1, 1, 2))
    for engine in (one, same, other):
        engine.reset()
    told = story(one, 15)
    assert_same(told, story(same, 15))
    assert any((a.obs != b.obs).any() for a, b in zip(told, story(other, 15), strict=True))
    one.reset()
    assert_same(told, story(one, 15))


@both
def test_sequential_order(kind: type[RobotEngine]) -> None:
    engine = kind(MAPS.pick(list(range(5))), 2, order="sequential", max_steps=1)
    engine.reset()
    seen = [engine.map_index.tolist()]
    for _ in range(3):
        story(engine, 2)
        seen.append(engine.map_index.tolist())
    assert seen == [[0, 1], [2, 3], [4, 0], [1, 2]]


def beside_goal(reach: float) -> Layouts:
    """A map whose first goals surround the robot's start at this distance, in turn on two sides."""
    maps = MAPS.pick([0])
    goals = maps.goals.copy()
    heading = maps.robot[0, 2]
    for g in range(5):
        goals[0, g] = maps.robot[0, :2] + (reach if g % 2 == 0 else -reach) * np.array(
            [np.cos(heading), np.sin(heading)]
        )
    return Layouts(maps.robot, goals, maps.things, maps.counts)


@both
def test_staggered_rows_end_one_after_the_other(kind: type[RobotEngine]) -> None:
    engine = kind(MAPS, 5, max_steps=10, stagger=True)
    engine.reset()
    ends = np.array([engine.step(np.zeros((5, 2))).truncated.copy() for _ in range(21)])
    first, second = zip(*(np.flatnonzero(ends[:, n])[:2] for n in range(5)), strict=True)
    assert first == (9, 7, 5, 3, 1)
    assert second == tuple(step + 11 for step in first)


@both
def test_goals_one_after_the_other(kind: type[RobotEngine]) -> None:
    engine = kind(beside_goal(GOAL_RADIUS - 0.01), 1, goals=3, max_steps=100, dtype=np.float64)
    engine.reset()
    for reached in (1, 2, 3):
        step = engine.step(np.zeros((1, 2)))
        assert step.goal_reached[0] and step.terminated[0] == (reached == 3)
        # The observation is that of the next goal, or of the last.
        shown = engine.layouts.goals[0, min(reached, 2)]
        assert step.obs[0, -1] == pytest.approx(np.linalg.norm(shown - engine.scene(0).robot[:2]))
        np.testing.assert_array_equal(engine.scene(0).goal, shown)
    step = engine.step(np.zeros((1, 2)))
    assert step.episode_start[0] and not step.goal_reached[0] and not step.terminated[0]


@both
def test_reaching_the_goal_at_the_time_limit_terminates(kind: type[RobotEngine]) -> None:
    engine = kind(beside_goal(GOAL_RADIUS - 0.01), 1, max_steps=1)
    engine.reset()
    step = engine.step(np.zeros((1, 2)))
    assert step.terminated[0] and not step.truncated[0]
    engine = kind(beside_goal(GOAL_RADIUS + 0.01), 1, max_steps=1)
    engine.reset()
    step = engine.step(np.zeros((1, 2)))
    assert step.truncated[0] and not step.terminated[0] and not step.goal_reached[0]


@both
def test_restored_in_the_middle_of_things(kind: type[RobotEngine]) -> None:
    engine, tour = kind(MAPS, 3, goals=5, max_steps=150), Tour(3, patience=60)
    engine.reset()
    touched = np.zeros(5, np.int64)
    while not (touched[1] and touched[4]):  # a vase and a gremlin are in motion
        step = engine.step(tour.actions(engine))
        touched += step.touching.sum(0)
    saved, scene = engine.state(), engine.scene(1)
    told = story(engine, 25)
    other = kind(MAPS, 3, goals=5, max_steps=150, seed=9)
    other.reset()
    story(other, 40, seed=5)
    for again in (other, engine):
        again.restore(saved)
        for a, b in zip(again.scene(1), scene, strict=True):
            np.testing.assert_array_equal(a, b)
        assert_same(told, story(again, 25))


@both
def test_state_of_another_engine_is_refused(kind: type[RobotEngine]) -> None:
    engine, larger = kind(MAPS, 2), kind(MAPS, 3)
    engine.reset()
    larger.reset()
    with pytest.raises(ValueError, match=r"has shape \(3,"):
        engine.restore(larger.state())
    with pytest.raises(ValueError, match="has the parts"):
        engine.restore({"map": engine.map_index})


@both
def test_bad_actions(kind: type[RobotEngine]) -> None:
    engine = kind(MAPS, 3)
    engine.reset()
    for bad in (np.nan, np.inf, -np.inf):
        actions = np.zeros((3, 2))
        actions[2, 1] = bad
        with pytest.raises(ValueError, match=r"action of row 2 is \[0\.0, "):
            engine.step(actions)
    for shape in ((3,), (2, 2), (3, 3)):
        with pytest.raises(ValueError, match="3 pairs of numbers"):
            engine.step(np.zeros(shape))
    with pytest.raises(ValueError, match="3 pairs of numbers"):
        engine.step(np.zeros((3, 2), bool))


@both
def test_actions_are_clipped(kind: type[RobotEngine]) -> None:
    near, far = kind(MAPS, 2, seed=3), kind(MAPS, 2, seed=3)
    near.reset()
    far.reset()
    for _ in range(5):
        left, right = (
            copy(near.step(np.array([[1.0, -1.0], [-1.0, 1.0]]))),
            far.step(np.array([[7.0, -9.0], [-3.0, 4.0]])),
        )
        np.testing.assert_array_equal(left.obs, right.obs)


@both
def test_kinds_that_are_not_there(kind: type[RobotEngine]) -> None:
    for counts in ((0, 0, 0, 0, 0), (2, 1, 0, 0, 1), (0, 0, 2, 1, 0)):
        engine = kind(Recipe(counts=counts).generate(range(4)), 2, goals=5)
        engine.reset()
        tour = Tour(2, patience=10)
        for _ in range(40):
            step = engine.step(tour.actions(engine))
            absent = np.array(counts) == 0
            assert np.isinf(step.gap[:, absent]).all() and np.isfinite(step.gap[:, ~absent]).all()
            assert not step.touching[:, absent].any() and np.isfinite(step.obs).all()
            assert (step.obs[:, 28:108].reshape(2, 5, 16)[:, absent] == 0).all()


def test_settings_are_checked() -> None:
    with pytest.raises(ValueError, match=r"unknown order 'randm' \(did you mean 'random'"):
        FastEngine(MAPS, 2, order="randm")
    for name in ("rows", "max_steps"):
        with pytest.raises(ValueError, match=f"{name} is 0"):
            FastEngine(MAPS, **({"rows": 2} | {name: 0}))
    for goals in (0, 6):
        with pytest.raises(ValueError, match=rf"goals is {goals}, but must be in 1\.\.5"):
            FastEngine(MAPS, 2, goals=goals)
    with pytest.raises(ValueError, match="layouts is 0"):
        FastEngine(MAPS.pick([]), 2)


@both
def test_scene_and_layout(kind: type[RobotEngine]) -> None:
    engine = kind(MAPS, 2)
    engine.reset()
    layout, scene = engine.layout(1), engine.scene(1)
    np.testing.assert_allclose(scene.things[..., :2], layout.things[0, ..., :2], atol=1e-12)
    np.testing.assert_allclose(scene.robot[:2], layout.robot[0, :2], atol=1e-12)
    assert np.cos(scene.robot[2] - layout.robot[0, 2]) == pytest.approx(1)
    np.testing.assert_array_equal(scene.goal, layout.goals[0, 0])
    scene.things[:] = 0
    assert engine.scene(1).things.any()  # a copy
