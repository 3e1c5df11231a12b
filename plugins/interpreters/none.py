"""No interpreter: nothing is forbidden. For policies that read text by themselves, and for lower bounds."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from framework.hookspecs import hookimpl
from framework.interfaces import ConstraintInterpreter, Interpretation, InterpreterInput, State


class NoInterpreter(ConstraintInterpreter):
    """An empty mask and threshold 0 for every sentence."""

    name = "none"

    def encode(self, sentences: Sequence[str]) -> Tensor:
        return torch.zeros(len(sentences), 0)

    def step(self, inputs: InterpreterInput, state: State) -> tuple[Interpretation, State]:
        rows = len(inputs.obs)
        return Interpretation(torch.zeros(rows, *self.spec.cells), torch.zeros(rows), torch.zeros(rows)), state


@hookimpl
def heed_components() -> list[type[ConstraintInterpreter]]:
    return [NoInterpreter]
