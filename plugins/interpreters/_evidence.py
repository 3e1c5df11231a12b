"""What did each sentence mean? The one meaning that explains every mask that was seen with it.

Stage 1 shows masks and thresholds, not meanings. But the meanings that a world allows can be counted, so for each
training sentence we try them all against the walks and keep the one with the fewest wrong cells. No label of a sentence
is used: only the ground truth of the walks.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import torch
from torch import Tensor

from framework.interfaces import EnvSpec, Walks
from framework.interfaces.interpreter import reset_rows
from plugins.interpreters._meaning import AFTER, ALWAYS, BEFORE, Scene, scene_of

LOOKS = 256
"""Observations per sentence that are held against the hypotheses."""
AT_ONCE = 40_000


@dataclass(frozen=True)
class Meaning:
    """Slots as plain numbers. ``first`` is -1 where the order is ALWAYS."""

    entity: int
    distance: int
    order: int
    first: int
    threshold: int


def meanings(walks: Walks, sentences: int, spec: EnvSpec, seed: int) -> dict[int, Meaning]:
    """Sentence id -> its meaning, for every sentence that occurs in the walks."""
    scene = scene_of(spec)
    visited = _visited(walks, scene)
    stream = torch.Generator().manual_seed(seed)
    t, r = _looks(walks, sentences, stream)
    text = walks.text[t, r]
    hypotheses = _hypotheses(len(spec.entities), scene.distances)
    wrong = torch.zeros(len(hypotheses), sentences)
    for part in torch.arange(len(t)).split(AT_ONCE):
        look = t[part], r[part]
        near, met, target = scene.near(walks.obs[look]) > 0.5, visited[look], walks.mask[look]
        for i, (order, entity, first, distance) in enumerate(hypotheses):
            if order == ALWAYS:
                mask = near[:, entity, distance]
            else:
                active = met[:, first] if order == AFTER else ~met[:, first]
                mask = near[:, entity, 0] & active[:, None, None]
            wrong[i].index_add_(0, text[part], (mask != target).flatten(1).sum(-1).float())
    best = wrong.argmin(0)
    threshold = torch.zeros(sentences)
    threshold[text] = walks.threshold[t, r]  # the same at every look
    found = {}
    for s in torch.unique(text).tolist():
        order, entity, first, distance = hypotheses[int(best[s])]
        found[s] = Meaning(entity, distance, order, first, int(threshold[s]))
    return found


def _hypotheses(entities: int, distances: int) -> list[tuple[int, int, int, int]]:
    """(order, entity, first, distance), the plain ones first: of two that explain all, the earlier is taken."""
    every = range(entities)
    plain = [(ALWAYS, e, -1, d) for d in range(distances) for e in every]
    after = [(AFTER, e, f, 0) for e, f in itertools.product(every, every)]
    return plain + after + [(BEFORE, e, f, 0) for e, f in itertools.product(every, every) if e != f]


def _visited(walks: Walks, scene: Scene) -> Tensor:
    """[T, R, E] bool: entities entered so far in the episode."""
    steps = []
    rows = walks.obs.shape[1]
    state = scene.nothing_met(rows)
    for obs, touched, start in zip(walks.obs, walks.touched, walks.episode_start, strict=True):
        state = scene.remember(reset_rows(state, scene.nothing_met(rows), start), obs, touched)
        steps.append(state[0] > 0)
    return torch.stack(steps)


def _looks(walks: Walks, sentences: int, stream: torch.Generator) -> tuple[Tensor, Tensor]:
    """Up to LOOKS places (t, r) for each sentence, drawn at random from all over the walks."""
    order = torch.randperm(walks.text.numel(), generator=stream)
    text = walks.text.flatten()[order]
    ranked = torch.argsort(text, stable=True)
    starts = torch.searchsorted(text[ranked].contiguous(), torch.arange(sentences))
    within = torch.arange(len(ranked)) - starts[text[ranked]]
    chosen = order[ranked[within < LOOKS]]
    return chosen // walks.text.shape[1], chosen % walks.text.shape[1]
