"""HazardWorld-robot: an engine's worlds with a sentence each, and what those sentences forbid.

A mask cell is a pair (entity, distance): "touching vases", "within 40 cm of gremlins". ``touched`` says which of them a
move brought about, so cost is charged where a forbidden cell was touched, as on the grid. Every control step (20 ms)
in contact counts as a touch, as Safety-Gymnasium counts cost.

``after A, avoid B`` holds once the robot has left the first A that it touched: so that with A = B the whole of the
first contact is free, not just its first 20 ms. ``before A, avoid B`` is lifted at the same moment.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hazardworld.constraint import KINDS, ROBOT, all_classes, suggest
from hazardworld.rng import derive, key_of
from hazardworld.robot.arrays import RobotStep, Scene
from hazardworld.robot.exact import ExactEngine
from hazardworld.robot.fast import FastEngine
from hazardworld.robot.layout import COUNTS, Recipe
from hazardworld.robot.rows import RobotEngine
from hazardworld.robot.things import GOAL_RADIUS
from hazardworld.sentences import SentenceTable

CELLS = (len(ROBOT.entities), 1 + len(ROBOT.distances))
"""Rows: entities. Columns: contact, then each distance."""
GOAL_WORTH = 4.0
REWARDS = {"train": 1, "transfer": 5}
"""How many goals an episode has; each is worth 4."""
ENGINES: dict[str, type[RobotEngine]] = {"fast": FastEngine, "exact": ExactEngine}
AFTER, BEFORE = 1, 2


class WorldStep(NamedTuple):
    """What all rows show after a step; fresh arrays."""

    obs: NDArray[np.float32]  # [N, 109]
    text: NDArray[np.int64]  # [N, K] sentence numbers
    reward: NDArray[np.float32]  # [N]
    cost: NDArray[np.float32]  # [N, K]
    touched: NDArray[np.bool_ | np.float32]  # [N, *CELLS]; with ``repeat``, in how many control steps
    terminated: NDArray[np.bool_]  # [N]
    truncated: NDArray[np.bool_]  # [N]
    episode_start: NDArray[np.bool_]  # [N]


class RobotWorlds:
    """N rows. ``maps``: how many maps there are (default: the paper's 10,000 and 1,000).

    ``repeat``: control steps that an action is held. Each of them still counts for cost and for ``max_steps``; the
    sentence's order ("after A") is looked at after the last.
    """

    def __init__(
        self,
        kind: str,
        table: SentenceTable,
        rows: int,
        *,
        split: str = "train",
        engine: str = "fast",
        reward: str = "train",
        constraints: int = 1,
        maps: int | None = None,
        map_seed: int = 0,
        max_steps: int = 400,
        seed: int = 0,
        dense: bool = True,
        repeat: int = 1,
    ) -> None:
        if engine not in ENGINES:
            raise ValueError(f"unknown engine {engine!r}{suggest(engine, tuple(ENGINES))}")
        if reward not in REWARDS:
            raise ValueError(f"unknown reward {reward!r}{suggest(reward, tuple(REWARDS))}")
        said = [i for i, count in enumerate(table.count) if count]
        if not 1 <= constraints <= len(said):
            raise ValueError(f"constraints is {constraints}, but there are sentences for {len(said)} of them")
        if repeat < 1:
            raise ValueError(f"repeat is {repeat}, but must be at least 1")
        self.table, self.rows, self.constraints, self.dense, self.repeat = table, rows, constraints, dense, repeat
        count = COUNTS[split] if maps is None else maps
        kind_number = (*KINDS, "mixed").index(kind)
        self.classes = _draw_classes(key_of(map_seed, kind_number, split == "eval"), count, constraints, said)
        clear = np.zeros((count, len(ROBOT.entities)))
        for k in range(constraints):  # who must stay 60 cm away must be able to start, and to get there
            np.maximum.at(clear, (np.arange(count), _ENTITY[self.classes[:, k]]), _DISTANCE[self.classes[:, k]])
        self.engine = ENGINES[engine](
            Recipe(split, map_seed).generate(range(count), clear),
            rows,
            goals=REWARDS[reward],
            max_steps=max_steps,
            order="random" if split == "train" else "sequential",
            seed=seed,
        )
        self._key, self._sequential = np.array([key_of(seed, 1)], np.uint64), split == "eval"
        self._episodes = np.zeros(rows, np.int64)
        self._text = np.zeros((rows, constraints), np.int64)
        self._now = np.zeros((rows, constraints), np.int64)  # class ids
        self._touching = np.zeros((rows, len(ROBOT.entities)), np.bool_)
        self._met = np.zeros((rows, constraints), np.bool_)
        self._distance = np.zeros(rows)  # to the goal
        self._way = np.ones(rows)  # to that goal when it appeared

    def reset(self) -> WorldStep:
        self._episodes[:] = 0
        return self._show(self.engine.reset(), None)

    def begin_again(self) -> WorldStep:
        """All rows start their next episode now, finished or not."""
        return self._show(self.engine.begin_again(), None)

    def step(self, actions: NDArray[np.floating]) -> WorldStep:
        return self._show(self.engine.step(actions), actions)

    def _show(self, step: RobotStep, actions: NDArray[np.floating] | None) -> WorldStep:
        """What the rows show; first, ``repeat`` - 1 more control steps of those that have moved and are not done."""
        start = step.episode_start.copy()
        moved = ~start
        touched = self._cells(step) * moved[:, None, None].astype(np.float32)
        ever = self._touching | (step.touching & moved[:, None])
        reward = self._reward(step, np.ones(self.rows, np.bool_))
        for _ in range(self.repeat - 1):
            moved &= ~(step.terminated | step.truncated)
            if actions is None or not moved.any():
                break
            step = self.engine.step(actions, moved)
            touched += self._cells(step) & moved[:, None, None]
            ever |= step.touching & moved[:, None]
            reward += self._reward(step, moved)
        rows = np.arange(self.rows)[:, None]
        cost = self._active() * touched[rows, _ENTITY[self._now], _LEVEL[self._now]]
        first = _FIRST[self._now]
        left = ever[rows, first] & ~step.touching[rows, first]
        self._met |= left & (_ORDER[self._now] > 0)
        self._touching = step.touching.copy()
        for n in np.flatnonzero(start):
            self._begin(int(n))
        return WorldStep(
            obs=step.obs.astype(np.float32),
            text=self._text.copy(),
            reward=reward.astype(np.float32),
            cost=cost.astype(np.float32),
            touched=touched if self.repeat > 1 else touched > 0,
            terminated=step.terminated.copy(),
            truncated=step.truncated.copy(),
            episode_start=start,
        )

    def _reward(self, step: RobotStep, moved: NDArray[np.bool_]) -> NDArray[np.float64]:
        """A goal is worth 4: paid when it is reached, or (dense) as the robot gets nearer, and back when it turns away.

        Either way the episode's sum is 4 for each goal that was reached; dense, part of it for one that was not.
        """
        new = (step.episode_start | step.goal_reached) & moved
        distance = np.where(moved, step.obs[:, -1], self._distance).astype(np.float64)
        share = step.goal_reached.astype(np.float64)
        if self.dense:
            share = np.where(step.goal_reached, self._distance - GOAL_RADIUS, self._distance - distance) / self._way
        self._way = np.where(new, np.maximum(distance - GOAL_RADIUS, GOAL_RADIUS), self._way)
        self._distance = distance
        return GOAL_WORTH * np.where(moved & ~step.episode_start, share, 0.0)

    def _begin(self, n: int) -> None:
        """Row n has a new map: its constraints, and sentences that say them."""
        m = int(self.engine.map_index[n])
        number = m if self._sequential else n + self.rows * int(self._episodes[n])
        self._episodes[n] += 1
        self._now[n], self._met[n], self._touching[n] = self.classes[m], False, False
        for k, class_id in enumerate(self.classes[m]):
            draw = int(derive(np.uint64(derive(self._key[0], number)), k)) % int(self.table.count[class_id])
            self._text[n, k] = self.table.start[class_id] + draw

    def _cells(self, step: RobotStep) -> NDArray[np.bool_]:
        near = step.gap[:, :, None] < _METRES
        return np.concatenate([step.touching[:, :, None], near], axis=-1)

    def _active(self) -> NDArray[np.bool_]:
        """[N, K]: whether each constraint holds now."""
        order = _ORDER[self._now]
        return (order == 0) | ((order == AFTER) == self._met)

    def mask(self) -> NDArray[np.bool_]:
        """[N, K, *CELLS]: the true M_C."""
        mask = np.zeros((self.rows, self.constraints, *CELLS), np.bool_)
        n, k = np.ogrid[: self.rows, : self.constraints]
        mask[n, k, _ENTITY[self._now], _LEVEL[self._now]] = self._active()
        return mask

    def threshold(self) -> NDArray[np.float32]:
        """[N, K]: h_C."""
        return _THRESHOLD[self._now]

    def kind(self) -> NDArray[np.int64]:
        """[N, K]: index into constraint.KINDS."""
        return _KIND[self._now]

    def scene(self, row: int) -> Scene:
        return self.engine.scene(row)

    def forbidden(self, row: int) -> list[tuple[int, float]]:
        """(entity, metres) of what row's constraints forbid now, for pictures; metres 0: contact."""
        ids, active = self._now[row], self._active()[row]
        return [(int(_ENTITY[c]), float(_DISTANCE[c])) for c, holds in zip(ids, active, strict=True) if holds]

    def state(self) -> dict[str, NDArray]:
        """Copies of all that changes."""
        own = {name: getattr(self, f"_{name}").copy() for name in _STATE}
        return own | {f"engine.{name}": array for name, array in self.engine.state().items()}

    def restore(self, state: Mapping[str, NDArray]) -> None:
        """Go on exactly where ``state()`` was taken, with worlds built the same way."""
        for name in _STATE:
            getattr(self, f"_{name}")[...] = state[name]
        engine = {name.removeprefix("engine."): array for name, array in state.items() if name.startswith("engine.")}
        self.engine.restore(engine)


_STATE = ("key", "episodes", "text", "now", "touching", "met", "distance", "way")
_CLASSES = all_classes(ROBOT)
_ENTITY = np.array([ROBOT.entities.index(c.entity) for c in _CLASSES], np.int64)
_FIRST = np.array([ROBOT.entities.index(c.first) if c.first else 0 for c in _CLASSES], np.int64)
_ORDER = np.array([{None: 0, "after": AFTER, "before": BEFORE}[c.order] for c in _CLASSES], np.int64)
_LEVEL = np.array([1 + ROBOT.distances.index(c.distance) if c.distance else 0 for c in _CLASSES], np.int64)
_DISTANCE = np.array([c.distance / 100 for c in _CLASSES])
_THRESHOLD = np.array([c.threshold for c in _CLASSES], np.float32)
_KIND = np.array([KINDS.index(c.kind) for c in _CLASSES], np.int64)
_METRES = np.array(ROBOT.distances, np.float32) / 100


def _draw_classes(key: np.uint64, maps: int, constraints: int, said: list[int]) -> NDArray[np.int64]:
    """[maps, constraints]: distinct class ids for each map, a function of the map's number."""
    classes = np.zeros((maps, constraints), np.int64)
    for m in range(maps):
        left = list(said)
        for k in range(constraints):
            classes[m, k] = left.pop(int(derive(np.uint64(derive(key, m)), k)) % len(left))
    return classes
