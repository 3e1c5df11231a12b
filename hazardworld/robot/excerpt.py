"""MuJoCo with only what is near: models of the robot and a few things, lent to one row after the other.

The robot's joints start at the origin here, so its joint positions are its place and heading in the world; equal
damping of both slides makes that the same motion. Pillars and buttons are put in place by writing into the model. A
gremlin has the very pose of what it is tied to, so that body goes round the gremlin's own circle.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import mujoco
import numpy as np
from numba import njit
from numpy.typing import NDArray

from hazardworld.robot.bodies import GREMLIN, VASE
from hazardworld.robot.model import WELD_POSE, Blueprint, cut
from hazardworld.robot.things import BUTTONS, GREMLINS, MOST, PILLARS, RADIUS, STEPS, VASES


class Windows(NamedTuple):
    """MuJoCo's own memory, as arrays. The robot comes first, then the vases, then the gremlins."""

    qpos: NDArray[np.float64]  # [3 + 7 B] then for each body x, y, z, quaternion
    qvel: NDArray[np.float64]  # [3 + 6 B] then for each body along the world's axes, about its own
    warm: NDArray[np.float64]  # [3 + 6 B]
    qacc: NDArray[np.float64]  # [3 + 6 B]
    ctrl: NDArray[np.float64]  # [2]
    mocap_quat: NDArray[np.float64]  # [G, 4]
    body_pos: NDArray[np.float64]  # [bodies, 3]
    body_quat: NDArray[np.float64]  # [bodies, 4]
    sensors: NDArray[np.float64]
    solid: NDArray[np.int64]  # the bodies that are pillars and, after them, buttons


class Excerpt:
    """``counts``: how many things of each kind are in it."""

    def __init__(self, xml: str, counts: tuple[int, ...]) -> None:
        self.blueprint = Blueprint(cut(xml, counts), counts)
        self.model = model = self.blueprint.model
        self.data = data = mujoco.MjData(model)
        model.eq_data[:, WELD_POSE] = 0, 0, 0, 1, 0, 0, 0
        moving = counts[VASES] + counts[GREMLINS]
        assert [kind for kind, _, _ in self.blueprint.moving] == [VASES] * counts[VASES] + [GREMLINS] * counts[GREMLINS]
        assert model.nq == 3 + 7 * moving and model.nv == 3 + 6 * moving
        self.mocap_pos = data.mocap_pos
        self.mocap_track = np.zeros((STEPS, counts[GREMLINS], 3))  # where it goes in this control step
        self.windows = Windows(
            qpos=data.qpos,
            qvel=data.qvel,
            warm=data.qacc_warmstart,
            qacc=data.qacc,
            ctrl=data.ctrl,
            mocap_quat=data.mocap_quat,
            body_pos=model.body_pos,
            body_quat=model.body_quat,
            sensors=data.sensordata,
            solid=np.array([body for _, _, body in self.blueprint.static], np.int64),
        )

    def run(self) -> None:
        """One control step, and what Safety-Gymnasium computes at its end."""
        if len(self.mocap_pos):
            step, model, data, mocap = mujoco.mj_step, self.model, self.data, self.mocap_pos
            for target in self.mocap_track:
                mocap[:] = target
                step(model, data)
        else:
            mujoco.mj_step(self.model, self.data, STEPS)
        mujoco.mj_forward(self.model, self.data)


@njit(cache=True)
def _copy(source, target, count):  # type: ignore[no-untyped-def]
    for i in range(count):
        target[i] = source[i]


@njit(cache=True)
def _turn(rotation, quaternion):  # type: ignore[no-untyped-def]
    quaternion[0], quaternion[3] = math.cos(0.5 * rotation), math.sin(0.5 * rotation)
    quaternion[1] = quaternion[2] = 0.0


@njit(cache=True)
def lend(n, bits, first, action, counts, things, targets, bodies, windows, track):  # type: ignore[no-untyped-def]
    """Write row n into an excerpt. ``bits``: its things, 4 * kind + i; ``first``: physics steps before this one."""
    qpos, qvel, warm = windows.qpos, windows.qvel, windows.warm
    _copy(bodies.place[n], qpos, 3)
    _copy(bodies.speed[n], qvel, 3)
    _copy(bodies.warm[n], warm, 3)
    _copy(action, windows.ctrl, 2)
    slot = 0
    for part in (VASE, GREMLIN):
        kind = VASES if part == VASE else GREMLINS
        tied = 0
        for i in range(counts[kind]):
            if not bits >> (MOST * kind + i) & 1:
                continue
            _copy(bodies.thing_place[n, part, i], qpos[3 + 7 * slot :], 7)
            _copy(bodies.thing_speed[n, part, i], qvel[3 + 6 * slot :], 6)
            _copy(bodies.thing_warm[n, part, i], warm[3 + 6 * slot :], 6)
            slot += 1
            if part == GREMLIN:
                _turn(things[kind, i, 2], windows.mocap_quat[tied])
                for step in range(STEPS):
                    track[step, tied, 0] = things[kind, i, 0] + targets[first + step, 0]
                    track[step, tied, 1] = things[kind, i, 1] + targets[first + step, 1]
                    track[step, tied, 2] = RADIUS[kind] + targets[first + step, 2]
                tied += 1
    slot = 0
    for kind in (PILLARS, BUTTONS):
        for i in range(counts[kind]):
            if bits >> (MOST * kind + i) & 1:
                body = windows.solid[slot]
                _copy(things[kind, i], windows.body_pos[body], 2)
                _turn(things[kind, i, 2], windows.body_quat[body])
                slot += 1


@njit(cache=True)
def take_back(n, bits, counts, bodies, windows, push, pose, sensors):  # type: ignore[no-untyped-def]
    """Read row n out of an excerpt; ``push`` [4, 6] gets the accelerations of its vases."""
    qpos, qvel, warm = windows.qpos, windows.qvel, windows.warm
    _copy(qpos, bodies.place[n], 3)
    _copy(qvel, bodies.speed[n], 3)
    _copy(warm, bodies.warm[n], 3)
    slot = 0
    for part in (VASE, GREMLIN):
        kind = VASES if part == VASE else GREMLINS
        for i in range(counts[kind]):
            if not bits >> (MOST * kind + i) & 1:
                continue
            _copy(qpos[3 + 7 * slot :], bodies.thing_place[n, part, i], 7)
            _copy(qvel[3 + 6 * slot :], bodies.thing_speed[n, part, i], 6)
            _copy(warm[3 + 6 * slot :], bodies.thing_warm[n, part, i], 6)
            if part == VASE:
                _copy(windows.qacc[3 + 6 * slot :], push[i], 6)
            slot += 1
    pose[n, 0], pose[n, 1], pose[n, 2], pose[n, 3] = qpos[0], qpos[1], math.cos(qpos[2]), math.sin(qpos[2])
    _copy(windows.sensors, sensors[n], 12)
