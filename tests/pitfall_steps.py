"""The usual mistakes in a step and its line search (1 to 10): checks, and mutations that put each mistake in."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch
from tabular import STEPS, Tabular
from test_optimizers import bits, made, rollout_of, small_policy
from test_trust_region import problem

from framework.agent import Agent
from framework.interfaces import kl
from framework.interfaces.types import flatten, take
from framework.rollout import Collector
from framework.schema import Training
from framework.tally import Tally
from plugins.interpreters.oracle import Oracle
from plugins.optimizers import _natural, _trust_region, pcpo, ppo_lagrangian
from plugins.optimizers._natural import NaturalOptimizer


def problems(count, seed=0):
    rng = np.random.default_rng(seed)
    return [problem(rng) for _ in range(count)]


def tabular_policy():
    return small_policy(Tabular(1).spec)


def collected(env, policy, steps, interpreter=None, **training):
    agent = Agent(env, interpreter or Oracle(None, env.spec), policy)
    settings = Training(steps=steps * env.rows, batch=steps * env.rows, rows=env.rows, **training)
    return Collector(env, agent, settings, torch.Generator().manual_seed(0)).collect()


def changes(policy, batch, old):
    """Mean KL(old || policy) and change of the cost surrogate, worked out without the optimizer's help."""
    keep = batch.valid.flatten()
    with torch.no_grad():
        new = policy.distribution(take(flatten(batch.inputs), keep))
    theirs = [torch.distributions.Categorical(logits=d.log_probs) for d in (old, new)]
    ratio = torch.exp(new.log_prob(batch.action.flatten()[keep]) - batch.log_prob.flatten()[keep])
    cost = batch.cost_advantage.flatten()[keep]
    return (
        float(torch.distributions.kl_divergence(*theirs).mean()),
        float(((ratio - 1) * (cost - cost.mean())).mean()),
    )


def before(policy, batch):
    with torch.no_grad():
        return policy.distribution(take(flatten(batch.inputs), batch.valid.flatten()))


# 1. The sign of r, with g as ascent direction.


def cpo_keeps_the_linearised_constraint():
    for p, _ in problems(300):
        step, case = _trust_region.cpo_step(p)
        assert case == "recovery" or float(p.b @ step) + p.c <= 1e-6 * (1 + abs(p.c))


def sign_of_r_from_the_loss_form(patch):
    right = _trust_region._dual
    patch.setattr(_trust_region, "_dual", lambda q, r, *rest: right(q, -r, *rest))


# 2. A clamp onto an interval whose upper end is below its lower one.


def cpo_stays_in_the_trust_region_and_is_not_beaten_by_trpo_when_free():
    for p, h in problems(300):
        step, case = _trust_region.cpo_step(p)
        x = step.numpy()
        assert x @ h @ x / 2 <= p.delta * (1 + 1e-6)
        assert case != "free" or float(p.g @ step) == pytest.approx(float(p.g @ _trust_region.trpo_step(p)))


def clamp_on_an_empty_interval(patch):
    def dual(q, r, s, c, delta, room):
        split = -r / c
        ends = ((split, math.inf), (0.0, split)) if c > 0 else ((0.0, split), (split, math.inf))
        shear, found = max(0.0, q - r * r / s), []
        for (low, high), best in zip(ends, (math.sqrt(shear / room), math.sqrt(q / (2 * delta))), strict=True):
            found.append(float(torch.clamp(torch.tensor(best), low, high)))  # of an empty interval: the upper end
        priced, unpriced = found
        values = (shear / (2 * priced) + priced * room / 2 - r * c / s, q / (2 * unpriced) + unpriced * delta)
        best = found[int(values[1] < values[0])]
        return best, max(0.0, (best * c + r) / s)

    patch.setattr(_trust_region, "_dual", dual)


# 3. PCPO's reward step is the natural gradient.


def pcpo_takes_the_whole_trust_region_when_the_constraint_is_far():
    for p, h in problems(100):
        free = dataclasses.replace(p, c=-1e9)
        step = pcpo.pcpo_within(free)[0].numpy()
        assert step @ h @ step / 2 == pytest.approx(p.delta)
        assert p.g.numpy() @ step == pytest.approx(math.sqrt(2 * p.delta * p.q))


def plain_gradient_for_the_natural_one(patch):
    right = pcpo.pcpo_within
    patch.setattr(pcpo, "pcpo_within", lambda p: right(dataclasses.replace(p, inverse_g=p.g)))


# 4. c per episode, b per step.


