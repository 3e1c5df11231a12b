"""Pretrained sentence embeddings, frozen, token by token; what they mean for mask and threshold is learned on top.

The pooled vector of a sentence is not enough ("after A avoid B" and "after B avoid A" have nearly the same), so a few
learned attention heads pick tokens, some for the mask and some for the threshold. A token's vector already tells of its
neighbours, so nothing has to read them in order, which would be most of the cost of stage 1. The mask module is the
paper's. Each distinct sentence goes through the pretrained model once: its token vectors are kept in memory, and on
disk if ``cache`` names a folder.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from framework.hookspecs import hookimpl
from framework.interfaces import ConstraintInterpreter, EnvSpec, Interpretation, InterpreterInput, Labels, State
from plugins.interpreters._grid_mask import GridMask
from plugins.interpreters._text_model import REQUIRES, TextModel


@dataclass(frozen=True)
class Config:
    """Settings of the pretrained model and of what is learned on top."""

    model: str = ""
    """Folder or name of a sentence-transformers model; empty: all-MiniLM-L6-v2 from the installed package."""
    cache: str = ""
    """Folder to keep token vectors in between runs; empty: in memory only."""
    hidden: int = 128
    """Width that token vectors are brought down to."""
    heads: int = 4
    """Attention heads for the mask, and as many for the threshold."""
    text: int = 16
    """Size of the text vector that the mask module gets."""
    dropout: float = 0.3
    """Of token vectors."""
    channels: int = 32
    """Channels of the convolutions."""
    dense: int = 128
    """Width of the dense layer behind them."""
    memory: bool = False
    """An LSTM over the episode before the mask, for sequential constraints."""

    def __post_init__(self) -> None:
        for name in ("hidden", "heads", "text", "channels", "dense"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout must be in [0, 1), not {self.dropout}")


class SentenceEmbedding(ConstraintInterpreter):
    """Frozen MiniLM token vectors (any sentence-transformers model), attention heads, the paper's mask module."""

    name = "sentence_embedding"
    requires = REQUIRES
    Config = Config
    config: Config

    def __init__(self, config: Config, spec: EnvSpec) -> None:
        super().__init__(config, spec)
        self.mask = GridMask(spec, config.text, config.channels, config.dense, embed_cells=8, memory=config.memory)
        self._model = TextModel(config.model)
        self._vectors: dict[str, Tensor] = {}
        self.dropout = nn.Dropout(config.dropout)
        self.features = nn.Sequential(nn.Linear(self._model.size, config.hidden), nn.GELU())
        self.attention = nn.Linear(config.hidden, 2 * config.heads)
        self.to_mask = nn.Linear(config.heads * config.hidden, config.text)
        self.to_threshold = nn.Linear(config.heads * config.hidden, 1)

    def encode(self, sentences: Sequence[str]) -> Tensor:
        """[S, text + 1]"""
        if not sentences:
            return torch.zeros(0, self.config.text + 1)
        vectors = self.vectors(sentences)
        lengths = torch.tensor([len(v) for v in vectors])
        padded = nn.utils.rnn.pad_sequence(list(vectors), batch_first=True)
        features = self.features(self.dropout(padded))  # [S, L, hidden]
        real = torch.arange(padded.shape[1]) < lengths[:, None]
        weight = self.attention(features).masked_fill(~real.unsqueeze(-1), -1e9).softmax(1)  # [S, L, 2 * heads]
        for_mask, for_threshold = (weight.mT @ features).flatten(1).chunk(2, dim=-1)
        return torch.cat([self.to_mask(for_mask), self.to_threshold(for_threshold)], dim=-1)

    @torch.no_grad()
    def vectors(self, sentences: Sequence[str]) -> list[Tensor]:
        """Token vectors [L, size] of each sentence, from memory, from disk, or from the model."""
        new = sorted({s for s in sentences if s not in self._vectors and not self._from_disk(s)}, key=len)
        for i in range(0, len(new), 64):
            ids, real, _ = self._model.tokens(new[i : i + 64])
            for sentence, states, keep in zip(new[i : i + 64], self._model.states(ids, real), real, strict=True):
                self._vectors[sentence] = states[keep].clone()
                self._to_disk(sentence)
        return [self._vectors[s] for s in sentences]

    def _file(self, sentence: str) -> Path:
        key = hashlib.sha256(f"{self.config.model}\0{sentence}".encode()).hexdigest()[:24]
        return Path(self.config.cache) / f"{key}.safetensors"

    def _from_disk(self, sentence: str) -> bool:
        if not self.config.cache or not self._file(sentence).is_file():
            return False
        try:
            self._vectors[sentence] = load_file(self._file(sentence))["tokens"]
        except (SafetensorError, OSError, KeyError):
            return False  # a damaged file is made anew
        return True

    def _to_disk(self, sentence: str) -> None:
        if self.config.cache:
            Path(self.config.cache).mkdir(parents=True, exist_ok=True)
            save_file({"tokens": self._vectors[sentence]}, self._file(sentence))

    def initial_state(self, rows: int) -> State:
        return self.mask.initial_state(rows)

    def step(self, inputs: InterpreterInput, state: State) -> tuple[Interpretation, State]:
        mask, state = self.mask(inputs.obs, inputs.code[:, :-1], state)
        return Interpretation(mask, inputs.code[:, -1], trespass=self.mask.trespass(mask)), state

    def loss(self, inputs: InterpreterInput, labels: Labels, episode_start: Tensor) -> Tensor:
        return self.mask.loss(inputs, labels, episode_start)


@hookimpl
def heed_components() -> list[type[ConstraintInterpreter]]:
    return [SentenceEmbedding]
