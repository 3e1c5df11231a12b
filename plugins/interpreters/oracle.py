"""The truth: what a perfect reader would say. Upper bound for interpreters, and the paper's setting for ablations."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from framework.hookspecs import hookimpl
from framework.interfaces import ConstraintInterpreter, Interpretation, InterpreterInput, State


class Oracle(ConstraintInterpreter):
    """True mask and true threshold, by declared access to the labels."""

    name = "oracle"
    needs_labels = True

    def encode(self, sentences: Sequence[str]) -> Tensor:
        return torch.zeros(len(sentences), 0)

    def step(self, inputs: InterpreterInput, state: State) -> tuple[Interpretation, State]:
        if inputs.labels is None:
            raise ValueError("the oracle was called without labels")
        labels, sure = inputs.labels, torch.ones(len(inputs.obs))
        trespass = None if labels.trespass is None else (labels.trespass[:, 0] > 0).float()
        return Interpretation(labels.mask[:, 0], labels.threshold[:, 0], sure, trespass), state


@hookimpl
def heed_components() -> list[type[ConstraintInterpreter]]:
    return [Oracle]
