"""Constraint Fusion for the robot: one network gets sensors, lidars and the sentence, and has to make sense of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from framework.hookspecs import hookimpl
from framework.interfaces import Distribution, EnvSpec, Gaussian, PolicyInput, PolicyNet, Values
from plugins.policies._nets import Twin, check_sizes, dense
from plugins.policies._robot_senses import RobotSenses
from plugins.policies._sentence import SentenceReader, encode
from plugins.policies._uses import Uses


@dataclass(frozen=True)
class Config:
    """Settings of Constraint Fusion for the robot."""

    hidden: tuple[int, ...] = (64, 64)
    """Width of each dense layer."""
    words: int = 16
    """Size of a word's embedding."""
    text: int = 32
    """Size of the sentence's vector (the paper: 5)."""
    log_std: float = -0.5
    """Initial log standard deviation of the actions."""

    def __post_init__(self) -> None:
        check_sizes(self.hidden, words=self.words, text=self.text)


class FusionRobot(PolicyNet):
    """Constraint Fusion on the robot: MLP of the observation, LSTM of the text, end to end; no mask, no budget."""

    name = "fusion_robot"
    Config = Config
    config: Config
    action_kinds = frozenset({"continuous"})

    def __init__(self, config: Config, spec: EnvSpec) -> None:
        super().__init__(config, spec)
        self._senses = RobotSenses(spec, Uses(mask=False, budget=False, threshold=False))
        size = self._senses.size() + config.text
        self.actor = SentenceReader(config.words, config.text)
        self.actor_head = dense(size, config.hidden, spec.action.size, last_gain=0.01)
        self.log_std = nn.Parameter(torch.full((spec.action.size,), config.log_std))
        self.critic = SentenceReader(config.words, config.text)  # of its own, but one for both values
        self.critic_heads = Twin(size, config.hidden)

    def encode(self, sentences: Sequence[str]) -> Tensor:
        return encode(sentences)

    def distribution(self, inputs: PolicyInput) -> Distribution:
        mean = self.actor_head(self._senses.look(inputs), self.actor(inputs))
        return Gaussian(mean, self.log_std.expand_as(mean))

    def values(self, inputs: PolicyInput) -> Values:
        return Values(*self.critic_heads(self._senses.look(inputs), self.critic(inputs)))


@hookimpl
def heed_components() -> list[type[PolicyNet]]:
    return [FusionRobot]
