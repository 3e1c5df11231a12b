"""HazardWorld-robot for the framework: a thin coat over ``hazardworld.robot``."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from framework.hookspecs import hookimpl
from framework.interfaces.env import ConstraintEnv, Split
from framework.interfaces.types import ActionSpec, EnvSpec, Labels, ObservationSpec, Timestep
from hazardworld.constraint import KINDS, ROBOT
from hazardworld.robot.things import BINS, HAZARDS, LIDARS, MAX_DISTANCE, OBSERVATION, RADIUS, ROBOT_RADIUS, SENSORS
from hazardworld.robot.worlds import CELLS, ENGINES, REWARDS, RobotWorlds, WorldStep
from hazardworld.sentences import SentenceTable, digest
from plugins.envs._robot_state import pack, unpack

PICTURE = 320
"""Width and height of a frame, in pixels."""


@dataclass(frozen=True)
class HazardWorldRobotConfig:
    constraint: str = "budgetary"
    """Which sentences there are: budgetary, relational, sequential, or mixed."""
    reward: str = "train"
    """train: one goal worth 4; transfer: four more, so 20 at the most."""
    dense: bool = True
    """A goal's worth is paid out as the robot gets nearer (and back when it turns away), not all at the end."""
    engine: str = "fast"
    """fast: a closed form where nothing is near, MuJoCo with what is near otherwise; exact: MuJoCo all the time."""
    max_steps: int = 400
    """An episode is cut off after this many control steps of 20 ms."""
    repeat: int = 1
    """Control steps that an action is held; each counts for cost and for max_steps. More: fewer decisions to learn."""
    constraints: int = 1
    """K: how many distinct constraints hold at once."""
    train_maps: int = 10_000
    """How many maps training draws from (the paper's D_train)."""
    eval_maps: int = 1_000
    """How many maps evaluation goes through (the paper's D_eval)."""
    map_seed: int = 0
    """Names the map set; equal seeds give equal maps, whatever the run's seed."""
    texts: str | None = field(default=None, metadata={"path": True})
    """Folder with <kind>-train.json and <kind>-test.json, relative to the registry; null: those that come with Heed."""

    def __post_init__(self) -> None:
        for name, known in (("engine", ENGINES), ("reward", REWARDS), ("constraint", (*KINDS, "mixed"))):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} is {getattr(self, name)!r}, but must be one of {', '.join(known)}")
        for name in ("max_steps", "train_maps", "eval_maps", "constraints", "repeat"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}, but must be at least 1")


class HazardWorldRobot(ConstraintEnv):
    """Safety-Gymnasium's point robot among hazards, vases, pillars, buttons and gremlins; reach the goal."""

    name = "hazardworld_robot"
    requires: ClassVar[dict[str, str]] = {
        "mujoco": "mujoco",
        "xmltodict": "xmltodict",
        "safety_gymnasium": "--no-deps safety-gymnasium==1.0.0",  # its own pins cannot be met (docs/install.md)
    }
    Config: ClassVar[type] = HazardWorldRobotConfig
    kinds: ClassVar[tuple[str, ...]] = KINDS
    not_for_reading: ClassVar[frozenset[str]] = frozenset({"reward", "dense", "eval_maps", "engine"})

    def __init__(self, config: HazardWorldRobotConfig, rows: int, split: Split, seed: int) -> None:
        super().__init__(config, rows, split, seed)
        folder = None if config.texts is None else Path(config.texts)
        self._table = SentenceTable.load(config.constraint, split, folder, domain=ROBOT)
        self._worlds = RobotWorlds(
            config.constraint,
            self._table,
            rows,
            split=split,
            engine=config.engine,
            reward=config.reward,
            constraints=config.constraints,
            maps=config.train_maps if split == "train" else config.eval_maps,
            map_seed=config.map_seed,
            max_steps=config.max_steps,
            seed=seed % 2**63,
            dense=config.dense,
            repeat=config.repeat,
        )

    @property
    def spec(self) -> EnvSpec:
        parts = [(name, 3) for name in SENSORS] + [(f"{name}_lidar", BINS) for name in LIDARS] + [("goal_distance", 1)]
        return EnvSpec(
            observation=ObservationSpec("vector", (OBSERVATION,), parts=tuple(parts)),
            action=ActionSpec("continuous", 2),
            cells=CELLS,
            constraints=self.config.constraints,
            max_threshold=ROBOT.budgets[-1],
            max_steps=-(-self.config.max_steps // self.config.repeat),
            entities=ROBOT.entities,
            lidar_edges=_lidar_edges(),
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        return self._table.sentences

    @classmethod
    def content(cls, config: Any) -> str:
        return digest(config.constraint, config.texts)

    @classmethod
    def other_maps(cls, config: Any) -> Any:
        return dataclasses.replace(config, map_seed=config.map_seed + 1)

    def reset(self) -> Timestep:
        return self._show(self._worlds.reset())

    def step(self, actions: Tensor) -> Timestep:
        return self._show(self._worlds.step(actions.numpy(force=True).astype(np.float64)))

    def labels(self) -> Labels:
        mask = torch.from_numpy(self._worlds.mask().astype(np.float32))
        return Labels(mask, torch.from_numpy(self._worlds.threshold()))

    def state_dict(self) -> dict[str, Tensor]:
        return pack(self._worlds.state())

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        self._worlds.restore(unpack(state, self._worlds.state()))

    def frame(self, row: int, mask: Tensor | None = None) -> NDArray[np.uint8]:
        from hazardworld.robot.picture import draw

        metres = (0.0, *(distance / 100 for distance in ROBOT.distances))
        cells = [] if mask is None else (mask > 0.5).nonzero().tolist()
        return draw(self._worlds.scene(row), PICTURE, [(entity, metres[level]) for entity, level in cells])

    def action_names(self) -> tuple[str, ...]:
        return ("drive", "turn")

    def _show(self, step: WorldStep) -> Timestep:
        columns = {name: torch.from_numpy(array) for name, array in step._asdict().items()}
        threshold, kind = self._worlds.threshold(), self._worlds.kind()
        return Timestep(**columns, threshold=torch.from_numpy(threshold), kind=torch.from_numpy(kind))


def _lidar_edges() -> tuple[tuple[float, ...], ...]:
    """Lidars measure from middle to middle; rules, from rim to rim. A robot is in a hazard when its middle is."""
    metres = RADIUS[:, None] + ROBOT_RADIUS + np.array([0, *ROBOT.distances]) / 100
    metres[HAZARDS, 0] = RADIUS[HAZARDS]
    return tuple(tuple(row) for row in (1 - metres / MAX_DISTANCE).tolist())


@hookimpl
def heed_components() -> list[type[ConstraintEnv]]:
    return [HazardWorldRobot]
