"""Gymnasium environments through the adapter: both autoreset protocols, every vectorization, every refusal."""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
from pathlib import Path

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from framework.agent import Agent
from framework.evaluator import evaluate
from framework.interfaces import Categorical, ConstraintEnv, Episodes, NoConfig, PolicyNet, Rollout, Values
from framework.rollout import Collector
from framework.run import OK, main
from framework.schema import Training
from framework.testing import check_env
from framework.testing.contract import same
from plugins.envs.ford import Ford
from plugins.envs.gymnasium_adapter import Config, GymnasiumAdapter
from plugins.interpreters.oracle import Oracle


class Stairs(gymnasium.Env):
    """Climb (1) or stay (0). A step is worth the height, climbing costs a half; the top ends the episode."""

    observation_space = spaces.Box(0, 99, (2,), np.float64)
    action_space = spaces.Discrete(2)
    top, low, high = 5, 0, 4

    def __init__(self, random: bool = True, draws: bool = False):
        self.random, self.draws = random, draws

    def show(self):
        return np.array([self.height, self.time], np.float64)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.height = int(self.np_random.integers(self.low, self.high)) if self.random else 0
        self.time = 0
        return self.show(), {"cost": 99.0}  # of no step: must never be booked

    def step(self, action):
        self.height += int(action)
        self.time += 1
        if self.draws:
            self.height = -int(np.random.default_rng().integers(2**30))  # a world that ignores its seed
        return self.show(), float(self.height), self.height >= self.top, False, {"cost": 0.5 * int(action)}


class Odd(gymnasium.Env):
    """Whatever the test wants."""

    def __init__(self, obs=None, action=None, info=None, reward=0.0, value=None, end=False):
        self.observation_space = obs or spaces.Box(-1, 1, (3,), np.float32)
        self.action_space = action or spaces.Discrete(2)
        self.info, self.reward, self.value, self.end = {"cost": 0.0} if info is None else info, reward, value, end
        self.seen = []

    def show(self):
        return self.observation_space.sample() if self.value is None else self.value

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.show(), {}

    def step(self, action):
        self.seen.append(action)
        return self.show(), self.reward, self.end, False, self.info


class CostWrapper(gymnasium.Wrapper):
    """CartPole with a made-up cost."""

    def step(self, action):
        obs, reward, terminated, truncated, info = self.env.step(action)
        return obs, reward, terminated, truncated, info | {"harm": np.float32(action)}


def vector_stairs(num_envs, max_episode_steps, mode, **kwargs):
    make = lambda: gymnasium.wrappers.TimeLimit(Stairs(**kwargs), max_episode_steps)  # noqa: E731
    return SyncVectorEnv([make] * num_envs, autoreset_mode=mode)


def named_vector(mode):
    return lambda num_envs, max_episode_steps, **kwargs: vector_stairs(num_envs, max_episode_steps, mode, **kwargs)


IDS = {
    "HeedStairs-v0": {"entry_point": Stairs, "max_episode_steps": 4},
    "HeedStairsSame-v0": {"vector_entry_point": named_vector(AutoresetMode.SAME_STEP), "max_episode_steps": 4},
    "HeedStairsNext-v0": {"vector_entry_point": named_vector(AutoresetMode.NEXT_STEP), "max_episode_steps": 4},
    "HeedStairsDisabled-v0": {"vector_entry_point": named_vector(AutoresetMode.DISABLED), "max_episode_steps": 4},
    "HeedOdd-v0": {"entry_point": Odd, "max_episode_steps": 10},
    "HeedHarm-v0": {
        "entry_point": lambda **kw: CostWrapper(gymnasium.make("CartPole-v1", **kw)),
        "max_episode_steps": 9,
    },
}


@pytest.fixture(autouse=True)
def ids():
    for name, settings in IDS.items():
        gymnasium.register(id=name, **settings)
    yield
    for name in IDS:
        del gymnasium.registry[name]


def adapter(name="HeedStairs-v0", rows=3, seed=1, split="train", **settings):
    return GymnasiumAdapter(Config(id=name, **settings), rows=rows, split=split, seed=seed)


def odd(rows=2, **kwargs):
    return adapter("HeedOdd-v0", rows, kwargs=kwargs)


