"""View and text vector -> mask: the paper's mask module, shared by the interpreters that learn it."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from framework.interfaces import EnvSpec, InterpreterInput, Labels, State
from framework.interfaces.interpreter import reset_rows


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
        """One step: mask [M, *cells] in [0, 1], and the next state."""
        features, vector = self._look(obs, text)
        if self.history is not None:
            state = self.history(vector, (state[0], state[1]))
            vector = state[0]
        return self._decide(features, vector), state

    def trespass(self, mask: Tensor) -> Tensor | None:
        """Whether the agent's own cell was forbidden, by what is in view now; for ``Interpretation.trespass``.

        With memory, the mask is that of after the move already: "not twice" must not blame the first time.
        """
        here = self.spec.agent_cell
        return None if here is None or self.history is not None else mask[(slice(None), *here)]

    def unroll(self, obs: Tensor, text: Tensor, start: Tensor) -> Tensor:
        """Many steps, [T, M, ...] -> [T, M, *cells]: all convolutions at once, only the memory goes step by step."""
        steps, rows = start.shape
        features, vector = self._look(obs.flatten(0, 1), text.flatten(0, 1))
        if self.history is not None:
            state, vectors = self.initial_state(rows), []
            for t, now in enumerate(vector.view(steps, rows, -1)):
                state = reset_rows(state, self.initial_state(rows), start[t])
                state = self.history(now, (state[0], state[1]))
                vectors.append(state[0])
            vector = torch.cat(vectors)
        return self._decide(features, vector).view(steps, rows, *self.spec.cells)

    def loss(self, inputs: InterpreterInput, labels: Labels, start: Tensor) -> Tensor:
        """The paper's, for a code whose last entry is the threshold: cross-entropy of M_C and squared error of h_C."""
        mask = self.unroll(inputs.obs, inputs.code[..., :-1], start)
        mask_error = F.binary_cross_entropy(mask, labels.mask[:, :, 0])
        return mask_error + F.mse_loss(inputs.code[..., -1], labels.threshold[..., 0])

    def _look(self, obs: Tensor, text: Tensor) -> tuple[Tensor, Tensor]:
        view = self._view(obs)
        tiled = text[:, :, None, None].expand(-1, -1, *view.shape[2:])
        features = F.relu(self.deep(F.relu(self.conv(torch.cat([view, tiled], dim=1)))))
        return features, F.relu(self.dense(features.flatten(1)))

    def _decide(self, features: Tensor, vector: Tensor) -> Tensor:
        gated = features * torch.sigmoid(self.gate(vector))[:, :, None, None]
        return torch.sigmoid(self.out(vector).view(-1, *self.spec.cells) + self.skip(gated)[:, 0])

    def _view(self, obs: Tensor) -> Tensor:
        """[M, channels, X, Y]"""
        rest = obs[..., 1:].float() / torch.tensor(self.spec.observation.levels[1:], dtype=torch.float32)
        kind = self.cells(obs[..., 0].long()) if self.cells is not None else obs[..., :1].float() / 10
        return torch.cat([kind, rest], dim=-1).movedim(-1, 1)
