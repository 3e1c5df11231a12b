"""Where tasks run: the interface between the launcher and worker processes, here or on a cluster.

The launcher's loop:

    while plan or running:
        while executor.room() and (task := plan.next()):
            executor.start(task)
        for event in executor.listen():
            ...
    executor.close()
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from framework.plan import Task
from framework.plugin_manager import PluginRef
from framework.resume import Resume

TIME_TO_SAVE = 60
"""Seconds that a task gets to finish its update and save, when it is told to stop."""
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
"""Several processes with many threads each would fight for the cores."""
HOME = Path(__file__).resolve().parent.parent


def for_workers() -> dict[str, str]:
    """Environment of worker processes: one thread each, and this framework, not another that may be installed."""
    own = {name: value for name, value in os.environ.items() if name.startswith("HEED_")}
    return own | ONE_THREAD | {"PYTHONPATH": os.pathsep.join(filter(None, (str(HOME), os.environ.get("PYTHONPATH"))))}


@dataclass(frozen=True)
class Event:
    """What is heard of a task. All but ``progress`` end it; ``died``: its process did, and it never said a word."""

    task: Task
    what: Literal["progress", "done", "failed", "died"]
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Setting:
    """What every task of a study needs to know."""

    runs_dir: Path
    plugins: tuple[PluginRef, ...] = ()
    resume: Resume = "same"


class Executor(ABC):
    """Runs tasks, several at a time."""

    @abstractmethod
    def room(self) -> int:
        """How many more tasks can be started now."""

    @abstractmethod
    def start(self, task: Task) -> None:
        """Begin with a task."""

    @abstractmethod
    def listen(self) -> Sequence[Event]:
        """Wait for news of what is running. May return with none after a while."""

    @abstractmethod
    def close(self) -> None:
        """Let go of everything. A task that is still at work is asked to save and stop first."""


@contextmanager
def environment(values: Mapping[str, str]) -> Any:
    """Set while processes are started: children inherit it."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
