"""More sentences from one: other entities, other numbers (the meaning changed along), slips of the pen.

A reader must not learn that lava sentences speak of three and water sentences of five. So entities are permuted and
plain numbers shifted together with the meaning, some entity words become synonyms, small words get lost, letters swap.
"""

from __future__ import annotations

import dataclasses
import random
import re
from collections.abc import Sequence

from plugins.interpreters._evidence import Meaning
from plugins.interpreters._text_model import NUMBERS, ORDINALS

SYNONYMS = {
    "lava": ("magma", "molten rock", "fire", "hot rock"),
    "water": ("pond", "pool", "puddle", "stream", "lake", "river", "wet tile"),
    "grass": ("lawn", "meadow", "turf", "green field", "greenery", "field"),
}
FORMS = {"lavas": "lava", "waters": "water", "watery": "water", "grassy": "grass", "grasses": "grass"}
SMALL = frozenset(
    ["the", "a", "an", "of", "to", "in", "on", "at", "is", "are", "be", "it", "that", "this", "so", "very", "just"]
)
WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight")
TIMES = {
    1: ("once", "one time", "1 time"),
    2: ("twice", "two times", "2 times"),
    3: ("three times", "thrice", "3 times"),
}
ORDINAL_WORDS = {value: word for word, value in ORDINALS.items()}
SUFFIX = {1: "st", 2: "nd", 3: "rd"}


class Augmenter:
    """Draws variants of training sentences for one world's entities."""

    def __init__(self, entities: Sequence[str], max_distance: int, max_threshold: int, seed: int) -> None:
        self.entities = tuple(entities)
        self.limits = {"distance": max_distance, "threshold": max_threshold}
        self.rng = random.Random(seed)

    def vary(self, sentence: str, meaning: Meaning) -> tuple[str, Meaning]:
        """One variant and what it means."""
        words = re.findall(r"[A-Za-z]+(?:'[a-z]+)?|\d+[a-z]*|[^\sA-Za-z\d]", sentence)
        words, meaning = self._other_entities(words, meaning)
        words, meaning = self._other_numbers(words, meaning)
        return " ".join(self._slips(words)), meaning

    def slip(self, sentence: str) -> str:
        """The same sentence with small mistakes only."""
        return " ".join(self._slips(sentence.split()))

    def _other_entities(self, words: list[str], meaning: Meaning) -> tuple[list[str], Meaning]:
        named = {self._entity(word) for word in words}
        needed = {self.entities[meaning.entity]} | ({self.entities[meaning.first]} if meaning.first >= 0 else set())
        if not needed <= named:
            return words, meaning
        swapped = dict(zip(self.entities, self.rng.sample(self.entities, len(self.entities)), strict=True))
        words = [self._say(swapped[entity]) if (entity := self._entity(word)) else word for word in words]
        place = {i: self.entities.index(swapped[name]) for i, name in enumerate(self.entities)}
        return words, dataclasses.replace(meaning, entity=place[meaning.entity], first=place.get(meaning.first, -1))

    def _entity(self, word: str) -> str | None:
        word = FORMS.get(word.lower(), word.lower())
        return word if word in self.entities else None

    def _say(self, entity: str) -> str:
        return self.rng.choice(SYNONYMS[entity]) if entity in SYNONYMS and self.rng.random() < 0.12 else entity

    def _other_numbers(self, words: list[str], meaning: Meaning) -> tuple[list[str], Meaning]:
        """Shift all numbers and the slot they speak of, if it is plain that they do: each is n, or one more than n."""
        slot = "threshold" if meaning.threshold else "distance" if meaning.distance else None
        spots = {i: value for i, word in enumerate(words) if (value := _value(word)) is not None}
        if slot is None or not spots or self.rng.random() < 0.3 or "even" in words or "half" in words:
            return words, meaning
        old = getattr(meaning, slot)
        new = self.rng.randint(1, self.limits[slot])
        stray_one = (
            len(set(spots.values())) > 1 and 1 in spots.values() and old != 1
        )  # "the third one", "once you have"
        if stray_one or any(value - old not in (0, 1) for value in spots.values()):
            return words, meaning
        words = [self._say_number(word, spots[i] + new - old) if i in spots else word for i, word in enumerate(words)]
        return words, dataclasses.replace(meaning, **{slot: new})

    def _say_number(self, like: str, value: int) -> str:
        """The value in the manner of ``like``: ordinal, count of times, digit or word."""
        word, digits = like.lower(), self.rng.random() < 0.3
        if word in ORDINALS or re.fullmatch(r"\d+[a-z]+", word):
            return f"{value}{SUFFIX.get(value, 'th')}" if digits else ORDINAL_WORDS[value]
        if word in ("once", "twice", "thrice"):
            return self.rng.choice(TIMES[value]) if value in TIMES else f"{value if digits else WORDS[value]} times"
        return str(value) if digits != word.isdigit() else WORDS[value]

    def _slips(self, words: Sequence[str]) -> list[str]:
        kept = []
        for word in words:
            plain = word.lower()
            if plain in SMALL and self.rng.random() < 0.08:
                continue
            if len(word) >= 5 and self._entity(word) is None and _value(word) is None and self.rng.random() < 0.03:
                i = self.rng.randrange(1, len(word) - 1)
                word = self.rng.choice((word[:i] + word[i + 1 :], word[:i] + word[i + 1] + word[i] + word[i + 2 :]))
            kept.append(word)
        return kept or list(words)


def _value(word: str) -> int | None:
    """The number that a word says, up to eight."""
    word = word.lower()
    if word in ("single", "couple", "double", "triple", "none"):
        return None  # they do not shift: "a single step" has no "a two step"
    ordinal = re.fullmatch(r"(\d)(st|nd|rd|th)", word)
    if ordinal:
        return int(ordinal.group(1)) or None
    return NUMBERS.get(word, ORDINALS.get(word))
