"""REINFORCE (Williams, 1992) with a price of cost: the shortest safe optimizer that learns.

    theta <- theta + rate * E[ (A_R - price A_C) grad log pi(a|s) ],      price <- max(0, price + price_rate * c)

Type:

    python -m framework.check examples/optimizer/reinforce.py
    python -m framework.run examples/optimizer/reinforce.yaml
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from framework.hookspecs import hookimpl
from framework.interfaces import Metrics, PolicyNet, Rollout, SafeOptimizer, adam_tensors, load_adam_tensors
from framework.interfaces.types import flatten, take


@dataclass(frozen=True)
class Config:
    """Settings of REINFORCE."""

    learning_rate: float = 1e-2
    """Adam's step size."""
    price_rate: float = 0.2
    """How fast the price of cost follows the violation."""

    def __post_init__(self) -> None:
        if not self.learning_rate > 0:
            raise ValueError(f"learning_rate must be greater than 0, not {self.learning_rate}")


class Reinforce(SafeOptimizer):
    """One gradient step for each rollout, on reward minus a learned price of cost."""

    name = "reinforce"
    Config = Config

    def __init__(self, config: Config, policy: PolicyNet) -> None:
        super().__init__(config, policy)
        self.price = 1.0
        self._adam = torch.optim.Adam(policy.parameters(), lr=config.learning_rate)

    def update(self, rollout: Rollout) -> Metrics:
        self.price = max(0.0, self.price + self.config.price_rate * rollout.violation)
        rows = rollout.valid.flatten().nonzero().squeeze(-1)
        inputs = take(flatten(rollout.inputs), rows)
        action, gain, cost, target, cost_target = (
            part.flatten(0, 1)[rows]
            for part in (rollout.action, rollout.advantage, rollout.cost_advantage, rollout.value_target,
                         rollout.cost_value_target)
        )  # fmt: skip
        advantage = gain - gain.mean() - self.price * (cost - cost.mean())
        values = self.policy.values(inputs)
        error = (values.reward - target).square().mean() + (values.cost - cost_target).square().mean()
        loss = 0.5 * error - (advantage * self.policy.distribution(inputs).log_prob(action)).mean()
        self._adam.zero_grad()
        loss.backward()
        self._adam.step()
        return {"price": self.price, "value_error": float(error.detach())}

    def state_dict(self) -> dict[str, Tensor]:
        return adam_tensors(self._adam) | {"price": torch.tensor(self.price, dtype=torch.float64)}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        self.price = float(state["price"])
        load_adam_tensors(self._adam, state)


@hookimpl
def heed_components() -> list[type[SafeOptimizer]]:
    return [Reinforce]
