"""One walk: an agent in a playground, step by step, and what its interpreter understands, as data for the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from framework.agent import Agent
from framework.errors import UserError
from framework.explaining import explained
from framework.interfaces import ConstraintInterpreter, InterpreterInput, Playground, PolicyNet
from framework.ledger import Reckoning
from framework.panel import Account
from framework.player import Player
from framework.seeding import generator

UNSEEN, FREE, FORBIDDEN = " ", ".", "x"
"""Letters of masks: cells that were never in view, that may be entered, that must not be."""


@dataclass(frozen=True)
class Reading:
    """What an interpreter makes of one sentence."""

    kind: str | None
    text: str | None
    threshold: float
    confidence: float | None
    constraint: float | None
    """Probability that the sentence is a constraint at all."""

    @classmethod
    @torch.no_grad()
    def of(cls, interpreter: ConstraintInterpreter, sentence: str, world: Playground, k: int) -> Reading:
        """``k``: which of the world's sentences it is."""
        now = world.reset()
        labels = None
        if interpreter.needs_labels:
            if world.truths[k] is None:
                raise UserError(
                    f"'{interpreter.name}' is told the truth, and nobody knows that of \"{sentence[:60]}\": "
                    "take one of the examples, or another interpreter"
                )
            truth = world.labels()
            labels = type(truth)(truth.mask[:, k : k + 1], truth.threshold[:, k : k + 1])
        inputs = InterpreterInput(now.obs, interpreter.encode([sentence]), labels)
        seen, _ = interpreter.step(inputs, interpreter.initial_state(1))
        [told] = explained(interpreter, [sentence])
        return cls(
            told.kind if told else None,
            told.text if told else None,
            float(seen.threshold[0]),
            None if seen.confidence is None else float(seen.confidence[0]),
            told.constraint if told else None,
        )


class Walk:
    """Deterministic: equal world, agent and seed give equal steps."""

    def __init__(
        self,
        world: Playground,
        interpreter: ConstraintInterpreter,
        policy: PolicyNet,
        reckoning: Reckoning,
        seed: int,
        greedy: bool,
    ) -> None:
        self.world, self._greedy = world, greedy
        self.readings = [Reading.of(interpreter, s, world, k) for k, s in enumerate(world.sentences)]
        self._player = Player(world, Agent(world, interpreter, policy, reckoning))
        self._stream = generator(seed, "play")
        height = len(world.board().rows)
        self._seen = np.full((height, height), UNSEEN)
        self._trail = [world.board().agent]

    def step(self) -> None:
        """One move; nothing once the episode is over."""
        if not self._player.done:
            self._player.act(self._player.choose(self._stream, self._greedy))
            self._trail.append(self.world.board().agent)

    def snapshot(self) -> dict[str, Any]:
        """All that the page draws."""
        player, board = self._player, self.world.board()
        caption = player.caption()
        return {
            "step": player.step,
            "steps": self.world.spec.max_steps,
            "reward": player.reward,
            "over": self._ending(),
            "rows": board.rows,
            "agent": board.agent,
            "heading": board.heading,
            "view": self._view(board.view),
            "mask": self._look(board.view),
            "whole": self._whole(),
            "trail": self._trail[-40:],
            "clauses": [
                {"understood": _account(clause.understood), "truth": _account(clause.truth) if truth else None}
                for clause, truth in zip(caption.clauses, self.world.truths, strict=True)
            ],
        }

    def _ending(self) -> str | None:
        if not self._player.done:
            return None
        return "goal" if bool(self._player.now.terminated[0]) else "time"

    def _view(self, cells: NDArray[np.int64]) -> list[int]:
        """Left, top, right, bottom of what is in view, cut at the map's edge."""
        flat = cells.reshape(-1, 2)
        size = len(self._seen)
        return [*flat.min(0).clip(0, size).tolist(), *(flat.max(0) + 1).clip(0, size).tolist()]

    def _look(self, cells: NDArray[np.int64]) -> list[str]:
        """The mask as it was when each cell was last in view."""
        forbidden = self._player.forbidden.numpy()
        for x, y, bad in zip(*cells.reshape(-1, 2).T.tolist(), forbidden.reshape(-1).tolist(), strict=True):
            if 0 <= y < len(self._seen) and 0 <= x < len(self._seen):
                self._seen[y, x] = FORBIDDEN if bad else FREE
        return ["".join(row) for row in self._seen]

    def _whole(self) -> list[str] | None:
        """The mask that the interpreter would have, did it see the whole map; None where it cannot be asked.

        A cell is judged from the cells beside it: there, all that matters for it is in view.
        """
        outlook, centre = self.world.outlook(), self.world.spec.agent_cell
        seen = None if outlook is None or centre is None else self._player.imagine(outlook[0])
        if outlook is None or seen is None or centre is None:
            return None
        size = len(self._seen)
        whole = np.full((size, size), FREE)
        for cell in _beside(centre):
            index: Any = (slice(None), *cell)
            x, y = outlook[1][index].T
            inside = (x >= 0) & (y >= 0) & (x < size) & (y < size) & seen[index].numpy()
            whole[y[inside], x[inside]] = FORBIDDEN
        return ["".join(row) for row in whole]


def _beside(cell: Sequence[int]) -> Iterator[tuple[int, ...]]:
    for axis in range(len(cell)):
        for move in (-1, 1):
            yield tuple(place + move * (i == axis) for i, place in enumerate(cell))


def _account(account: Account) -> dict[str, float]:
    return {"budget": account.budget, "spent": account.spent, "over": account.over}
