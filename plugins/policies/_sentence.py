"""An LSTM that reads the sentence, for policies that do so themselves (Constraint Fusion)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from framework.interfaces import PolicyInput
from plugins.policies._lstm import Queue, last_states
from plugins.texts.words import hash_words_twice

WORDS = 20
"""Words of a sentence that are read: all of them in 99 of 100 of ours. Each costs a step of the LSTM."""
BUCKETS = 512
"""Rows of an embedding. A word is the sum of two rows, by two hashes: few words share both,
and there is no vocabulary to store."""


def encode(sentences: Sequence[str]) -> Tensor:
    """[S, WORDS, 2] hashed words, 0 where the sentence is over."""
    return hash_words_twice(sentences, WORDS, BUCKETS)


class SentenceReader(nn.Module):
    """Word embedding and LSTM -> a vector for each row's sentences."""

    def __init__(self, words: int, text: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(2 * BUCKETS + 1, words, padding_idx=0)
        self.lstm = nn.LSTM(words, text, batch_first=True)

    def forward(self, inputs: PolicyInput) -> Tensor:
        """[B, text]"""
        used, where = torch.unique(inputs.text, return_inverse=True)  # each sentence is read once, not once a step
        return self._read(inputs.tokens[used])[where].mean(1)  # several constraints: their mean

    def _read(self, words: Tensor) -> Tensor:
        """[S, WORDS, 2] -> [S, text]: the LSTM's state after the last word."""
        length = (words[..., 0] > 0).sum(-1).clamp(min=1)
        if torch.is_grad_enabled() and self.lstm.weight_hh_l0.requires_grad:  # what is exported must be plain torch
            queue = Queue.of(length)
            return last_states(self.lstm, self.embedding(words[queue.sentence, queue.word]).sum(1), queue)
        states, _ = self.lstm(self.embedding(words[:, : int(length.max())]).sum(2))
        return states[torch.arange(len(words)), length - 1]
