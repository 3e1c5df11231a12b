"""CPO's and PCPO's answer to promises that are not kept.

The gradient of cost is sampled, and a step that is the best for just these samples promises more than it keeps. The
published steps ask for a promise of exactly -c while the constraint is broken by c; where noise alone can promise that
much, cost stays at that level however long one trains. Here c is multiplied by an urgency u >= 1 while c > 0; and what
is left to the limit while c < 0 is divided by it, because a few lucky episodes are no slack:

    u <- u * (1 + impatience)  if c > 0,  else  max(1, u / sqrt(1 + impatience))

so u settles where the constraint is broken in one batch of three. Not in one of two: few episodes cost most, so the
mean of a batch is below the true one more often than above. And ``caution`` adds to c some of its standard errors.
``impatience: 0`` and ``caution: 0`` are the published method.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

import torch
from torch import Tensor

from framework.interfaces import Metrics, PolicyNet, Rollout
from plugins.optimizers._natural import NaturalConfig, NaturalOptimizer
from plugins.optimizers._trust_region import Quadratic


@dataclass(frozen=True)
class UrgentConfig(NaturalConfig):
    """Settings of those that solve for the constraint."""

    impatience: float = field(default=0.0, metadata={"added_later": True})
    """By how much, per update with a broken constraint, more is asked for than would do (0: as published; try 0.1)."""
    caution: float = field(default=0.0, metadata={"added_later": True})
    """Standard errors that are added to c, for a batch of few episodes (0: as published; try 0.5)."""
    most_urgency: float = field(default=20.0, metadata={"added_later": True})
    """The largest multiple that is asked for."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("impatience", "caution"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must be at least 0, not {getattr(self, name)}")
        if self.most_urgency < 1:
            raise ValueError(f"most_urgency must be at least 1, not {self.most_urgency}")


class UrgentOptimizer(NaturalOptimizer):
    """Base of cpo and pcpo. ``ask`` turns the problem at hand into the one to solve."""

    config: UrgentConfig
    solves_for_cost = True

    def __init__(self, config: UrgentConfig, policy: PolicyNet) -> None:
        super().__init__(config, policy)
        self._urgency = 1.0

    def update(self, rollout: Rollout) -> Metrics:
        likely = rollout.violation + self.config.caution * rollout.violation_error
        return super().update(dataclasses.replace(rollout, violation=likely))

    def before(self, rollout: Rollout) -> Metrics:
        change = 1 + self.config.impatience
        wanted = self._urgency * change if rollout.violation > 0 else self._urgency / change**0.5
        self._urgency = min(max(1.0, wanted), self.config.most_urgency)
        return {"urgency": self._urgency}

    def ask(self, problem: Quadratic) -> Quadratic:
        asked = problem.c * self._urgency if problem.c > 0 else problem.c / self._urgency
        return dataclasses.replace(problem, c=asked)

    def state_dict(self) -> dict[str, Tensor]:
        return super().state_dict() | {"urgency": torch.tensor(self._urgency, dtype=torch.float64)}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        super().load_state_dict(state)
        self._urgency = float(state["urgency"])
