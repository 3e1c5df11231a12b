"""Saves a training run on the way, so that one that was killed goes on as if it had not been.

Everything that the rest of the run depends on is in one file: weights, the optimizer's state, environments, the agent's
books and memories, random streams, counters. The file before the last is kept too: a damaged one is named and the other
is used. What was saved by another version of the code is refused, because the result would belong to neither.
"""

from __future__ import annotations

import dataclasses
import os
import sys
import time
from pathlib import Path
from typing import Any, Literal, TypeVar

from torch import Tensor

from framework import checkpoint
from framework.errors import Problem, UserError
from framework.provenance import provenance

T = TypeVar("T")
SAVE_EVERY = float(os.environ.get("HEED_SAVE_EVERY", "30"))
"""Seconds between two saves: what a kill can cost."""
SAVES = ("training.safetensors", "training.previous.safetensors")
"""Files of a save: the last, and the one before it."""
Resume = Literal["same", "anyway", "fresh"]
"""Go on from a save of the same code only; from any; or start over."""


class Stopped(Exception):
    """Told to stop, and everything is saved."""


class Saver:
    """Keeps a run's progress in ``folder``, tells when it is time, and finds it again."""

    stop_asked = False
    """Set by a signal: save after this update, and stop."""

    def __init__(self, folder: Path, run_id: str, resume: Resume = "same", every: float = SAVE_EVERY) -> None:
        self.file, self.before = (folder / name for name in SAVES)
        self.run_id, self.resume, self.every = run_id, resume, every
        self._last = time.monotonic()

    def find(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """The last save that is whole; None: start from the beginning. UserError if it is of other code."""
        if self.resume == "fresh":
            self.clear()
            return None
        for file in (self.file, self.before):
            if not file.is_file():
                continue
            try:
                tensors, meta = checkpoint.load(file)
                if not isinstance(meta.get("step"), int):
                    raise UserError(Problem("does not say at which step it was saved", where=str(file)))
            except UserError as error:
                print(f"damaged, so not used: {error}", file=sys.stderr)
                continue
            self._check(file, meta)
            return tensors, meta
        return None

    def _check(self, file: Path, meta: dict[str, Any]) -> None:
        now = {"run": self.run_id, **code()}
        other = [f"{key} {meta.get(key)!r}, now {value!r}" for key, value in now.items() if meta.get(key) != value]
        if other and self.resume != "anyway":
            hint = "; --resume anyway goes on all the same, --resume fresh starts over"
            raise UserError(Problem(f"was saved with {', '.join(other)}{hint}", where=str(file)))

    def due(self) -> bool:
        return Saver.stop_asked or time.monotonic() - self._last >= self.every

    def save(self, tensors: dict[str, Tensor], meta: dict[str, Any]) -> None:
        if self.file.is_file():
            self.file.replace(self.before)
        checkpoint.save(self.file, tensors, meta | {"run": self.run_id, **code()})
        self._last = time.monotonic()
        if Saver.stop_asked:
            raise Stopped

    def clear(self) -> None:
        """The run is over, or starts over."""
        clear(self.file.parent)


def clear(folder: Path) -> None:
    """Remove what a training saved there."""
    for name in SAVES:
        (folder / name).unlink(missing_ok=True)


def has_save(folder: Path) -> bool:
    """A training was begun there, and is not over."""
    return any((folder / name).is_file() for name in SAVES)


def stop_if_asked() -> None:
    """For a moment at which there is nothing to save."""
    if Saver.stop_asked:
        raise Stopped


def code() -> dict[str, Any]:
    """What must be the same for a run to go on."""
    made = provenance()
    return {"heed": made["heed"], "commit": made["commit"]}


def pack(value: Any, name: str) -> dict[str, Tensor]:
    """A tensor, a dataclass or tuple of such, as named tensors. What is None, or shared by all steps, is left out."""
    if isinstance(value, Tensor):
        return {name: value}
    if dataclasses.is_dataclass(value):
        fields = [f.name for f in dataclasses.fields(value) if not f.metadata.get("shared")]
        parts = {field: getattr(value, field) for field in fields}
    elif isinstance(value, tuple):
        parts = {str(i): item for i, item in enumerate(value)}
    else:
        return {}
    return {key: tensor for part, item in parts.items() for key, tensor in pack(item, f"{name}.{part}").items()}


def unpack(like: T, tensors: dict[str, Tensor], name: str) -> T:
    """Undo of ``pack``; ``like`` has the same structure and gives what was left out."""
    if isinstance(like, Tensor):
        return tensors[name]  # type: ignore[return-value]
    if dataclasses.is_dataclass(like) and not isinstance(like, type):
        fields = [f.name for f in dataclasses.fields(like) if not f.metadata.get("shared")]
        values = {f: unpack(getattr(like, f), tensors, f"{name}.{f}") for f in fields}
        return dataclasses.replace(like, **values)  # type: ignore[return-value]
    if isinstance(like, tuple):
        return tuple(unpack(item, tensors, f"{name}.{i}") for i, item in enumerate(like))  # type: ignore[return-value]
    return tensors.get(name, like)  # type: ignore[return-value]


def named(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {f"{prefix}.{name}": tensor for name, tensor in tensors.items()}


def part(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Undo of ``named``."""
    start = f"{prefix}."
    return {name.removeprefix(start): tensor for name, tensor in tensors.items() if name.startswith(start)}
