"""ConstraintInterpreter: a sentence and an observation become a mask of forbidden cells and a threshold."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from framework.interfaces.component import Component, Kind
from framework.interfaces.types import (
    EnvSpec,
    Explanation,
    Interpretation,
    InterpreterInput,
    Labels,
    Metrics,
    State,
    Walks,
)


class ConstraintInterpreter(nn.Module, Component, ABC):
    """Reads constraints. Write ``encode`` (read a sentence, once) and ``step`` (look at an observation).

    The loop it lives in, while an agent acts (framework/rollout.py)::

        code = interpreter.encode(env.sentences)                    # once per sentence table
        state = interpreter.initial_state(rows)                     # one row per (environment, constraint)
        while acting:
            state = initial rows where an episode starts            # the framework does this
            seen, state = interpreter.step(InterpreterInput(obs, code[text], ...), state)
            ...                                                     # seen.mask, seen.threshold -> ledger -> policy

    and in stage 1, where it learns from random walks with ground truth (framework/reading.py)::

        for walk in minibatches:                                    # [T, M] steps
            loss = interpreter.loss(inputs, labels, episode_start)
            loss.backward(); ...

    or, if you write ``fit``, in your own way. In stage 2 it is frozen and called without gradient. An interpreter with
    nothing to learn skips stage 1.
    """

    kind: ClassVar[Kind] = "interpreter"
    needs_labels: ClassVar[bool] = False
    """Declare True to get the truth in ``InterpreterInput.labels``. Anything else never sees it."""
    not_for_learning: ClassVar[frozenset[str]] = frozenset()
    """Settings that make no difference to stage 1, only to what is done with it: one trained file serves them all."""

    def __init__(self, config: Any, spec: EnvSpec) -> None:
        super().__init__()
        self.config = config
        self.spec = spec

    @abstractmethod
    def encode(self, sentences: Sequence[str]) -> Tensor:
        """Read each sentence: ``[S, ...]``, one row per sentence. Called once per sentence table while frozen."""

    @abstractmethod
    def step(self, inputs: InterpreterInput, state: State) -> tuple[Interpretation, State]:
        """Interpret M rows of one time step: mask ``[M, *cells]`` in [0, 1], threshold ``[M]``, and the next state."""

    def initial_state(self, rows: int) -> State:
        """State at the start of an episode, each tensor ``[rows, ...]``. Memoryless interpreters keep ``()``."""
        return ()

    def loss(self, inputs: InterpreterInput, labels: Labels, episode_start: Tensor) -> Tensor:
        """Stage-1 loss of a walk ``[T, M, ...]``; labels are ``[T, M, 1, ...]``.

        The default is the paper's: binary cross-entropy over the cells of M_C plus squared error of h_C.
        """
        state = self.initial_state(inputs.obs.shape[1])
        total = torch.zeros(())
        for t in range(len(inputs.obs)):
            state = reset_rows(state, self.initial_state(inputs.obs.shape[1]), episode_start[t])
            touched = None if inputs.touched is None else inputs.touched[t]
            seen, state = self.step(InterpreterInput(inputs.obs[t], inputs.code[t], touched=touched), state)
            mask_error = F.binary_cross_entropy(seen.mask, labels.mask[t, :, 0])
            threshold_error = F.mse_loss(seen.threshold, labels.threshold[t, :, 0])
            total = total + mask_error + threshold_error
        return total / len(inputs.obs)

    def explain(self, sentence: str) -> Explanation | None:
        """What it makes of the sentence, in words; None (the default) if it has none. For people, never for agents."""
        return None

    def fit(self, walks: Walks, sentences: Sequence[str], lesson: Lesson) -> Metrics | None:
        """Stage 1 in a way of your own: counting, say, or a classifier of sentences. Returns what to log.

        The default returns None: then the framework minimises ``loss`` by gradient (framework/reading.py).
        """
        return None

    @property
    def learns(self) -> bool:
        """Has something to learn (parameters or buffers), so stage 1 applies."""
        return bool(self.state_dict())


@dataclass(frozen=True)
class Lesson:
    """How stage 1 goes: settings of ``training.interpreter``, a random stream, and where to report progress."""

    iterations: int
    batch: int
    learning_rate: float
    seed: int
    report: Callable[[int, Metrics], None]
    """report(iterations done, numbers)"""


def reset_rows(state: State, fresh: State, start: Tensor) -> State:
    """``state`` with the rows where ``start`` [M] is True taken from ``fresh``."""
    rows = start.nonzero().squeeze(-1)
    if not len(rows):
        return state
    return tuple(old.index_copy(0, rows, new[rows]) for old, new in zip(state, fresh, strict=True))
