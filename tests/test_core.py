"""Distributions, random streams, statistics, and what is said when a plugin hands out nonsense."""

from __future__ import annotations

import dataclasses
import math
import random

import numpy as np
import pytest
import torch

from framework.agent import Agent
from framework.errors import UserError
from framework.interfaces import Categorical, Gaussian, NoConfig, kl
from framework.plugin_manager import PluginHost
from framework.rollout import Collector
from framework.schema import Training
from framework.seeding import derive, global_streams, seed_everything, set_global_streams
from framework.stats import STUDENT, iqm, mean_interval
from plugins.envs.ford import Config as FordConfig
from plugins.envs.ford import Ford
from plugins.interpreters.oracle import Oracle


def test_kl_is_old_to_new():
    p, q = torch.tensor([[0.9, 0.1]]), torch.tensor([[0.5, 0.5]])
    expected = (p * (p / q).log()).sum().item()
    assert kl(Categorical(p.log()), Categorical(q.log())).item() == pytest.approx(expected)
    old, new = torch.distributions.Normal(0.0, 0.5), torch.distributions.Normal(0.3, 1.5)
    ours = kl(
        Gaussian(torch.tensor([[0.0]]), torch.tensor([[0.5]]).log()),
        Gaussian(torch.tensor([[0.3]]), torch.tensor([[1.5]]).log()),
    )
    assert ours.item() == pytest.approx(torch.distributions.kl_divergence(old, new).item())


def test_distributions_agree_with_torch():
    logits = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
    ours, theirs = Categorical.from_logits(logits), torch.distributions.Categorical(logits=logits)
    action = ours.sample(torch.Generator().manual_seed(1))
    assert torch.allclose(ours.log_prob(action), theirs.log_prob(action))
    assert torch.allclose(ours.entropy(), theirs.entropy())
    mean, log_std = torch.randn(5, 2), torch.randn(5, 2)
    normal = torch.distributions.Independent(torch.distributions.Normal(mean, log_std.exp()), 1)
    gaussian = Gaussian(mean, log_std)
    assert torch.allclose(gaussian.log_prob(mean + 1), normal.log_prob(mean + 1), atol=1e-5)
    assert torch.allclose(gaussian.entropy(), normal.entropy(), atol=1e-5)


def test_sampling_follows_the_probabilities():
    probabilities = torch.tensor([0.6, 0.3, 0.1])
    many = Categorical(probabilities.log().expand(60_000, 3)).sample(torch.Generator().manual_seed(0))
    assert torch.allclose(torch.bincount(many, minlength=3) / 60_000, probabilities, atol=0.01)


def test_streams_differ_by_name_and_seed():
    assert len({derive(s, n) for s in range(50) for n in ("env", "policy", "actions")}) == 150
    assert derive(3, "env") == derive(3, "env")


def test_global_streams_go_on_from_where_they_were():
    """Also between the two normal numbers that numpy and Python make at a time."""
    seed_everything(3)
    random.gauss(0, 1), np.random.normal()

    def draw():
        return random.random(), random.gauss(0, 1), np.random.rand(), np.random.normal(), torch.rand(1).item()

    saved = global_streams()
    first = draw()
    assert draw() != first
    set_global_streams(saved)
    assert draw() == first
    torch_alone = {"torch": saved["torch"]}  # as older versions saved it
    set_global_streams(torch_alone)
    assert draw()[-1] == first[-1]


def test_statistics():
    assert iqm(torch.arange(8).numpy()) == pytest.approx(3.5)
    assert iqm(torch.tensor([0.0, 1.0, 1.0, 100.0]).numpy()) == pytest.approx(1.0)
    low, high = mean_interval(torch.randn(400, generator=torch.Generator().manual_seed(0)).numpy())
    assert low < 0 < high
    assert high - low == pytest.approx(4 * 1.0 / 400**0.5, rel=0.15)
    assert mean_interval(np.array([3.0])) == (3, 3)


@pytest.mark.parametrize("seeds", [2, 3, 5, 9, 12])
def test_an_interval_over_seeds_holds_the_mean_as_often_as_it_says(seeds):
    draws = np.random.default_rng(seeds).normal(size=(400, seeds))
    held = np.mean([low <= 0 <= high for low, high in map(mean_interval, draws)])
    assert held > (0.92 if seeds < 10 else 0.86), "the bootstrap is a little narrow still at twelve"


