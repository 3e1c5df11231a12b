"""What a sentence can mean in a world of entities, as probabilities; and the mask that follows from it.

A meaning has five slots: which entity is forbidden; within which distance of it; whether always, only after, or only
before another entity was entered; which entity that is; and how often it may be entered all the same. Given the slots,
the mask M_C is no longer a matter of learning: it is looked up in the view. That is what lets a reader that learned
from a thousand sentences be right about every cell of every map.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import torch
from torch import Tensor

from framework.interfaces import EnvSpec

ALWAYS, AFTER, BEFORE = range(3)
DISTANCES = 4
"""Distances 0 to 3."""


@dataclass(frozen=True)
class Slots:
    """Sizes of the slots, in the order in which they are packed into a sentence's code."""

    entity: int
    distance: int
    order: int
    first: int
    threshold: int

    @classmethod
    def of(cls, spec: EnvSpec) -> Slots:
        """The slots that make sense in an environment; ValueError if none do."""
        if spec.observation.kind != "codes" or len(spec.cells) != 2 or not spec.entity_codes:
            raise ValueError("needs a grid of cell codes with named entities (EnvSpec.entity_codes)")
        entities = len(spec.entities)
        return cls(entities, DISTANCES, 3, entities, spec.max_threshold + 1)

    def sizes(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in ("entity", "distance", "order", "first", "threshold")}

    def unpack(self, code: Tensor) -> dict[str, Tensor]:
        """[M, sum of sizes] -> one tensor of probabilities for each slot."""
        return dict(zip(self.sizes(), code.split(list(self.sizes().values()), dim=-1), strict=True))


def planes(obs: Tensor, spec: EnvSpec) -> Tensor:
    """[M, *cells, C] codes -> [M, E, *cells] float: where each entity is in view."""
    return (obs[..., 0].unsqueeze(1) == _codes(spec.entity_codes, obs.dtype).view(-1, 1, 1)).float()


def underfoot(obs: Tensor, spec: EnvSpec) -> Tensor:
    """[M, E] bool: the entity that the agent stands on."""
    if spec.agent_cell is None:
        return torch.zeros(len(obs), len(spec.entities), dtype=torch.bool)
    x, y = spec.agent_cell
    return obs[:, x, y, 0].unsqueeze(1) == _codes(spec.entity_codes, obs.dtype)


def grown(where: Tensor) -> Tensor:
    """[M, E, X, Y], 0 or 1 -> [M, E, DISTANCES, X, Y]: cells within 0, 1, 2, 3 steps of the entity, in view."""
    x, y = where.shape[-2:]
    count = where.flatten(2) @ _within(x, y)
    return count.clamp_(max=1).view(*where.shape[:2], DISTANCES, x, y)


def expected_mask(meaning: dict[str, Tensor], where: Tensor, visited: Tensor) -> Tensor:
    """[M, X, Y]: probability that each cell is forbidden now. ``where`` [M, E, X, Y], ``visited`` [M, E] so far.

    That is the sum, over entities and distances, of the probability that they are meant times where they are.
    """
    entity, distance = meaning["entity"], meaning["distance"]
    always, after, before = meaning["order"].unbind(-1)  # as ALWAYS, AFTER, BEFORE count
    met = (meaning["first"] * visited).sum(-1)
    conditional = torch.lerp(before, after, met)  # after * met + before * (1 - met)
    if bool((distance[:, 0] > 0.999).all()):  # no sentence here speaks of distance: growing is for nothing
        weight, near = entity * (always + conditional).unsqueeze(1), where
    else:
        reach = always.unsqueeze(1) * distance
        reach[:, 0] += conditional  # "after" and "before" speak of the entity itself
        weight, near = entity.unsqueeze(2) * reach.unsqueeze(1), grown(where)  # [M, E, D], [M, E, D, X, Y]
    mask = weight.flatten(1).unsqueeze(1) @ near.flatten(-2).flatten(1, -2)  # [M, 1, X * Y]
    return mask.clamp_(0, 1).view(len(where), *where.shape[2:])


@functools.cache
def _codes(codes: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """Made once: for fifty rows, making a constant costs as much as looking something up in it."""
    return torch.tensor(codes, dtype=dtype)


@functools.cache
def _within(x: int, y: int) -> Tensor:
    """[X * Y, DISTANCES * X * Y]: 1 where two cells are within each distance of each other."""
    cells = torch.cartesian_prod(torch.arange(x), torch.arange(y))
    steps = (cells[:, None] - cells).abs().sum(-1)  # [X * Y, X * Y]
    return (steps[:, None] <= torch.arange(DISTANCES)[:, None]).float().flatten(1)
