"""The discounted ceiling: against every action sequence there is, against the undiscounted search, and its cost."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest

from hazardworld.ceiling import _discounted, best_rewards
from hazardworld.constraint import ALL_CLASSES, Constraint, from_label
from hazardworld.custom import from_text
from hazardworld.engine import Engine
from hazardworld.maps import MapSet, Recipe
from hazardworld.rewards import REWARDS
from hazardworld.sentences import SentenceTable
from plugins.envs.hazardworld_grid import HazardWorldGrid, HazardWorldGridConfig
from plugins.envs.lavawall import LavaWall, LavaWallConfig

TABLE = SentenceTable.build({c: [c.label] for c in ALL_CLASSES})
WORTHS = REWARDS["train"]
GAMMAS = (1.0, 0.99, 0.6, 0.0)
LENGTH = 8
EVERY_SEQUENCE = np.array(list(itertools.product(range(4), repeat=LENGTH)))  # [4**8, 8]
TINY = """
    #####
    #>Wb#
    #LGx#
    #k.W#
    #####
"""


def brute_force(maps: MapSet, actions: str, reward: str) -> dict[float, list[float]]:
    """Best clean return within 1, 2, ... LENGTH steps: the engine plays all sequences side by side."""
    rows = len(EVERY_SEQUENCE)
    engine = Engine(maps, TABLE, rows, actions=actions, reward=reward, max_steps=LENGTH)
    engine.reset()
    returns = {gamma: np.zeros(rows) for gamma in GAMMAS}
    best: dict[float, list[float]] = {gamma: [] for gamma in GAMMAS}
    cost, running = np.zeros((rows, maps.constraints)), np.ones(rows, bool)
    for k in range(LENGTH):
        step = engine.step(EVERY_SEQUENCE[:, k])
        cost += step.cost
        running &= (cost <= engine.threshold()).all(1)
        for gamma in GAMMAS:
            returns[gamma] += gamma**k * step.reward.astype(np.float64) * running
            best[gamma].append(max(returns[gamma][running].max(initial=0.0), best[gamma][-1] if k else 0.0))
        running &= ~(step.terminated | step.truncated)
    return best


@pytest.mark.parametrize("actions", ["compass", "turn"])
@pytest.mark.parametrize(
    "labels",
    [
        "budgetary water0",
        "budgetary water1",
        "budgetary lava2",
        "relational lava0",
        "relational lava1",
        "sequential agrasswater",
        "sequential bgrasswater",
        "sequential awaterwater",
        "budgetary water1, sequential alavagrass",
    ],
)
def test_no_action_sequence_does_better_and_one_does_as_well(labels: str, actions: str) -> None:
    maps = from_text(TINY, [constraint(label) for label in labels.split(", ")])
    for reward, worths in REWARDS.items():
        for gamma, best in brute_force(maps, actions, reward).items():
            mine = [best_rewards(maps, [0], worths, actions, k, gamma).item() for k in range(1, LENGTH + 1)]
            np.testing.assert_allclose(mine, best, rtol=1e-12, err_msg=f"{reward}, gamma {gamma}")


def constraint(kind_and_label: str) -> Constraint:
    return from_label(*kind_and_label.split())


def test_the_tiny_map_tells_answers_apart() -> None:
    """Else the test above could pass by always saying 0."""
    maps = from_text(TINY, [constraint("budgetary water1")])
    told = {round(x, 9) for best in brute_force(maps, "compass", "train").values() for x in best}
    assert len(told) > 8 and max(told) == 6


@pytest.mark.parametrize("actions", ["compass", "turn"])
@pytest.mark.parametrize("kind", ["budgetary", "relational", "sequential"])
def test_undiscounted_it_is_the_search(kind: str, actions: str, monkeypatch: pytest.MonkeyPatch) -> None:
    maps = Recipe(kind, density=0.75).generate(range(40))
    told = [best_rewards(maps, range(40), WORTHS, actions, steps) for steps in (5, 20, 200)]
    monkeypatch.setattr("hazardworld.ceiling._search", lambda *arguments: _discounted(*arguments, 1.0))
    again = [best_rewards(maps, range(40), WORTHS, actions, steps) for steps in (5, 20, 200)]
    np.testing.assert_array_equal(told, again)
    assert len(np.unique(told)) > 3


def test_figures_of_the_map_sets() -> None:
    """What the documentation quotes, and roughly what a prototype on other maps had found."""
    maps = Recipe("budgetary").generate(range(500))
    assert best_rewards(maps, range(500), WORTHS, "compass", 200).mean() == pytest.approx(5.994, abs=1e-3)
    assert best_rewards(maps, range(500), WORTHS, "compass", 200, 0.99).mean() == pytest.approx(5.490, abs=1e-3)

    dense = Recipe("budgetary", density=0.75).generate(range(2000))
    budget = np.array([ALL_CLASSES[class_id].budget for class_id in dense.classes[:, 0]])
    means = []
    for h in (0, 5):
        index = np.flatnonzero(budget == h)
        means.append(best_rewards(dense, index, WORTHS, "compass", 200).mean())
    assert means == pytest.approx([5.5, 6.0], abs=0.1)


def test_thousands_of_maps_take_seconds() -> None:
    maps = Recipe("budgetary").generate(range(100))
    best_rewards(maps, [0], WORTHS, "compass", 200, 0.99)  # compiles
    start = time.perf_counter()
    best_rewards(maps, range(100), WORTHS, "compass", 200, 0.99)
    assert time.perf_counter() - start < 1.0  # it is 1 ms each on a quiet machine


def test_engine_keeps_one_answer_per_map_and_gamma(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(Recipe("budgetary").generate(range(5)), TABLE, 20)
    engine.reset()
    plain, discounted = engine.ceiling(), engine.ceiling(0.9)
    assert plain.dtype == discounted.dtype == np.float32 and (discounted < plain).all()
    expected = best_rewards(engine.maps, engine.map_index, WORTHS, "compass", 200, 0.9)
    np.testing.assert_allclose(discounted, expected, rtol=1e-6)
    asked: list[int] = []
    monkeypatch.setattr(
        "hazardworld.engine.best_rewards", lambda maps, new, *_: asked.extend(new) or np.zeros(len(new))
    )
    np.testing.assert_array_equal(engine.ceiling(), plain)
    np.testing.assert_array_equal(engine.ceiling(0.9), discounted)
    assert not asked
    engine.ceiling(0.8)
    assert sorted(asked) == sorted(set(engine.map_index))


def test_plugins_pass_gamma_on() -> None:
    few = {"train_maps": 10, "actions": "turn"}
    for env in (
        HazardWorldGrid(HazardWorldGridConfig(**few), 4, "train", 0),  # type: ignore[arg-type]
        LavaWall(LavaWallConfig(**few), 4, "train", 0),  # type: ignore[arg-type]
    ):
        env.reset()
        expected = best_rewards(env._engine.maps, env._engine.map_index, WORTHS, "turn", 200, 0.9)
        np.testing.assert_allclose(env.ceiling(0.9), expected, rtol=1e-6)
        assert (env.ceiling() == 6).any() and (env.ceiling(0.9) < 6).all()


@pytest.mark.parametrize("gamma", [-0.1, 1.1, float("nan")])
def test_gamma_must_make_sense(gamma: float) -> None:
    maps = from_text(TINY, [constraint("budgetary water1")])
    with pytest.raises(ValueError, match=r"gamma is .*, outside 0\.\.1"):
        best_rewards(maps, [0], WORTHS, "compass", 200, gamma)
