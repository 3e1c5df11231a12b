"""Safety-Gymnasium's SafetyPointGoal0-v0 and SafetyPointGoal1-v0, batched: ordinary safe RL with a limit on the cost.

As in the adapter there is one cell, and it *is* the cost: ``touched[n, 0]`` is what the step was charged.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from framework.hookspecs import hookimpl
from framework.interfaces.env import ConstraintEnv, Split
from framework.interfaces.types import ActionSpec, EnvSpec, Labels, ObservationSpec, Timestep
from hazardworld.robot.point import ENGINES, MAX_STEPS, TASKS, PointStep, PointWorlds
from hazardworld.robot.things import BINS, HAZARDS, SENSORS
from plugins.envs._robot_state import pack, unpack

PICTURE = 320
"""Width and height of a frame, in pixels."""


@dataclass(frozen=True)
class SafetyPointConfig:
    task: str = "goal1"
    """goal0: a goal on an empty floor; goal1: with eight hazards that cost 1 a step, and a vase."""
    limit: int = 25
    """h_C: the total cost that an episode may have."""
    engine: str = "fast"
    """fast: a closed form where nothing is near, MuJoCo with what is near otherwise; exact: MuJoCo all the time."""
    max_steps: int = MAX_STEPS
    """An episode is cut off after this many control steps of 20 ms."""
    train_maps: int = 10_000
    """How many layouts training draws from."""
    eval_maps: int = 1_000
    """How many layouts evaluation goes through."""
    map_seed: int = 0
    """Names the set of layouts."""

    def __post_init__(self) -> None:
        for name, known in (("task", TASKS), ("engine", ENGINES)):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} is {getattr(self, name)!r}, but must be one of {', '.join(known)}")
        for name, least in (("max_steps", 1), ("train_maps", 1), ("eval_maps", 1), ("limit", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} is {getattr(self, name)}, but must be at least {least}")


class SafetyPoint(ConstraintEnv):
    """Safety-Gymnasium's Point robot: goals without end, hazards that cost; a limit on the total cost."""

    name = "safety_point"
    requires: ClassVar[dict[str, str]] = {
        "mujoco": "mujoco",
        "xmltodict": "xmltodict",
        "safety_gymnasium": "--no-deps safety-gymnasium==1.0.0",  # its own pins cannot be met (docs/install.md)
    }
    Config: ClassVar[type] = SafetyPointConfig
    kinds: ClassVar[tuple[str, ...]] = ("limit",)

    def __init__(self, config: SafetyPointConfig, rows: int, split: Split, seed: int) -> None:
        super().__init__(config, rows, split, seed)
        self._worlds = PointWorlds(
            config.task,
            rows,
            split=split,
            engine=config.engine,
            maps=config.train_maps if split == "train" else config.eval_maps,
            map_seed=config.map_seed,
            max_steps=config.max_steps,
            seed=seed % 2**63,
        )

    @property
    def spec(self) -> EnvSpec:
        lidars = [(f"{name}_lidar", BINS) for name in self._worlds.task.lidars]
        return EnvSpec(
            observation=ObservationSpec(
                "vector", (self._worlds.size,), parts=(*((name, 3) for name in SENSORS), *lidars)
            ),
            action=ActionSpec("continuous", 2),
            cells=(1,),
            constraints=1,
            max_threshold=self.config.limit,
            max_steps=self.config.max_steps,
            entities=("cost",),
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        return (f"Keep the total cost at or below {self.config.limit}.",)

    @classmethod
    def other_maps(cls, config: Any) -> Any:
        return dataclasses.replace(config, map_seed=config.map_seed + 1)

    def reset(self) -> Timestep:
        return self._show(self._worlds.reset())

    def step(self, actions: Tensor) -> Timestep:
        return self._show(self._worlds.step(actions.numpy(force=True).astype(np.float64)))

    def labels(self) -> Labels:
        return Labels(torch.ones(self.rows, 1, 1), self._limit())

    def state_dict(self) -> dict[str, Tensor]:
        return pack(self._worlds.state())

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        self._worlds.restore(unpack(state, self._worlds.state()))

    def frame(self, row: int, mask: Tensor | None = None) -> NDArray[np.uint8]:
        from hazardworld.robot.picture import draw

        forbidden = mask is not None and bool(mask[0] > 0.5)
        return draw(self._worlds.scene(row), PICTURE, [(HAZARDS, 0.0)] if forbidden else [])

    def action_names(self) -> tuple[str, ...]:
        return ("drive", "turn")

    def _limit(self) -> Tensor:
        return torch.full((self.rows, 1), float(self.config.limit))

    def _show(self, step: PointStep) -> Timestep:
        tensors = {name: torch.from_numpy(array) for name, array in step._asdict().items()}
        cost = tensors.pop("cost")[:, None]
        nothing = torch.zeros(self.rows, 1, dtype=torch.int64)
        return Timestep(**tensors, text=nothing, kind=nothing, cost=cost, touched=cost.clone(), threshold=self._limit())


@hookimpl
def heed_components() -> list[type[ConstraintEnv]]:
    return [SafetyPoint]
