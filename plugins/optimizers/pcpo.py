"""PCPO (Yang et al., 2020): a step for reward, then a projection onto the constraint. The paper's optimizer.

    x = a H^-1 g - max(0, (a r + c) / s) H^-1 b,   a = sqrt(2 delta / q)        (KL projection; L2 likewise)

The projection leaves the trust region in more than a third of random problems, always while the constraint is far from
met. In the metric of the KL divergence the nearest point within the region has a closed form, and is taken
(``pcpo_within``); the L2 projection is scaled back to the region's rim. Then the step is shrunk until KL <= delta.
While the constraint is met, reward must not fall and cost must stay within its slack; while it is broken, cost must not
rise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from framework.hookspecs import hookimpl
from framework.interfaces import SafeOptimizer
from plugins.optimizers._promises import PromiseConfig, PromiseOptimizer
from plugins.optimizers._trust_region import Quadratic, pcpo_step, pcpo_within


@dataclass(frozen=True)
class Config(PromiseConfig):
    """Settings of PCPO."""

    projection: Literal["kl", "l2"] = "kl"
    """Metric of the projection; the paper found kl better."""


class PCPO(PromiseOptimizer):
    """Projection-based constrained policy optimization, KL or L2 projection."""

    name = "pcpo"
    Config = Config
    config: Config

    def direction(self, problem: Quadratic) -> tuple[Tensor, str]:
        problem = self.ask(problem)
        if self.config.projection == "kl":
            return pcpo_within(problem)
        step = pcpo_step(problem, "l2")
        size = 0.5 * float(step @ self._product(step))
        if size > problem.delta:
            # Far from the constraint the projection can be a hundred times too long. The line search alone would run
            # out of tries, put the old weights back, and meet the same problem again: the policy would never move.
            step = step * math.sqrt(problem.delta / size)
        return step, "projected" if problem.reach * problem.r + problem.c > 0 else "free"

    def acceptable(self, case: str, c: float, gain: float, cost_change: float) -> bool:
        if c > 0:
            return cost_change <= 0
        return gain >= 0 and cost_change <= -c


@hookimpl
def heed_components() -> list[type[SafeOptimizer]]:
    return [PCPO]
