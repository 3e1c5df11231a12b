"""What trust-region optimizers share: gradients, Fisher products, line search, critics, and a log of promise and fact.

A subclass says which step to take (``direction``). Units: surrogates are means per *step*, so the constraint's
c = J_C - d, which is per episode, is divided by the mean episode length before it meets the gradient of cost.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from framework.interfaces import Distribution, Metrics, PolicyInput, PolicyNet, Rollout, SafeOptimizer, kl
from framework.interfaces.types import flatten, take
from plugins.optimizers._critics import Critics
from plugins.optimizers._fisher import Fisher, join
from plugins.optimizers._shuffle import shuffler
from plugins.optimizers._trust_region import Quadratic, conjugate_gradient


@dataclass(frozen=True)
class NaturalConfig:
    """Settings of every trust-region optimizer."""

    kl_radius: float = 1e-2
    """Trust region delta: mean KL divergence of an update (the paper: 1e-3)."""
    damping: float = 1e-2
    """Added to the Fisher matrix, everywhere."""
    cg_iterations: int = 20
    """Products with the Fisher matrix for each of the two linear systems. Ten, as is usual, leave a residual larger
    than what was to be solved (``cg_residual``), and learning is much slower for it: docs/optimizers.md."""
    fisher_share: float = 0.2
    """Random share of the samples that the Fisher matrix is estimated on."""
    backtracks: int = 12
    """Times that the line search may shrink a step."""
    shrink: float = 0.8
    """By how much."""
    critic_learning_rate: float = 1e-3
    """Adam's step size for the critics."""
    critic_epochs: int = 3
    """Passes of the critics over a rollout."""
    critic_minibatch: int = 1000
    """Steps per gradient step of the critics."""

    def __post_init__(self) -> None:
        for name in ("kl_radius", "critic_learning_rate"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be greater than 0, not {getattr(self, name)}")
        for name in ("cg_iterations", "backtracks", "critic_epochs", "critic_minibatch"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.damping < 0 or not 0 < self.fisher_share <= 1 or not 0 < self.shrink < 1:
            raise ValueError(f"damping must be >= 0, fisher_share in (0, 1] and shrink in (0, 1): {self}")


@dataclass(frozen=True)
class Batch:
    """The decisions of a rollout, flat."""

    inputs: PolicyInput
    action: Tensor  # [B]
    advantage: Tensor  # [B] standardised
    cost_advantage: Tensor  # [B] centred, in cost per step
    target: Tensor  # [B]
    cost_target: Tensor  # [B]
    half: Tensor  # [B] bool: of every other row. What one row meets says nothing of what another meets


class NaturalOptimizer(SafeOptimizer):
    """Base of trpo, pcpo, cpo, trpo_lagrangian and fpo."""

    config: NaturalConfig
    solves_for_cost = False
    """Whether ``direction`` needs H^-1 b, r and s. They cost as much as all the rest of the problem."""

    def __init__(self, config: NaturalConfig, policy: PolicyNet) -> None:
        super().__init__(config, policy)
        self._actor = [p for p in policy.actor_parameters() if p.requires_grad]
        if not self._actor:
            raise ValueError(f"policy '{policy.name}' has no actor parameters to optimise")
        self._critics = Critics(policy, config.critic_learning_rate, config.critic_epochs, config.critic_minibatch)
        self._generator = shuffler("samples")

    @abstractmethod
    def direction(self, problem: Quadratic) -> tuple[Tensor, str]:
        """The step to try, and a word for the case it was."""

    def objective(self, batch: Batch) -> Tensor:
        """[B]: the advantage whose surrogate is maximised."""
        return batch.advantage

    def before(self, rollout: Rollout) -> Metrics:
        """Called first in each update; Lagrangian methods move their multiplier here."""
        return {}

    def looks_twice(self) -> bool:
        """Whether this update also asks what half of the samples promises of the other half (``Quadratic.fair_s``)."""
        return False

    def acceptable(self, case: str, c: float, gain: float, cost_change: float) -> bool:
        """Does the line search take a step with these surrogate changes? KL is checked apart."""
        return gain >= 0

    def update(self, rollout: Rollout) -> Metrics:
        metrics = self.before(rollout)
        batch = _flat(rollout, self._generator)
        c = rollout.violation / rollout.episode_length
        now = self.policy.distribution(batch.inputs)
        old = now.detach()
        goal = self.objective(batch)
        problem, residual = self._problem(batch, now, goal, c)
        step, case = self.direction(problem)
        promised = {  # before the search: afterwards the Fisher product would see the new weights
            "promised_gain": float(problem.g @ step),
            "promised_cost": float(problem.b @ step),
            "promised_kl": 0.5 * float(step @ self._product(step)),
        }
        done = self._search(batch, goal, old, step, case, c)
        metrics |= (
            promised
            | done
            | {
                "violation_per_step": c,
                "cg_residual": residual,
                f"case_{case}": 1.0,
            }
        )
        metrics["value_error"] = self._critics.fit(batch.inputs, batch.target, batch.cost_target)
        self._forget()
        return metrics

    def _problem(self, batch: Batch, now: Distribution, goal: Tensor, c: float) -> tuple[Quadratic, float]:
        # Not rollout.log_prob: it was made row by row and is rounded differently, and the ratio must start at 1.
        log_prob = now.log_prob(batch.action)
        ratio = torch.exp(log_prob - log_prob.detach())
        g = self._gradient((ratio * goal).mean(), keep=True)
        priced = ratio * batch.cost_advantage
        twice = self.looks_twice()
        b = self._gradient(priced.mean(), keep=twice)
        self._prepare_fisher(batch.inputs)
        inverse_g, residual_g = conjugate_gradient(self._product, g, self.config.cg_iterations)
        inverse_b, residual_b = torch.zeros_like(b), 0.0
        if self.solves_for_cost:
            inverse_b, residual_b = conjugate_gradient(self._product, b, self.config.cg_iterations)
        image_g, image_b = self._product(inverse_g), self._product(inverse_b)
        # q and s as w'Hw: never negative, whatever the residual of CG. r as b'w: what the step for reward does to cost.
        q, s, r = float(inverse_g @ image_g), float(inverse_b @ image_b), float(inverse_g @ b)
        fair_s = self._fair_s(priced, batch.half, b) if twice else None
        problem = Quadratic(g, b, inverse_g, inverse_b, q, r, s, c, self.config.kl_radius, fair_s)
        return problem, max(residual_g, residual_b)

    def _fair_s(self, priced: Tensor, half: Tensor, b: Tensor) -> float | None:
        """b1' H^-1 b2, where each half of the rows has its own gradient of cost. None if there is but one row."""
        some, others = int(half.sum()), int((~half).sum())
        if not some or not others:
            return None
        first = self._gradient(priced[half].mean())
        second = ((some + others) * b - some * first) / others
        inverse, _ = conjugate_gradient(self._product, first, self.config.cg_iterations)
        return float(inverse @ second)

    def _prepare_fisher(self, inputs: PolicyInput) -> None:
        some = slice(max(1, int(len(inputs.obs) * self.config.fisher_share)))  # the batch is in random order
        self._fisher: Fisher | None = Fisher(self.policy.distribution(take(inputs, some)), self._actor)

    def _product(self, vector: Tensor) -> Tensor:
        """(Fisher + damping) times a vector."""
        assert self._fisher is not None
        return self._fisher @ vector + self.config.damping * vector

    def _forget(self) -> None:
        self._fisher = None

    def _gradient(self, value: Tensor, keep: bool = False) -> Tensor:
        grads = torch.autograd.grad(value, self._actor, retain_graph=keep, allow_unused=True)
        return join(grads, self._actor).detach()

    @torch.no_grad()
    def _search(self, batch: Batch, goal: Tensor, old: Distribution, step: Tensor, case: str, c: float) -> Metrics:
        """Shrink the step until KL, cost and reward are as they should be; else put the old weights back."""
        start = nn.utils.parameters_to_vector(self._actor)
        share, log_prob = 1.0, old.log_prob(batch.action)
        for _ in range(self.config.backtracks):
            nn.utils.vector_to_parameters(start + share * step, self._actor)
            new = self.policy.distribution(batch.inputs)
            ratio = torch.exp(new.log_prob(batch.action) - log_prob)
            gain = float(((ratio - 1) * goal).mean())
            cost_change = float(((ratio - 1) * batch.cost_advantage).mean())
            divergence = float(kl(old, new).mean())
            finite = all(map(math.isfinite, (gain, cost_change, divergence)))
            if finite and divergence <= self.config.kl_radius and self.acceptable(case, c, gain, cost_change):
                entropy = float(new.entropy().mean())
                return {
                    "gain": gain,
                    "cost_change": cost_change,
                    "kl": divergence,
                    "accepted": share,
                    "entropy": entropy,
                }
            share *= self.config.shrink
        nn.utils.vector_to_parameters(start, self._actor)
        return {"gain": 0.0, "cost_change": 0.0, "kl": 0.0, "accepted": 0.0, "entropy": float(old.entropy().mean())}

    def state_dict(self) -> dict[str, Tensor]:
        tensors = {f"critics.{name}": value for name, value in self._critics.state_dict().items()}
        return tensors | {"generator": self._generator.get_state()}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        self._generator.set_state(state["generator"])
        self._critics.load_state_dict(
            {name.removeprefix("critics."): value for name, value in state.items() if name.startswith("critics.")}
        )


def _flat(rollout: Rollout, stream: torch.Generator) -> Batch:
    """Decisions only, in random order; reward advantages standardised, cost advantages centred and never rescaled."""
    keep = rollout.valid.flatten().nonzero().squeeze(-1)
    keep = keep[torch.randperm(len(keep), generator=stream)]
    columns = (rollout.advantage, rollout.cost_advantage, rollout.value_target, rollout.cost_value_target)
    advantage, cost_advantage, target, cost_target = (column.flatten()[keep] for column in columns)
    return Batch(
        inputs=take(flatten(rollout.inputs), keep),
        action=rollout.action.flatten(0, 1)[keep],
        advantage=(advantage - advantage.mean()) / (advantage.std() + 1e-8),
        cost_advantage=cost_advantage - cost_advantage.mean(),
        target=target,
        cost_target=cost_target,
        half=keep % rollout.valid.shape[1] % 2 == 0,
    )
