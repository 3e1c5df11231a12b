"""SafeOptimizer: a rollout becomes a better policy that keeps to the constraint."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from torch import Tensor

from framework.interfaces.component import Component, Kind
from framework.interfaces.policy import PolicyNet
from framework.interfaces.types import Metrics, Rollout


class SafeOptimizer(Component, ABC):
    """Learns. Write ``update``.

    The loop it lives in (framework/trainer.py)::

        optimizer = MyOptimizer(config, policy)
        while steps are left:
            rollout = collect(...)                # T x N steps, predicted costs, advantages
            metrics = optimizer.update(rollout)   # changes the policy's parameters in place

    ``rollout.violation`` is c = J_C - d in cost per *episode*; gradients of per-step means are 1 / episode_length of
    that, so divide it by ``rollout.episode_length`` before you put the two in one formula.
    """

    kind: ClassVar[Kind] = "optimizer"
    needs: ClassVar[frozenset[str]] = frozenset({"value", "cost_value"})
    """What the policy must provide."""
    learns: ClassVar[bool] = True
    """False for one that leaves the policy as it is."""

    def __init__(self, config: Any, policy: PolicyNet) -> None:
        self.config = config
        self.policy = policy

    @abstractmethod
    def update(self, rollout: Rollout) -> Metrics:
        """Change ``self.policy`` in place; return what happened, as plain numbers to log."""

    def state_dict(self) -> dict[str, Tensor]:
        """All that ``update`` carries from one call to the next, as tensors (they go into the checkpoint)."""
        return {}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Undo of ``state_dict``."""
        if state:
            raise ValueError(f"{type(self).__name__} has no state to load but was given {sorted(state)}")
