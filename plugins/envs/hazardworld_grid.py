"""HazardWorld-grid for the framework: a thin coat over ``hazardworld.engine``."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from framework.hookspecs import hookimpl
from framework.interfaces.env import ConstraintEnv, Split
from framework.interfaces.playground import Playground
from framework.interfaces.types import ActionSpec, EnvSpec, Labels, ObservationSpec, Timestep
from hazardworld.arrays import Step
from hazardworld.constraint import ENTITIES, KINDS, MAX_BUDGET
from hazardworld.engine import ACTIONS, Engine
from hazardworld.kernels import VIEW
from hazardworld.lavawall import LavaWallRecipe
from hazardworld.maps import Recipe
from hazardworld.objects import LEVELS, encoding
from hazardworld.pictures import draw, scene_of
from hazardworld.rewards import worths
from hazardworld.sentences import SentenceTable, digest
from plugins.texts.probes import PROBES


@dataclass(frozen=True)
class HazardWorldGridConfig:
    constraint: str = "budgetary"
    """Which sentences there are: budgetary, relational, sequential, or mixed."""
    actions: str = "compass"
    """compass: right, down, left, up; turn: MiniGrid's left, right, forward, pick up."""
    reward: str | tuple[float, float, float] = "train"
    """Worth of ball, box and key: train (1, 2, 3), transfer (1, 2, -3), or three numbers."""
    density: float = 0.4
    """Share of the cells inside the walls that are hazards."""
    size: int = 13
    """Cells along a side of the map, outer walls included."""
    max_steps: int = 200
    """An episode is cut off after this many steps."""
    constraints: int = 1
    """K: how many distinct constraints hold at once."""
    train_maps: int = 10_000
    """How many maps training draws from (the paper's D_train)."""
    eval_maps: int = 5_000
    """How many maps evaluation goes through (the paper's D_eval)."""
    map_seed: int = 0
    """Names the map set; equal seeds give equal maps, whatever the run's seed."""
    texts: str | None = field(default=None, metadata={"path": True})
    """Folder with <kind>-train.json and <kind>-test.json, relative to the registry; null: those that come with Heed."""
    eval_probe: str | None = None
    """Change the evaluation sentences in one respect (typos, synonyms, other_number, ...; plugins/texts/probes.py)."""
    threads: int = 1
    """Threads that step the rows; 1 leaves the other cores to torch."""

    def __post_init__(self) -> None:
        if self.actions not in ACTIONS:
            raise ValueError(f"actions is {self.actions!r}, but must be one of {', '.join(ACTIONS)}")
        for name in ("max_steps", "train_maps", "eval_maps", "threads"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}, but must be at least 1")
        if self.eval_probe is not None and self.eval_probe not in PROBES:
            raise ValueError(f"eval_probe is {self.eval_probe!r}, but must be one of {', '.join(PROBES)}")
        worths(self.reward)
        Recipe(self.constraint, size=self.size, density=self.density, constraints=self.constraints)


