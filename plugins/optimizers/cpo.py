"""CPO (Achiam et al., 2017): the best step within trust region and linearised constraint, solved exactly.

    x = (H^-1 g - nu H^-1 b) / lambda,   nu = max(0, (lambda c + r) / s),   lambda from the dual

with g as ascent direction: keeping the loss-form sign of r breaks the constraint in about half of all problems.

The gradient b is sampled, and the step is the best for just these samples, so it promises more than it keeps. While
c > 0 the published step asks for a promise of exactly -c; where noise alone can promise that much, cost stays at that
level however long one trains. ``urgency`` asks for a multiple of it, and so lowers the level.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from torch import Tensor

from framework.hookspecs import hookimpl
from framework.interfaces import SafeOptimizer
from plugins.optimizers._natural import NaturalConfig, NaturalOptimizer
from plugins.optimizers._trust_region import Quadratic, cpo_step


@dataclass(frozen=True)
class Config(NaturalConfig):
    """Settings of CPO."""

    urgency: float = 1.0
    """While the constraint is broken, ask for this many times the reduction that would do (1: as published)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.urgency >= 1:
            raise ValueError(f"urgency must be at least 1, not {self.urgency}")


class CPO(NaturalOptimizer):
    """Constrained policy optimization: exact within the trust region, recovery when the constraint is out of reach."""

    name = "cpo"
    Config = Config
    config: Config

    def direction(self, problem: Quadratic) -> tuple[Tensor, str]:
        if problem.c > 0:
            problem = dataclasses.replace(problem, c=self.config.urgency * problem.c)
        return cpo_step(problem)

    def acceptable(self, case: str, c: float, gain: float, cost_change: float) -> bool:
        return cost_change <= max(-c, 0.0) and (gain >= 0 or case == "recovery" or c > 0)


@hookimpl
def heed_components() -> list[type[SafeOptimizer]]:
    return [CPO]
