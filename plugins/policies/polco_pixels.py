"""POLCO on pixels: M_C and M_B painted over the boxes of what is forbidden, beside the picture; a small CNN."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from framework.hookspecs import hookimpl
from framework.interfaces import Distribution, EnvSpec, Gaussian, PolicyInput, PolicyNet, Values
from plugins.policies._nets import check_sizes, dense
from plugins.policies._senses import SCALE
from plugins.policies._uses import Uses

BOX = 4  # numbers of a box: left, top, right, bottom


@dataclass(frozen=True)
class Config:
    """Settings of POLCO on pixels."""

    channels: tuple[int, ...] = (16, 32)
    """Of each convolution; each halves the picture."""
    hidden: tuple[int, ...] = (64,)
    """Width of each dense layer after them."""
    uses: Uses = field(default_factory=Uses)
    """Which inputs it gets."""
    log_std: float = -0.5
    """Initial log standard deviation of the actions."""

    def __post_init__(self) -> None:
        check_sizes(self.hidden)
        if not self.channels or min(self.channels) < 1:
            raise ValueError(f"channels must hold at least one number, each at least 1, not {list(self.channels)}")


class PolcoPixels(PolicyNet):
    """POLCO on a camera's picture with boxes: M_C and M_B as planes of the image; Gaussian actions."""

    name = "polco_pixels"
    Config = Config
    config: Config
    action_kinds = frozenset({"continuous"})

    def __init__(self, config: Config, spec: EnvSpec) -> None:
        super().__init__(config, spec)
        sizes, starts, at = dict(spec.observation.parts), {}, 0
        for name, size in spec.observation.parts:
            starts[name] = slice(at, at + size)
            at += size
        if not {"camera", "boxes"} <= set(sizes) or len(spec.cells) != 2 or sizes["boxes"] % (BOX * spec.cells[0]):
            raise ValueError("needs a picture with boxes, and cells of entities by distances: hazardworld_robot_pixels")
        self._camera, self._boxes, self._starts = starts["camera"], starts["boxes"], starts
        self._side = round((sizes["camera"] / 3) ** 0.5)
        self._each = sizes["boxes"] // (BOX * spec.cells[0])  # boxes of one entity
        blank = PolicyInput.blank(spec, 1)
        planes, beside = self._planes(blank).shape[1], self._beside(blank).shape[1]
        self.actor = _Eye(config, planes, self._side, beside, spec.action.size, 0.01)
        self.log_std = nn.Parameter(torch.full((spec.action.size,), config.log_std))
        self.critic = _Eye(config, planes, self._side, beside, 2, 1.0)

    def distribution(self, inputs: PolicyInput) -> Distribution:
        mean = self.actor(self._planes(inputs), self._beside(inputs))
        return Gaussian(mean, self.log_std.expand_as(mean))

    def values(self, inputs: PolicyInput) -> Values:
        return Values(*self.critic(self._planes(inputs), self._beside(inputs)).unbind(-1))

    def _planes(self, inputs: PolicyInput) -> Tensor:
        """[B, planes, side, side]: red, green, blue; M_C; what of it has no budget left."""
        planes = [inputs.obs[:, self._camera].unflatten(1, (self._side, self._side, 3)).permute(0, 3, 1, 2)]
        forbidden = inputs.mask > 0  # [B, E, distances]
        if self.config.uses.mask:
            planes.append(self._paint(inputs.obs, forbidden.any(-1)))
        if self.config.uses.budget:
            planes.append(self._paint(inputs.obs, (forbidden & (inputs.budget >= 0)).any(-1)))
        return torch.cat(planes, 1)

    def _paint(self, obs: Tensor, entities: Tensor) -> Tensor:
        """[B, 1, side, side]: 1 in the boxes of those entities [B, E]."""
        left, top, right, bottom = (obs[:, self._boxes].unflatten(1, (-1, BOX)) * self._side).unbind(-1)  # [B, boxes]
        pixel = torch.arange(self._side) + 0.5
        across = (pixel > left.unsqueeze(-1)) & (pixel < right.unsqueeze(-1))  # [B, boxes, side]
        down = (pixel > top.unsqueeze(-1)) & (pixel < bottom.unsqueeze(-1))
        wanted = entities.repeat_interleave(self._each, 1).float()
        return torch.einsum("bn,bny,bnx->byx", wanted, down.float(), across.float()).clamp(max=1).unsqueeze(1)

    def _beside(self, inputs: PolicyInput) -> Tensor:
        """[B, numbers]: what is no picture."""
        columns = [
            inputs.obs[:, part] * SCALE.get(name, 1.0)
            for name, part in self._starts.items()
            if name not in ("camera", "boxes")
        ]
        if self.config.uses.mask:
            columns.append(inputs.mask.flatten(1))
        if self.config.uses.threshold:
            columns.append(inputs.threshold.unsqueeze(-1) / max(1, self.spec.max_threshold))
        return torch.cat(columns, 1)


class _Eye(nn.Module):
    """Convolutions over the planes, then dense layers with the other numbers."""

    def __init__(self, config: Config, planes: int, side: int, beside: int, outputs: int, last_gain: float) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for channels in config.channels:
            layers += [nn.Conv2d(planes, channels, 3, stride=2, padding=1), nn.ReLU()]
            planes, side = channels, (side + 1) // 2
        self.convolutions = nn.Sequential(*layers, nn.Flatten())
        self.dense = dense(planes * side * side + beside, config.hidden, outputs, last_gain)

    def forward(self, planes: Tensor, beside: Tensor) -> Tensor:
        out: Tensor = self.dense(torch.cat([self.convolutions(planes), beside], 1))
        return out


@hookimpl
def heed_components() -> list[type[PolicyNet]]:
    return [PolcoPixels]
