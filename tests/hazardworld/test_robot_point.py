"""SafetyPointGoal0-v0 and SafetyPointGoal1-v0 on the batched engines, against Safety-Gymnasium's own task classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from robot_driver import steer

from hazardworld.robot.loader import load
from hazardworld.robot.point import ORDER, TASKS, PointWorlds, layouts
from hazardworld.robot.rows import Endless
from hazardworld.robot.task import quiet
from hazardworld.robot.things import HAZARDS, KINDS, VASES


def original(task: str) -> Any:
    """Safety-Gymnasium's environment as it is registered."""
    with quiet():
        return load().Builder(f"SafetyPoint{task.capitalize()}-v0", config={"agent_name": "Point"})


class Beside:
    """Its environment, told by its random generator to be where a row of ours is."""

    def __init__(self, worlds: PointWorlds, task: str) -> None:
        self.worlds, self.env = worlds, original(task)
        beside = self

        class Told(load().RandomGenerator):  # type: ignore[misc]
            def build_layout(self) -> dict[str, np.ndarray]:
                here = beside.worlds.engine.layout(0)  # not the scene, whose angles are rounded
                self.layout = {"agent": here.robot[0, :2], "goal": here.goals[0, 0]}
                self.rotations = [here.robot[0, 2], 0.0]
                for kind in ORDER:
                    for i in range(beside.worlds.task.counts[kind]):
                        self.layout[f"{KINDS[kind][:-1]}{i}"] = here.things[0, kind, i, :2]
                        self.rotations.append(here.things[0, kind, i, 2])
                return self.layout

            def random_rot(self) -> float:
                return float(self.rotations.pop(0))

            def sample_goal_position(self) -> bool:
                self.layout["goal"] = beside.worlds.scene(0).goal
                return True

        told = Told()
        told.set_random_seed(0)
        self.env.task.random_generator = told

    def reset(self) -> np.ndarray:
        with quiet():
            return self.env.reset()[0]

    def step(self, action: np.ndarray) -> tuple:
        with quiet():
            return self.env.step(action)


@pytest.mark.parametrize(("task", "steps"), [("goal0", 250), ("goal1", 1001)])
def test_step_by_step_as_the_original(task: str, steps: int) -> None:
    """Observation, reward, cost and ends are the same numbers, through new goals and, on goal1, hazards and a vase."""
    worlds = PointWorlds(task, 1, engine="exact", maps=3, dtype=np.float64)
    step, beside = worlds.reset(), Beside(worlds, task)
    np.testing.assert_allclose(step.obs[0], beside.reset(), atol=1e-12)
    reached = hazards = vases = 0
    for t in range(steps):
        scene = worlds.scene(0)
        busy = t % 150
        kind = HAZARDS if busy < 40 else VASES if busy < 70 else None
        aim = scene.goal if kind is None or not worlds.task.counts[kind] else scene.things[kind, 0, :2]
        action = steer(scene, aim)
        step = worlds.step(action[None])
        if step.episode_start[0]:
            beside.reset()
            continue
        obs, reward, cost, terminated, truncated, info = beside.step(action)
        np.testing.assert_allclose(step.obs[0], obs, atol=1e-12)
        assert step.reward[0] == pytest.approx(reward, abs=1e-6)
        assert (step.cost[0], step.terminated[0], step.truncated[0]) == (cost, terminated, truncated)
        reached, hazards = reached + ("goal_met" in info), hazards + int(cost)
        vases += int(worlds.engine._contact[0, VASES])
    assert reached > 2
    if task == "goal1":
        assert hazards > 10 and vases > 5 and worlds.engine._clock[0, 1] == 2  # a second episode has begun


