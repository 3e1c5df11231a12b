"""Thousands of spoilt registries, sentence files and checkpoints: each is accepted or refused in words.

None may hang, crash, run code, or write a file. Seeded, so that a case that fails can be made again by its number.
"""

from __future__ import annotations

import json
import random
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import torch

from framework import checkpoint
from framework.config import load
from framework.errors import UserError
from framework.resume import Saver, code
from plugins.texts import loader

ROOT = Path(__file__).parent.parent
SECONDS = 60
"""Nothing this small may take so long, even on a busy machine."""
FAST, SLOW = 170, 3_400
"""Cases of each of the three sorts."""
WORDS = [
    b"${oc.env:HOME}", b"${${x}:HOME}", b"${study}", b"&a [*a]", b"*a", b"!!python/object/apply:os.system ['false']",
    b"<<: *a", b"../../x", b"/etc/passwd", b"\x00", b"\x1b[2J", b"\xff\xfe", b"\xed\xa0\x80", b"1e400", b"-1", b"nan",
    b"9" * 400, b"[" * 60, b"{" * 60, b"null", b"~", b"---\n", b"...\n", b"? ", b"|\n", b">\n", b"'", b'"', b"\\",
    b": ", b"- ", b"#", b"\n", b"\r", b",", b"]", b"}", b"true", b"0x7fffffffffffffff", b"1_000_000_000_000",
    b"2026-01-01", b"!!binary aGk=", b"experiments:\n", b"seeds: [0, 0]\n", b"plugins: [{path: x.py}]\n",
    b"\xe2\x80\xae", b"\\ud800", b"\t",
]  # fmt: skip


def spoil(data: bytes, chance: random.Random) -> bytes:
    """One to eight small accidents."""
    made = bytearray(data)
    for _ in range(chance.randint(1, 8)):
        at, length = chance.randrange(len(made) + 1), chance.choice((1, 1, 2, 5, 20, 100))
        match chance.randrange(7):
            case 0:
                made[at : at + length] = bytes(chance.randrange(256) for _ in made[at : at + length])
            case 1:
                del made[at : at + length]
            case 2:
                made[at:at] = made[at : at + length] * chance.randint(1, 5)
            case 3:
                made[at:at] = chance.choice(WORDS)
            case 4:
                made[at : at + length] = chance.choice(WORDS)
            case 5:
                other = chance.randrange(len(made) + 1)
                made[at:at] = made[other : other + 10 * length]
            case _ if chance.random() < 0.2:
                del made[at:]
    return bytes(made)


written: list[str] = []
watching = False


def _audit(event: str, details: tuple) -> None:
    """Python's own account of what is opened, started, made or removed."""
    if not watching:
        return
    if event == "open" and isinstance(details[2], int) and details[2] & 3:  # O_WRONLY, O_RDWR
        written.append(str(details[0]))
    elif event in (
        "os.system",
        "subprocess.Popen",
        "os.mkdir",
        "os.remove",
        "os.rename",
        "os.symlink",
        "socket.connect",
    ):
        written.append(f"{event} {details}")


sys.addaudithook(_audit)


@contextmanager
def guarded() -> Iterator[None]:
    """Neither longer than it may take, nor with a trace on the disk."""
    global watching

    def late(*_: object) -> None:
        raise TimeoutError(f"took longer than {SECONDS} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    written.clear()
    watching = True
    try:
        yield
    finally:
        watching = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert not written


def fuzz(bases: list[bytes], file: Path, read: Callable[[], object], count: int) -> None:
    """``count`` cases through ``read``, which must return or raise UserError with something to read in it."""
    file.write_bytes(bases[0])
    with suppress(UserError):
        read()  # once before anybody watches: what is imported for the first time leaves its .pyc
    accepted = 0
    for number in range(count):
        chance = random.Random(f"{file.name} {number}")
        file.write_bytes(spoil(chance.choice(bases), chance))
        try:
            with guarded():
                read()
            accepted += 1
        except UserError as error:
            assert error.problems
            assert all(len(problem.message) > 8 for problem in error.problems), f"case {number}"
        except Exception as error:
            raise AssertionError(f"case {number}: {type(error).__name__}: {error}; see {file}") from error
    assert accepted < count, "something was refused"


SIZES = [FAST, pytest.param(SLOW, marks=pytest.mark.slow)]


@pytest.mark.parametrize("count", SIZES)
def test_registries(count, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    texts = [*ROOT.glob("studies/ford.yaml"), *(ROOT / "tests" / "bad_input").glob("*/registry.yaml")]
    bases = [text.read_bytes() for text in texts if text.stat().st_size < 5_000]
    bases += [
        b"study: x\nseeds: [0, 1]\ntraining: {steps: 1e5, batch: 1_000, rows: 10}\nexperiments:\n"
        b"  a: &a {env: ford, interpreter: oracle, policy: mlp, optimizer: ppo_lagrangian}\n  b: *a\n"
        b"ablations:\n  g: {base: a, axes: {optimizer.clip: [0.1, 0.2], policy.hidden: [[8], [16]]}}\n"
        b"evaluations:\n  short: {env: {steps: 12}, finetune: '${training.batch}'}\nreport: {title: '${study}'}\n"
    ]
    load(Path(ROOT / "studies" / "ford.yaml"))  # whatever is imported is imported by now
    file = tmp_path / "registry.yaml"
    fuzz(bases, file, lambda: load(file), count)
    assert {p.name for p in tmp_path.iterdir()} <= {"registry.yaml"}


@pytest.mark.parametrize("count", SIZES)
def test_sentence_files(count, tmp_path):
    own = json.loads((loader.OWN / "grid" / "budgetary-test.json").read_text())
    small = {label: lines[:3] for label, lines in list(own.items())[:6]}
    bases = [json.dumps(small, indent=1).encode(), json.dumps(small, indent=1).replace("\n ]", ",\n ]").encode()]
    file = tmp_path / "budgetary-train.json"

    def read() -> None:
        try:
            loader.load(tmp_path, "budgetary", "train")
        except loader.TextError as error:
            raise UserError(str(error)) from None

    fuzz(bases, file, read, count)


@pytest.mark.parametrize("count", SIZES)
def test_checkpoints(count, tmp_path, capsys):
    tensors = {"policy.w": torch.arange(6.0).view(2, 3), "flag": torch.tensor([True]), "torch": torch.ones(4).byte()}
    checkpoint.save(tmp_path / "one", tensors, {"step": 400, "run": "r", "walks": [1, 2]})
    checkpoint.save(tmp_path / "two", {}, {})
    bases = [(tmp_path / name).read_bytes() for name in ("one", "two")]
    saver = Saver(tmp_path, "r", "anyway")
    assert code()  # asks git, once

    def read() -> None:
        saver.find()
        checkpoint.load(saver.file)

    fuzz(bases, saver.file, read, count)


def test_absurd_headers_are_refused(tmp_path):
    file = tmp_path / "x.safetensors"
    for head, told in (
        ((2**40).to_bytes(8, "little"), "its header would be 1,099,511,627,776 bytes"),
        (_header({"__metadata__": {"heed": "[" * 100_000}}), "damaged"),
        (_header({"__metadata__": {"heed": "[1]"}}), "its header is not a mapping"),
        (_header({"x": {"dtype": "F32", "shape": [2**40, 2**20], "data_offsets": [0, 4]}}) + b"abcd", "damaged"),
    ):
        file.write_bytes(head)
        with pytest.raises(UserError, match=told):
            checkpoint.load(file)


def _header(content: dict) -> bytes:
    text = json.dumps(content).encode()
    return len(text).to_bytes(8, "little") + text
