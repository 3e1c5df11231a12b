"""Sessions: one or two walks over the same map and sentences. The oldest are put away when there are too many."""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from dataclasses import asdict
from typing import Any

from framework.errors import UserError
from framework.explaining import explained
from framework.ledger import Reckoning
from framework.page_server.messages import Start
from framework.page_server.shelf import Listed, Shelf
from framework.page_server.walk import Walk

MOST_SESSIONS = 16
FORGET_AFTER = 500
"""Sessions after which interpreters forget the sentences they have read, so that a long evening costs no memory."""


class Sessions:
    """All that the page does with agents. One thing at a time: torch would not be faster with two."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._lock = threading.Lock()
        self._open: OrderedDict[str, tuple[Walk, ...]] = OrderedDict()
        self._begun = 0

    def choices(self) -> dict[str, Any]:
        """What can be chosen, and what there is to draw."""
        world = self._shelf.sample
        return {
            "agents": [
                {"id": a.id, "label": a.label, "note": a.note, "interpreter": a.reader, "kind": a.kind}
                for a in self._shelf.agents.values()
            ],
            "interpreters": [{"id": i, "label": label} for i, label in self._shelf.interpreters.items()],
            "problems": self._shelf.problems,
            "tiles": [asdict(tile) for tile in world.tiles],
            "examples": world.examples,
        }

    def start(self, wish: Start) -> dict[str, Any]:
        """A new session: every walk at its first step."""
        with self._lock:
            self._tidy()
            layout, walks = wish.layout, []
            for walker in wish.walkers:
                listed = self._shelf.agent(walker.agent)
                reader = walker.interpreter or listed.reader
                walk = self._walk(listed, reader, wish, layout)
                layout = walk.world.layout  # the second walks on the map of the first
                walks.append((listed, reader, walk))
            name = secrets.token_urlsafe(12)
            self._open[name] = tuple(walk for _, _, walk in walks)
            return {
                "session": name,
                "layout": layout,
                "truths": walks[0][2].world.truths,
                "walkers": [
                    {
                        "agent": listed.label,
                        "interpreter": self._shelf.interpreters.get(reader, reader),
                        "readings": [asdict(reading) for reading in walk.readings],
                    }
                    for listed, reader, walk in walks
                ],
                "walks": [walk.snapshot() for _, _, walk in walks],
            }

    def step(self, name: str, count: int) -> dict[str, Any]:
        """``count`` moves of every walk; how things are after each."""
        with self._lock:
            if name not in self._open:
                raise UserError("this walk was put away, because many others were begun since; start it again")
            self._open.move_to_end(name)
            frames = []
            for _ in range(count):
                for walk in self._open[name]:
                    walk.step()
                frames.append([walk.snapshot() for walk in self._open[name]])
            return {"frames": frames}

    def _walk(self, listed: Listed, reader: str, wish: Start, layout: str | None) -> Walk:
        policy, interpreter = self._shelf.policy(listed), self._shelf.interpreter(reader)
        distances: dict[str, int] = {}
        for told in filter(None, explained(interpreter, wish.sentences)):
            for entity, steps in told.distances.items():
                distances[entity] = max(steps, distances.get(entity, 0))
        try:
            world = self._shelf.playground(listed, wish.sentences, wish.seed, layout, distances)
        except ValueError as error:
            raise UserError(str(error)) from None
        return Walk(world, interpreter, policy, Reckoning.of(listed.run.cell.training), wish.seed, wish.greedy)

    def _tidy(self) -> None:
        while len(self._open) >= MOST_SESSIONS:
            self._open.popitem(last=False)
        self._begun += 1
        if self._begun % FORGET_AFTER == 0:
            self._shelf.forget_sentences()
