"""What finished runs brought, read back from their folders: by system, seed, kind of constraint and budget."""

from __future__ import annotations

import json
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


def folders(runs: Path, run: RunSpec, exam: str | None) -> list[Path]:
    """Where the result of a run is, or that of one of its evaluations."""
    if exam is None:
        return [run_folder(runs, run)]
    return [exam_folder(runs, run, spec) for spec in run.exams if spec.name == exam]


def damaged(study: Study, runs: Path) -> list[str]:
    """Results and interpreters that are there but cannot be read, and why."""
    found = []
    for file in sorted({interpreter_file(runs, run, study.host) for run in study.runs}):
        if file.is_file() and (fault := _fault(file)):
            found.append(fault)
    for run in study.runs:
        for folder in (run_folder(runs, run), *(exam_folder(runs, run, exam) for exam in run.exams)):
            if not (folder / "result.json").is_file():
                continue
            if read_result(folder) is None:
                found.append(f"{folder / 'result.json'}: not a result; delete it, and the run is made again")
                continue
            if fault := _fault(folder / "evaluation.safetensors"):
                found.append(fault)
    return found


def _fault(file: Path) -> str | None:
    try:
        checkpoint.load(file)
    except UserError as error:
        return str(error)
    return None


def scores(study: Study, runs: Path, exam: str | None = None) -> list[Scores]:
    """One entry for each cell with at least one finished run."""
    found = []
    for cell in study.cells:
        kinds = cast(type[ConstraintEnv], class_of(cell.cell.env, study.host.catalog)).kinds
        tables = [t for run in cell.runs() for folder in folders(runs, run, exam) if (t := _by_task(folder, kinds))]
        tasks = tuple(sorted({task for t in tables for task in t}))
        if tasks:
            missing = (np.nan, np.nan)
            values = np.array([[t.get(task, missing) for task in tasks] for t in tables])
            found.append(Scores(cell, tasks, values[..., 0], values[..., 1]))
    return found


def _by_task(folder: Path, kinds: tuple[str, ...]) -> dict[Task, tuple[float, float]] | None:
    """Task -> mean reward and mean violation of an evaluation's episodes; None if there is none that can be read."""
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
    return {task: (float(reward[rows].mean()), float(violation[rows].mean())) for task, rows in chosen.items()}


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
