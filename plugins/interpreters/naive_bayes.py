"""The paper's rule-based baseline: naive Bayes on word counts picks the entity, and the threshold.

    P(entity | words)  ~  P(entity) * prod_w P(w | entity)

with add-one smoothing, counted on the training sentences. The mask is simply where that entity is: distance and order
are beyond it, which is what the paper's table shows (65 % of cells for relational constraints).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from framework.hookspecs import hookimpl
from framework.interfaces import ConstraintInterpreter, EnvSpec, Interpretation, InterpreterInput, Lesson, State, Walks
from plugins.interpreters._evidence import meanings
from plugins.interpreters._meaning import Slots, scene_of
from plugins.texts.words import BUCKETS, hash_words

LENGTH = 60


class NaiveBayes(ConstraintInterpreter):
    """Word counts pick the entity and the threshold; no distance, no order (the paper's baseline)."""

    name = "naive_bayes"
    entity_counts: Tensor
    threshold_counts: Tensor

    def __init__(self, config: object, spec: EnvSpec) -> None:
        super().__init__(config, spec)
        slots, self.scene = Slots.of(spec), scene_of(spec)
        # [classes, BUCKETS + 1]: how often each word came with each class; the last column counts sentences.
        self.register_buffer("entity_counts", torch.ones(slots.entity, BUCKETS + 1))
        self.register_buffer("threshold_counts", torch.ones(slots.threshold, BUCKETS + 1))

    def fit(self, walks: Walks, sentences: Sequence[str], lesson: Lesson) -> dict[str, float]:
        found = meanings(walks, len(sentences), self.spec, lesson.seed)
        self.entity_counts.fill_(1.0)
        self.threshold_counts.fill_(1.0)
        for s, meaning in found.items():
            words = _words(sentences[s])
            self.entity_counts[meaning.entity] += words
            self.threshold_counts[meaning.threshold] += words
        lesson.report(lesson.iterations, {"loss": 0.0})
        return {"sentences": float(len(found))}

    def encode(self, sentences: Sequence[str]) -> Tensor:
        """[S, E + H]: log-posteriors of entity and threshold."""
        words = torch.stack([_words(sentence) for sentence in sentences]) if sentences else torch.zeros(0, BUCKETS + 1)
        return torch.cat([_log_posterior(words, c) for c in (self.entity_counts, self.threshold_counts)], dim=-1)

    def step(self, inputs: InterpreterInput, state: State) -> tuple[Interpretation, State]:
        entity, threshold = inputs.code.split([len(self.entity_counts), len(self.threshold_counts)], dim=-1)
        probability = entity.softmax(-1)
        mask = torch.einsum("me,mexy->mxy", probability, self.scene.at(inputs.obs))
        confidence = probability.amax(-1) * threshold.softmax(-1).amax(-1)
        return Interpretation(mask.clamp(0, 1), threshold.argmax(-1).float(), confidence), state


def _words(sentence: str) -> Tensor:
    """[BUCKETS + 1] counts of the sentence's words, and a 1 for the sentence itself."""
    words = hash_words([sentence], LENGTH)[0]
    counts = torch.bincount(words[words > 0] - 1, minlength=BUCKETS + 1).float()
    counts[-1] = 1
    return counts


def _log_posterior(words: Tensor, counts: Tensor) -> Tensor:
    prior = counts[:, -1].log()
    likelihood = (counts[:, :-1] / counts[:, :-1].sum(-1, keepdim=True)).log()
    return prior + words[:, :-1] @ likelihood.T


@hookimpl
def heed_components() -> list[type[ConstraintInterpreter]]:
    return [NaiveBayes]
