"""What the framework adds to a cell: 1,000 tiny cells through the launcher and one worker process.

A cell here is a random walk of eight steps and one evaluation episode. Its own work is building, walking and
evaluating, by the run's own watch; all else is overhead: sending the task, checking it, locks, logs, files that are
synced one by one, news, the books of the launcher. Starting Python is apart: it is paid once for each worker.

    python -m benchmarks launching
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from framework.config import load
from framework.executor import Setting
from framework.launcher import launch
from framework.processes import Processes

CELLS = 1_000
ALLOWED = 0.05
"""Seconds a cell."""
AIM = 1
REGISTRY = """
study: tiny
training: {{steps: 8, batch: 8, rows: 1, evaluation: {{episodes: 1, reading_steps: 8}}}}
seeds: {seeds}
experiments:
  tiny: {{env: {{plugin: ford, steps: 4}}, interpreter: none, policy: random_walk, optimizer: fixed}}
"""


def run(cells: int = CELLS) -> list[tuple[str, float, str]]:
    """Rows of (what, number, unit)."""
    with tempfile.TemporaryDirectory() as folder:
        file, runs = Path(folder) / "registry.yaml", Path(folder) / "runs"
        file.write_text(REGISTRY.format(seeds=list(range(cells))))
        runs.mkdir()
        started = time.perf_counter()
        study = load(file)
        loaded = time.perf_counter()
        ends, work = [], []

        def watch(run_id: str, event: str, details: Mapping[str, Any]) -> None:
            if event == "done":
                ends.append(time.perf_counter())
                work.append(details["result"]["summary"]["seconds"])

        outcome = launch(study.runs, runs, study.host, Processes(Setting(runs), workers=1), watch)
        assert len(outcome.done) == cells, outcome.failed
        again = time.perf_counter()
        launch(study.runs, runs, study.host, Processes(Setting(runs), workers=1), lambda *_: None)
        skipped = time.perf_counter() - again
    each = (ends[-1] - ends[0]) / (cells - 1)
    own = sum(work[1:]) / (cells - 1)
    return [
        ("reading a registry, a cell", 1e3 * (loaded - started) / cells, "ms"),
        ("until the first cell has ended", ends[0] - loaded, "s"),
        ("a cell in all", 1e3 * each, "ms"),
        ("  its own work", 1e3 * own, "ms"),
        ("  overhead", 1e3 * (each - own), "ms"),
        (f"{1e3 * ALLOWED:.0f} ms / overhead", ALLOWED / (each - own), "times"),
        ("a cell that is finished already", 1e3 * skipped / cells, "ms"),
    ]
