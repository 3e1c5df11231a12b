"""All that moves in a row, and compiled tests of whether the robot could touch a thing.

The tests err on the side of contact: the robot is a ball with a small box in front, each taken as a disc; a vase or
gremlin that stands upright is the square that it is, otherwise a ball around it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hazardworld.robot.things import GREMLINS, RADIUS, ROBOT_RADIUS, VASES

VASE, GREMLIN = 0, 1  # the things that move, in the arrays of Bodies
NOSE_AHEAD, NOSE_HALF = 0.1, 0.05  # the box in front of the robot's ball
NOSE = NOSE_HALF * math.sqrt(2)
HULL = math.hypot(NOSE_AHEAD + NOSE_HALF, NOSE_HALF)
"""The robot fits into a circle of this radius."""
BOX = float(RADIUS[VASES])
"""Half width of vases and gremlins."""
BALL_OF_BOX = BOX * math.sqrt(3)
"""They fit into a ball of this radius however they lie."""
HAIR = 1e-5  # for rounding, and for boxes that are upright only nearly
UPRIGHT = 1e-5  # of the parts of a quaternion that tilt


class Bodies(NamedTuple):
    """All that moves, in world coordinates; saving these arrays saves the motion."""

    place: NDArray[np.float64]  # [N, 3] the robot's x, y, heading
    speed: NDArray[np.float64]  # [N, 3]
    warm: NDArray[np.float64]  # [N, 3] accelerations from which MuJoCo's solver starts
    thing_place: NDArray[np.float64]  # [N, 2, 4, 7] vases and gremlins: x, y, z, quaternion
    thing_speed: NDArray[np.float64]  # [N, 2, 4, 6] along the world's axes, about the body's own
    thing_warm: NDArray[np.float64]  # [N, 2, 4, 6]
    astir: NDArray[np.bool_]  # [N, 2, 4] vases not at rest, gremlins off their way


@njit(cache=True)
def reach(kind):  # type: ignore[no-untyped-def]
    """The radius of a circle that holds a thing of this kind."""
    return BALL_OF_BOX if kind in (VASES, GREMLINS) else RADIUS[kind]


@njit(cache=True)
def _beside(px, py, radius, pose, extra):  # type: ignore[no-untyped-def]
    """Whether a disc overlaps a box [7] widened by ``extra``; a box that does not stand upright counts as a ball."""
    dx, dy = px - pose[0], py - pose[1]
    if abs(pose[4]) > UPRIGHT or abs(pose[5]) > UPRIGHT:
        far = radius + BALL_OF_BOX + extra
        return dx * dx + dy * dy < far * far
    cos, sin = pose[3] * pose[3] - pose[6] * pose[6], 2 * pose[3] * pose[6]
    out_x = max(0.0, abs(dx * cos + dy * sin) - BOX)
    out_y = max(0.0, abs(dy * cos - dx * sin) - BOX)
    far = radius + extra
    return out_x * out_x + out_y * out_y < far * far


@njit(cache=True)
def may_touch(place, kind, x, y, pose):  # type: ignore[no-untyped-def]
    """Whether the robot could touch a thing. ``x``, ``y``: where it is; ``pose`` [7]: how a box lies."""
    nose_x, nose_y = place[0] + NOSE_AHEAD * math.cos(place[2]), place[1] + NOSE_AHEAD * math.sin(place[2])
    if kind in (VASES, GREMLINS):
        dx, dy = x - pose[0], y - pose[1]  # as if the robot were shifted, and the box where its pose says
        ball = _beside(place[0] - dx, place[1] - dy, ROBOT_RADIUS, pose, HAIR)
        return ball or _beside(nose_x - dx, nose_y - dy, NOSE, pose, HAIR)
    far = ROBOT_RADIUS + RADIUS[kind] + HAIR
    nose = NOSE + RADIUS[kind] + HAIR
    return (x - place[0]) ** 2 + (y - place[1]) ** 2 < far * far or (x - nose_x) ** 2 + (y - nose_y) ** 2 < nose * nose


@njit(cache=True)
def whereabouts(n, kind, i, things, bodies):  # type: ignore[no-untyped-def]
    """Where thing i of a kind is now, and how fast."""
    if kind in (VASES, GREMLINS):
        part = VASE if kind == VASES else GREMLIN
        pose, speed = bodies.thing_place[n, part, i], bodies.thing_speed[n, part, i]
        return pose[0], pose[1], math.sqrt(speed[0] ** 2 + speed[1] ** 2)
    return things[kind, i, 0], things[kind, i, 1], 0.0
