"""The log of a run: metrics.jsonl, one line per update, and the observers that plugins bring."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from framework.hookspecs import RunInfo, RunObserver
from framework.plugin_manager import PluginHost


class RunLog:
    """Writes every metric to metrics.jsonl and passes it on to observers and to ``progress``."""

    def __init__(
        self, info: RunInfo, host: PluginHost, progress: Callable[[str, int, Mapping[str, float]], None] | None = None
    ) -> None:
        self._file = open(info.folder / "metrics.jsonl", "w", encoding="utf-8")  # noqa: SIM115 - closed in end()
        self._progress = progress
        self._observers: list[tuple[str, RunObserver]] = list(host.observers(info))

    def update(self, stage: str, step: int, metrics: Mapping[str, float]) -> None:
        """One line: stage, environment steps so far, numbers (NaN and infinity become null: JSON has neither)."""
        plain = {name: value if math.isfinite(value) else None for name, value in metrics.items()}
        self._file.write(json.dumps({"stage": stage, "step": step, **plain}) + "\n")
        self._file.flush()
        self._tell(lambda observer: observer.update(step, metrics))
        if self._progress is not None:
            self._progress(stage, step, metrics)

    def evaluate(self, stage: str, metrics: Mapping[str, float]) -> None:
        self._tell(lambda observer: observer.evaluate(stage, metrics))

    def end(self, error: str | None) -> None:
        self._tell(lambda observer: observer.end(error))
        self._file.close()

    def _tell(self, call: Callable[[RunObserver], None]) -> None:
        for origin, observer in list(self._observers):
            try:
                call(observer)
            except Exception as error:
                print(f"observer {origin} raised {type(error).__name__}: {error}; it is dropped", file=sys.stderr)
                self._observers.remove((origin, observer))


def read_metrics(folder: Path) -> list[dict[str, float]]:
    """The lines of metrics.jsonl that are whole."""
    rows = []
    for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines():
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:
            break
    return rows
