"""Contract of SafeOptimizer."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import torch
from torch import Tensor

from framework.agent import Agent
from framework.checkpoint import parameters_finite
from framework.interfaces import PolicyNet, Rollout, SafeOptimizer
from framework.rollout import Collector
from framework.schema import Training
from framework.seeding import generator, seed_everything
from framework.testing.contract import Contract, EnvChoice, default_catalog, same, small_env

ROWS = 8


def check_optimizer(cls: type[SafeOptimizer], config: Any = None, env: EnvChoice | None = None) -> list[str]:
    """Raise ContractBroken unless the class keeps the contract; returns the promises that were tried."""
    contract = Contract(cls)
    if contract.hopeless:
        return contract.settle()
    kit = _Kit(cls, config or cls.Config(), env or "ford")
    contract.env = kit.world.name
    rollout = kit.rollout()
    with contract.promise("update changes the policy, keeps it finite, and returns numbers"):
        policy, optimizer = kit.build()
        before = _weights(policy)
        kept = {
            f.name: v.clone() for f in dataclasses.fields(rollout) if isinstance(v := getattr(rollout, f.name), Tensor)
        }
        metrics = optimizer.update(rollout)
        changed_weights = not same_weights(before, _weights(policy))
        contract.require(changed_weights or not cls.learns, "update leaves the policy's weights as they were")
        contract.require(parameters_finite(policy), "update leaves NaN or infinity in the policy's weights")
        numbers = isinstance(metrics, dict) and all(isinstance(v, int | float) for v in metrics.values())
        if contract.require(numbers, "update must return a dict of plain numbers (use float(...) on tensors)"):
            bad = [name for name, value in metrics.items() if not math.isfinite(value)]
            contract.require(not bad, f"these metrics are NaN or infinite: {', '.join(bad)}")
        changed = [name for name, value in kept.items() if not same(value, getattr(rollout, name))]
        contract.require(not changed, f"update changes the rollout in place: {', '.join(changed)}")
    with contract.promise("the same seed and rollout give the same update"):
        contract.require(
            same_weights(kit.updated(rollout), kit.updated(rollout)),
            "two updates from the same weights and rollout differ: draw from a generator of your own, seeded in "
            "__init__ with torch.initial_seed(), which the framework has set from the run's seed",
        )
    with contract.promise("rows that are no decision of the agent's do not weigh"):
        noisy = _disturb_invalid(rollout)
        contract.require(
            same_weights(kit.updated(rollout), kit.updated(noisy)),
            "rows where rollout.valid is False change the update; leave them out of every mean",
        )
    with contract.promise("a batch in which no episode finished is no problem"):
        none = dataclasses.replace(rollout, violation=0.0, episode_length=1.0)
        policy, optimizer = kit.build()
        metrics = optimizer.update(none)
        contract.require(parameters_finite(policy), "a batch without finished episodes leaves NaN in the weights")
    with contract.promise("state_dict holds all that it carries from one update to the next"):
        policy, optimizer = kit.build()
        optimizer.update(rollout)
        state = {name: value.clone() for name, value in optimizer.state_dict().items()}
        plain = all(isinstance(value, Tensor) for value in state.values())
        if contract.require(plain, "state_dict must hold tensors only (checkpoints are safetensors)"):
            weights = _weights(policy)
            optimizer.update(rollout)
            twin_policy, twin = kit.build()
            twin_policy.load_state_dict(weights)
            twin.load_state_dict(state)
            twin.update(rollout)
            contract.require(
                same_weights(_weights(policy), _weights(twin_policy)),
                "state_dict does not round-trip: after loading it, the next update differs",
            )
    return contract.settle()


class _Kit:
    """A small policy in a small world, built the same way each time."""

    def __init__(self, cls: type[SafeOptimizer], config: Any, env: EnvChoice) -> None:
        self.cls, self.config = cls, config
        self.catalog = default_catalog()
        self.world = small_env(env, ROWS, catalog=self.catalog)

    def build(self) -> tuple[PolicyNet, SafeOptimizer]:
        seed_everything(5)
        mlp = self.catalog.get("policy", "mlp").cls
        assert mlp is not None
        policy: PolicyNet = mlp(mlp.Config(hidden=(16,)), self.world.spec)  # type: ignore[call-arg, assignment]
        return policy, self.cls(self.config, policy)

    def rollout(self) -> Rollout:
        oracle = self.catalog.get("interpreter", "oracle").cls
        assert oracle is not None
        policy, _ = self.build()
        agent = Agent(self.world, oracle(None, self.world.spec), policy)  # type: ignore[call-arg, arg-type]
        steps = (2 * self.world.spec.max_steps + 4) * ROWS
        training = Training(steps=steps, batch=steps, rows=ROWS)
        return Collector(self.world, agent, training, generator(2, "check")).collect()

    def updated(self, rollout: Rollout) -> dict[str, Tensor]:
        policy, optimizer = self.build()
        optimizer.update(rollout)
        return _weights(policy)


def _weights(policy: PolicyNet) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in policy.state_dict().items()}


def same_weights(a: dict[str, Tensor], b: dict[str, Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def _disturb_invalid(rollout: Rollout) -> Rollout:
    names = ("advantage", "cost_advantage", "value_target", "cost_value_target", "reward", "cost")
    changes: dict[str, Any] = {
        n: torch.where(rollout.valid, getattr(rollout, n), getattr(rollout, n) + 100.0) for n in names
    }
    return dataclasses.replace(rollout, **changes)
