"""The ceiling: known answers on small maps, and never beaten by an episode that keeps its constraint."""

from __future__ import annotations

import numpy as np
import pytest

from hazardworld.ceiling import best_rewards
from hazardworld.constraint import ALL_CLASSES, from_label
from hazardworld.custom import from_text
from hazardworld.engine import Engine
from hazardworld.lavawall import LavaWallRecipe
from hazardworld.maps import Recipe
from hazardworld.sentences import SentenceTable

RIVERS = """
    #########
    #>WbLxWk#
    #########
    #########
    #########
    #########
    #########
    #########
    #########
"""


@pytest.mark.parametrize("actions", ["compass", "turn"])
@pytest.mark.parametrize(
    ("kind", "label", "best"),
    [
        ("budgetary", "water0", 0),
        ("budgetary", "water1", 3),
        ("budgetary", "water2", 6),
        ("budgetary", "lava0", 1),
        ("budgetary", "grass0", 6),
        ("sequential", "alavawater", 3),
        ("sequential", "blavawater", 0),
        ("sequential", "awaterwater", 3),
        ("sequential", "awaterlava", 1),
        ("sequential", "bwaterlava", 6),
    ],
)
def test_known_answers(kind: str, label: str, best: float, actions: str) -> None:
    maps = from_text(RIVERS, [from_label(kind, label)])
    assert best_rewards(maps, [0], (1, 2, 3), actions, 200).item() == best


def test_relational_counts_distance() -> None:
    maps = from_text(RIVERS, [from_label("relational", "lava1")])
    assert best_rewards(maps, [0], (1, 2, 3), "turn", 200).item() == 1  # taken from the cell before the last
    assert best_rewards(maps, [0], (1, 2, 3), "compass", 200).item() == 0


def test_steps_and_worths_count() -> None:
    maps = from_text(RIVERS, [from_label("budgetary", "grass0")])
    assert best_rewards(maps, [0], (1, 2, 3), "compass", 5).item() == 3
    assert best_rewards(maps, [0], (-1, 2, 3), "compass", 200).item() == 4


def test_several_constraints_hold_together() -> None:
    maps = from_text(RIVERS, [from_label("budgetary", "water2"), from_label("budgetary", "lava0")])
    assert best_rewards(maps, [0], (1, 2, 3), "compass", 200).item() == 1


def test_too_many_states_are_not_known() -> None:
    maps = Recipe(constraints=18, density=0.1).generate([0])
    assert np.isnan(best_rewards(maps, [0], (1, 2, 3), "turn", 200)).all()


def test_relational_and_lavawall_can_always_be_solved() -> None:
    for recipe in (Recipe("relational"), LavaWallRecipe()):
        assert (best_rewards(recipe.generate(range(200)), range(200), (1, 2, 3), "compass", 200) == 6).all()


@pytest.mark.parametrize("actions", ["compass", "turn"])
@pytest.mark.parametrize("kind", ["budgetary", "sequential", "mixed"])
def test_no_clean_episode_beats_it(kind: str, actions: str) -> None:
    rows, limit = 4000, 12  # many short walks: some of them must be as good as can be
    table = SentenceTable.build({c: [c.label] for c in ALL_CLASSES})
    engine = Engine(Recipe(kind, density=0.7).generate(range(100)), table, rows, actions=actions, max_steps=limit)
    engine.reset()
    ceiling, threshold = engine.ceiling(), engine.threshold()
    reward, cost, running = np.zeros(rows), np.zeros((rows, 1)), np.ones(rows, bool)
    rng, reached = np.random.default_rng(0), 0
    for _ in range(limit):
        step = engine.step(rng.integers(0, 4, rows))
        reward += step.reward * running
        cost += step.cost * running[:, None]
        clean = (cost <= threshold).all(1)
        assert (reward[clean] <= ceiling[clean]).all()
        reached += ((reward == ceiling) & clean & (reward > 0)).sum()
        running &= ~(step.terminated | step.truncated)
    assert reached
    assert ceiling.min() < 6
