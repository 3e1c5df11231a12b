"""Stage 1, first half: a random policy walks, and what it saw is kept with the truth about it."""

from __future__ import annotations

import torch
from torch import Tensor

from framework.agent import felt_at
from framework.interfaces import ConstraintEnv, Metrics, Timestep, Walks
from framework.seeding import generator

KEEP = 0.95
"""How likely a random walker with continuous actions does the same again. Fresh noise each step would get nowhere."""


class Stroll:
    """Random actions, row by row: independent choices, or numbers in [-1, 1] that are kept for a while."""

    def __init__(self, env: ConstraintEnv, stream: torch.Generator) -> None:
        self.action, self.rows, self.stream = env.spec.action, env.rows, stream
        self._kept = torch.zeros(env.rows, env.spec.action.size)
        self._fresh = torch.ones(env.rows, 1, dtype=torch.bool)

    def next(self) -> Tensor:
        if self.action.kind == "discrete":
            return torch.randint(self.action.size, (self.rows,), generator=self.stream)
        new = torch.rand(self.rows, self.action.size, generator=self.stream) * 2 - 1
        self._kept = torch.where(self._fresh, new, self._kept)
        self._fresh = torch.rand(self.rows, 1, generator=self.stream) >= KEEP
        return self._kept


class Diary:
    """What was seen, with the truth about it, step by step."""

    def __init__(self, env: ConstraintEnv) -> None:
        self.env = env
        self._columns: list[tuple[Tensor, ...]] = []

    def write(self, now: Timestep) -> None:
        """Before the env moves on."""
        k, truth = self.env.spec.constraints, self.env.labels()
        self._columns.append(
            (
                now.obs.repeat_interleave(k, 0),
                now.text.flatten(),
                truth.mask.flatten(0, 1) > 0.5,
                truth.threshold.flatten(),
                now.episode_start.repeat_interleave(k),
                felt_at(now).repeat_interleave(k, 0) > 0,
            )
        )

    def walks(self) -> Walks:
        return Walks(*(torch.stack(column) for column in zip(*self._columns, strict=True)))


def walk(env: ConstraintEnv, steps: int, seed: int) -> tuple[Walks, list[Metrics]]:
    """``steps`` uniformly random actions in all, and the walks' own violations, in bins of 50 episodes.

    The paper's learning curves start with those violations: learning to read is not free either.
    """
    stream = generator(seed, "walks")
    stroll, k = Stroll(env, stream), env.spec.constraints
    now = env.reset()
    diary = Diary(env)
    cost, violations = torch.zeros(env.rows, k), []
    for _ in range(max(1, steps // env.rows)):
        diary.write(now)
        before, now = now, env.step(stroll.next())
        cost = cost + now.cost
        if bool(now.done.any()):
            violations.append((cost - before.threshold).clamp(min=0).sum(-1)[now.done])
            cost = cost * ~now.done[:, None]
    return diary.walks(), _bins(torch.cat(violations) if violations else torch.zeros(0))


def _bins(violations: Tensor, size: int = 50) -> list[Metrics]:
    return [{"violation": float(part.mean()), "episodes": float(len(part))} for part in violations.split(size)]
