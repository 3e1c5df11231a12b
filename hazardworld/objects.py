"""Water and grass, which MiniGrid does not have, and the encoding of everything in this world."""

from __future__ import annotations

import math

import numpy as np
from minigrid.core.constants import COLOR_TO_IDX, IDX_TO_OBJECT, OBJECT_TO_IDX
from minigrid.core.world_object import Ball, Box, Key, Lava, Wall, WorldObj
from minigrid.utils.rendering import fill_coords, point_in_line, point_in_rect, point_in_triangle
from numpy.typing import NDArray

_INDEX = {"water": 11, "grass": 12}


def extend_minigrid() -> None:
    """Add our two types to MiniGrid's tables (it has no other way), once; refuse if the numbers are someone else's."""
    for name, index in _INDEX.items():
        if IDX_TO_OBJECT.get(index, name) != name or OBJECT_TO_IDX.get(name, index) != index:
            raise RuntimeError(
                f"MiniGrid object index {index} is taken by {IDX_TO_OBJECT.get(index)!r}, so {name!r} cannot have it; "
                "another package has added its own object types to MiniGrid"
            )
        OBJECT_TO_IDX[name] = index
        IDX_TO_OBJECT[index] = name


extend_minigrid()


class Water(WorldObj):
    """A hazard that one can walk on: blue, with waves."""

    def __init__(self) -> None:
        super().__init__("water", "blue")

    def can_overlap(self) -> bool:
        return True

    def render(self, img: NDArray[np.uint8]) -> None:
        fill_coords(img, point_in_rect(0, 1, 0, 1), (40, 110, 220))
        for y in (0.25, 0.5, 0.75):
            fill_coords(img, _wave(y), (190, 220, 255))


class Grass(WorldObj):
    """A hazard that one can walk on: green, with blades."""

    def __init__(self) -> None:
        super().__init__("grass", "green")

    def can_overlap(self) -> bool:
        return True

    def render(self, img: NDArray[np.uint8]) -> None:
        fill_coords(img, point_in_rect(0, 1, 0, 1), (60, 150, 50))
        for x, y in ((0.2, 0.45), (0.5, 0.4), (0.8, 0.45), (0.35, 0.9), (0.65, 0.9)):
            fill_coords(img, point_in_triangle((x - 0.08, y), (x + 0.08, y), (x + 0.02, y - 0.3)), (20, 90, 20))
            fill_coords(img, point_in_line(x, y, x - 0.1, y - 0.22, r=0.015), (150, 220, 110))


def _wave(y: float):  # type: ignore[no-untyped-def]
    return lambda px, py: abs(py - y - 0.05 * math.sin(4 * math.pi * px)) < 0.03


TERRAIN_OBJECTS: dict[int, type[WorldObj]] = {1: Lava, 2: Water, 3: Grass, 4: Wall}


def reward_objects() -> tuple[WorldObj, WorldObj, WorldObj]:
    """Fresh ball, box and key, in the order of their worths."""
    return Ball("purple"), Box("yellow"), Key("green")


def encoding() -> NDArray[np.uint8]:
    """[8, 3]: MiniGrid's (object, colour, state) of empty, lava, water, grass, wall, ball, box, key."""
    objects = [TERRAIN_OBJECTS[code]() for code in range(1, 5)] + list(reward_objects())
    return np.array([(OBJECT_TO_IDX["empty"], 0, 0), *(item.encode() for item in objects)], np.uint8)


LEVELS = (max(OBJECT_TO_IDX.values()) + 1, len(COLOR_TO_IDX), 3)
"""Each channel of an observation is below its level."""
