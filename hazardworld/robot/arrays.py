"""What the engines hand over."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class RobotStep(NamedTuple):
    """What a step shows. An engine writes into the same arrays at every step: copy what you keep."""

    obs: NDArray[np.floating]  # [N, 109] float32: see things.OBSERVATION
    touching: NDArray[np.bool_]  # [N, 5] at the end of the step: in contact with a thing of the kind, or in a hazard
    gap: NDArray[np.float32]  # [N, 5] metres from the robot's rim to the nearest rim; inf where there is none of a kind
    goal_reached: NDArray[np.bool_]  # [N]
    goal_distance: NDArray[np.float64]  # [N] to the goal that the move was for, even if it is reached and another shows
    terminated: NDArray[np.bool_]  # [N]
    truncated: NDArray[np.bool_]  # [N]
    episode_start: NDArray[np.bool_]  # [N]


class Scene(NamedTuple):
    """Where everything is now, for pictures; x, y, and rotation about the vertical in radians."""

    robot: NDArray[np.float64]  # [3]
    goal: NDArray[np.float64]  # [2]
    things: NDArray[np.float64]  # [5, W, 3]; NaN where there are fewer than W of a kind
