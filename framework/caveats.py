"""What is not in a report although its registry asks for it: a reader must know before they trust a number."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from framework.cell import RunSpec
from framework.config import Study
from framework.outcomes import Scores, all_folders, fault
from framework.stages import run_folder
from framework.wording import counted

Found = Mapping[str | None, Sequence[Scores]]
"""What could be read, by evaluation."""
MOST = 20
"""Runs that are named."""


def caveats(study: Study, runs: Path, found: Found) -> list[str]:
    notes = [part(study), _missing(study, runs, found)]
    few = [s.cell.label for s in found[None] if len(s.seeds) < 2]
    if few:
        notes.append(f"One seed only, so nothing is known of the spread between seeds: {', '.join(few)}.")
    return [note for note in notes if note]


def part(study: Study) -> str:
    """What the command line left out or changed; '' if nothing."""
    return f"Not the study as its registry has it, but with {', '.join(study.part)}." if study.part else ""


def present(study: Study, found: Found) -> set[str]:
    """Ids of the runs that are in the report, with every evaluation that is asked for."""
    read = {
        exam: {run.id for s in systems for run in s.cell.runs() if run.seed in s.seeds}
        for exam, systems in found.items()
    }
    wanted = {run.id: [None, *(exam.name for exam in run.exams)] for run in study.runs}
    return {run_id for run_id, exams in wanted.items() if all(run_id in read.get(exam, ()) for exam in exams)}


def _missing(study: Study, runs: Path, found: Found) -> str:
    there = present(study, found)
    missing = [run for run in study.runs if run.id not in there]
    if not missing:
        return ""
    told = [f"{', '.join(run.labels)} (seed {run.seed}): {_why(runs, run)}" for run in missing[:MOST]]
    more = [f"and {counted(len(missing) - MOST, 'more run')}"] if len(missing) > MOST else []
    return f"{len(there)} of {counted(len(study.runs), 'run')} are in this report. Missing: {'; '.join(told + more)}."


def _why(runs: Path, run: RunSpec) -> str:
    if any(fault(folder) for folder in all_folders(runs, run)):
        return "cannot be read"
    try:
        failure = json.loads((run_folder(runs, run) / "failure.json").read_text(encoding="utf-8"))
        return f"failed ({str(failure['error']).splitlines()[0]})"
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return "not finished"
