"""Heed from Python: what ``python -m framework.run`` does, for notebooks and scripts. See docs/python.md."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from os import PathLike
from pathlib import Path

from rich.console import Console

from framework import config, records, report, run, tryout
from framework.executor import Setting
from framework.launcher import launch
from framework.plan import Outcome
from framework.processes import Processes
from framework.progress import Display
from framework.records import Records
from framework.resume import Resume
from framework.wording import counted

AnyPath = str | PathLike[str]


def load(registry: AnyPath, *overrides: str) -> Study:
    """Read and check a registry. ``overrides`` are as on the command line: ``"training.steps=10_000"``."""
    return Study(config.load(Path(registry), list(overrides)))


def results(runs: AnyPath = "runs") -> Records:
    """Every finished run of a runs folder: one record for each of its evaluations."""
    return records.of_folder(Path(runs))


def history(run_folder: AnyPath) -> Records:
    """The learning curve of one run: one record for each update."""
    return records.of_history(Path(run_folder))


class Study:
    """A registry that has been read and checked."""

    def __init__(self, checked: config.Study) -> None:
        self.checked = checked

    @property
    def name(self) -> str:
        return self.checked.name

    @property
    def cells(self) -> list[str]:
        """Names of all systems: experiments, and the cells of ablations."""
        return [cell.label for cell in self.checked.cells]

    def only(self, pattern: str, *others: str) -> Study:
        """The part of the study whose cells match one of the patterns, as ``--only``."""
        return Study(run.select(self.checked, pattern, *others))

    def check(self) -> None:
        """Build every system and what it is evaluated in, once; what does not fit is told now, not after an hour."""
        tryout.build_all(self.checked)

    def run(
        self, runs: AnyPath = "runs", workers: int | None = None, quiet: bool = False, resume: Resume = "same"
    ) -> Outcome:
        """Run what is not finished, in ``workers`` processes (default: one per core), and write the report.

        The outcome says what was done, what was finished before, and what failed and why; a run that fails does not
        stop the others.
        """
        folder, study, console = Path(runs), self.checked, Console(highlight=False, quiet=quiet)
        run.make_writable(folder)
        run.borrow_finished(study, folder, console)
        executor = Processes(Setting(folder, study.plugins, resume), run.count_workers(workers))
        with _main_stays_out(), Display(study, console, "quiet" if quiet else "normal") as display:
            outcome = launch(study.runs, folder, study.host, executor, display.watch)
        report.write(study, folder, console)
        return outcome

    def results(self, runs: AnyPath = "runs") -> Records:
        """Records of this study's cells and evaluations that are finished, under its own names for them."""
        made = Records()
        for cell in self.checked.cells:
            for item in cell.runs():
                named = {"group": cell.group, "cell": cell.name, "baseline": cell.baseline}
                made.extend(named | record for record in records.of_item(item, Path(runs), cell.label))
        return made

    def __repr__(self) -> str:
        return (
            f"<study {self.name}: {counted(len(self.checked.cells), 'cell')}, {counted(len(self.checked.runs), 'run')}>"
        )


@contextlib.contextmanager
def _main_stays_out() -> Iterator[None]:
    """Worker processes import the caller's main script anew, by its path, and would run the study once more in there.
    They need nothing of it: while they are started, it has no path."""
    main = sys.modules["__main__"]
    kept = {name: getattr(main, name) for name in ("__file__", "__spec__") if hasattr(main, name)}
    main.__spec__ = None
    if "__file__" in kept:
        del main.__file__
    try:
        yield
    finally:
        for name, value in kept.items():
            setattr(main, name, value)
