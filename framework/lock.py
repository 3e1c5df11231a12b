"""One at a time: two commands on the same runs folder wait for each other instead of writing over each other."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # not on Windows: there, one command at a time is up to the user
    fcntl = None  # type: ignore[assignment]


@contextlib.contextmanager
def held(file: Path) -> Iterator[None]:
    """Hold ``file`` as a lock. The system lets go of it when the process ends, however it ends."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(file, "a", encoding="utf-8") as lock:
        if fcntl is not None:
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
