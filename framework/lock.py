"""One at a time: two commands on the same runs folder wait for each other instead of writing over each other.

The lock is the system's (flock), which lets go of it when the process ends, however it ends. Over a network it is as
good as the file system's locks are; docs/scaling.md says what is assumed.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from framework.errors import Problem, UserError

try:
    import fcntl
except ImportError:  # not on Windows: there, one command at a time is up to the user
    fcntl = None  # type: ignore[assignment]

LOOK_EVERY = 0.2
"""Seconds between two tries."""


@contextlib.contextmanager
def held(file: Path, while_waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold ``file`` as a lock; ``while_waiting`` is called now and then, and may raise to give up."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(file, "a", encoding="utf-8") as lock:
        while fcntl is not None:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                while_waiting()
                time.sleep(LOOK_EVERY)
            except OSError as error:
                told = f"cannot be locked: {error.strerror}; what the file system must offer is in docs/scaling.md"
                raise UserError(Problem(told, where=str(file))) from None
        yield
