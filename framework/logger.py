"""The log of a run: metrics.jsonl, one line per update, and the observers that plugins bring."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from framework.checkpoint import write_bytes
from framework.hookspecs import RunInfo, RunObserver
from framework.plugin_manager import PluginHost

TIMING = ("seconds_", "steps_per_second")
"""Metrics of how long things took."""


class RunLog:
    """Writes every metric to metrics.jsonl and passes it on to observers and to ``progress``."""

    def __init__(
        self,
        info: RunInfo,
        host: PluginHost,
        progress: Callable[[str, int, Mapping[str, float]], None] | None = None,
        until: int = 0,
    ) -> None:
        """``until``: go on with a log that is right up to this step; what was written past it is cut off."""
        file = info.folder / "metrics.jsonl"
        kept = [row for row in read_metrics(info.folder) if row["step"] <= until] if until else []
        write_bytes(file, "".join(json.dumps(row) + "\n" for row in kept).encode())
        self._file = open(file, "a", encoding="utf-8")  # noqa: SIM115 - closed in end()
        self._timing = open(info.folder / "timing.jsonl", "a" if until else "w", encoding="utf-8")  # noqa: SIM115
        self._progress = progress
        self._observers: list[tuple[str, RunObserver]] = list(host.observers(dataclasses.replace(info, step=until)))

    def update(self, stage: str, step: int, metrics: Mapping[str, float]) -> None:
        """One line: stage, environment steps so far, numbers (NaN and infinity become null: JSON has neither)."""
        plain = {name: value if math.isfinite(value) else None for name, value in metrics.items()}
        for file, wanted in ((self._file, False), (self._timing, True)):
            try:
                file.write(json.dumps({"stage": stage, "step": step} | _timed(plain, wanted)) + "\n")
                file.flush()
            except OSError as error:
                error.filename = file.name
                raise
        self._tell(lambda observer: observer.update(step, metrics))
        if self._progress is not None:
            self._progress(stage, step, metrics)

    def evaluate(self, stage: str, metrics: Mapping[str, float]) -> None:
        self._tell(lambda observer: observer.evaluate(stage, metrics))

    def end(self, error: str | None) -> None:
        """``error``: what the run came to grief over, if it did."""
        self._tell(lambda observer: observer.end(error))
        for file in (self._file, self._timing):
            with contextlib.suppress(*([] if error is None else [OSError])):  # the first failure is the one to tell
                file.close()

    def _tell(self, call: Callable[[RunObserver], None]) -> None:
        for origin, observer in list(self._observers):
            try:
                call(observer)
            except Exception as error:
                print(f"observer {origin} raised {type(error).__name__}: {error}; it is dropped", file=sys.stderr)
                self._observers.remove((origin, observer))


def _timed(metrics: Mapping[str, float | None], wanted: bool) -> dict[str, float | None]:
    """Seconds and steps per second apart: metrics.jsonl is the same whenever the run is."""
    return {name: value for name, value in metrics.items() if name.startswith(TIMING) == wanted}


def read_metrics(folder: Path) -> list[dict[str, float]]:
    """The lines of metrics.jsonl that are whole."""
    rows: list[dict[str, float]] = []
    file = folder / "metrics.jsonl"
    for line in file.read_text(encoding="utf-8").splitlines() if file.is_file() else ():
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:
            break
    return rows
