"""The registry's ``evaluations``: checked among themselves, and then as each cell meets them."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from pathlib import Path

from framework import grid
from framework.catalog import Catalog
from framework.cell import ExamSpec, build_part
from framework.convert import Notes
from framework.errors import did_you_mean
from framework.grid import GridCell
from framework.schema import Exam

SECTION = "evaluations"


def check_after(exams: Mapping[str, Exam], notes: Notes) -> None:
    """``after`` names an evaluation that stands before it, so that it is done by then, and that trains something."""
    for i, (name, exam) in enumerate(exams.items()):
        if exam.after is None:
            continue
        path, other = f"{SECTION}.{name}.after", exams.get(exam.after)
        if other is None:
            notes.add(path, f"no evaluation is called '{exam.after}'{did_you_mean(exam.after, list(exams))}", SECTION)
        elif exam.after not in list(exams)[:i]:
            notes.add(path, f"'{exam.after}' has to stand before '{name}'", SECTION)
        elif not other.finetune:
            said = f"'{exam.after}' does not fine-tune, so there is nothing to go on from; leave 'after' out"
            notes.add(path, said, SECTION)
        if exam.finetune:
            said = f"'finetune' and 'after' exclude each other: the policy is taken as '{exam.after}' left it"
            notes.add(f"{SECTION}.{name}.finetune", said, SECTION)


def exams_of(
    grid_cell: GridCell, exams: Mapping[str, Exam], catalog: Catalog, notes: Notes, folder: Path
) -> tuple[ExamSpec, ...]:
    """All that are for this cell: in its own env, with what they change."""
    cell, made = grid_cell.cell, dict[str, ExamSpec]()
    for name, exam in exams.items():
        if exam.systems and not any(fnmatch.fnmatchcase(grid_cell.label, pattern) for pattern in exam.systems):
            continue
        if exam.after is not None and exam.after not in made:
            continue  # a system that does not go through the other one; or a mistake there, which is told
        path = f"{SECTION}.{name}.env"
        if "plugin" in exam.env:
            notes.add(f"{path}.plugin", "an evaluation changes the env's settings, not the env", SECTION)
            continue
        before = made[exam.after] if exam.after is not None else None
        raw = grid.deep_merge((before.env if before else cell.env).as_dict(), exam.env)
        env = build_part("env", raw, catalog, notes, path, folder)
        defaults = cell.training.evaluation
        episodes = defaults.episodes if exam.episodes is None else exam.episodes
        greedy = defaults.greedy if exam.greedy is None else exam.greedy
        if exam.finetune % cell.training.batch:
            said = f"finetune ({exam.finetune:,}) must be a multiple of training.batch ({cell.training.batch:,})"
            notes.add(f"{SECTION}.{name}.finetune", said, SECTION)
        elif env is not None:
            after = before.key if before else ""
            made[name] = ExamSpec(name, env, exam.finetune, episodes, greedy, exam.soften, after)
    return tuple(made.values())
