"""A person's mistake, told to the person: where, what, the likely fix, and who owns the thing that is wrong."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """One mistake. ``str()`` gives the one line that is printed."""

    message: str
    where: str = ""  # "registry.yaml:12", or "command line"
    path: str = ""  # "experiments.polco.optimizer"
    owner: str = ""  # "optimizer 'pcpo' (plugins/optimizers/pcpo.py)"

    def __str__(self) -> str:
        line = ": ".join(part for part in (self.where, self.path, self.message) if part)
        return f"{line} [{self.owner}]" if self.owner else line


class UserError(Exception):
    """Carries every problem that was found, not just the first. Never shown as a traceback."""

    def __init__(self, problems: Problem | str | Iterable[Problem]) -> None:
        if isinstance(problems, str):
            problems = Problem(problems)
        found = [problems] if isinstance(problems, Problem) else list(problems)
        self.problems = sorted(found, key=_place)
        super().__init__("\n".join(map(str, self.problems)))


MISTAKE = 2
"""Exit code of every command for a user's mistake."""


STOPPED = 130
"""Exit code of every command that Ctrl-C ends, as shells have it (128 and the number of the signal)."""


def stopped(what: str = "stopped") -> int:
    """Say so on stderr; returns the exit code."""
    print(what, file=sys.stderr)
    return STOPPED


def complain(error: UserError) -> int:
    """Tell all problems on stderr; returns the exit code."""
    from rich.console import Console  # strips what would steer a terminal

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    for problem in error.problems:
        console.print(str(problem), markup=False)
    return MISTAKE


def _place(problem: Problem) -> tuple[str, int]:
    """Reading order: by file, then by line."""
    file, _, line = problem.where.rpartition(":")
    return (file, int(line)) if line.isdigit() else (problem.where, 0)


def did_you_mean(word: str, known: Sequence[str]) -> str:
    """``; did you mean 'x'?``, or the whole list when nothing is near and the list is short."""
    if meant := near(word, known):
        return f"; did you mean '{meant}'?"
    return f"; known: {', '.join(sorted(known))}" if 0 < len(known) <= 24 else ""


def near(word: str, known: Sequence[str]) -> str | None:
    """The known word that this one is probably a misspelling of."""
    return next(iter(difflib.get_close_matches(word, known, n=1, cutoff=0.6)), None)
