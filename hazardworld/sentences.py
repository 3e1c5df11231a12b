"""The sentences of a split, numbered, with the numbers that belong to each constraint class."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hazardworld.constraint import GRID, KINDS, Constraint, Domain, all_classes, from_label


@dataclass(frozen=True)
class SentenceTable:
    """Sentences sorted by class, so that a class is a range of numbers."""

    sentences: tuple[str, ...]
    start: NDArray[np.int64]  # [C] number of a class's first sentence
    count: NDArray[np.int64]  # [C] how many it has; 0: the class cannot be drawn
    domain: Domain = GRID

    @classmethod
    def build(cls, by_class: Mapping[Constraint, Sequence[str]], domain: Domain = GRID) -> SentenceTable:
        sentences: list[str] = []
        known = all_classes(domain)
        start, count = np.zeros((2, len(known)), np.int64)
        for i, constraint in enumerate(known):
            said = by_class.get(constraint, ())
            if said:
                start[i], count[i] = len(sentences), len(said)
                sentences.extend(said)
        return cls(tuple(sentences), start, count, domain)

    @classmethod
    def load(
        cls,
        kind: str,
        split: str,
        folder: Path | str | None = None,
        probe: str | None = None,
        domain: Domain = GRID,
    ) -> SentenceTable:
        """From a texts folder (None: our own). ``eval`` maps are told with the held-out ``test`` sentences.

        ``probe`` changes those in one respect; see plugins/texts/probes.py.
        """
        from plugins.texts.loader import load  # here, because the loader checks labels with this package

        path = None if folder is None else Path(folder)
        by_class: dict[Constraint, list[str]] = {}
        for name in _kinds(kind):
            for label, sentences in load(path, name, "train" if split == "train" else "test", domain).items():
                by_class[from_label(name, label, domain)] = sentences
        if probe is not None and split == "eval":
            from plugins.texts.probes import apply

            lines = [(sentence, constraint) for constraint, said in by_class.items() for sentence in said]
            by_class = {}
            for sentence, constraint in apply(probe, lines):
                by_class.setdefault(constraint, []).append(sentence)
            if not by_class:
                raise ValueError(f"probe '{probe}' applies to no {kind} sentence")
        return cls.build(by_class, domain)

    @property
    def classes(self) -> tuple[Constraint, ...]:
        """The constraints that can be said."""
        return tuple(c for c, count in zip(all_classes(self.domain), self.count, strict=True) if count)


def digest(kind: str, folder: Path | str | None) -> str:
    """Changes with the sentences of a folder, both splits; "" for our own. What cannot be read is left out: ``load``
    says what is wrong with it."""
    if folder is None:
        return ""
    from plugins.texts.loader import MAX_BYTES

    found = hashlib.sha256()
    for name in (f"{name}-{split}.json" for name in _kinds(kind) for split in ("test", "train")):
        try:
            with open(Path(folder) / name, "rb") as file:
                content = file.read(MAX_BYTES)
        except (OSError, ValueError):
            continue
        found.update(f"{name} {len(content)}\n".encode() + content)
    return found.hexdigest()[:12]


def _kinds(kind: str) -> tuple[str, ...]:
    return KINDS if kind == "mixed" else (kind,)
