"""Sentences as word numbers, without a vocabulary to fit or to store: words are hashed."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence

import torch
from torch import Tensor

BUCKETS = 4096


def split_words(sentence: str) -> list[str]:
    """Lower-case words and numbers."""
    return re.findall(r"[a-z]+(?:'[a-z]+)?|\d+", sentence.lower())


def hash_words(sentences: Sequence[str], length: int, buckets: int = BUCKETS, salt: str = "") -> Tensor:
    """[S, length] int64: 1 + hash of each word, 0 where the sentence is over; what is longer is cut."""
    rows = torch.zeros(len(sentences), length, dtype=torch.int64)
    for row, sentence in zip(rows, sentences, strict=True):
        for i, word in enumerate(split_words(sentence)[:length]):
            row[i] = 1 + zlib.crc32((salt + word).encode()) % buckets
    return rows
