"""Compiled: the robot while nothing solid is near, in closed form.

Two slides and a hinge carry a ball and a box that sits ``m_c / m`` ahead of the hinge. With heading angle t, its rate
w, and F the motor's force along the heading, MuJoCo's semi-implicit Euler step of length h solves, for accelerations
(x, y, t),

    | m + h b      0      -m_c sin t |       | F cos t - b vx + m_c w^2 cos t |
    |    0      m + h b    m_c cos t | acc = | F sin t - b vy + m_c w^2 sin t |
    | -m_c sin t  m_c cos t  I + h d |       | T - d w                        |

with damping b of the slides and d of the hinge, and then moves velocity and place by h. The accelerometer shows the
same without the terms in h. The servo torque T follows the asked-for rate within its force limits. The ball rests on
the floor without weight.
"""

from __future__ import annotations

import math
from typing import Any

import mujoco
import numpy as np
from numba import njit
from numpy.typing import NDArray

MASS, MOMENT, INERTIA, SLIDE, HINGE, STEP, PUSH, PUSH_LIMIT, TURN, TURN_LIMIT, GAIN, GRAVITY, NORTH = range(13)


def constants(model: Any) -> NDArray[np.float64]:
    """[13], read from a model whose robot stands at the origin with heading zero."""
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    inertia = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, inertia, data.qM)
    result = np.zeros(13)
    result[[MASS, MOMENT, INERTIA]] = inertia[0, 0], inertia[1, 2], inertia[2, 2]
    result[[SLIDE, HINGE, STEP]] = model.dof_damping[0], model.dof_damping[2], model.opt.timestep
    result[[PUSH, PUSH_LIMIT]] = model.actuator_gear[0, 0], model.actuator_forcerange[0, 1]
    result[[TURN, TURN_LIMIT, GAIN]] = (
        model.actuator_gear[1, 0],
        model.actuator_forcerange[1, 1],
        model.actuator_gainprm[1, 0],
    )
    result[[GRAVITY, NORTH]] = -model.opt.gravity[2], model.opt.magnetic[1]
    return result


@njit(cache=True, inline="always")
def _solve(k, slide, hinge, fx, fy, torque, cos, sin):  # type: ignore[no-untyped-def]
    """Accelerations; ``slide`` and ``hinge`` are added to mass and inertia."""
    mass, moment = k[MASS] + slide, k[MOMENT]
    turn = (torque + moment * (sin * fx - cos * fy) / mass) / (k[INERTIA] + hinge - moment * moment / mass)
    return (fx + moment * sin * turn) / mass, (fy - moment * cos * turn) / mass, turn


@njit(cache=True, inline="always")
def _forces(k, speed, action, cos, sin):  # type: ignore[no-untyped-def]
    push = k[PUSH] * min(max(action[0], -k[PUSH_LIMIT]), k[PUSH_LIMIT])
    servo = k[GAIN] * (action[1] - k[TURN] * speed[2])
    along = push + k[MOMENT] * speed[2] * speed[2]
    torque = k[TURN] * min(max(servo, -k[TURN_LIMIT]), k[TURN_LIMIT]) - k[HINGE] * speed[2]
    return along * cos - k[SLIDE] * speed[0], along * sin - k[SLIDE] * speed[1], torque


@njit(cache=True)
def glide(k, place, speed, warm, action):  # type: ignore[no-untyped-def]
    """One physics step in place: ``place`` [3], ``speed`` [3]; ``warm`` [3] gets the accelerations it began with."""
    cos, sin = math.cos(place[2]), math.sin(place[2])
    fx, fy, torque = _forces(k, speed, action, cos, sin)
    warm[0], warm[1], warm[2] = _solve(k, 0.0, 0.0, fx, fy, torque, cos, sin)
    ax, ay, turn = _solve(k, k[STEP] * k[SLIDE], k[STEP] * k[HINGE], fx, fy, torque, cos, sin)
    speed[0] += k[STEP] * ax
    speed[1] += k[STEP] * ay
    speed[2] += k[STEP] * turn
    for i in range(3):
        place[i] += k[STEP] * speed[i]


@njit(cache=True)
def sense(k, place, speed, action, pose, sensors):  # type: ignore[no-untyped-def]
    """Write ``pose`` [4] and what the four sensors show, [12]."""
    cos, sin = math.cos(place[2]), math.sin(place[2])
    fx, fy, torque = _forces(k, speed, action, cos, sin)
    ax, ay, _ = _solve(k, 0.0, 0.0, fx, fy, torque, cos, sin)
    pose[0], pose[1], pose[2], pose[3] = place[0], place[1], cos, sin
    sensors[0], sensors[1], sensors[2] = ax * cos + ay * sin, ay * cos - ax * sin, k[GRAVITY]
    sensors[3], sensors[4], sensors[5] = speed[0] * cos + speed[1] * sin, speed[1] * cos - speed[0] * sin, 0.0
    sensors[6], sensors[7], sensors[8] = 0.0, 0.0, speed[2]
    sensors[9], sensors[10], sensors[11] = k[NORTH] * sin, k[NORTH] * cos, 0.0
