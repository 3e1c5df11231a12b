"""LavaWall: a wall of one hazard with one gap between the agent and the three objects.

Its constraint always names the wall's own kind, so the sentence decides: with a budget the straight way is open, with
none the agent has to find the gap. Only budgetary constraints; several at once are several budgets on that kind.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from hazardworld.constraint import ALL_CLASSES, CLASS_ID, CLASSES, ENTITIES, KINDS, Constraint, suggest
from hazardworld.maps import COUNTS, RELATIONAL, SPLITS, MapSet, arrays, blank, draw_distinct, padded
from hazardworld.rng import below, derive, key_of


@dataclass(frozen=True)
class LavaWallRecipe:
    """How to make the maps of LavaWall; map i is ``generate([i])``."""

    split: str = "train"
    seed: int = 0
    size: int = 13
    constraints: int = 1
    classes: tuple[Constraint, ...] = ALL_CLASSES

    def __post_init__(self) -> None:
        if self.split not in SPLITS:
            raise ValueError(f"unknown split {self.split!r}{suggest(self.split, SPLITS)}")
        if self.size < 5:
            raise ValueError(f"size {self.size} is too small for a wall with room on both sides: at least 5")
        if not self.groups():
            raise ValueError(f"no entity has {self.constraints} distinct budgetary constraints with sentences")

    def groups(self) -> list[list[int]]:
        """One group of class ids per kind of wall."""
        if self.constraints < 1:
            return []
        groups = [[CLASS_ID[c] for c in CLASSES["budgetary"] if c.entity == e and c in self.classes] for e in ENTITIES]
        return [group for group in groups if len(group) >= self.constraints]

    @property
    def key(self) -> np.uint64:
        return key_of(len(KINDS) + 1, SPLITS.index(self.split), self.seed)

    def generate(self, indices: range | list[int] | None = None) -> MapSet:
        """The maps with these numbers; by default as many as HazardWorld's set of this split."""
        maps, numbers = blank(self.size, self.constraints, range(COUNTS[self.split]) if indices is None else indices)
        members, counts = padded(self.groups())
        _fill(self.key, numbers, members, counts, RELATIONAL[:, 0], *arrays(maps))
        return maps


@njit(cache=True)
def _fill(key, numbers, members, counts, codes, terrain, points, direction, classes):  # type: ignore[no-untyped-def]
    inner = terrain.shape[1] - 2
    third = inner // 3
    states = np.empty(1, np.uint64)
    for m in range(len(numbers)):
        states[0] = derive(key, numbers[m])
        group = below(states, 0, len(counts))
        draw_distinct(states, 0, members[group : group + 1], counts[group : group + 1], classes[m])
        column = 1 + third + below(states, 0, inner - 2 * third)  # the middle third
        gap = 1 + below(states, 0, inner)
        for y in range(1, inner + 1):
            if y != gap:
                terrain[m, y, column] = codes[classes[m, 0]]
        points[m, 0, 0], points[m, 0, 1] = 1 + below(states, 0, column - 1), 1 + below(states, 0, inner)
        placed = 1
        while placed < 4:
            points[m, placed, 0] = column + 1 + below(states, 0, inner - column)
            points[m, placed, 1] = 1 + below(states, 0, inner)
            fresh = True
            for earlier in range(1, placed):
                same_x = points[m, earlier, 0] == points[m, placed, 0]
                fresh &= not (same_x and points[m, earlier, 1] == points[m, placed, 1])
            placed += fresh
        direction[m] = below(states, 0, 4)
