"""Single environments, stepped one after the other: full control over resets, so that a run can go on exactly.

Every episode has a seed of its own, derived from the run's seed, the row and the episode's number. An environment that
is deterministic given seed and actions is restored by resetting it with that seed and replaying the episode's actions.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from framework.seeding import derive
from plugins.envs._gymnasium_reader import Reader, Step
from plugins.envs._gymnasium_spaces import ActionCodec


class Rows:
    """N single environments."""

    def __init__(
        self, envs: Sequence[gymnasium.Env[Any, Any]], reader: Reader, actions: ActionCodec, same_step: bool, seed: int
    ) -> None:
        self._envs, self._reader, self._actions, self._same_step = envs, reader, actions, same_step
        self._own_seed = self._seed = seed
        self._episode = np.full(len(envs), -1)  # number of the row's present episode
        self._history: list[list[NDArray[Any]]] = [[] for _ in envs]  # its actions so far
        self._done = np.zeros(len(envs), np.bool_)  # it ended, and the next step starts another
        self._lost = np.zeros(len(envs), np.bool_)  # it could not be restored, and the next step cuts it off
        self._obs: NDArray[Any] | None = None

    def reset(self) -> Step:
        self._seed, self._episode[:], self._done[:], self._lost[:] = self._own_seed, -1, False, False
        self._obs = np.stack([self._begin(row) for row in range(len(self._envs))])
        return Step.silent(self._obs, np.ones(len(self._envs), np.bool_))

    def step(self, actions: NDArray[Any]) -> Step:
        moves = self._actions.to_env(actions, len(self._envs))
        if self._obs is None:
            raise RuntimeError("call reset before step")
        final = self._obs.copy()
        now = Step.silent(self._obs.copy(), np.zeros(len(self._envs), np.bool_))
        for row in range(len(self._envs)):
            if self._done[row]:
                now.obs[row], now.start[row], self._done[row] = self._begin(row), True, False
                final[row] = now.obs[row]
                continue
            if self._lost[row]:
                now.truncated[row], self._lost[row] = True, False
            else:
                raw, reward, now.terminated[row], now.truncated[row], info = self._envs[row].step(moves[row])
                self._history[row].append(actions[row])
                now.obs[row] = self._reader.obs(raw, row)
                now.reward[row], now.cost[row] = self._reader.reward(reward, row), self._reader.cost(info, row)
            final[row] = now.obs[row]
            self._done[row] = now.terminated[row] or now.truncated[row]
            if self._same_step and self._done[row]:
                now.obs[row], now.start[row], self._done[row] = self._begin(row), True, False
        self._obs = now.obs
        return Step(**vars(now) | {"final_obs": final if self._same_step else None})

    def state(self) -> dict[str, Tensor]:
        if self._obs is None:
            raise RuntimeError("call reset before state_dict")
        longest = max(map(len, self._history))
        spec = self._actions.spec
        shape, dtype = ((), np.int64) if spec.kind == "discrete" else ((spec.size,), np.float32)
        actions = np.zeros((len(self._envs), longest, *shape), dtype)
        for row, history in enumerate(self._history):
            for t, action in enumerate(history):
                actions[row, t] = action
        arrays = {
            "seed": np.array([self._seed]),
            "episode": self._episode,
            "length": np.array([len(history) for history in self._history]),
            "actions": actions,
            "done": self._done,
            "lost": self._lost,
            "obs": self._obs,
        }
        return {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}

    def restore(self, state: dict[str, Tensor]) -> None:
        saved = {name: tensor.numpy(force=True).copy() for name, tensor in state.items()}
        if len(saved["episode"]) != len(self._envs):
            raise ValueError(f"the state has {len(saved['episode'])} rows, but there are {len(self._envs)}")
        self._seed, self._episode, self._obs = int(saved["seed"][0]), saved["episode"], saved["obs"]
        self._done, self._lost = saved["done"], saved["lost"]
        self._history = [list(saved["actions"][row, :n]) for row, n in enumerate(saved["length"])]
        moved = [row for row in np.flatnonzero(~self._done & ~self._lost) if not self._replay(int(row))]
        if moved:
            warnings.warn(
                f"'{self._reader.id}' is not deterministic: the episodes of rows {list(map(int, moved))} cannot be "
                "restored, and are cut off where they were",
                stacklevel=2,
            )
            self._lost[moved] = True

    def close(self) -> None:
        for env in self._envs:
            env.close()

    def _begin(self, row: int) -> NDArray[Any]:
        self._episode[row] += 1
        self._history[row] = []
        return self._restart(row)

    def _restart(self, row: int) -> NDArray[Any]:
        stream = derive(self._seed, "row", str(row), "episode", str(self._episode[row]))
        raw, _ = self._envs[row].reset(seed=stream % 2**31)  # older generators take no more than 32 bits
        return self._reader.obs(raw, row)

    def _replay(self, row: int) -> bool:
        """Bring one row to where it was; False if the world went another way."""
        assert self._obs is not None
        obs = self._restart(row)
        for action in self._history[row]:
            batch = np.repeat(action[None], len(self._envs), axis=0)
            raw, _, terminated, truncated, _ = self._envs[row].step(self._actions.to_env(batch, len(batch))[row])
            if terminated or truncated:
                return False
            obs = self._reader.obs(raw, row)
        return bool(np.array_equal(obs, self._obs[row]))