class Climber(PolicyNet):
    """Acts and values by all that it is given, so that anything left over from an episode shows in the numbers."""

    def distribution(self, inputs):
        recent = inputs.last_action + inputs.touched.flatten(1).sum(-1)
        climbs = (inputs.obs[:, 0] + recent > 1.2) | (inputs.obs[:, 1] < 1)
        return Categorical.from_logits(torch.stack([~climbs, climbs], -1) * 200.0)

    def values(self, inputs):
        place = inputs.obs.flatten(1).float()
        sight = (place * torch.arange(1, place.shape[1] + 1)).sum(-1)
        left_over = 100 * inputs.touched.flatten(1).sum(-1) + 10 * inputs.last_action
        rule = 3 * inputs.threshold + inputs.budget.flatten(1).sum(-1) + 7 * inputs.text[:, 0]
        return Values(sight + left_over + inputs.memory[:, 0], sight + rule)

    def initial_state(self, rows):
        return (torch.zeros(rows, 1),)

    def remember(self, inputs, state):
        count = state[0] + 1
        return count, (count,)


class Walker(Climber):
    """The same for the ford."""

    def distribution(self, inputs):
        turn = (inputs.obs.flatten(1).float().sum(-1) + inputs.memory[:, 0] + 2 * inputs.last_action).long() % 4
        return Categorical.from_logits(torch.nn.functional.one_hot(turn, 4) * 200.0)


def agent_of(env, policy=Climber):
    return Agent(env, Oracle(NoConfig(), env.spec), policy(NoConfig(), env.spec))


def collect(env, steps, policy=Climber, **settings):
    defaults = {"gamma": 0.5, "gae_lambda": 0.5, "cost_gamma": 1.0, "cost_gae_lambda": 0.5, "constraint": "mean"}
    training = Training(steps=steps * env.rows, batch=steps * env.rows, rows=env.rows, **(defaults | settings))
    collector = Collector(env, agent_of(env, policy), training, torch.Generator().manual_seed(0))
    rollout = collector.collect()
    return Collected(**vars(rollout), episodes=collector.tally.episodes())


@dataclasses.dataclass(frozen=True)
class Collected(Rollout):
    """A rollout, and the true episodes that only the log gets."""

    episodes: Episodes


def finished(rollout, start, row):
    """Every number of one row's steps in finished episodes, without the steps that only start an episode."""
    valid = rollout.valid[:, row]
    columns = [rollout.action, rollout.log_prob, rollout.reward, rollout.cost, rollout.advantage]
    columns += [rollout.cost_advantage, rollout.value_target, rollout.cost_value_target]
    inputs = rollout.inputs
    columns += [inputs.obs, inputs.budget, inputs.threshold, inputs.touched, inputs.last_action]
    columns += [inputs.memory, inputs.text]
    steps = int(valid.sum())
    table = torch.cat([column[:, row][valid].float().reshape(steps, -1) for column in columns], 1)
    return table[: torch.nonzero(start[:, row][valid])[-1]]


def assert_same_episodes(next_step, same_step, length):
    """``length``: memory counts the steps of an episode, so 1 marks its first."""
    assert bool(same_step.valid.all())
    assert not bool(next_step.valid.all())
    for row in range(next_step.valid.shape[1]):
        one, two = (finished(r, r.inputs.memory[..., 0] == 1, row) for r in (next_step, same_step))
        steps = min(len(one), len(two))
        assert steps >= length
        assert torch.equal(one[:steps], two[:steps])


@pytest.mark.parametrize("constraint", ["mean", "excess"])
def test_both_autoreset_protocols_give_the_same_episodes_and_advantages(constraint):
    next_step, same_step = (
        collect(adapter(autoreset=mode, limit=1), 60, constraint=constraint) for mode in ("next_step", "same_step")
    )
    assert_same_episodes(next_step, same_step, 30)
    ends = same_step.episodes.length
    assert {*ends.tolist()} > {4.0}, "some are cut off after four steps, some reach the top before"


def test_advantages_at_the_time_limit_by_hand():
    """One row climbs 0, 1, 2 and is cut off there: V(2) must count, not the value of the next episode's start."""

    class Height(Climber):
        def distribution(self, inputs):
            return Categorical.from_logits(torch.tensor([[0.0, 200.0]]).expand(len(inputs.obs), 2))

        def values(self, inputs):
            return Values(10 + inputs.obs[:, 0], inputs.obs[:, 0])

    for mode in ("next_step", "same_step"):
        env = adapter(rows=1, autoreset=mode, max_steps=2, kwargs={"random": False}, limit=3)
        rollout = collect(env, 6, Height)
        valid = rollout.valid[:, 0]
        assert valid.tolist() == ([True, True, False] * 2 if mode == "next_step" else [True] * 6)
        last = 2 + 0.5 * 12 - 11
        first = 1 + 0.5 * 11 - 10 + 0.25 * last
        assert rollout.advantage[:, 0][valid].tolist()[:4] == [first, last, first, last]
        assert rollout.value_target[:, 0][valid].tolist()[:2] == [first + 10, last + 11]
        cost_last, cost_first = 0.5 + 2 - 1, (0.5 + 1 - 0) + 0.5 * (0.5 + 2 - 1)
        assert rollout.cost_advantage[:, 0][valid].tolist()[:4] == [cost_first, cost_last] * 2
        assert rollout.episodes.reward.tolist() == [3.0] * (2 if mode == "next_step" else 3)
        assert (
            set(rollout.episodes.cost.flatten().tolist())
            == set(rollout.episodes.predicted_cost.flatten().tolist())
            == {1}
        )


