"""Compiled: which rows need MuJoCo at all in this control step, and with which things.

A row is free as long as the robot, moved on in closed form, comes at none of the physics steps so near to anything that
a contact could be. Then nothing else moves either: vases rest where they are, gremlins follow their table. Otherwise
the control step is given to MuJoCo, with all that is within reach of the robot, or of something that is itself in
motion.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from hazardworld.robot.bodies import BALL_OF_BOX, GREMLIN, HULL, VASE, may_touch, reach, whereabouts
from hazardworld.robot.free import STEP, glide, sense
from hazardworld.robot.settle import follow_way
from hazardworld.robot.things import GREMLINS, HAZARDS, MOST, STEPS, TRAVEL, VASES

SLACK = 0.02  # how much further than necessary one looks when choosing things for MuJoCo
GUST = 0.3  # by how much a velocity may grow in a control step
CIRCLE = TRAVEL + 2 * BALL_OF_BOX + 0.1  # a vase further than this from a gremlin's middle is safe from it


@njit(cache=True)
def _stirs(n, counts, bodies):  # type: ignore[no-untyped-def]
    """Bits (4 * kind + i) of what is in motion by itself."""
    bits = np.int64(0)
    for i in range(counts[VASES]):
        bits |= np.int64(bodies.astir[n, VASE, i]) << (MOST * VASES + i)
    for j in range(counts[GREMLINS]):
        bits |= np.int64(bodies.astir[n, GREMLIN, j]) << (MOST * GREMLINS + j)
    return bits


@njit(cache=True)
def _meetings(n, first, k, counts, things, bodies, ways):  # type: ignore[no-untyped-def]
    """Bits of vases and gremlins that come near each other: a vase has been pushed onto a gremlin's way."""
    bits = np.int64(0)
    for i in range(counts[VASES]):
        pose = bodies.thing_place[n, VASE, i]
        for j in range(counts[GREMLINS]):
            dx, dy = things[GREMLINS, j, 0] - pose[0], things[GREMLINS, j, 1] - pose[1]
            if dx * dx + dy * dy > CIRCLE * CIRCLE:
                continue
            for step in (first, first + STEPS):
                x, y = dx + ways[step, 0], dy + ways[step, 1]
                far = 2 * BALL_OF_BOX + k[STEP] * STEPS * math.hypot(ways[step, 3], ways[step, 4])
                if x * x + y * y < far * far:
                    bits |= 1 << (MOST * VASES + i) | 1 << (MOST * GREMLINS + j)
    return bits


@njit(cache=True)
def _gather(n, fresh, k, counts, things, bodies):  # type: ignore[no-untyped-def]
    """Bits of what MuJoCo has to know: ``fresh`` to begin with, what is near the robot, what is near any of these."""
    span = k[STEP] * STEPS
    place, speed = bodies.place[n], bodies.speed[n]
    robot = math.sqrt(speed[0] ** 2 + speed[1] ** 2)
    chosen = np.int64(0)
    for kind in range(VASES, GREMLINS + 1):
        for i in range(counts[kind]):
            x, y, own = whereabouts(n, kind, i, things, bodies)
            far = HULL + reach(kind) + span * (robot + own + GUST) + SLACK
            if (x - place[0]) ** 2 + (y - place[1]) ** 2 < far * far:
                fresh |= 1 << (MOST * kind + i)
    while fresh:
        chosen |= fresh
        found = np.int64(0)
        for kind in (VASES, GREMLINS):
            for i in range(counts[kind]):
                if not fresh >> (MOST * kind + i) & 1:
                    continue
                x, y, own = whereabouts(n, kind, i, things, bodies)
                for other in range(VASES, GREMLINS + 1):
                    for j in range(counts[other]):
                        if chosen >> (MOST * other + j) & 1:
                            continue
                        its_x, its_y, its = whereabouts(n, other, j, things, bodies)
                        far = reach(kind) + reach(other) + span * (max(own, robot) + its + GUST) + SLACK
                        if (x - its_x) ** 2 + (y - its_y) ** 2 < far * far:
                            found |= 1 << (MOST * other + j)
        fresh = found
    return chosen


@njit(cache=True)
def _glide_free(n, first, k, counts, things, ways, action, bodies, place, speed, warm):  # type: ignore[no-untyped-def]
    """Move the copies ``place``, ``speed``, ``warm`` by a control step; False when the robot may touch something."""
    span = k[STEP] * STEPS
    robot = math.sqrt(speed[0] ** 2 + speed[1] ** 2)
    close = np.int64(0)
    for kind in range(VASES, GREMLINS + 1):
        for i in range(counts[kind]):
            if kind == GREMLINS:  # anywhere on its circle
                x, y, far = things[kind, i, 0], things[kind, i, 1], TRAVEL
            else:
                x, y, _ = whereabouts(n, kind, i, things, bodies)
                far = 0.0
            far += HULL + reach(kind) + span * (robot + GUST)
            if (x - place[0]) ** 2 + (y - place[1]) ** 2 < far * far:
                close |= 1 << (MOST * kind + i)
    for step in range(first, first + STEPS + 1):
        if close:
            for kind in range(VASES, GREMLINS + 1):
                if not close >> (MOST * kind) & 15:
                    continue
                for i in range(counts[kind]):
                    if not close >> (MOST * kind + i) & 1:
                        continue
                    x, y = things[kind, i, 0], things[kind, i, 1]
                    pose = bodies.thing_place[n, VASE, i]
                    if kind == GREMLINS:
                        x, y = x + ways[step, 0], y + ways[step, 1]
                        pose = bodies.thing_place[n, GREMLIN, i]
                    elif kind == VASES:
                        x, y = pose[0], pose[1]
                    if may_touch(place, kind, x, y, pose):
                        return False
        if step < first + STEPS:
            glide(k, place, speed, warm, action)
    return True


@njit(cache=True)
def advance(rows, actions, k, counts, layouts, maps, clock, ways, bodies, pose, sensors, places, contact, needed):  # type: ignore[no-untyped-def]
    """Move the free rows by a control step. ``needed`` [N]: -1, or the bits of what MuJoCo has to move the row with."""
    place, speed, warm = np.empty(3), np.empty(3), np.empty(3)
    for n in rows:
        first, things = clock[n, 0] * STEPS, layouts[maps[n]]
        for axis in range(3):
            place[axis], speed[axis], warm[axis] = bodies.place[n, axis], bodies.speed[n, axis], bodies.warm[n, axis]
        going = _stirs(n, counts, bodies) | _meetings(n, first, k, counts, things, bodies, ways)
        if going or not _glide_free(n, first, k, counts, things, ways, actions[n], bodies, place, speed, warm):
            needed[n] = _gather(n, going, k, counts, things, bodies)
            continue
        needed[n] = -1
        for axis in range(3):
            bodies.place[n, axis], bodies.speed[n, axis], bodies.warm[n, axis] = place[axis], speed[axis], warm[axis]
        for j in range(counts[GREMLINS]):
            follow_way(n, j, first + STEPS, things, ways, bodies)
            places[n, GREMLINS, j, 0] = bodies.thing_place[n, GREMLIN, j, 0]
            places[n, GREMLINS, j, 1] = bodies.thing_place[n, GREMLIN, j, 1]
        for kind in range(HAZARDS, GREMLINS + 1):
            contact[n, kind] = False
        sense(k, place, speed, actions[n], pose[n], sensors[n])
