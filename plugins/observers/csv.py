"""A table of every update, for spreadsheets. (The same numbers are in metrics.jsonl, always.)"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping

from framework.hookspecs import NamedObserver, RunInfo, hookimpl


class Csv(NamedObserver):
    """Writes metrics.csv into the run's folder: a line for each update, a column for each metric."""

    name = "csv"

    def __init__(self, config: object, run: RunInfo) -> None:
        super().__init__(config, run)
        self._file = run.folder / "metrics.csv"
        self._rows: list[dict[str, str]] = []
        if run.step and self._file.is_file():  # going on after a stop: keep what is right
            with open(self._file, newline="", encoding="utf-8") as content:
                self._rows = [row for row in csv.DictReader(content) if int(row["step"]) <= run.step]
        self._columns = list(self._rows[0]) if self._rows else ["step"]
        self._write_all()

    def update(self, step: int, metrics: Mapping[str, float]) -> None:
        row = {"step": str(step)} | {name: repr(float(v)) if math.isfinite(v) else "" for name, v in metrics.items()}
        self._rows.append(row)
        new = [name for name in row if name not in self._columns]
        self._columns += new
        if new:  # budgets that had not come up yet, say
            self._write_all()
            return
        with open(self._file, "a", newline="", encoding="utf-8") as out:
            csv.DictWriter(out, self._columns, restval="").writerow(row)

    def _write_all(self) -> None:
        with open(self._file, "w", newline="", encoding="utf-8") as out:
            writer = csv.DictWriter(out, self._columns, restval="")
            writer.writeheader()
            writer.writerows(self._rows)


@hookimpl
def heed_observers() -> list[type[NamedObserver]]:
    return [Csv]
