"""POLCO's policy for the robot: sensors, lidars, and what is forbidden among them; what is left of the budget; h_C."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import nn

from framework.hookspecs import hookimpl
from framework.interfaces import Distribution, EnvSpec, Gaussian, PolicyInput, PolicyNet, Values
from plugins.policies._nets import Twin, check_sizes, dense
from plugins.policies._robot_senses import RobotSenses
from plugins.policies._uses import Uses


@dataclass(frozen=True)
class Config:
    """Settings of POLCO's policy for the robot."""

    hidden: tuple[int, ...] = (64, 64)
    """Width of each dense layer."""
    uses: Uses = field(default_factory=Uses)
    """Which inputs it gets."""
    log_std: float = -0.5
    """Initial log standard deviation of the actions."""

    def __post_init__(self) -> None:
        check_sizes(self.hidden)


class PolcoRobot(PolicyNet):
    """POLCO on the robot: the lidar of what is forbidden, budget and h_C beside the observation; Gaussian actions."""

    name = "polco_robot"
    Config = Config
    config: Config
    action_kinds = frozenset({"continuous"})

    def __init__(self, config: Config, spec: EnvSpec) -> None:
        super().__init__(config, spec)
        self._senses = RobotSenses(spec, config.uses)
        size = self._senses.size()
        self.actor = dense(size, config.hidden, spec.action.size, last_gain=0.01)
        self.log_std = nn.Parameter(torch.full((spec.action.size,), config.log_std))
        self.critics = Twin(size, config.hidden)

    def distribution(self, inputs: PolicyInput) -> Distribution:
        mean = self.actor(self._senses.look(inputs))
        return Gaussian(mean, self.log_std.expand_as(mean))

    def values(self, inputs: PolicyInput) -> Values:
        return Values(*self.critics(self._senses.look(inputs)))


@hookimpl
def heed_components() -> list[type[PolicyNet]]:
    return [PolcoRobot]
