"""FPO, fixed penalty optimization (the paper's baseline): TRPO on reward minus a constant times cost.

maximise  A_R - coefficient * A_C
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from framework.hookspecs import hookimpl
from framework.interfaces import SafeOptimizer
from plugins.optimizers._natural import Batch, NaturalConfig, NaturalOptimizer
from plugins.optimizers._trust_region import Quadratic, trpo_step


@dataclass(frozen=True)
class Config(NaturalConfig):
    """Settings of FPO."""

    coefficient: float = 1.0
    """What one unit of cost is held to be worth, in deviations of reward advantage."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.coefficient < 0:
            raise ValueError(f"coefficient must be at least 0, not {self.coefficient}")


class FPO(NaturalOptimizer):
    """Reward minus a fixed price of cost, within a trust region."""

    name = "fpo"
    Config = Config
    config: Config

    def objective(self, batch: Batch) -> Tensor:
        return batch.advantage - self.config.coefficient * batch.cost_advantage

    def direction(self, problem: Quadratic) -> tuple[Tensor, str]:
        return trpo_step(problem), "free"


@hookimpl
def heed_components() -> list[type[SafeOptimizer]]:
    return [FPO]
