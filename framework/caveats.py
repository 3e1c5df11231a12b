"""What is not in a report although its registry asks for it: a reader must know before they trust a number."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from framework.cell import RunSpec
from framework.config import Study
from framework.outcomes import Scores, all_folders, fault
from framework.stages import interpreter_file, run_folder
from framework.wording import counted

Found = Mapping[str | None, Sequence[Scores]]
"""What could be read, by evaluation."""
MOST = 20
"""Runs that are named."""


def caveats(study: Study, runs: Path, found: Found) -> list[str]:
    notes = [part(study), _missing(study, runs, found)]
    systems = _each_once(found[None])
    few = [s.cell.label for s in systems if len(s.seeds) < 2]
    if few:
        notes.append(f"One seed only, so nothing is known of the spread between seeds: {', '.join(few)}.")
    shared = [s.cell.label for s in systems if _share_a_reader(study, runs, s)]
    if shared:
        told = "One trained interpreter for all seeds, so intervals leave out how readers differ"
        notes.append(f"{told}: {', '.join(shared)}.")
    return [note for note in notes if note]


def _each_once(systems: Sequence[Scores]) -> list[Scores]:
    """A baseline that is an experiment too, under the name that comes first."""
    named: dict[tuple[str, ...], Scores] = {}
    for scores in systems:
        named.setdefault(tuple(run.id for run in scores.cell.runs()), scores)
    return list(named.values())


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


def _share_a_reader(study: Study, runs: Path, scores: Scores) -> bool:
    """Several seeds, one interpreter that was learned (``training.interpreter.seed``)."""
    files = [interpreter_file(runs, run, study.host) for run in scores.cell.runs() if run.seed in scores.seeds]
    return len(files) > 1 and len(set(files)) == 1 and files[0].is_file()


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
