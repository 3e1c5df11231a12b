"""Contract of PolicyNet."""

from __future__ import annotations

from typing import Any

import torch

from framework.agent import Agent, labels_for
from framework.interfaces import Categorical, ConstraintEnv, Gaussian, PolicyInput, PolicyNet
from framework.interfaces.types import take
from framework.seeding import seed_everything
from framework.testing.contract import Contract, EnvChoice, default_catalog, fitting_env, same


def check_policy(cls: type[PolicyNet], config: Any = None, env: EnvChoice | None = None) -> list[str]:
    """Raise ContractBroken unless the class keeps the contract; returns the promises that were tried."""
    contract = Contract(cls)
    if contract.hopeless:
        return contract.settle()
    config = config or cls.Config()

    def build(world: ConstraintEnv) -> PolicyNet:
        if world.spec.action.kind not in cls.action_kinds:
            raise ValueError(f"acts with {' or '.join(sorted(cls.action_kinds))} actions only")
        seed_everything(7)
        return cls(config, world.spec)

    fitted = fitting_env(build, env, contract)
    if fitted is None:
        return contract.settle()
    world, policy = fitted
    inputs = None
    with contract.promise("remember gives features [rows, ...] and keeps the state's shapes"):
        inputs = _inputs(contract, world, policy)
    if inputs is None:
        return contract.settle()
    with contract.promise("distribution fits the action space"), torch.no_grad():
        _check_distribution(contract, world, policy.distribution(inputs))
    with contract.promise("values are finite, one per row"), torch.no_grad():
        values = policy.values(inputs)
        for name, value in (("reward", values.reward), ("cost", values.cost)):
            told = f"values().{name} must have the shape {(world.rows,)}, got {tuple(value.shape)}"
            contract.require(tuple(value.shape) == (world.rows,), told)
            contract.numbers(f"values().{name}", value)
    with contract.promise("it is a function of its input, row by row"), torch.no_grad():
        contract.require(
            same(policy.distribution(inputs), policy.distribution(inputs)),
            "distribution gives two answers to one question: dropout, or memory on self (memory belongs in remember)",
        )
        turned = take(inputs, torch.arange(world.rows).flip(0))
        contract.require(
            same(policy.values(inputs).reward, policy.values(turned).reward.flip(0)),
            "rows influence each other: turning the batch around changes a row's value",
        )
    with contract.promise("equal seeds give equal weights"):
        pairs = zip(policy.state_dict().values(), build(world).state_dict().values(), strict=True)
        contract.require(all(same(a, b) for a, b in pairs), "two instances built under the same seed differ")
    with contract.promise("state_dict holds all that it learned"), torch.no_grad():
        seed_everything(8)
        other = cls(config, world.spec)
        other.load_state_dict(policy.state_dict())
        contract.require(
            same(policy.distribution(inputs), other.distribution(inputs)), "state_dict does not round-trip"
        )
    with contract.promise("gradients reach actor and critics apart"):
        _check_gradients(contract, policy, inputs)
    return contract.settle()


def _inputs(contract: Contract, world: ConstraintEnv, policy: PolicyNet) -> PolicyInput | None:
    """What the policy sees after a few steps with the true interpreter."""
    oracle = default_catalog().get("interpreter", "oracle").cls
    assert oracle is not None
    agent = Agent(world, oracle(None, world.spec), policy)  # type: ignore[call-arg, arg-type]
    now, mind, action = world.reset(), agent.fresh_mind(), agent.no_action()
    inputs = None
    for _ in range(4):
        shapes = [tuple(t.shape) for t in mind.policy]
        inputs, mind = agent.perceive(now, mind, action, labels_for(agent.interpreter, world))
        new = [tuple(t.shape) for t in mind.policy]
        if not contract.require(shapes == new, f"the state's shapes change from {shapes} to {new} in remember"):
            return None
        rows = inputs.memory.shape[0] if inputs.memory.dim() else 0
        if not contract.require(rows == world.rows, f"remember must return features [{world.rows}, ...]"):
            return None
        with torch.no_grad():
            distribution = policy.distribution(inputs)
            if not _check_distribution(contract, world, distribution):
                return None
            action = distribution.sample(torch.Generator().manual_seed(0))
        now = world.step(action)
    return inputs


def _check_distribution(contract: Contract, world: ConstraintEnv, distribution: Any) -> bool:
    """Before anything is drawn from it: what a NaN makes of an action would be blamed on something else."""
    action = world.spec.action
    wanted = Categorical if action.kind == "discrete" else Gaussian
    if not contract.require(
        isinstance(distribution, wanted),
        f"distribution must return {wanted.__name__} for {action.kind} actions, got {type(distribution).__name__}",
    ):
        return False
    fine = True
    for name, tensor in vars(distribution).items():
        told = f"the distribution has shape {tuple(tensor.shape)}; it must be [rows, actions]"
        fine &= contract.require(
            tuple(tensor.shape) == (world.rows, action.size), f"{told} = {(world.rows, action.size)}"
        )
        fine &= contract.numbers(f"distribution().{name}", tensor)
    if fine and isinstance(distribution, Categorical):
        total = distribution.log_probs.exp().sum(-1)
        fine = contract.require(
            same(total, torch.ones_like(total)), "probabilities do not add up to 1; use Categorical.from_logits"
        )
    return fine


def _check_gradients(contract: Contract, policy: PolicyNet, inputs: PolicyInput) -> None:
    parameters = dict(policy.named_parameters())
    if not parameters:
        return
    actor = {id(p) for p in policy.actor_parameters()}
    policy.zero_grad()
    distribution = policy.distribution(inputs)
    (distribution.log_prob(distribution.mode()).sum() + distribution.entropy().sum()).backward()
    missing = [n for n, p in parameters.items() if id(p) in actor and p.requires_grad and p.grad is None]
    contract.require(not missing, f"distribution gives no gradient to: {', '.join(missing)}")
    stray = [n for n, p in parameters.items() if id(p) not in actor and p.grad is not None]
    contract.require(not stray, f"distribution uses parameters named as a critic's: {', '.join(stray)}")
    policy.zero_grad()
    values = policy.values(inputs)
    (values.reward.sum() + values.cost.sum()).backward()
    missing = [n for n, p in parameters.items() if id(p) not in actor and p.requires_grad and p.grad is None]
    contract.require(not missing, f"values gives no gradient to: {', '.join(missing)}")
