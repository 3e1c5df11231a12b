"""Pictures of a world: the whole map, what the agent sees of it, and which cells of that are forbidden.

Drawn from arrays; neither a display nor a MiniGrid environment is needed. The tiles are MiniGrid's own. Each terrain
has its pattern and the forbidden cells are hatched in light and dark, so nothing is told by hue alone.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from minigrid.core.world_object import WorldObj
from minigrid.utils.rendering import downsample
from numpy.typing import NDArray

from hazardworld.engine import Engine
from hazardworld.kernels import RIM, VIEW
from hazardworld.objects import TERRAIN_OBJECTS, encoding, reward_objects

TILE = 24
"""Pixels along a side of a cell, unless another size is asked for."""
SMOOTH = 3  # tiles are drawn this much larger, then reduced
GRID_LINE, OUTLINE, AGENT = (70, 70, 70), (255, 255, 255), (230, 30, 30)
INK, PAPER = (170, 0, 60), (255, 235, 240)  # the stripes on a forbidden cell

AHEAD = {0: (1, 0), 1: (0, 1), 2: (-1, 0), 3: (0, -1)}
"""(dx, dy) of MiniGrid's directions: east, south, west, north."""


@dataclass(frozen=True)
class Scene:
    """All that a picture shows."""

    codes: NDArray[np.uint8]  # [S, S], [y, x]: a terrain code (constraint.py), or 5 + item for ball, box, key
    agent: tuple[int, int]  # x, y
    direction: int
    compass: bool = True
    """The view is centred and north is up; otherwise it is MiniGrid's, to the front."""


def scene_of(engine: Engine, row: int, compass: bool = True) -> Scene:
    """Where row ``row`` of an engine is now."""
    state, side = engine.state(), engine.maps.size + 2 * RIM
    cell, direction = (int(number) for number in state["agent"][row])
    x, y = divmod(cell // 3 - row * side * side, side)
    numbers = state["cells"].reshape(engine.rows, side, side, 3)[row, RIM:-RIM, RIM:-RIM, 0].T
    code_of = np.zeros(256, np.uint8)
    code_of[encoding()[:, 0]] = np.arange(len(encoding()))
    return Scene(code_of[numbers], (x - RIM, y - RIM), direction, compass)


def view_cells(scene: Scene) -> NDArray[np.int64]:
    """[7, 7, 2]: the (x, y) on the map of each cell of the view, with the observation's axes; may lie off the map."""
    across, along = np.meshgrid(np.arange(VIEW), np.arange(VIEW), indexing="ij")
    if scene.compass:
        return np.stack([across, along], -1) - VIEW // 2 + np.array(scene.agent)
    front = np.array(AHEAD[scene.direction])
    right = np.array(AHEAD[(scene.direction + 1) % 4])
    return np.array(scene.agent) + (VIEW - 1 - along)[..., None] * front + (across - VIEW // 2)[..., None] * right


def draw(scene: Scene, mask: NDArray | None = None, tile: int = TILE) -> NDArray[np.uint8]:
    """RGB ``[S * tile, S * tile, 3]``. ``mask`` [7, 7], axes as the observation's: cells above 0.5 are hatched."""
    if tile < 8:
        raise ValueError(f"tile is {tile} pixels, but must be at least 8")
    size = len(scene.codes)
    marked = np.zeros((size, size), bool)
    seen = view_cells(scene)
    if mask is not None:
        if mask.shape != (VIEW, VIEW):
            raise ValueError(f"the mask has shape {mask.shape}; it must be {(VIEW, VIEW)}, as the view")
        x, y = seen[mask > 0.5].T
        inside = (x >= 0) & (x < size) & (y >= 0) & (y < size)
        marked[y[inside], x[inside]] = True

    picture = np.empty((size * tile, size * tile, 3), np.uint8)
    for y in range(size):
        for x in range(size):
            heading = scene.direction if (x, y) == scene.agent else None
            picture[y * tile : (y + 1) * tile, x * tile : (x + 1) * tile] = _tile(
                int(scene.codes[y, x]), heading, bool(marked[y, x]), tile
            )
    (left, top), (right, bottom) = seen.min((0, 1)), seen.max((0, 1)) + 1
    _frame(picture, *(int(np.clip(edge, 0, size)) * tile for edge in (left, top, right, bottom)), max(1, tile // 12))
    return picture


def _frame(picture: NDArray[np.uint8], left: int, top: int, right: int, bottom: int, width: int) -> None:
    """A white line with a dark one inside it: one of the two stands out on any ground."""
    for inset, colour in ((0, OUTLINE), (width, (0, 0, 0))):
        x0, y0, x1, y1 = left + inset, top + inset, right - inset, bottom - inset
        thick = width if inset == 0 else 1
        picture[y0 : y0 + thick, x0:x1] = picture[y1 - thick : y1, x0:x1] = colour
        picture[y0:y1, x0 : x0 + thick] = picture[y0:y1, x1 - thick : x1] = colour


@functools.lru_cache(maxsize=512)
def _tile(code: int, direction: int | None, marked: bool, size: int) -> NDArray[np.uint8]:
    """One cell. There are few different ones, so a picture is mostly copying."""
    canvas = _ground(code, size).copy()
    if marked:
        _hatch(canvas)
    if direction is not None:  # MiniGrid's red triangle, with an edge that keeps it apart from lava and grass
        for reach, colour in ((1.42, (0, 0, 0)), (1.3, OUTLINE), (0.96, AGENT)):
            canvas[np.rot90(_arrow(len(canvas), reach), -direction)] = colour
    small = np.asarray(downsample(canvas, SMOOTH)).round().astype(np.uint8)
    small.flags.writeable = False
    return small


@functools.lru_cache(maxsize=64)
def _ground(code: int, size: int) -> NDArray[np.uint8]:
    """A cell by itself, not yet reduced; MiniGrid draws it pixel by pixel in Python, hence once."""
    canvas = np.zeros((size * SMOOTH, size * SMOOTH, 3), np.uint8)
    canvas[:SMOOTH], canvas[:, :SMOOTH] = GRID_LINE, GRID_LINE
    thing = _object(code)
    if thing is not None:
        thing.render(canvas)
    return canvas


def _arrow(side: int, reach: float) -> NDArray[np.bool_]:
    """A triangle that points east."""
    y, x = (np.indices((side, side)) + 0.5) / side - 0.5
    along = (0.37 * reach - x) / (0.67 * reach)  # 0 at the tip, 1 at the base
    return (along >= 0) & (along <= 1) & (np.abs(y) <= 0.31 * reach * along)


def _object(code: int) -> WorldObj | None:
    if code == 0:
        return None
    return TERRAIN_OBJECTS[code]() if code <= len(TERRAIN_OBJECTS) else reward_objects()[code - 5]


def _hatch(canvas: NDArray[np.uint8]) -> None:
    """Stripes through which the ground can be seen; they go on from cell to cell."""
    side = len(canvas)
    y, x = np.indices((side, side))
    place = (x + y) % (side // 2) / (side // 2)
    for colour, stripe, strength in ((INK, place < 0.36, 0.9), (PAPER, (place >= 0.36) & (place < 0.48), 0.9)):
        canvas[stripe] = (1 - strength) * canvas[stripe] + strength * np.array(colour)
