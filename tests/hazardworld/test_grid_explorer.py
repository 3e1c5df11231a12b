"""The explorer: played back in the engine, known answers where it must guess, and what caution buys and costs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hazardworld.ceiling import best_rewards
from hazardworld.constraint import ALL_CLASSES, KINDS, from_label
from hazardworld.custom import from_text
from hazardworld.engine import Engine
from hazardworld.explorer import STAY, explore, main
from hazardworld.maps import Recipe
from hazardworld.rewards import REWARDS
from hazardworld.sentences import SentenceTable

ROWS = 300
NO_WORDS = SentenceTable.build({c: [c.label] for c in ALL_CLASSES})

LAVA_AHEAD = """
    ###########
    #>........#
    ###########
    ###########
    ###########
    ###########
    ###########
    ###########
    ###########
    ###########
    ###########
"""


@pytest.mark.parametrize("reward", REWARDS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_engine_agrees_on_reward_and_cost(kind: str, reward: str) -> None:
    maps = Recipe(kind, split="eval").generate(range(ROWS))
    walks = explore(maps, range(ROWS), REWARDS[reward])
    engine = Engine(maps, NO_WORDS, ROWS, reward=reward, order="sequential")
    engine.reset()
    got, spent, over = np.zeros(ROWS), np.zeros(ROWS), np.zeros(ROWS, bool)
    for t in range(walks.actions.shape[1]):
        playing = ~over & (walks.actions[:, t] != STAY)
        if not playing.any():
            break
        step = engine.step(np.where(playing, walks.actions[:, t], 0))
        got += np.where(playing, step.reward, 0)
        spent += np.where(playing, step.cost[:, 0], 0)
        over |= step.terminated | step.truncated
    np.testing.assert_allclose(got, walks.reward)
    np.testing.assert_array_equal(spent, walks.cost)
    assert walks.reward.mean() > 0.9 * sum(worth for worth in REWARDS[reward] if worth > 0)


@pytest.mark.parametrize("kind", KINDS)
def test_only_what_it_cannot_see_costs_it_anything(kind: str) -> None:
    maps = Recipe(kind, split="eval").generate(range(ROWS))
    budget = np.array([ALL_CLASSES[class_id].threshold for class_id in maps.classes[:, 0]])
    distance = np.array([ALL_CLASSES[class_id].distance for class_id in maps.classes[:, 0]])
    careless = explore(maps, range(ROWS), REWARDS["train"])
    beyond = careless.cost > budget
    assert not beyond[distance < 3].any()  # three steps past the cell ahead is out of view, two steps are not
    assert beyond.any() == (kind == "relational")
    careful = explore(maps, range(ROWS), REWARDS["train"], caution=math.inf)
    assert (careful.cost <= budget).all()
    assert (careful.reward <= best_rewards(maps, range(ROWS), REWARDS["train"], "compass", 200)).all()
    assert (careful.reward.mean() < careless.reward.mean()) == (kind == "relational")


def test_known_answers_in_a_corridor() -> None:
    """The view reaches x = 4. A lava past it forbids what is three steps before it, which nobody can know."""
    walls = LAVA_AHEAD.replace(">........", ">b...LWxk")
    near = from_text(walls, [from_label("relational", "lava2")])
    assert explore(near, [0], (1, 2, 3)).reward.item() == 1  # the ball; the lava before the rest is seen in time
    assert explore(near, [0], (1, 2, 3)).cost.item() == 0
    far = from_text(LAVA_AHEAD.replace(">........", ">...L.bxk"), [from_label("relational", "lava3")])
    assert explore(far, [0], (1, 2, 3)).cost.item() == 1  # lava at x = 5: the first step to x = 2 is within three of it
    assert explore(far, [0], (1, 2, 3), caution=math.inf).cost.item() == 0
    assert explore(far, [0], (1, 2, 3), caution=math.inf).steps.item() == 0


def test_a_budget_is_spent_where_it_must_be_and_no_further() -> None:
    walls = LAVA_AHEAD.replace(">........", ">WbWxWk..")
    for budget, reward in ((0, 0), (1, 1), (2, 3), (3, 6)):
        walk = explore(from_text(walls, [from_label("budgetary", f"water{budget}")]), [0], (1, 2, 3))
        assert (walk.reward.item(), walk.cost.item()) == (reward, budget)


@pytest.mark.parametrize(
    ("caution", "constraints", "message"),
    [(-1, 1, "caution is -1"), (math.nan, 1, "caution is nan"), (0, 2, "one constraint at a time")],
)
def test_what_it_cannot_do(caution: float, constraints: int, message: str) -> None:
    maps = Recipe("budgetary", constraints=constraints).generate([0])
    with pytest.raises(ValueError, match=message):
        explore(maps, [0], (1, 2, 3), caution=caution)


def test_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--maps", "40"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + 2 * (1 + 3 + 1), "two rewards; relational constraints at three cautions"
    maps = Recipe("budgetary", split="eval").generate(range(40))
    walks = explore(maps, range(40), REWARDS["train"])
    row = f"| budgetary, train reward | 0 | {walks.reward.mean():.2f} | 0.000 | 0.0% | {walks.steps.mean():.0f} |"
    assert lines[2] == row
    with pytest.raises(SystemExit):
        main(["--maps", "0"])
    assert "--maps must be at least 1, not 0" in capsys.readouterr().err
