"""Stage 1: a random policy walks, and the interpreter learns M_C and h_C from the ground truth of those walks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from framework.interfaces import ConstraintEnv, ConstraintInterpreter, InterpreterInput, Labels
from framework.interfaces.types import map_tensors
from framework.schema import InterpreterLearning
from framework.seeding import generator

Progress = Callable[[str, int, Mapping[str, float]], None]
REPORT_EVERY = 50


@dataclass(frozen=True)
class Walks:
    """T steps of R = N * K rows of random walk."""

    obs: Tensor  # [T, R, *shape]
    text: Tensor  # [T, R]
    mask: Tensor  # [T, R, 1, *cells]
    threshold: Tensor  # [T, R, 1]
    episode_start: Tensor  # [T, R]
    violation: float
    """Mean Delta_C of the walks' episodes: what learning to read cost (the paper's curves start with it)."""


def walk(env: ConstraintEnv, steps: int, seed: int) -> Walks:
    """Uniformly random actions, ``steps`` in all."""
    stream = generator(seed, "walks")
    action, k = env.spec.action, env.spec.constraints
    now = env.reset()
    rows: list[tuple[Tensor, ...]] = []
    cost, violations = torch.zeros(env.rows, k), []
    for _ in range(max(1, steps // env.rows)):
        truth = env.labels()
        rows.append(
            (
                now.obs.repeat_interleave(k, 0),
                now.text.flatten(),
                truth.mask.flatten(0, 1)[:, None],
                truth.threshold.reshape(-1, 1),
                now.episode_start.repeat_interleave(k),
            )
        )
        if action.kind == "discrete":
            move = torch.randint(action.size, (env.rows,), generator=stream)
        else:
            move = torch.rand(env.rows, action.size, generator=stream) * 2 - 1
        now = env.step(move)
        cost = cost + now.cost
        if bool(now.done.any()):
            violations.append((cost - now.threshold).clamp(min=0).sum(-1)[now.done])
            cost = cost * ~now.done[:, None]
    obs, text, mask, threshold, start = (torch.stack(column) for column in zip(*rows, strict=True))
    mean = float(torch.cat(violations).mean()) if violations else float("nan")
    return Walks(obs, text, mask, threshold, start, mean)


def learn_to_read(
    interpreter: ConstraintInterpreter,
    env: ConstraintEnv,
    settings: InterpreterLearning,
    seed: int,
    progress: Progress | None = None,
) -> dict[str, float]:
    """Minimise ``interpreter.loss`` on random walks; returns what the walks cost and the last loss."""
    walks = walk(env, settings.steps, seed)
    stream = generator(seed, "minibatches")
    optimizer = torch.optim.Adam(interpreter.parameters(), lr=settings.learning_rate)
    recurrent = len(interpreter.initial_state(1)) > 0
    loss = torch.zeros(())
    interpreter.train()
    for i in range(1, settings.iterations + 1):
        batch = _sequences(walks, settings.batch, stream) if recurrent else _steps(walks, settings.batch, stream)
        used, where = torch.unique(batch.text, return_inverse=True)
        code = interpreter.encode([env.sentences[j] for j in used.tolist()])[where]
        labels = Labels(batch.mask, batch.threshold)
        loss = interpreter.loss(InterpreterInput(batch.obs, code), labels, batch.episode_start)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if progress is not None and (i % REPORT_EVERY == 0 or i == settings.iterations):
            progress("interpreter", i, {"loss": float(loss)})
    return {"walk_violation": walks.violation, "loss": float(loss.detach())}


def _steps(walks: Walks, count: int, stream: torch.Generator) -> Walks:
    """``count`` single observations from anywhere: one step of ``count`` rows."""
    t = torch.randint(walks.obs.shape[0], (count,), generator=stream)
    r = torch.randint(walks.obs.shape[1], (count,), generator=stream)
    return map_tensors(walks, lambda column: column[t, r].unsqueeze(0))


def _sequences(walks: Walks, count: int, stream: torch.Generator) -> Walks:
    """Whole columns of walk, about ``count`` observations in all, for interpreters with memory."""
    columns = max(1, count // walks.obs.shape[0])
    r = torch.randint(walks.obs.shape[1], (columns,), generator=stream)
    return map_tensors(walks, lambda column: column[:, r])