def test_student_quantiles():
    from scipy.stats import t

    assert pytest.approx([t.ppf(0.975, df) for df in range(1, 9)], abs=5e-4) == STUDENT


def test_evaluation_does_not_favour_short_episodes():
    """Lengths 1 or 24 with equal chance; the number of episodes is no multiple of the rows."""
    from framework.agent import Agent
    from framework.evaluator import evaluate
    from plugins.envs.ford import Config, Ford
    from plugins.interpreters.oracle import Oracle
    from plugins.policies.random_walk import RandomWalk

    class Uneven(Ford):
        """An episode whose sentence has an even number ends at once."""

        def step(self, actions):
            ended = self._text % 2 == 0
            self._time = torch.where(ended & (self._time == 0), self.config.steps - 1, self._time)
            return super().step(actions)

    world = Uneven(Config(), rows=64, split="train", seed=0)
    agent = Agent(world, Oracle(None, world.spec), RandomWalk(None, world.spec))
    stream = torch.Generator().manual_seed(0)
    lengths = [evaluate(world, agent, n, 0.99, stream).length.mean().item() for n in (640, 600)]
    assert abs(lengths[0] - lengths[1]) < 0.6
    assert 11 < lengths[0] < 14


def test_safe_reward_is_what_came_before_the_first_violation():
    """Against the steps themselves, gone through one by one. Two constraints: either can be the first to break."""
    from framework.evaluator import evaluate
    from plugins.envs.hazardworld_grid import HazardWorldGrid, HazardWorldGridConfig
    from plugins.interpreters.oracle import Oracle
    from plugins.policies.random_walk import RandomWalk

    steps = []

    class Recorded(HazardWorldGrid):
        def step(self, actions):
            steps.append(now := super().step(actions))
            return now

    config = HazardWorldGridConfig(constraints=2, eval_maps=30, reward=(1.0, 2.0, -3.0))
    world = Recorded(config, rows=6, split="eval", seed=0)
    agent = Agent(world, Oracle(None, world.spec), RandomWalk(None, world.spec))
    found = evaluate(world, agent, 12, 0.99, torch.Generator().manual_seed(0))
    expected = []
    for row in range(6):
        safe, cost, broken, played = 0.0, torch.zeros(2), False, 0
        for now in steps:
            cost = cost + now.cost[row]
            broken = broken or bool((cost > now.threshold[row]).any())
            safe += 0.0 if broken else float(now.reward[row])
            if bool(now.done[row]) and played < 2:
                expected.append((played * 6 + row, safe))
                safe, cost, broken, played = 0.0, torch.zeros(2), False, played + 1
    assert found.safe_reward.tolist() == [safe for _, safe in sorted(expected)]
    assert found.summary()["safe_reward"] == pytest.approx(found.safe_reward.mean().item())
    kept = found.violation == 0
    assert torch.equal(found.safe_reward[kept], found.reward[kept])
    assert not torch.equal(found.safe_reward, found.reward)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("reward", math.nan, "env 'ford' returned a reward that is not finite"),
        ("cost", math.inf, "env 'ford' returned a cost that is not finite"),
        ("threshold", -1.0, r"env 'ford' returned a negative budget \(-1\)"),
    ],
)
def test_an_env_that_hands_out_nonsense_is_named_and_the_policy_stays_as_it_was(column, value, message):
    class Broken(Ford):
        def step(self, actions):
            now = super().step(actions)
            return dataclasses.replace(now, **{column: torch.full_like(getattr(now, column), value)})

    env = Broken(FordConfig(), rows=4, split="train", seed=0)
    catalog = PluginHost().catalog
    policy_cls, oracle = catalog.get("policy", "mlp").cls, catalog.get("interpreter", "oracle").cls(None, env.spec)
    policy = policy_cls(policy_cls.Config(), env.spec)
    before = {name: tensor.clone() for name, tensor in policy.state_dict().items()}
    collector = Collector(env, Agent(env, oracle, policy), Training(steps=960, batch=96, rows=4), torch.Generator())
    with pytest.raises((FloatingPointError, ValueError), match=message):
        collector.collect()
    assert all(torch.equal(before[name], tensor) for name, tensor in policy.state_dict().items())


