"""Sentence files: what is read, and what exactly is said about a file that cannot be."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from hazardworld.constraint import GRID, KINDS, ROBOT, Domain
from plugins.texts.loader import OWN, TextError, load


def write(folder: Path, source: str | bytes, kind: str = "budgetary", split: str = "train") -> Path:
    path = folder / f"{kind}-{split}.json"
    path.write_bytes(source if isinstance(source, bytes) else source.encode())
    return path


def test_reads_labels_in_order_with_trailing_commas(tmp_path: Path) -> None:
    write(tmp_path, '{\n "water5": ["a", "b \\u00e9 \\"c\\"",],\n "lava0": ["d"],\n}\n')
    assert load(tmp_path, "budgetary", "train") == {"water5": ["a", 'b é "c"'], "lava0": ["d"]}


def test_byte_order_mark_and_empty_lines_are_fine(tmp_path: Path) -> None:
    write(tmp_path, b'\xef\xbb\xbf\r\n{"agrasswater":\r\n["x"]}\r\n', "sequential", "test")
    assert load(tmp_path, "sequential", "test") == {"agrasswater": ["x"]}


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ('{\n"watr5": ["a"]}', "2: label 'watr5' names an unknown entity 'watr' (did you mean 'water'?)"),
        ('{\n\n"water9": ["a"]}', "3: no budgetary constraint has the label 'water9' (did you mean 'water5'?)"),
        ('{"water1": ["a"],\n"water1": ["b"]}', "2: label 'water1' is already on line 1"),
        ('{"water1": ["a"],\n"lava1": []}', "2: label 'lava1' has no sentences"),
        ('{"water1": ["a",\n 3]}', "2: expected a sentence in double quotes, found 3"),
        ('{"water1": ["a",\n null]}', "2: expected a sentence in double quotes, found null"),
        ('{"water1": ["a",\n "  "]}', "2: label 'water1' has an empty sentence"),
        ('{"water1":\n "a"}', '2: expected a list of sentences, found "a"'),
        ('{"water1": ["a"]\n "lava1": ["b"]}', "2: expected ',' or '}', found \"lava1\""),
        ('{"water1": ["a"\n "b"]}', "2: expected ',' or ']', found \"b\""),
        ('{"water1": ["a",,\n "b"]}', "1: expected a sentence in double quotes, found ,"),
        ('{"water1": ["a"', "1: expected ',' or ']', found end of file"),
        ('{"water1": ["a"]}\n{}', "2: expected end of file, found {"),
        ('{"water1": ["a",\n "' + "b" * 2_001 + '"]}', "2: a sentence has 2,001 characters; 2,000 is the most"),
        ('{"water1": ["\\u001b[2J"]}', r"1: a sentence has the character '\x1b', which cannot be printed"),
        ('{"water1": ["\\ud800"]}', r"1: a sentence has the character '\ud800', which cannot be printed"),
        ('{"water1": [' + '"a",' * 100_001 + "]}", "1: more than 100,000 sentences"),
        ("{water1: []}", "1: expected a label in double quotes, found water1"),
        ('["a"]', "1: expected '{', found ["),
        ("{}", "1: no labels"),
        ("", "1: expected '{', found end of file"),
        ('{"water1": ["a\nb"]}', '1: expected a sentence in double quotes, found "'),
        ('{\n"water1": ["a\\q"]}', '2: bad string "a\\q": Invalid \\escape'),
        (b'{\n"water1": ["\xff"]}', "2: not UTF-8 text"),
    ],
)
def test_refuses_with_file_and_line(source: str | bytes, message: str, tmp_path: Path) -> None:
    path = write(tmp_path, source)
    with pytest.raises(TextError) as error:
        load(tmp_path, "budgetary", "train")
    assert str(error.value) == f"{path}:{message}"


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(TextError) as error:
        load(tmp_path, "relational", "test")
    path = tmp_path / "relational-test.json"
    assert str(error.value) == f"{path}: no such file (a texts folder holds <kind>-train.json and <kind>-test.json)"


@pytest.mark.parametrize("split", ["train", "test"])
def test_held_out_sentences_that_are_those_of_training_are_refused(
    split: Literal["train", "test"], tmp_path: Path
) -> None:
    train = write(tmp_path, '{"lava0": ["No lava"],\n "water1": ["Water once", "One  splash"]}')
    test = write(tmp_path, '{"lava0": ["Lava? Never"],\n "water1": [\n"water once", "One splash"]}', split="test")
    with pytest.raises(TextError) as error:
        load(tmp_path, "budgetary", split)
    assert str(error.value) == (
        f"{test}:3: 2 of 3 held-out sentences are training sentences too, so they are not unseen: "
        f"'water once' ({train}:2), 'One splash' ({train}:2)"
    )


def test_a_few_repeats_and_a_sentence_under_two_labels_are_told_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train = write(tmp_path, '{"lava0": ["No lava"],\n "water1": ["Not twice", "No lava"]}')
    test = write(tmp_path, '{"lava0": ["Lava? Never", "Keep cool"],\n "water1": ["Not twice"]}', split="test")
    for _ in range(2):
        assert load(tmp_path, "budgetary", "train") == {"lava0": ["No lava"], "water1": ["Not twice", "No lava"]}
        assert set(load(tmp_path, "budgetary", "test")) == {"lava0", "water1"}
    assert capsys.readouterr().err == (
        f"{test}:2: 1 of 3 held-out sentences are training sentences too, so they are not unseen: "
        f"'Not twice' ({train}:2)\n"
        f"{train}:2: one sentence stands under two labels: 'No lava' is water1, and lava0 ({train}:1)\n"
    )


@pytest.mark.parametrize("domain", [GRID, ROBOT])
@pytest.mark.parametrize("kind", KINDS)
def test_our_own_sentences_have_no_repeats(kind: str, domain: Domain, capsys: pytest.CaptureFixture[str]) -> None:
    assert load(OWN / domain.name, kind, "test", domain)
    assert capsys.readouterr().err == ""


def test_unknown_kind_and_split(tmp_path: Path) -> None:
    with pytest.raises(TextError, match=r"unknown kind of constraint 'budget' \(did you mean 'budgetary'\?\)"):
        load(tmp_path, "budget", "train")
    with pytest.raises(TextError, match=r"unknown split 'eval' \(known: train, test\)"):
        load(tmp_path, "budgetary", "eval")  # type: ignore[arg-type]


def test_absurd_files(tmp_path: Path) -> None:
    file = write(tmp_path, b" " * 10_000_001)
    with pytest.raises(TextError, match=f"^{file}: is too large; a sentence file has at most 10,000,000 bytes$"):
        load(tmp_path, "budgetary", "train")
    file.unlink()
    file.mkdir()
    with pytest.raises(TextError, match=f"^{file}: cannot be read: Is a directory$"):
        load(tmp_path, "budgetary", "train")
