"""What a policy gets of a robot's world: sensors and lidars, and what the constraint makes of them.

The paper puts the entity's code, h_C and the budget beside the observation. A network then has to find out that code 3
concerns lidar 3, and what 40 cm look like on it. We do that for it, as M_C does on a grid: the *zone lidar* shows,
toward each forbidden thing, how far it is to where it is forbidden, whatever the entity and the distance; so what is
learned of one sentence holds for all. It is shown once for all that is forbidden, and once for what has no budget left.
The codes are there too.

And it feels what it touches. A lidar's reading changes smoothly where a rule does not: it cannot tell just inside a
forbidden circle from just outside. Without a sense of it, robots that had a goal behind such a circle came to rest
where the goal's pull and the fear of cost were equal, which was inside.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from framework.interfaces import EnvSpec, PolicyInput
from plugins.policies._senses import ZOOM_SCALE, ZOOMS, Senses
from plugins.policies._uses import Uses

DEEPEST = 2.0
"""Where the zone lidar stops growing; at the edge of a zone it is 1."""


class RobotSenses:
    """Turns inputs into [B, features]. Nothing here is learned."""

    def __init__(self, spec: EnvSpec, uses: Uses) -> None:
        self._senses = Senses(spec.observation)
        lidars = self._senses.lidars
        if len(spec.cells) != 2 or spec.cells[0] != len(spec.entities) or not set(spec.entities) <= set(lidars):
            raise ValueError("needs a robot's world: a lidar for each entity, and cells of entities by distances")
        self._edges = torch.tensor(spec.lidar_edges)  # [E, distances]
        if self._edges.shape != spec.cells:
            raise ValueError("needs a robot's world: lidar_edges must say where each cell begins")
        self.spec, self.uses = spec, uses
        self._lidars = [lidars[entity] for entity in spec.entities]
        self._goal = lidars.get("goal")

    def size(self) -> int:
        return int(self.look(PolicyInput.blank(self.spec, 1)).shape[-1])

    def look(self, inputs: PolicyInput) -> Tensor:
        obs = inputs.obs.float()
        felt, forbidden = inputs.touched > 0, inputs.mask > 0  # [B, E, distances]
        columns = [self._senses(obs), felt.flatten(1).float()]
        if self._goal is not None:
            columns.append(bearing(obs[:, self._goal]))
        if self.uses.mask:
            columns += [inputs.mask.flatten(1), self._zone(obs, forbidden), *_felt(felt, forbidden)]
        if self.uses.budget:
            spent = forbidden & (inputs.budget >= 0)  # one more touch would be past the budget
            columns += [spent.any(1).float(), self._left(inputs, forbidden), self._zone(obs, spent)]
        if self.uses.threshold:
            columns.append(inputs.threshold.unsqueeze(-1) / max(1, self.spec.max_threshold))
            columns.append((inputs.threshold == 0).float().unsqueeze(-1))
        return torch.cat(columns, dim=-1)

    def _zone(self, obs: Tensor, which: Tensor) -> Tensor:
        """[B, zooms * bins]: how near those cells are in each direction: 0 far off, 1 at the edge, more inside."""
        lidars = torch.stack([obs[:, part] for part in self._lidars], dim=1)  # [B, E, bins]
        reach = torch.where(which, 1 - self._edges, -1.0).amax(-1)  # [B, E]: of the widest zone around each entity
        beyond = torch.where(reach.unsqueeze(-1) >= 0, lidars - 1 + reach.unsqueeze(-1), -1.0).amax(1)  # [B, bins]
        return torch.cat([ZOOM_SCALE * (1 + zoom * beyond).clamp(0, DEEPEST) for zoom in ZOOMS], dim=-1)

    def _left(self, inputs: PolicyInput, forbidden: Tensor) -> Tensor:
        """[B, distances]: touches that are left of the tightest budget, as a share of the largest there is."""
        left = torch.where(forbidden, -inputs.budget.clamp(max=0), torch.inf).amin(1)
        return left.nan_to_num(posinf=0.0) / max(1, self.spec.max_threshold)


def bearing(lidar: Tensor) -> Tensor:
    """[B, bins] -> [B, 2]: the direction of the one thing on a lidar, as a unit vector; ahead is (1, 0)."""
    angle = (torch.arange(lidar.shape[-1]) + 0.5) * (2 * math.pi / lidar.shape[-1])
    vector = lidar @ torch.stack([angle.cos(), angle.sin()], dim=-1)
    return vector / vector.norm(dim=-1, keepdim=True).clamp(min=1e-6)


def _felt(felt: Tensor, forbidden: Tensor) -> tuple[Tensor, Tensor]:
    """[B, distances], [B, 1]: which circles around forbidden entities it is in; whether that is forbidden."""
    circles = (felt & forbidden.any(-1, keepdim=True)).any(1)
    return circles.float(), (felt & forbidden).flatten(1).any(-1, keepdim=True).float()
