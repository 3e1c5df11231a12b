"""The paper's own interpreter (Yang et al., 2021, appendix B).

Mask module: words -> embedding -> LSTM -> text vector of 5, tiled over the view and concatenated with the observation's
three channels -> convolution -> dense -> one logit per cell. Threshold module: a second embedding and LSTM -> dense ->
h_C. For sequential constraints an LSTM over the history of the episode stands before the mask (``memory: true``).

Departures: the observation's object channel may be embedded (``embed_cells``) instead of read as a number, which the
paper leaves open; a gated 1x1 convolution passes each cell's own features by the dense layer (without it the mask is a
blur); of an LSTM's states the maximum is taken, where the paper speaks of one output (``pool: last``): a number is
found wherever it stands, and held-out thresholds are read better.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from framework.hookspecs import hookimpl
from framework.interfaces import ConstraintInterpreter, EnvSpec, Interpretation, InterpreterInput, Labels, State
from plugins.interpreters._grid_mask import GridMask
from plugins.texts.words import split_words

LENGTH = 40
WORDS = 4096
"""Rows of an embedding; our own training sentences have 1,562 words."""
PADDING, UNKNOWN, FREE = 0, 1, -1
SCALE = 10
"""Of words' embeddings. Adam moves a weight by the learning rate at most: too slow for a word that seldom occurs."""


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
    pool: Literal["max", "last"] = "max"
    """What is taken of an LSTM's states: the maximum over the words, or the last one."""
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
        self.vocabulary = Vocabulary()
        self.mask_reader = TextLSTM(config, config.text)
        self.threshold_reader = TextLSTM(config, 1)

    def encode(self, sentences: Sequence[str]) -> Tensor:
        """[S, text + 1]: what the two LSTMs say."""
        words = self.vocabulary(sentences)
        return torch.cat([self.mask_reader(words), self.threshold_reader(words)], dim=-1)

    def initial_state(self, rows: int) -> State:
        return self.mask.initial_state(rows)

    def step(self, inputs: InterpreterInput, state: State) -> tuple[Interpretation, State]:
        mask, state = self.mask(inputs.obs, inputs.code[:, :-1], state)
        return Interpretation(mask, inputs.code[:, -1], trespass=self.mask.trespass(mask)), state

    def loss(self, inputs: InterpreterInput, labels: Labels, episode_start: Tensor) -> Tensor:
        return self.mask.loss(inputs, labels, episode_start)


class Vocabulary(nn.Module):
    """Gives each word a row of its own when training first meets it; any other word is UNKNOWN.

    Rows by hash alone were the largest error of all: among 4,096 of them "be" shares one with "2", "bad" with "sixth".
    """

    words: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("words", torch.full((WORDS,), FREE, dtype=torch.int64))  # the hash of each row's word

    def forward(self, sentences: Sequence[str]) -> Tensor:
        """[S, LENGTH] int64: rows of the words, PADDING where the sentence is over; what is longer is cut."""
        rows = {word: row for row, word in enumerate(self.words.tolist()) if word != FREE}
        found = []
        for sentence in sentences:
            words = [zlib.crc32(word.encode()) for word in split_words(sentence)[:LENGTH]]
            if self.training:
                self._meet(words, rows)
            found.append([rows.get(word, UNKNOWN) for word in words] + [PADDING] * (LENGTH - len(words)))
        return torch.tensor(found, dtype=torch.int64).view(-1, LENGTH)

    def _meet(self, words: Sequence[int], rows: dict[int, int]) -> None:
        for word in words:
            free = UNKNOWN + 1 + len(rows)
            if word not in rows and free < WORDS:
                rows[word] = free
                self.words[free] = word


class TextLSTM(nn.Module):
    """Words -> LSTM -> a vector of each sentence, whatever its length."""

    def __init__(self, config: Config, out: int) -> None:
        super().__init__()
        self.pool = config.pool
        self.embedding = nn.Embedding(WORDS, config.words, padding_idx=PADDING)
        with torch.no_grad():  # small: what a rare word means is learned, not drawn; an unknown one says nothing
            self.embedding.weight *= 0.2 / SCALE
            self.embedding.weight[UNKNOWN] = 0
        self.dropout = nn.Dropout(config.dropout)
        self.lstm = nn.LSTM(config.words, config.hidden, batch_first=True)
        self.out = nn.Linear(config.hidden, out)

    def forward(self, words: Tensor) -> Tensor:
        lengths = (words != PADDING).sum(-1).clamp(min=1)
        longest = int(lengths.max()) if len(words) else 1
        states, _ = self.lstm(self.dropout(SCALE * self.embedding(words[:, :longest])))
        if self.pool == "last":
            return self.out(states[torch.arange(len(words)), lengths - 1])
        over = torch.arange(longest) >= lengths[:, None]
        return self.out(states.masked_fill(over.unsqueeze(-1), -1).amax(1))  # states lie in (-1, 1)


@hookimpl
def heed_components() -> list[type[ConstraintInterpreter]]:
    return [LSTM]
