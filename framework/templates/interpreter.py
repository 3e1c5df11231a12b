"""my_plugin: which words does a sentence have? A linear layer on that picks what is forbidden, another how often.

Word order is beyond it ("water, not grass" is "grass, not water"), and so is distance: a baseline to improve upon.

    python -m framework.check my_plugin.py           # does it keep the contract?
    python -m framework.run my_plugin.yaml           # compare it with others
    python -m framework.read "Never touch the lava" --plugin my_plugin.py
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from framework.hookspecs import hookimpl
from framework.interfaces import ConstraintInterpreter, EnvSpec, Interpretation, InterpreterInput, State


@dataclass(frozen=True)
class Config:
    """The settings that YAML may give; each needs a type, a default, and a line that says what it does."""

    buckets: int = 512
    """Words are hashed into this many; the more, the fewer two words share one."""

    def __post_init__(self) -> None:
        if self.buckets < 1:
            raise ValueError(f"buckets must be at least 1, not {self.buckets}")  # told with file and line


class MyPlugin(ConstraintInterpreter):
    """Bag of words: linear layers pick the forbidden entity and the threshold."""  # `--list` shows this line

    name = "my_plugin"  # the word in YAML
    Config = Config

    def __init__(self, config: Config, spec: EnvSpec) -> None:
        super().__init__(config, spec)
        if spec.observation.kind != "codes" or not spec.entity_codes:
            raise ValueError("my_plugin needs a grid of codes with named entities")  # refuse what you cannot read
        self.entity = nn.Linear(config.buckets, len(spec.entities))
        self.threshold = nn.Linear(config.buckets, 1)

    def encode(self, sentences: Sequence[str]) -> Tensor:
        """[S, entities + 1]: all that is to be known of a sentence, once. Learned, so gradients flow through here."""
        words = torch.zeros(len(sentences), self.config.buckets)
        for row, sentence in enumerate(sentences):
            for word in re.findall(r"[a-z]+|\d+", sentence.lower()):
                words[row, zlib.crc32(word.encode()) % self.config.buckets] = 1.0
        return torch.cat([self.entity(words), self.threshold(words)], dim=-1)

    def step(self, inputs: InterpreterInput, state: State) -> tuple[Interpretation, State]:
        """Each cell is forbidden as far as the entity in it is. Nothing to remember, so the state stays ()."""
        forbidden = inputs.code[:, :-1].softmax(-1)  # [M, E]
        codes = torch.tensor(self.spec.entity_codes)
        there = (inputs.obs[..., 0, None] == codes).float()  # [M, *cells, E]
        mask = torch.einsum("m...e,me->m...", there, forbidden).clamp(0, 1)
        return Interpretation(mask, inputs.code[:, -1], confidence=forbidden.amax(-1)), state

    # Stage 1 minimises ``loss`` (cross-entropy of the mask, squared error of the threshold). Override ``loss`` to learn
    # from something else, or ``fit`` to learn in another way than by gradient.


@hookimpl
def heed_components() -> list[type[ConstraintInterpreter]]:
    return [MyPlugin]
