"""HazardWorld the usual way: MiniGrid environments, one Python object each, under Gymnasium's SyncVectorEnv.

Not a plugin: the benchmark of training holds our engine against it, with all else equal.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import gymnasium
import numpy as np
import torch
from torch import Tensor

from framework.interfaces import ConstraintEnv, EnvSpec, Labels, Timestep
from hazardworld.constraint import KINDS
from hazardworld.reference import HazardWorldEnv
from plugins.envs.hazardworld_grid import HazardWorldGrid, HazardWorldGridConfig


class MiniGridRows(ConstraintEnv):
    """The same world as ``hazardworld_grid`` with budgetary constraints."""

    name = "minigrid_rows"
    kinds = KINDS

    def __init__(self, rows: int, seed: int) -> None:
        super().__init__(None, rows, "train", seed)
        ours = HazardWorldGrid(dataclasses.replace(HazardWorldGridConfig(), train_maps=1), 1, "train", 0)
        self._spec, self._sentences = ours.spec, ours.sentences
        self._id = {sentence: i for i, sentence in enumerate(self._sentences)}
        self._envs = gymnasium.vector.SyncVectorEnv([HazardWorldEnv] * rows)
        self._ended = np.zeros(rows, bool)

    @property
    def spec(self) -> EnvSpec:
        return self._spec

    @property
    def sentences(self) -> tuple[str, ...]:
        return self._sentences

    def reset(self) -> Timestep:
        obs, info = self._envs.reset(seed=self.seed)
        nothing = np.zeros(self.rows)
        return self._show(obs, nothing, nothing > 0, nothing > 0, info, nothing == 0)

    def step(self, actions: Tensor) -> Timestep:
        start = self._ended
        obs, reward, terminated, truncated, info = self._envs.step(actions.numpy())
        self._ended = terminated | truncated
        return self._show(obs, reward, terminated, truncated, info, start)

    def labels(self) -> Labels:
        return Labels(torch.from_numpy(self._info["mask"].astype(np.float32)), self._now.threshold)

    def state_dict(self) -> dict[str, Tensor]:
        raise NotImplementedError("a benchmark is not resumed")

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        raise NotImplementedError("a benchmark is not resumed")

    def _show(self, obs: Any, reward: Any, terminated: Any, truncated: Any, info: Any, start: Any) -> Timestep:
        self._info = info
        self._now = Timestep(
            obs=torch.from_numpy(obs["image"].copy()),
            text=torch.tensor([[self._id[mission]] for mission in obs["mission"]]),
            reward=torch.tensor(reward, dtype=torch.float32),
            cost=torch.tensor(np.stack(info["costs"]), dtype=torch.float32).view(self.rows, 1),
            threshold=torch.tensor(np.stack(info["budget"]), dtype=torch.float32).view(self.rows, 1),
            kind=torch.zeros(self.rows, 1, dtype=torch.int64),
            touched=torch.from_numpy(np.stack(info["touched"])),
            terminated=torch.from_numpy(terminated),
            truncated=torch.from_numpy(truncated),
            episode_start=torch.from_numpy(start),
        )
        return self._now
