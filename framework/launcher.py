"""Runs the cells of a study in worker processes: skips the finished, isolates failures.

Workers stay alive from one cell to the next (starting Python and torch costs seconds), use one thread each, and write a
cell's output to its own log. A worker that dies takes one cell with it, not the grid.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
import traceback
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from framework.cell import RunSpec
from framework.checkpoint import write_json
from framework.errors import UserError
from framework.plugin_manager import PluginHost, PluginRef
from framework.resume import Resume, Saver, Stopped
from framework.stages import interpreter_file, is_finished, run_folder

TIME_TO_SAVE = 60
"""Seconds that a worker gets to finish its update and save, when it is told to stop."""
Watch = Callable[[str, str, Mapping[str, Any]], None]
"""watch(run id, event, details); events: start, progress, done, skipped, failed."""


@dataclass(frozen=True)
class Task:
    """Stage 1 for a shared interpreter, or a whole cell."""

    kind: str  # "interpreter" or "cell"
    run: RunSpec
    interpreter: Path
    """The file that stage 1 writes, or that the cell reads."""


@dataclass
class Outcome:
    """What came of a study."""

    done: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)


def launch(
    runs: Sequence[RunSpec],
    runs_dir: Path,
    host: PluginHost,
    plugins: tuple[PluginRef, ...],
    workers: int,
    watch: Watch,
    resume: Resume = "same",
) -> Outcome:
    """All runs; interpreters that several share are learned once. If that fails, so do the runs that need it."""
    outcome = Outcome()
    cells = []
    for run in runs:
        if is_finished(runs_dir, run):
            outcome.skipped.append(run.id)
            watch(run.id, "skipped", {})
        else:
            cells.append(Task("cell", run, interpreter_file(runs_dir, run, host)))
    plan, crew = _Plan(cells), list[_Worker]()
    try:
        crew = [_Worker(runs_dir, plugins, resume) for _ in range(min(workers, len(plan)))]
        while plan or any(w.task for w in crew):
            for worker in crew:
                if worker.task is None and (task := plan.next()):
                    worker.give(task)
                    watch(task.run.id, "start", {"kind": task.kind})
            for connection in wait([w.pipe for w in crew if w.task]):
                worker = next(w for w in crew if w.pipe is connection)
                if ended := _listen(worker, watch, outcome):
                    _drop(plan.ended(ended, outcome), ended, watch, outcome)
    finally:
        for worker in crew:
            worker.ask_to_stop()
        for worker in crew:
            worker.stop()
    return outcome


class _Plan:
    """What is left to do: first the interpreters, then the cells; none before its interpreter is there."""

    def __init__(self, cells: Sequence[Task]) -> None:
        first = {task.interpreter: task.run for task in reversed(cells) if not task.interpreter.is_file()}
        order = dict.fromkeys(task.interpreter for task in cells if task.interpreter in first)
        self.readers = deque(Task("interpreter", first[file], file) for file in order)
        self.cells = list(cells)
        self.awaited = set(order)

    def __len__(self) -> int:
        return len(self.readers) + len(self.cells)

    def next(self) -> Task | None:
        """A task that can start now."""
        if self.readers:
            return self.readers.popleft()
        ready = (i for i, task in enumerate(self.cells) if task.interpreter not in self.awaited)
        i = next(ready, None)
        return None if i is None else self.cells.pop(i)

    def ended(self, task: Task, outcome: Outcome) -> list[Task]:
        """Take note; returns the cells that can never start, because their interpreter failed."""
        if task.kind != "interpreter":
            return []
        self.awaited.discard(task.interpreter)
        if task.run.id not in outcome.failed:
            return []
        lost = [cell for cell in self.cells if cell.interpreter == task.interpreter]
        self.cells = [cell for cell in self.cells if cell.interpreter != task.interpreter]
        return lost


def _drop(cells: Sequence[Task], reader: Task, watch: Watch, outcome: Outcome) -> None:
    for task in cells:
        if task.run.id == reader.run.id:
            continue  # told already
        error = f"its interpreter failed with {', '.join(reader.run.labels)}: {outcome.failed[reader.run.id]}"
        outcome.failed[task.run.id] = error
        watch(task.run.id, "failed", {"error": error, "kind": "cell"})


def _listen(worker: _Worker, watch: Watch, outcome: Outcome) -> Task | None:
    """Hear what a worker has to say; returns its task if that has ended."""
    assert worker.task is not None
    task = worker.task
    try:
        event, details = worker.pipe.recv()
    except (EOFError, OSError):  # closed, or reset because it died with the job unread
        worker.process.join()
        code = worker.process.exitcode
        how = f"killed by signal {-code}" if code and code < 0 else f"exit code {code}"
        event, details = "failed", {"error": f"the process died ({how}); out of memory, perhaps"}
        worker.restart()
    if event == "progress":
        watch(task.run.id, "progress", details)
        return None
    worker.task = None
    if event == "done" and task.kind == "cell":
        outcome.done.append(task.run.id)
    elif event == "failed":
        outcome.failed[task.run.id] = details["error"]
        folder = run_folder(worker.runs_dir, task.run)
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            write_json(folder / "failure.json", {"id": task.run.id, "stage": task.kind, **details})
    watch(task.run.id, event, details | {"kind": task.kind})
    return task


class _Worker:
    """A process, its pipe, and the task it is at."""

    def __init__(self, runs_dir: Path, plugins: tuple[PluginRef, ...], resume: Resume) -> None:
        self.runs_dir, self.plugins, self.resume = runs_dir, plugins, resume
        self.task: Task | None = None
        self.restart()

    def restart(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(
            target=_work, args=(theirs, self.runs_dir, self.plugins, self.resume), daemon=True
        )
        with _one_thread():
            self.process.start()
        theirs.close()

    def give(self, task: Task) -> None:
        self.task = task
        with contextlib.suppress(OSError):  # a worker that is already dead shows as EOF when we listen
            exams = [exam.as_dict() for exam in task.run.exams]
            self.pipe.send((task.kind, task.run.as_dict(), task.run.labels, exams))

    def ask_to_stop(self) -> None:
        """One that is at work saves first."""
        if self.task is None:
            with contextlib.suppress(OSError):
                self.pipe.send(None)
        else:
            self.process.terminate()

    def stop(self) -> None:
        self.process.join(timeout=TIME_TO_SAVE)
        if self.process.is_alive():
            self.process.kill()
        self.pipe.close()


@contextlib.contextmanager
def _one_thread() -> Any:
    """Children inherit these: several processes with many threads each would fight for the cores."""
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _work(pipe: Connection, runs_dir: Path, plugins: tuple[PluginRef, ...], resume: Resume) -> None:
    """Main function of a worker process. When the parent is gone there is nobody to work for."""
    with contextlib.suppress(BrokenPipeError, EOFError, ConnectionResetError):
        _serve(pipe, runs_dir, plugins, resume)


def _serve(pipe: Connection, runs_dir: Path, plugins: tuple[PluginRef, ...], resume: Resume) -> None:
    import signal

    import torch

    from framework.cell import run_from_dict
    from framework.stages import learn_interpreter, run_cell

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    signal.signal(signal.SIGTERM, lambda *_: setattr(Saver, "stop_asked", True))
    torch.set_num_threads(1)
    host: PluginHost | None = None
    while (job := pipe.recv()) is not None:
        kind, raw, labels, exams = job
        try:
            host = host or PluginHost(plugins)
            run = run_from_dict(raw, host.catalog, tuple(labels), exams)
            folder = run_folder(runs_dir, run)
            folder.mkdir(parents=True, exist_ok=True)

            def progress(stage: str, step: int, metrics: Mapping[str, float]) -> None:
                pipe.send(("progress", {"stage": stage, "step": step, "metrics": dict(metrics)}))

            with _logging_to(folder / "log.txt"):
                if kind == "interpreter":
                    learn_interpreter(run, runs_dir, host, progress)
                    result: dict[str, Any] = {}
                else:
                    result = run_cell(run, runs_dir, host, progress, resume)
            pipe.send(("done", {"result": result}))
        except Stopped:
            return
        except UserError as error:
            pipe.send(("failed", {"error": str(error), "traceback": ""}))
        except BrokenPipeError:
            raise
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            pipe.send(("failed", {"error": text, "traceback": traceback.format_exc()}))


@contextlib.contextmanager
def _logging_to(file: Path) -> Any:
    """Everything printed goes to the run's log, also from C code."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1), os.dup(2)
    with open(file, "a", encoding="utf-8") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
        try:
            yield
        except BaseException:
            traceback.print_exc()
            raise
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os.dup2(kept[0], 1)
            os.dup2(kept[1], 2)
            os.close(kept[0])
            os.close(kept[1])
