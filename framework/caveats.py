"""What is not in a report although its registry asks for it: a reader must know before they trust a number."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from framework.cell import ExamSpec, RunSpec
from framework.config import Study
from framework.outcomes import Scores, all_folders, fault
from framework.stages import interpreter_file, run_folder
from framework.wording import counted

Found = Mapping[str | None, Sequence[Scores]]
"""What could be read, by evaluation."""
MOST = 20
"""Runs, and evaluations of runs, that are named."""


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
    """Ids of the runs that are in the report."""
    return _read(found[None]) & {run.id for run in study.runs}


def _read(systems: Sequence[Scores]) -> set[str]:
    return {run.id for s in systems for run in s.cell.runs() if run.seed in s.seeds}


def _share_a_reader(study: Study, runs: Path, scores: Scores) -> bool:
    """Several seeds, one interpreter that was learned (``training.interpreter.seed``)."""
    files = [interpreter_file(runs, run, study.host) for run in scores.cell.runs() if run.seed in scores.seeds]
    return len(files) > 1 and len(set(files)) == 1 and files[0].is_file()


def _missing(study: Study, runs: Path, found: Found) -> str:
    there = present(study, found)
    absent = [f"{_named(run)}: {_why(runs, run)}" for run in study.runs if run.id not in there]
    asked = {
        exam.name: [run for run in study.runs if exam.name in {e.name for e in run.exams}] for exam in _exams(study)
    }
    lacking = []
    for name, those in asked.items():
        read = _read(found.get(name, ()))
        without = [run for run in those if run.id in there and run.id not in read]
        for_all = len(without) > 1 and len(without) == sum(run.id in there for run in those)
        if for_all:
            lacking.append(f"'{name}' of all of them: {_reasons(runs, without)}")
        else:
            lacking += [f"'{name}' of {_named(run)}: {_why(runs, run)}" for run in without]
    if not absent and not lacking:
        return ""
    told = [f"{len(there)} of {counted(len(study.runs), 'run')} are in this report."]
    told += [f"Missing: {_list(absent, 'run')}."] if absent else []
    told += [f"Evaluations that are missing: {_list(lacking, 'evaluation')}."] if lacking else []
    return " ".join(told)


def _exams(study: Study) -> list[ExamSpec]:
    return list({exam.name: exam for run in study.runs for exam in run.exams}.values())


def _named(run: RunSpec) -> str:
    return f"{', '.join(run.labels)} (seed {run.seed})"


def _reasons(runs: Path, without: Sequence[RunSpec]) -> str:
    return ", ".join(dict.fromkeys(_why(runs, run) for run in without))


def _list(told: Sequence[str], what: str) -> str:
    more = [f"and {counted(len(told) - MOST, f'more {what}')}"] if len(told) > MOST else []
    return "; ".join([*told[:MOST], *more])


def _why(runs: Path, run: RunSpec) -> str:
    if any(fault(folder) for folder in all_folders(runs, run)):
        return "cannot be read"
    try:
        failure = json.loads((run_folder(runs, run) / "failure.json").read_text(encoding="utf-8"))
        return f"failed ({str(failure['error']).splitlines()[0]})"
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return "not finished"
