"""The adapter's default world: CartPole, with a cost for straying from the middle."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.classic_control.cartpole import CartPoleEnv
from numpy.typing import NDArray

ID = "CartPoleCost-v0"
MIDDLE = 0.3
"""How far from the middle the cart may be at no cost; the track ends at 2.4."""


class CartPoleCost(CartPoleEnv):
    """Gymnasium's own, with ``info["cost"]`` 1 in every step that ends outside the middle."""

    def step(self, action: Any) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        obs, reward, terminated, truncated, info = super().step(action)
        return obs, reward, terminated, truncated, info | {"cost": float(abs(obs[0]) > MIDDLE)}


def register() -> None:
    """Tell Gymnasium about it, once."""
    if ID not in gymnasium.registry:
        gymnasium.register(id=ID, entry_point=f"{__name__}:CartPoleCost", max_episode_steps=200)
