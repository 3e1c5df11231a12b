"""Maps as text, drawn by hand or from a seed: for tests, demonstrations and users' own worlds.

``#`` wall, ``.`` empty, ``L`` lava, ``W`` water, ``G`` grass, ``b`` ball, ``x`` box, ``k`` key, and the agent as an
arrow ``> v < ^``. The border must be wall. All objects must be within reach when walls are the only obstacle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from hazardworld.constraint import CLASS_ID, ENTITIES, WALL, Constraint
from hazardworld.layout import connected, place
from hazardworld.maps import MapSet, blank
from hazardworld.rewards import OBJECTS
from hazardworld.rng import below, derive, key_of

_TERRAIN = {"#": WALL, ".": 0, "L": 1, "W": 2, "G": 3}
_OBJECT = {"b": 1, "x": 2, "k": 3}
_ARROWS = ">v<^"
_MARKS = (*_TERRAIN, *_OBJECT, *_ARROWS)


def from_text(text: str, constraints: Sequence[Constraint]) -> MapSet:
    """A set of one map."""
    if not constraints:
        raise ValueError("a map needs at least one constraint")
    rows = [line.strip() for line in text.strip().splitlines()]
    size = len(rows)
    for y, row in enumerate(rows):
        if len(row) != size:
            raise ValueError(f"map line {y + 1} has {len(row)} cells, but a map of {size} lines must be {size} wide")
    if size < 4:
        raise ValueError(f"a {size}x{size} map has no room for the agent and three objects: at least 4x4")

    terrain = np.zeros((1, size, size), np.uint8)
    points = np.full((1, 4, 2), -1, np.int64)
    direction = 0
    for y, row in enumerate(rows):
        for x, mark in enumerate(row):
            border = x in (0, size - 1) or y in (0, size - 1)
            if mark not in _MARKS:
                raise ValueError(f"map line {y + 1}, column {x + 1}: unknown mark {mark!r} (known: {' '.join(_MARKS)})")
            if border and mark != "#":
                raise ValueError(f"map line {y + 1}, column {x + 1}: the border must be wall (#), not {mark!r}")
            terrain[0, y, x] = _TERRAIN.get(mark, 0)
            item = _OBJECT.get(mark, 0 if mark in _ARROWS else -1)
            if item >= 0:
                if points[0, item, 0] >= 0:
                    raise ValueError(f"map line {y + 1}, column {x + 1}: a second {('agent', *OBJECTS)[item]}")
                points[0, item] = x, y
            if mark in _ARROWS:
                direction = _ARROWS.index(mark)
    for item, name in enumerate(("agent", *OBJECTS)):
        if points[0, item, 0] < 0:
            raise ValueError(f"the map has no {name}")

    blocked = terrain[0] == WALL
    for item, name in enumerate(OBJECTS, start=1):
        if not connected(blocked, points[0][[0, item]], blocked.copy(), np.empty((size * size, 2), np.int64)):
            raise ValueError(f"the map cannot be solved: walls keep the agent from the {name}")
    classes = np.array([[CLASS_ID[constraint] for constraint in constraints]], np.int64)
    return MapSet(terrain, points, np.array([direction], np.int64), classes)


def from_seed(seed: int, size: int, density: float, distances: Mapping[str, int]) -> str:
    """The text of a map on which one can get to all objects and keep these distances from those entities."""
    maps, _ = blank(size, 1, [0])
    states = np.array([derive(key_of(seed), 0)], np.uint64)
    radius = np.array([-1, *(distances.get(entity, -1) for entity in ENTITIES)], np.int64)
    place(states, 0, round(density * (size - 2) ** 2), radius, maps.terrain[0], maps.points[0])
    maps.direction[0] = below(states, 0, len(_ARROWS))
    return to_text(maps)


def to_text(maps: MapSet, index: int = 0) -> str:
    """Undo of ``from_text``, without the constraints."""
    marks = np.array(list(_TERRAIN))[np.argsort(list(_TERRAIN.values()))][maps.terrain[index]]
    for mark, (x, y) in zip((_ARROWS[maps.direction[index]], *_OBJECT), maps.points[index], strict=True):
        marks[y, x] = mark
    return "\n".join("".join(row) for row in marks)
