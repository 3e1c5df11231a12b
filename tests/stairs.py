"""Small Gymnasium worlds with costs, for the tests of the adapter."""

from __future__ import annotations

import dataclasses

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from framework.agent import Agent
from framework.interfaces import Categorical, Episodes, NoConfig, PolicyNet, Rollout, Values
from framework.rollout import Collector
from framework.schema import Training
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
