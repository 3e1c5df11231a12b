"""Collects rollouts: T steps of N environments, with predicted costs, values and advantages."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import torch
from torch import Tensor

from framework.advantages import gae
from framework.agent import Agent, Mind, labels_for
from framework.interfaces import ConstraintEnv, PolicyInput, Rollout, Timestep, Values
from framework.interfaces.types import flatten, stack, take
from framework.resume import named, pack, part, unpack
from framework.schema import Training
from framework.tally import Tally


class Collector:
    """Keeps the environments going from one rollout to the next."""

    def __init__(self, env: ConstraintEnv, agent: Agent, training: Training, generator: torch.Generator) -> None:
        self.env, self.agent, self.training, self.generator = env, agent, training, generator
        self.watch: Callable[[Timestep], None] | None = None
        """Told of each step before it is taken, while the env still has the truth about it."""
        self.tally = Tally.empty(env.rows, env.spec.constraints)
        self.now = env.reset()
        self.inputs, self.mind = self._perceive(self.now, agent.fresh_mind(), agent.no_action())

    def state(self) -> dict[str, Tensor]:
        """What was seen last and what the agent carries along, for a checkpoint."""
        carried = pack(self.now, "now") | pack(self.inputs, "inputs") | pack(self.mind, "mind")
        return carried | named("tally", self.tally.tensors()) | {"actions": self.generator.get_state()}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Undo of ``state``; the env is restored by itself."""
        self.now = unpack(self.now, tensors, "now")
        self.inputs = unpack(self.inputs, tensors, "inputs")
        self.mind = unpack(self.mind, tensors, "mind")
        self.tally = Tally(**part("tally", tensors))
        self.generator.set_state(tensors["actions"])

    def _perceive(self, now: Timestep, mind: Mind, last_action: Tensor) -> tuple[PolicyInput, Mind]:
        labels = labels_for(self.agent.interpreter, self.env)
        if labels is not None and now.final_obs is not None:
            labels = dataclasses.replace(labels, threshold=now.threshold)  # the old episode's, for its last observation
        return self.agent.perceive(now, mind, last_action, labels)

    @torch.no_grad()
    def collect(self) -> Rollout:
        """``batch`` steps in all. Rows go on where they were; an episode may span two rollouts."""
        policy = self.agent.policy
        inputs, actions, log_probs, rewards, costs, ends, valids = [], [], [], [], [], [], []
        finals: list[tuple[int, Tensor, PolicyInput]] = []
        self.tally.start_batch()
        for t in range(self.training.batch // self.env.rows):
            distribution = policy.distribution(self.inputs)
            action = distribution.sample(self.generator)
            if self.watch:
                self.watch(self.now)
            inputs.append(self.inputs)
            log_probs.append(distribution.log_prob(action))
            valids.append(~self.now.done if self.now.final_obs is None else torch.ones_like(self.now.done))
            before, self.now = self.now, self.env.step(action)
            check_sane(self.now, self.env)
            last, mind = last_of_episode(self.now, before), self.mind
            if self.now.final_obs is not None and bool(self.now.truncated.any()):
                finals.append((t, self.now.truncated, self._perceive(last, mind, action)[0]))
            self.inputs, self.mind = self._perceive(self.now, mind, action)
            predicted, excess = self.mind.ledger.cost, self.mind.ledger.excess
            self.tally.add(last, predicted, excess, mind.ledger.threshold, valids[-1])
            actions.append(action)
            rewards.append(self.now.reward)
            costs.append((excess if self.training.constraint == "excess" else predicted).sum(-1))
            ends.append((self.now.terminated, self.now.truncated))
        return self._rollout(stack([*inputs, self.inputs]), actions, log_probs, rewards, costs, ends, valids, finals)

    def _rollout(
        self,
        inputs: PolicyInput,  # [T + 1, N]
        actions: list[Tensor],
        log_probs: list[Tensor],
        rewards: list[Tensor],
        costs: list[Tensor],
        ends: list[tuple[Tensor, Tensor]],
        valids: list[Tensor],
        finals: list[tuple[int, Tensor, PolicyInput]],
    ) -> Rollout:
        training, policy = self.training, self.agent.policy
        values = policy.values(flatten(inputs))
        value, cost_value = (v.view(len(rewards) + 1, -1) for v in (values.reward, values.cost))
        next_value, next_cost_value = value[1:].clone(), cost_value[1:].clone()
        for t, rows, final_inputs in finals:  # rows that were reset within the step
            final: Values = policy.values(final_inputs)
            next_value[t] = torch.where(rows, final.reward, next_value[t])
            next_cost_value[t] = torch.where(rows, final.cost, next_cost_value[t])
        terminated, truncated = torch.stack([e[0] for e in ends]), torch.stack([e[1] for e in ends])
        done = terminated | truncated
        reward, cost, action, valid = (torch.stack(x) for x in (rewards, costs, actions, valids))
        advantage, target = gae(reward, value[:-1], next_value, terminated, done, training.gamma, training.gae_lambda)
        cost_advantage, cost_target = gae(
            cost, cost_value[:-1], next_cost_value, terminated, done, training.cost_gamma, training.cost_gae_lambda
        )
        left = take(inputs, slice(None, -1))
        violation, error, length = self.tally.violation(training.constraint)
        return Rollout(
            inputs=left,
            action=action,
            log_prob=torch.stack(log_probs),
            reward=reward,
            cost=cost,
            valid=valid,
            advantage=advantage,
            cost_advantage=cost_advantage,
            value_target=target,
            cost_value_target=cost_target,
            violation=violation - training.tolerance,
            episode_length=length,
            violation_error=error,
        )


def last_of_episode(now: Timestep, before: Timestep) -> Timestep:
    """``now`` as it was before rows were reset within the step: all of it is of the same episode as ``before``."""
    if now.final_obs is None:
        return now
    return dataclasses.replace(
        now,
        obs=now.final_obs,
        text=before.text,
        threshold=before.threshold,
        kind=before.kind,
        episode_start=torch.zeros_like(now.episode_start),
    )


def check_sane(now: Timestep, env: ConstraintEnv) -> None:
    """An environment that hands out NaN, infinity or a negative budget is named before it spoils the weights."""
    for name in ("reward", "cost", "threshold"):
        if not bool(torch.isfinite(getattr(now, name)).all()):
            raise FloatingPointError(f"env '{env.name}' returned a {name} that is not finite")
    if bool((now.threshold < 0).any()):
        raise ValueError(f"env '{env.name}' returned a negative budget ({float(now.threshold.min()):g})")
