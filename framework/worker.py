"""What a worker does, wherever it is: one task, its output in the run's own log, its end as an event."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from framework.builder import blame
from framework.cell import RunSpec, run_from_dict
from framework.errors import Problem, UserError
from framework.executor import Setting
from framework.plugin_manager import PluginHost
from framework.progress_types import Progress
from framework.resume import Stopped
from framework.stages import learn_interpreter, run_cell, run_folder, try_evaluations

End = Literal["done", "failed", "stopped"]
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def perform(
    job: Mapping[str, Any], setting: Setting, host: PluginHost, progress: Progress
) -> tuple[End, dict[str, Any]]:
    """Do it; whatever goes wrong is told, not raised."""
    run: RunSpec | None = None
    try:
        run = run_from_dict(job["run"], host.catalog, tuple(job["labels"]), job["exams"])
        if run.id != job["id"]:
            raise UserError(f"the plugins here make it another run, {run.id}; were their files changed meanwhile?")
        if not setting.runs_dir.is_dir():  # never made anew: a disk that was unmounted must not be written beside
            raise UserError(Problem("the runs folder is gone", where=str(setting.runs_dir)))
        folder = run_folder(setting.runs_dir, run)
        folder.mkdir(parents=True, exist_ok=True)
        result: dict[str, Any] = {}
        resume = "same" if job["again"] and setting.resume == "fresh" else setting.resume
        with logging_to(folder / "log.txt"):
            try_evaluations(run, setting.runs_dir, host, exams=job["kind"] == "cell")
            if job["kind"] == "interpreter":
                learn_interpreter(run, setting.runs_dir, host, progress, resume)
            else:
                result = run_cell(run, setting.runs_dir, host, progress, resume)
        return "done", {"result": result}
    except Stopped:
        return "stopped", {}
    except UserError as error:
        return "failed", {"error": str(error), "traceback": ""}
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:
            said = tell(error)
        else:  # a mistake in somebody's code: whose, and where
            said = str(blame(error, run.cell, host.catalog)) if run else f"{type(error).__name__}: {error}"
        return "failed", {"error": said, "traceback": traceback.format_exc()}


def tell(error: OSError) -> str:
    """What the system refused, where, and what to do about it."""
    if error.errno is None:
        return f"{type(error).__name__}: {error}"
    where = f"{error.filename}: " if error.filename else ""
    hint = "; make room, and the same command goes on" if error.errno in FULL else ""
    return f"{where}{error.strerror or os.strerror(error.errno)}{hint}"


@contextlib.contextmanager
def logging_to(file: Path) -> Iterator[None]:
    """Everything printed goes to the run's log, also from C code."""
    _flush()
    kept = os.dup(1), os.dup(2)
    try:
        with open(file, "a", encoding="utf-8") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
            try:
                yield
            except Stopped:
                print("stopped, as it was told to; the same command goes on from here")
                raise
            except BaseException:
                with contextlib.suppress(OSError):
                    traceback.print_exc()
                raise
            finally:
                _flush()
                os.dup2(kept[0], 1)
                os.dup2(kept[1], 2)
    finally:
        os.close(kept[0])
        os.close(kept[1])


def _flush() -> None:
    """A disk that is full takes no log either; the failure is told all the same."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()
