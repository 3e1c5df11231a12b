"""A plain network for any environment: everything flattened, two hidden layers, one copy each for actor and critics."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from framework.hookspecs import hookimpl
from framework.interfaces import Categorical, Distribution, EnvSpec, Gaussian, PolicyInput, PolicyNet, Values


@dataclass(frozen=True)
class Uses:
    """What the policy may see of the constraint; switch off for ablations."""

    mask: bool = True
    """M_C, the forbidden cells."""
    budget: bool = True
    """M_B, what is spent or left of the budget."""
    threshold: bool = True
    """h_C."""


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
        if any(width < 1 for width in self.hidden):
            raise ValueError(f"hidden layers need a width of at least 1, not {list(self.hidden)}")


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
        one_step = _features(_blank(spec), spec, config.uses).shape[-1]
        self.actor = _net(one_step, config.hidden, spec.action.size, 0.01)
        self.critic_reward = _net(one_step, config.hidden, 1, 1.0)
        self.critic_cost = _net(one_step, config.hidden, 1, 1.0)
        if spec.action.kind == "continuous":
            self.log_std = nn.Parameter(torch.full((spec.action.size,), config.log_std))

    def distribution(self, inputs: PolicyInput) -> Distribution:
        out = self.actor(_features(inputs, self.spec, self._uses))
        if self.spec.action.kind == "continuous":
            return Gaussian(out, self.log_std.expand_as(out))
        return Categorical.from_logits(out)

    def values(self, inputs: PolicyInput) -> Values:
        features = _features(inputs, self.spec, self._uses)
        return Values(self.critic_reward(features).squeeze(-1), self.critic_cost(features).squeeze(-1))


def _features(inputs: PolicyInput, spec: EnvSpec, uses: Uses) -> Tensor:
    """[B, D]: codes one-hot, masks flat, budget squashed, threshold one-hot."""
    columns = [_observation(inputs.obs, spec)]
    if uses.mask:
        columns.append(inputs.mask.flatten(1))
    if uses.budget:
        # The sign decides; how far past the budget hardly matters. On a forbidden cell, balance 0 (the next entry
        # violates) must differ from "not forbidden", hence the shift by one.
        columns.append(torch.tanh(inputs.budget + inputs.mask).flatten(1))
    if uses.threshold:
        whole = inputs.threshold.long().clamp(0, spec.max_threshold)
        columns.append(F.one_hot(whole, spec.max_threshold + 1).float())
    return torch.cat(columns, dim=-1)


def _observation(obs: Tensor, spec: EnvSpec) -> Tensor:
    if spec.observation.kind == "vector":
        return obs.flatten(1).float()
    channels = [F.one_hot(obs[..., c].long(), levels) for c, levels in enumerate(spec.observation.levels)]
    return torch.cat(channels, dim=-1).flatten(1).float()


def _blank(spec: EnvSpec) -> PolicyInput:
    """One row of zeros, to measure how many features there are."""
    cells, obs = torch.zeros(1, *spec.cells), torch.zeros(1, *spec.observation.shape)
    nothing = torch.zeros(1, 0)
    return PolicyInput(obs, cells, cells, torch.zeros(1), cells.bool(), nothing, nothing, nothing.long(), nothing)


def _net(inputs: int, hidden: tuple[int, ...], outputs: int, gain: float) -> nn.Sequential:
    layers: list[nn.Module] = []
    for width in hidden:
        layers += [_linear(inputs, width, 2**0.5), nn.Tanh()]
        inputs = width
    return nn.Sequential(*layers, _linear(inputs, outputs, gain))


def _linear(inputs: int, outputs: int, gain: float) -> nn.Linear:
    layer = nn.Linear(inputs, outputs)
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer


@hookimpl
def heed_components() -> list[type[PolicyNet]]:
    return [MLP]
