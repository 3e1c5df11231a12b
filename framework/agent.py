"""The agent: interpreter, ledger and policy as one. What happens between two environment steps."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import torch
from torch import Tensor

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


@dataclass(frozen=True)
class Mind:
    """All that an agent carries from one step to the next: books and recurrent states."""

    ledger: Ledger
    interpreter: State
    policy: State


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
        self.code = self.interpreter.encode(self._sentences)  # [S, ...]

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
        seen, interpreter_state = self.interpreter.step(
            InterpreterInput(
                now.obs.repeat_interleave(k, 0),
                self.code[now.text.flatten()],
                _fold(labels),
                felt.repeat_interleave(k, 0),
            ),
            reset_rows(mind.interpreter, self.interpreter.initial_state(n * k), start_k),
        )
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
