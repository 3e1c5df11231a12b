"""The agent: interpreter, ledger and policy as one. What happens between two environment steps."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from framework.errors import UserError
from framework.interfaces import (
    ConstraintEnv,
    ConstraintInterpreter,
    Interpretation,
    InterpreterInput,
    Labels,
    PolicyInput,
    PolicyNet,
    State,
    Timestep,
)
from framework.interfaces.interpreter import reset_rows
from framework.ledger import PLAIN, Ledger, Reckoning
from framework.wording import counted

ROUNDING = 1e-4
"""How far past 0 or 1 a probability may be."""


@dataclass(frozen=True)
class Mind:
    """All that an agent carries from one step to the next: books and recurrent states."""

    ledger: Ledger
    interpreter: State
    policy: State


def encoded(interpreter: ConstraintInterpreter, sentences: Sequence[str]) -> Tensor:
    """What ``encode`` makes of them, [S, ...]; anything else is told."""
    code: Any = interpreter.encode(sentences)
    if not isinstance(code, Tensor) or code.shape[:1] != (len(sentences),):
        want = f"one row for each of {counted(len(sentences), 'sentence')}"
        raise _misread(interpreter, f"encode must return a tensor with {want}, not {_shape(code)}")
    return code


def checked(
    interpreter: ConstraintInterpreter, answer: Any, before: State, rows: int, cells: Sequence[int]
) -> tuple[Interpretation, State]:
    """What ``step`` returned, if it can be used: a mask of NaN would forbid nothing, and nobody would know.

    At every step, so it must be cheap: shapes and extremes are compared, and a sum tells whether all is finite.
    """
    if not (isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[0], Interpretation)):
        got = [type(item).__name__ for item in answer] if isinstance(answer, tuple) else type(answer).__name__
        raise _misread(interpreter, f"step must return (Interpretation, state), not {got}")
    seen, state = answer
    parts = [("mask", seen.mask, (rows, *cells)), ("threshold", seen.threshold, (rows,))]
    parts += [("trespass", seen.trespass, (rows,))] if seen.trespass is not None else []
    for name, part, want in parts:
        if not isinstance(part, Tensor) or part.shape != want:
            raise _misread(interpreter, f"{name} must be a tensor of shape {list(want)}, not {_shape(part)}")
        if part.dtype != torch.float32:  # numpy's are float64, comparisons bool; the policy would stumble over them
            got = str(part.dtype).removeprefix("torch.")
            raise _misread(interpreter, f"{name} is {got}, but must be float32; add .float()")
    if not math.isfinite(sum(part.sum() for _, part, _ in parts)):
        for name, part, _ in parts:
            if not bool(part.isfinite().all()):
                raise _misread(interpreter, f"{name} is NaN or infinite")
    low, high = (float(end) for end in torch.aminmax(seen.mask))
    if low < -ROUNDING or high > 1 + ROUNDING:
        told = f"mask has values from {low:.3g} to {high:.3g}: it must hold probabilities, 0 to 1, not logits"
        raise _misread(interpreter, told)
    want_state = [_shape(part) for part in before]
    if not isinstance(state, tuple) or [_shape(part) for part in state] != want_state:
        shapes = [_shape(part) for part in state] if isinstance(state, tuple) else type(state).__name__
        told = f"step must return a state shaped as initial_state's, {want_state}, not {shapes}"
        raise _misread(interpreter, told)
    return seen, state


class Agent:
    """Turns what an environment shows into what a policy gets. Holds no state of its own: that is the Mind."""

    def __init__(
        self,
        env: ConstraintEnv,
        interpreter: ConstraintInterpreter,
        policy: PolicyNet,
        reckoning: Reckoning = PLAIN,
    ) -> None:
        self.spec = env.spec
        self.rows = env.rows
        self.interpreter = interpreter
        self.policy = policy
        self.reckoning = reckoning
        self._sentences = env.sentences
        self._tokens = policy.encode(env.sentences)
        self.read()

    @torch.no_grad()
    def read(self) -> None:
        """Each distinct sentence once; again only if the interpreter has changed."""
        self.code = encoded(self.interpreter, self._sentences)  # [S, ...]

    def fresh_mind(self) -> Mind:
        rows = self.rows * self.spec.constraints
        books = Ledger.empty(self.rows, self.spec.constraints, self.spec.cells)
        return Mind(books, self.interpreter.initial_state(rows), self.policy.initial_state(self.rows))

    @torch.no_grad()
    def perceive(
        self, now: Timestep, mind: Mind, last_action: Tensor, labels: Labels | None
    ) -> tuple[PolicyInput, Mind]:
        """One look: the interpreter reads the observation, the ledger books the move, the policy remembers."""
        n, k = self.rows, self.spec.constraints
        start, felt = now.episode_start, felt_at(now)
        start_k = start.repeat_interleave(k)
        before = reset_rows(mind.interpreter, self.interpreter.initial_state(n * k), start_k)
        given = InterpreterInput(
            now.obs.repeat_interleave(k, 0),
            self.code[now.text.flatten()],
            _fold(labels),
            felt.repeat_interleave(k, 0),
        )
        answer = self.interpreter.step(given, before)
        seen, interpreter_state = checked(self.interpreter, answer, before, n * k, self.spec.cells)
        ledger = mind.ledger.charge(now.touched, self._trespassed(seen, felt)).observe(seen, start, self.reckoning)
        mask, budget, threshold = ledger.combined()
        inputs = PolicyInput(
            obs=now.obs,
            mask=mask,
            budget=budget,
            threshold=threshold,
            touched=felt,
            last_action=last_action * _per_row(~start, last_action),
            memory=torch.zeros(n, 0),
            text=now.text,
            tokens=self._tokens,
        )
        state = reset_rows(mind.policy, self.policy.initial_state(n), start)
        memory, policy_state = self.policy.remember(inputs, state)
        return dataclasses.replace(inputs, memory=memory), Mind(ledger, interpreter_state, policy_state)

    def _trespassed(self, seen: Interpretation, felt: Tensor) -> Tensor | None:
        """[N, K] bool. Only a move can trespass: to stay where one is costs nothing, and an episode starts for free."""
        if seen.trespass is None:
            return None
        moved = felt.flatten(1).bool().any(-1, keepdim=True)
        return self.reckoning.forbidden(seen.trespass).view(self.rows, -1) & moved

    def no_action(self) -> Tensor:
        """What counts as the last action when there was none."""
        if self.spec.action.kind == "discrete":
            return torch.zeros(self.rows, dtype=torch.int64)
        return torch.zeros(self.rows, self.spec.action.size)


def _misread(interpreter: ConstraintInterpreter, what: str) -> UserError:
    return UserError(f"interpreter '{interpreter.name}': {what}")


def _shape(value: Any) -> list[int] | str:
    return list(value.shape) if isinstance(value, Tensor) else type(value).__name__


class Glance(Agent):
    """An agent that is only tried out: it reads some of the sentences, and takes the others for one of these."""

    @torch.no_grad()
    def read(self) -> None:
        some = self._sentences[:8]  # a transformer takes minutes for thousands
        self.code = encoded(self.interpreter, some)[torch.arange(len(self._sentences)) % len(some)]


def labels_for(interpreter: ConstraintInterpreter, env: ConstraintEnv) -> Labels | None:
    """The truth, only for an interpreter that declared that it needs it. The one place where labels pass."""
    return env.labels() if interpreter.needs_labels else None


def felt_at(now: Timestep) -> Tensor:
    """What the last move touched; nothing where an episode starts (it may be the old one's)."""
    return now.touched * _per_row(~now.episode_start, now.touched)


def _per_row(flag: Tensor, like: Tensor) -> Tensor:
    """[N] -> [N, 1, ...], to go with ``like`` [N, ...]."""
    return flag.view(-1, *[1] * (like.dim() - 1))


def _fold(labels: Labels | None) -> Labels | None:
    """[N, K, ...] -> [N * K, 1, ...]: one row per constraint."""
    if labels is None:
        return None
    trespass = None if labels.trespass is None else labels.trespass.reshape(-1, 1)
    return Labels(labels.mask.flatten(0, 1)[:, None], labels.threshold.reshape(-1, 1), trespass)
