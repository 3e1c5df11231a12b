"""Run a study: ``python -m framework.run registry.yaml``.

Exit codes: 0 all done, 1 some run failed, 2 the user's mistake, 130 stopped (Ctrl-C or SIGTERM).
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import fnmatch
import inspect
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from framework.cell import RunSpec
from framework.config import Study, TooManyCells, load
from framework.errors import MISTAKE, Problem, UserError, complain, stopped
from framework.executor import Executor, Setting
from framework.fields import describe_fields
from framework.launcher import launch
from framework.missing import missing_requirements
from framework.plan import Outcome
from framework.plugin_manager import PluginHost
from framework.processes import Processes
from framework.progress import Display, Loudness
from framework.ray_executor import OnRay
from framework.reuse import borrow
from framework.schema import MAX_CELLS, MOST_RUNS
from framework.stages import is_begun, is_finished, is_trained, run_folder
from framework.tryout import build_all
from framework.wording import counted
from framework.worker import tell

if TYPE_CHECKING:
    from framework.report import Written

OK, FAILED = 0, 1


def main(argv: list[str] | None = None) -> int:
    """Returns the exit code."""
    options = _parser().parse_intermixed_args(argv)
    console, errors = _console(), Console(stderr=True, highlight=False, soft_wrap=True)
    try:
        with _sigterm_like_ctrl_c():
            return _main(options, console)
    except UserError as error:
        complain(error)
        if len(error.problems) > 1:
            errors.print(f"{len(error.problems)} problems; nothing was run", style="bold")
        return MISTAKE
    except OSError as error:  # a disk that is full, a folder that is gone: nothing to be mended in the code
        errors.print(tell(error), markup=False)
        return FAILED
    except KeyboardInterrupt:
        return stopped()


@contextlib.contextmanager
def _sigterm_like_ctrl_c() -> Iterator[None]:
    """Both mean: save, then stop. (Only the main thread can hear signals.)"""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _console() -> Console:
    """Tables need room: 80 columns are assumed elsewhere when the output is a file."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=140)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m framework.run", description="Run the study that a registry describes."
    )
    parser.add_argument("registry", type=Path, nargs="?", help="the YAML file")
    parser.add_argument("overrides", nargs="*", metavar="path.to.key=value", help="change the registry for this call")
    parser.add_argument("--check", action="store_true", help="check everything, build every system, run nothing")
    parser.add_argument("--list", action="store_true", help="show every plugin with its settings")
    parser.add_argument("--dry-run", action="store_true", help="show what would run and what is finished")
    parser.add_argument("--report", action="store_true", help="tables and figures of what is finished; run nothing")
    only = "only cells whose name matches, e.g. 'polco*' or 'masks/*'; may be given several times"
    parser.add_argument("--only", metavar="PATTERN", action="append", default=[], help=only)
    parser.add_argument("--runs-dir", type=Path, default=Path("runs"), metavar="DIR", help="default: runs/")
    parser.add_argument("--workers", type=int, default=None, metavar="N", help="processes; default: one per core")
    where = "processes of this machine (default), or tasks on a Ray cluster (docs/scaling.md)"
    parser.add_argument("--executor", choices=("processes", "ray"), default="processes", help=where)
    parser.add_argument("--address", metavar="HOST:PORT", help="the Ray cluster; default: one of its own, here")
    stopped = "runs that were stopped: go on if the code is the same (default), anyway, or start over"
    parser.add_argument("--resume", choices=("same", "anyway", "fresh"), default="same", help=stopped)
    parser.add_argument("--yes", action="store_true", help="run a very large grid without asking")
    loudness = parser.add_mutually_exclusive_group()
    loudness.add_argument("--quiet", action="store_true", help="no progress, only the table")
    loudness.add_argument("--verbose", action="store_true", help="a line about every run every few seconds")
    return parser


