"""The books of a rollout, against numbers worked out by hand: advantages, ledger, tally."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from tabular import Tabular

from framework.advantages import gae
from framework.agent import Agent
from framework.interfaces import Interpretation, Timestep
from framework.ledger import PLAIN, Ledger, Reckoning
from framework.rollout import Collector
from framework.schema import Training
from framework.tally import Tally
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
