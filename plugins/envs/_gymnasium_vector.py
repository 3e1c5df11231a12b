"""Vector environments: Gymnasium's processes (async), or a vector form of the environment's own.

They reset their rows by themselves, so a single episode cannot be replayed. After ``restore`` the first step cuts every
running episode off (truncated) at the observation where it was, and all rows start over.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import iterate
from numpy.typing import NDArray
from torch import Tensor

from framework.seeding import derive
from plugins.envs._gymnasium_reader import Reader, Step
from plugins.envs._gymnasium_spaces import ActionCodec

Array = NDArray[Any]


class Vector:
    """N rows in one Gymnasium vector environment."""

    def __init__(
        self,
        env: VectorEnv[Any, Any, Any],
        reader: Reader,
        actions: ActionCodec,
        same_step: bool,
        seed: int,
        max_steps: int,
    ) -> None:
        self._env, self._reader, self._actions, self._same_step = env, reader, actions, same_step
        self._own_seed = self._seed = seed
        self._max_steps = max_steps
        self._steps = 0
        self._length = np.zeros(env.num_envs, np.int64)
        self._done = np.zeros(env.num_envs, np.bool_)
        self._obs: Array | None = None
        self._restored = False  # the next step cuts off what was running
        self._waiting: Array | None = None  # first observations of rows that were cut off, to be shown in the next step

    def reset(self) -> Step:
        self._seed, self._steps, self._restored, self._waiting = self._own_seed, 0, False, None
        self._obs = self._fresh()
        return Step.silent(self._obs, np.ones(self._env.num_envs, np.bool_))

    def step(self, actions: Array) -> Step:
        moves = self._actions.to_env(actions, self._env.num_envs)
        if self._obs is None:
            raise RuntimeError("call reset before step")
        self._steps += 1
        if self._restored:
            now = self._cut_off()
        elif self._waiting is not None:
            now, self._waiting = Step.silent(self._waiting, self._done), None
        else:
            now = self._move(moves)
        self._obs = now.obs
        self._done = np.zeros_like(self._done) if self._same_step else now.terminated | now.truncated
        return now

    def state(self) -> dict[str, Tensor]:
        if self._obs is None:
            raise RuntimeError("call reset before state_dict")
        arrays = {"seed": np.array([self._seed]), "steps": np.array([self._steps]), "obs": self._obs}
        return {name: torch.from_numpy(array.copy()) for name, array in (arrays | {"done": self._done}).items()}

    def restore(self, state: dict[str, Tensor]) -> None:
        if len(state["done"]) != self._env.num_envs:
            raise ValueError(f"the state has {len(state['done'])} rows, but there are {self._env.num_envs}")
        self._seed, self._steps = int(state["seed"][0]), int(state["steps"][0])
        self._obs, self._done = state["obs"].numpy(force=True).copy(), state["done"].numpy(force=True).copy()
        self._restored, self._waiting = True, None

    def close(self) -> None:
        self._env.close()

    def _fresh(self) -> Array:
        """Reset all rows, from a seed that no earlier reset of this run has used."""
        raw, _ = self._env.reset(seed=derive(self._seed, "reset", str(self._steps)) % 2**31)
        self._length[:] = 0
        return self._encode(raw)

    def _encode(self, raw: Any) -> Array:
        return np.stack([self._reader.obs(one, row) for row, one in enumerate(_rows(self._env, raw))])

    def _move(self, moves: Array) -> Step:
        raw, reward, terminated, truncated, info = self._env.step(moves)
        obs, terminated, truncated = self._encode(raw), np.array(terminated, bool), np.array(truncated, bool)
        ended = terminated | truncated
        start = ended if self._same_step else self._done
        now = Step.silent(obs, start.copy(), terminated=terminated, truncated=truncated)
        for row in np.flatnonzero(~self._done).tolist():  # the others were reset just now: nothing was earned
            now.reward[row] = self._reader.reward(reward[row], row)
            now.cost[row] = self._reader.vector_cost(info, row, self._same_step and bool(ended[row]))
        self._length = np.where(self._done, 0, self._length + 1)
        if (self._length > self._max_steps).any():
            row = int(np.argmax(self._length))
            raise ValueError(
                f"row {row}: an episode of '{self._reader.id}' is longer than max_steps = {self._max_steps}"
            )
        if not self._same_step:
            return now
        self._length[ended] = 0
        return Step(**vars(now) | {"final_obs": self._final(obs, ended, info)})

    def _final(self, obs: Array, ended: Array, info: dict[str, Any]) -> Array:
        final = obs.copy()
        if ended.any():
            if "final_obs" not in info:
                raise ValueError(f"'{self._reader.id}' resets within the step but reports no info['final_obs']")
            raw = info["final_obs"]  # one object for each row, or a batch like obs
            single = isinstance(raw, np.ndarray) and raw.dtype == object
            rows = list(raw) if single else _rows(self._env, raw)
            for row in np.flatnonzero(ended).tolist():
                final[row] = self._reader.obs(rows[row], row)
        return final

    def _cut_off(self) -> Step:
        """The first step after ``restore``. Rows that were done start as they would have, and then wait for the rest,
        so that all rows of the vector environment stand at the same reset."""
        assert self._obs is not None
        self._restored = False
        fresh, running = self._fresh(), ~self._done
        if self._same_step:
            return Step.silent(fresh, running, truncated=running.copy(), final_obs=self._obs)
        self._waiting = fresh if running.any() else None
        shown = np.where(running.reshape(-1, *[1] * (fresh.ndim - 1)), self._obs, fresh)
        return Step.silent(shown, self._done.copy(), truncated=running)


def _rows(env: VectorEnv[Any, Any, Any], raw: Any) -> list[Any]:
    return list(iterate(env.observation_space, raw))


def autoreset_of(env: VectorEnv[Any, Any, Any], wanted: str | None, name: str) -> bool:
    """True if rows are reset within the step; refuses environments that leave it to the caller."""
    mode = env.metadata.get("autoreset_mode")
    if mode is None and wanted is None:
        raise ValueError(f"'{name}' does not say when its rows start over; set autoreset to next_step or same_step")
    own = AutoresetMode(mode).name.lower() if mode is not None else wanted
    if own == "disabled":
        raise ValueError(f"'{name}' does not start its rows over (autoreset DISABLED), which Heed does not support")
    if wanted not in (None, own):
        raise ValueError(f"autoreset is {wanted}, but the vector form of '{name}' has {own}; set autoreset to null")
    return own == "same_step"