def a_small_violation_is_mended_within_the_trust_region():
    policy = tabular_policy()
    batch = dataclasses.replace(rollout_of(policy), violation=0.1, episode_length=float(STEPS))
    metrics = made("cpo", policy, fisher_share=1.0, cg_iterations=30, promises="sampled").update(batch)
    assert "case_recovery" not in metrics
    assert metrics["promised_cost"] == pytest.approx(-0.1 / STEPS, rel=1e-2)


def violation_not_divided_by_episode_length(patch):
    right = NaturalOptimizer.update
    wrong = lambda self, r: right(self, dataclasses.replace(r, violation=r.violation * r.episode_length))  # noqa: E731
    patch.setattr(NaturalOptimizer, "update", wrong)


# 5. Cost advantages are centred, never rescaled.


def cost_advantages_keep_their_units(of):
    """``of`` gives the cost advantage as an optimizer uses it: ten times the cost is ten times the advantage."""
    batch = rollout_of(tabular_policy())
    dear = dataclasses.replace(batch, cost_advantage=10 * batch.cost_advantage)
    one, ten = of(batch), of(dear)
    assert one.mean().item() == pytest.approx(0, abs=1e-5)
    assert torch.allclose(ten, 10 * one, rtol=1e-4, atol=1e-5)


def as_trust_region_methods_use_it(batch):
    return _natural._flat(batch, torch.Generator().manual_seed(0)).cost_advantage


def as_ppo_uses_it(batch):
    keep = batch.valid.flatten()
    optimizer = made("ppo_lagrangian", tabular_policy(), multiplier=1.0)
    cost = batch.cost_advantage.flatten()[keep]
    return -2 * optimizer._advantage(torch.zeros_like(cost), cost)  # (0 - 1 * cost) / (1 + 1)


def unit_variance_in_trust_region_methods(patch):
    right = _natural._flat

    def flat(batch, stream):
        out = right(batch, stream)
        return dataclasses.replace(out, cost_advantage=out.cost_advantage / (out.cost_advantage.std() + 1e-8))

    patch.setattr(_natural, "_flat", flat)


def unit_variance_in_ppo(patch):
    right = ppo_lagrangian.PPOLagrangian._advantage
    wrong = lambda self, reward, cost: right(self, reward, (cost - cost.mean()) / (cost.std() + 1e-8))  # noqa: E731
    patch.setattr(ppo_lagrangian.PPOLagrangian, "_advantage", wrong)


# 6. Every episode has a budget of its own.


def slack_of_one_episode_does_not_pay_for_another():
    """Costs 2 and 1 with budgets 0 and 3: on average within the budget, and yet one episode is two over."""
    tally = Tally.empty(2, 1)
    tally._finished = [
        {
            "excess": torch.tensor([[2.0], [0.0]]),
            "predicted": torch.tensor([[2.0], [1.0]]),
            "predicted_threshold": torch.tensor([[0.0], [3.0]]),
            "length": torch.tensor([5.0, 5.0]),
        }
    ]
    tally._excess, tally._steps = 2.0, 10
    assert tally.violation("excess")[::2] == (1.0, 5.0)
    assert tally.violation("mean")[::2] == (0.0, 5.0)


def one_budget_for_all(patch):
    def violation(self, form):
        cost, budget = self._column("predicted").mean(), self._column("predicted_threshold").mean()
        return max(0.0, float(cost - budget)), 0.0, float(self._column("length").mean())

    patch.setattr(Tally, "violation", violation)


# 7 and 8. The line search.


def flawed_search(patch, finite=True, restore=True, cost=True, divergence=True):
    """A line search with the mistake that is switched on by a False."""

    @torch.no_grad()
    def search(self, batch, goal, old, step, case, c):
        start = torch.nn.utils.parameters_to_vector(self._actor)
        share = 1.0
        for _ in range(self.config.backtracks):
            torch.nn.utils.vector_to_parameters(start + share * step, self._actor)
            new = self.policy.distribution(batch.inputs)
            ratio = torch.exp(new.log_prob(batch.action) - old.log_prob(batch.action))
            gain = float(((ratio - 1) * goal).mean())
            rise = float(((ratio - 1) * batch.cost_advantage).mean()) if cost else -math.inf
            distance = float(kl(old, new).mean()) if divergence else 0.0
            if not finite and not math.isfinite(distance):
                distance, gain, rise = 0.0, 0.0, 0.0  # NaN > radius is False, and so it passed
            if distance <= self.config.kl_radius and self.acceptable(case, c, gain, rise):
                return {"accepted": share}
            share *= self.config.shrink
        if restore:
            torch.nn.utils.vector_to_parameters(start, self._actor)
        return {"accepted": 0.0}

    patch.setattr(NaturalOptimizer, "_search", search)


