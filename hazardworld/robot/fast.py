"""Many rows, with MuJoCo only where something could be touched.

Most of the time of Safety-Gymnasium's world goes into four vases that stand still and four gremlins that go round. Here
a free robot moves in closed form (``free.py``), free gremlins follow a table (``gremlin.py``), resting vases stay as
they are, and MuJoCo sees the robot with what is near (``near.py`` chooses, ``excerpt.py`` holds the models).

One control step differs from the exact engine's by rounding, by the solver's tolerance when there is contact, and by
the settling of vases and the first jump of gremlins, both far below a millimetre. Since the world amplifies any
difference, compare one step ahead, or statistics; not trajectories.
"""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from hazardworld.robot.bodies import GREMLIN, VASE, Bodies
from hazardworld.robot.excerpt import Excerpt, lend, take_back
from hazardworld.robot.free import constants, glide, sense
from hazardworld.robot.gremlin import ways
from hazardworld.robot.layout import Layouts
from hazardworld.robot.model import physics_xml, quaternion, targets
from hazardworld.robot.near import advance
from hazardworld.robot.rows import RobotEngine
from hazardworld.robot.settle import settle
from hazardworld.robot.things import GREMLINS, KINDS, MOST, RADIUS, STEPS, VASE_HEIGHT, VASES

HOW_MANY = [bits.bit_count() for bits in range(1 << MOST)]


class FastEngine(RobotEngine):
    """See RobotEngine for the arguments."""

    def __init__(self, layouts: Layouts, rows: int, **settings: Any) -> None:
        super().__init__(layouts, rows, **settings)
        self._xml = physics_xml(layouts)
        self._excerpts: dict[tuple[int, ...], Excerpt] = {}
        alone = self._excerpt((0, 0, 0, 0, 0))
        self._constants = constants(alone.model)
        _check_free_motion(alone, self._constants)
        steps = self.max_steps * STEPS
        self._targets = targets(steps, alone.model.opt.timestep)
        gremlins = layouts.counts[GREMLINS] > 0
        self._ways = ways(self._excerpt((0, 0, 0, 0, 1)), steps) if gremlins else np.zeros((steps + 1, 6))
        self._bodies = Bodies(
            place=np.zeros((rows, 3)),
            speed=np.zeros((rows, 3)),
            warm=np.zeros((rows, 3)),
            thing_place=np.zeros((rows, 2, MOST, 7)),
            thing_speed=np.zeros((rows, 2, MOST, 6)),
            thing_warm=np.zeros((rows, 2, MOST, 6)),
            astir=np.zeros((rows, 2, MOST), np.bool_),
        )
        self._needed = np.zeros(rows, np.int64)
        self._push = np.zeros((MOST, 6))

    def _excerpt(self, counts: tuple[int, ...]) -> Excerpt:
        if counts not in self._excerpts:
            self._excerpts[counts] = Excerpt(self._xml, counts)
        return self._excerpts[counts]

    def _begin(self, n: int) -> None:
        bodies, things = self._bodies, self.layouts.things[self._map[n]]
        bodies.place[n] = self.layouts.robot[self._map[n]]
        for array in (bodies.speed, bodies.warm, bodies.thing_speed, bodies.thing_warm, bodies.astir):
            array[n] = 0
        for kind, part, height in ((VASES, VASE, VASE_HEIGHT), (GREMLINS, GREMLIN, RADIUS[GREMLINS])):
            for i in range(self.layouts.counts[kind]):
                bodies.thing_place[n, part, i, :2] = things[kind, i, :2]
                bodies.thing_place[n, part, i, 2] = height
                bodies.thing_place[n, part, i, 3:] = quaternion(things[kind, i, 2])
        self._places[n] = things
        sense(self._constants, bodies.place[n], bodies.speed[n], np.zeros(2), self._pose[n], self._sensors[n])

    def _move(self, rows: NDArray[np.int64], actions: NDArray[np.float64]) -> None:
        self._needed[:] = -1
        advance(
            rows, actions, self._constants, self._counts, self.layouts.things, self._map, self._clock, self._ways,
            self._bodies, self._pose, self._sensors, self._places, self._contact, self._needed,
        )  # fmt: skip
        for n in np.flatnonzero(self._needed >= 0).tolist():
            self._simulate(n, actions[n], int(self._needed[n]))

    def _simulate(self, n: int, action: NDArray[np.float64], bits: int) -> None:
        """A control step of one row in MuJoCo, with the things whose bits are set."""
        excerpt = self._excerpt((0, *(HOW_MANY[bits >> MOST * kind & 15] for kind in range(1, len(KINDS)))))
        bodies, things, first = self._bodies, self.layouts.things[self._map[n]], int(self._clock[n, 0]) * STEPS
        windows, counts = excerpt.windows, self._counts
        lend(n, bits, first, action, counts, things, self._targets, bodies, windows, excerpt.mocap_track)
        excerpt.run()
        take_back(n, bits, counts, bodies, windows, self._push, self._pose, self._sensors)
        settle(n, bits, first + STEPS, counts, things, self._ways, bodies, self._push, self._places)
        self._contact[n] = excerpt.blueprint.touching(excerpt.data)

    def _parts(self) -> dict[str, NDArray]:
        return self._bodies._asdict()


def _check_free_motion(alone: Excerpt, k: NDArray[np.float64]) -> None:
    """The closed form stands for what MuJoCo 3.3 does; say so if this MuJoCo does something else."""
    place, speed, warm, action = (
        np.array([0.3, -0.2, 0.7]),
        np.array([0.5, -0.4, 2.0]),
        np.zeros(3),
        np.array([0.03, -0.4]),
    )
    alone.data.qpos[:], alone.data.qvel[:], alone.data.ctrl[:] = place, speed, action
    for _ in range(STEPS):
        glide(k, place, speed, warm, action)
    mujoco.mj_step(alone.model, alone.data, STEPS)
    off = max(np.abs(place - alone.data.qpos).max(), np.abs(speed - alone.data.qvel).max())
    if not off < 1e-9:
        raise RuntimeError(
            f"MuJoCo {mujoco.__version__} moves the free robot differently from 3.3.7, for which FastEngine is written "
            f"(off by {off:.1e} after {STEPS} steps): use ExactEngine, or `pip install mujoco==3.3.7`"
        )
