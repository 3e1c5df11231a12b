"""Probes: the held-out sentences with one thing changed, to see what a reader stumbles over.

Each probe maps sentences by label to sentences by label. Those that it does not apply to are left out, so a score under
a probe is about just the sentences that show the property. ``other_entity`` and ``other_number`` are counterfactuals:
one word of the sentence changes and the label with it, so the right answer changes in that respect and in no other.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from hazardworld.constraint import ENTITIES, MAX_BUDGET, MAX_DISTANCE, Constraint
from plugins.texts.wording import entity_of, number_of, say_number, shiftable, words_of

Line = tuple[str, Constraint]
NEGATION = re.compile(r"\b(not|no|never|don't|dont|cannot|can't|without|nor|isn't|won't|mustn't|shouldn't)\b", re.I)
UNSEEN = {
    "lava": ("volcanic rock", "the liquid fire", "molten stone", "the glowing ooze"),
    "water": ("the sea", "the brook", "the creek", "the ocean"),
    "grass": ("the pasture", "the sod", "the weeds", "the prairie"),
}
"""Names that stage 1 never shows: neither in the sentences nor in the reader's own variations."""
BEFORE = (
    "Listen up, this matters a lot to me and to everybody else here:",
    "Before you start collecting things, remember this.",
)
AFTER = (
    "I mean it, and I will be watching you the whole time.",
    "Other than that, have fun and collect whatever you like.",
)


def apply(probe: str, lines: list[Line], seed: int = 0) -> list[Line]:
    """The lines that the probe applies to, changed."""
    if probe not in PROBES:
        raise ValueError(f"unknown probe {probe!r}; known: {', '.join(PROBES)}")
    rng = random.Random(seed)
    changed = (PROBES[probe](sentence, constraint, rng) for sentence, constraint in lines)
    return [line for line in changed if line is not None]


def _typos(sentence: str, constraint: Constraint, rng: random.Random) -> Line | None:
    """A slip in every fourth longer word, entities included."""
    words = sentence.split()
    for i, word in enumerate(words):
        if len(word) >= 5 and number_of(word.strip(".,!?")) is None and rng.random() < 0.25:
            j = rng.randrange(1, len(word) - 1)
            words[i] = rng.choice((word[:j] + word[j + 1 :], word[:j] + word[j + 1] + word[j] + word[j + 2 :]))
    return " ".join(words), constraint


def _synonyms(sentence: str, constraint: Constraint, rng: random.Random) -> Line | None:
    said = {name: rng.choice(UNSEEN[name]) for name in ENTITIES}
    words = words_of(sentence)
    if not any(entity_of(word, ENTITIES) for word in words):
        return None
    text = " ".join(said[name] if (name := entity_of(word, ENTITIES)) else word for word in words)
    return text.replace("the the ", "the "), constraint


def _in(digits: bool) -> Callable[[str, Constraint, random.Random], Line | None]:
    def change(sentence: str, constraint: Constraint, rng: random.Random) -> Line | None:
        words = words_of(sentence)
        numbers = [number_of(word) for word in words]
        if all(number is None for number in numbers):
            return None
        said = [w if n is None or n == 0 else say_number(n, w, digits) for w, n in zip(words, numbers, strict=True)]
        return " ".join(said), constraint

    return change


def _longer(sentence: str, constraint: Constraint, rng: random.Random) -> Line | None:
    return f"{rng.choice(BEFORE)} {sentence} {rng.choice(AFTER)}", constraint


def _shouting(sentence: str, constraint: Constraint, rng: random.Random) -> Line | None:
    return re.sub(r"[^\w\s']", "", sentence).upper() + "!!!", constraint


def _negation(sentence: str, constraint: Constraint, rng: random.Random) -> Line | None:
    return (sentence, constraint) if NEGATION.search(sentence) else None


def _other_entity(sentence: str, constraint: Constraint, rng: random.Random) -> Line | None:
    """Every entity becomes the next one, in the sentence and in the label."""
    following = {name: ENTITIES[(i + 1) % len(ENTITIES)] for i, name in enumerate(ENTITIES)}
    words = words_of(sentence)
    named = {entity_of(word, ENTITIES) for word in words}
    if not {constraint.entity, constraint.first or constraint.entity} <= named:
        return None
    text = " ".join(following[name] if (name := entity_of(word, ENTITIES)) else word for word in words)
    first = following[constraint.first] if constraint.first else None
    changed = Constraint(
        constraint.kind, following[constraint.entity], constraint.budget, constraint.distance, first, constraint.order
    )
    return text, changed


def _other_number(sentence: str, constraint: Constraint, rng: random.Random) -> Line | None:
    """The number becomes another, in the sentence and in the label."""
    old = constraint.budget or constraint.distance
    words = words_of(sentence)
    places = shiftable(words, old) if old else None
    if places is None:
        return None
    most = MAX_BUDGET if constraint.budget else MAX_DISTANCE
    new = rng.choice([value for value in range(1, most + 1) if value != old])
    for i, number in places.items():
        words[i] = say_number(number + new - old, words[i], digits=words[i][0].isdigit())
    budget, distance = (new, 0) if constraint.budget else (0, new)
    return " ".join(words), Constraint(constraint.kind, constraint.entity, budget, distance)


PROBES: dict[str, Callable[[str, Constraint, random.Random], Line | None]] = {
    "typos": _typos,
    "synonyms": _synonyms,
    "digits": _in(digits=True),
    "words": _in(digits=False),
    "longer": _longer,
    "shouting": _shouting,
    "negation": _negation,
    "other_entity": _other_entity,
    "other_number": _other_number,
}
