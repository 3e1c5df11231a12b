"""A Gymnasium environment of your own in Heed, through the adapter. Nothing in the class knows of Heed.

Type:

    python -m framework.run examples/gymnasium_env/corridor.yaml
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from framework.hookspecs import hookimpl

LENGTH = 10


class Corridor(gymnasium.Env[NDArray[np.float32], int]):
    """Walk to the end: slowly, or at a run that costs. All that the adapter asks for is ``info["cost"]``."""

    observation_space = spaces.Box(0.0, 1.0, (2,), np.float32)  # place, time
    action_space = spaces.Discrete(3)  # stay, walk one cell, run two cells

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self._place, self._time = int(self.np_random.integers(0, 3)), 0
        return self._see(), {"cost": 0.0}

    def step(self, action: int) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        self._place, self._time = self._place + int(action), self._time + 1
        there = self._place >= LENGTH
        return self._see(), float(there) - 0.05, there, self._time >= 30, {"cost": float(action == 2)}

    def _see(self) -> NDArray[np.float32]:
        return np.array([min(1.0, self._place / LENGTH), self._time / 30], np.float32)


if "Corridor-v0" not in gymnasium.registry:
    gymnasium.register(id="Corridor-v0", entry_point=Corridor)


@hookimpl
def heed_components() -> list[Any]:
    """No plugin of its own: the registry lists this file so that the id is registered wherever runs are."""
    return []
