"""Contract of ConstraintEnv."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch import Tensor

from framework.builder import half_made
from framework.interfaces import ConstraintEnv, Split, Timestep
from framework.testing.contract import Contract, same

ROWS = 5
OBS_DTYPE = {"codes": torch.uint8, "vector": torch.float32, "image": torch.uint8}


def check_env(cls: type[ConstraintEnv], config: Any = None) -> list[str]:
    """Raise ContractBroken unless the class keeps the contract; returns the promises that were tried."""
    contract = Contract(cls)
    if contract.hopeless:
        return contract.settle()
    config = config or cls.Config()

    def build(seed: int = 1, split: Split = "train") -> ConstraintEnv:
        return cls(config, rows=ROWS, split=split, seed=seed)

    world = None
    with contract.promise("it can be built"):
        world = build()
        contract.require(not half_made(world), half_made(world))
    if world is None or half_made(world):
        return contract.settle()
    horizon = min(2 * world.spec.max_steps + 6, 450)
    with contract.promise("every step has the shapes and types of the spec"):
        _check_steps(contract, world, horizon)
    with contract.promise("equal seeds give equal worlds, other seeds others"):
        steps = min(horizon, 30)
        one, two, three = (_play(build(seed), steps) for seed in (1, 1, 2))
        contract.require(all(same(a, b) for a, b in zip(one, two, strict=True)), "two worlds with the same seed differ")
        differ = any(not same(a, b) for a, b in zip(one, three, strict=True))
        contract.require(differ, "worlds with different seeds are the same: the seed is ignored")
        again = build()
        _play(again, 7)
        contract.require(same(again.reset(), build().reset()), "reset does not go back to the seed's first episode")
    with contract.promise("what it returned is not changed by later steps"):
        fresh = build()
        first = fresh.reset()
        kept = dataclasses.replace(first, **{n: v.clone() for n, v in _tensors(first).items()})
        _advance(fresh, 5)
        contract.require(same(first, kept), "tensors of an earlier step are overwritten by later ones; return copies")
    with contract.promise("state_dict goes on exactly"):
        source, target = build(), build(seed=3)
        source.reset()
        _advance(source, 9)
        state = {name: value.clone() for name, value in source.state_dict().items()}
        target.reset()
        target.load_state_dict(state)
        a, b = _advance(source, horizon), _advance(target, horizon)
        contract.require(
            all(same(x, y) for x, y in zip(a, b, strict=True)), "after load_state_dict the world goes another way"
        )
    with contract.promise("evaluation sentences are not those of training"):
        shared = set(build(split="train").sentences) & set(build(split="eval").sentences)
        contract.require(not shared or len(world.sentences) <= 1, f"in both splits: {sorted(shared)[:3]}")
    if world.spec.action.kind == "discrete":
        with contract.promise("an action out of range is refused with ValueError"):
            bad = torch.full((ROWS,), world.spec.action.size)
            try:
                build().step(bad)
                contract.fault("step takes an action out of range without a word; raise ValueError")
            except ValueError:
                pass
    world.close()
    return contract.settle()


def _check_steps(contract: Contract, world: ConstraintEnv, horizon: int) -> None:
    now = world.reset()
    contract.require(bool(now.episode_start.all()), "after reset, episode_start must be True for every row")
    stream = torch.Generator().manual_seed(4)
    length = torch.zeros(ROWS)
    ended = False
    if not _check_timestep(contract, world, now):
        return  # what would be made of it is no use
    for _ in range(horizon):
        _check_labels(contract, world, now)
        before = now
        now = world.step(_random_action(world, stream))
        if not _check_timestep(contract, world, now):
            return
        length = torch.where(before.done & (now.final_obs is None), torch.zeros(ROWS), length + 1)
        contract.require(
            bool((length <= world.spec.max_steps).all()),
            f"an episode is longer than spec.max_steps = {world.spec.max_steps}",
        )
        length = length * ~now.episode_start
        if now.final_obs is not None:
            _check_same_step(contract, now, now.final_obs)
        else:
            contract.require(
                bool((now.episode_start == before.done).all()),
                "a row that was done must start its next episode in the next step (episode_start), and no other row",
            )
            silent = (now.reward == 0) & (now.cost == 0).all(-1) & ~now.touched.flatten(1).any(-1)
            contract.require(
                bool((silent | ~now.episode_start).all()),
                "the step that starts an episode must bring no reward, cost or touch",
            )
        ended |= bool(now.done.any())
    contract.require(ended or horizon < world.spec.max_steps, "no episode ended within spec.max_steps")


def _check_same_step(contract: Contract, now: Timestep, final: Tensor) -> None:
    """For environments that reset within the step."""
    contract.require(
        bool((now.episode_start == now.done).all()),
        "with final_obs, a row that is done must start its next episode in the same Timestep (episode_start)",
    )
    fits = final.shape == now.obs.shape and final.dtype == now.obs.dtype
    contract.require(
        fits and bool((final == now.obs)[~now.done].all()),
        "Timestep.final_obs must have the shape and type of obs, and be equal to it in rows that are not done",
    )


def _check_timestep(contract: Contract, world: ConstraintEnv, now: Timestep) -> bool:
    """False if shapes, types, or numbers that are not finite leave nothing to be said about the rest."""
    spec, k = world.spec, world.spec.constraints
    shapes: dict[str, tuple[tuple[int, ...], torch.dtype]] = {
        "obs": ((ROWS, *spec.observation.shape), OBS_DTYPE[spec.observation.kind]),
        "text": ((ROWS, k), torch.int64),
        "reward": ((ROWS,), torch.float32),
        "cost": ((ROWS, k), torch.float32),
        "threshold": ((ROWS, k), torch.float32),
        "kind": ((ROWS, k), torch.int64),
        "touched": ((ROWS, *spec.cells), torch.float32 if now.touched.dtype == torch.float32 else torch.bool),
        "terminated": ((ROWS,), torch.bool),
        "truncated": ((ROWS,), torch.bool),
        "episode_start": ((ROWS,), torch.bool),
    }
    fine = True
    for name, (shape, dtype) in shapes.items():
        tensor = getattr(now, name)
        told = f"Timestep.{name} is {tuple(tensor.shape)} {tensor.dtype}; it must be {shape} {dtype}"
        fits = contract.require(tuple(tensor.shape) == shape and tensor.dtype == dtype, told)
        fine &= fits and contract.numbers(f"Timestep.{name}", tensor, dtype)
    if not fine:
        return False
    if spec.observation.kind == "codes":
        over = [c for c, n in enumerate(spec.observation.levels) if bool((now.obs[..., c] >= n).any())]
        contract.require(not over, f"observation channel {over} has codes past spec.observation.levels")
    table = len(world.sentences)
    contract.require(
        bool(((now.text >= 0) & (now.text < table)).all()), f"Timestep.text has ids outside 0..{table - 1}"
    )
    budget_fits = bool(((now.threshold >= 0) & (now.threshold <= spec.max_threshold)).all())
    contract.require(budget_fits, f"Timestep.threshold is outside 0..spec.max_threshold = {spec.max_threshold}")
    contract.require(bool((now.kind < len(world.kinds)).all()), "Timestep.kind is no index into kinds")
    contract.require(bool((now.cost >= 0).all()), "Timestep.cost is negative")
    contract.require(bool((now.touched >= 0).all()), "Timestep.touched is negative")
    return True


def _check_labels(contract: Contract, world: ConstraintEnv, now: Timestep) -> None:
    truth, want = world.labels(), (ROWS, world.spec.constraints, *world.spec.cells)
    contract.require(tuple(truth.mask.shape) == want, f"labels().mask is {tuple(truth.mask.shape)}; it must be {want}")
    told = {"mask": truth.mask, "threshold": truth.threshold} | (
        {} if truth.trespass is None else {"trespass": truth.trespass}
    )
    if not all([contract.numbers(f"labels().{name}", value) for name, value in told.items()]):
        return
    contract.require(same(truth.threshold, now.threshold), "labels().threshold and Timestep.threshold differ")
    costs = truth.trespass is None or same(truth.trespass > 0, now.cost > 0)
    contract.require(costs, "labels().trespass and Timestep.cost differ")


def _random_action(world: ConstraintEnv, stream: torch.Generator) -> Tensor:
    size = world.spec.action.size
    if world.spec.action.kind == "discrete":
        return torch.randint(size, (ROWS,), generator=stream)
    return torch.rand(ROWS, size, generator=stream) * 2 - 1


def _play(world: ConstraintEnv, steps: int) -> list[Timestep]:
    return [world.reset(), *_advance(world, steps)]


def _advance(world: ConstraintEnv, steps: int) -> list[Timestep]:
    stream = torch.Generator().manual_seed(6)
    return [world.step(_random_action(world, stream)) for _ in range(steps)]


def _tensors(now: Timestep) -> dict[str, Tensor]:
    return {f.name: v for f in dataclasses.fields(now) if isinstance(v := getattr(now, f.name), Tensor)}