def a_step_that_is_not_finite_is_not_taken():
    policy = tabular_policy()
    batch, optimizer, old = rollout_of(policy), made("trpo", policy), bits(policy.actor_parameters())
    optimizer.direction = lambda p: (p.g * math.nan, "free")
    metrics = optimizer.update(batch)
    assert metrics["accepted"] == 0
    assert all(map(torch.equal, old, policy.actor_parameters()))


def old_weights_are_back_when_nothing_is_accepted():
    policy = tabular_policy()
    batch, optimizer, old = rollout_of(policy), made("trpo", policy), bits(policy.actor_parameters())
    optimizer.acceptable = lambda *_: False
    optimizer.update(batch)
    assert all(map(torch.equal, old, policy.actor_parameters()))


def a_step_that_costs_too_much_is_not_taken(name):
    """No slack at all (c = 0), and a direction for reward alone; in this world reward and cost rise together."""
    policy = tabular_policy()
    batch = dataclasses.replace(rollout_of(policy), violation=0.0)
    optimizer, old = made(name, policy), before(policy, batch)
    optimizer.direction = lambda p: (_trust_region.trpo_step(p), "free")
    optimizer.update(batch)
    assert changes(policy, batch, old)[1] <= 1e-7


def pcpo_ends_within_the_trust_region():
    for seed in range(4):
        policy = tabular_policy()
        batch = dataclasses.replace(rollout_of(policy, seed=seed), violation=2.0)
        rough = {"fisher_share": 0.1, "cg_iterations": 10}  # so that the first step overshoots
        optimizer, old = made("pcpo", policy, kl_radius=0.03, **rough), before(policy, batch)
        assert optimizer.update(batch)["accepted"] > 0
        assert changes(policy, batch, old)[0] <= 0.03 * (1 + 1e-3)


# 9. A batch in which no episode finished.


def violation_is_a_number_when_no_episode_finished():
    batch = collected(Tabular(10), tabular_policy(), steps=STEPS // 2)
    assert math.isfinite(batch.violation)
    assert batch.episode_length >= 1


def mean_of_nothing(patch):
    def violation(self, form):
        return float(self._column("excess").mean()), 0.0, float(self._column("length").mean())

    patch.setattr(Tally, "violation", violation)


# 10. Damping is part of H everywhere, and s is not negative whatever CG left over.


def trpo_promises_the_whole_trust_region():
    """With heavy damping it would promise more than that if q lacked it."""
    policy = tabular_policy()
    metrics = made("trpo", policy, damping=1.0, cg_iterations=30).update(rollout_of(policy))
    assert metrics["promised_kl"] == pytest.approx(1e-2, rel=1e-3)


def damping_left_out_of_q_r_s(patch):
    right = NaturalOptimizer._problem

    def wrong(self, *arguments):
        p, residual = right(self, *arguments)
        bare = [self._product(w) - self.config.damping * w for w in (p.inverse_g, p.inverse_b)]
        q, r, s = (float(a @ b) for a, b in ((p.inverse_g, bare[0]), (p.inverse_g, bare[1]), (p.inverse_b, bare[1])))
        return dataclasses.replace(p, q=q, r=r, s=s), residual

    patch.setattr(NaturalOptimizer, "_problem", wrong)


def s_is_not_negative_and_the_residual_is_told():
    """CG is stopped far too early, in the worst way: what it returns points away from the solution."""
    policy, seen = tabular_policy(), []
    batch, optimizer = rollout_of(policy), made("cpo", policy)
    optimizer.direction = lambda p: (seen.append(p) or torch.zeros_like(p.g), "free")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(_natural, "conjugate_gradient", lambda product, target, *_: (-0.1 * target, 0.97))
        assert optimizer.update(batch)["cg_residual"] == 0.97
    assert seen[0].q >= 0
    assert seen[0].s >= 0
    rough, fine = (made("trpo", policy, cg_iterations=n).update(batch)["cg_residual"] for n in (1, 30))
    assert fine < 1e-3 < rough


def s_from_the_unfinished_solution(patch):
    right = NaturalOptimizer._problem

    def wrong(self, *arguments):
        p, residual = right(self, *arguments)
        q, r, s = (float(x) for x in (p.g @ p.inverse_g, p.g @ p.inverse_b, p.b @ p.inverse_b))
        return dataclasses.replace(p, q=q, r=r, s=s), residual

    patch.setattr(NaturalOptimizer, "_problem", wrong)
