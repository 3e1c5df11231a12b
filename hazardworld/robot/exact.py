"""Many rows with Safety-Gymnasium's arithmetic, bit for bit.

The servo that turns the robot overshoots at a physics step of 2 ms, so any rounding difference grows to a visible one
within tens of steps. Only the same operations in the same order stay together: each row has its own copy of the whole
model, with the map's places in it, and calls what Safety-Gymnasium calls. What is saved is what surrounds the physics.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from hazardworld.robot.layout import Layouts
from hazardworld.robot.model import Blueprint, physics_xml, targets
from hazardworld.robot.rows import RobotEngine
from hazardworld.robot.things import GREMLINS, STEPS

STATE = mujoco.mjtState.mjSTATE_INTEGRATION
"""All from which MuJoCo goes on: time, positions, velocities, warm start, controls, mocap bodies."""
NO_SENSORS = int(mujoco.mjtDisableBit.mjDSBL_SENSOR)


class ExactEngine(RobotEngine):
    """See RobotEngine for the arguments."""

    def __init__(self, layouts: Layouts, rows: int, **settings: Any) -> None:
        super().__init__(layouts, rows, **settings)
        self._blueprint = Blueprint(physics_xml(layouts), layouts.counts)
        self._blueprint.check(layouts, 0)
        self._models = [copy.copy(self._blueprint.model) for _ in range(rows)]
        self._data = [mujoco.MjData(model) for model in self._models]
        self._physics = np.zeros((rows, mujoco.mj_stateSize(self._blueprint.model, STATE)))
        self._targets = targets(self.max_steps * STEPS, self._blueprint.model.opt.timestep)
        movable = self._blueprint.moving
        self._kind = np.array([kind for kind, _, _ in movable], np.int64)
        self._index = np.array([index for _, index, _ in movable], np.int64)
        self._body = np.array([body for _, _, body in movable], np.int64)

    def _begin(self, n: int) -> None:
        model, data = self._models[n], self._data[n]
        self._blueprint.place(model, data, self.layouts, self._map[n])
        mujoco.mj_forward(model, data)
        self._places[n] = self.layouts.things[self._map[n]]
        self._read(n)

    def _move(self, rows: NDArray[np.int64], actions: NDArray[np.float64]) -> None:
        step, forward, targets = mujoco.mj_step, mujoco.mj_forward, self._targets
        gremlins = self.layouts.counts[GREMLINS] > 0
        for n in rows:
            model, data = self._models[n], self._data[n]
            data.ctrl[:] = actions[n]
            first = self._clock[n, 0] * STEPS
            mocap, flags = data.mocap_pos, model.opt.disableflags
            model.opt.disableflags = flags | NO_SENSORS  # nothing that moves depends on them; the last ones are read
            for k in range(first, first + STEPS):
                if gremlins:
                    mocap[:] = targets[k]
                step(model, data)
            model.opt.disableflags = flags
            forward(model, data)
            self._contact[n] = self._blueprint.touching(data)
            self._read(int(n))

    def _read(self, n: int) -> None:
        data = self._data[n]
        robot = self._blueprint.robot
        self._pose[n, :2] = data.xpos[robot, :2]
        self._pose[n, 2:] = data.xmat[robot, 0], data.xmat[robot, 3]
        self._sensors[n] = data.sensordata[:12]
        if len(self._body):
            self._places[n, self._kind, self._index, :2] = data.xpos[self._body, :2]
            turned = data.xmat[self._body]
            self._places[n, self._kind, self._index, 2] = np.arctan2(turned[:, 3], turned[:, 0])

    def _parts(self) -> dict[str, NDArray]:
        return {"physics": self._physics}

    def state(self) -> dict[str, NDArray]:
        for n in range(self.rows):
            mujoco.mj_getState(self._models[n], self._data[n], self._physics[n], STATE)
        return super().state()

    def restore(self, state: Mapping[str, NDArray]) -> None:
        super().restore(state)
        for n in range(self.rows):
            model, data = self._models[n], self._data[n]
            self._blueprint.place(model, data, self.layouts, self._map[n])
            mujoco.mj_setState(model, data, self._physics[n], STATE)
            mujoco.mj_forward(model, data)
            self._read(n)
