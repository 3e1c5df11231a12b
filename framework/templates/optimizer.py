"""my_plugin: policy gradient with a price of cost and a leash, after PPO with a KL penalty (Schulman et al., 2017).

    maximise   E[ rho A ] - beta KL(old || new),     A = (A_R - price A_C) / (1 + price)

rho is new over old probability of the action that was taken. The price follows the violation c = J_C - d, never below
zero; beta doubles when a step went twice too far, and halves when it went half as far as it might.

    python -m framework.check my_plugin.py           # does it keep the contract?
    python -m framework.run my_plugin.yaml           # compare it with another
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from framework.hookspecs import hookimpl
from framework.interfaces import Metrics, PolicyNet, Rollout, SafeOptimizer, adam_tensors, kl, load_adam_tensors
from framework.interfaces.types import flatten, take


@dataclass(frozen=True)
class Config:
    """The settings that YAML may give; each needs a type, a default, and a line that says what it does."""

    learning_rate: float = 2e-3
    """Adam's step size."""
    passes: int = 20
    """Gradient steps on each rollout."""
    kl_target: float = 0.02
    """How far one update should move the policy."""
    price_rate: float = 0.5
    """How fast the price of cost follows the violation."""

    def __post_init__(self) -> None:
        if self.passes < 1:
            raise ValueError(f"passes must be at least 1, not {self.passes}")  # told with file and line
        for name in ("learning_rate", "kl_target"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be greater than 0, not {getattr(self, name)}")
        if not self.price_rate >= 0:
            raise ValueError(f"price_rate must be at least 0, not {self.price_rate}")


class MyPlugin(SafeOptimizer):
    """Policy gradient with a learned price of cost and a KL penalty."""  # `--list` shows this line

    name = "my_plugin"  # the word in YAML
    Config = Config

    def __init__(self, config: Config, policy: PolicyNet) -> None:
        super().__init__(config, policy)
        self.price, self.beta = 1.0, 1.0
        self._adam = torch.optim.Adam(policy.parameters(), lr=config.learning_rate)

    def update(self, rollout: Rollout) -> Metrics:
        """One rollout [T, N]: all its valid rows as one batch, several gradient steps."""
        self.price = max(0.0, self.price + self.config.price_rate * rollout.violation)
        rows = rollout.valid.flatten().nonzero().squeeze(-1)  # leave out what was no decision of the agent's
        inputs = take(flatten(rollout.inputs), rows)
        action, old_log_prob, target, cost_target, gain, cost = (
            part.flatten(0, 1)[rows]
            for part in (rollout.action, rollout.log_prob, rollout.value_target, rollout.cost_value_target,
                         rollout.advantage, rollout.cost_advantage)
        )  # fmt: skip
        gain = (gain - gain.mean()) / (gain.std() + 1e-8)
        advantage = (gain - self.price * (cost - cost.mean())) / (1 + self.price)
        with torch.no_grad():
            old = self.policy.distribution(inputs)
        for _ in range(self.config.passes):
            new, values = self.policy.distribution(inputs), self.policy.values(inputs)
            ratio = torch.exp(new.log_prob(action) - old_log_prob)
            error = F.mse_loss(values.reward, target) + F.mse_loss(values.cost, cost_target)
            loss = -(ratio * advantage).mean() + self.beta * kl(old, new).mean() + 0.5 * error
            self._adam.zero_grad()
            loss.backward()
            self._adam.step()
        with torch.no_grad():
            divergence = float(kl(old, self.policy.distribution(inputs)).mean())
        self._tighten_or_loosen(divergence)
        return {"price": self.price, "beta": self.beta, "kl": divergence, "value_error": float(error.detach())}

    def _tighten_or_loosen(self, divergence: float) -> None:
        if divergence > 2 * self.config.kl_target:
            self.beta = min(2 * self.beta, 1e4)
        elif divergence < 0.5 * self.config.kl_target:
            self.beta = max(0.5 * self.beta, 1e-4)

    def state_dict(self) -> dict[str, Tensor]:
        """All that ``update`` carries on, so that a run that was killed goes on exactly where it was."""
        own = torch.tensor([self.price, self.beta], dtype=torch.float64)
        return adam_tensors(self._adam) | {"own": own}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        self.price, self.beta = state["own"].tolist()
        load_adam_tensors(self._adam, state)


@hookimpl
def heed_components() -> list[type[SafeOptimizer]]:
    return [MyPlugin]
