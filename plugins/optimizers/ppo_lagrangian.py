"""PPO-Lagrangian (Ray, Achiam and Amodei, 2019): clipped policy gradient on reward minus a learned price of cost.

    maximise   E[ min(rho A, clip(rho, 1 - eps, 1 + eps) A) ],    A = (A_R - lambda A_C) / (1 + lambda)
    lambda follows c = J_C - d per episode, see _multiplier.py

The division by 1 + lambda keeps the size of the step when the price rises. Reward advantages are standardised. Cost
advantages are centred but never rescaled: once the constraint holds they are small, and blowing them up to unit size
would turn noise into a signal.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from framework.hookspecs import hookimpl
from framework.interfaces import Metrics, PolicyNet, Rollout, SafeOptimizer, adam_tensors, kl, load_adam_tensors
from framework.interfaces.types import flatten, take
from plugins.optimizers._multiplier import Multiplier, MultiplierConfig
from plugins.optimizers._shuffle import shuffler


@dataclass(frozen=True)
class Config(MultiplierConfig):
    """Settings of PPO-Lagrangian."""

    learning_rate: float = 3e-4
    """Adam's step size for actor and critics."""
    epochs: int = 8
    """Passes over a rollout."""
    minibatch: int = 500
    """Steps per gradient step."""
    clip: float = 0.2
    """How far the probability ratio may leave 1."""
    kl_stop: float = 0.03
    """End the passes early once the mean KL divergence is past this."""
    entropy: float = 0.0
    """Bonus for a spread-out policy."""
    max_grad_norm: float = 0.5
    """Gradient clipping."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("learning_rate", "clip", "kl_stop", "max_grad_norm"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be greater than 0, not {getattr(self, name)}")
        for name in ("epochs", "minibatch"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.entropy < 0:
            raise ValueError(f"entropy must be at least 0, not {self.entropy}")


class PPOLagrangian(SafeOptimizer):
    """Clipped policy gradient with a learned price of cost."""

    name = "ppo_lagrangian"
    Config = Config
    config: Config

    def __init__(self, config: Config, policy: PolicyNet) -> None:
        super().__init__(config, policy)
        self.multiplier = Multiplier(config)
        self._adam = torch.optim.Adam(policy.parameters(), lr=config.learning_rate)
        self._generator = shuffler("samples")

    def update(self, rollout: Rollout) -> Metrics:
        config = self.config
        price = self.multiplier.move(rollout.violation)
        keep = rollout.valid.flatten().nonzero().squeeze(-1)
        inputs = take(flatten(rollout.inputs), keep)
        action, old_log_prob, target, cost_target = (
            x.flatten(0, 1)[keep]
            for x in (rollout.action, rollout.log_prob, rollout.value_target, rollout.cost_value_target)
        )
        advantage = self._advantage(rollout.advantage.flatten()[keep], rollout.cost_advantage.flatten()[keep])
        with torch.no_grad():
            old = self.policy.distribution(inputs)
        steps = 0
        for _ in range(config.epochs):
            order = torch.randperm(len(keep), generator=self._generator)
            for rows in order.split(config.minibatch):
                batch = take(inputs, rows)
                new, values = self.policy.distribution(batch), self.policy.values(batch)
                ratio = torch.exp(new.log_prob(action[rows]) - old_log_prob[rows])
                clipped = ratio.clamp(1 - config.clip, 1 + config.clip)
                gain = torch.minimum(ratio * advantage[rows], clipped * advantage[rows]).mean()
                error = F.mse_loss(values.reward, target[rows]) + F.mse_loss(values.cost, cost_target[rows])
                loss = -gain - config.entropy * new.entropy().mean() + 0.5 * error
                self._adam.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.policy.parameters(), config.max_grad_norm)
                self._adam.step()
                steps += 1
            with torch.no_grad():
                divergence = float(kl(old, self.policy.distribution(inputs)).mean())
            if divergence > config.kl_stop:
                break
        return {
            "multiplier": price,
            "kl": divergence,
            "entropy": float(new.entropy().mean().detach()),
            "value_error": float(error.detach()),
            "gradient_steps": float(steps),
        }

    def _advantage(self, reward: Tensor, cost: Tensor) -> Tensor:
        reward = (reward - reward.mean()) / (reward.std() + 1e-8)
        price = self.multiplier.price
        return (reward - price * (cost - cost.mean())) / (1 + price)

    def state_dict(self) -> dict[str, Tensor]:
        own = self.multiplier.state_dict() | {"generator": self._generator.get_state()}
        return adam_tensors(self._adam) | own

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        self.multiplier.load_state_dict(state)
        self._generator.set_state(state["generator"])
        load_adam_tensors(self._adam, state)


@hookimpl
def heed_components() -> list[type[SafeOptimizer]]:
    return [PPOLagrangian]
