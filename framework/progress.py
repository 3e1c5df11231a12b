"""Progress of a study: live bars on a terminal, a plain line per finished cell elsewhere, more lines if asked for."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Literal

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from framework.clock import Clock
from framework.config import Study

Loudness = Literal["quiet", "normal", "verbose"]
TELL_EVERY = 5.0
"""Seconds between two lines about the same run, when verbose."""
STAGES = {"interpreter": "learning to read", "policy": "learning to act", "finetune": "fine-tuning"}


class Display:
    """Shows what ``launch`` reports. A context manager, so that the terminal is left tidy."""

    def __init__(
        self, study: Study, console: Console, loudness: Loudness, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._runs = {run.id: run for run in study.runs}
        self._console, self._loudness, self._now = console, loudness, now
        self._clock = Clock(study.runs, now)
        self._told: dict[str, float] = {}
        self._bars: dict[str, TaskID] = {}
        self._progress: Progress | None = None
        self._count = 0
        if console.is_terminal and loudness != "quiet":
            name, *rest = (
                TextColumn(f"{{task.{field}}}", markup=False)
                for field in ("description", "fields[steps]", "fields[left]", "fields[news]")
            )
            self._progress = Progress(name, BarColumn(bar_width=24), *rest, console=console, transient=True)
            self._all = self._progress.add_task("all runs", total=1.0, steps=f"0/{len(self._runs)}", left="", news="")

    def __enter__(self) -> Display:
        if self._progress is not None:
            self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._progress.stop()

    def watch(self, run_id: str, event: str, details: Mapping[str, Any]) -> None:
        """One event of a run."""
        over = event == "skipped" or (event in ("done", "failed") and details.get("kind") == "cell")
        self._count += over
        self._note(run_id, event, details, over)
        if self._progress is not None:
            self._draw(self._progress, run_id, event, details)
        if self._loudness != "quiet" and (line := self._line(run_id, event, details)):
            self._console.print(line, markup=False, soft_wrap=True)

    def _note(self, run_id: str, event: str, details: Mapping[str, Any], over: bool) -> None:
        if event == "start":
            self._clock.start(run_id)
        elif event == "progress":
            self._clock.progress(run_id, details["stage"], details["step"], details["metrics"])
        elif over:
            self._clock.end(run_id)
        else:  # an interpreter is learned, or somebody died: the cell itself is still to come
            self._clock.pause(run_id)

    def _draw(self, progress: Progress, run_id: str, event: str, details: Mapping[str, Any]) -> None:
        if event == "start":
            self._bars[run_id] = progress.add_task(self._name(run_id), total=None, steps="starting", left="", news="")
        elif event == "progress" and run_id in self._bars and (found := self._clock.stage(run_id)):
            stage, step, total, left = found
            progress.update(
                self._bars[run_id], completed=step, total=total, steps=f"{_doing(stage)} {step:,}/{total:,}",
                left=duration(left), news=_news(details["metrics"]),
            )  # fmt: skip
        elif event in ("done", "failed", "again") and run_id in self._bars:
            progress.remove_task(self._bars.pop(run_id))
        progress.update(
            self._all, completed=self._clock.share(), steps=f"{self._count}/{len(self._runs)}",
            left=duration(self._clock.left()),
        )  # fmt: skip

    def _line(self, run_id: str, event: str, details: Mapping[str, Any]) -> str:
        """What to print about it; often nothing."""
        head = f"[{self._count}/{len(self._runs)}] {self._name(run_id)}"
        if event == "failed":
            return f"{head}: failed: {details['error'].splitlines()[0]}"
        if event == "again":
            return f"{head}: {details['error']}; it goes on from its last save"
        if event == "done" and details.get("kind") == "cell":
            s = details["result"]["summary"]
            return f"{head}: reward {s['reward']:.2f}, violations {s['violation']:.2f}, {s['seconds']:.0f} s"
        return self._more(run_id, event, details, head) if self._loudness == "verbose" else ""

    def _more(self, run_id: str, event: str, details: Mapping[str, Any], head: str) -> str:
        if event == "start":
            return f"{head}: starts" + (" with its interpreter" if details["kind"] == "interpreter" else "")
        if event == "skipped":
            return f"{head}: finished before"
        found = self._clock.stage(run_id)
        if event != "progress" or not found or self._now() - self._told.get(run_id, -TELL_EVERY) < TELL_EVERY:
            return ""
        self._told[run_id] = self._now()
        stage, step, total, left = found
        parts = [f"{_doing(stage)} {step:,}/{total:,}", duration(left), _news(details["metrics"])]
        rest = duration(self._clock.left())
        return f"{head}: " + ", ".join(filter(None, parts)) + (f"; all runs: {rest}" if rest else "")

    def _name(self, run_id: str) -> str:
        run = self._runs[run_id]
        return f"{run.labels[0]} seed {run.seed}"


def _doing(stage: str) -> str:
    name, _, exam = stage.partition(": ")
    return STAGES.get(name, name) + (f" for {exam}" if exam else "")


def duration(seconds: float | None) -> str:
    """``1:02:03 left``; nothing if it is not known."""
    if seconds is None:
        return ""
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02} left"


def _news(metrics: Mapping[str, float]) -> str:
    if "loss" in metrics:
        return f"loss {metrics['loss']:.3f}"
    if "reward" not in metrics:
        return ""
    return f"reward {metrics['reward']:.2f}  Δ_C {metrics['violation']:.2f}  {metrics['steps_per_second']:,.0f}/s"
