"""What a study has to do, in which order, and what came of it. Knows nothing of processes or machines."""

from __future__ import annotations

import dataclasses
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from framework.cell import RunSpec


@dataclass(frozen=True)
class Task:
    """Stage 1 for a shared interpreter, or a whole cell."""

    kind: Literal["interpreter", "cell"]
    run: RunSpec
    interpreter: Path
    """The file that stage 1 writes, or that the cell reads."""
    again: bool = False
    """It was begun in this launch already, and died: what it saved is to be gone on from, whatever was asked for."""

    @property
    def key(self) -> str:
        return f"{self.kind} {self.run.id}"

    def job(self) -> dict[str, Any]:
        """As plain data, for a worker; ``framework.worker`` undoes it."""
        exams = [exam.as_dict() for exam in self.run.exams]
        run = self.run
        named = {"id": run.id, "run": run.as_dict(), "labels": list(run.labels), "exams": exams}
        return {"kind": self.kind, "again": self.again, **named}


@dataclass
class Outcome:
    """What came of a study."""

    done: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)


class Plan:
    """What is left: first the interpreters that cells share, then the cells; none before its interpreter is there."""

    def __init__(self, cells: Sequence[Task]) -> None:
        self._waiting: dict[Path, list[Task]] = {}
        self._readers, self._ready = deque[Task](), deque[Task]()
        sharing = Counter(task.interpreter for task in cells)
        alone = {file for file, count in sharing.items() if count == 1 or file.is_file()}
        for task in cells:
            if task.interpreter in alone:  # a cell that shares with nobody learns to read itself
                self._ready.append(task)
                continue
            if task.interpreter not in self._waiting:
                self._readers.append(Task("interpreter", task.run, task.interpreter))
            self._waiting.setdefault(task.interpreter, []).append(task)

    def __bool__(self) -> bool:
        return bool(self._readers or self._ready or self._waiting)

    def next(self) -> Task | None:
        """A task that can start now."""
        queue = self._readers or self._ready
        return queue.popleft() if queue else None

    def again(self, task: Task) -> None:
        """It has to be begun once more, before anything new is."""
        queue = self._readers if task.kind == "interpreter" else self._ready
        queue.appendleft(dataclasses.replace(task, again=True))

    def ended(self, task: Task, failed: bool) -> Iterable[Task]:
        """Take note; returns the cells that can never start, because their interpreter failed."""
        if task.kind == "cell":
            return ()
        cells = self._waiting.pop(task.interpreter, [])
        if failed:
            return cells
        self._ready.extend(cells)
        return ()


class Patience:
    """Whether a task whose process died is worth another try: a second one always, then as long as it comes further.

    So a cell that needs more memory than there is fails soon, and one whose machines are taken away now and then ends.
    """

    def __init__(self) -> None:
        self._furthest: dict[str, dict[str, int]] = {}
        self._deaths: dict[str, int] = {}

    def progress(self, task: Task, stage: str, step: int) -> None:
        reached = self._furthest.setdefault(task.key, {})
        if step > reached.get(stage, 0):
            reached[stage] = step
            self._deaths.pop(task.key, None)

    def died(self, task: Task) -> bool:
        """True: try again."""
        self._deaths[task.key] = self._deaths.get(task.key, 0) + 1
        return self._deaths[task.key] < 2

    def ended(self, task: Task) -> None:
        self._furthest.pop(task.key, None)
        self._deaths.pop(task.key, None)