def test_places_are_drawn_as_the_original_draws_them() -> None:
    """The distances between things and from the middle have the same distribution: 600 layouts of each."""
    env = original("goal1")
    task = env.task
    task._build_placements_dict()
    conf = task.placements_conf
    task.random_generator.set_placements_info(conf.placements, conf.extents, conf.margin)
    task.random_generator.set_random_seed(0)
    drawn = [task.random_generator.build_layout() for _ in range(600)]
    its = {
        "robot": np.array([d["agent"] for d in drawn]),
        "vase": np.array([d["vase0"] for d in drawn]),
        "first hazard": np.array([d["hazard0"] for d in drawn]),
        "last hazard": np.array([d["hazard7"] for d in drawn]),
    }
    maps = layouts("goal1", maps=600)
    ours = {
        "robot": maps.robot[:, :2],
        "vase": maps.things[:, VASES, 0, :2],
        "first hazard": maps.things[:, HAZARDS, 0, :2],
        "last hazard": maps.things[:, HAZARDS, 7, :2],
    }
    limit = 1.95 * np.sqrt(2 / 600)  # of Kolmogorov and Smirnov's distance, at one in a thousand
    for name, places in ours.items():
        for what in (lambda xy: xy[:, 0], lambda xy: np.linalg.norm(xy, axis=1)):
            assert _ks(what(places), what(its[name])) < limit, name
        assert (
            _ks(np.linalg.norm(places - ours["robot"], axis=1), np.linalg.norm(its[name] - its["robot"], axis=1))
            < limit
        )


def _ks(one: np.ndarray, other: np.ndarray) -> float:
    """The largest difference of two empirical distribution functions."""
    values = np.sort(np.concatenate([one, other]))
    return float(
        np.abs(np.searchsorted(np.sort(one), values, "right") / len(one)
               - np.searchsorted(np.sort(other), values, "right") / len(other)).max()
    )  # fmt: skip


@pytest.mark.parametrize("engine", ["fast", "exact"])
def test_goals_keep_their_distance_and_the_row_goes_on(engine: str) -> None:
    worlds = PointWorlds("goal1", 4, engine=engine, maps=20)
    worlds.reset()
    met = 0
    for _ in range(300):
        step = worlds.step(np.stack([steer(worlds.scene(n), worlds.scene(n).goal) for n in range(4)]))
        assert not step.terminated.any()
        for n in np.flatnonzero(step.reward > 0.9):
            scene, met = worlds.scene(int(n)), met + 1
            assert np.linalg.norm(scene.goal - scene.robot[:2]) >= 0.4 + 0.305
            assert np.linalg.norm(scene.goal - scene.things[HAZARDS, :, :2], axis=1).min() >= 0.18 + 0.305
            assert (np.abs(scene.goal) <= 1.5 - 0.305).all()
    assert met > 8


def test_fast_and_exact_agree_on_what_a_drive_is_worth() -> None:
    totals = {}
    for engine in ("fast", "exact"):
        worlds = PointWorlds("goal1", 8, engine=engine, maps=8, split="eval", max_steps=150)
        worlds.reset()
        reward = cost = 0.0
        for _ in range(150):
            step = worlds.step(np.stack([steer(worlds.scene(n), worlds.scene(n).goal) for n in range(8)]))
            reward, cost = reward + float(step.reward.sum()), cost + float(step.cost.sum())
        totals[engine] = reward, cost
    assert totals["fast"][0] == pytest.approx(totals["exact"][0], rel=0.15)
    assert totals["fast"][1] == pytest.approx(totals["exact"][1], rel=0.5, abs=10)


def test_no_room_for_a_goal_ends_the_episode() -> None:
    worlds = PointWorlds("goal1", 1, maps=1)
    worlds.reset()
    worlds.engine._places[0, HAZARDS, 0, :2] = 0.0
    worlds.engine.goals = Endless(0.31)  # a floor of which one hazard leaves nothing
    worlds.engine._target[0] = worlds.scene(0).robot[:2]
    step = worlds.step(np.zeros((1, 2)))
    assert step.terminated[0] and not step.truncated[0]
    assert worlds.step(np.zeros((1, 2))).episode_start[0]


def test_unknown_words_are_refused() -> None:
    with pytest.raises(ValueError, match=r"unknown task 'gaol1'.*goal1"):
        PointWorlds("gaol1", 1)
    with pytest.raises(ValueError, match="unknown engine 'fsat'"):
        PointWorlds("goal1", 1, engine="fsat")
    assert set(TASKS) == {"goal0", "goal1"}