class HazardWorldGrid(ConstraintEnv):
    """13x13 grid of lava, water and grass; collect ball, box and key as the sentence allows."""

    name = "hazardworld_grid"
    Config: ClassVar[type] = HazardWorldGridConfig
    kinds: ClassVar[tuple[str, ...]] = KINDS
    not_for_reading: ClassVar[frozenset[str]] = frozenset({"reward", "eval_maps", "eval_probe", "threads"})
    text_kind: ClassVar[str | None] = None
    """Fixed kind of sentence; None: as the config says."""

    def __init__(self, config: HazardWorldGridConfig, rows: int, split: Split, seed: int) -> None:
        super().__init__(config, rows, split, seed)
        folder = None if config.texts is None else Path(config.texts)
        probe = getattr(config, "eval_probe", None)
        self._table = SentenceTable.load(self.text_kind or config.constraint, split, folder, probe)
        count = config.train_maps if split == "train" else config.eval_maps
        self._engine = Engine(
            self._recipe().generate(range(count)),
            self._table,
            rows,
            actions=config.actions,
            reward=config.reward,
            max_steps=config.max_steps,
            order="random" if split == "train" else "sequential",
            seed=seed,
            threads=config.threads,
        )

    def _recipe(self) -> Recipe | LavaWallRecipe:
        c = self.config
        return Recipe(c.constraint, self.split, c.map_seed, c.size, c.density, c.constraints, self._table.classes)

    @property
    def spec(self) -> EnvSpec:
        return EnvSpec(
            observation=ObservationSpec(
                "codes", (VIEW, VIEW, 3), LEVELS, tuple(sorted(int(c) for c in encoding()[:, 0]))
            ),
            action=ActionSpec("discrete", 4),
            cells=(VIEW, VIEW),
            constraints=self.config.constraints,
            max_threshold=MAX_BUDGET,
            max_steps=self.config.max_steps,
            entities=ENTITIES,
            entity_codes=tuple(int(code) for code in encoding()[1:4, 0]),
            agent_cell=(VIEW // 2, VIEW // 2 if self.config.actions == "compass" else VIEW - 1),
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        return self._table.sentences

    @classmethod
    def content(cls, config: Any) -> str:
        return digest(cls.text_kind or config.constraint, config.texts)

    @classmethod
    def other_maps(cls, config: Any) -> Any:
        return dataclasses.replace(config, map_seed=config.map_seed + 1)

    def reset(self) -> Timestep:
        return self._show(self._engine.reset())

    def step(self, actions: Tensor) -> Timestep:
        return self._show(self._engine.step(actions.numpy(force=True)))

    def labels(self) -> Labels:
        return Labels(
            mask=torch.from_numpy(self._engine.mask().astype(np.float32)),
            threshold=torch.from_numpy(self._engine.threshold()),
            trespass=torch.from_numpy(self._engine.cost().copy()),
        )

    def ceiling(self, gamma: float = 1.0) -> Tensor:
        return torch.from_numpy(self._engine.ceiling(gamma))

    def state_dict(self) -> dict[str, Tensor]:
        state = self._engine.state()
        state["rng"] = state["rng"].view(np.int64)  # checkpoints hold no unsigned 64-bit numbers
        return {name: torch.from_numpy(array) for name, array in state.items()}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        arrays = {name: tensor.numpy(force=True) for name, tensor in state.items()}
        if "rng" in arrays:
            arrays["rng"] = arrays["rng"].view(np.uint64)
        self._engine.restore(arrays)

    def frame(self, row: int, mask: Tensor | None = None) -> NDArray[np.uint8]:
        scene = scene_of(self._engine, row, self.config.actions == "compass")
        return draw(scene, None if mask is None else mask.numpy(force=True))

    def action_names(self) -> tuple[str, ...]:
        compass = self.config.actions == "compass"
        return ("right", "down", "left", "up") if compass else ("left", "right", "forward", "pick up")

    @classmethod
    def playground(
        cls, config: Any, sentences: Sequence[str], seed: int, layout: str | None, distances: Mapping[str, int]
    ) -> Playground | None:
        from plugins.envs._grid_playground import GridPlayground  # which builds upon this class

        return GridPlayground(config, sentences, seed, layout, distances)

    def _show(self, step: Step) -> Timestep:
        """Copies, because the engine writes its next step into the same arrays and rollouts keep every step."""
        copies = {name: torch.from_numpy(array.copy()) for name, array in step._asdict().items()}
        threshold, kind = self._engine.threshold(), self._engine.kind()  # these two are fresh arrays already
        return Timestep(**copies, threshold=torch.from_numpy(threshold), kind=torch.from_numpy(kind))


@hookimpl
def heed_components() -> list[type[ConstraintEnv]]:
    return [HazardWorldGrid]


@hookimpl
def heed_agents() -> list[Path]:
    return [Path(__file__).parent.parent / "agents"]
