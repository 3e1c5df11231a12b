"""The paper's own interpreter (Yang et al., 2021, appendix B).

Mask module: words -> embedding -> LSTM -> text vector of 5, tiled over the view and concatenated with the observation's
three channels -> convolution -> dense -> one logit per cell. Threshold module: a second embedding and LSTM -> dense ->
h_C. For sequential constraints an LSTM over the history of the episode stands before the mask (``memory: true``).

Departures: the observation's object channel may be embedded (``embed_cells``) instead of read as a number, which the
paper leaves open; a gated 1x1 convolution passes each cell's own features by the dense layer (without it the mask is a
blur); words are hashed, so there is no vocabulary to store.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from framework.hookspecs import hookimpl
from framework.interfaces import ConstraintInterpreter, EnvSpec, Interpretation, InterpreterInput, Labels, State
from plugins.interpreters._grid_mask import GridMask
from plugins.interpreters._words import BUCKETS, hash_words

LENGTH = 40


@dataclass(frozen=True)
class Config:
    """Sizes. The text vector of 5 is the paper's; it does not state the others."""

    text: int = 5
    """Size of the text vector."""
    words: int = 32
    """Size of a word's embedding."""
    hidden: int = 64
    """Width of the LSTMs over words."""
    dropout: float = 0.3
    """Of words' embeddings: a thousand sentences are soon learned by heart."""
    channels: int = 32
    """Channels of the convolutions."""
    dense: int = 128
    """Width of the dense layer behind them."""
    memory: bool = False
    """An LSTM over the episode before the mask, for sequential constraints."""
    embed_cells: int = 8
    """Size of an embedding of the object channel; 0 reads the three channels as numbers, like the paper."""

    def __post_init__(self) -> None:
        for name in ("text", "words", "hidden", "channels", "dense"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.embed_cells < 0 or not 0 <= self.dropout < 1:
            raise ValueError(f"embed_cells must be at least 0 and dropout in [0, 1): {self}")


class LSTM(ConstraintInterpreter):
    """The paper's: one LSTM reads for the mask, one for the threshold; optional memory of the episode."""

    name = "lstm"
    Config = Config
    config: Config

    def __init__(self, config: Config, spec: EnvSpec) -> None:
        super().__init__(config, spec)
        self.mask = GridMask(spec, config.text, config.channels, config.dense, config.embed_cells, config.memory)
        self.mask_reader = TextLSTM(config.words, config.hidden, config.text, config.dropout)
        self.threshold_reader = TextLSTM(config.words, config.hidden, 1, config.dropout)

    def encode(self, sentences: Sequence[str]) -> Tensor:
        """[S, text + 1]: what the two LSTMs say."""
        words = hash_words(sentences, LENGTH)
        return torch.cat([self.mask_reader(words), self.threshold_reader(words)], dim=-1)

    def initial_state(self, rows: int) -> State:
        return self.mask.initial_state(rows)

    def step(self, inputs: InterpreterInput, state: State) -> tuple[Interpretation, State]:
        mask, state = self.mask(inputs.obs, inputs.code[:, :-1], state)
        return Interpretation(mask, inputs.code[:, -1]), state

    def loss(self, inputs: InterpreterInput, labels: Labels, episode_start: Tensor) -> Tensor:
        return self.mask.loss(inputs, labels, episode_start)


class TextLSTM(nn.Module):
    """Words -> LSTM -> a vector; the last state of each sentence, whatever its length."""

    def __init__(self, words: int, hidden: int, out: int, dropout: float) -> None:
        super().__init__()
        self.embedding = nn.Embedding(BUCKETS + 1, words, padding_idx=0)
        self.dropout = nn.Dropout(dropout)
        self.lstm = nn.LSTM(words, hidden, batch_first=True)
        self.out = nn.Linear(hidden, out)

    def forward(self, words: Tensor) -> Tensor:
        lengths = (words > 0).sum(-1).clamp(min=1)
        longest = int(lengths.max()) if len(words) else 1
        states, _ = self.lstm(self.dropout(self.embedding(words[:, :longest])))
        return self.out(states[torch.arange(len(words)), lengths - 1])


@hookimpl
def heed_components() -> list[type[ConstraintInterpreter]]:
    return [LSTM]
