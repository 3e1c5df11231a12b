"""my_plugin: a small network. It sees the observation, what is forbidden (M_C), what is left of the budget (M_B), h_C.

Type:

    python -m framework.check my_plugin.py           # does it keep the contract?
    python -m framework.run my_plugin.yaml           # compare it with another
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from framework.hookspecs import hookimpl
from framework.interfaces import Categorical, Distribution, EnvSpec, PolicyInput, PolicyNet, Values


@dataclass(frozen=True)
class Config:
    """The settings that YAML may give; each needs a type, a default, and a line that says what it does."""

    width: int = 64
    """Width of the hidden layers."""

    def __post_init__(self) -> None:
        if self.width < 1:
            raise ValueError(f"width must be at least 1, not {self.width}")  # told with file and line


class MyPlugin(PolicyNet):
    """Two hidden layers on everything that the agent knows."""  # `--list` shows this line

    name = "my_plugin"  # the word in YAML
    Config = Config
    action_kinds = frozenset({"discrete"})  # for continuous actions return a Gaussian

    def __init__(self, config: Config, spec: EnvSpec) -> None:
        super().__init__(config, spec)
        if spec.observation.kind == "image":
            raise ValueError("my_plugin cannot see images")  # refuse what you cannot handle
        inputs = self._features(PolicyInput.blank(spec, rows=1)).shape[-1]
        self.actor = _network(inputs, config.width, spec.action.size)
        # What is named critic... belongs to the critics; all other parameters are the actor's.
        self.critic_reward = _network(inputs, config.width, 1)
        self.critic_cost = _network(inputs, config.width, 1)

    def distribution(self, inputs: PolicyInput) -> Distribution:
        return Categorical.from_logits(self.actor(self._features(inputs)))

    def values(self, inputs: PolicyInput) -> Values:
        features = self._features(inputs)
        return Values(self.critic_reward(features).squeeze(-1), self.critic_cost(features).squeeze(-1))

    def _features(self, inputs: PolicyInput) -> Tensor:
        """[B, D]. The budget counts from one on forbidden cells, so that "nothing left" is not "nothing forbidden"."""
        budget = torch.tanh(inputs.budget + inputs.mask).flatten(1)
        threshold = (inputs.threshold / max(1, self.spec.max_threshold)).unsqueeze(-1)
        return torch.cat([self._observation(inputs.obs), inputs.mask.flatten(1), budget, threshold], dim=-1)

    def _observation(self, obs: Tensor) -> Tensor:
        """Codes are names, not amounts: one-hot. Vectors are numbers already."""
        if self.spec.observation.kind == "vector":
            return obs.flatten(1)
        channels = [F.one_hot(obs[..., c].long(), levels) for c, levels in enumerate(self.spec.observation.levels)]
        return torch.cat(channels, dim=-1).flatten(1).float()

    # Memory of the past: return features from ``remember`` and a state from ``initial_state``; they come back in
    # ``inputs.memory``. See plugins/policies/polco_grid.py, which keeps a map.


def _network(inputs: int, width: int, outputs: int) -> nn.Sequential:
    last = nn.Linear(width, outputs)
    nn.init.normal_(last.weight, std=0.01)  # begin undecided
    return nn.Sequential(nn.Linear(inputs, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), last)


@hookimpl
def heed_components() -> list[type[PolicyNet]]:
    return [MyPlugin]
