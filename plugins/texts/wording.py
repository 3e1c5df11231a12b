"""Words for entities and numbers: found in a sentence, and said in another way. Pure text, no learning."""

from __future__ import annotations

import re

FORMS = {"lavas": "lava", "waters": "water", "watery": "water", "grassy": "grass", "grasses": "grass"}
FORMS |= {name[:-1]: name for name in ("hazards", "vases", "pillars", "buttons", "gremlins")}
CARDINALS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty",
)  # fmt: skip
ORDINALS = (
    "", "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh",
    "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth",
    "twentieth",
)  # fmt: skip
PLAIN = 8
"""Numbers up to here are changed and shifted."""
LARGE = {"nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30, "fifty": 50,
         "hundred": 100, "thousand": 1_000, "million": 1_000_000}  # fmt: skip
"""Numbers past that, for what nobody means literally."""
TIMES = {"once": 1, "twice": 2, "thrice": 3}
SUFFIX = {1: "st", 2: "nd", 3: "rd"}
_WORD = re.compile(r"[A-Za-z]+(?:'[a-z]+)?|\d+[a-z]*|[^\sA-Za-z\d]")


def words_of(sentence: str) -> list[str]:
    """Words, numbers and marks."""
    return _WORD.findall(sentence)


def entity_of(word: str, entities: tuple[str, ...]) -> str | None:
    """The entity that a word names plainly, or None."""
    word = FORMS.get(word.lower(), word.lower())
    return word if word in entities else None


def number_of(word: str) -> int | None:
    """The number that a word says, up to eight, or None."""
    word = word.lower()
    if word in CARDINALS[: PLAIN + 1]:
        return CARDINALS.index(word)
    if word in ORDINALS[1 : PLAIN + 1]:
        return ORDINALS.index(word)
    if word in TIMES:
        return TIMES[word]
    digits = re.fullmatch(r"(\d)(st|nd|rd|th)?", word)
    return int(digits.group(1)) if digits and int(digits.group(1)) <= PLAIN else None


def beyond(words: list[str], largest: int) -> bool:
    """Does the sentence name a number that is larger than anything a constraint here can say?"""
    for word in words:
        digits = re.match(r"\d+", word)
        if LARGE.get(word.lower(), 0) > largest or (digits and int(digits.group()) > largest):
            return True
    return False


def say_number(value: int, like: str, digits: bool) -> str:
    """The value in the manner of ``like`` (ordinal, count of times, plain), in digits or in words."""
    word = like.lower()
    if word in ORDINALS or re.fullmatch(r"\d+[a-z]+", word):
        return f"{value}{SUFFIX.get(value, 'th')}" if digits else ORDINALS[value]
    if word in TIMES:
        return f"{value} {'time' if value == 1 else 'times'}" if digits else _times(value)
    return str(value) if digits else CARDINALS[value]


def shiftable(words: list[str], value: int) -> dict[int, int] | None:
    """Place -> number, of all numbers in a sentence, if it is plain that they speak of ``value``: it, or one more.

    None otherwise: a stray "one" ("the third one") or "once" ("once you have") must not be shifted along.
    """
    found = {i: number for i, word in enumerate(words) if (number := number_of(word)) is not None}
    lower = {word.lower() for word in words}
    if not found or lower & {"even", "half", "couple", "dozen", "double", "triple"}:
        return None
    if any(number - value not in (0, 1) for number in found.values()):
        return None
    if len(set(found.values())) > 1 and 1 in found.values() and value != 1:
        return None
    return found


def _times(value: int) -> str:
    names = {1: "once", 2: "twice", 3: "three times"}
    return names.get(value, f"{CARDINALS[value]} times")
