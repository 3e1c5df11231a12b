"""The bookkeeping, against numbers worked out by hand."""

from __future__ import annotations

import dataclasses
import math
import random

import numpy as np
import pytest
import torch
from tabular import Tabular

from framework.advantages import gae
from framework.agent import Agent
from framework.errors import UserError
from framework.interfaces import Categorical, Gaussian, Interpretation, NoConfig, Timestep, kl
from framework.ledger import PLAIN, Ledger, Reckoning
from framework.plugin_manager import PluginHost
from framework.rollout import Collector
from framework.schema import Training
from framework.seeding import derive, global_streams, seed_everything, set_global_streams
from framework.stats import STUDENT, iqm, mean_interval
from framework.tally import Tally
from plugins.envs.ford import Config as FordConfig
from plugins.envs.ford import Ford
from plugins.interpreters.oracle import Oracle
from plugins.policies.mlp import MLP
from plugins.policies.mlp import Config as MLPConfig


def column(*values):
    return torch.tensor(values, dtype=torch.float64)[:, None]


def test_gae_by_hand_with_a_truncation_in_the_middle():
    """Four steps of one row: the episode is cut off by the time limit after the second."""
    reward, value = column(1, 2, 3, 4), column(10, 20, 30, 40)
    next_value = column(20, 25, 40, 50)  # 25: value of the observation at which the limit struck
    done = torch.tensor([[False], [True], [False], [False]])
    terminated = torch.zeros_like(done)
    advantage, target = gae(reward, value, next_value, terminated, done, gamma=0.5, lam=0.5)
    d = [1 + 0.5 * 20 - 10, 2 + 0.5 * 25 - 20, 3 + 0.5 * 40 - 30, 4 + 0.5 * 50 - 40]
    expected = column(d[0] + 0.25 * d[1], d[1], d[2] + 0.25 * d[3], d[3])
    assert torch.allclose(advantage, expected)
    assert torch.allclose(target, expected + value)


def test_gae_termination_does_not_bootstrap():
    advantage, _ = gae(
        column(1), column(5), column(99), torch.tensor([[True]]), torch.tensor([[True]]), gamma=0.9, lam=0.9
    )
    assert advantage.item() == pytest.approx(1 - 5)


def ledger_of(mask, threshold, spent=0.0):
    books = Ledger.empty(1, 1, (3,))
    seen = Interpretation(torch.tensor([mask], dtype=torch.float32), torch.tensor([threshold]))
    books = books.observe(seen, torch.tensor([False]), PLAIN)
    return dataclasses.replace(books, spent=books.spent + spent)


def test_ledger_charges_what_was_forbidden_before_the_move():
    books = ledger_of([0.9, 0.1, 0.0], 1.0)
    entered = torch.tensor([[True, False, False]])
    books = books.charge(entered)
    assert (books.cost.item(), books.excess.item(), books.spent.item()) == (1, 0, 1), (
        "the first entry is within the budget"
    )
    books = books.charge(entered)
    assert (books.cost.item(), books.excess.item(), books.spent.item()) == (1, 1, 2), "the second is past it"
    books = books.charge(torch.tensor([[False, True, False]]))
    assert (books.cost.item(), books.excess.item(), books.spent.item()) == (0, 0, 2), "a permitted cell costs nothing"


def test_ledger_charges_what_is_seen_only_now_and_charges_it_once():
    books = ledger_of([1.0, 0.0, 0.0], 0.0)
    permitted, forbidden = torch.tensor([[False, True, False]]), torch.tensor([[True, False, False]])
    late = torch.tensor([[True]])
    assert books.charge(permitted, late).cost.item() == 1, "the mask before the move did not show it"
    assert books.charge(permitted, late).excess.item() == 1
    assert books.charge(forbidden, late).cost.item() == 1, "the mask did: it is one cost, not two"
    assert books.charge(permitted, ~late).cost.item() == 0


def test_budget_mask_is_the_papers():
    mask, budget, threshold = ledger_of([1.0, 0.0, 1.0], 2.0, spent=3.0).combined()
    assert mask.tolist() == [[1, 0, 1]]
    assert budget.tolist() == [[1, 0, 1]]  # (3 - 2) on forbidden cells, 0 elsewhere
    assert threshold.tolist() == [2]


def test_of_several_budgets_the_tightest_counts_cell_by_cell():
    books = Ledger.empty(1, 2, (3,))
    seen = Interpretation(torch.tensor([[1.0, 0, 0], [1.0, 1, 0]]), torch.tensor([3.0, 1.0]))
    books = books.observe(seen, torch.tensor([False]), PLAIN)
    mask, budget, threshold = books.combined()
    assert mask.tolist() == [[2, 1, 0]]
    assert budget.tolist() == [[-1, -1, 0]], "the slack of the first must not hide that the second has one entry left"
    assert threshold.tolist() == [1]
    books = books.charge(torch.tensor([[True, False, False]]))
    assert books.cost.tolist() == [[1, 1]]
    assert books.excess.tolist() == [[0, 0]]


