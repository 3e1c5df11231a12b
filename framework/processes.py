"""The local executor: worker processes on this machine.

Workers stay alive from one cell to the next and use one thread each. They are forked from a server that has imported
torch and done nothing else, so that starting one costs milliseconds, not seconds. A worker that dies takes one cell
with it, not the grid.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

from framework.executor import TIME_TO_SAVE, Event, Executor, Setting, environment, for_workers
from framework.plan import Task


class Processes(Executor):
    """At most ``workers`` at a time, started as they are needed."""

    def __init__(self, setting: Setting, workers: int) -> None:
        self._setting, self._workers = setting, workers
        self._crew: list[_Worker] = []

    def room(self) -> int:
        return self._workers - sum(worker.task is not None for worker in self._crew)

    def start(self, task: Task) -> None:
        idle = next((worker for worker in self._crew if worker.task is None), None)
        if idle is None:
            idle = _Worker(self._setting)
            self._crew.append(idle)
        idle.give(task)

    def listen(self) -> Sequence[Event]:
        busy = {worker.pipe: worker for worker in self._crew if worker.task}
        return [busy[pipe].hear() for pipe in wait(list(busy)) if isinstance(pipe, Connection)]

    def close(self) -> None:
        for worker in self._crew:
            worker.ask_to_stop()
        for worker in self._crew:
            worker.stop()
        self._crew = []


class _Worker:
    """A process, its pipe, and the task it is at."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self.task: Task | None = None
        self._begin()

    def _begin(self) -> None:
        context: Any = _context()
        self.pipe, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(theirs, self._setting), daemon=True)
        with environment(for_workers()):
            self._process.start()
        theirs.close()

    def give(self, task: Task) -> None:
        self.task = task
        with contextlib.suppress(OSError):  # a worker that is already dead shows as EOF when we listen
            self.pipe.send(task.job())

    def hear(self) -> Event:
        """What it has to say."""
        task = self.task
        assert task is not None
        try:
            what, details = self.pipe.recv()
        except (EOFError, OSError):  # closed, or reset because it died with the job unread
            self._process.join()
            code = self._process.exitcode
            how = f"killed by signal {-code}" if code and code < 0 else f"exit code {code}"
            self.pipe.close()
            what, details = "died", {"error": f"the process died ({how}); out of memory, perhaps"}
            self._begin()
        if what != "progress":
            self.task = None
        return Event(task, what, details)

    def ask_to_stop(self) -> None:
        """One that is at work saves first. Or it has just come to an end, and waits for another task."""
        if self.task is not None:
            self._process.terminate()
        with contextlib.suppress(OSError):
            self.pipe.send(None)

    def stop(self) -> None:
        self._process.join(timeout=TIME_TO_SAVE)
        if self._process.is_alive():
            self._process.kill()
        self.pipe.close()


def _context() -> Any:
    if "forkserver" not in multiprocessing.get_all_start_methods():  # Windows
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["framework.worker"])
    return context


def _work(pipe: Connection, setting: Setting) -> None:
    """Main function of a worker process. When the parent is gone there is nobody to work for."""
    with contextlib.suppress(BrokenPipeError, EOFError, ConnectionResetError):
        _serve(pipe, setting)


def _serve(pipe: Connection, setting: Setting) -> None:
    import torch

    from framework.errors import UserError
    from framework.plugin_manager import PluginHost
    from framework.resume import Saver
    from framework.worker import perform

    def stop(*_: object) -> None:
        Saver.stop_asked = True

    def progress(stage: str, step: int, metrics: Mapping[str, float]) -> None:
        try:
            pipe.send(("progress", {"stage": stage, "step": step, "metrics": dict(metrics)}))
        except OSError:
            stop()  # the parent is gone: save, so that nothing is lost

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    signal.signal(signal.SIGTERM, stop)
    torch.set_num_threads(1)
    host: PluginHost | None = None
    while (job := pipe.recv()) is not None:
        try:
            host = host or PluginHost(setting.plugins)
        except UserError as error:
            pipe.send(("failed", {"error": str(error), "traceback": ""}))
            continue
        what, details = perform(job, setting, host, progress)
        if what == "stopped":
            return
        pipe.send((what, details))
