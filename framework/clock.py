"""How far a study is and how long it will take, from what its runs say: also before the first of them has ended."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from framework.cell import RunSpec

READING, POLICY, FINETUNE = "interpreter", "policy", "finetune"
"""Stages; the last one says for which evaluation, too: ``finetune: transfer``."""


@dataclass
class _Stage:
    """One stretch of a run that counts from 0 to ``total``."""

    name: str
    total: int
    began: float
    first: int
    """Where it was when it was first heard of: not 0 if it goes on from a save."""
    step: int = 0
    told: float = 0.0
    """Steps per second, by its own account."""

    def seconds_per_step(self, now: float) -> float | None:
        if self.step > self.first and now > self.began:
            return (now - self.began) / (self.step - self.first)
        return 1 / self.told if self.told > 0 else None

    def left(self, now: float) -> float | None:
        pace = self.seconds_per_step(now)
        return None if pace is None else pace * max(0, self.total - self.step)


@dataclass
class _Running:
    run: RunSpec
    began: float
    stage: _Stage | None = None
    first: int | None = None
    """Steps that were done when it was first heard of: not 0 if it goes on from a save."""

    @property
    def steps(self) -> int:
        """Of policy learning, fine-tuning included, that are done."""
        if self.stage is None or self.stage.name == READING:
            return 0
        return _before(self.run, self.stage.name) + self.stage.step


class Clock:
    """Told what happens; tells how long it will take."""

    def __init__(self, runs: Iterable[RunSpec], now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._waiting = {run.id: run for run in runs}
        self._count = len(self._waiting)
        self._running: dict[str, _Running] = {}
        self._pace: dict[str, float] = {}  # system -> seconds per step

    def start(self, run_id: str) -> None:
        if run_id in self._waiting:
            self._running[run_id] = _Running(self._waiting[run_id], self._now())

    def progress(self, run_id: str, stage: str, step: int, metrics: Mapping[str, float]) -> None:
        running = self._running.get(run_id)
        if running is None:
            return
        now, current = self._now(), running.stage
        if current is None or current.name != stage:
            current = running.stage = _Stage(stage, _total(running.run, stage), now, step)
        current.step, current.told = step, metrics.get("steps_per_second", 0.0)
        if running.first is None and stage != READING:
            running.first = running.steps
        if stage != READING and (pace := current.seconds_per_step(now)):
            self._pace[_system(running.run)] = pace

    def pause(self, run_id: str) -> None:
        """It died, and waits to be begun again."""
        self._running.pop(run_id, None)

    def end(self, run_id: str) -> None:
        """Whole runs tell the truest pace: reading and evaluation are in it."""
        running, run = self._running.pop(run_id, None), self._waiting.pop(run_id, None)
        if run is None or running is None or running.first is None:
            return
        if steps := _work(run) - running.first:
            self._pace[_system(run)] = (self._now() - running.began) / steps

    def stage(self, run_id: str) -> tuple[str, int, int, float | None] | None:
        """Of a run: stage, step, of how many, seconds left in the stage."""
        running = self._running.get(run_id)
        if running is None or running.stage is None:
            return None
        stage = running.stage
        return stage.name, stage.step, stage.total, stage.left(self._now())

    def share(self) -> float:
        """Of all runs' work, 0 to 1."""
        started = sum(min(1.0, running.steps / _work(running.run)) for running in self._running.values())
        return (self._count - len(self._waiting) + started) / max(1, self._count)

    def left(self) -> float | None:
        """Seconds until all runs are done, if as many go on side by side as now; None: nothing is known yet."""
        if not self._pace:
            return None
        mean = sum(self._pace.values()) / len(self._pace)
        each = {}
        for run_id, run in self._waiting.items():
            running = self._running.get(run_id)
            steps = _work(run) - (running.steps if running else 0)
            each[run_id] = steps * self._pace.get(_system(run), mean)
            if running and running.stage and running.stage.name == READING:
                each[run_id] += running.stage.left(self._now()) or 0.0
        longest = max((each[run_id] for run_id in self._running), default=0.0)
        return max(longest, sum(each.values()) / max(1, len(self._running)))


def _system(run: RunSpec) -> str:
    return run.labels[0] if run.labels else run.id


def _work(run: RunSpec) -> int:
    """Environment steps of policy learning in all stages."""
    return run.cell.training.steps + sum(exam.finetune for exam in run.exams)


def _before(run: RunSpec, stage: str) -> int:
    """Of that work, what comes before a stage."""
    if stage == POLICY:
        return 0
    earlier = itertools.takewhile(lambda exam: _tuning(exam.name) != stage, run.exams)
    return run.cell.training.steps + sum(exam.finetune for exam in earlier)


def _total(run: RunSpec, stage: str) -> int:
    tunings = {_tuning(exam.name): exam.finetune for exam in run.exams}
    return {READING: run.cell.training.interpreter.iterations, **tunings}.get(stage, run.cell.training.steps)


def _tuning(exam: str) -> str:
    return f"{FINETUNE}: {exam}"
