"""The rules one by one, on maps drawn by hand, told to the reference and to the engine alike."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from hazardworld.constraint import from_label
from hazardworld.custom import from_text
from hazardworld.engine import Engine
from hazardworld.reference import HazardWorldEnv
from hazardworld.sentences import SentenceTable

RIGHT, DOWN, LEFT, UP = range(4)
TURN_LEFT, TURN_RIGHT, FORWARD, PICKUP = range(4)
CORRIDOR = """
    ########
    #>WGWG.#
    #......#
    #..L...#
    #......#
    #......#
    #.bxk..#
    ########
"""


class Told(NamedTuple):
    cost: list[float]
    reward: list[float]
    terminated: list[bool]
    truncated: list[bool]
    mask: list[np.ndarray]


Play = Callable[..., Told]


@pytest.fixture(params=["reference", "engine"])
def play(request: pytest.FixtureRequest, texts: Path) -> Play:
    def run(kind: str, label: str, moves: list[int], world: str = CORRIDOR, **settings: object) -> Told:
        maps = from_text(world, [from_label(kind, label)])
        if request.param == "reference":
            env = HazardWorldEnv(kind, maps=maps, texts=texts, **settings)  # type: ignore[arg-type]
            env.reset()
            steps = [env.step(move) for move in moves]
            parts = [(s[4]["cost"], s[1], s[2], s[3], s[4]["mask"][0]) for s in steps]
        else:
            engine = Engine(maps, SentenceTable.load(kind, "train", texts), 1, **settings)  # type: ignore[arg-type]
            engine.reset()
            parts = []
            for move in moves:
                s = engine.step(np.array([move]))
                numbers = (array.item() for array in (s.cost, s.reward, s.terminated, s.truncated))
                parts.append((*numbers, engine.mask()[0, 0].copy()))
        return Told(*(list(part) for part in zip(*parts, strict=True)))

    return run


def test_before_is_lifted_by_the_visit(play: Play) -> None:
    """The published environment never lifted it."""
    told = play("sequential", "bgrasswater", [RIGHT] * 5)  # water, grass, water, grass, empty
    assert told.cost == [1, 0, 0, 0, 0]
    assert told.mask[0].any() and not told.mask[1].any()


def test_after_starts_with_the_visit(play: Play) -> None:
    told = play("sequential", "agrasswater", [RIGHT] * 5)
    assert told.cost == [0, 0, 1, 0, 0]
    assert not told.mask[0].any() and told.mask[1].any()


def test_after_a_avoid_a_lets_the_first_visit_be_free(play: Play) -> None:
    assert play("sequential", "agrassgrass", [RIGHT] * 5).cost == [0, 0, 0, 1, 0]


def test_relational_distance_is_checked(play: Play) -> None:
    """The published environment never checked it."""
    walk = [DOWN, DOWN, RIGHT, RIGHT, RIGHT]  # lava is at (3, 3); the agent goes down column 1 and along row 3
    assert play("relational", "lava0", walk).cost == [0, 0, 0, 1, 0]
    assert play("relational", "lava1", walk).cost == [0, 0, 1, 1, 1]
    assert play("relational", "lava2", walk).cost == [0, 1, 1, 1, 1]
    assert play("relational", "lava3", walk).cost == [1, 1, 1, 1, 1]


def test_relational_mask_knows_only_what_is_in_view(play: Play) -> None:
    world = """
        ########
        #>.....#
        #......#
        #......#
        #....L.#
        #......#
        #.bxk..#
        ########
    """
    told = play("relational", "lava3", [LEFT, DOWN, RIGHT, RIGHT], world)  # lava is at (5, 4), four columns east
    assert [bool(mask.any()) for mask in told.mask] == [False, False, True, True]


def test_a_bump_costs_nothing_even_on_a_hazard(play: Play) -> None:
    told = play("budgetary", "water0", [RIGHT, UP, UP, DOWN, UP])
    assert told.cost == [1, 0, 0, 0, 1]


def test_turning_on_a_hazard_costs_nothing(play: Play) -> None:
    moves = [FORWARD, TURN_LEFT, FORWARD, TURN_RIGHT, PICKUP, FORWARD]
    assert play("budgetary", "water0", moves, actions="turn").cost == [1, 0, 0, 0, 0, 0]


def test_compass_collects_by_walking_and_ends_when_nothing_is_left(play: Play) -> None:
    moves = [DOWN] * 5 + [RIGHT] * 3
    told = play("budgetary", "lava0", moves)
    assert told.reward == [0, 0, 0, 0, 0, 1, 2, 3]
    assert told.terminated == [False] * 7 + [True]


def test_transfer_ends_without_the_key(play: Play) -> None:
    told = play("budgetary", "lava0", [DOWN] * 5 + [RIGHT] * 2, reward="transfer")
    assert told.reward[-2:] == [1, 2]
    assert told.terminated[-2:] == [False, True]


def test_transfer_key_hurts(play: Play) -> None:
    told = play("budgetary", "lava0", [DOWN] * 4 + [RIGHT] * 3 + [DOWN], reward="transfer")
    assert told.reward[-1] == -3 and not told.terminated[-1]


def test_turn_objects_block_and_are_picked_up(play: Play) -> None:
    moves = [TURN_RIGHT] + [FORWARD] * 5 + [TURN_LEFT, FORWARD, PICKUP, FORWARD, PICKUP]
    told = play("budgetary", "lava0", moves, actions="turn")
    assert told.reward == [0] * 8 + [1, 0, 2]


def test_truncated_at_the_limit_and_not_when_solved(play: Play) -> None:
    assert play("budgetary", "lava0", [UP, UP, UP], max_steps=3).truncated == [False, False, True]
    told = play("budgetary", "lava0", [DOWN] * 5 + [RIGHT] * 3, max_steps=8)
    assert told.terminated[-1] and not told.truncated[-1]


def test_own_cell_is_seen(texts: Path) -> None:
    """MiniGrid would show an empty cell under the agent."""
    maps = from_text(CORRIDOR, [from_label("budgetary", "water0")])
    for actions, own, move in (("compass", (3, 3), RIGHT), ("turn", (3, 6), FORWARD)):
        env = HazardWorldEnv(maps=maps, texts=texts, actions=actions)
        env.reset()
        obs, *_ = env.step(move)
        assert obs["image"][own][0] == 11
