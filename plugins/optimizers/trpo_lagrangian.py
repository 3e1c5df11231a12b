"""TRPO-Lagrangian: TRPO on reward minus a learned price of cost.

maximise  (A_R - lambda A_C) / (1 + lambda)  within the trust region
lambda follows c = J_C - d per episode, see _multiplier.py
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from framework.hookspecs import hookimpl
from framework.interfaces import Metrics, PolicyNet, Rollout, SafeOptimizer
from plugins.optimizers._multiplier import Multiplier, MultiplierConfig
from plugins.optimizers._natural import Batch, NaturalConfig, NaturalOptimizer
from plugins.optimizers._trust_region import Quadratic, trpo_step


@dataclass(frozen=True)
class Config(NaturalConfig, MultiplierConfig):
    """Settings of TRPO-Lagrangian."""

    def __post_init__(self) -> None:
        NaturalConfig.__post_init__(self)
        MultiplierConfig.__post_init__(self)


class TRPOLagrangian(NaturalOptimizer):
    """Trust region with a learned price of cost."""

    name = "trpo_lagrangian"
    Config = Config
    config: Config

    def __init__(self, config: Config, policy: PolicyNet) -> None:
        super().__init__(config, policy)
        self.multiplier = Multiplier(config)

    def before(self, rollout: Rollout) -> Metrics:
        return {"multiplier": self.multiplier.move(rollout.violation)}

    def objective(self, batch: Batch) -> Tensor:
        price = self.multiplier.price
        return (batch.advantage - price * batch.cost_advantage) / (1 + price)

    def direction(self, problem: Quadratic) -> tuple[Tensor, str]:
        return trpo_step(problem), "free"

    def state_dict(self) -> dict[str, Tensor]:
        return super().state_dict() | self.multiplier.state_dict()

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        self.multiplier.load_state_dict(state)
        super().load_state_dict(state)


@hookimpl
def heed_components() -> list[type[SafeOptimizer]]:
    return [TRPOLagrangian]
