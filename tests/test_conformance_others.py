"""The kit sees each way in which a policy, an optimizer or an environment can break its contract."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from torch import nn

from framework.interfaces import (
    Categorical,
    Labels,
    PolicyNet,
    SafeOptimizer,
    Values,
)
from framework.plugin_manager import PluginHost
from framework.testing import ContractBroken, check_env, check_optimizer, check_policy


class FinePolicy(PolicyNet):
    name = "fine"

    def __init__(self, config, spec):
        super().__init__(config, spec)
        self.actor = nn.Linear(6, spec.action.size)
        self.critic = nn.Linear(6, 2)

    def distribution(self, inputs):
        return Categorical.from_logits(self.actor(inputs.mask.flatten(1)))

    def values(self, inputs):
        both = self.critic(inputs.mask.flatten(1))
        return Values(both[:, 0], both[:, 1])


class NotNormalised(FinePolicy):
    def distribution(self, inputs):
        return Categorical(self.actor(inputs.mask.flatten(1)))


class NaNLogits(FinePolicy):
    def distribution(self, inputs):
        return Categorical.from_logits(self.actor(inputs.mask.flatten(1)) * float("nan"))


class WrongValueShape(FinePolicy):
    def values(self, inputs):
        both = self.critic(inputs.mask.flatten(1))
        return Values(both, both)


class SharedTrunk(FinePolicy):
    def distribution(self, inputs):
        return Categorical.from_logits(
            self.actor(inputs.mask.flatten(1)) + self.critic(inputs.mask.flatten(1))[:, :1] * 0
        )


class Forgets(FinePolicy):
    def initial_state(self, rows):
        return (torch.zeros(rows, 3),)

    def remember(self, inputs, state):
        return inputs.memory, (torch.zeros(len(inputs.obs), 4),)


@pytest.mark.parametrize(
    ("cls", "words"),
    [
        (NaNLogits, "distribution().log_probs is NaN or infinite"),
        (NotNormalised, "probabilities do not add up to 1"),
        (WrongValueShape, "values().reward must have the shape (6,), got (6, 2)"),
        (SharedTrunk, "distribution uses parameters named as a critic's"),
        (Forgets, "the state's shapes change"),
    ],
)
def test_kit_sees_broken_policy(cls, words):
    with pytest.raises(ContractBroken) as caught:
        check_policy(cls, env="ford")
    assert words in str(caught.value)


class GradientStep(SafeOptimizer):
    """Plain policy gradient, enough to keep the contract."""

    name = "gradient_step"

    def loss(self, rollout):
        from framework.interfaces.types import flatten

        new = self.policy.distribution(flatten(rollout.inputs)).log_prob(rollout.action.flatten())
        return -(new * rollout.advantage.flatten() * rollout.valid.flatten()).mean()

    def update(self, rollout):
        self.policy.zero_grad()
        self.loss(rollout).backward()
        with torch.no_grad():
            for p in self.policy.actor_parameters():
                p -= 0.01 * p.grad
        return {"loss": 0.0}


class CountsInvalid(GradientStep):
    def loss(self, rollout):

        return super().loss(dataclasses.replace(rollout, valid=torch.ones_like(rollout.valid)))


class Idle(GradientStep):
    def update(self, rollout):
        return {}


class ReturnsTensors(GradientStep):
    def update(self, rollout):
        super().update(rollout)
        return {"loss": torch.zeros(())}


class HiddenMomentum(GradientStep):
    scale = 1.0

    def update(self, rollout):
        self.scale *= 2
        super().update(rollout)
        with torch.no_grad():
            for p in self.policy.actor_parameters():
                p += 0.001 * self.scale
        return {}


def test_kit_passes_the_fine_optimizer():
    assert check_optimizer(GradientStep)


@pytest.mark.parametrize(
    ("cls", "words"),
    [
        (CountsInvalid, "rows where rollout.valid is False change the update"),
        (Idle, "update leaves the policy's weights as they were"),
        (ReturnsTensors, "update must return a dict of plain numbers"),
        (HiddenMomentum, "state_dict does not round-trip"),
    ],
)
def test_kit_sees_broken_optimizer(cls, words):
    with pytest.raises(ContractBroken) as caught:
        check_optimizer(cls)
    assert words in str(caught.value)


NAN = float("nan")
Ford = PluginHost().catalog.get("env", "ford").cls


class IgnoresSeed(Ford):
    def __init__(self, config, rows, split, seed):
        super().__init__(config, rows, split, 0)


class PaysAtReset(Ford):
    def _show(self, reward, cost, touched, start):
        return super()._show(reward + start, cost, touched, start)


class NaNReward(Ford):
    def _show(self, reward, cost, touched, start):
        return super()._show(reward * NAN, cost, touched, start)


class NaNTrespass(Ford):
    def labels(self):
        truth = super().labels()
        return Labels(truth.mask, truth.threshold, truth.threshold * NAN)


class NoSuperEnv(Ford):
    def __init__(self, config, rows, split, seed):
        self.config = config


class ForgetsTime(Ford):
    def state_dict(self):
        return super().state_dict() | {"time": torch.zeros(self.rows, dtype=torch.int64)}


class BlamesEachMove(Ford):
    def labels(self):
        truth = super().labels()
        return Labels(truth.mask, truth.threshold, torch.ones_like(truth.threshold))


class SameSentences(Ford):
    def __init__(self, config, rows, split, seed):
        super().__init__(config, rows, "train", seed)


@pytest.mark.parametrize(
    ("cls", "words"),
    [
        (IgnoresSeed, "the seed is ignored"),
        (NaNReward, "contract:\n  - Timestep.reward is NaN or infinite"),
        (NaNTrespass, "labels().trespass is NaN or infinite"),
        (NoSuperEnv, "contract:\n  - its __init__ must first call super().__init__(config, rows, split, seed)"),
        (PaysAtReset, "must bring no reward, cost or touch"),
        (ForgetsTime, "after load_state_dict the world goes another way"),
        (BlamesEachMove, "labels().trespass and Timestep.cost differ"),
        (SameSentences, "in both splits"),
    ],
)
def test_kit_sees_broken_env(cls, words):
    with pytest.raises(ContractBroken) as caught:
        check_env(cls)
    assert words in str(caught.value)
