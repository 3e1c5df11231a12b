"""The paper's own interpreter (Yang et al., 2021, appendix B).

Mask module: words -> embedding -> LSTM -> text vector of 5, tiled over the view and concatenated with the observation's
three channels -> convolution -> dense -> one logit per cell. Threshold module: a second embedding and LSTM -> dense ->
h_C. For sequential constraints an LSTM over the history of the episode stands before the mask (``memory: true``).

Departures: the observation's object channel may be embedded (``embed_cells``) instead of read as a number, which the
paper leaves open; a 1x1 convolution passes each cell's own features by the dense layer (without it the mask is a blur);
words are hashed, so there is no vocabulary to store.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from framework.hookspecs import hookimpl
from framework.interfaces import ConstraintInterpreter, EnvSpec, Interpretation, InterpreterInput, State
from plugins.interpreters._words import BUCKETS, hash_words

LENGTH = 40


@dataclass(frozen=True)
class Config:
    """Sizes. The defaults are the paper's where it states them."""

    text: int = 5
    """Size of the text vector."""
    words: int = 32
    """Size of a word's embedding."""
    hidden: int = 64
    """Width of the LSTMs over words."""
    channels: int = 32
    """Channels of the convolution."""
    dense: int = 128
    """Width of the dense layer behind it."""
    memory: bool = False
    """An LSTM over the episode before the mask, for sequential constraints."""
    embed_cells: int = 8
    """Size of an embedding of the object channel; 0 reads the three channels as numbers, like the paper."""

    def __post_init__(self) -> None:
        for name in ("text", "words", "hidden", "channels", "dense"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.embed_cells < 0:
            raise ValueError(f"embed_cells must be at least 0, not {self.embed_cells}")


class LSTM(ConstraintInterpreter):
    """The paper's: one LSTM reads for the mask, one for the threshold; optional memory of the episode."""

    name = "lstm"
    Config = Config
    config: Config

    def __init__(self, config: Config, spec: EnvSpec) -> None:
        super().__init__(config, spec)
        if spec.observation.kind != "codes" or len(spec.cells) != 2:
            raise ValueError("lstm needs a grid of cell codes as observation")
        self.mask_reader = TextLSTM(config.words, config.hidden, config.text)
        self.threshold_reader = TextLSTM(config.words, config.hidden, config.hidden)
        self.cells = nn.Embedding(spec.observation.levels[0], config.embed_cells) if config.embed_cells else None
        channels = (config.embed_cells or 1) + len(spec.observation.levels) - 1 + config.text
        x, y = spec.cells
        self.conv = nn.Conv2d(channels, config.channels, 3, padding=1)
        self.dense = nn.Linear(config.channels * x * y, config.dense)
        self.history = nn.LSTMCell(config.dense, config.dense) if config.memory else None
        self.out = nn.Linear(config.dense, x * y)
        self.skip = nn.Conv2d(config.channels, 1, 1)
        self.threshold = nn.Linear(config.hidden, 1)

    def encode(self, sentences: Sequence[str]) -> Tensor:
        """[S, text + hidden]: what the two LSTMs say."""
        words = hash_words(sentences, LENGTH)
        return torch.cat([self.mask_reader(words), self.threshold_reader(words)], dim=-1)

    def initial_state(self, rows: int) -> State:
        if self.history is None:
            return ()
        return (torch.zeros(rows, self.config.dense), torch.zeros(rows, self.config.dense))

    def step(self, inputs: InterpreterInput, state: State) -> tuple[Interpretation, State]:
        text, threshold = inputs.code.split([self.config.text, self.config.hidden], dim=-1)
        view = self._view(inputs.obs)
        tiled = text[:, :, None, None].expand(-1, -1, *view.shape[2:])
        features = F.relu(self.conv(torch.cat([view, tiled], dim=1)))
        vector = F.relu(self.dense(features.flatten(1)))
        if self.history is not None:
            state = self.history(vector, (state[0], state[1]))
            vector = state[0]
        logits = self.out(vector).view(-1, *self.spec.cells) + self.skip(features)[:, 0]
        return Interpretation(torch.sigmoid(logits), self.threshold(threshold).squeeze(-1)), state

    def _view(self, obs: Tensor) -> Tensor:
        """[M, channels, X, Y]"""
        levels = torch.tensor(self.spec.observation.levels[1:], dtype=torch.float32)
        rest = obs[..., 1:].float() / levels
        kind = self.cells(obs[..., 0].long()) if self.cells is not None else obs[..., :1].float() / 10
        return torch.cat([kind, rest], dim=-1).movedim(-1, 1)


class TextLSTM(nn.Module):
    """Words -> LSTM -> a vector; the last state of each sentence, whatever its length."""

    def __init__(self, words: int, hidden: int, out: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(BUCKETS + 1, words, padding_idx=0)
        self.lstm = nn.LSTM(words, hidden, batch_first=True)
        self.out = nn.Linear(hidden, out)

    def forward(self, words: Tensor) -> Tensor:
        lengths = (words > 0).sum(-1).clamp(min=1)
        states, _ = self.lstm(self.embedding(words[:, : int(lengths.max())]) if len(words) else self.embedding(words))
        last = states[torch.arange(len(words)), lengths - 1]
        return self.out(last)


@hookimpl
def heed_components() -> list[type[ConstraintInterpreter]]:
    return [LSTM]
