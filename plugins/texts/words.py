"""Sentences as word numbers, without a vocabulary to fit or to store: words are hashed."""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Sequence

import torch
from torch import Tensor

BUCKETS = 4096


def split_words(sentence: str) -> list[str]:
    """Lower-case words and numbers."""
    return re.findall(r"[a-z]+(?:'[a-z]+)?|\d+", sentence.lower())


def hash_words_twice(sentences: Sequence[str], length: int, buckets: int) -> Tensor:
    """[S, length, 2] int64: two hashes of each word that have nothing to do with each other, the second in rows of its
    own; 0 where the sentence is over. (Two salts of one checksum would not do: words that share one share both.)"""
    rows = torch.zeros(len(sentences), length, 2, dtype=torch.int64)
    for row, sentence in zip(rows, sentences, strict=True):
        for i, word in enumerate(split_words(sentence)[:length]):
            digest = hashlib.blake2b(word.encode(), digest_size=8).digest()
            first, second = (int.from_bytes(half, "little") % buckets for half in (digest[:4], digest[4:]))
            row[i, 0], row[i, 1] = 1 + first, 1 + buckets + second
    return rows


def hash_words(sentences: Sequence[str], length: int, buckets: int = BUCKETS) -> Tensor:
    """[S, length] int64: 1 + hash of each word, 0 where the sentence is over; what is longer is cut."""
    rows = torch.zeros(len(sentences), length, dtype=torch.int64)
    for row, sentence in zip(rows, sentences, strict=True):
        for i, word in enumerate(split_words(sentence)[:length]):
            row[i] = 1 + zlib.crc32(word.encode()) % buckets
    return rows
