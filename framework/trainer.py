"""Policy learning, top to bottom: collect, update, log, save.

    registry.yaml -> config -> grid -> cell -> builder -> [ this loop ] -> evaluator -> report

``Collector.collect`` (rollout.py) runs interpreter, ledger and policy (agent.py) against the environments and adds
advantages (advantages.py); ``SafeOptimizer.update`` (plugins/optimizers/) changes the policy.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from framework.agent import Agent
from framework.builder import System
from framework.checkpoint import parameters_finite
from framework.interfaces import Episodes, Rollout
from framework.ledger import Reckoning
from framework.resume import Saver, named, part
from framework.rollout import Collector
from framework.schema import Training
from framework.seeding import generator, global_streams, set_global_streams
from framework.tutor import Tutor

Log = Callable[[int, Mapping[str, float]], None]
MAX_DROPPED = 3
"""Updates in a row that may come to nothing (NaN) before the run stops."""


class Diverged(RuntimeError):
    """Update after update produced NaN or infinity."""


class Trainer:
    """Stage 2: the policy learns, as a rule with the interpreter frozen."""

    def __init__(
        self, system: System, training: Training, seed: int, log: Log, tutored: bool = False, saver: Saver | None = None
    ) -> None:
        self.system = system
        self.training = training
        self.log = log
        self.step = 0
        self.dropped = 0
        self._episodes, self._violation = 0, 0.0
        system.interpreter.eval()  # while acting it reads without dropout, also before its first lesson
        agent = Agent(system.env, system.interpreter, system.policy, Reckoning.of(training))
        self.collector = Collector(system.env, agent, training, generator(seed, "actions"))
        self.tutor: Tutor | None = None
        if tutored:
            self.tutor = Tutor(system.interpreter, system.env, training, seed)
            self.collector.watch = self.tutor.watch
        self.saver = saver

    def train(self) -> None:
        """Until ``training.steps`` environment steps are done; goes on from where it was restored to."""
        while self.step < self.training.steps:
            started = time.perf_counter()
            rollout = self.collector.collect()
            collected = time.perf_counter()
            metrics = self._update(rollout) | self._teach()
            self.step += self.training.batch
            finished = time.perf_counter()
            timing = {
                "seconds_collect": collected - started,
                "seconds_update": finished - collected,
                "steps_per_second": self.training.batch / (finished - started),
            }
            episodes = self.collector.tally.episodes()
            self._episodes += len(episodes)
            self._violation += float(episodes.violation.sum())
            self.log(self.step, describe(episodes) | metrics | timing)
            if self.saver is not None and self.saver.due():
                self.saver.save(*self.state())

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """All that the rest of the training depends on."""
        system = self.system
        tensors = named("policy", system.policy.state_dict()) | named("optimizer", system.optimizer.state_dict())
        tensors |= named("env", system.env.state_dict()) | named("collector", self.collector.state())
        tensors |= named("random", global_streams())
        if self.tutor is not None:
            tensors |= named("tutor", self.tutor.state_dict())
        counters = {"step": self.step, "dropped": self.dropped}
        return tensors, counters | {"episodes": self._episodes, "violation": self._violation}

    def restore(self, tensors: dict[str, Tensor], counters: dict[str, Any]) -> None:
        """Undo of ``state``, on a trainer that was built the same way."""
        system = self.system
        system.policy.load_state_dict(part("policy", tensors))
        system.optimizer.load_state_dict(part("optimizer", tensors))
        system.env.load_state_dict(part("env", tensors))
        if self.tutor is not None:
            self.tutor.load_state_dict(part("tutor", tensors))
            self.collector.agent.read()
        self.collector.restore(part("collector", tensors))
        # Older saves have torch's stream alone, under its own name.
        set_global_streams(part("random", tensors) or {"torch": tensors["torch"]})
        self.step, self.dropped = counters["step"], counters["dropped"]
        self._episodes, self._violation = counters["episodes"], counters["violation"]

    def _teach(self) -> dict[str, float]:
        """Only if the interpreter learns beside the policy."""
        if self.tutor is None:
            return {}
        metrics = self.tutor.teach()
        self.collector.agent.read()
        return metrics

    def regret(self) -> dict[str, float]:
        """What learning itself has cost: violations while it went on, which is what safe RL is about."""
        mean = self._violation / self._episodes if self._episodes else math.nan
        return {"learning_episodes": float(self._episodes), "learning_violation": mean}

    def _update(self, rollout: Rollout) -> dict[str, float]:
        """One update; one that leaves NaN in the policy is undone and counted."""
        policy, optimizer = self.system.policy, self.system.optimizer
        before = {name: value.clone() for name, value in policy.state_dict().items()}
        carried = {name: value.clone() for name, value in optimizer.state_dict().items()}
        metrics = optimizer.update(rollout)
        if parameters_finite(policy):
            self.dropped = 0
            return metrics | {"constraint_violation": rollout.violation}
        policy.load_state_dict(before)
        optimizer.load_state_dict(carried)  # Adam's moments are spoilt too
        self.dropped += 1
        if self.dropped > MAX_DROPPED:
            raise Diverged(
                f"{self.dropped} updates in a row made the policy's weights NaN or infinite (step {self.step:,}); "
                "the weights before them are kept. Try a smaller learning rate or KL radius."
            )
        return {"dropped_updates": float(self.dropped), "constraint_violation": rollout.violation}


def describe(episodes: Episodes) -> dict[str, float]:
    """Means over the episodes that finished in a batch, and Delta_C for each true h_C."""
    if not len(episodes):
        return {"episodes": 0.0}
    violation = episodes.violation
    predicted = (episodes.predicted_cost - episodes.predicted_threshold).clamp(min=0).sum(-1)
    row = {
        "episodes": float(len(episodes)),
        "reward": float(episodes.reward.mean()),
        "violation": float(violation.mean()),
        "predicted_violation": float(predicted.mean()),
        "cost": float(episodes.cost.sum(-1).mean()),
        "length": float(episodes.length.mean()),
    }
    budget = episodes.threshold.amin(-1)
    for h in torch.unique(budget).tolist():
        row[f"violation_h{h:g}"] = float(violation[budget == h].mean())
        row[f"reward_h{h:g}"] = float(episodes.reward[budget == h].mean())
    return row
