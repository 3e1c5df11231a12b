"""Compiled: what the robot observes, what it reached, and how near it is to things, from where everything is.

The lidar is Safety-Gymnasium's pseudo-lidar: each thing falls into one of 16 directions about the robot and lights it
with (3 - distance) / 3, and the two neighbouring directions in proportion to how near their side it is; the strongest
counts.
"""

from __future__ import annotations

import math

from numba import njit

from hazardworld.robot.things import BINS, GOAL_RADIUS, HAZARDS, MAX_DISTANCE, RADIUS, ROBOT_RADIUS

_BIN = 2 * math.pi / BINS


@njit(cache=True, inline="always")
def _light(pose, x, y, lidar):  # type: ignore[no-untyped-def]
    """Add one thing to a lidar [16]; gives the distance to it."""
    dx, dy = x - pose[0], y - pose[1]
    ahead, left = dx * pose[2] + dy * pose[3], dy * pose[2] - dx * pose[3]
    distance = math.sqrt(ahead * ahead + left * left)
    angle = math.atan2(left, ahead) % (2 * math.pi)
    bin = int(angle / _BIN)
    alias = (angle - _BIN * bin) / _BIN
    bin %= BINS  # rounding can put an angle just below zero at the full circle
    sensor = max(0.0, MAX_DISTANCE - distance) / MAX_DISTANCE
    above, below = (bin + 1) % BINS, (bin + BINS - 1) % BINS
    lidar[bin] = max(lidar[bin], sensor)
    lidar[above] = max(lidar[above], alias * sensor)
    lidar[below] = max(lidar[below], (1 - alias) * sensor)
    return distance


@njit(cache=True)
def arrive(last, max_steps, target, pose, moved, clock, goal, done, out):  # type: ignore[no-untyped-def]
    """Whether each row has reached its goal, and whether that or the clock ends its episode; ``last`` 0: no goal does.

    ``target`` [N, 2] where the goal is; ``goal`` [N] counts those reached, up to the one before the last. Rows with
    ``out.episode_start`` have just begun, those of ``moved`` [N] have just moved; the others stay as they are.
    """
    for n in range(len(pose)):
        if not (moved[n] or out.episode_start[n]):
            continue
        out.goal_reached[n] = out.terminated[n] = out.truncated[n] = False
        dx, dy = target[n, 0] - pose[n, 0], target[n, 1] - pose[n, 1]
        out.goal_distance[n] = math.sqrt(dx * dx + dy * dy)
        if out.episode_start[n]:
            continue
        clock[n, 0] += 1
        if out.goal_distance[n] <= GOAL_RADIUS:
            out.goal_reached[n] = True
            if goal[n] + 1 == last:
                out.terminated[n] = True
            else:
                goal[n] += 1
        if clock[n, 0] >= max_steps and not out.terminated[n]:
            out.truncated[n] = True
        done[n] = out.terminated[n] or out.truncated[n]


@njit(cache=True)
def show(counts, target, pose, sensors, places, contact, lidar, out):  # type: ignore[no-untyped-def]
    """Fill in what all rows observe and touch.

    ``target`` [N, 2] where the goal is; ``pose`` [N, 4] x, y, cosine and sine of the robot's heading; ``sensors``
    [N, 12]; ``places`` [N, 5, W, 3] of things; ``contact`` [N, 5]; ``lidar`` [16] is scratch.
    """
    obs, touching, gap, episode_start = out.obs, out.touching, out.gap, out.episode_start
    for n in range(len(pose)):
        here = pose[n]
        for i in range(12):
            obs[n, i] = sensors[n, i]
        at = 12
        for b in range(BINS):
            lidar[b] = 0.0
        far = _light(here, target[n, 0], target[n, 1], lidar)
        for b in range(BINS):
            obs[n, at + b] = lidar[b]
        for kind in range(len(counts)):
            at += BINS
            nearest = math.inf
            for b in range(BINS):
                lidar[b] = 0.0
            for i in range(counts[kind]):
                nearest = min(nearest, _light(here, places[n, kind, i, 0], places[n, kind, i, 1], lidar))
            for b in range(BINS):
                obs[n, at + b] = lidar[b]
            gap[n, kind] = nearest - ROBOT_RADIUS - RADIUS[kind]
            touching[n, kind] = contact[n, kind]
            if kind == HAZARDS and not episode_start[n]:
                touching[n, kind] = nearest < RADIUS[kind]
        obs[n, at + BINS] = far
