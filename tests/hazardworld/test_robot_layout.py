"""Layouts of the robot's world: pure functions of few numbers, with the free space that they promise."""

from __future__ import annotations

import numpy as np
import pytest

from hazardworld.robot import things
from hazardworld.robot.layout import Layouts, Recipe
from hazardworld.robot.loader import load
from hazardworld.robot.task import quiet
from hazardworld.robot.things import (
    EXTENT,
    GOAL_KEEPOUT,
    GOAL_RADIUS,
    GREMLINS,
    KEEPOUT,
    KINDS,
    RADIUS,
    ROBOT_KEEPOUT,
    ROBOT_RADIUS,
    TRAVEL,
)

MAPS = Recipe().generate(range(300))


def same(left: Layouts, right: Layouts) -> bool:
    return all(
        np.array_equal(a, b, equal_nan=True)
        for a, b in ((left.robot, right.robot), (left.goals, right.goals), (left.things, right.things))
    )


def test_numbers_are_safety_gymnasiums() -> None:
    sim = load()
    made = [getattr(sim, name.capitalize())(num=4) for name in KINDS]
    assert [thing.size for thing in made] == RADIUS.tolist()
    # Its navigation tasks set another keep-out for hazards than its class has.
    assert [thing.keepout for thing in made[1:]] == KEEPOUT[1:].tolist()
    assert made[GREMLINS].travel == TRAVEL
    assert made[things.VASES].size - made[things.VASES].sink == things.VASE_HEIGHT
    assert sim.Goal().size == GOAL_RADIUS


def test_keep_outs_are_those_of_its_tasks() -> None:
    load()
    from safety_gymnasium.tasks.safe_navigation.goal.goal_level2 import GoalLevel2

    with quiet():
        task = GoalLevel2(config={"agent_name": "Point"})
    assert task.goal.keepout == GOAL_KEEPOUT
    assert task.hazards.keepout == KEEPOUT[0]
    assert task.agent.keepout == ROBOT_KEEPOUT
    assert task.placements_conf.extents == [-EXTENT, -EXTENT, EXTENT, EXTENT]


def test_keep_outs_hold() -> None:
    keepouts = np.repeat(KEEPOUT, 4)
    for m in range(len(MAPS)):
        places = MAPS.things[m, :, :, :2].reshape(-1, 2)
        assert (np.abs(places) <= (EXTENT - keepouts)[:, None]).all()
        assert (np.abs(MAPS.robot[m, :2]) <= EXTENT - ROBOT_KEEPOUT).all()
        assert (np.abs(MAPS.goals[m]) <= EXTENT - GOAL_KEEPOUT).all()
        between = np.linalg.norm(places[:, None] - places, axis=-1) + 10 * np.eye(20)
        assert (between >= keepouts[:, None] + keepouts).all()
        assert (np.linalg.norm(places - MAPS.robot[m, :2], axis=1) >= keepouts + ROBOT_KEEPOUT).all()
        away = np.linalg.norm(places[:, None] - MAPS.goals[m], axis=-1)
        assert (away >= (keepouts + GOAL_KEEPOUT)[:, None]).all()
        assert np.linalg.norm(MAPS.goals[m] - MAPS.robot[m, :2], axis=1).min() >= ROBOT_KEEPOUT + GOAL_KEEPOUT
        # Wherever in a goal the robot stands, the next is as far as Safety-Gymnasium would put it.
        apart = np.linalg.norm(np.diff(MAPS.goals[m], axis=0), axis=1)
        assert apart.min() - GOAL_RADIUS >= ROBOT_KEEPOUT + GOAL_KEEPOUT


def test_rotations_go_all_the_way_round() -> None:
    for rotations in (MAPS.robot[:, 2], MAPS.things[..., 2].ravel()):
        assert 0 <= rotations.min() < 0.1 and 2 * np.pi - 0.1 < rotations.max() < 2 * np.pi
    assert len(np.unique(MAPS.things[..., 2])) == MAPS.things[..., 2].size


def test_a_number_is_a_map() -> None:
    assert same(Recipe().generate([7, 250, 7]), MAPS.pick([7, 250, 7]))
    assert MAPS.digest() == Recipe().generate(range(300)).digest()
    assert not same(MAPS.pick([7]), MAPS.pick([8]))


def test_splits_and_seeds_differ() -> None:
    train, evaluation, other = Recipe(), Recipe("eval"), Recipe(seed=1)
    starts = [tuple(row) for recipe in (train, evaluation, other) for row in recipe.generate(range(50)).robot]
    assert len(set(starts)) == 150
    assert len(Recipe().generate()) == 10_000 and len(Recipe("eval").generate()) == 1_000


def test_the_first_map_is_pinned() -> None:
    """Maps must never change unnoticed: results refer to them."""
    assert Recipe().generate([0]).robot[0].round(6).tolist() == [1.465928, 0.298598, 4.782143]


@pytest.mark.parametrize("kind", range(5))
def test_clear_space(kind: int) -> None:
    clear = np.zeros((100, 5))
    clear[:, kind] = np.linspace(0, 0.6, 100)
    maps = Recipe().generate(range(100), clear)
    for m in range(100):
        spots = np.concatenate([maps.robot[m, None, :2], maps.goals[m]])
        away = np.linalg.norm(maps.things[m, kind, :, None, :2] - spots, axis=-1).min()
        away -= ROBOT_RADIUS + RADIUS[kind] + (TRAVEL if kind == GREMLINS else 0)
        assert away >= clear[m, kind]
    assert same(Recipe().generate([5], clear[5]), maps.pick([5]))


def test_fewer_things() -> None:
    maps = Recipe(counts=(2, 0, 1, 4, 3)).generate(range(20))
    assert maps.counts == (2, 0, 1, 4, 3)
    there = ~np.isnan(maps.things).any(-1)
    assert (there.sum(-1) == maps.counts).all()
    for kind, count in enumerate(maps.counts):
        assert there[:, kind, :count].all()


def test_too_full_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"map 3 is too full: 20 things .* \(hazards 3, pillars 1\.5 m\)"):
        Recipe().generate([3], [3.0, 0, 1.5, 0, 0])


@pytest.mark.parametrize("bad", [-0.1, np.nan, np.inf])
def test_clear_must_be_a_distance(bad: float) -> None:
    with pytest.raises(ValueError, match="clear"):
        Recipe().generate([0], [bad, 0, 0, 0, 0])


def test_settings_are_checked() -> None:
    with pytest.raises(ValueError, match="unknown split 'test'"):
        Recipe("test")
    for counts in ((4, 4, 4, 4), (4, 4, 4, 4, 5), (4, -1, 4, 4, 4)):
        with pytest.raises(ValueError, match="counts"):
            Recipe(counts=counts)
