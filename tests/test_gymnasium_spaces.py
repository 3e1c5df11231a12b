"""What the adapter makes of actions, observations and costs, and every refusal."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from gymnasium import spaces
from stairs import (
    adapter,
    ids,  # noqa: F401  a fixture for every test here
    odd,
)

from framework.testing import check_env
from plugins.envs.gymnasium_adapter import GymnasiumAdapter


def test_cost_under_another_key():
    env = adapter("HeedHarm-v0", cost_key="harm", limit=5, cost_scale=3.0)
    env.reset()
    assert env.step(torch.tensor([0, 1, 1])).cost.flatten().tolist() == [0, 3, 3]
    assert env.sentences == ("Keep the total cost at or below 5.",)
    assert env.spec.max_threshold == 5
    assert check_env(GymnasiumAdapter, env.config)


def test_eval_kwargs_and_sentence():
    env = adapter(split="eval", eval_kwargs={"random": False}, sentence="Do not climb much.")
    assert env.reset().obs[:, 0].tolist() == [0, 0, 0]
    assert env.sentences == ("Do not climb much.",)


def test_continuous_actions_are_stretched_to_the_bounds_and_clipped():
    low, high = np.array([[0.0, -10.0], [-np.inf, 0.0]]), np.array([[4.0, 10.0], [np.inf, np.inf]])
    env = odd(rows=2, action=spaces.Box(low, high, dtype=np.float64))
    assert env.spec.action.kind == "continuous"
    assert env.spec.action.size == 4
    env.reset()
    env.step(torch.tensor([[-1.0, 0.5, 7.0, -2.0], [9.0, -9.0, -7.0, 2.0]]))
    one, two = (world.unwrapped.seen[-1].tolist() for world in env._worlds._envs)
    assert one == [[0, 5], [7, 0]]
    assert two == [[4, -10], [-7, 2]]
    with pytest.raises(ValueError, match=r"actions must be \[2, 4\] finite numbers"):
        env.step(torch.full((2, 4), torch.nan))


def test_discrete_actions_respect_the_start():
    env = odd(rows=2, action=spaces.Discrete(3, start=-1))
    env.reset()
    env.step(torch.tensor([0, 2]))
    assert [world.unwrapped.seen[-1] for world in env._worlds._envs] == [-1, 1]
    with pytest.raises(ValueError, match=r"actions must be \[2\] whole numbers from 0 to 2"):
        env.step(torch.tensor([0, 3]))


@pytest.mark.parametrize(
    ("space", "value", "kind", "shown"),
    [
        (spaces.Discrete(4, start=2), 3, "vector", [0, 1, 0, 0]),
        (spaces.MultiDiscrete([2, 3]), np.array([1, 2]), "vector", [0, 1, 0, 0, 1]),
        (spaces.MultiBinary(3), np.array([1, 0, 1], np.int8), "vector", [1, 0, 1]),
        (spaces.Box(0, 9, (2, 2), np.int64), np.array([[1, 2], [3, 4]]), "vector", [1, 2, 3, 4]),
        (
            spaces.Dict(a=spaces.Discrete(2), b=spaces.Box(0, 9, (1,))),
            {"a": 1, "b": np.array([7.0])},
            "vector",
            [0, 1, 7],
        ),
        (spaces.Box(0, 255, (1, 2, 3), np.uint8), np.full((1, 2, 3), 8, np.uint8), "image", [8] * 6),
    ],
)
def test_observations(space, value, kind, shown):
    env = odd(obs=space, value=value)
    now = env.reset()
    assert env.spec.observation.kind == kind
    assert now.obs.dtype == (torch.float32 if kind == "vector" else torch.uint8)
    assert now.obs[0].flatten().tolist() == shown


MINI = spaces.Dict(image=spaces.Box(0, 255, (2, 2, 3), np.uint8), mission=spaces.Text(9, charset="go"))
TWO = {"image": np.ones((2, 2, 3), np.uint8), "mission": "go"}


def test_minigrid_image_is_a_grid_of_codes():
    env = adapter("HeedOdd-v0", kwargs={"obs": MINI, "value": TWO}, observation_key="image", levels=(2, 6, 3))
    assert env.spec.observation.kind == "codes"
    assert env.spec.observation.levels == (2, 6, 3)
    assert env.reset().obs.shape == (3, 2, 2, 3)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"id": "CartPole-v11"},
            "id 'CartPole-v11' is not known to Gymnasium; did you mean 'CartPole-v1'?; if a package of your own "
            "registers it, set module",
        ),
        (
            {"id": "nowhere:X-v0"},
            "id 'nowhere:X-v0' names a module; write it as module: nowhere and id: X-v0",
        ),
        (
            {"module": "no_such_module"},
            "module 'no_such_module' cannot be imported: No module named 'no_such_module'",
        ),
        (
            {"id": "HazardWorld-Budgetary-v0", "module": "hazardworld"},
            "max_steps must be set: 'HazardWorld-Budgetary-v0' is registered without a limit of its own",
        ),
        ({"limit": 0.5}, "limit must be a whole number, at least 0, not 0.5; see cost_scale"),
        ({"limit": -1.0}, "limit must be a whole number, at least 0, not -1; see cost_scale"),
        ({"cost_scale": 0.0}, "cost_scale must be greater than 0, not 0"),
        ({"max_steps": 0}, "max_steps must be at least 1, not 0"),
        ({"levels": (0, 3)}, "levels must be between 1 and 256, not [0, 3]"),
        ({"sentence": " "}, "sentence is empty; null makes one from the limit"),
        (
            {"autoreset": "disabled"},
            "autoreset must be next_step, same_step or null, not 'disabled'; rows that do not start over are not "
            "supported",
        ),
        (
            {"id": "CartPole-v1"},
            "row 0: 'CartPole-v1' reports no info['cost']; its info is empty. Set cost_key to the key of its "
            "cost, or to null if it has none",
        ),
        (
            {"id": "HeedHarm-v0", "cost_key": "ham"},
            "row 0: 'HeedHarm-v0' reports no info['ham']; did you mean 'harm'? Set cost_key to the key of its "
            "cost, or to null if it has none",
        ),
        (
            {"id": "HeedStairs-v0", "kwargs": {"steps": 3}},
            "'HeedStairs-v0' cannot be made: Stairs.__init__() got an unexpected keyword argument 'steps' was "
            "raised from the environment creator for HeedStairs-v0 with kwargs ({'steps': 3})",
        ),
        (
            {"id": "HeedStairs-v0", "vectorization": "vector_entry_point"},
            "'HeedStairs-v0' has no vector form of its own; set vectorization to sync or async",
        ),
        (
            {"id": "HeedStairsDisabled-v0", "vectorization": "vector_entry_point"},
            "'HeedStairsDisabled-v0' does not start its rows over (autoreset DISABLED), which Heed does not support",
        ),
        (
            {"id": "HeedStairsNext-v0", "vectorization": "vector_entry_point", "autoreset": "same_step"},
            "autoreset is same_step, but the vector form of 'HeedStairsNext-v0' has next_step; set autoreset to null",
        ),
        (
            {"kwargs": {"action": spaces.MultiBinary(2)}},
            "the action space MultiBinary(2) is not supported: it must be Discrete, or Box of real numbers",
        ),
        (
            {"kwargs": {"obs": spaces.Text(3, charset="ab")}},
            "the observation space Text(1, 3, "
            "charset=ab) is not supported: it must be"
            " made of Box, Discrete, MultiDiscrete, MultiBinary",
        ),
        (
            {"kwargs": {"obs": MINI}},
            "the observation holds Text(1, 9, "
            "charset=go), which is no number; set "
            "observation_key to one of image, mission",
        ),
        (
            {"kwargs": {"obs": MINI}, "observation_key": "imge"},
            "observation_key 'imge' is not in the observation; did you mean 'image'?",
        ),
        (
            {"observation_key": "image"},
            "observation_key is 'image', but the observation is no Dict: Box(-1.0, 1.0, (3,), float32)",
        ),
        (
            {"levels": (2, 2, 2)},
            "levels are for a grid of whole numbers, but the observation is Box(-1.0, 1.0, (3,), float32)",
        ),
        (
            {"kwargs": {"obs": MINI, "value": TWO}, "observation_key": "image", "levels": (1, 6, 3)},
            "row 0: codes go up to [1, 1, 1], past what levels [1, 6, 3] allows",
        ),
        (
            {"kwargs": {"value": np.array([0, np.nan, 0])}},
            "row 0: the observation is not finite (NaN, or past what float32 holds)",
        ),
        (
            {"kwargs": {"value": np.zeros(4)}},
            "row 0: the observation has shape (4,), but its space Box(-1.0, 1.0, (3,), float32)",
        ),
        ({"kwargs": {"info": {"cost": [1.0, 2.0]}}}, "row 0: info['cost'] is no single number: [1.0, 2.0]"),
        ({"kwargs": {"info": {"cost": float("inf")}}}, "row 0: info['cost'] is inf, not a finite number"),
        ({"kwargs": {"info": {"cost": -2.0}}}, "row 0: info['cost'] is -2.0; a cost must not be negative"),
    ],
)
def test_refusals(settings, message):
    with pytest.raises(ValueError) as caught:
        adapter(**({"name": settings.get("id", "HeedOdd-v0")} | {k: v for k, v in settings.items() if k != "id"}))
    assert str(caught.value) == message


def test_what_goes_wrong_later_is_told_with_its_row():
    env = odd(rows=3)
    env.reset()
    env._worlds._envs[2].unwrapped.reward = float("nan")
    with pytest.raises(ValueError, match=r"^row 2: reward is nan, not a finite number$"):
        env.step(torch.zeros(3, dtype=torch.int64))
    env._worlds._envs[1].unwrapped.info = {"price": 1}
    with pytest.raises(
        ValueError, match=r"^row 1: 'HeedOdd-v0' reports no info\['cost'\]; known: price\. Set cost_key"
    ):
        env.step(torch.zeros(3, dtype=torch.int64))
    with pytest.raises(RuntimeError, match="call reset before step"):
        odd(rows=1).step(torch.zeros(1, dtype=torch.int64))
