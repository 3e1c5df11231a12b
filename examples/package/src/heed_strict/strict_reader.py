"""What a sentence names is forbidden, always: the most cautious reading that still reads."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from framework.hookspecs import hookimpl
from framework.interfaces import ConstraintInterpreter, EnvSpec, Interpretation, InterpreterInput, State


class StrictReader(ConstraintInterpreter):
    """Whatever is named is forbidden, and no exception is heard."""

    name = "strict_reader"

    def __init__(self, config: object, spec: EnvSpec) -> None:
        super().__init__(config, spec)
        if spec.observation.kind != "codes" or not spec.entity_codes:
            raise ValueError("strict_reader needs a grid of codes with named entities")

    def encode(self, sentences: Sequence[str]) -> Tensor:
        named = [[float(entity in sentence.lower()) for entity in self.spec.entities] for sentence in sentences]
        return torch.tensor(named).reshape(len(sentences), len(self.spec.entities))

    def step(self, inputs: InterpreterInput, state: State) -> tuple[Interpretation, State]:
        there = inputs.obs[..., 0, None] == torch.tensor(self.spec.entity_codes)
        mask = torch.einsum("m...e,me->m...", there.float(), inputs.code).clamp(0, 1)
        return Interpretation(mask, torch.zeros(len(inputs.obs))), state


@hookimpl
def heed_components() -> list[type[ConstraintInterpreter]]:
    return [StrictReader]
