"""CPO's and PCPO's answer to promises that are not kept.

The gradient of cost, b, is sampled, and a step that is the best for just these samples promises more than it keeps: of
s = b'H^-1 b a part is noise squared. The published steps ask for a promise of exactly -c while the constraint is broken
by c; where noise alone can promise that much, cost stays where it is however long one trains.

So every few updates one half of the rows makes a step, and the other half says what it is worth: b1'H^-1 b2 has the
same mean as s would have without noise. (Rows, not steps: steps of one episode share what they meet later.) The share
of promises that is kept, averaged over updates, is

    kept = mean of b1'H^-1 b2 / mean of b'H^-1 b

and while the constraint is broken c / kept is asked for instead of c. And ``caution`` adds to c some of its standard
errors, for batches of few episodes. ``promises: sampled`` and ``caution: 0`` are the published methods.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from framework.interfaces import Metrics, PolicyNet, Rollout
from plugins.optimizers._natural import NaturalConfig, NaturalOptimizer
from plugins.optimizers._trust_region import Quadratic

EVERY = 5
"""Updates from one look at both halves to the next: it takes as long as solving for H^-1 b, and changes slowly."""
MEMORY = 0.8
"""Weight of what was seen before in the averages."""
LEAST_KEPT = 0.05
"""Below this nearly all is noise, and the trust region is used up by less than what would be asked for."""


@dataclass(frozen=True)
class PromiseConfig(NaturalConfig):
    """Settings of those that solve for the constraint."""

    promises: Literal["held_out", "sampled"] = "held_out"
    """Whether what a step promises of cost is checked on rows that it was not made from, and more asked for
    accordingly (held_out), or believed, as published (sampled)."""
    caution: float = field(default=0.0, metadata={"added_later": True})
    """Standard errors that are added to c, for a batch of few episodes (0: as published; try 0.5)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.caution < 0:
            raise ValueError(f"caution must be at least 0, not {self.caution}")


class PromiseOptimizer(NaturalOptimizer):
    """Base of cpo and pcpo. ``ask`` turns the problem at hand into the one to solve."""

    config: PromiseConfig
    solves_for_cost = True

    def __init__(self, config: PromiseConfig, policy: PolicyNet) -> None:
        super().__init__(config, policy)
        self._updates = 0
        self._seen = torch.zeros(2, dtype=torch.float64)  # averages of b1'H^-1 b2 and of b'H^-1 b

    def update(self, rollout: Rollout) -> Metrics:
        likely = rollout.violation + self.config.caution * rollout.violation_error
        metrics = super().update(dataclasses.replace(rollout, violation=likely))
        self._updates += 1
        violation = rollout.violation / rollout.episode_length  # as it was measured, without caution
        return metrics | {"violation_per_step": violation, "kept": self.kept}

    def looks_twice(self) -> bool:
        return self.config.promises == "held_out" and self._updates % EVERY == 0

    @property
    def kept(self) -> float:
        """Share of what is promised of cost that holds beyond the samples; 1 where nothing is known."""
        fair, promised = self._seen.tolist()
        return min(1.0, max(LEAST_KEPT, fair / promised)) if promised > 0 else 1.0

    def ask(self, problem: Quadratic) -> Quadratic:
        if problem.fair_s is not None:
            new = torch.tensor([problem.fair_s, problem.s], dtype=torch.float64)
            self._seen = MEMORY * self._seen + (1 - MEMORY) * new
        return dataclasses.replace(problem, c=problem.c / self.kept) if problem.c > 0 else problem

    def state_dict(self) -> dict[str, Tensor]:
        return super().state_dict() | {"promises": self._seen.clone(), "updates": torch.tensor(self._updates)}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        super().load_state_dict(state)
        self._seen = state["promises"].clone()
        self._updates = int(state["updates"])
