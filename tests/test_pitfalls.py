"""The thirteen usual mistakes of safe RL (docs/optimizers.md): a check for each, and proof that the check would see it.

Each pitfall is a pair: a check that must pass on our code, and a mutation that puts the mistake in, under which the
very same check must fail.
"""

from __future__ import annotations

import dataclasses
from functools import partial

import pytest
import torch
from pitfall_steps import (
    a_small_violation_is_mended_within_the_trust_region,
    a_step_that_costs_too_much_is_not_taken,
    a_step_that_is_not_finite_is_not_taken,
    as_ppo_uses_it,
    as_trust_region_methods_use_it,
    clamp_on_an_empty_interval,
    collected,
    cost_advantages_keep_their_units,
    cpo_keeps_the_linearised_constraint,
    cpo_stays_in_the_trust_region_and_is_not_beaten_by_trpo_when_free,
    damping_left_out_of_q_r_s,
    flawed_search,
    mean_of_nothing,
    old_weights_are_back_when_nothing_is_accepted,
    one_budget_for_all,
    pcpo_ends_within_the_trust_region,
    pcpo_takes_the_whole_trust_region_when_the_constraint_is_far,
    plain_gradient_for_the_natural_one,
    s_from_the_unfinished_solution,
    s_is_not_negative_and_the_residual_is_told,
    sign_of_r_from_the_loss_form,
    slack_of_one_episode_does_not_pay_for_another,
    tabular_policy,
    trpo_promises_the_whole_trust_region,
    unit_variance_in_ppo,
    unit_variance_in_trust_region_methods,
    violation_is_a_number_when_no_episode_finished,
    violation_not_divided_by_episode_length,
)
from tabular import STEPS, Tabular
from test_optimizers import made, small_policy

from framework import checkpoint, rollout, stages
from framework.agent import Agent
from framework.interfaces import Categorical, ConstraintInterpreter, Gaussian, Interpretation, PolicyNet, kl
from framework.interfaces.types import flatten, take
from framework.rollout import Collector
from framework.testing.contract import small_env
from plugins.optimizers import _natural, ppo_lagrangian
from plugins.policies.fusion_grid import FusionGrid

# 11. KL(old || new).


def divergence_is_from_old_to_new(kind):
    logits = torch.tensor([[3.0, 0.0, -1.0]]), torch.tensor([[0.0, 1.0, 0.0]])
    mean, spread = (torch.tensor([[0.0]]), torch.tensor([[0.3]])), (torch.tensor([[0.5]]), torch.tensor([[1.5]]))
    if kind is Categorical:
        ours = [Categorical.from_logits(x) for x in logits]
        theirs = [torch.distributions.Categorical(logits=x) for x in logits]
    else:
        ours = [Gaussian(m, s.log()) for m, s in zip(mean, spread, strict=True)]
        theirs = [torch.distributions.Normal(m, s) for m, s in zip(mean, spread, strict=True)]
    expected = torch.distributions.kl_divergence(*theirs).item()
    for module in (_natural, ppo_lagrangian):
        assert module.kl(*ours).item() == pytest.approx(expected, rel=1e-5)


def from_new_to_old(patch):
    for module in (_natural, ppo_lagrangian):
        patch.setattr(module, "kl", lambda old, new: kl(new, old))


# 12. Truncation is not termination, and cost has a discount of its own.


def a_time_limit_is_bootstrapped_by_both_critics():
    env = small_env("ford", rows=3)
    policy = small_policy(env.spec)
    gammas = {"gamma": 0.9, "cost_gamma": 0.6, "gae_lambda": 0.0, "cost_gae_lambda": 0.0}
    batch = collected(env, policy, env.spec.max_steps + 2, **gammas)
    end = env.spec.max_steps - 1  # the step that reaches the limit
    with torch.no_grad():
        last, beyond = (policy.values(take(batch.inputs, t)) for t in (end, end + 1))
    assert not batch.valid[end + 1].any()
    for advantage, now, critic, gamma in (
        (batch.advantage, batch.reward, "reward", 0.9),
        (batch.cost_advantage, batch.cost, "cost", 0.6),
    ):
        expected = now[end] + gamma * getattr(beyond, critic) - getattr(last, critic)
        assert torch.allclose(advantage[end], expected, atol=1e-5)


