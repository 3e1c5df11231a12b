"""What is read from a Gymnasium environment, checked: observations, rewards, and the cost in ``info``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from framework.errors import did_you_mean
from plugins.envs._gymnasium_spaces import ObservationCodec


@dataclass(frozen=True)
class Step:
    """N rows after a reset or a step."""

    obs: NDArray[Any]  # [N, *shape]
    reward: NDArray[np.float32]  # [N]
    cost: NDArray[np.float32]  # [N]
    terminated: NDArray[np.bool_]  # [N]
    truncated: NDArray[np.bool_]  # [N]
    start: NDArray[np.bool_]  # [N]
    final_obs: NDArray[Any] | None = None  # [N, *shape], rows that did not end: equal to obs

    @classmethod
    def silent(cls, obs: NDArray[Any], start: NDArray[np.bool_], **changes: Any) -> Step:
        """Nothing happened but what is said."""
        zeros, no = np.zeros(len(obs), np.float32), np.zeros(len(obs), np.bool_)
        values: dict[str, Any] = {"reward": zeros, "cost": zeros.copy(), "terminated": no, "truncated": no.copy()}
        return cls(obs=obs, start=start, **(values | changes))


@dataclass(frozen=True)
class Reader:
    """Reads one row at a time; what is wrong is told with the row."""

    codec: ObservationCodec
    id: str
    cost_key: str | None
    cost_scale: float

    def obs(self, raw: Any, row: int) -> NDArray[Any]:
        return self.codec.encode(raw, row)

    def reward(self, value: Any, row: int) -> float:
        return _number("reward", value, row)

    def cost(self, info: Mapping[str, Any], row: int) -> float:
        """The cost of a step, from a single environment's info."""
        if self.cost_key is None:
            return 0.0
        if self.cost_key not in info:
            raise self._no_cost(info, row)
        return self._scaled(info[self.cost_key], row)

    def vector_cost(self, info: Mapping[str, Any], row: int, ended: bool) -> float:
        """The cost of a step, from a vector environment's info.

        An array per key, with the mask ``_key`` of the rows that have it. ``ended``: the row was reset within the
        step, so that what belongs to its last step is under ``final_info`` (arrays again, or a dict for each row).
        """
        if self.cost_key is None:
            return 0.0
        source: Any = info["final_info"] if ended and "final_info" in info else info
        if not isinstance(source, Mapping):
            return self.cost(source[row] or {}, row)
        reported = source.get(f"_{self.cost_key}")  # some vector environments leave the mask out: all rows have it
        if self.cost_key not in source or not (reported is None or reported[row]):
            raise self._no_cost(source, row)
        return self._scaled(source[self.cost_key][row], row)

    def _scaled(self, value: Any, row: int) -> float:
        cost = _number(f"info['{self.cost_key}']", value, row) * self.cost_scale
        if cost < 0:
            raise ValueError(f"row {row}: info['{self.cost_key}'] is {value}; a cost must not be negative")
        return cost

    def _no_cost(self, info: Mapping[str, Any], row: int) -> ValueError:
        keys = sorted(key for key in info if not key.startswith("_"))
        near = did_you_mean(str(self.cost_key), keys) if keys else "; its info is empty"
        return ValueError(
            f"row {row}: '{self.id}' reports no info['{self.cost_key}']{near}"
            f"{'' if near.endswith('?') else '.'} Set cost_key to the key of its cost, or to null if it has none"
        )


def _number(name: str, value: Any, row: int) -> float:
    try:
        number = float(np.asarray(value, dtype=np.float64).item())
    except (TypeError, ValueError):
        raise ValueError(f"row {row}: {name} is no single number: {value!r}") from None
    if not math.isfinite(number):
        raise ValueError(f"row {row}: {name} is {number}, not a finite number")
    return number
