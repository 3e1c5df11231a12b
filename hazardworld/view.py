"""What the agent sees: MiniGrid's view, and the centred one that goes with ``compass`` actions."""

from __future__ import annotations

import numpy as np
from minigrid.core.grid import Grid
from minigrid.minigrid_env import MiniGridEnv
from numpy.typing import NDArray


class CentredView(MiniGridEnv):
    """Two departures from MiniGrid's view.

    The agent's own cell shows what lies under it. MiniGrid hides that (it shows what is carried), but an agent told
    "after grass, no water" has to see that it stands on grass.

    With ``compass`` the view is centred on the agent and keeps the map's orientation (north up): the actions mean
    directions of the map, so the picture should not turn with the last step.
    """

    compass: bool

    def get_view_exts(self, agent_view_size: int | None = None) -> tuple[int, int, int, int]:
        if not self.compass:
            return super().get_view_exts(agent_view_size)
        size = agent_view_size or self.agent_view_size
        left, top = self.agent_pos[0] - size // 2, self.agent_pos[1] - size // 2
        return left, top, left + size, top + size

    def get_view_coords(self, i: int, j: int) -> tuple[int, int]:
        if not self.compass:
            return super().get_view_coords(i, j)
        left, top, _, _ = self.get_view_exts()
        return i - left, j - top

    def gen_obs_grid(self, agent_view_size: int | None = None) -> tuple[Grid, NDArray[np.bool_]]:
        size = agent_view_size or self.agent_view_size
        if self.compass:
            left, top, _, _ = self.get_view_exts(size)
            return self.grid.slice(left, top, size, size), np.ones((size, size), bool)
        grid, visible = super().gen_obs_grid(size)
        grid.set(size // 2, size - 1, self.grid.get(*self.agent_pos))
        return grid, visible

    def get_pov_render(self, tile_size: int) -> NDArray[np.uint8]:
        if not self.compass:
            return super().get_pov_render(tile_size)
        grid, visible = self.gen_obs_grid()
        middle = self.agent_view_size // 2
        return grid.render(tile_size, (middle, middle), self.agent_dir, highlight_mask=visible)

    def get_full_render(self, highlight: bool, tile_size: int) -> NDArray[np.uint8]:
        if not self.compass:
            return super().get_full_render(highlight, tile_size)
        lit = np.zeros((self.width, self.height), bool)
        left, top, right, bottom = self.get_view_exts()
        lit[max(0, left) : right, max(0, top) : bottom] = highlight
        return self.grid.render(tile_size, self.agent_pos, self.agent_dir, highlight_mask=lit)
