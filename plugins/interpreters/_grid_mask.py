"""View and text vector -> mask: the paper's mask module, shared by the interpreters that learn it."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from framework.interfaces import EnvSpec, State


class GridMask(nn.Module):
    """Tile the text over the view, convolve, dense, one logit per cell; optionally an LSTM over the episode."""

    def __init__(self, spec: EnvSpec, text: int, channels: int, dense: int, embed_cells: int, memory: bool) -> None:
        super().__init__()
        if spec.observation.kind != "codes" or len(spec.cells) != 2:
            raise ValueError("needs a grid of cell codes as observation")
        self.spec, self.width = spec, dense
        levels = spec.observation.levels
        self.cells = nn.Embedding(levels[0], embed_cells) if embed_cells else None
        x, y = spec.cells
        self.conv = nn.Conv2d((embed_cells or 1) + len(levels) - 1 + text, channels, 3, padding=1)
        self.deep = nn.Conv2d(channels, channels, 3, padding=1)
        self.dense = nn.Linear(channels * x * y, dense)
        self.history = nn.LSTMCell(dense, dense) if memory else None
        self.gate = nn.Linear(dense, channels)
        self.out = nn.Linear(dense, x * y)
        self.skip = nn.Conv2d(channels, 1, 1)

    def initial_state(self, rows: int) -> State:
        return (torch.zeros(rows, self.width), torch.zeros(rows, self.width)) if self.history is not None else ()

    def forward(self, obs: Tensor, text: Tensor, state: State) -> tuple[Tensor, State]:
        """Mask [M, *cells] in [0, 1], and the next state."""
        view = self._view(obs)
        tiled = text[:, :, None, None].expand(-1, -1, *view.shape[2:])
        features = F.relu(self.deep(F.relu(self.conv(torch.cat([view, tiled], dim=1)))))
        vector = F.relu(self.dense(features.flatten(1)))
        if self.history is not None:
            state = self.history(vector, (state[0], state[1]))
            vector = state[0]
        gated = features * torch.sigmoid(self.gate(vector))[:, :, None, None]
        logits = self.out(vector).view(-1, *self.spec.cells) + self.skip(gated)[:, 0]
        return torch.sigmoid(logits), state

    def _view(self, obs: Tensor) -> Tensor:
        """[M, channels, X, Y]"""
        rest = obs[..., 1:].float() / torch.tensor(self.spec.observation.levels[1:], dtype=torch.float32)
        kind = self.cells(obs[..., 0].long()) if self.cells is not None else obs[..., :1].float() / 10
        return torch.cat([kind, rest], dim=-1).movedim(-1, 1)
