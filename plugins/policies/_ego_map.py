"""Memory for an agent with a small view: a map of what it has seen, and where it has been.

The map is kept in the world's directions with the agent's start in the middle; how the agent moved, it knows from the
cell that it entered (``PolicyInput.touched``), so this needs a view with the agent in the middle. What a policy gets is
drawn around the agent: its own track in view, an overview of everything within REACH in coarse blocks, and which cells
in view were forbidden when more could be seen.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray
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
FORBIDDEN = 128
"""Added to a cell's code on the map: it was forbidden when it was in view, now or earlier."""
NEVER, LAST = -10_000, 20_000
"""Steps are counted in 16 bits: an episode that goes on for longer stops telling its track's age."""


@dataclass(frozen=True)
class EgoMap:
    """Draws and reads maps.

    State: what is where, the step at which a cell was last entered, position, step, whether the sentence speaks of
    distances.
    """

    view: tuple[int, int]
    landmarks: tuple[int, ...]
    hazards: tuple[int, ...]

    @classmethod
    def of(cls, spec: EnvSpec, landmarks: tuple[int, ...]) -> EgoMap:
        """ValueError if no map can be drawn in this environment."""
        x, y = spec.cells
        if spec.agent_cell != (x // 2, y // 2):
            raise ValueError(
                "memory needs the agent in the middle of its view (in hazardworld_grid: actions: compass); "
                "set memory: none for this environment"
            )
        return cls((x, y), landmarks, spec.entity_codes)

    def blank(self, rows: int) -> State:
        middle = torch.full((rows,), SIDE // 2 * (SIDE + 1))
        seen = torch.zeros(rows, CELLS, dtype=torch.uint8)
        entered = torch.full((rows, CELLS), NEVER, dtype=torch.int16)
        return seen, entered, middle, torch.zeros(rows, dtype=torch.int16), torch.zeros(rows, dtype=torch.bool)

    def walk(self, state: State, view: Tensor, forbidden: Tensor, touched: Tensor) -> State:
        """Make the last move on the map, draw what is in view and forbidden [rows, X, Y], mark where the agent is."""
        new = tuple(part.clone() for part in state)  # a state that was handed out stays as it is
        drawn = (part.flatten(1).numpy() for part in (view.to(torch.uint8), forbidden.bool(), touched.bool()))
        _walk(*(part.numpy() for part in new), *drawn, self._in_view, self._hazard)
        return new

    def recall(self, state: State) -> Tensor:
        """[rows, X, Y]: 1 on cells in view that are or were forbidden, for rows whose sentence speaks of distances.

        "Stay three steps from lava" forbids a cell also when the lava is out of view again. What is forbidden by
        distance stays so for the episode. Other sentences speak of cells in plain view: the mask tells all about them,
        and may take it back ("until you have been in water").
        """
        seen, _, place, _, distant = state
        out = torch.zeros(len(place), len(self._in_view))
        _draw_forbidden(seen.numpy(), place.numpy(), distant.numpy(), self._in_view, out.numpy())
        return out.view(-1, *self.view)

    def track(self, state: State) -> Tensor:
        """[rows, X, Y]: 1 where the agent is, less the longer ago it was there, 0 where it never was."""
        _, entered, place, step, _ = state
        out = torch.empty(len(place), len(self._in_view))
        _draw_track(entered.numpy(), place.numpy(), step.numpy(), self._in_view, _FADED, out.numpy())
        return out.view(-1, *self.view)

    def overview(self, state: State) -> Tensor:
        """[rows, (1 + landmarks) * blocks]: of each block the share that was seen; whether each landmark is in it."""
        seen, _, place, _, _ = state
        out = torch.zeros(len(place), 1 + len(self.landmarks), BLOCKS**2)
        _draw_overview(seen.numpy(), place.numpy(), self._in_reach, self._plane, out.numpy())
        return out.flatten(1)

    @functools.cached_property
    def _plane(self) -> NDArray[np.int64]:
        """[256]: which plane of the overview an object of each code is drawn on; 0: on none of its own."""
        planes = np.zeros(256, np.int64)
        planes[list(self.landmarks)] = 1 + np.arange(len(self.landmarks))
        return planes

    @functools.cached_property
    def _hazard(self) -> NDArray[np.bool_]:
        """[256]: which codes are hazards. A cell without one that is forbidden is so for what is near it."""
        hazard = np.zeros(256, np.bool_)
        hazard[list(self.hazards)] = True
        return hazard

    @functools.cached_property
    def _in_view(self) -> NDArray[np.int64]:
        """[X * Y]: from the agent to each cell in view, as steps in the flat map."""
        x, y = (np.arange(side) - side // 2 for side in self.view)
        return (x[:, None] * SIDE + y).ravel()

    @functools.cached_property
    def _in_reach(self) -> NDArray[np.int64]:
        """[blocks, cells of a block]: the same for all within reach."""
        along = np.arange(2 * REACH + 1) - REACH
        cells = along[:, None] * SIDE + along
        return cells.reshape(BLOCKS, BLOCK, BLOCKS, BLOCK).transpose(0, 2, 1, 3).reshape(BLOCKS**2, BLOCK**2).copy()


# Compiled, because a map of a step is many small things: in torch they took a third of the time of a rollout.
# Past the rim of the map it goes on at the other side: ``& (CELLS - 1)``.


@njit(cache=True)
def _walk(seen, entered, place, step, distant, view, forbidden, touched, in_view, hazard):  # type: ignore[no-untyped-def]
    for n in range(len(place)):
        at = place[n]
        for i in range(len(in_view)):
            if touched[n, i]:
                at = (place[n] + in_view[i]) & (CELLS - 1)
                break
        place[n] = at
        step[n] = min(step[n] + 1, LAST)
        for i in range(len(in_view)):
            cell = (at + in_view[i]) & (CELLS - 1)
            mark = seen[n, cell] & FORBIDDEN
            if forbidden[n, i]:
                mark = FORBIDDEN
                if not hazard[view[n, i]]:
                    distant[n] = True
            seen[n, cell] = view[n, i] | mark
        entered[n, at] = step[n]


@njit(cache=True)
def _draw_track(entered, place, step, in_view, faded, out):  # type: ignore[no-untyped-def]
    for n in range(len(place)):
        for i in range(len(in_view)):
            ago = np.int64(step[n]) - entered[n, (place[n] + in_view[i]) & (CELLS - 1)]
            out[n, i] = faded[min(ago, len(faded) - 1)]


@njit(cache=True)
def _draw_forbidden(seen, place, distant, in_view, out):  # type: ignore[no-untyped-def]
    for n in range(len(place)):
        if distant[n]:
            for i in range(len(in_view)):
                if seen[n, (place[n] + in_view[i]) & (CELLS - 1)] & FORBIDDEN:
                    out[n, i] = 1


@njit(cache=True)
def _draw_overview(seen, place, in_reach, plane, out):  # type: ignore[no-untyped-def]
    blocks, cells = in_reach.shape
    for n in range(len(place)):
        for block in range(blocks):
            known = 0
            for i in range(cells):
                code = seen[n, (place[n] + in_reach[block, i]) & (CELLS - 1)] & (FORBIDDEN - 1)
                if code:  # 0 was never seen
                    known += 1
                    if plane[code]:
                        out[n, plane[code], block] = 1
            out[n, 0, block] = known / cells


_FADED = torch.pow(FADE, torch.arange(4_000).float()).numpy()
"""The track by age. The last one is 0."""
