"""Sentences that are in a texts folder twice: held-out ones that training shows too, and ones that mean two things.

A few are told and no more: the public data set was written by a crowd, and people do say the same thing twice, or of
two constraints. But where most of the held-out sentences are training sentences, one file is a copy of the other, and
every table would call "unseen" what was learned by heart: that is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

MOST = 0.5
"""Share of the held-out sentences that may be training sentences too."""
SHOWN = 3


class Said(NamedTuple):
    """A sentence of a file."""

    text: str
    label: str
    place: str  # file:line

    @property
    def key(self) -> str:
        """Capitals and spaces make no other sentence."""
        return " ".join(self.text.casefold().split())


def seen_before(train: Iterable[Said], test: Iterable[Said]) -> tuple[str, bool]:
    """What to tell about held-out sentences that training has too ("": nothing); and whether to refuse them."""
    first = _first(train)
    held_out = list(test)
    again = [(said, first[said.key]) for said in held_out if said.key in first]
    if not again:
        return "", False
    shown = [f"'{said.text[:60]}' ({other.place})" for said, other in again[:SHOWN]]
    count = f"{len(again)} of {len(held_out)} held-out sentences are training sentences too, so they are not unseen"
    return f"{again[0][0].place}: {count}: {_listed(shown, len(again))}", len(again) > MOST * len(held_out)


def two_meanings(sentences: Iterable[Said]) -> str:
    """What to tell about sentences that stand under two labels; "": there are none."""
    told: list[tuple[Said, Said]] = []
    first: dict[str, Said] = {}
    for said in sentences:
        other = first.setdefault(said.key, said)
        if other.label != said.label:
            told.append((said, other))
    if not told:
        return ""
    shown = [f"'{said.text[:60]}' is {said.label}, and {other.label} ({other.place})" for said, other in told[:SHOWN]]
    many = "one sentence stands" if len(told) == 1 else f"{len(told)} sentences stand"
    return f"{told[0][0].place}: {many} under two labels: {_listed(shown, len(told))}"


def _first(sentences: Iterable[Said]) -> Mapping[str, Said]:
    found: dict[str, Said] = {}
    for said in sentences:
        found.setdefault(said.key, said)
    return found


def _listed(shown: list[str], count: int) -> str:
    return ", ".join(shown) + (f", and {count - len(shown)} more" if count > len(shown) else "")
