"""An interpreter that learns nothing: it looks for names of things and for number words.

Type:

    python -m framework.check examples/interpreter/keyword_reader.py
    python -m framework.run examples/interpreter/keyword_reader.yaml
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import torch
from torch import Tensor

from framework.hookspecs import hookimpl
from framework.interfaces import ConstraintInterpreter, EnvSpec, Interpretation, InterpreterInput, State

NAMES = {
    "lava": ("lava", "magma", "molten", "volcan"),
    "water": ("water", "wet", "pond", "lake", "river", "swim", "puddle"),
    "grass": ("grass", "lawn", "turf", "green"),
}
NUMBERS = {"once": 1, "one": 1, "single": 1, "twice": 2, "two": 2, "three": 3, "thrice": 3, "four": 4, "five": 5}
FORBIDS = {"never", "no", "not", "avoid", "zero"}


class KeywordReader(ConstraintInterpreter):
    """Names of things and number words; nothing is learned."""

    name = "keyword_reader"

    def __init__(self, config: object, spec: EnvSpec) -> None:
        super().__init__(config, spec)
        if spec.observation.kind != "codes" or not spec.entity_codes:
            raise ValueError("keyword_reader needs a grid of codes with named entities")

    def encode(self, sentences: Sequence[str]) -> Tensor:
        """[S, entities + 1]: which things are named, and how often they are allowed."""
        rows = [[*self._named(sentence), self._allowed(sentence)] for sentence in sentences]
        return torch.tensor(rows).reshape(len(sentences), len(self.spec.entities) + 1)

    def step(self, inputs: InterpreterInput, state: State) -> tuple[Interpretation, State]:
        there = inputs.obs[..., 0, None] == torch.tensor(self.spec.entity_codes)  # [M, *cells, E]
        mask = torch.einsum("m...e,me->m...", there.float(), inputs.code[:, :-1]).clamp(0, 1)
        return Interpretation(mask, inputs.code[:, -1]), state

    def _named(self, sentence: str) -> list[float]:
        return [float(any(n in sentence.lower() for n in NAMES.get(e, (e,)))) for e in self.spec.entities]

    def _allowed(self, sentence: str) -> float:
        words = re.findall(r"[a-z]+|\d+", sentence.lower()[:2_000])
        numbers = [NUMBERS[w] if w in NUMBERS else int(w[:3]) for w in words if w in NUMBERS or w.isdigit()]
        if not numbers or (FORBIDS & set(words) and "than" not in words and "more" not in words):
            return 0.0
        return float(min(max(numbers), self.spec.max_threshold))


@hookimpl
def heed_components() -> list[type[ConstraintInterpreter]]:
    return [KeywordReader]
