"""Runs the cells of a study: skips the finished, isolates failures, tries again what died.

Order is the plan's (plan.py); where and how things run is the executor's (processes.py, ray_executor.py).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from framework.cell import RunSpec
from framework.checkpoint import write_json
from framework.executor import Event, Executor
from framework.plan import Outcome, Patience, Plan, Task
from framework.plugin_manager import PluginHost
from framework.stages import interpreter_file, is_finished, run_folder

Watch = Callable[[str, str, Mapping[str, Any]], None]
"""watch(run id, event, details); events: start, progress, again, done, skipped, failed."""


def launch(runs: Sequence[RunSpec], runs_dir: Path, host: PluginHost, executor: Executor, watch: Watch) -> Outcome:
    """All runs; interpreters that several share are learned once. If that fails, so do the runs that need it."""
    outcome, cells = Outcome(), []
    for run in runs:
        if is_finished(runs_dir, run):
            outcome.skipped.append(run.id)
            watch(run.id, "skipped", {})
        else:
            cells.append(Task("cell", run, interpreter_file(runs_dir, run, host)))
    study, running = _Study(Plan(cells), runs_dir, watch, outcome), 0
    try:
        while study.plan or running:
            while executor.room() > 0 and (task := study.plan.next()):
                executor.start(task)
                watch(task.run.id, "start", {"kind": task.kind})
                running += 1
            for event in executor.listen():
                running -= event.what != "progress"
                study.heard(event)
    finally:
        executor.close()
    return outcome


class _Study:
    """Keeps the books of a study while it runs."""

    def __init__(self, plan: Plan, runs_dir: Path, watch: Watch, outcome: Outcome) -> None:
        self.plan, self._runs_dir, self._watch, self._outcome = plan, runs_dir, watch, outcome
        self._patience = Patience()

    def heard(self, event: Event) -> None:
        task, details = event.task, event.details
        if event.what == "progress":
            self._patience.progress(task, details["stage"], details["step"])
            self._watch(task.run.id, "progress", details)
        elif event.what == "died" and self._patience.died(task):
            self.plan.again(task)
            self._watch(task.run.id, "again", {**details, "kind": task.kind})
        elif event.what == "done":
            self._ended(task, None)
            self._watch(task.run.id, "done", {**details, "kind": task.kind})
        else:
            self._failed(task, dict(details), again=event.what == "died")

    def _failed(self, task: Task, details: dict[str, Any], again: bool) -> None:
        if again:
            details["error"] += "; it was tried twice"
        folder = run_folder(self._runs_dir, task.run)
        with contextlib.suppress(OSError):  # nothing can be written? then what is told must do
            if self._runs_dir.is_dir():
                folder.mkdir(parents=True, exist_ok=True)
                write_json(folder / "failure.json", {"id": task.run.id, "stage": task.kind, **details})
        self._watch(task.run.id, "failed", {**details, "kind": task.kind})
        self._ended(task, details["error"])

    def _ended(self, task: Task, error: str | None) -> None:
        self._patience.ended(task)
        lost = self.plan.ended(task, failed=error is not None)
        if error is not None:
            self._outcome.failed[task.run.id] = error
        elif task.kind == "cell":
            self._outcome.done.append(task.run.id)
        for cell in lost:
            if cell.run.id == task.run.id:
                continue  # told already
            reason = f"its interpreter failed with {', '.join(task.run.labels)}: {error}"
            self._outcome.failed[cell.run.id] = reason
            self._watch(cell.run.id, "failed", {"error": reason, "kind": "cell"})
