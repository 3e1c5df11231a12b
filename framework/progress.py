"""Progress of a study: live bars on a terminal, a plain line per finished cell elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from framework.config import Study


class Display:
    """Shows what ``launch`` reports. A context manager, so that the terminal is left tidy."""

    def __init__(self, study: Study, console: Console, quiet: bool) -> None:
        self._runs = {run.id: run for run in study.runs}
        self._console = console
        self._quiet = quiet
        self._bars: dict[str, TaskID] = {}
        self._progress: Progress | None = None
        if console.is_terminal and not quiet:
            self._progress = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=24),
                MofNCompleteColumn(),
                TextColumn("{task.fields[news]}"),
                TimeRemainingColumn(),
                console=console,
                transient=True,
            )
            self._all = self._progress.add_task("all runs", total=len(study.runs), news="")
        self._count = 0

    def __enter__(self) -> Display:
        if self._progress is not None:
            self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._progress.stop()

    def watch(self, run_id: str, event: str, details: Mapping[str, Any]) -> None:
        """One event of a run."""
        if self._progress is not None:
            self._draw(self._progress, run_id, event, details)
        finished = event in ("done", "failed") and details.get("kind") != "interpreter"
        if finished or event == "skipped":
            self._count += 1
            if self._progress is not None:
                self._progress.update(self._all, completed=self._count)
        if not self._quiet and (finished or event == "failed"):
            self._console.print(self._line(run_id, event, details), markup=False)

    def _draw(self, progress: Progress, run_id: str, event: str, details: Mapping[str, Any]) -> None:
        if event == "start":
            total = self._runs[run_id].cell.training.steps
            self._bars[run_id] = progress.add_task(self._name(run_id), total=total, news="")
        elif event == "progress" and run_id in self._bars:
            run, stage = self._runs[run_id], details["stage"]
            reading, training = stage == "interpreter", run.cell.training
            finetune = max((exam.finetune for exam in run.exams), default=0)
            total = {"interpreter": training.interpreter.iterations, "finetune": finetune}.get(stage, training.steps)
            progress.update(
                self._bars[run_id], completed=details["step"], total=total, news=_news(reading, details["metrics"])
            )
        elif event in ("done", "failed") and run_id in self._bars:
            progress.remove_task(self._bars.pop(run_id))

    def _line(self, run_id: str, event: str, details: Mapping[str, Any]) -> str:
        head = f"[{self._count}/{len(self._runs)}] {self._name(run_id)}"
        if event == "failed":
            return f"{head}: failed: {details['error'].splitlines()[0]}"
        summary = details["result"]["summary"]
        return (
            f"{head}: reward {summary['reward']:.2f}, violations {summary['violation']:.2f}, {summary['seconds']:.0f} s"
        )

    def _name(self, run_id: str) -> str:
        run = self._runs[run_id]
        return f"{run.labels[0]} seed {run.seed}"


def _news(reading: bool, metrics: Mapping[str, float]) -> str:
    if reading:
        return "learning to read" + (f", loss {metrics['loss']:.3f}" if "loss" in metrics else "")
    if "reward" not in metrics:
        return ""
    return f"reward {metrics['reward']:.2f}  Δ_C {metrics['violation']:.2f}  {metrics['steps_per_second']:,.0f}/s"
