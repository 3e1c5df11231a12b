"""Constraint Fusion (CF), the paper's baseline: one network reads view and sentence and is left to make sense of both.

An LSTM turns the sentence into a vector, another trunk turns the view into one, an MLP turns the two into an action. No
M_C, no M_B, no h_C: the interpreter of a CF agent only prices its moves. The LSTM is part of theta, so it is trained
end to end by whatever optimizer trains the policy.

Beside ``polco_grid``: the same view, track and overview of what was seen, and dense layers of the same width. What
differs is more than who reads:

- its LSTM starts from nothing and learns from reward and cost alone; POLCO's interpreter starts from a pretrained
  language model (``reader``) or from labelled walks;
- it is told which hazard is where, because it has to know; ``polco_grid`` by default only what is forbidden;
- no forbidden cells are on its map; ``polco_grid`` remembers those that are so by distance;
- it does not see what is spent of the budget;
- its actor has 62,420 parameters on HazardWorld-grid, 22,800 of them for the words; ``polco_grid`` has 37,956.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn

from framework.hookspecs import hookimpl
from framework.interfaces import Categorical, Distribution, EnvSpec, PolicyInput, PolicyNet, State, Values
from plugins.policies._nets import PaperTrunk, Twin, check_sizes, dense, soften
from plugins.policies._sentence import SentenceReader, encode
from plugins.policies._sight import Memory, Sight
from plugins.policies._uses import Uses


@dataclass(frozen=True)
class Config:
    """Settings of Constraint Fusion."""

    network: Literal["mlp", "paper"] = "mlp"
    """mlp: dense layers on one-hot cells; paper: the paper's small convolution."""
    hidden: tuple[int, ...] = (64, 64)
    """Width of each dense layer of the mlp."""
    memory: Memory = "map"
    """map: what was seen and where it has been; visited: only where it has been, as far as in view; none."""
    words: int = 16
    """Size of a word's embedding."""
    text: int = 32
    """Size of the sentence's vector (the paper: 5)."""

    def __post_init__(self) -> None:
        check_sizes(self.hidden, words=self.words, text=self.text)


class FusionGrid(PolicyNet):
    """Constraint Fusion on a grid: CNN or MLP of the view, LSTM of the text, end to end; sees no mask and no budget."""

    name = "fusion_grid"
    Config = Config
    config: Config

    def __init__(self, config: Config, spec: EnvSpec) -> None:
        super().__init__(config, spec)
        nothing = Uses(mask=False, budget=False, threshold=False)
        self.sight = Sight(spec, nothing, config.memory, "paper", hazards=True, image=config.network == "paper")
        self.actor = _Senses(config, self.sight.shape())
        mlp = config.network == "mlp"  # its view is one-hot cells, mostly zeros
        self.actor_head = dense(self.actor.size, self.actor.hidden, spec.action.size, last_gain=0.01, sparse=mlp)
        self.critic = _Senses(config, self.sight.shape())  # of its own, but one for both values
        self.critic_heads = Twin(self.critic.size, self.critic.hidden, sparse=mlp)

    def encode(self, sentences: Sequence[str]) -> Tensor:
        return encode(sentences)

    def initial_state(self, rows: int) -> State:
        return self.sight.initial_state(rows)

    def remember(self, inputs: PolicyInput, state: State) -> tuple[Tensor, State]:
        return self.sight.look(inputs, state)

    def distribution(self, inputs: PolicyInput) -> Distribution:
        return Categorical.from_logits(self.actor_head(*self.actor(inputs)))

    def soften(self, factor: float) -> None:
        soften(self.actor_head[-1], factor)

    def values(self, inputs: PolicyInput) -> Values:
        reward, cost = self.critic_heads(*self.critic(inputs))
        return Values(reward, cost)


class _Senses(nn.Module):
    """View and text as vectors."""

    def __init__(self, config: Config, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.sentence = SentenceReader(config.words, config.text)
        paper = config.network == "paper"
        self.trunk: nn.Module = PaperTrunk(shape) if paper else nn.Identity()
        self.size = (PaperTrunk.VECTOR if paper else shape[0]) + config.text
        self.hidden = () if paper else config.hidden

    def forward(self, inputs: PolicyInput) -> tuple[Tensor, Tensor]:
        return self.trunk(inputs.memory), self.sentence(inputs)


@hookimpl
def heed_components() -> list[type[PolicyNet]]:
    return [FusionGrid]