class SameStep(ConstraintEnv):
    """The ford, reset within the step; all rows end together. Every episode has a sentence and budget of its own."""

    name, kinds = "same_step", Ford.kinds

    def __init__(self, rows):
        super().__init__(NoConfig(), rows, "train", 1)
        self.inner = Ford(Ford.Config(steps=5), rows, "train", 1)

    spec = property(lambda self: self.inner.spec)
    sentences = property(lambda self: self.inner.sentences)

    def reset(self):
        return self.inner.reset()

    def step(self, actions):
        now = self.inner.step(actions)
        if not bool(now.done.any()):
            return dataclasses.replace(now, final_obs=now.obs)
        new = self.inner.step(actions)
        fields = ("obs", "text", "threshold", "kind", "episode_start")
        return dataclasses.replace(now, final_obs=now.obs, **{name: getattr(new, name) for name in fields})

    def labels(self):
        return self.inner.labels()

    def state_dict(self):
        return self.inner.state_dict()

    def load_state_dict(self, state):
        self.inner.load_state_dict(state)


def test_a_finished_episode_keeps_its_own_sentence_and_budget():
    plain, reset_within = Ford(Ford.Config(steps=5), 4, "train", 1), SameStep(4)
    next_step, same_step = collect(plain, 60, Walker), collect(reset_within, 60, Walker)
    assert_same_episodes(next_step, same_step, 40)
    count = len(next_step.episodes)
    assert len(set(next_step.episodes.threshold.flatten().tolist())) > 1
    for field in dataclasses.fields(next_step.episodes):
        one, two = getattr(next_step.episodes, field.name), getattr(same_step.episodes, field.name)
        assert torch.equal(one, two[:count]), field.name
    one, two = (evaluate(env, agent_of(env, Walker), 40, 0.9, torch.Generator()) for env in (plain, reset_within))
    for name in ("reward", "discounted", "cost", "threshold", "kind", "length"):
        assert torch.equal(getattr(one, name), getattr(two, name)), name


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_contract(mode):
    assert check_env(GymnasiumAdapter, Config(autoreset=mode))


def play(env, steps):
    """Rewards and costs of each row's episodes, in order, up to ``steps`` steps."""
    now, books = env.reset(), [[[0.0, 0.0, 0]] for _ in range(env.rows)]
    for t in range(steps):
        ready = now.done if now.final_obs is None else torch.zeros(env.rows, dtype=torch.bool)
        now = env.step(torch.full((env.rows,), t % 2))
        assert torch.equal(now.touched, now.cost)
        assert (now.cost[ready] == 0).all()
        assert (now.reward[ready] == 0).all()
        for row in torch.nonzero(~ready).flatten().tolist():
            books[row][-1] = [
                books[row][-1][0] + now.reward[row].item(),
                books[row][-1][1] + now.cost[row].item(),
                books[row][-1][2] + 1,
            ]
            if now.done[row]:
                books[row].append([0.0, 0.0, 0])
    return [row[:-1] for row in books]


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("HeedStairs-v0", {"vectorization": "async", "autoreset": "next_step"}),
        ("HeedStairs-v0", {"vectorization": "async", "autoreset": "same_step"}),
        ("HeedStairsNext-v0", {"vectorization": "vector_entry_point"}),
        ("HeedStairsSame-v0", {"vectorization": "vector_entry_point"}),
    ],
)
def test_vector_environments_lose_no_cost(name, settings):
    """The last step's cost is in final_info, and a reset's info (cost 99) is no step's."""
    env = adapter(name, kwargs={"random": False}, **settings)
    same_step = "Same" in name or settings.get("autoreset") == "same_step"
    try:
        for episodes in play(env, 20):
            # Actions alternate with the clock; an episode has four steps, with NEXT_STEP every fifth step is a reset.
            stay_first, climb_first = [0 + 1 + 1 + 2, 1.0, 4], [1 + 1 + 2 + 2, 1.0, 4]
            assert episodes == ([stay_first] * 5 if same_step else [stay_first, climb_first] * 2)
    finally:
        env.close()
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_a_restored_vector_environment_cuts_its_episodes_off(mode):
    settings = {"vectorization": "async", "autoreset": mode}
    source, target = adapter(**settings), adapter(seed=5, **settings)
    try:
        source.reset()
        for _ in range(4):
            now = source.step(torch.zeros(3, dtype=torch.int64))
        now = source.step(torch.zeros(3, dtype=torch.int64))
        now = source.step(torch.tensor([1, 1, 1]))
        target.reset()
        target.load_state_dict(source.state_dict())
        cut = target.step(torch.ones(3, dtype=torch.int64))
        running = ~now.done if mode == "next_step" else torch.ones(3, dtype=torch.bool)
        assert torch.equal(cut.truncated, running)
        assert (cut.reward.sum(), cut.cost.sum(), cut.terminated.sum()) == (0, 0, 0)
        last = cut.obs if mode == "next_step" else cut.final_obs
        assert torch.equal(last[running], now.obs[running])
        assert torch.equal(cut.episode_start, now.done if mode == "next_step" else cut.done)
        if mode == "next_step":
            begin = target.step(torch.ones(3, dtype=torch.int64))
            assert torch.equal(begin.episode_start, cut.done)
            assert begin.obs[:, 1].tolist() == [0, 0, 0]
        after = target.step(torch.ones(3, dtype=torch.int64))
        assert (after.cost == 0.5).all()
    finally:
        source.close()
        target.close()


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_a_run_goes_on_exactly_from_any_step(mode, recwarn):
    source, target = adapter(autoreset=mode), adapter(autoreset=mode, seed=9)
    source.reset()
    target.reset()
    ended = torch.zeros(3)
    for t in range(25):
        target.load_state_dict(source.state_dict())
        actions = torch.tensor([t % 2, 1, t % 3 == 0]).long()
        one, two = source.step(actions), target.step(actions)
        assert same(one, two), t
        ended += one.done
    assert bool((ended >= 3).all())
    assert not recwarn.list


