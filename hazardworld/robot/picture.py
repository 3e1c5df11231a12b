"""The floor from above, drawn from a Scene with Pillow: no OpenGL, no display, the same on every machine.

Colours are those that the sentences speak of: dark blue circles, pale blue columns. Each kind has a shape and a mark of
its own besides, so nothing is told by hue alone: hazards are flat discs, vases squares in squares, pillars discs in
discs, buttons discs with a dot, gremlins crossed squares.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from hazardworld.robot.arrays import Scene
from hazardworld.robot.things import (
    BUTTONS,
    EXTENT,
    GOAL_RADIUS,
    GREMLINS,
    HAZARDS,
    PILLARS,
    RADIUS,
    ROBOT_RADIUS,
    VASES,
)

Color = tuple[int, ...]
FLOOR, TILE, OUTSIDE, INK = (245, 240, 228), (232, 225, 205), (206, 203, 196), (30, 30, 30)
GOAL, ROBOT, ARROW = (60, 170, 60), (190, 20, 45), (10, 40, 110)
COLORS = {
    HAZARDS: (35, 50, 140),
    VASES: (0, 200, 210),
    PILLARS: (165, 200, 245),
    BUTTONS: (255, 140, 0),
    GREMLINS: (130, 20, 220),
}
FORBIDDEN, RING = (215, 30, 30), 0.05
MARGIN = 0.4  # metres shown around the floor
SMOOTH = 3  # drawn this much larger, then reduced


class _Pen:
    """Shapes given in metres, with y up."""

    def __init__(self, size: int, half: float) -> None:
        self.size, self.half = size, half
        self.scale = size * SMOOTH / (2 * half)
        self.image = Image.new("RGB", (size * SMOOTH, size * SMOOTH), OUTSIDE)
        self.draw = ImageDraw.Draw(self.image, "RGBA")
        self.line = max(1, round(self.scale * 0.012))

    def at(self, x: float, y: float) -> tuple[float, float]:
        return (self.half + x) * self.scale, (self.half - y) * self.scale

    def disc(self, x: float, y: float, radius: float, fill: Color | None, outline: Color | None = INK) -> None:
        corners = (*self.at(x - radius, y + radius), *self.at(x + radius, y - radius))
        self.draw.ellipse(corners, fill, outline, self.line)

    def box(
        self, x: float, y: float, turn: float, half: float, fill: Color, ahead: float = 0.0, cross: bool = False
    ) -> None:
        """A square turned about (x, y), with its middle ``ahead`` of it."""
        cos, sin = math.cos(turn), math.sin(turn)
        corners = [
            self.at(x + cos * (ahead + a * half) - sin * b * half, y + sin * (ahead + a * half) + cos * b * half)
            for a, b in ((1, 1), (-1, 1), (-1, -1), (1, -1))
        ]
        self.draw.polygon(corners, fill, INK, self.line)
        if cross:
            for one, other in ((0, 2), (1, 3)):
                self.draw.line((*corners[one], *corners[other]), INK, self.line)


def draw(scene: Scene, size: int = 256, forbidden: Sequence[tuple[int, float]] = ()) -> NDArray[np.uint8]:
    """[size, size, 3] RGB. Shows the floor; more when the robot has left it.

    ``forbidden``: (kind, metres) that are ringed in red, at the distance that the robot's rim must keep.
    """
    x, y, heading = scene.robot
    pen = _Pen(size, max(EXTENT, abs(x), abs(y)) + MARGIN)
    for row in range(8):
        for column in range(8):
            left, top = pen.at(-EXTENT + 0.5 * column, EXTENT - 0.5 * row)
            right, bottom = pen.at(-EXTENT + 0.5 * (column + 1), EXTENT - 0.5 * (row + 1))
            pen.draw.rectangle((left, top, right, bottom), FLOOR if (row + column) % 2 else TILE)
    goal_x, goal_y = scene.goal
    pen.disc(goal_x, goal_y, GOAL_RADIUS, (*GOAL, 110), GOAL)
    pen.disc(goal_x, goal_y, GOAL_RADIUS / 6, (*GOAL, 255), None)
    for kind in (HAZARDS, BUTTONS, PILLARS, VASES, GREMLINS):
        for thing_x, thing_y, turn in scene.things[kind]:
            if not math.isnan(thing_x):
                _thing(pen, kind, thing_x, thing_y, turn)
    for kind, metres in forbidden:
        for thing_x, thing_y, _ in scene.things[kind]:
            if not math.isnan(thing_x):
                pen.disc(thing_x, thing_y, float(RADIUS[kind]) + max(metres, RING), (*FORBIDDEN, 45), FORBIDDEN)
    pen.box(x, y, heading, 0.05, ARROW, ahead=0.1)
    pen.disc(x, y, ROBOT_RADIUS, ROBOT)
    return np.asarray(pen.image.reduce(SMOOTH))


def _thing(pen: _Pen, kind: int, x: float, y: float, turn: float) -> None:
    color, radius = COLORS[kind], float(RADIUS[kind])
    if kind == HAZARDS:
        pen.disc(x, y, radius, color, None)
    elif kind == VASES:
        pen.box(x, y, turn, radius, color)
        pen.box(x, y, turn, radius / 2, FLOOR)
    elif kind == PILLARS:
        pen.disc(x, y, radius, color)
        pen.disc(x, y, radius * 0.6, None)
    elif kind == BUTTONS:
        pen.disc(x, y, radius, color)
        pen.disc(x, y, radius / 3, INK)
    else:
        pen.box(x, y, turn, radius, color, cross=True)
