"""Map sets: which worlds there are, as a pure function of a few numbers.

Map i of a recipe has its own key, derived from (name, split, seed, i): asking for one map, or for ten thousand, gives
the same map i; train and eval never share a key; nothing has to be stored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hazardworld.constraint import ALL_CLASSES, CLASS_ID, CLASSES, ENTITIES, KINDS, WALL, Constraint, suggest
from hazardworld.layout import place
from hazardworld.rng import below, derive, key_of

SPLITS = ("train", "eval")
COUNTS = {"train": 10_000, "eval": 5_000}
"""How many maps the paper's D_train and D_eval hold."""


@dataclass(frozen=True)
class MapSet:
    """M maps with their constraints, as arrays."""

    terrain: NDArray[np.uint8]  # [M, S, S] codes, [row y, column x], walls included
    points: NDArray[np.int64]  # [M, 4, 2] (x, y) of start, ball, box, key
    direction: NDArray[np.int64]  # [M] 0 right, 1 down, 2 left, 3 up
    classes: NDArray[np.int64]  # [M, K] class ids

    def __len__(self) -> int:
        return len(self.terrain)

    @property
    def size(self) -> int:
        return self.terrain.shape[1]

    @property
    def constraints(self) -> int:
        return self.classes.shape[1]

    def digest(self) -> str:
        """A hash of every byte, to pin a set."""
        sha = hashlib.sha256()
        for field in fields(self):
            sha.update(np.ascontiguousarray(getattr(self, field.name)).tobytes())
        return sha.hexdigest()


@dataclass(frozen=True)
class Recipe:
    """How to make the maps of HazardWorld; map i is ``generate([i])``."""

    kind: str = "budgetary"
    """budgetary, relational, sequential, or mixed (any of the three, with equal chance)."""
    split: str = "train"
    seed: int = 0
    size: int = 13
    """Cells along a side, outer walls included."""
    density: float = 0.4
    """Share of the inner cells that are hazards."""
    constraints: int = 1
    """K: how many distinct constraints hold in each episode."""
    classes: tuple[Constraint, ...] = ALL_CLASSES
    """What may be drawn; narrower than all when a texts folder has no sentence for some."""

    def __post_init__(self) -> None:
        if self.kind not in (*KINDS, "mixed"):
            raise ValueError(f"unknown constraint {self.kind!r}{suggest(self.kind, (*KINDS, 'mixed'))}")
        if self.split not in SPLITS:
            raise ValueError(f"unknown split {self.split!r}{suggest(self.split, SPLITS)}")
        if not 0 <= self.density <= 1:
            raise ValueError(f"density {self.density} is outside 0..1")
        cells = max(0, self.size - 2) ** 2
        if self.hazards + 4 > cells:
            raise ValueError(
                f"density {self.density} is too high: {self.hazards} hazards, 3 objects and the agent need "
                f"{self.hazards + 4} cells, and a {self.size}x{self.size} map has {cells} inside its walls"
            )
        available = sum(len(group) for group in self.groups())
        if not 1 <= self.constraints <= available:
            raise ValueError(
                f"constraints {self.constraints} is outside 1..{available}, the number of distinct {self.kind} "
                "constraints that have sentences"
            )

    @property
    def hazards(self) -> int:
        return round(self.density * max(0, self.size - 2) ** 2)

    def groups(self) -> list[list[int]]:
        """Class ids to draw from: a group with equal chance, then a member with equal chance."""
        kinds = KINDS if self.kind == "mixed" else (self.kind,)
        groups = [[CLASS_ID[c] for c in CLASSES[kind] if c in self.classes] for kind in kinds]
        return [group for group in groups if group]

    @property
    def key(self) -> np.uint64:
        return key_of((*KINDS, "mixed").index(self.kind), SPLITS.index(self.split), self.seed)

    def generate(self, indices: range | list[int] | None = None) -> MapSet:
        """The maps with these numbers; by default as many as the paper's set of this split."""
        maps, numbers = blank(self.size, self.constraints, range(COUNTS[self.split]) if indices is None else indices)
        members, counts = padded(self.groups())
        _fill(self.key, numbers, members, counts, RELATIONAL, self.hazards, *arrays(maps))
        return maps


RELATIONAL = np.array(
    [(1 + ENTITIES.index(c.entity), c.distance if c.kind == "relational" else -1) for c in ALL_CLASSES], np.int64
)
"""[C, 2]: terrain code, and the distance to keep from it (-1: not a relational class)."""


def blank(size: int, constraints: int, indices: range | list[int]) -> tuple[MapSet, NDArray[np.int64]]:
    """A set of empty walled maps to fill, and the numbers of its maps."""
    count = len(indices)
    terrain = np.full((count, size, size), WALL, np.uint8)
    terrain[:, 1:-1, 1:-1] = 0
    points, classes = np.zeros((count, 4, 2), np.int64), np.zeros((count, constraints), np.int64)
    return MapSet(terrain, points, np.zeros(count, np.int64), classes), np.asarray(indices, np.int64)


def arrays(maps: MapSet) -> Iterator[NDArray]:
    return (getattr(maps, field.name) for field in fields(maps))


def padded(groups: list[list[int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Groups of unequal length as one array [G, longest] and their lengths [G]."""
    counts = np.array([len(group) for group in groups], np.int64)
    members = np.zeros((len(groups), counts.max()), np.int64)
    for row, group in enumerate(groups):
        members[row, : len(group)] = group
    return members, counts


@njit(cache=True)
def draw_distinct(states, row, members, counts, classes):  # type: ignore[no-untyped-def]
    """Fill ``classes`` [K] with distinct class ids: a group with equal chance, then one of its members."""
    drawn = 0
    while drawn < len(classes):
        group = below(states, row, len(counts))
        classes[drawn] = members[group, below(states, row, counts[group])]
        fresh = True
        for earlier in range(drawn):
            fresh &= classes[earlier] != classes[drawn]
        drawn += fresh


@njit(cache=True)
def _fill(key, numbers, members, counts, relational, hazards, terrain, points, direction, classes):  # type: ignore[no-untyped-def]
    states = np.empty(1, np.uint64)
    radius = np.empty(4, np.int64)
    for m in range(len(numbers)):
        states[0] = derive(key, numbers[m])
        draw_distinct(states, 0, members, counts, classes[m])
        for code in range(4):
            radius[code] = -1
        for k in range(classes.shape[1]):
            code, distance = relational[classes[m, k], 0], relational[classes[m, k], 1]
            radius[code] = max(radius[code], distance)
        place(states, 0, hazards, radius, terrain[m], points[m])
        direction[m] = below(states, 0, 4)
