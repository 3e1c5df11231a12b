"""Compiled: what leaves MuJoCo again. A vase that rests stays as it is; a gremlin back on its way follows its table."""

from __future__ import annotations

import math

from numba import njit

from hazardworld.robot.bodies import BOX, GREMLIN, VASE, may_touch
from hazardworld.robot.things import GREMLINS, MOST, VASES

# Limits in metres and seconds; turning is measured at the middle of a side.
REST_SPEED, REST_PUSH = 1e-3, 0.1
ON_PLACE, ON_SPEED = 1e-6, 1e-5


@njit(cache=True)
def follow_way(n, j, step, things, ways, bodies):  # type: ignore[no-untyped-def]
    """Put gremlin j where its table says that it is after so many physics steps."""
    pose, speed = bodies.thing_place[n, GREMLIN, j], bodies.thing_speed[n, GREMLIN, j]
    pose[0], pose[1], pose[2] = (
        things[GREMLINS, j, 0] + ways[step, 0],
        things[GREMLINS, j, 1] + ways[step, 1],
        ways[step, 2],
    )
    for axis in range(3):
        speed[axis] = ways[step, 3 + axis]
        speed[3 + axis] = 0.0
    half = 0.5 * things[GREMLINS, j, 2]
    pose[3], pose[4], pose[5], pose[6] = math.cos(half), 0.0, 0.0, math.sin(half)
    for axis in range(6):
        bodies.thing_warm[n, GREMLIN, j, axis] = 0.0
    bodies.astir[n, GREMLIN, j] = False


@njit(cache=True)
def settle(n, bits, step, counts, things, ways, bodies, push, places):  # type: ignore[no-untyped-def]
    """After MuJoCo moved row n: which vases rest, which gremlins are on their way.

    ``bits``: what it was moved with; ``step``: physics steps so far; ``push`` [4, 6]: accelerations of the vases.
    """
    for i in range(counts[VASES]):
        if bits >> (MOST * VASES + i) & 1:
            pose, speed = bodies.thing_place[n, VASE, i], bodies.thing_speed[n, VASE, i]
            still = not may_touch(bodies.place[n], VASES, pose[0], pose[1], pose)
            for axis in range(3):
                still &= abs(speed[axis]) < REST_SPEED and abs(push[i, axis]) < REST_PUSH
                still &= abs(speed[3 + axis]) * BOX < REST_SPEED and abs(push[i, 3 + axis]) * BOX < REST_PUSH
            bodies.astir[n, VASE, i] = not still
            if still:
                for axis in range(6):
                    speed[axis] = 0.0
                    bodies.thing_warm[n, VASE, i, axis] = 0.0
            _show(pose, places[n, VASES, i])
    for j in range(counts[GREMLINS]):
        pose, speed = bodies.thing_place[n, GREMLIN, j], bodies.thing_speed[n, GREMLIN, j]
        on_way = True
        if bits >> (MOST * GREMLINS + j) & 1:
            half = 0.5 * things[GREMLINS, j, 2]
            turn = abs(pose[3] * math.cos(half) + pose[6] * math.sin(half))
            on_way = 1 - turn * turn < ON_PLACE * ON_PLACE
            for axis in range(3):
                due = ways[step, axis] + (things[GREMLINS, j, axis] if axis < 2 else 0.0)
                on_way &= abs(pose[axis] - due) < ON_PLACE and abs(speed[axis] - ways[step, 3 + axis]) < ON_SPEED
                on_way &= abs(speed[3 + axis]) * BOX < ON_SPEED
        if on_way:
            follow_way(n, j, step, things, ways, bodies)
        else:
            bodies.astir[n, GREMLIN, j] = True
        _show(pose, places[n, GREMLINS, j])


@njit(cache=True)
def _show(pose, place):  # type: ignore[no-untyped-def]
    """x, y and rotation of a pose."""
    w, a, b, c = pose[3], pose[4], pose[5], pose[6]
    place[0], place[1] = pose[0], pose[1]
    place[2] = math.atan2(2 * (w * c + a * b), 1 - 2 * (b * b + c * c))