def the_limit_as_an_end(patch):
    right = rollout.gae
    wrong = lambda reward, value, after, terminated, done, *rest: right(reward, value, after, done, done, *rest)  # noqa: E731
    patch.setattr(rollout, "gae", wrong)


def rewards_discount_for_cost(patch):
    right = rollout.gae
    patch.setattr(rollout, "gae", lambda *a: right(*a[:5], 0.9, a[6]))


# 13. No gradient into a frozen interpreter; all that a policy reads text with is part of theta and of H.


class Learned(ConstraintInterpreter):
    """Has a parameter that its threshold depends on."""

    name = "learned"

    def __init__(self, config, spec):
        super().__init__(config, spec)
        self.weight = torch.nn.Parameter(torch.ones(1))

    def encode(self, sentences):
        return torch.ones(len(sentences), 1) * self.weight

    def step(self, inputs, state):
        mask = torch.zeros(len(inputs.obs), *self.spec.cells)
        return Interpretation(mask, inputs.code[:, 0] * self.weight), state


def the_interpreter_gets_no_gradient(tmp_path):
    env = Tabular(10)
    interpreter, policy = Learned(None, env.spec), tabular_policy()
    checkpoint.save(tmp_path / "learned.safetensors", interpreter.state_dict(), {})
    stages.freeze(interpreter, tmp_path / "learned.safetensors")
    batch = collected(env, policy, STEPS + 1, interpreter)
    inputs = [value for value in vars(batch.inputs).values() if isinstance(value, torch.Tensor)]
    assert not any(value.requires_grad for value in inputs)
    made("ppo_lagrangian", policy).update(batch)
    assert not interpreter.weight.requires_grad
    assert interpreter.weight.grad is None
    assert interpreter.weight.item() == 1


def an_interpreter_that_is_not_frozen(patch):
    patch.setattr(stages, "freeze", lambda interpreter, trained: None)
    patch.setattr(Agent, "perceive", Agent.perceive.__wrapped__)  # what no_grad wraps
    patch.setattr(Collector, "collect", Collector.collect.__wrapped__)


def all_that_reads_is_trained():
    env = small_env("hazardworld_grid", rows=4)
    torch.manual_seed(0)
    policy = FusionGrid(FusionGrid.Config(hidden=(8,), words=4, text=4), env.spec)
    readers = {n: p for n, p in policy.named_parameters() if n.startswith("actor.sentence.")}
    old = {name: p.detach().clone() for name, p in readers.items()}
    optimizer = made("trpo", policy)
    theta = {id(p) for p in optimizer._actor}
    assert len(readers) == 5
    assert all(id(p) in theta for p in readers.values())
    batch = collected(env, policy, steps=20)
    batch = dataclasses.replace(batch, advantage=torch.randn_like(batch.advantage))
    optimizer._prepare_fisher(flatten(batch.inputs))
    ones = torch.ones(sum(p.numel() for p in optimizer._actor))
    curved = (optimizer._product(ones) - optimizer.config.damping * ones).split([p.numel() for p in optimizer._actor])
    assert all(
        part.any() for p, part in zip(optimizer._actor, curved, strict=True) if id(p) in map(id, readers.values())
    )
    assert optimizer.update(batch)["accepted"] > 0
    assert not any(torch.equal(p, old[name]) for name, p in readers.items())


def readers_left_out(patch):
    right = PolicyNet.actor_parameters

    def wrong(self):
        reading = {id(p) for name, p in self.named_parameters() if "lstm" in name or "embedding" in name}
        return (p for p in right(self) if id(p) not in reading)

    patch.setattr(PolicyNet, "actor_parameters", wrong)


