"""TRPO (Schulman et al., 2015): the largest step for reward within a trust region. Ignores the constraint.

x = sqrt(2 delta / g'H^-1 g) H^-1 g,   shrunk until KL <= delta and the surrogate does not fall
"""

from __future__ import annotations

from torch import Tensor

from framework.hookspecs import hookimpl
from framework.interfaces import SafeOptimizer
from plugins.optimizers._natural import NaturalConfig, NaturalOptimizer
from plugins.optimizers._trust_region import Quadratic, trpo_step


class TRPO(NaturalOptimizer):
    """Trust region policy optimization: reward alone, whatever the cost."""

    name = "trpo"
    Config = NaturalConfig

    def direction(self, problem: Quadratic) -> tuple[Tensor, str]:
        return trpo_step(problem), "free"


@hookimpl
def heed_components() -> list[type[SafeOptimizer]]:
    return [TRPO]
