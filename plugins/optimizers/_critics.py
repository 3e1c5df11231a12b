"""Both critics, by plain regression on the rollout's value targets; shared by the trust-region optimizers."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from framework.interfaces import PolicyInput, PolicyNet, adam_tensors, load_adam_tensors
from framework.interfaces.types import take
from plugins.optimizers._shuffle import shuffler


class Critics:
    """Adam on the squared errors of the two values, for some passes over each rollout."""

    def __init__(self, policy: PolicyNet, learning_rate: float, epochs: int, minibatch: int) -> None:
        self.policy, self.epochs, self.minibatch = policy, epochs, minibatch
        self._parameters = list(policy.critic_parameters())
        self._adam = torch.optim.Adam(self._parameters, lr=learning_rate, fused=True) if self._parameters else None
        self._generator = shuffler("critics")

    def fit(self, inputs: PolicyInput, target: Tensor, cost_target: Tensor) -> float:
        """Returns the last minibatch's error. Rows are in random order, so minibatches are slices, not copies."""
        if self._adam is None:
            return 0.0
        error = torch.zeros(())
        starts = torch.arange(0, len(target), self.minibatch)
        for _ in range(self.epochs):
            for start in starts[torch.randperm(len(starts), generator=self._generator)].tolist():
                rows = slice(start, start + self.minibatch)
                values = self.policy.values(take(inputs, rows))
                error = F.mse_loss(values.reward, target[rows]) + F.mse_loss(values.cost, cost_target[rows])
                self._adam.zero_grad()
                error.backward()
                self._adam.step()
        return float(error.detach())

    def state_dict(self) -> dict[str, Tensor]:
        moments = adam_tensors(self._adam) if self._adam else {}
        return moments | {"generator": self._generator.get_state()}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        self._generator.set_state(state["generator"])
        if self._adam is not None:
            load_adam_tensors(self._adam, state)
