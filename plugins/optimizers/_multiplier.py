"""The learned price of cost, lambda, shared by the Lagrangian optimizers.

    I      <- max(0, I + rate * c)                              c = J_C - d per episode (``rollout.violation``)
    lambda  = max(0, kp * c + I + kd * max(0, c - previous c))

With kp = kd = 0 it is the usual multiplier, an integral of the violation. An integral alone overshoots: it still rises
while cost already falls, and then falls while cost rises again. kp answers to the violation at once, kd to its growth
(PID Lagrangian: Stooke, Achiam and Abbeel, 2020). A falling cost is never rewarded by kd, hence the inner max.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class MultiplierConfig:
    """Settings of the price of cost."""

    multiplier: float = 1.0
    """Initial price of cost, lambda."""
    multiplier_rate: float = 0.1
    """How fast lambda follows the violation."""
    multiplier_kp: float = 0.0
    """PID: price added for each unit of the present violation; 0 is the plain multiplier, 0.1 to 1 is usual."""
    multiplier_kd: float = 0.0
    """PID: price added for each unit by which the violation grew since the last update; 0 is the plain multiplier."""

    def __post_init__(self) -> None:
        for name in ("multiplier", "multiplier_rate", "multiplier_kp", "multiplier_kd"):
            if not 0 <= getattr(self, name) < math.inf:  # NaN fails this too
                raise ValueError(f"{name} must be a number of at least 0, not {getattr(self, name)}")


class Multiplier:
    """lambda, moved once per update."""

    def __init__(self, config: MultiplierConfig) -> None:
        self.config = config
        self.price = self._integral = config.multiplier
        self._last: float | None = None  # the first update has nothing to compare with

    def move(self, c: float) -> float:
        """The price after a batch whose violation was c."""
        config = self.config
        self._integral = max(0.0, self._integral + config.multiplier_rate * c)
        growth = 0.0 if self._last is None else max(0.0, c - self._last)
        self._last = c
        self.price = max(0.0, self._integral + config.multiplier_kp * c + config.multiplier_kd * growth)
        return self.price

    def state_dict(self) -> dict[str, Tensor]:
        numbers = {"price": self.price, "integral": self._integral, "last": self._last}
        return {
            f"multiplier.{name}": torch.tensor(value, dtype=torch.float64)
            for name, value in numbers.items()
            if value is not None
        }

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Undo of ``state_dict``; other names in ``state`` are left alone."""
        self.price, self._integral = float(state["multiplier.price"]), float(state["multiplier.integral"])
        self._last = float(state["multiplier.last"]) if "multiplier.last" in state else None
