"""What did each sentence mean? The one meaning that explains every mask that was seen with it.

Stage 1 shows masks and thresholds, not meanings. But the meanings that a world allows can be counted, so for each
training sentence we try them all against the walks and keep the one with the fewest wrong cells. No label of a sentence
is used: only the ground truth of the walks.

Walks may leave it open: under "no vases once you have touched a pillar" nothing is forbidden in walks that touch no
pillar. Such a sentence is left out, because to learn from a guess is worse than not to learn from it.
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
    """Sentence id -> its meaning, for every sentence whose meaning the walks settle."""
    scene = scene_of(spec)
    visited = _visited(walks, scene)
    stream = torch.Generator().manual_seed(seed)
    t, r = _looks(walks, visited, stream)
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
    threshold = torch.zeros(sentences)
    threshold[text] = walks.threshold[t, r]  # the same at every look
    found = {}
    for s, best in _settled(wrong, torch.unique(text).tolist(), [order for order, *_ in hypotheses]).items():
        order, entity, first, distance = hypotheses[best]
        found[s] = Meaning(entity, distance, order, first, int(threshold[s]))
    return found


def _settled(wrong: Tensor, sentences: list[int], order: list[int]) -> dict[int, int]:
    """Sentence id -> the hypothesis that explains its walks best, where that is one. ``wrong`` [H, S].

    Of several, those drop out whose order no settled sentence has: where nobody speaks of "before", a walk that never
    met water does not put "no lava" in doubt. If nothing at all is settled, the walks are too short to tell: the first.
    """
    best = {s: (wrong[:, s] == wrong[:, s].min()).nonzero().flatten().tolist() for s in sentences}
    orders = {order[some[0]] for some in best.values() if len(some) == 1}
    if not orders:
        return {s: some[0] for s, some in best.items()}
    likely = {s: [h for h in some if order[h] in orders] for s, some in best.items()}
    return {s: some[0] for s, some in likely.items() if len(some) == 1}


def _hypotheses(entities: int, distances: int) -> list[tuple[int, int, int, int]]:
    """(order, entity, first, distance), the plain ones first."""
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


def _looks(walks: Walks, visited: Tensor, stream: torch.Generator) -> tuple[Tensor, Tensor]:
    """Up to LOOKS places (t, r) for each sentence, drawn at random from all over the walks; first one of each
    situation, that is, of each set of entities met: what a sentence forbids may depend on it, and some are rare."""
    order = torch.randperm(walks.text.numel(), generator=stream)
    situation = (visited.long() << torch.arange(visited.shape[-1])).sum(-1)
    text = walks.text.long()
    rare_first = torch.argsort(_place((text << visited.shape[-1] | situation).flatten()[order]), stable=True)
    order = order[rare_first]
    chosen = order[_place(text.flatten()[order]) < LOOKS]
    return chosen // walks.text.shape[1], chosen % walks.text.shape[1]


def _place(labels: Tensor) -> Tensor:
    """How many equal ones come before each."""
    ranked = torch.argsort(labels, stable=True)
    grouped = labels[ranked].contiguous()
    place = torch.empty_like(ranked)
    place[ranked] = torch.arange(len(ranked)) - torch.searchsorted(grouped, grouped)
    return place