def _main(options: argparse.Namespace, console: Console) -> int:
    if options.list:
        host = _load(options).host if options.registry else PluginHost()
        _print_plugins(host, console)
        return OK
    if options.registry is None:
        raise UserError("which registry? e.g. python -m framework.run registry.yaml")
    study = select(_load(options), *options.only) if options.only else _load(options)
    if options.check:
        _check(study, console)
        return OK
    if options.dry_run:
        _print_cells(study, console, options.runs_dir)
        return OK
    if options.report:
        return _report(study, options.runs_dir, console)
    make_writable(options.runs_dir)
    borrow_finished(study, options.runs_dir, console)
    for origin in study.host.external:
        console.print(f"plugin code: {origin}", markup=False)
    executor = _executor(options, Setting(options.runs_dir, study.plugins, options.resume))
    loudness: Loudness = "quiet" if options.quiet else "verbose" if options.verbose else "normal"
    try:
        with Display(study, console, loudness) as display:
            outcome = launch(study.runs, options.runs_dir, study.host, executor, display.watch)
    except KeyboardInterrupt:
        return stopped("stopped; what was running is saved. The same command goes on from there.")
    return _finish(study, outcome, options.runs_dir, console)


def _load(options: argparse.Namespace) -> Study:
    try:
        return load(options.registry, options.overrides, MOST_RUNS if options.yes else MAX_CELLS)
    except TooManyCells as error:
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise
        if input(f"The grid has {error.count:,} cells. Run it all? [y/N] ").strip().lower() not in ("y", "yes"):
            raise
        return load(options.registry, options.overrides, MOST_RUNS)


def select(study: Study, *patterns: str) -> Study:
    """The part of a study whose cells match one of the patterns. Each must match some: one that does not is a slip."""
    labels = [cell.label for cell in study.cells]
    idle = [pattern for pattern in patterns if not any(fnmatch.fnmatchcase(label, pattern) for label in labels)]
    if idle:
        names = ", ".join(labels[:20])
        raise UserError(Problem(f"--only '{pattern}' matches no cell; there are: {names}") for pattern in idle)
    cells = tuple(cell for cell in study.cells if any(fnmatch.fnmatchcase(cell.label, p) for p in patterns))
    wanted = {run.id for cell in cells for run in cell.runs()}
    asked = " ".join(f"--only '{pattern}'" for pattern in patterns)
    told = f"{asked} ({len(cells)} of {counted(len(study.cells), 'system')})"
    part = (*study.part, told) if len(cells) < len(study.cells) else study.part
    runs = tuple(run for run in study.runs if run.id in wanted)
    return dataclasses.replace(study, cells=cells, runs=runs, part=part)


def _check(study: Study, console: Console) -> None:
    systems = build_all(study)
    _print_cells(study, console, None)
    counts = f"{counted(len(study.cells), 'cell')}, {counted(len(study.runs), 'run')}, {counted(systems, 'system')}"
    console.print(f"registry is fine: {counts} built")


def _print_cells(study: Study, console: Console, runs_dir: Path | None) -> None:
    out = Table(title=f"{study.name}: {counted(len(study.cells), 'cell')}", title_justify="left")
    heads = ["cell", "env", "interpreter", "policy", "optimizer", "steps", "seeds"]
    for head in heads + (["finished"] if runs_dir else []):
        out.add_column(head, overflow="fold")  # names that are cut cannot be told apart
    for item in study.cells:
        cell = item.cell
        row = [
            escape(item.label) + (" *" if item.baseline else ""),
            cell.env.plugin,
            cell.interpreter.plugin,
            cell.policy.plugin,
        ]
        row += [cell.optimizer.plugin, f"{cell.training.steps:,}", " ".join(map(str, item.seeds))]
        if runs_dir:
            row.append(_progress(item.runs(), runs_dir, study.host))
        out.add_row(*row)
    console.print(out)
    served = sum(len(cell.seeds) for cell in study.cells)
    shared = f"; {served - len(study.runs)} shared" if served > len(study.runs) else ""
    console.print(f"{counted(len(study.runs), 'run')}{shared}")


def _progress(runs: Sequence[RunSpec], runs_dir: Path, host: PluginHost) -> str:
    finished = sum(is_finished(runs_dir, run) for run in runs)
    trained = sum(is_trained(run_folder(runs_dir, run)) for run in runs) - finished
    begun = sum(is_begun(runs_dir, run, host) for run in runs) - trained
    told = [f"{finished} of {len(runs)}"]
    told += [f"{trained} trained, evaluations to do"] if trained else []
    return ", ".join(told + ([f"{begun} begun"] if begun else []))


