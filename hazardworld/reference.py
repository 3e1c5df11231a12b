"""The worlds as Gymnasium environments, written plainly on top of MiniGrid.

This is the readable statement of the rules and the thing to render or wrap. ``engine.py`` is the fast statement. They
share data (maps, the list of constraints, the objects' encoding and worths) but no rule: how one moves, sees, collects,
pays and ends is written in each, and tests/hazardworld/test_grid_parity.py compares them step by step.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from minigrid.core.actions import Actions
from minigrid.core.grid import Grid
from minigrid.core.world_object import WorldObj
from minigrid.minigrid_env import MiniGridEnv
from numpy.typing import NDArray

from hazardworld.constraint import ALL_CLASSES, CLASS_ID, ENTITIES, Constraint, forbidden, suggest
from hazardworld.lavawall import LavaWallRecipe
from hazardworld.maps import COUNTS, MapSet, Recipe
from hazardworld.objects import TERRAIN_OBJECTS, reward_objects
from hazardworld.rewards import OBJECTS, worths
from hazardworld.sentences import SentenceTable
from hazardworld.view import CentredView

ACTIONS = ("compass", "turn")


class HazardWorldEnv(CentredView, MiniGridEnv):
    """Collect ball, box and key without doing what the mission forbids.

    ``actions``: ``compass`` (right, down, left, up; objects are collected by walking onto them; centred view) or
    ``turn`` (MiniGrid's left, right, forward, pickup; objects block the way; MiniGrid's view to the front).
    ``maps``: a set of your own instead of the generated one. ``labels=False`` leaves the mask out of ``info``.
    The true budget and mask are in ``info`` only: nothing in the observation tells them.
    """

    def __init__(
        self,
        kind: str = "budgetary",
        actions: str = "compass",
        reward: str | Sequence[float] = "train",
        density: float = 0.4,
        size: int = 13,
        split: str = "train",
        constraints: int = 1,
        max_steps: int = 200,
        map_seed: int = 0,
        texts: Path | str | None = None,
        maps: MapSet | None = None,
        labels: bool = True,
        **kwargs: Any,
    ) -> None:
        if actions not in ACTIONS:
            raise ValueError(f"unknown actions {actions!r}{suggest(actions, ACTIONS)}")
        self.compass = actions == "compass"
        self.worths = worths(reward)
        self.labels = labels
        self.own_maps = maps
        self.table = SentenceTable.load(kind, split, texts)
        self.map_count = COUNTS[split] if maps is None else len(maps)
        if maps is None:
            self.recipe = self._recipe(kind, split, map_seed, size, density, constraints)
        else:
            size, constraints = maps.size, maps.constraints
        longest = max(map(len, self.table.sentences))
        super().__init__(
            mission_space=spaces.Text(
                max_length=(longest + 1) * constraints,
                charset=frozenset("\n").union(*self.table.sentences),
            ),
            grid_size=size,
            max_steps=max_steps,
            see_through_walls=True,
            **kwargs,
        )
        self.action_space = spaces.Discrete(4)
        self._wanted_map: int | None = None

    def _recipe(
        self, kind: str, split: str, seed: int, size: int, density: float, constraints: int
    ) -> Recipe | LavaWallRecipe:
        return Recipe(kind, split, seed, size, density, constraints, self.table.classes)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """``options={"map": i}`` plays map i; otherwise the seed decides."""
        wanted = (options or {}).get("map")
        if wanted is not None and not 0 <= wanted < self.map_count:
            raise ValueError(f"options['map'] is {wanted}, but this split has maps 0..{self.map_count - 1}")
        self._wanted_map = wanted
        obs, _ = super().reset(seed=seed)
        return obs, self._info(obs["image"], [0.0] * len(self.constraints), None)

    def _gen_grid(self, width: int, height: int) -> None:
        self.map_index = int(self.np_random.integers(self.map_count)) if self._wanted_map is None else self._wanted_map
        maps = self.recipe.generate([self.map_index]) if self.own_maps is None else self.own_maps
        row = 0 if self.own_maps is None else self.map_index

        self.terrain = maps.terrain[row]
        self.grid = Grid(width, height)
        for y, x in np.argwhere(self.terrain):
            self.put_obj(TERRAIN_OBJECTS[int(self.terrain[y, x])](), x, y)
        self.objects: dict[WorldObj, int] = {}
        start, *places = maps.points[row]
        for item, (place, thing) in enumerate(zip(places, reward_objects(), strict=True)):
            self.put_obj(thing, *place)
            self.objects[thing] = item
        self.agent_pos, self.agent_dir = (int(start[0]), int(start[1])), int(maps.direction[row])

        self.constraints: list[Constraint] = [ALL_CLASSES[class_id] for class_id in maps.classes[row]]
        self.condition_met = [False] * len(self.constraints)
        self.collected: list[str] = []
        self.mission = "\n".join(self._draw_sentence(constraint) for constraint in self.constraints)

    def _draw_sentence(self, constraint: Constraint) -> str:
        start, count = self.table.start[CLASS_ID[constraint]], self.table.count[CLASS_ID[constraint]]
        if not count:
            raise ValueError(f"the texts have no sentence for the {constraint.kind} constraint {constraint.label!r}")
        return self.table.sentences[int(start + self.np_random.integers(count))]

    def step(self, action: int) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        if not 0 <= action < 4:
            raise ValueError(f"action {action} is outside 0..3")
        if self.compass:
            self.agent_dir = int(action)
        target = (int(self.front_pos[0]), int(self.front_pos[1]))
        seen_at = self.relative_coords(*target)
        ahead = self.grid.get(*target)

        reward = 0.0
        if ahead in self.objects and (self.compass or action == Actions.pickup):
            # Taken off the grid before MiniGrid moves: nothing is carried, and in `compass` nothing is in the way.
            self.grid.set(*target, None)
            item = self.objects.pop(ahead)
            self.collected.append(OBJECTS[item])
            reward = self.worths[item]

        before = self.agent_pos
        obs, _, _, _, _ = super().step(Actions.forward if self.compass else Actions(int(action)))
        entered = target if tuple(self.agent_pos) != tuple(before) else None
        costs = self._enter(entered) if entered else [0.0] * len(self.constraints)

        terminated = all(self.worths[item] <= 0 for item in self.objects.values())
        truncated = not terminated and self.step_count >= self.max_steps
        return obs, reward, terminated, truncated, self._info(obs["image"], costs, seen_at if entered else None)

    def _enter(self, cell: tuple[int, int]) -> list[float]:
        """Charge for a cell, then note what it was: the visit that fulfils a condition is judged as before it."""
        x, y = cell
        costs = [
            float(forbidden(self.terrain, constraint, met)[y, x])
            for constraint, met in zip(self.constraints, self.condition_met, strict=True)
        ]
        for k, constraint in enumerate(self.constraints):
            if constraint.first is not None and self.terrain[y, x] == 1 + ENTITIES.index(constraint.first):
                self.condition_met[k] = True
        return costs

    def true_mask(self, image: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """[K, 7, 7] bool, axes as the image's: M_C, from the terrain in view alone."""
        terrain = np.zeros(image.shape[:2], np.uint8)
        for code in range(1, 4):
            terrain[image[..., 0] == TERRAIN_OBJECTS[code]().encode()[0]] = code
        pairs = zip(self.constraints, self.condition_met, strict=True)
        return np.stack([forbidden(terrain, constraint, met) for constraint, met in pairs])

    def _info(self, image: NDArray[np.uint8], costs: list[float], touched: tuple[int, int] | None) -> dict[str, Any]:
        entered = np.zeros(image.shape[:2], bool)
        if touched is not None:
            entered[touched] = True
        info = {
            "cost": sum(costs),
            "costs": costs,
            "budget": [constraint.threshold for constraint in self.constraints],
            "kind": [constraint.kind for constraint in self.constraints],
            "constraint": [constraint.label for constraint in self.constraints],
            "collected": list(self.collected),
            "touched": entered,
            "map": self.map_index,
        }
        return info | {"mask": self.true_mask(image)} if self.labels else info


class LavaWallEnv(HazardWorldEnv):
    """Find the gap in a wall of lava, water or grass, or spend the budget on a straight way."""

    def _recipe(
        self, kind: str, split: str, seed: int, size: int, density: float, constraints: int
    ) -> Recipe | LavaWallRecipe:
        if kind != "budgetary":
            raise ValueError(f"LavaWall has budgetary constraints only, not {kind!r}")
        return LavaWallRecipe(split, seed, size, constraints, self.table.classes)
