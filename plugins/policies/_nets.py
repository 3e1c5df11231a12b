"""Networks that the policies share."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from plugins.policies._sparse import sparse_linear


class Dense(nn.Sequential):
    """Dense layers whose input may come in parts, side by side."""

    sparse = False
    """Whether the first part is mostly zeros (_sparse.py)."""

    def forward(self, *parts: Tensor) -> Tensor:
        """Each [B, some], together [B, inputs] -> [B, outputs]."""
        first, *others = self
        y = _beside(parts, first.weight, first.bias, self.sparse)
        for layer in others:
            y = layer(y)
        return y


def dense(inputs: int, hidden: tuple[int, ...], outputs: int, last_gain: float, sparse: bool = False) -> Dense:
    """Orthogonal weights, tanh between; a small last gain makes the first policy nearly uniform."""
    layers: list[nn.Module] = []
    for width in hidden:
        layers += [_linear(inputs, width, 2**0.5), nn.Tanh()]
        inputs = width
    net = Dense(*layers, _linear(inputs, outputs, last_gain))
    net.sparse = sparse
    return net


class Twin(nn.Module):
    """Two separate networks of one shape, reward's and cost's, as one: half the calls for the same work."""

    def __init__(self, inputs: int, hidden: tuple[int, ...], sparse: bool = False) -> None:
        super().__init__()
        self.sparse = sparse
        nets = [dense(inputs, hidden, 1, 1.0) for _ in range(2)]
        pairs = list(zip(*([layer for layer in net if isinstance(layer, nn.Linear)] for net in nets), strict=True))
        # The first layers see the same inputs, so they are one wide layer; the others are batches of two.
        self.first = nn.Parameter(torch.cat([a.weight for a in pairs[0]]).detach())
        self.first_bias = nn.Parameter(torch.zeros(len(self.first)))
        self.rest = nn.ParameterList(torch.stack([a.weight.T for a in pair]).detach() for pair in pairs[1:])
        self.rest_bias = nn.ParameterList(torch.zeros(2, 1, pair[0].out_features) for pair in pairs[1:])

    def forward(self, *parts: Tensor) -> tuple[Tensor, Tensor]:
        """Each [B, some], together [B, inputs] -> [B] and [B]."""
        both = _beside(parts, self.first, self.first_bias, self.sparse)
        y = both.unflatten(-1, (2, -1)).transpose(0, 1)  # [2, B, width]
        for weight, bias in zip(self.rest, self.rest_bias, strict=True):
            y = torch.baddbmm(bias, torch.tanh(y), weight)
        return y[0, :, 0], y[1, :, 0]


class PaperTrunk(nn.Module):
    """The paper's reading of an image of cells: convolution -> dense -> 5. It does not state the channels."""

    CHANNELS, VECTOR = 8, 5

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        planes, x, y = shape
        self.conv = nn.Conv2d(planes, self.CHANNELS, 3, padding=1)
        self.dense = nn.Linear(self.CHANNELS * x * y, self.VECTOR)

    def forward(self, image: Tensor) -> Tensor:
        return torch.tanh(self.dense(torch.relu(self.conv(image)).flatten(1)))


def check_sizes(hidden: tuple[int, ...], **others: int) -> None:
    """For a Config: layers and vectors have a width. ValueError names the one that has none."""
    if any(width < 1 for width in hidden):
        raise ValueError(f"hidden layers need a width of at least 1, not {list(hidden)}")
    for name, size in others.items():
        if size < 1:
            raise ValueError(f"{name} must be at least 1, not {size}")


def soften(layer: nn.Module, factor: float) -> None:
    """Scale the layer that gives the logits."""
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.mul_(factor)


def _beside(parts: Sequence[Tensor], weight: Tensor, bias: Tensor, sparse: bool) -> Tensor:
    """The linear layer of the parts side by side, without putting them there.

    Side by side, autograd makes a gradient for all of them if one has one. Constraint Fusion's view is the wide part
    and needs none: without it a whole update takes a fifth less time.
    """
    first, *others = weight.split([part.shape[-1] for part in parts], dim=1)
    y = sparse_linear(parts[0], first) + bias if sparse else F.linear(parts[0], first, bias)
    for part, columns in zip(parts[1:], others, strict=True):
        y = y + F.linear(part, columns)
    return y


def _linear(inputs: int, outputs: int, gain: float) -> nn.Linear:
    layer = nn.Linear(inputs, outputs)
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer
