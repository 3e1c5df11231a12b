"""LavaWall for the framework: HazardWorld's engine on maps with one wall and one gap."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from framework.hookspecs import hookimpl
from framework.interfaces.env import ConstraintEnv
from hazardworld.engine import ACTIONS
from hazardworld.lavawall import LavaWallRecipe
from hazardworld.rewards import worths
from plugins.envs.hazardworld_grid import HazardWorldGrid


@dataclass(frozen=True)
class LavaWallConfig:
    actions: str = "compass"
    """compass: right, down, left, up; turn: MiniGrid's left, right, forward, pick up."""
    reward: str | tuple[float, float, float] = "train"
    """Worth of ball, box and key: train (1, 2, 3), transfer (1, 2, -3), or three numbers."""
    size: int = 13
    """Cells along a side of the map, outer walls included."""
    max_steps: int = 200
    """An episode is cut off after this many steps."""
    constraints: int = 1
    """K: how many distinct budgets on the wall's kind hold at once."""
    train_maps: int = 10_000
    """How many maps training draws from."""
    eval_maps: int = 5_000
    """How many maps evaluation goes through."""
    map_seed: int = 0
    """Names the map set; equal seeds give equal maps, whatever the run's seed."""
    texts: str | None = field(default=None, metadata={"path": True})
    """Folder with budgetary-train.json and budgetary-test.json, relative to the registry; null: those of Heed."""
    threads: int = 1
    """Threads that step the rows; 1 leaves the other cores to torch."""

    def __post_init__(self) -> None:
        if self.actions not in ACTIONS:
            raise ValueError(f"actions is {self.actions!r}, but must be one of {', '.join(ACTIONS)}")
        for name in ("max_steps", "train_maps", "eval_maps", "threads"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}, but must be at least 1")
        worths(self.reward)
        LavaWallRecipe(size=self.size, constraints=self.constraints)


class LavaWall(HazardWorldGrid):
    """A wall of lava, water or grass with one gap; the budget says whether to walk through it or round it."""

    name = "lavawall"
    Config: ClassVar[type] = LavaWallConfig
    text_kind: ClassVar[str | None] = "budgetary"

    def _recipe(self) -> LavaWallRecipe:
        c = self.config
        return LavaWallRecipe(self.split, c.map_seed, c.size, c.constraints, self._table.classes)

    @classmethod
    def playground(cls, *_: Any, **__: Any) -> None:
        """None: its wall is not for drawing."""


@hookimpl
def heed_components() -> list[type[ConstraintEnv]]:
    return [LavaWall]
