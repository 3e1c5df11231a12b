"""What a sentence can mean in a world of entities, as probabilities; and the mask that follows from it.

A meaning has five slots: which entity is forbidden; within which distance of it; whether always, only after, or only
before another entity was entered; which entity that is; and how often it may be entered all the same. Given the slots,
the mask M_C is no longer a matter of learning: it is looked up in the view. That is what lets a reader that learned
from a thousand sentences be right about every cell of every map.
"""

from __future__ import annotations

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
    codes = torch.tensor(spec.entity_codes, dtype=obs.dtype).view(1, -1, 1, 1)
    return (obs[..., 0].unsqueeze(1) == codes).float()


def underfoot(obs: Tensor, spec: EnvSpec) -> Tensor:
    """[M, E] bool: the entity that the agent stands on."""
    if spec.agent_cell is None:
        return torch.zeros(len(obs), len(spec.entities), dtype=torch.bool)
    x, y = spec.agent_cell
    return obs[:, x, y, 0].unsqueeze(1) == torch.tensor(spec.entity_codes, dtype=obs.dtype)


def grown(where: Tensor) -> Tensor:
    """[M, E, X, Y] -> [M, E, DISTANCES, X, Y]: cells within 0, 1, 2, 3 steps of the entity, as far as the view goes."""
    layers = [where]
    for _ in range(DISTANCES - 1):
        cells = layers[-1].clone()
        cells[..., 1:, :] = torch.maximum(cells[..., 1:, :], layers[-1][..., :-1, :])
        cells[..., :-1, :] = torch.maximum(cells[..., :-1, :], layers[-1][..., 1:, :])
        cells[..., :, 1:] = torch.maximum(cells[..., :, 1:], layers[-1][..., :, :-1])
        cells[..., :, :-1] = torch.maximum(cells[..., :, :-1], layers[-1][..., :, 1:])
        layers.append(cells)
    return torch.stack(layers, dim=2)


def expected_mask(meaning: dict[str, Tensor], where: Tensor, visited: Tensor) -> Tensor:
    """[M, X, Y]: probability that each cell is forbidden now. ``where`` [M, E, X, Y], ``visited`` [M, E] so far."""
    if bool((meaning["distance"][:, 0] > 0.999).all()):  # no sentence here speaks of distance: growing is for nothing
        near = where
    else:
        near = torch.einsum("md,medxy->mexy", meaning["distance"], grown(where))
    always = torch.einsum("me,mexy->mxy", meaning["entity"], near)
    on_entity = torch.einsum("me,mexy->mxy", meaning["entity"], where)
    met = (meaning["first"] * visited).sum(-1)
    order = meaning["order"]
    conditional = order[:, AFTER] * met + order[:, BEFORE] * (1 - met)
    return (order[:, ALWAYS, None, None] * always + conditional[:, None, None] * on_entity).clamp(0, 1)
