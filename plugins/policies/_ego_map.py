"""Memory for an agent with a small view: a map of what it has seen, and where it has been.

The map is kept in the world's directions with the agent's start in the middle; how the agent moved, it knows from the
cell that it entered (``PolicyInput.touched``), so this needs a view with the agent in the middle. What a policy gets is
drawn around the agent: its own track in view, and an overview of everything within REACH in coarse blocks.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import torch
from torch import Tensor

from framework.interfaces import EnvSpec, State

BLOCK, BLOCKS = 5, 5
"""The overview: 5 x 5 blocks of 5 x 5 cells around the agent. It says what is where by and large."""
REACH = BLOCK * BLOCKS // 2
"""Cells to each side: as far as the opposite wall of a 13 x 13 world."""
SIDE = 4 * REACH - 3
"""Cells along the map: enough to get to any cell of a 13 x 13 world from any other with all that is in reach there. In
larger worlds the far side is drawn over, as on a globe."""
CELLS = 2048
"""Of the flat map: SIDE * SIDE, up to a power of two, because going around is then a cheap operation on bits."""
FADE = 0.97
"""How fast the agent's track fades per step, so that the way back looks different from the way on."""
NEVER, LAST = -10_000, 20_000
"""Steps are counted in 16 bits: an episode that goes on for longer stops telling its track's age."""


@dataclass(frozen=True)
class EgoMap:
    """Draws and reads maps. State: what is where, the step at which a cell was last entered, position, step."""

    view: tuple[int, int]
    landmarks: tuple[int, ...]

    @classmethod
    def of(cls, spec: EnvSpec, landmarks: tuple[int, ...]) -> EgoMap:
        """ValueError if no map can be drawn in this environment."""
        x, y = spec.cells
        if len(landmarks) > 11:
            raise ValueError(f"memory: map can hold 11 kinds of object, not {len(landmarks)}")
        if spec.agent_cell != (x // 2, y // 2):
            raise ValueError(
                "memory needs the agent in the middle of its view (in hazardworld_grid: actions: compass); "
                "set memory: none for this environment"
            )
        return cls((x, y), landmarks)

    def blank(self, rows: int) -> State:
        middle = torch.full((rows,), SIDE // 2 * (SIDE + 1))
        seen = torch.zeros(rows, CELLS, dtype=torch.uint8)
        entered = torch.full((rows, CELLS), NEVER, dtype=torch.int16)
        return seen, entered, middle, torch.zeros(rows, dtype=torch.int16)

    def walk(self, state: State, view: Tensor, touched: Tensor) -> State:
        """Make the last move on the map, draw in what is in view [rows, X, Y], mark where the agent is."""
        seen, entered, place, step = state
        here = _around(place, self._in_view)  # [rows, X * Y] map cells of the view before the move
        at = touched.flatten(1).float().argmax(1, keepdim=True)
        moved = touched.flatten(1).any(1)
        place = torch.where(moved, here.gather(1, at)[:, 0], place)
        step = (step + 1).clamp(max=LAST)
        seen = seen.scatter(1, _around(place, self._in_view), view.flatten(1).to(torch.uint8))
        entered = entered.scatter(1, place[:, None], step[:, None])
        return seen, entered, place, step

    def track(self, state: State) -> Tensor:
        """[rows, X, Y]: 1 where the agent is, less the longer ago it was there, 0 where it never was."""
        _, entered, place, step = state
        ago = step[:, None] - entered.gather(1, _around(place, self._in_view))
        return torch.pow(FADE, ago.float()).view(-1, *self.view)

    def overview(self, state: State) -> Tensor:
        """[rows, (1 + landmarks) * blocks]: of each block the share that was seen; whether each landmark is in it."""
        seen, _, place, _ = state
        codes = seen.gather(1, _around(place, self._in_reach)).long()
        # All counts of a block in one sum: each kind of cell adds to five bits of its own.
        sums = self._digits[codes].view(len(codes), BLOCKS**2, BLOCK**2).sum(2)
        counts = (sums[:, None] >> self._shifts[:, None]) & 31
        return torch.cat([counts[:, :1] / BLOCK**2, counts[:, 1:].clamp(max=1)], dim=1).flatten(1)

    @functools.cached_property
    def _shifts(self) -> Tensor:
        return 5 * torch.arange(1 + len(self.landmarks))

    @functools.cached_property
    def _digits(self) -> Tensor:
        """[256]: what a cell of each code adds. Code 0 is a cell that was never seen."""
        table = torch.ones(256, dtype=torch.int64)
        table[0] = 0
        table[list(self.landmarks)] += 1 << self._shifts[1:]
        return table

    @functools.cached_property
    def _in_view(self) -> Tensor:
        """[X * Y]: from the agent to each cell in view, as steps in the flat map."""
        x, y = (torch.arange(side) - side // 2 for side in self.view)
        return (x[:, None] * SIDE + y).flatten()

    @functools.cached_property
    def _in_reach(self) -> Tensor:
        """[(2 REACH + 1)^2]: the same for all within reach, block by block."""
        along = torch.arange(2 * REACH + 1) - REACH
        cells = along[:, None] * SIDE + along
        return cells.view(BLOCKS, BLOCK, BLOCKS, BLOCK).transpose(1, 2).flatten()


def _around(place: Tensor, moves: Tensor) -> Tensor:
    """[rows, M]: the map's cells there; past its rim it goes on at the other side."""
    return (place[:, None] + moves) & (CELLS - 1)