class Remembers(Oracle):
    """Truth, as ``spoil`` changes what it returns."""

    def initial_state(self, rows):
        return (torch.zeros(rows, 2),)

    def step(self, inputs, state):
        seen, _ = super().step(inputs, ())
        return self.spoil(seen, state)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda seen, state: None, "step must return (Interpretation, state), not NoneType"),
        (lambda seen, state: seen, "step must return (Interpretation, state), not Interpretation"),
        (lambda seen, state: (seen.mask, state), "step must return (Interpretation, state), not ['Tensor', 'tuple']"),
        (lambda seen, state: (dataclasses.replace(seen, mask=seen.mask * math.nan), state), "mask is NaN or infinite"),
        (lambda seen, state: (dataclasses.replace(seen, threshold=seen.threshold / 0), state), "threshold is NaN or"),
        (lambda seen, state: (dataclasses.replace(seen, trespass=seen.threshold * math.nan), state), "trespass is NaN"),
        (
            lambda seen, state: (dataclasses.replace(seen, mask=seen.mask.flatten(1)), state),
            "mask must be a tensor of shape [3, 2, 3], not [3, 6]",
        ),
        (
            lambda seen, state: (dataclasses.replace(seen, threshold=seen.threshold.numpy()), state),
            "threshold must be a tensor of shape [3], not ndarray",
        ),
        (
            lambda seen, state: (dataclasses.replace(seen, mask=seen.mask.double()), state),
            "mask is float64, but must be float32; add .float()",
        ),
        (
            lambda seen, state: (dataclasses.replace(seen, mask=seen.mask > 0.5), state),
            "mask is bool, but must be float32; add .float()",
        ),
        (
            lambda seen, state: (dataclasses.replace(seen, threshold=seen.threshold.long()), state),
            "threshold is int64, but must be float32; add .float()",
        ),
        (
            lambda seen, state: (dataclasses.replace(seen, mask=seen.mask * 0 - 2.5), state),
            "mask has values from -2.5 to -2.5: it must hold probabilities, 0 to 1, not logits",
        ),
        (
            lambda seen, state: (seen, None),
            "step must return a state shaped as initial_state's, [[3, 2]], not NoneType",
        ),
        (lambda seen, state: (seen, ()), "step must return a state shaped as initial_state's, [[3, 2]], not []"),
    ],
)
def test_an_interpreter_that_returns_nonsense_is_named(spoil, message):
    """A mask of NaN would forbid nothing: it must not be taken for a reading."""
    env = Ford(FordConfig(), rows=3, split="train", seed=0)
    host = PluginHost()
    interpreter = Remembers(NoConfig(), env.spec)
    interpreter.spoil = spoil
    policy = host.catalog.get("policy", "mlp").cls
    agent = Agent(env, interpreter, policy(policy.Config(), env.spec))
    with pytest.raises(UserError) as told:
        agent.perceive(env.reset(), agent.fresh_mind(), agent.no_action(), env.labels())
    assert str(told.value).startswith(f"interpreter 'oracle': {message}")
    interpreter.spoil = lambda seen, state: (seen, state)
    agent.perceive(env.reset(), agent.fresh_mind(), agent.no_action(), env.labels())


def test_an_interpreter_must_encode_each_sentence():
    env = Ford(FordConfig(), rows=3, split="train", seed=0)
    interpreter = Oracle(NoConfig(), env.spec)
    interpreter.encode = lambda sentences: torch.zeros(len(sentences) - 1, 4)
    policy = PluginHost().catalog.get("policy", "mlp").cls
    with pytest.raises(UserError, match=r"interpreter 'oracle': encode must return a tensor with one row for each of"):
        Agent(env, interpreter, policy(policy.Config(), env.spec))


def test_a_setting_added_later_does_not_orphan_old_runs():
    """With its default, a new setting names the same run as before there was such a setting; in use, another."""
    from dataclasses import dataclass, field

    from framework.schema import InterpreterLearning, added_later, identity

    @dataclass(frozen=True)
    class Old:
        steps: int = 3
        inner: InterpreterLearning = field(default_factory=InterpreterLearning)

    @dataclass(frozen=True)
    class New(Old):
        form: str = added_later("plain")

    assert identity(New()) == identity(Old())
    assert identity(New(form="fancy")) == identity(Old()) | {"form": "fancy"}
    assert "when" not in identity(Old())["inner"]
    assert identity(Old(inner=InterpreterLearning(when="together")))["inner"]["when"] == "together"
