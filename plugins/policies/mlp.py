"""A plain network for any environment: everything flattened, two hidden layers, one copy each for actor and critics."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from framework.hookspecs import hookimpl
from framework.interfaces import Categorical, Distribution, EnvSpec, Gaussian, PolicyInput, PolicyNet, Values
from plugins.policies._nets import check_sizes, dense, soften
from plugins.policies._senses import Senses
from plugins.policies._uses import Uses


@dataclass(frozen=True)
class Config:
    """Settings of the network."""

    hidden: tuple[int, ...] = (64, 64)
    """Width of each hidden layer."""
    uses: Uses = field(default_factory=Uses)
    """Which inputs it gets."""
    log_std: float = -0.5
    """Initial log standard deviation, for continuous actions."""

    def __post_init__(self) -> None:
        check_sizes(self.hidden)


class MLP(PolicyNet):
    """Small fully connected network on observation, masks and threshold; discrete or continuous actions."""

    name = "mlp"
    Config = Config
    action_kinds = frozenset({"discrete", "continuous"})

    def __init__(self, config: Config, spec: EnvSpec) -> None:
        super().__init__(config, spec)
        if spec.observation.kind == "image":
            raise ValueError("mlp cannot see images; choose a convolutional policy")
        self._uses = config.uses
        self._senses = Senses(spec.observation)
        one_step = self._features(PolicyInput.blank(spec, 1)).shape[-1]
        self.actor = dense(one_step, config.hidden, spec.action.size, 0.01)
        self.critic_reward = dense(one_step, config.hidden, 1, 1.0)
        self.critic_cost = dense(one_step, config.hidden, 1, 1.0)
        if spec.action.kind == "continuous":
            self.log_std = nn.Parameter(torch.full((spec.action.size,), config.log_std))

    def distribution(self, inputs: PolicyInput) -> Distribution:
        out = self.actor(self._features(inputs))
        if self.spec.action.kind == "continuous":
            return Gaussian(out, self.log_std.expand_as(out))
        return Categorical.from_logits(out)

    def soften(self, factor: float) -> None:
        if self.spec.action.kind == "discrete":  # Gaussians keep their width: their means are not preferences
            soften(self.actor[-1], factor)

    def values(self, inputs: PolicyInput) -> Values:
        features = self._features(inputs)
        return Values(self.critic_reward(features).squeeze(-1), self.critic_cost(features).squeeze(-1))

    def _features(self, inputs: PolicyInput) -> Tensor:
        """[B, D]: codes one-hot, masks flat, budget squashed, threshold one-hot."""
        columns = [self._observation(inputs.obs)]
        if self._uses.mask:
            columns.append(inputs.mask.flatten(1))
        if self._uses.budget:
            # The sign decides; how far past the budget hardly matters. On a forbidden cell, balance 0 (the next entry
            # violates) must differ from "not forbidden", hence the shift by one, however many sentences forbid it.
            columns.append(torch.tanh(inputs.budget + (inputs.mask > 0)).flatten(1))
        if self._uses.threshold:
            whole = inputs.threshold.long().clamp(0, self.spec.max_threshold)
            columns.append(F.one_hot(whole, self.spec.max_threshold + 1).float())
        return torch.cat(columns, dim=-1)

    def _observation(self, obs: Tensor) -> Tensor:
        if self.spec.observation.kind == "vector":
            return self._senses(obs)
        channels = [F.one_hot(obs[..., c].long(), levels) for c, levels in enumerate(self.spec.observation.levels)]
        return torch.cat(channels, dim=-1).flatten(1).float()


@hookimpl
def heed_components() -> list[type[PolicyNet]]:
    return [MLP]
