"""What a policy sees of a grid world, drawn up once for each step: the view, the constraint's planes, and the memory.

Two forms: one-hot ``features`` for dense layers, and an ``image`` of numbers as in the paper, for convolutions.
"""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from framework.interfaces import EnvSpec, PolicyInput, State
from plugins.policies._ego_map import EgoMap
from plugins.policies._uses import Uses

Memory = Literal["map", "visited", "none"]
BudgetForm = Literal["split", "shifted", "paper"]


class Sight:
    """Turns a step's inputs into [N, features] or [N, planes, X, Y]. Nothing here is learned."""

    def __init__(
        self, spec: EnvSpec, uses: Uses, memory: Memory, budget: BudgetForm, hazards: bool, image: bool
    ) -> None:
        if spec.observation.kind != "codes" or len(spec.cells) != 2:
            raise ValueError("needs a grid of cell codes as observation")
        if image and memory == "map":
            raise ValueError("the paper's network sees only what is in view: set memory to visited or none")
        self.spec, self.uses, self.memory, self.budget, self.image = spec, uses, memory, budget, image
        objects = spec.observation.objects or tuple(range(spec.observation.levels[0]))
        objects = objects[1:] or objects  # the first (MiniGrid: empty) is where none of the others is
        landmarks = tuple(code for code in objects if code not in spec.entity_codes)
        self._map = EgoMap.of(spec, landmarks) if memory != "none" else None
        shown = objects if hazards else landmarks
        self._one_hot = torch.eye(spec.observation.levels[0])[:, list(shown)]

    def shape(self) -> tuple[int, ...]:
        """Of one row."""
        seen, _ = self.look(PolicyInput.blank(self.spec, 1), self.initial_state(1))
        return tuple(seen.shape[1:])

    def initial_state(self, rows: int) -> State:
        return self._map.blank(rows) if self._map else ()

    def look(self, inputs: PolicyInput, state: State) -> tuple[Tensor, State]:
        """What the networks get of this step, and the memory with it drawn in."""
        if self._map:
            state = self._map.walk(state, inputs.obs[..., 0], inputs.mask > 0, inputs.touched)
        planes = self._planes(inputs, state)
        if self.image:
            return torch.cat([inputs.obs.float().movedim(-1, 1), *planes], dim=1), state
        objects = F.embedding(inputs.obs[..., 0].long(), self._one_hot)
        columns = [objects.flatten(1), *(plane.flatten(1) for plane in planes)]
        if self._map and self.memory == "map":
            columns.append(self._map.overview(state))
        if self.uses.threshold:
            columns.append(F.one_hot(whole(inputs.threshold, self.spec), self.spec.max_threshold + 1).float())
        return torch.cat(columns, dim=-1), state

    def _planes(self, inputs: PolicyInput, state: State) -> list[Tensor]:
        """[N, 1, X, Y] each: what belongs to the cells in view, beside what is there."""
        balance, mask = inputs.budget, inputs.mask
        if self._map and self.memory == "map":
            mask = torch.maximum(mask, self._map.recall(state))  # its budget is 0 there: the next entry violates
        planes = [mask] if self.uses.mask else []
        if self.uses.budget:
            if self.budget == "split":
                planes.append(((mask > 0) & (balance >= 0)).float())
                planes.append(balance.clamp(max=0) / -max(1, self.spec.max_threshold))
            else:
                # By one, however many sentences forbid the cell: -1 (one free entry left) must not become 1.
                planes.append(balance + (mask > 0) if self.budget == "shifted" else balance)
        if self._map:
            planes.append(self._map.track(state))
        return [plane.unsqueeze(1) for plane in planes]


def whole(threshold: Tensor, spec: EnvSpec) -> Tensor:
    """h_C as a row of a table."""
    return threshold.long().clamp(0, spec.max_threshold)
