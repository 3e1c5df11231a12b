"""What the three objects are worth."""

from __future__ import annotations

from collections.abc import Sequence

from hazardworld.constraint import suggest

OBJECTS = ("ball", "box", "key")
REWARDS: dict[str, tuple[float, float, float]] = {"train": (1.0, 2.0, 3.0), "transfer": (1.0, 2.0, -3.0)}
"""``transfer`` is the paper's changed task: the key is to be left alone."""


def worths(reward: str | Sequence[float]) -> tuple[float, float, float]:
    """Worth of ball, box and key, from a name or from three numbers."""
    if isinstance(reward, str):
        if reward not in REWARDS:
            raise ValueError(f"unknown reward {reward!r}{suggest(reward, tuple(REWARDS))}, or three numbers")
        return REWARDS[reward]
    if len(reward) != 3:
        raise ValueError(f"reward needs three numbers (ball, box, key), got {len(reward)}: {list(reward)}")
    ball, box, key = (float(number) for number in reward)
    if max(ball, box, key) <= 0:
        raise ValueError(f"reward {list(reward)}: no object is worth collecting, so an episode would have no end")
    return ball, box, key
