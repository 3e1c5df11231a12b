"""The arrays of the engine, by what they are for. Compiled code takes named tuples, so these are named tuples."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class World(NamedTuple):
    """What never changes."""

    terrain: NDArray[np.uint8]  # [M, S, S] codes, [y, x]
    points: NDArray[np.int64]  # [M, 4, 2] (x, y) of start, ball, box, key
    direction: NDArray[np.int64]  # [M]
    classes: NDArray[np.int64]  # [M, K]
    rules: NDArray[np.int64]  # [C, 4] object number to avoid, distance, object number of the condition, when it holds
    sentence_start: NDArray[np.int64]  # [C]
    sentence_count: NDArray[np.int64]  # [C]
    encoding: NDArray[np.uint8]  # [8, 3] terrain code, or 5 + item, to MiniGrid's bytes
    worth: NDArray[np.float32]  # [3]
    key: NDArray[np.uint64]  # [1]
    compass: bool
    sequential: bool
    max_steps: int


class State(NamedTuple):
    """All that a row is; saving these arrays saves the engine."""

    cells: NDArray[np.uint8]  # [N * P * P * 3] maps in MiniGrid's encoding, [x, y], with their rims
    agent: NDArray[np.int64]  # [N, 2] cell, direction
    clock: NDArray[np.int64]  # [N, 2] steps in this episode, episodes begun
    left: NDArray[np.uint8]  # [N] bits of the objects worth collecting that are still there
    condition: NDArray[np.bool_]  # [N, K]
    classes: NDArray[np.int64]  # [N, K]
    map: NDArray[np.int64]  # [N]
    done: NDArray[np.bool_]  # [N]
    rng: NDArray[np.uint64]  # [N]


class Step(NamedTuple):
    """What a step shows. The engine writes into the same arrays at every step: copy what you keep."""

    obs: NDArray[np.uint8]  # [N, 7, 7, 3]; the kernels get it flat
    text: NDArray[np.int64]  # [N, K]
    reward: NDArray[np.float32]  # [N]
    cost: NDArray[np.float32]  # [N, K]
    touched: NDArray[np.bool_]  # [N, 7, 7]
    terminated: NDArray[np.bool_]  # [N]
    truncated: NDArray[np.bool_]  # [N]
    episode_start: NDArray[np.bool_]  # [N]
