"""More sentences from one: other entities, other numbers (the meaning changed along), slips of the pen.

A reader must not learn that lava sentences speak of three and water sentences of five. So entities are permuted and
plain numbers shifted together with the meaning, "after" becomes "before" likewise, some entity words become synonyms,
small words get lost, letters swap, and people chat before and after.
"""

from __future__ import annotations

import dataclasses
import random
import re
from collections.abc import Sequence

from plugins.interpreters._evidence import Meaning
from plugins.interpreters._meaning import AFTER, ALWAYS, BEFORE
from plugins.texts.wording import LARGE, PLAIN, entity_of, number_of, say_number, shiftable, words_of

SYNONYMS = {
    "lava": ("magma", "molten rock", "fire", "hot rock"),
    "water": ("pond", "pool", "puddle", "stream", "lake", "river", "wet tile"),
    "grass": ("lawn", "meadow", "turf", "green field", "greenery", "field"),
    "hazards": ("dark blue circles", "blue discs", "puddles", "navy spots", "blue circles"),
    "vases": ("teal cubes", "turquoise boxes", "cyan blocks", "teal vases"),
    "pillars": ("pale blue columns", "light blue posts", "tall cylinders", "blue pillars"),
    "buttons": ("orange balls", "orange spheres", "orange knobs", "orange buttons"),
    "gremlins": ("purple boxes", "violet cubes", "moving purple blocks", "purple cubes"),
}
CHATTER_BEFORE = (
    "okay,", "hey there,", "hi, quick reminder.", "please note the following.", "the rule for today:", "remember,",
    "here is the only thing I ask of you:", "you are free to roam, but", "have a good look around.", "good morning!",
    "while you gather the items, keep this in mind.", "I know the room is messy.", "this is important,",
    "collect everything you can find.", "no rush today.", "my boss asked me to tell you this:",
)  # fmt: skip
CHATTER_AFTER = (
    "please.", "thanks a lot!", "okay?", "got it?", "this is not up for debate.", "that is all I wanted to say.",
    "everything else is up to you.", "good luck with the search.", "I trust you on this.", "take your time.",
    "then we will both be happy.", "do as you like otherwise.", "somebody will check later.", "enjoy your walk!",
    "I would be very sad otherwise.", "the rest does not matter to me.",
)  # fmt: skip
SAME = (
    ("more than", "over", "above", "in excess of", "beyond", "exceeding"),
    ("at most", "no more than", "up to", "a maximum of", "not more than"),
    ("fewer than", "less than", "under", "below"),
    ("do not", "don't", "never", "please do not", "you must not", "you should not"),
    ("must not", "should not", "may not", "cannot", "can't", "are not allowed to", "shall not"),
    ("step on", "walk on", "tread on", "step onto", "walk over", "set foot on", "touch"),
    ("stepping on", "walking on", "treading on", "walking over", "touching", "setting foot on"),
    ("avoid", "keep off", "stay off", "stay away from", "steer clear of", "keep clear of"),
    ("spaces", "cells", "squares", "tiles", "steps", "blocks"),
    ("before", "until"),
)  # fmt: skip
"""Words that say the same where a constraint is spoken of. Not all of them fit everywhere: readers must bear that."""
AMBIGUOUS = frozenset(("over", "above", "beyond", "under", "below", "touch", "touching", "steps"))
"""Said for another, but not replaced themselves: "walk over" is not "walk more than"."""
SWAPPED = 0.25
REVERSED = {
    "after": "before",
    "before": "after",
    "once": "until",
    "until": "once",
    "till": "once",
    "if": "unless",
    "unless": "if",
}
"""Where one of these bears the order, the other one means the reverse: "no lava (after | before) water"."""
TURNED = 0.35
TIMES_AFTER = {"once": " times", "twice": " times", "thrice": " times"}
SMALL = frozenset(
    ("the", "a", "an", "of", "to", "in", "on", "at", "is", "are", "be", "it", "that", "this", "so", "very")
)


_PATTERNS = tuple(
    re.compile(rf"\b({'|'.join(phrase for phrase in group if phrase not in AMBIGUOUS)})\b", re.IGNORECASE)
    for group in SAME
)


class Augmenter:
    """Draws variants of training sentences for one world's entities."""

    def __init__(self, entities: Sequence[str], max_distance: int, max_threshold: int, seed: int) -> None:
        """``max_distance`` 0: the sentences' numbers for distances are not shifted (they may be centimetres)."""
        self.entities = tuple(entities)
        self.limits = {"distance": max_distance, "threshold": max_threshold}
        self.rng = random.Random(seed)

    def vary(self, sentence: str, meaning: Meaning) -> tuple[str, Meaning]:
        """One variant and what it means."""
        words, meaning = self._other_entities(words_of(sentence), meaning)
        words, meaning = self._other_numbers(words, meaning)
        words, meaning = self._other_order(words, meaning)
        return self.slip(self._other_words(" ".join(words))), meaning

    def slip(self, sentence: str) -> str:
        """The same sentence with small mistakes and small talk only."""
        words = self._slips(sentence.split())
        if self.rng.random() < 0.12:
            words.insert(0, self.rng.choice(CHATTER_BEFORE))
        if self.rng.random() < 0.12:
            words.append(self.rng.choice(CHATTER_AFTER))
        return " ".join(words)

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
        if slot is None or not self.limits[slot] or self.rng.random() < 0.3:
            return words, meaning
        old = getattr(meaning, slot)
        places = shiftable(words, old)
        if places is None:
            return words, meaning
        new = self.rng.randint(1, min(self.limits[slot], PLAIN - 1))  # one more must have a word too
        if set(places.values()) == {old} and self.rng.random() < 0.03:  # "a hundred times": as many as can be
            said = LARGE | {"10": 10, "20": 20, "25": 25, "100": 100, "a hundred": 100}
            past = [word for word, value in said.items() if value > self.limits[slot]]
            for i in places:
                words[i] = self.rng.choice(past) + TIMES_AFTER.get(words[i], "")
            return words, dataclasses.replace(meaning, **{slot: self.limits[slot]})
        for i, number in places.items():
            words[i] = say_number(number + new - old, words[i], digits=self.rng.random() < 0.4)
        return words, dataclasses.replace(meaning, **{slot: new})

    def _other_order(self, words: list[str], meaning: Meaning) -> tuple[list[str], Meaning]:
        """Turn the order around, with the meaning, if just one word bears it. Not where both entities are the same:
        "no lava before lava" says nothing."""
        if meaning.order == ALWAYS or meaning.entity == meaning.first or self.rng.random() >= TURNED:
            return words, meaning
        places = [i for i, word in enumerate(words) if word.lower() in REVERSED]
        if len(places) != 1:
            return words, meaning
        words = list(words)
        words[places[0]] = REVERSED[words[places[0]].lower()]
        return words, dataclasses.replace(meaning, order=BEFORE if meaning.order == AFTER else AFTER)

    def _other_words(self, sentence: str) -> str:
        """Some phrases become others that mean the same; one of each kind at most."""
        for group, pattern in zip(SAME, _PATTERNS, strict=True):
            found = pattern.search(sentence)
            if found and self.rng.random() < SWAPPED:
                said = found.group().lower()
                other = self.rng.choice([phrase for phrase in group if phrase != said])
                sentence = sentence[: found.start()] + other + sentence[found.end() :]
        return sentence

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
