"""The registry's ``evaluations``: checked among themselves, and then as each cell meets them."""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from framework import grid
from framework.catalog import Catalog
from framework.cell import ExamSpec, build_part
from framework.convert import Notes
from framework.errors import did_you_mean
from framework.grid import GridCell
from framework.schema import Exam

SECTION = "evaluations"
SOFTEN = 0.2
"""Unless an evaluation says otherwise."""


def check_after(exams: Mapping[str, Exam], notes: Notes) -> None:
    """``after`` names an evaluation that stands before it, so that it is done by then, and that trains something."""
    for i, (name, exam) in enumerate(exams.items()):
        path = f"{SECTION}.{name}"
        if exam.soften is not None and not exam.finetune:
            said = "'soften' is for evaluations with 'finetune': the policy is softened before it is fine-tuned"
            notes.add(f"{path}.soften", said, SECTION)
        if exam.after is None:
            continue
        for said in _wrong_after(name, exam.after, exams, list(exams)[:i]):
            notes.add(f"{path}.after", said, SECTION)
        if exam.finetune:
            said = f"'finetune' and 'after' exclude each other: the policy is taken as '{exam.after}' left it"
            notes.add(f"{path}.finetune", said, SECTION)


def _wrong_after(name: str, after: str, exams: Mapping[str, Exam], earlier: Sequence[str]) -> Iterator[str]:
    tuning = [n for n in earlier if exams[n].finetune]
    if after == name:
        yield "an evaluation cannot go on from itself; name one with 'finetune' that stands before it"
    elif after not in exams:
        yield f"no evaluation is called '{after}'{did_you_mean(after, tuning or list(exams))}"
    else:
        if after not in earlier:
            yield f"'{after}' has to stand before '{name}'"
        if exams[after].after is not None and not exams[after].finetune:
            yield f"'{after}' does not fine-tune; it goes on from '{exams[after].after}', so name that one here too"
        elif not exams[after].finetune:
            yield f"'{after}' does not fine-tune, so there is nothing to go on from; name one that does"


def check_reached(exams: Mapping[str, Exam], reached: Collection[str], notes: Notes) -> None:
    """``reached``: those that some system goes through. Nobody may wait for a table that never comes."""
    for name, exam in exams.items():
        if exam.after in reached and name not in reached:
            said = f"none of these systems goes through '{exam.after}', whose policy it would go on with"
            notes.add(f"{SECTION}.{name}.systems", said, SECTION)


def exams_of(
    grid_cell: GridCell, exams: Mapping[str, Exam], catalog: Catalog, notes: Notes, folder: Path
) -> tuple[ExamSpec, ...]:
    """All that are for this cell: in its own env, or in that of the one before, with what they change."""
    cell, made, envs = grid_cell.cell, dict[str, ExamSpec](), dict[str, dict[str, Any]]()
    for name, exam in exams.items():
        if exam.systems and not any(fnmatch.fnmatchcase(grid_cell.label, pattern) for pattern in exam.systems):
            continue
        if exam.after is not None and exam.after not in envs:
            continue  # a system that does not go through the other one; or a mistake there, which is told
        path, own = f"{SECTION}.{name}.env", cell.env.as_dict()
        if "plugin" in exam.env:
            notes.add(f"{path}.plugin", "an evaluation changes the env's settings, not the env", SECTION)
            continue
        raw = grid.deep_merge(envs.get(exam.after or "", own), exam.env)
        env = build_part("env", raw, catalog, notes, path, folder)
        envs[name] = own if env is None else raw  # what is wrong with one is told once, and not of those after it
        defaults = cell.training.evaluation
        episodes = defaults.episodes if exam.episodes is None else exam.episodes
        greedy = defaults.greedy if exam.greedy is None else exam.greedy
        soften = SOFTEN if exam.soften is None else exam.soften
        if exam.finetune % cell.training.batch:
            said = f"finetune ({exam.finetune:,}) must be a multiple of training.batch ({cell.training.batch:,})"
            notes.add(f"{SECTION}.{name}.finetune", said, SECTION)
        elif env is not None:
            after = made[exam.after].key if exam.after in made else ""
            made[name] = ExamSpec(name, env, exam.finetune, episodes, greedy, soften, after)
    return tuple(made.values())
