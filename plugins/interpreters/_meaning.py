"""What a sentence can mean in a world of entities, as probabilities; and the mask that follows from it.

A meaning has five slots: which entity is forbidden; within which distance of it; whether always, only after, or only
before another entity was entered; which entity that is; and how often it may be entered all the same. Given the slots,
the mask M_C is no longer a matter of learning: it is looked up in the view. That is what lets a reader that learned
from a thousand sentences be right about every cell of every map.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from framework.interfaces import EnvSpec, State

ALWAYS, AFTER, BEFORE = range(3)
DISTANCES = 4
"""Of grid worlds: 0 to 3 steps."""


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
        entities = len(spec.entities)
        return cls(entities, scene_of(spec).distances, 3, entities, spec.max_threshold + 1)

    def sizes(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in ("entity", "distance", "order", "first", "threshold")}

    def unpack(self, code: Tensor) -> dict[str, Tensor]:
        """[M, sum of sizes] -> one tensor of probabilities for each slot."""
        return dict(zip(self.sizes(), code.split(list(self.sizes().values()), dim=-1), strict=True))


class Scene(ABC):
    """Where entities are, in one kind of world."""

    distances: int
    texts: str
    """Our own sentences for such worlds: a folder in plugins/texts."""
    metric: bool
    """Distances are said in units of length, so a sentence's numbers are not the slot's."""

    def __init__(self, spec: EnvSpec) -> None:
        self.spec = spec

    @abstractmethod
    def near(self, obs: Tensor) -> Tensor:
        """[M, E, distances, *cells], 0 or 1: the cells that are forbidden if that entity is, within that distance."""

    def nothing_met(self, rows: int) -> State:
        """What is remembered of an episode at its start; the first tensor is [M, E], 1 for entities that were met."""
        return (torch.zeros(rows, len(self.spec.entities)),)

    @abstractmethod
    def remember(self, state: State, obs: Tensor, touched: Tensor | None) -> State:
        """The state with what happened at this step."""

    def at(self, obs: Tensor) -> Tensor:
        """[M, E, *cells]: ``near`` at distance 0."""
        return self.near(obs)[:, :, 0]


class GridScene(Scene):
    """A view of cell codes: an entity is where its code is, and within d steps of that."""

    distances, texts, metric = DISTANCES, "grid", False

    def near(self, obs: Tensor) -> Tensor:
        where = self.at(obs)
        x, y = where.shape[-2:]
        count = where.flatten(2) @ _within(x, y)
        return count.clamp_(max=1).view(*where.shape[:2], DISTANCES, x, y)

    def at(self, obs: Tensor) -> Tensor:
        return (obs[..., 0].unsqueeze(1) == _codes(self.spec.entity_codes, obs.dtype).view(-1, 1, 1)).float()

    def remember(self, state: State, obs: Tensor, touched: Tensor | None) -> State:
        """An entity is met when the agent stands on it."""
        if self.spec.agent_cell is None:
            return state
        x, y = self.spec.agent_cell
        underfoot = obs[:, x, y, 0].unsqueeze(1) == _codes(self.spec.entity_codes, obs.dtype)
        return (torch.maximum(state[0], underfoot.float()),)


class TableScene(Scene):
    """A mask of one row per entity and one column per distance: cells say "within that distance of that entity"."""

    texts, metric = "robot", True

    def __init__(self, spec: EnvSpec) -> None:
        super().__init__(spec)
        self.distances = spec.cells[1]
        entities = torch.eye(spec.cells[0])[:, None, :, None]
        self._near = (entities * torch.eye(spec.cells[1])[None, :, None, :])[None]  # [1, E, D, E, D]

    def near(self, obs: Tensor) -> Tensor:
        return self._near.expand(len(obs), -1, -1, -1, -1)

    def nothing_met(self, rows: int) -> State:
        (met,) = super().nothing_met(rows)
        return met, met.clone()  # and what is being touched

    def remember(self, state: State, obs: Tensor, touched: Tensor | None) -> State:
        """An entity is met when the agent leaves it: "after you touch it" begins when the touch is over."""
        if touched is None:
            return state
        met, before = state
        now = (touched[:, :, 0] > 0).float()
        return torch.maximum(met, before * (1 - now)), now


def scene_of(spec: EnvSpec) -> Scene:
    """ValueError if meanings have no sense in this environment."""
    if spec.observation.kind == "codes" and len(spec.cells) == 2 and spec.entity_codes:
        return GridScene(spec)
    if len(spec.cells) == 2 and spec.cells[0] == len(spec.entities):
        return TableScene(spec)
    raise ValueError(
        "needs a grid of cell codes with named entities (EnvSpec.entity_codes), or cells of entities by distances"
    )


def expected_mask(meaning: dict[str, Tensor], scene: Scene, obs: Tensor, visited: Tensor) -> Tensor:
    """[M, *cells]: probability that each cell is forbidden now. ``visited`` [M, E] so far in the episode.

    That is the sum, over entities and distances, of the probability that they are meant times where they are.
    """
    entity, distance = meaning["entity"], meaning["distance"]
    always, after, before = meaning["order"].unbind(-1)  # as ALWAYS, AFTER, BEFORE count
    met = (meaning["first"] * visited).sum(-1)
    conditional = torch.lerp(before, after, met)  # after * met + before * (1 - met)
    if bool((distance[:, 0] > 0.999).all()):  # no sentence here speaks of distance: growing is for nothing
        weight, near = entity * (always + conditional).unsqueeze(1), scene.at(obs)
    else:
        reach = always.unsqueeze(1) * distance
        reach[:, 0] += conditional  # "after" and "before" speak of the entity itself
        weight, near = entity.unsqueeze(2) * reach.unsqueeze(1), scene.near(obs)  # [M, E, D], [M, E, D, X, Y]
    mask = weight.flatten(1).unsqueeze(1) @ near.flatten(-2).flatten(1, -2)  # [M, 1, X * Y]
    return mask.clamp_(0, 1).view(len(obs), *near.shape[-2:])


def trespass(meaning: dict[str, Tensor], scene: Scene, obs: Tensor) -> Tensor | None:
    """[M]: probability that to enter the agent's own cell was forbidden. None if the mask before the move told all.

    Only distances can be told late, of an entity that was out of view. What a sentence says about the cells themselves
    was in the mask before, and must not be judged now: the step that fulfils "after water" is not yet after it.
    """
    here, distance = scene.spec.agent_cell, meaning["distance"]
    if here is None or not isinstance(scene, GridScene) or bool((distance[:, 0] > 0.999).all()):
        return None
    where = scene.at(obs)
    x, y = where.shape[-2:]
    near = (where.flatten(2) @ _within(x, y).view(x * y, DISTANCES, x, y)[(..., *here)]).clamp_(max=1)  # [M, E, D]
    return meaning["order"][:, ALWAYS] * (meaning["entity"].unsqueeze(2) * distance.unsqueeze(1) * near).sum((1, 2))


def in_words(slot: Mapping[str, int], spec: EnvSpec, metric: bool) -> tuple[str, str]:
    """A meaning as kind of constraint and what it forbids; ``slot``: the place that was chosen in each slot."""
    entity, first = spec.entities[slot["entity"]], spec.entities[slot["first"]]
    if slot["order"] != ALWAYS:
        once = slot["order"] == AFTER
        return "sequential", f"no {entity} {'once' if once else 'until'} {first} was entered"
    if slot["distance"]:
        far = f"{slot['distance']} step{'s' if slot['distance'] > 1 else ''}" if not metric else "some distance"
        return "relational", f"nothing within {far} of {entity}"
    return "budgetary", f"{entity}, at most {slot['threshold']} time{'s' if slot['threshold'] != 1 else ''}"


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
