"""What finished runs brought, read back from their folders: by system, seed, kind of constraint and budget."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from framework import checkpoint
from framework.cell import RunSpec, class_of
from framework.config import Study
from framework.errors import UserError
from framework.grid import GridCell
from framework.interfaces import ConstraintEnv
from framework.stages import exam_folder, interpreter_file, read_result, run_folder

Array = NDArray[np.float64]
Task = tuple[str, int]
"""Kind of constraint and true budget h_C (the smallest, where several constraints hold)."""


@dataclass(frozen=True)
class Scores:
    """Of one system: a row for each seed, a column for each task. NaN where a task did not come up."""

    cell: GridCell
    tasks: tuple[Task, ...]
    reward: Array  # [seeds, tasks] mean over episodes
    violation: Array  # [seeds, tasks]
    seeds: tuple[int, ...]
    results: tuple[dict[str, Any], ...]
    """What result.json holds, seed by seed."""
    episodes: Array  # [seeds, tasks] how many; 0 where a task did not come up

    def summary(self, name: str) -> Array:
        """[seeds] one entry of the summaries; NaN where it was not measured."""
        return np.array([number(result["summary"].get(name)) for result in self.results])

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(kind for kind, _ in self.tasks))

    def of_kind(self, kind: str, what: str) -> Array:
        """[seeds] mean ``reward`` or ``violation`` over all episodes with this kind of constraint; NaN if none."""
        columns = [i for i, task in enumerate(self.tasks) if task[0] == kind]
        episodes, values = self.episodes[:, columns], getattr(self, what)[:, columns]
        total = episodes.sum(1)
        mean = np.where(episodes > 0, values * episodes, 0).sum(1) / np.maximum(total, 1)
        return cast(Array, np.where(total > 0, mean, np.nan))


def number(value: float | None) -> float:
    """JSON has no NaN: it is null there."""
    return math.nan if value is None else float(value)


def changes(system: Scores, base: Scores, what: str) -> tuple[Array, int]:
    """What a system changes against another: seed by seed where both have finished, and how many such seeds there are.
    If there is none, the difference of the means alone."""
    ours, theirs = (dict(zip(s.seeds, s.summary(what), strict=True)) for s in (system, base))
    shared = [seed for seed in ours if seed in theirs]
    if not shared:
        return np.array([np.mean(list(ours.values())) - np.mean(list(theirs.values()))]), 0
    return np.array([ours[seed] - theirs[seed] for seed in shared]), len(shared)


def ablations(found: Sequence[Scores]) -> list[tuple[Scores, Scores]]:
    """Each cell of an ablation with the baseline of its group, where both have finished."""
    pairs = []
    for group in dict.fromkeys(s.cell.group for s in found if s.cell.group != "experiments"):
        members = [s for s in found if s.cell.group == group]
        base = next((s for s in members if s.cell.baseline), None)
        pairs += [(s, base) for s in members if s is not base] if base else []
    return pairs


def folders(runs: Path, run: RunSpec, exam: str | None) -> list[Path]:
    """Where the result of a run is, or that of one of its evaluations."""
    if exam is None:
        return [run_folder(runs, run)]
    return [exam_folder(runs, run, spec) for spec in run.exams if spec.name == exam]


def damaged(study: Study, runs: Path) -> list[str]:
    """Results and interpreters that are there but cannot be read, and why."""
    files = sorted({interpreter_file(runs, run, study.host) for run in study.runs})
    faults = [_unreadable(file) for file in files if file.is_file()]
    faults += [fault(folder) for run in study.runs for folder in all_folders(runs, run)]
    return [told for told in faults if told]


def all_folders(runs: Path, run: RunSpec) -> list[Path]:
    return [run_folder(runs, run), *(exam_folder(runs, run, exam) for exam in run.exams)]


def fault(folder: Path) -> str:
    """Why a result that is there cannot be read, and what to do; '' if it can, or if there is none."""
    result = folder / "result.json"
    if not result.is_file():
        return ""
    told = _unreadable(folder / "evaluation.safetensors") if read_result(folder) else f"{result}: not a result"
    return f"{told}; delete {result}, and the run is made again" if told else ""


def _unreadable(file: Path) -> str:
    try:
        checkpoint.load(file)
    except UserError as error:
        return str(error)
    return ""


def scores(study: Study, runs: Path, exam: str | None = None) -> list[Scores]:
    """One entry for each cell with at least one finished run. All tables and bars are made of these, so a run whose
    result or whose episodes cannot be read is in none of them."""
    found = []
    for cell in study.cells:
        kinds = cast(type[ConstraintEnv], class_of(cell.cell.env, study.host.catalog)).kinds
        read = [(run.seed, read_result(f), _by_task(f, kinds)) for run in cell.runs() for f in folders(runs, run, exam)]
        whole = [(seed, result, table) for seed, result, table in read if result and table]
        tasks = tuple(sorted({task for _, _, table in whole for task in table}))
        if whole:
            missing = (np.nan, np.nan, 0)
            values = np.array([[table.get(task, missing) for task in tasks] for _, _, table in whole])
            seeds, results = tuple(seed for seed, _, _ in whole), tuple(result for _, result, _ in whole)
            found.append(Scores(cell, tasks, values[..., 0], values[..., 1], seeds, results, values[..., 2]))
    return found


def _by_task(folder: Path, kinds: tuple[str, ...]) -> dict[Task, tuple[float, float, int]] | None:
    """Task -> mean reward, mean violation and number of an evaluation's episodes; None if there is none to be read."""
    try:
        tensors, _ = checkpoint.load(folder / "evaluation.safetensors")
    except UserError:
        return None
    reward, cost, threshold, kind = (tensors[name].numpy() for name in ("reward", "cost", "threshold", "kind"))
    violation = np.maximum(cost - threshold, 0).sum(-1)
    budget = threshold.min(-1).astype(int)
    several = (kind != kind[:, :1]).any(-1)
    names = np.where(several, "several", np.array(kinds)[kind[:, 0]])
    pairs = sorted(set(zip(names.tolist(), budget.tolist(), strict=True)))
    chosen = {task: (names == task[0]) & (budget == task[1]) for task in pairs}
    return {
        task: (float(reward[rows].mean()), float(violation[rows].mean()), int(rows.sum()))
        for task, rows in chosen.items()
    }


def history(folder: Path) -> dict[str, Array]:
    """Metric -> its value at each update, NaN where there was none, from a run's metrics.jsonl."""
    try:
        lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    rows: list[dict[str, Any]] = [json.loads(line) for line in lines if line.endswith("}")]
    names = sorted({name for row in rows for name in row if name != "stage"})
    return {name: np.array([np.nan if row.get(name) is None else row[name] for row in rows], float) for name in names}


def walk_violations(study: Study, runs: Path, run: RunSpec) -> Array:
    """Mean Delta_C of stage 1's random walks, 50 episodes at a time; empty if the interpreter needed none, or if its
    file cannot be read (``damaged`` names it)."""
    try:
        _, meta = checkpoint.load(interpreter_file(runs, run, study.host))
    except UserError:
        return np.zeros(0)
    return np.array([part["violation"] for part in meta.get("walks", [])], dtype=float)
