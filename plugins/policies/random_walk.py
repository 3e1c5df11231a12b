"""Random walk: the paper's lowest baseline. Every action is as likely as any other, whatever the sentence says."""

from __future__ import annotations

import torch

from framework.hookspecs import hookimpl
from framework.interfaces import Categorical, Distribution, Gaussian, PolicyInput, PolicyNet, Values


class RandomWalk(PolicyNet):
    """Uniform actions (continuous: normal with deviation 1); nothing to learn, nothing to value."""

    name = "random_walk"
    action_kinds = frozenset({"discrete", "continuous"})
    provides = frozenset()

    def distribution(self, inputs: PolicyInput) -> Distribution:
        zeros = torch.zeros(len(inputs.obs), self.spec.action.size)
        return Categorical.from_logits(zeros) if self.spec.action.kind == "discrete" else Gaussian(zeros, zeros)

    def values(self, inputs: PolicyInput) -> Values:
        return Values(torch.zeros(len(inputs.obs)), torch.zeros(len(inputs.obs)))


@hookimpl
def heed_components() -> list[type[PolicyNet]]:
    return [RandomWalk]
