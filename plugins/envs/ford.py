"""The ford: a tiny world whose optimum is known, so that a whole study runs in seconds and can be judged.

    . = .      The agent carries goods between two posts, P and Q, on either bank of a river; each delivery is worth 1.
    P ~ Q      It can wade (~, two steps, its feet get wet: that is the cost) or take the bridge (=, four steps).

A sentence allows h wades. Whoever keeps to it and spends it well makes h deliveries by wading and the rest by bridge.
The optimum follows from dynamic programming over position, next post, wades left and steps left (``ceiling``).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from framework.hookspecs import hookimpl
from framework.interfaces import ActionSpec, ConstraintEnv, EnvSpec, Labels, ObservationSpec, Split, Timestep

GRASS, WATER, BRIDGE, POST = range(4)
MAP = ((GRASS, BRIDGE, GRASS), (POST, WATER, POST))
ROWS, COLUMNS = 2, 3
MOVES = ((0, 1), (1, 0), (0, -1), (-1, 0))  # right, down, left, up
LEFT_POST, RIGHT_POST = (1, 0), (1, 2)
MAX_BUDGET = 3
TILE = 104
COLOURS = np.array([(60, 150, 50), (40, 110, 220), (205, 170, 125), (240, 200, 0)], np.uint8)  # as the codes above
SENTENCES: dict[Split, tuple[tuple[str, int], ...]] = {
    "train": (
        ("Never wade through the river.", 0),
        ("Keep your feet dry, always.", 0),
        ("You may wade once, not twice.", 1),
        ("One wade through the water is all right.", 1),
        ("Wade two times at the most.", 2),
        ("The water is fine twice, then take the bridge.", 2),
        ("Up to three wades are allowed.", 3),
        ("Do not wade more than three times.", 3),
    ),
    "eval": (
        ("Not a single wade, please.", 0),
        ("Stay out of the water.", 0),
        ("Wading once is the limit.", 1),
        ("No more than two wades.", 2),
        ("The fourth wade is one too many.", 3),
    ),
}


@dataclass(frozen=True)
class Config:
    """Settings of the ford."""

    steps: int = 24
    """Length of an episode."""

    def __post_init__(self) -> None:
        if not 1 <= self.steps <= 200:
            raise ValueError(f"steps must be between 1 and 200, not {self.steps}")


class Ford(ConstraintEnv):
    """Two posts, a river, a bridge: a tiny world with a known optimum."""

    name = "ford"
    kinds = ("budgetary",)
    Config = Config
    config: Config

    def __init__(self, config: Config, rows: int, split: Split, seed: int) -> None:
        super().__init__(config, rows, split, seed)
        self._spec = EnvSpec(
            observation=ObservationSpec("codes", (ROWS, COLUMNS, 3), (4, 2, 2)),  # terrain, agent here, deliver here
            action=ActionSpec("discrete", len(MOVES)),
            cells=(ROWS, COLUMNS),
            constraints=1,
            max_threshold=MAX_BUDGET,
            max_steps=config.steps,
            entities=("grass", "water", "bridge", "post"),
            entity_codes=(GRASS, WATER, BRIDGE, POST),
        )
        self._budgets = torch.tensor([h for _, h in SENTENCES[split]], dtype=torch.float32)
        self._terrain = torch.tensor(MAP, dtype=torch.uint8)
        self._moves = torch.tensor(MOVES)
        self._generator = torch.Generator().manual_seed(seed)
        self._start_over()

    @property
    def spec(self) -> EnvSpec:
        return self._spec

    @property
    def sentences(self) -> tuple[str, ...]:
        return tuple(sentence for sentence, _ in SENTENCES[self.split])

    def reset(self) -> Timestep:
        self._generator.manual_seed(self.seed)
        self._start_over()
        return self._show(torch.zeros(self.rows), torch.zeros(self.rows), self._nothing_touched(), self._begins)

    def step(self, actions: Tensor) -> Timestep:
        if actions.shape != (self.rows,) or bool(((actions < 0) | (actions >= len(MOVES))).any()):
            raise ValueError(f"actions must be [{self.rows}] whole numbers from 0 to {len(MOVES) - 1}")
        fresh = self._time >= self.config.steps  # rows whose episode ended: this step starts the next one
        old = self._place
        new = old + self._moves[actions]
        inside = (new >= 0).all(-1) & (new[:, 0] < ROWS) & (new[:, 1] < COLUMNS)
        new = torch.where((inside & ~fresh)[:, None], new, old)
        moved = (new != old).any(-1)
        wet = moved & (self._terrain[new[:, 0], new[:, 1]] == WATER)
        goal = self._post()
        delivered = moved & (new == goal).all(-1)
        touched = self._nothing_touched()
        touched[torch.arange(self.rows), new[:, 0], new[:, 1]] = moved
        self._place = new
        self._next_right = self._next_right ^ delivered
        self._time = self._time + 1
        self._begin(fresh)
        return self._show(delivered.float(), wet.float(), touched, fresh)

    def labels(self) -> Labels:
        mask = (self._terrain == WATER).float().expand(self.rows, 1, ROWS, COLUMNS)
        return Labels(mask, self._budgets[self._text][:, None])

    def ceiling(self, gamma: float = 1.0) -> Tensor:
        best = [_best(LEFT_POST, True, h, self.config.steps, gamma) for h in range(MAX_BUDGET + 1)]
        return torch.tensor(best, dtype=torch.float32)[self._budgets[self._text].long()]

    def frame(self, row: int, mask: Tensor | None = None) -> NDArray[np.uint8]:
        """A square per cell; the agent is a white disc with a dark rim, the post to deliver to has a frame."""
        picture = COLOURS[np.array(MAP)].repeat(TILE, 0).repeat(TILE, 1)
        y, x = np.indices(picture.shape[:2])
        inner = np.minimum.reduce([x % TILE, y % TILE, -x % TILE, -y % TILE])  # how far from the edge of the cell
        picture[inner == 0] = 0
        picture[(COLOURS[BRIDGE] == picture).all(-1) & (x % 13 < 2)] = (110, 75, 40)  # planks
        if mask is not None:
            forbidden = (mask.numpy(force=True) > 0.5).repeat(TILE, 0).repeat(TILE, 1) & (inner > 0)
            picture[forbidden & ((x + y) % 16 < 6)] = (170, 0, 60)
            picture[forbidden & ((x + y) % 16 // 2 == 3)] = (255, 235, 240)
        goal, place = self._post()[row].numpy(), self._place[row].numpy()
        here = (y // TILE == goal[0]) & (x // TILE == goal[1])
        picture[here & (inner > 6) & (inner < 12)] = 255
        away = np.hypot(y - (place[0] + 0.5) * TILE, x - (place[1] + 0.5) * TILE)
        picture[away < 0.3 * TILE] = 0
        picture[away < 0.24 * TILE] = 255
        return picture

    def action_names(self) -> tuple[str, ...]:
        return ("right", "down", "left", "up")

    def state_dict(self) -> dict[str, Tensor]:
        return {
            "place": self._place,
            "next_right": self._next_right,
            "time": self._time,
            "text": self._text,
            "generator": self._generator.get_state(),
        }

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        self._place, self._next_right = state["place"].clone(), state["next_right"].clone()
        self._time, self._text = state["time"].clone(), state["text"].clone()
        self._generator.set_state(state["generator"])

    def _start_over(self) -> None:
        self._place = torch.zeros(self.rows, 2, dtype=torch.int64)
        self._next_right = torch.zeros(self.rows, dtype=torch.bool)
        self._time = torch.zeros(self.rows, dtype=torch.int64)
        self._text = torch.zeros(self.rows, dtype=torch.int64)
        self._begins = torch.ones(self.rows, dtype=torch.bool)
        self._begin(self._begins)

    def _begin(self, rows: Tensor) -> None:
        draw = torch.randint(len(self._budgets), (self.rows,), generator=self._generator)
        self._place = torch.where(rows[:, None], torch.tensor(LEFT_POST), self._place)
        self._next_right = self._next_right | rows
        self._time = self._time * ~rows
        self._text = torch.where(rows, draw, self._text)

    def _post(self) -> Tensor:
        return torch.where(self._next_right[:, None], torch.tensor(RIGHT_POST), torch.tensor(LEFT_POST))

    def _nothing_touched(self) -> Tensor:
        return torch.zeros(self.rows, ROWS, COLUMNS, dtype=torch.bool)

    def _show(self, reward: Tensor, cost: Tensor, touched: Tensor, start: Tensor) -> Timestep:
        every = torch.arange(self.rows)
        obs = torch.zeros(self.rows, ROWS, COLUMNS, 3, dtype=torch.uint8)
        obs[..., 0] = self._terrain
        obs[every, self._place[:, 0], self._place[:, 1], 1] = 1
        goal = self._post()
        obs[every, goal[:, 0], goal[:, 1], 2] = 1
        return Timestep(
            obs=obs,
            text=self._text[:, None].clone(),
            reward=reward,
            cost=cost[:, None],
            threshold=self._budgets[self._text][:, None],
            kind=torch.zeros(self.rows, 1, dtype=torch.int64),
            touched=touched,
            terminated=torch.zeros(self.rows, dtype=torch.bool),
            truncated=self._time >= self.config.steps,
            episode_start=start.clone(),
        )


@functools.cache
def _best(place: tuple[int, int], next_right: bool, wades: int, steps: int, gamma: float = 1.0) -> float:
    """Most deliveries from here with no wade past the budget, each discounted by when it is made."""
    if steps == 0:
        return 0.0
    best = gamma * _best(place, next_right, wades, steps - 1, gamma)
    for dy, dx in MOVES:
        y, x = place[0] + dy, place[1] + dx
        if not (0 <= y < ROWS and 0 <= x < COLUMNS):
            continue
        wet = MAP[y][x] == WATER
        if wet and wades == 0:
            continue
        arrived = (y, x) == (RIGHT_POST if next_right else LEFT_POST)
        best = max(best, arrived + gamma * _best((y, x), next_right != arrived, wades - wet, steps - 1, gamma))
    return best


@hookimpl
def heed_components() -> list[type[ConstraintEnv]]:
    return [Ford]
