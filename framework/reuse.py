"""Takes finished runs and trained interpreters from other runs folders (``reuse`` in a registry), instead of anew.

Runs are named by the hash of all that determines them, so what has the same name is the same. Copies, not links: a
runs folder stays whole when the other one goes.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from framework.checkpoint import load, write_bytes
from framework.config import Study
from framework.errors import UserError
from framework.stages import interpreter_file, is_trained, run_folder


@dataclass(frozen=True)
class Borrowed:
    """What came of it."""

    runs: int
    damaged: tuple[str, ...]
    """Runs that were found but could not be read, and why; they are made anew."""


def borrow(study: Study, runs_dir: Path, folders: Sequence[Path]) -> Borrowed:
    """Copy what this study needs, lacks, and finds there."""
    taken, damaged = 0, []
    for folder in folders:
        for run in study.runs:
            theirs, ours = run_folder(folder, run), run_folder(runs_dir, run)
            reader, own_reader = (interpreter_file(place, run, study.host) for place in (folder, runs_dir))
            if theirs.resolve() == ours.resolve():
                continue
            try:
                if reader.is_file() and not own_reader.is_file():
                    load(reader)
                    copy(reader, own_reader)
                if is_trained(theirs) and not is_trained(ours):
                    for file in sorted(theirs.rglob("*.safetensors")):
                        load(file)
                    shutil.copytree(theirs, ours, dirs_exist_ok=True, ignore=shutil.ignore_patterns("result.json"))
                    for result in theirs.rglob("result.json"):  # last: they say that the rest is there
                        copy(result, ours / result.relative_to(theirs))
                    taken += 1
            except (UserError, OSError) as error:
                damaged.append(f"{theirs.name}: {error}")
    return Borrowed(taken, tuple(damaged))


def copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(target, source.read_bytes())
