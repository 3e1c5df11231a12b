"""Reads sentence files in the format of the public data set, and is strict about everything but trailing commas.

A folder holds ``<kind>-train.json`` and ``<kind>-test.json``: one JSON object, label -> list of sentences. Some of the
public files have trailing commas, which the json module refuses; and it keeps no line numbers of what it accepts. So
this file has a small reader of its own: every complaint names a file and a line.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Literal, NoReturn

from hazardworld.constraint import GRID, KINDS, Domain, from_label, suggest
from plugins.texts.repeats import Said, seen_before, two_meanings

OWN = Path(__file__).parent
"""Our own sentences: a folder for each domain."""

MAX_BYTES = 10_000_000
MAX_SENTENCES = 100_000
LONGEST = 2_000
"""Characters of a sentence; nobody says more about one constraint."""
_UNFIT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
"""Control characters, which a terminal obeys, and halves of characters, which cannot be written."""
_TOKEN = re.compile(r'(?P<string>"(?:[^"\\\n]|\\.)*")|(?P<mark>[{}\[\],:])|(?P<other>[^\s{}\[\],:"]+|")')


class TextError(ValueError):
    """A sentence file that cannot be used; the message starts with file and line."""


def load(
    folder: Path | None, kind: str, split: Literal["train", "test"], domain: Domain = GRID
) -> dict[str, list[str]]:
    """The sentences of every label in one file, in the file's order; ``folder`` None: our own."""
    if kind not in KINDS:
        raise TextError(f"unknown kind of constraint {kind!r}{suggest(kind, KINDS)}")
    if split not in ("train", "test"):
        raise TextError(f"unknown split {split!r}{suggest(split, ('train', 'test'))}")
    path = (OWN / domain.name if folder is None else folder) / f"{kind}-{split}.json"
    reader = _open(path, kind, domain)
    classes = reader.read()
    if folder is not None:  # our own have no repeats: a test sees to that
        _check_repeats(reader, folder, kind, split)
    return classes


def _check_repeats(reader: _Reader, folder: Path, kind: str, split: str) -> None:
    """Look at both files, whichever is asked for: training comes first, and hours before the other."""
    try:
        other = _open(folder / f"{kind}-{'test' if split == 'train' else 'train'}.json", kind, reader.domain)
        other.read()
    except TextError:  # it is not there, or will be told about when it is asked for
        said: list[Said] = []
    else:
        said = other.said
    train, test = (reader.said, said) if split == "train" else (said, reader.said)
    told, refused = seen_before(train, test)
    if refused:
        raise TextError(told)
    for warning in (told, two_meanings(train + test)):
        if warning and warning not in _told:
            _told.add(warning)
            print(warning, file=sys.stderr)


_told = set[str]()
"""Warnings of this process: a study loads a folder many times."""


def _open(path: Path, kind: str, domain: Domain) -> _Reader:
    try:
        with open(path, "rb") as file:
            raw = file.read(MAX_BYTES + 1)
        source = raw.decode("utf-8-sig")
    except FileNotFoundError:
        raise TextError(f"{path}: no such file (a texts folder holds <kind>-train.json and <kind>-test.json)") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise TextError(f"{path}:{line}: not UTF-8 text") from None
    except OSError as error:
        raise TextError(f"{path}: cannot be read: {error.strerror}") from None
    if len(raw) > MAX_BYTES:
        raise TextError(f"{path}: is too large; a sentence file has at most {MAX_BYTES:,} bytes")
    return _Reader(path, source, kind, domain)


class _Reader:
    """Walks over the tokens of one file."""

    def __init__(self, path: Path, source: str, kind: str, domain: Domain) -> None:
        self.path, self.kind, self.domain = path, kind, domain
        self.tokens: list[tuple[str, str, int]] = []  # (group, text, line)
        line, place = 1, 0
        for match in _TOKEN.finditer(source):
            line += source.count("\n", place, match.start())
            place = match.start()
            self.tokens.append((str(match.lastgroup), match.group(), line))
        self.tokens.append(("end", "end of file", 1 + source.rstrip("\n").count("\n")))
        self.at, self.count = 0, 0
        self.said: list[Said] = []

    def read(self) -> dict[str, list[str]]:
        classes: dict[str, list[str]] = {}
        lines: dict[str, int] = {}
        self.expect("{")
        while not self.accept("}"):
            label, line = self.string("a label")
            if label in lines:
                self.fail(f"label {label!r} is already on line {lines[label]}", line)
            try:
                from_label(self.kind, label, self.domain)
            except ValueError as error:
                self.fail(str(error), line)
            lines[label] = line
            self.expect(":")
            classes[label] = self.sentences(label, line)
            if not self.accept(","):
                self.expect("}", "',' or '}'")
                break
        if self.tokens[self.at][0] != "end":
            self.fail(f"expected end of file, found {self.tokens[self.at][1]}")
        if not classes:
            self.fail("no labels")
        return classes

    def sentences(self, label: str, line: int) -> list[str]:
        found: list[str] = []
        self.expect("[", "a list of sentences")
        while not self.accept("]"):
            sentence, place = self.string("a sentence")
            if not sentence.strip():
                self.fail(f"label {label!r} has an empty sentence", place)
            if len(sentence) > LONGEST:
                self.fail(f"a sentence has {len(sentence):,} characters; {LONGEST:,} is the most", place)
            if unfit := _UNFIT.search(sentence):
                self.fail(f"a sentence has the character {unfit.group()!a}, which cannot be printed", place)
            self.count += 1
            if self.count > MAX_SENTENCES:
                self.fail(f"more than {MAX_SENTENCES:,} sentences", place)
            found.append(sentence)
            self.said.append(Said(sentence, label, f"{self.path}:{place}"))
            if not self.accept(","):
                self.expect("]", "',' or ']'")
                break
        if not found:
            self.fail(f"label {label!r} has no sentences", line)
        return found

    def string(self, what: str) -> tuple[str, int]:
        group, text, line = self.tokens[self.at]
        if group != "string":
            self.fail(f"expected {what} in double quotes, found {text}")
        self.at += 1
        try:
            return json.loads(text), line
        except json.JSONDecodeError as error:
            self.fail(f"bad string {text}: {error.msg}", line)

    def accept(self, mark: str) -> bool:
        group, text, _ = self.tokens[self.at]
        found = group == "mark" and text == mark
        self.at += found
        return found

    def expect(self, mark: str, what: str | None = None) -> None:
        if not self.accept(mark):
            self.fail(f"expected {what or repr(mark)}, found {self.tokens[self.at][1]}")

    def fail(self, message: str, line: int | None = None) -> NoReturn:
        raise TextError(f"{self.path}:{line or self.tokens[self.at][2]}: {message}")
