"""Our own sentences: as many, as varied and as honestly split as the crowd-written ones, and labelled right."""

from __future__ import annotations

import re
from functools import cache

import pytest

from hazardworld.constraint import CLASSES, KINDS
from plugins.texts.loader import GRID_FOLDER, load

LEAST = {"budgetary": 432, "relational": 262, "sequential": 290}
"""How many sentences the paper has."""
VOCABULARY = 526
NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
THINGS = r"lavas?|magma|molten|rock|waters?|stream|river|pond|grass(es)?|lawn|turf"
AMOUNTS = r"once|twice|thrice|single|double|triple|none|pair|couple|half|dozen|first|second|third|fourth|fifth|sixth"
BLANKS = {"THING": re.compile(THINGS), "NUMBER": re.compile(rf"\d.*|{'|'.join(NUMBERS)}|{AMOUNTS}")}


def words(sentence: str) -> list[str]:
    return re.findall(r"[a-z0-9']+", sentence.lower())


def skeleton(sentence: str) -> tuple[str, ...]:
    """The sentence without what a template would fill in: things and numbers, each run of them one blank."""
    marks = [next((mark for mark, known in BLANKS.items() if known.fullmatch(w)), w) for w in words(sentence)]
    return tuple(mark for place, mark in enumerate(marks) if mark not in BLANKS or marks[place - 1 : place] != [mark])


@cache
def corpus(kind: str, split: str) -> dict[str, list[str]]:
    return load(None, kind, split)  # type: ignore[arg-type]


def flat(kind: str, *splits: str) -> list[str]:
    return [s for split in splits or ("train", "test") for told in corpus(kind, split).values() for s in told]


def test_skeletons_are_what_they_should_be() -> None:
    assert skeleton("No more than 2 steps in molten rock!") == skeleton("no more than three steps in water")
    assert skeleton("Keep off the lava.") != skeleton("Stay off the lava.")


@pytest.mark.parametrize("kind", KINDS)
def test_enough_sentences_and_every_class_in_both_splits(kind: str) -> None:
    assert len(flat(kind)) >= LEAST[kind]
    for split in ("train", "test"):
        assert set(corpus(kind, split)) == {constraint.label for constraint in CLASSES[kind]}
        assert all(corpus(kind, split).values())


@pytest.mark.parametrize("kind", KINDS)
def test_a_fifth_is_held_out(kind: str) -> None:
    assert len(flat(kind, "test")) / len(flat(kind)) == pytest.approx(0.2, abs=0.02)


@pytest.mark.parametrize("kind", KINDS)
def test_sentences_are_free_form(kind: str) -> None:
    everything, seen = flat(kind), {skeleton(s) for s in flat(kind, "train")}
    assert len({skeleton(s) for s in everything}) / len(everything) >= 0.75
    held_out = flat(kind, "test")
    assert sum(skeleton(s) not in seen for s in held_out) / len(held_out) >= 0.75


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_said_twice(kind: str) -> None:
    """So no test sentence is a training sentence, and none has two labels."""
    told = [tuple(words(sentence)) for sentence in flat(kind)]
    assert len(set(told)) == len(told)


def test_vocabulary() -> None:
    assert len({word for kind in KINDS for sentence in flat(kind) for word in words(sentence)}) >= VOCABULARY


_NUMBER = rf"(?P<number>\d+|{'|'.join(NUMBERS)}|once|twice|thrice)\b"
LIMITS = {
    "below": (re.compile(rf"\b(?:fewer tha?e?n|less tha?e?n|under|below) {_NUMBER}"), -1),
    "at most": (re.compile(rf"\b(?:more than|exceed|over|at most|beyond|up to) {_NUMBER}"), 0),
}


@pytest.mark.parametrize(("phrase", "least"), [("below", 25), ("at most", 25)])
def test_the_label_is_the_number_that_is_said(phrase: str, least: int) -> None:
    """ "Fewer than n" allows n - 1; the published environment was off by one here."""
    pattern, shift = LIMITS[phrase]
    checked, wrong = 0, []
    for split in ("train", "test"):
        for label, sentences in corpus("budgetary", split).items():
            for sentence in sentences:
                match = pattern.search(" ".join(words(sentence)))
                if match:
                    checked += 1
                    if int(label[-1]) != value(match["number"]) + shift:
                        wrong.append((label, sentence))
    assert not wrong
    assert checked >= least, checked


def value(word: str) -> int:
    tuples = {"once": 1, "twice": 2, "thrice": 3}
    return int(word) if word.isdigit() else tuples[word] if word in tuples else NUMBERS.index(word)


def test_invalid_sentences_are_no_constraints() -> None:
    source = [(GRID_FOLDER / f"invalid-{split}.json").read_text() for split in ("train", "test")]
    train, test = (
        {tuple(words(s)) for s in re.findall(r'"((?:[^"\\]|\\.)+)"', text)} - {("invalid",)} for text in source
    )
    valid = {tuple(words(sentence)) for kind in KINDS for sentence in flat(kind)}
    assert train and test and not train & test
    assert not (train | test) & valid
