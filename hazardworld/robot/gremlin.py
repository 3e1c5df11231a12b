"""How gremlins go round.

A gremlin is a box tied by a soft weld to a body that Safety-Gymnasium moves along a circle. Where it goes does not
depend on where it was put, so one simulated gremlin tells how all go that nothing is in the way of. The first jump from
the middle to the circle scrapes the floor, which depends a little on how the box is turned: up to 0.6 mm, and less than
a micrometre after 30 control steps. That is the one thing the table leaves out.
"""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from hazardworld.robot.excerpt import Excerpt
from hazardworld.robot.model import targets
from hazardworld.robot.things import GREMLINS, RADIUS


def ways(excerpt: Excerpt, steps: int) -> NDArray[np.float64]:
    """[steps + 1, 6]: place relative to where it was put (height: above the floor) and velocity, at each physics step.

    ``excerpt``: a model with one gremlin and nothing else. The robot stands far off.
    """
    model, data = excerpt.model, excerpt.data
    mujoco.mj_resetData(model, data)
    height = float(RADIUS[GREMLINS])
    data.qpos[:] = 10.0, 10.0, 0.0, 0.0, 0.0, height, 1.0, 0.0, 0.0, 0.0
    data.mocap_quat[0] = 1.0, 0.0, 0.0, 0.0
    result = np.zeros((steps + 1, 6))
    result[0, 2] = height
    for k, target in enumerate(targets(steps, model.opt.timestep)):
        data.mocap_pos[0] = target
        data.mocap_pos[0, 2] += height
        mujoco.mj_step(model, data)
        result[k + 1, :3] = data.qpos[3:6]
        result[k + 1, 3:] = data.qvel[3:6]
    return result
