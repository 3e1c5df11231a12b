"""What a policy gets of a robot's world: sensors and lidars, and what the constraint makes of them.

The paper puts the entity's code, h_C and the budget beside the observation. A network then has to find out that code 3
concerns lidar 3. We do that for it: the lidar of what is forbidden is shown once more, always in the same place, so
what is learned of one entity holds for all. There is such a place for each distance, because what is near enough to
matter depends on it, and one more that shows only what has no budget left. The codes are there too.

And it feels what it touches. A lidar's reading changes smoothly where a rule does not: it cannot tell just inside a
forbidden circle from just outside. Without a sense of it, robots that had a goal behind such a circle came to rest
where the goal's pull and the fear of cost were equal, which was inside.
"""

from __future__ import annotations

import torch
from torch import Tensor

from framework.interfaces import EnvSpec, PolicyInput
from plugins.policies._senses import LIDAR_SCALE, Senses, zoomed
from plugins.policies._uses import Uses


class RobotSenses:
    """Turns inputs into [B, features]. Nothing here is learned."""

    def __init__(self, spec: EnvSpec, uses: Uses) -> None:
        self._senses = Senses(spec.observation)
        lidars = self._senses.lidars
        if len(spec.cells) != 2 or spec.cells[0] != len(spec.entities) or not set(spec.entities) <= set(lidars):
            raise ValueError("needs a robot's world: a lidar for each entity, and cells of entities by distances")
        self.spec, self.uses = spec, uses
        self._lidars = [lidars[entity] for entity in spec.entities]

    def size(self) -> int:
        return int(self.look(PolicyInput.blank(self.spec, 1)).shape[-1])

    def look(self, inputs: PolicyInput) -> Tensor:
        obs = inputs.obs.float()
        felt, forbidden = inputs.touched > 0, inputs.mask > 0  # [B, E, distances]
        columns = [self._senses(obs), felt.flatten(1).float()]
        if self.uses.mask:
            shown = self._shown(obs, forbidden)
            columns += [inputs.mask.flatten(1), LIDAR_SCALE * shown, zoomed(shown), *_felt(felt, forbidden)]
        if self.uses.budget:
            spent = forbidden & (inputs.budget >= 0)  # one more touch would be past the budget
            columns += [spent.any(1).float(), self._left(inputs, forbidden), zoomed(self._shown(obs, spent))]
        if self.uses.threshold:
            columns.append(inputs.threshold.unsqueeze(-1) / max(1, self.spec.max_threshold))
            columns.append((inputs.threshold == 0).float().unsqueeze(-1))
        return torch.cat(columns, dim=-1)

    def _shown(self, obs: Tensor, which: Tensor) -> Tensor:
        """[B, distances * bins]: the lidars of those entities, in one place for each distance."""
        lidars = torch.stack([obs[:, part] for part in self._lidars], dim=1)  # [B, E, bins]
        return (which.unsqueeze(-1) * lidars.unsqueeze(2)).amax(1).flatten(1)

    def _left(self, inputs: PolicyInput, forbidden: Tensor) -> Tensor:
        """[B, distances]: touches that are left of the tightest budget, as a share of the largest there is."""
        left = torch.where(forbidden, -inputs.budget.clamp(max=0), torch.inf).amin(1)
        return left.nan_to_num(posinf=0.0) / max(1, self.spec.max_threshold)


def _felt(felt: Tensor, forbidden: Tensor) -> tuple[Tensor, Tensor]:
    """[B, distances], [B, 1]: which circles around forbidden entities it is in; whether that is forbidden."""
    circles = (felt & forbidden.any(-1, keepdim=True)).any(1)
    return circles.float(), (felt & forbidden).flatten(1).any(-1, keepdim=True).float()
