"""POLCO's policy for grid worlds: what is in view, what is forbidden, what is left of the budget; and a memory.

The paper's network (``network: paper, memory: none, budget: paper``): view, M_C and M_B as one image -> convolution ->
dense -> 5, beside an embedding of h_C -> action. Ours differs in four ways, each of which can be switched off:

- ``network: mlp``: cells are one-hot, not numbers, and dense layers read them. Faster than convolutions on a CPU.
- ``memory: map``: a view of 7 x 7 cells is not enough to search a room. The agent draws a map of what it saw
  (_ego_map.py) and leaves a fading track. Cells that were forbidden for what is near them stay so when that is out of
  view again.
- ``budget: split``: the paper's M_B is spent - h_C on forbidden cells, which is zero just when the next entry
  violates: then it looks like "not forbidden". Split into two planes, "the next entry violates" and "how many are
  left", the case that matters is in plain sight.
- ``hazards: false``: the policy is not told lava from water, only what is forbidden.

All that it sees is drawn up once, while acting (``remember``), so that an update only multiplies matrices.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor, nn

from framework.hookspecs import hookimpl
from framework.interfaces import Categorical, Distribution, EnvSpec, PolicyInput, PolicyNet, State, Values
from plugins.policies._nets import PaperTrunk, Twin, check_sizes, dense, soften
from plugins.policies._sight import BudgetForm, Memory, Sight, whole
from plugins.policies._uses import Uses


@dataclass(frozen=True)
class Config:
    """Settings of POLCO's policy."""

    network: Literal["mlp", "paper"] = "mlp"
    """mlp: dense layers on one-hot cells; paper: the paper's small convolution."""
    hidden: tuple[int, ...] = (64, 64)
    """Width of each dense layer of the mlp."""
    memory: Memory = "map"
    """map: what was seen and where it has been; visited: only where it has been, as far as in view; none."""
    budget: BudgetForm = "split"
    """How M_B is shown: two planes; spent - h_C + 1 on forbidden cells; or the paper's spent - h_C."""
    hazards: bool = False
    """Show which hazard is where, too. What it may not enter is in M_C; which hazard that is, is the interpreter's
    business, and a policy that does not know learns once for all of them. (The paper's network always sees all.)"""
    uses: Uses = field(default_factory=Uses)
    """Which inputs it gets."""

    def __post_init__(self) -> None:
        check_sizes(self.hidden)


class PolcoGrid(PolicyNet):
    """POLCO on a grid: view, M_C, M_B and h_C, with a map of what was seen; the paper's network as a setting."""

    name = "polco_grid"
    Config = Config
    config: Config

    def __init__(self, config: Config, spec: EnvSpec) -> None:
        super().__init__(config, spec)
        self.sight = Sight(
            spec, config.uses, config.memory, config.budget, config.hazards, image=config.network == "paper"
        )
        shape = self.sight.shape()
        if config.network == "paper":
            self.actor: nn.Module = _PaperNet(shape, spec, spec.action.size, config.uses.threshold)
            self.critic_reward = _PaperNet(shape, spec, 1, config.uses.threshold)
            self.critic_cost = _PaperNet(shape, spec, 1, config.uses.threshold)
        else:
            self.actor = dense(shape[0], config.hidden, spec.action.size, last_gain=0.01, sparse=True)
            self.critics = Twin(shape[0], config.hidden, sparse=True)

    def initial_state(self, rows: int) -> State:
        return self.sight.initial_state(rows)

    def remember(self, inputs: PolicyInput, state: State) -> tuple[Tensor, State]:
        return self.sight.look(inputs, state)

    def distribution(self, inputs: PolicyInput) -> Distribution:
        if self.config.network == "paper":
            return Categorical.from_logits(self.actor(inputs.memory, inputs.threshold))
        return Categorical.from_logits(self.actor(inputs.memory))

    def soften(self, factor: float) -> None:
        soften(self.actor.out if isinstance(self.actor, _PaperNet) else self.actor[-1], factor)  # type: ignore[index]

    def values(self, inputs: PolicyInput) -> Values:
        if self.config.network == "paper":
            critics = (self.critic_reward, self.critic_cost)
            reward, cost = (critic(inputs.memory, inputs.threshold).squeeze(-1) for critic in critics)
        else:
            reward, cost = self.critics(inputs.memory)
        return Values(reward, cost)


class _PaperNet(nn.Module):
    """Convolution -> dense -> 5; beside it an embedding of the whole part of h_C; dense -> out (appendix B)."""

    EMBEDDING = 5

    def __init__(self, shape: tuple[int, ...], spec: EnvSpec, out: int, threshold: bool) -> None:
        super().__init__()
        self.spec = spec
        self.trunk = PaperTrunk(shape)
        self.threshold = nn.Embedding(spec.max_threshold + 1, self.EMBEDDING) if threshold else None
        self.out = nn.Linear(PaperTrunk.VECTOR + (self.EMBEDDING if threshold else 0), out)

    def forward(self, image: Tensor, h: Tensor) -> Tensor:
        vector = self.trunk(image)
        if self.threshold is not None:
            vector = torch.cat([vector, self.threshold(whole(h, self.spec))], dim=-1)
        out: Tensor = self.out(vector)
        return out


@hookimpl
def heed_components() -> list[type[PolicyNet]]:
    return [PolcoGrid]