def test_every_episode_has_a_seed_of_its_own():
    env = adapter(rows=2, autoreset="same_step", max_steps=1)
    now, heights = env.reset(), []
    for _ in range(12):
        heights.append(tuple(now.obs[:, 0].tolist()))
        now = env.step(torch.zeros(2, dtype=torch.int64))
    assert len(set(heights)) > 3
    assert env.reset().obs[:, 0].tolist() == list(heights[0])


def test_a_world_that_is_not_deterministic_is_cut_off_with_a_warning():
    source, target = adapter(kwargs={"draws": True}), adapter(kwargs={"draws": True})
    source.reset()
    now = source.step(torch.zeros(3, dtype=torch.int64))
    target.reset()
    with pytest.warns(UserWarning, match=r"the episodes of rows \[0, 1, 2\] cannot be restored"):
        target.load_state_dict(source.state_dict())
    cut = target.step(torch.zeros(3, dtype=torch.int64))
    assert cut.truncated.all()
    assert torch.equal(cut.obs, now.obs)
    assert target.step(torch.zeros(3, dtype=torch.int64)).episode_start.all()


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


STUDY = """
study: gymnasium
training: {steps: 480, batch: 240, rows: 4, evaluation: {episodes: 4}}
experiments:
  grid:
    env:
      plugin: gymnasium_adapter
      id: HazardWorld-Budgetary-v0
      module: hazardworld
      kwargs: {labels: false}
      eval_kwargs: {split: eval}
      observation_key: image
      levels: [13, 6, 3]
      limit: 2
      max_steps: 30
    interpreter: oracle
    policy: mlp
    optimizer: ppo_lagrangian
  processes:
    env: {plugin: gymnasium_adapter, vectorization: async, autoreset: same_step}
    interpreter: oracle
    policy: mlp
    optimizer: ppo_lagrangian
"""


def test_a_study_through_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("registry.yaml").write_text(STUDY)
    assert main(["registry.yaml", "--workers", "1"]) == OK, capsys.readouterr().out
    for folder in Path("runs/cells").iterdir():
        rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        assert [row["step"] for row in rows][:2] == [240, 480]
        assert rows[0]["episodes"] > 0
        assert rows[0]["predicted_violation"] == rows[0]["violation"], "with the oracle the ledger books the true cost"


def test_the_line_of_a_mistake_is_told(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("registry.yaml").write_text(STUDY.replace("HazardWorld-Budgetary-v0", "HazardWorld-Budgetary-v1"))
    assert main(["registry.yaml"]) == 2
    assert capsys.readouterr().err.startswith(
        "registry.yaml:8: experiments.grid.env.id: id 'HazardWorld-Budgetary-v1' is not known to Gymnasium; "
        "did you mean 'HazardWorld-Budgetary-v0'? [env 'gymnasium_adapter'"
    )