def _print_plugins(host: PluginHost, console: Console) -> None:
    for entry in host.catalog:
        console.print(f"[bold]{entry.kind} {entry.name}[/bold]  [dim]{entry.origin} {entry.version}[/dim]")
        if entry.cls is None or entry.unavailable:
            console.print(f"    not available: {entry.unavailable}", markup=False)
        if entry.cls is not None:
            console.print(f"    {entry.cls.summary()}", markup=False)
            _print_settings(entry.cls.Config, console)
    for name, (cls, origin) in sorted(host.observer_types.items()):
        console.print(f"[bold]observer {name}[/bold]  [dim]{origin}[/dim]")
        if missing := missing_requirements(cls):
            console.print(f"    not available: {missing}", markup=False)
        console.print(f"    {(inspect.getdoc(cls) or '').splitlines()[0]}", markup=False)
        _print_settings(cls.Config, console)


def _print_settings(config: type, console: Console) -> None:
    for field in describe_fields(config):
        console.print(f"    {field.name}: {field.type} = {field.default}", markup=False)
        console.print(f"        {field.text}", markup=False, style="dim")


def _executor(options: argparse.Namespace, setting: Setting) -> Executor:
    workers = count_workers(options.workers)
    if options.executor == "ray":
        return OnRay(setting, workers, options.workers, options.address)
    if options.address is not None:
        raise UserError("--address is that of a Ray cluster; it goes with --executor ray")
    return Processes(setting, workers)


def count_workers(asked: int | None) -> int:
    """One per core unless asked otherwise."""
    if asked is not None and asked < 1:
        raise UserError(f"--workers must be at least 1, not {asked}")
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return asked or available or 1


def make_writable(folder: Path) -> None:
    """Or say why not, before anything runs."""
    probe = folder / ".writable"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise UserError(Problem(f"cannot write to the runs folder: {error.strerror}", where=str(folder))) from None


def borrow_finished(study: Study, runs_dir: Path, console: Console) -> None:
    """Finished runs from the folders that the registry names under ``reuse``."""
    if not study.reuse:
        return
    found = borrow(study, runs_dir, study.reuse)
    taken = counted(found.runs, "finished run")
    console.print(f"{taken} taken from {', '.join(map(str, study.reuse))}", markup=False)
    for problem in found.damaged:
        console.print(f"damaged there, made anew: {problem}", style="yellow", markup=False)


def _report(study: Study, runs_dir: Path, console: Console) -> int:
    made = _write_report(study, runs_dir, console)
    if made is None:
        raise UserError(Problem(f"no run of study '{study.name}' is finished here; run it without --report first",
                                where=str(runs_dir)))  # fmt: skip
    console.print(f"{made.runs} of {counted(len(study.runs), 'run')}{_found(made)}", markup=False, soft_wrap=True)
    return OK


def _found(made: Written | None) -> str:
    return f"; tables in {made.folder}; open {made.folder / 'report.html'}" if made else ""


def _write_report(study: Study, runs_dir: Path, console: Console) -> Written | None:
    from framework import report  # draws: it takes a second to import, and workers import this file too

    return report.write(study, runs_dir, console)


def _finish(study: Study, outcome: Outcome, runs_dir: Path, console: Console) -> int:
    made, unwritten = None, ""
    try:
        made = _write_report(study, runs_dir, console) if runs_dir.is_dir() else None
    except OSError as error:
        unwritten = f"the report could not be written: {tell(error)}"
    parts = [f"{len(outcome.done)} done", f"{len(outcome.skipped)} finished before", f"{len(outcome.failed)} failed"]
    console.print(", ".join(parts) + _found(made), markup=False, soft_wrap=True)
    labels = {run.id: ", ".join(run.labels) + f" (seed {run.seed})" for run in study.runs}
    for run_id, reason in outcome.failed.items():
        console.print(f"failed: {labels[run_id]}: {reason}", style="red", markup=False, soft_wrap=True)
        console.print(f"        log: {runs_dir / 'cells' / run_id / 'log.txt'}", markup=False, soft_wrap=True)
    if unwritten:
        console.print(unwritten, style="red", markup=False, soft_wrap=True)
    return FAILED if outcome.failed or unwritten else OK


if __name__ == "__main__":
    sys.exit(main())