PITFALLS = {
    "1 sign of r": (cpo_keeps_the_linearised_constraint, sign_of_r_from_the_loss_form),
    "2 reversed interval": (
        cpo_stays_in_the_trust_region_and_is_not_beaten_by_trpo_when_free,
        clamp_on_an_empty_interval,
    ),
    "3 plain gradient in PCPO": (
        pcpo_takes_the_whole_trust_region_when_the_constraint_is_far,
        plain_gradient_for_the_natural_one,
    ),
    "4 units of c": (a_small_violation_is_mended_within_the_trust_region, violation_not_divided_by_episode_length),
    "5 rescaled cost, trust region": (
        partial(cost_advantages_keep_their_units, as_trust_region_methods_use_it),
        unit_variance_in_trust_region_methods,
    ),
    "5 rescaled cost, ppo": (partial(cost_advantages_keep_their_units, as_ppo_uses_it), unit_variance_in_ppo),
    "6 one budget for all": (slack_of_one_episode_does_not_pay_for_another, one_budget_for_all),
    "7 step that is not finite": (a_step_that_is_not_finite_is_not_taken, partial(flawed_search, finite=False)),
    "7 old weights lost": (old_weights_are_back_when_nothing_is_accepted, partial(flawed_search, restore=False)),
    "7 cost ignored, cpo": (
        partial(a_step_that_costs_too_much_is_not_taken, "cpo"),
        partial(flawed_search, cost=False),
    ),
    "7 cost ignored, pcpo": (
        partial(a_step_that_costs_too_much_is_not_taken, "pcpo"),
        partial(flawed_search, cost=False),
    ),
    "8 no backtracking on KL": (pcpo_ends_within_the_trust_region, partial(flawed_search, divergence=False)),
    "9 no finished episode": (violation_is_a_number_when_no_episode_finished, mean_of_nothing),
    "10 damping left out": (trpo_promises_the_whole_trust_region, damping_left_out_of_q_r_s),
    "10 negative s": (s_is_not_negative_and_the_residual_is_told, s_from_the_unfinished_solution),
    "11 reversed KL, categorical": (partial(divergence_is_from_old_to_new, Categorical), from_new_to_old),
    "11 reversed KL, normal": (partial(divergence_is_from_old_to_new, Gaussian), from_new_to_old),
    "12 time limit as an end": (a_time_limit_is_bootstrapped_by_both_critics, the_limit_as_an_end),
    "12 reward's discount for cost": (a_time_limit_is_bootstrapped_by_both_critics, rewards_discount_for_cost),
    "13 gradient into the interpreter": (the_interpreter_gets_no_gradient, an_interpreter_that_is_not_frozen),
    "13 reader left out of theta": (all_that_reads_is_trained, readers_left_out),
}


def run(check, tmp_path):
    return check(tmp_path) if check is the_interpreter_gets_no_gradient else check()


@pytest.mark.parametrize("pitfall", PITFALLS)
def test_our_code_does_it_right(pitfall, tmp_path):
    run(PITFALLS[pitfall][0], tmp_path)


@pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad")
@pytest.mark.parametrize("pitfall", PITFALLS)
def test_the_check_sees_the_mistake(pitfall, tmp_path, monkeypatch):
    check, mutation = PITFALLS[pitfall]
    mutation(monkeypatch)
    with pytest.raises(AssertionError):
        run(check, tmp_path)


@pytest.mark.parametrize("pitfall", [name for name in PITFALLS if name.startswith(("7", "8"))])
def test_the_line_search_of_the_mutations_is_right_but_for_its_flaw(pitfall, monkeypatch):
    flawed_search(monkeypatch)
    PITFALLS[pitfall][0]()


def test_every_pitfall_is_here():
    assert {int(name.split()[0]) for name in PITFALLS} == set(range(1, 14))