@pytest.mark.parametrize(("rounding", "whole"), [("nearest", 2.0), ("floor", 1.0)])
def test_threshold_is_rounded(rounding, whole):
    seen = Interpretation(torch.zeros(1, 3), torch.tensor([1.7]))
    books = Ledger.empty(1, 1, (3,)).observe(seen, torch.tensor([False]), Reckoning(rounding))
    assert books.threshold.item() == whole


@pytest.mark.parametrize(("forbid_from", "mask"), [(0.5, [0, 0, 1]), (0.1, [0, 1, 1])])
def test_from_which_probability_on_a_cell_is_forbidden(forbid_from, mask):
    seen = Interpretation(torch.tensor([[0.05, 0.3, 0.9]]), torch.zeros(1))
    books = Ledger.empty(1, 1, (3,)).observe(seen, torch.tensor([False]), Reckoning(forbid_from=forbid_from))
    assert books.mask[0, 0].tolist() == mask


def test_books_are_empty_at_the_start_of_an_episode():
    books = ledger_of([1.0, 0, 0], 1.0, spent=5.0)
    seen = Interpretation(torch.zeros(1, 3), torch.zeros(1))
    assert books.observe(seen, torch.tensor([True]), PLAIN).spent.item() == 0
    assert books.observe(seen, torch.tensor([False]), PLAIN).spent.item() == 5


def step(reward, cost, done, threshold=1.0):
    n = len(reward)
    return Timestep(
        obs=torch.zeros(n, 1),
        text=torch.zeros(n, 1, dtype=torch.int64),
        reward=torch.tensor(reward),
        cost=torch.tensor(cost)[:, None],
        threshold=torch.full((n, 1), threshold),
        kind=torch.zeros(n, 1, dtype=torch.int64),
        touched=torch.zeros(n, 1, dtype=torch.bool),
        terminated=torch.tensor(done),
        truncated=torch.zeros(n, dtype=torch.bool),
        episode_start=torch.zeros(n, dtype=torch.bool),
    )


def test_tally_counts_whole_episodes_only():
    tally, one = Tally.empty(2, 1), torch.ones(2, 1)
    valid = torch.tensor([True, True])
    tally.start_batch()
    tally.add(step([1.0, 5.0], [1.0, 0.0], [False, False]), one, one * 0, one, valid)
    tally.add(step([2.0, 5.0], [1.0, 0.0], [True, False]), one, one, one, valid)
    episodes = tally.episodes()
    assert episodes.reward.tolist() == [3]
    assert episodes.length.tolist() == [2]
    assert episodes.violation.tolist() == [1]
    assert tally.violation("excess")[::2] == (1.0, 2.0)
    assert tally.violation("mean") == (1.0, 0.0, 2.0)  # predicted 2 - budget 1; one episode has no spread
    tally.add(step([9.0, 1.0], [9.0, 0.0], [False, True]), one, one, one, torch.tensor([False, True]))
    assert tally.reward.tolist() == [0, 0], "the step that starts an episode does not count"
    assert tally.episodes().reward.tolist() == [3, 11]
    assert tally.violation("excess")[:2] == pytest.approx((1.5, 0.5)), "of 1 and 2: mean and standard error"


def test_excess_is_counted_in_all_steps_of_a_batch_and_not_in_finished_episodes_alone():
    """One of two rows has finished, in luck: 0 in 2 steps. The other is at 1 a step."""
    tally, one, valid = Tally.empty(2, 1), torch.ones(2, 1), torch.tensor([True, True])
    tally.start_batch()
    unlucky = torch.tensor([[0.0], [1.0]])
    tally.add(step([0.0, 0.0], [0.0, 1.0], [False, False]), one, unlucky, one, valid)
    tally.add(step([0.0, 0.0], [0.0, 1.0], [True, False]), one, unlucky, one, valid)
    assert tally.violation("excess")[::2] == (1.0, 2.0), "half a cost a step, two steps an episode"
    tally.start_batch()
    assert tally.violation("excess")[0] == 0, "a new batch counts anew"


def test_tolerance_is_what_may_be_left():
    env = Tabular(20)
    spec, policy = env.spec, MLP(MLPConfig(), env.spec)

    def violation(**settings):
        training = Training(steps=220, batch=220, rows=20, **settings)
        env = Tabular(20)
        agent = Agent(env, Oracle(None, spec), policy)
        return Collector(env, agent, training, torch.Generator().manual_seed(0)).collect().violation

    assert violation(tolerance=0.25) == pytest.approx(violation() - 0.25)


def test_violation_without_finished_episodes_is_a_number():
    tally, one = Tally.empty(2, 1), torch.ones(2, 1)
    tally.start_batch()
    assert tally.violation("excess")[::2] == (0.0, 1.0)
    tally.add(step([1.0, 5.0], [1.0, 0.0], [False, False]), one, one, one, torch.tensor([True, True]))
    assert tally.violation("excess")[::2] == (1.0, 1.0)


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
