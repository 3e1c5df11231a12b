"""More sentences from one: other entities, other numbers (the meaning changed along), slips of the pen.

A reader must not learn that lava sentences speak of three and water sentences of five. So entities are permuted and
plain numbers shifted together with the meaning, some entity words become synonyms, small words get lost, letters swap.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence

from plugins.interpreters._evidence import Meaning
from plugins.texts.wording import CARDINALS, LARGE, entity_of, number_of, say_number, shiftable, words_of

SYNONYMS = {
    "lava": ("magma", "molten rock", "fire", "hot rock"),
    "water": ("pond", "pool", "puddle", "stream", "lake", "river", "wet tile"),
    "grass": ("lawn", "meadow", "turf", "green field", "greenery", "field"),
}
TIMES_AFTER = {"once": " times", "twice": " times", "thrice": " times"}
SMALL = frozenset(
    ("the", "a", "an", "of", "to", "in", "on", "at", "is", "are", "be", "it", "that", "this", "so", "very")
)


class Augmenter:
    """Draws variants of training sentences for one world's entities."""

    def __init__(self, entities: Sequence[str], max_distance: int, max_threshold: int, seed: int) -> None:
        self.entities = tuple(entities)
        self.limits = {"distance": max_distance, "threshold": max_threshold}
        self.rng = random.Random(seed)

    def vary(self, sentence: str, meaning: Meaning) -> tuple[str, Meaning]:
        """One variant and what it means."""
        words, meaning = self._other_entities(words_of(sentence), meaning)
        words, meaning = self._other_numbers(words, meaning)
        return self.slip(" ".join(words)), meaning

    def slip(self, sentence: str) -> str:
        """The same sentence with small mistakes only."""
        return " ".join(self._slips(sentence.split()))

    def _other_entities(self, words: list[str], meaning: Meaning) -> tuple[list[str], Meaning]:
        named = {entity_of(word, self.entities) for word in words}
        needed = {self.entities[meaning.entity]} | ({self.entities[meaning.first]} if meaning.first >= 0 else set())
        if not needed <= named:
            return words, meaning
        swapped = dict(zip(self.entities, self.rng.sample(self.entities, len(self.entities)), strict=True))
        words = [self._say(swapped[entity]) if (entity := entity_of(word, self.entities)) else word for word in words]
        place = {i: self.entities.index(swapped[name]) for i, name in enumerate(self.entities)}
        return words, dataclasses.replace(meaning, entity=place[meaning.entity], first=place.get(meaning.first, -1))

    def _say(self, entity: str) -> str:
        return self.rng.choice(SYNONYMS[entity]) if entity in SYNONYMS and self.rng.random() < 0.12 else entity

    def _other_numbers(self, words: list[str], meaning: Meaning) -> tuple[list[str], Meaning]:
        """Shift all numbers and the slot they speak of, if it is plain that they do."""
        slot = "threshold" if meaning.threshold else "distance" if meaning.distance else None
        if slot is None or self.rng.random() < 0.3:
            return words, meaning
        old = getattr(meaning, slot)
        places = shiftable(words, old)
        if places is None:
            return words, meaning
        new = self.rng.randint(1, min(self.limits[slot], len(CARDINALS) - 2))  # one more must have a word too
        if set(places.values()) == {old} and self.rng.random() < 0.03:  # "a hundred times": as many as can be
            for i in places:
                words[i] = self.rng.choice((*LARGE, "10", "20", "25", "100", "a hundred")) + TIMES_AFTER.get(
                    words[i], ""
                )
            return words, dataclasses.replace(meaning, **{slot: self.limits[slot]})
        for i, number in places.items():
            words[i] = say_number(number + new - old, words[i], digits=self.rng.random() < 0.4)
        return words, dataclasses.replace(meaning, **{slot: new})

    def _slips(self, words: Sequence[str]) -> list[str]:
        kept = []
        for word in words:
            if word.lower() in SMALL and self.rng.random() < 0.08:
                continue
            plain = entity_of(word, self.entities) is None and number_of(word) is None
            if len(word) >= 5 and plain and self.rng.random() < 0.03:
                i = self.rng.randrange(1, len(word) - 1)
                word = self.rng.choice((word[:i] + word[i + 1 :], word[:i] + word[i + 1] + word[i] + word[i + 2 :]))
            kept.append(word)
        return kept or list(words)
