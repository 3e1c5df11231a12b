"""Gymnasium spaces <-> the two kinds of action and three kinds of observation that Heed knows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import Space, spaces
from gymnasium.spaces.utils import flatdim
from gymnasium.spaces.utils import flatten as flatten_value
from numpy.typing import NDArray

from framework.errors import did_you_mean
from framework.interfaces import ActionSpec, ObservationSpec

NUMBERS = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)


@dataclass(frozen=True)
class ObservationCodec:
    """Turns one raw observation into an array of the shape and type that ``spec`` states."""

    spec: ObservationSpec
    space: Space[Any]
    key: str | None

    @property
    def encoded_space(self) -> spaces.Box:
        """Space of what ``encode`` returns."""
        if self.spec.kind == "vector":
            return spaces.Box(-np.inf, np.inf, self.spec.shape, np.float32)
        return spaces.Box(0, 255, self.spec.shape, np.uint8)

    def encode(self, raw: Any, row: int) -> NDArray[Any]:
        """A fresh array; what does not fit the space is told with its row."""
        try:
            value = raw if self.key is None else raw[self.key]
            array = np.array(flatten_value(self.space, value) if self.spec.kind == "vector" else value)
        except (IndexError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"row {row}: the observation does not fit its space {self.space}: {error}") from None
        if array.shape != self.spec.shape:
            raise ValueError(f"row {row}: the observation has shape {array.shape}, but its space {self.space}")
        if self.spec.kind == "vector":
            array = array.astype(np.float32)
            if not np.isfinite(array).all():
                raise ValueError(f"row {row}: the observation is not finite (NaN, or past what float32 holds)")
            return array
        if self.spec.kind == "codes" and bool(((array < 0) | (array >= self.spec.levels)).any()):
            top = array.reshape(-1, len(self.spec.levels)).max(0).tolist()
            raise ValueError(f"row {row}: codes go up to {top}, past what levels {list(self.spec.levels)} allows")
        return array.astype(np.uint8)


def observation_codec(space: Space[Any], key: str | None, levels: tuple[int, ...]) -> ObservationCodec:
    """Bytes HxWx3 are an ``image``, a grid with ``levels`` is ``codes``, all other numbers one flat ``vector``."""
    if key is not None:
        if not isinstance(space, spaces.Dict):
            raise ValueError(f"observation_key is '{key}', but the observation is no Dict: {space}")
        if key not in space.spaces:
            raise ValueError(
                f"observation_key '{key}' is not in the observation{did_you_mean(key, list(space.spaces))}"
            )
        space = space.spaces[key]
    if levels:
        if not (isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.integer)):
            raise ValueError(f"levels are for a grid of whole numbers, but the observation is {space}")
        if not space.shape or space.shape[-1] != len(levels):
            raise ValueError(f"levels has {len(levels)} numbers, but must have one for each channel of {space}")
        return ObservationCodec(ObservationSpec("codes", space.shape, levels), space, key)
    if isinstance(space, spaces.Box) and space.dtype == np.uint8 and len(space.shape) == 3 and space.shape[-1] == 3:
        return ObservationCodec(ObservationSpec("image", space.shape), space, key)
    odd = [part for part in _leaves(space) if not isinstance(part, NUMBERS)]
    if odd and isinstance(space, spaces.Dict):
        raise ValueError(
            f"the observation holds {odd[0]}, which is no number; "
            f"set observation_key to one of {', '.join(space.spaces)}"
        )
    if odd:
        raise ValueError(
            f"the observation space {odd[0]} is not supported: it must be made of "
            f"{', '.join(number.__name__ for number in NUMBERS)}"
        )
    return ObservationCodec(ObservationSpec("vector", (flatdim(space),)), space, key)


def _leaves(space: Space[Any]) -> list[Space[Any]]:
    if isinstance(space, spaces.Dict):
        return [leaf for part in space.spaces.values() for leaf in _leaves(part)]
    if isinstance(space, spaces.Tuple):
        return [leaf for part in space.spaces for leaf in _leaves(part)]
    return [space]


@dataclass(frozen=True)
class ActionCodec:
    """Turns a batch of the policy's actions into a batch of the environment's."""

    spec: ActionSpec
    space: Any

    def to_env(self, actions: NDArray[Any], rows: int) -> NDArray[Any]:
        """``[N]`` shifted to the space's start, or ``[N, A]`` in [-1, 1] stretched to its bounds: ``[N, *shape]``."""
        if self.spec.kind == "discrete":
            whole = np.issubdtype(actions.dtype, np.integer)
            if actions.shape != (rows,) or not whole or ((actions < 0) | (actions >= self.spec.size)).any():
                raise ValueError(f"actions must be [{rows}] whole numbers from 0 to {self.spec.size - 1}")
            return actions.astype(self.space.dtype) + self.space.start
        if actions.shape != (rows, self.spec.size) or not np.isfinite(actions).all():
            raise ValueError(f"actions must be [{rows}, {self.spec.size}] finite numbers")
        given = actions.astype(np.float64).reshape(rows, *self.space.shape)
        low, high = self.space.low.astype(np.float64), self.space.high.astype(np.float64)
        bounded = np.isfinite(low) & np.isfinite(high)
        base, span = np.where(bounded, low, 0.0), np.where(bounded, high - low, 0.0)
        stretched = np.where(bounded, base + (given + 1) / 2 * span, given)
        return np.clip(stretched, low, high).astype(self.space.dtype)


def action_codec(space: Space[Any]) -> ActionCodec:
    if isinstance(space, spaces.Discrete):
        return ActionCodec(ActionSpec("discrete", int(space.n)), space)
    if isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.floating):
        return ActionCodec(ActionSpec("continuous", math.prod(space.shape)), space)
    raise ValueError(f"the action space {space} is not supported: it must be Discrete, or Box of real numbers")
