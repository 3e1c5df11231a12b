"""TRPO-Lagrangian: TRPO on reward minus a learned price of cost.

maximise  (A_R - lambda A_C) / (1 + lambda)  within the trust region
lambda <- max(0, lambda + rate * c),          c = J_C - d per episode
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from framework.hookspecs import hookimpl
from framework.interfaces import Metrics, PolicyNet, Rollout, SafeOptimizer
from plugins.optimizers._natural import Batch, NaturalConfig, NaturalOptimizer
from plugins.optimizers._trust_region import Quadratic, trpo_step


@dataclass(frozen=True)
class Config(NaturalConfig):
    """Settings of TRPO-Lagrangian."""

    multiplier: float = 1.0
    """Initial price of cost, lambda."""
    multiplier_rate: float = 0.1
    """How fast lambda follows the violation."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.multiplier < 0 or self.multiplier_rate < 0:
            raise ValueError(f"multiplier and multiplier_rate must be at least 0: {self}")


class TRPOLagrangian(NaturalOptimizer):
    """Trust region with a learned price of cost."""

    name = "trpo_lagrangian"
    Config = Config
    config: Config

    def __init__(self, config: Config, policy: PolicyNet) -> None:
        super().__init__(config, policy)
        self.multiplier = config.multiplier

    def before(self, rollout: Rollout) -> Metrics:
        self.multiplier = max(0.0, self.multiplier + self.config.multiplier_rate * rollout.violation)
        return {"multiplier": self.multiplier}

    def objective(self, batch: Batch) -> Tensor:
        return (batch.advantage - self.multiplier * batch.cost_advantage) / (1 + self.multiplier)

    def direction(self, problem: Quadratic) -> tuple[Tensor, str]:
        return trpo_step(problem), "free"

    def state_dict(self) -> dict[str, Tensor]:
        return super().state_dict() | {"multiplier": torch.tensor(self.multiplier, dtype=torch.float64)}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        self.multiplier = float(state["multiplier"])
        super().load_state_dict(state)


@hookimpl
def heed_components() -> list[type[SafeOptimizer]]:
    return [TRPOLagrangian]
