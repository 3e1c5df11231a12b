"""Takes finished runs and trained interpreters from other runs folders (``reuse`` in a registry), instead of anew.

Runs and evaluations are named by the hash of all that determines them, so what has the same name is the same. Copies,
not links: a runs folder stays whole when the other one goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from framework.checkpoint import load, write_bytes
from framework.config import Study
from framework.errors import UserError
from framework.resume import SAVES
from framework.stages import exam_folder, interpreter_file, is_trained, run_folder


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
                places = [(theirs, ours)]
                places += [(exam_folder(folder, run, e), exam_folder(runs_dir, run, e)) for e in run.exams]
                lacking = [(there, here) for there, here in places if is_trained(there) and not is_trained(here)]
                for there, here in lacking if is_trained(theirs) else ():
                    take(there, here)
                taken += bool(lacking)
            except (UserError, OSError) as error:
                damaged.append(f"{theirs.name}: {error}")
    return Borrowed(taken, tuple(damaged))


def take(theirs: Path, ours: Path) -> None:
    """One finished training, or evaluation. Its result comes last: it says that the rest is there."""
    files = [file for file in sorted(theirs.iterdir()) if file.is_file() and file.name not in (*SAVES, "result.json")]
    for file in files:
        if file.suffix == ".safetensors":
            load(file)
    for file in [file for file in files if not file.name.startswith(".")]:
        copy(file, ours / file.name)
    copy(theirs / "result.json", ours / "result.json")


def copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(target, source.read_bytes())
