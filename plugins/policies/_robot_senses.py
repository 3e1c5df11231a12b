"""What a policy gets of a robot's world: sensors and lidars, and what the constraint makes of them.

The paper puts the entity's code, h_C and the budget beside the observation. A network then has to find out that code 3
concerns lidar 3. We do that for it: the lidar of what is forbidden is shown once more, always in the same place, so
what is learned of one entity holds for all. The codes are there too.
"""

from __future__ import annotations

import torch
from torch import Tensor

from framework.interfaces import EnvSpec, PolicyInput
from plugins.policies._uses import Uses

SCALE = {"accelerometer": 0.1}
"""Gravity is ten times what the others measure."""


class RobotSenses:
    """Turns inputs into [B, features]. Nothing here is learned."""

    def __init__(self, spec: EnvSpec, uses: Uses) -> None:
        parts = dict(spec.observation.parts)
        lidars = [f"{entity}_lidar" for entity in spec.entities]
        if len(spec.cells) != 2 or spec.cells[0] != len(spec.entities) or not set(lidars) <= set(parts):
            raise ValueError("needs a robot's world: a lidar for each entity, and cells of entities by distances")
        self.spec, self.uses = spec, uses
        starts, at = {}, 0
        for name, size in spec.observation.parts:
            starts[name] = slice(at, at + size)
            at += size
        self._lidars = [starts[name] for name in lidars]
        self._scale = torch.ones(at)
        for name, scale in SCALE.items():
            if name in starts:
                self._scale[starts[name]] = scale

    def size(self) -> int:
        return int(self.look(PolicyInput.blank(self.spec, 1)).shape[-1])

    def look(self, inputs: PolicyInput) -> Tensor:
        columns = [inputs.obs.float() * self._scale]
        if self.uses.mask:
            forbidden = inputs.mask.amax(-1).clamp(max=1)  # [B, E]: at any distance
            lidars = torch.stack([inputs.obs[:, part] for part in self._lidars], dim=1)  # [B, E, bins]
            columns += [inputs.mask.flatten(1), (lidars * forbidden.unsqueeze(-1)).amax(1)]
        if self.uses.budget:
            columns += [self._next_violates(inputs), self._left(inputs)]
        if self.uses.threshold:
            columns.append(inputs.threshold.unsqueeze(-1) / max(1, self.spec.max_threshold))
            columns.append((inputs.threshold == 0).float().unsqueeze(-1))
        return torch.cat(columns, dim=-1)

    def _next_violates(self, inputs: PolicyInput) -> Tensor:
        """[B, E]: one more touch would be past the budget."""
        return ((inputs.mask > 0) & (inputs.budget >= 0)).float().amax(-1)

    def _left(self, inputs: PolicyInput) -> Tensor:
        """[B, E]: touches that are left, as a share of the largest budget."""
        return inputs.budget.clamp(max=0).amin(-1) / -max(1, self.spec.max_threshold)
