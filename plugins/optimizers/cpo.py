"""CPO (Achiam et al., 2017): the best step within trust region and linearised constraint, solved exactly.

    x = (H^-1 g - nu H^-1 b) / lambda,   nu = max(0, (lambda c + r) / s),   lambda from the dual

with g as ascent direction: keeping the loss-form sign of r breaks the constraint in about half of all problems.
"""

from __future__ import annotations

from torch import Tensor

from framework.hookspecs import hookimpl
from framework.interfaces import SafeOptimizer
from plugins.optimizers._promises import PromiseConfig, PromiseOptimizer
from plugins.optimizers._trust_region import Quadratic, cpo_step


class CPO(PromiseOptimizer):
    """Constrained policy optimization: exact within the trust region, recovery when the constraint is out of reach."""

    name = "cpo"
    Config = PromiseConfig

    def direction(self, problem: Quadratic) -> tuple[Tensor, str]:
        return cpo_step(self.ask(problem))

    def acceptable(self, case: str, c: float, gain: float, cost_change: float) -> bool:
        return cost_change <= max(-c, 0.0) and (gain >= 0 or case == "recovery" or c > 0)


@hookimpl
def heed_components() -> list[type[SafeOptimizer]]:
    return [CPO]
