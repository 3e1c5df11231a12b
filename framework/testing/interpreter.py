"""Contract of ConstraintInterpreter."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from framework.agent import felt_at
from framework.explaining import explanation_fault
from framework.interfaces import (
    ConstraintEnv,
    ConstraintInterpreter,
    Interpretation,
    InterpreterInput,
    Labels,
    Lesson,
    State,
)
from framework.interfaces.interpreter import reset_rows
from framework.seeding import seed_everything
from framework.testing.contract import Contract, EnvChoice, fitting_env, same
from framework.walks import walk as random_walk

ODD_SENTENCES = ("", "   ", "🔥🌊", "word " * 10_000, "\x00\x07", "Не ступай на воду")
STEPS = 5


def check_interpreter(cls: type[ConstraintInterpreter], config: Any = None, env: EnvChoice | None = None) -> list[str]:
    """Raise ContractBroken unless the class keeps the contract; returns the promises that were tried."""
    contract = Contract(cls)
    if contract.hopeless:
        return contract.settle()
    config = config or cls.Config()

    def build(world: ConstraintEnv) -> ConstraintInterpreter:
        seed_everything(7)
        return cls(config, world.spec)

    fitted = fitting_env(build, env, contract)
    if fitted is None:
        return contract.settle()
    world, interpreter = fitted
    interpreter.eval()
    walk = _Walk(world, cls.needs_labels)
    _check_encode(contract, interpreter, world)
    first: list[Interpretation] = []
    with contract.promise("step gives a mask and a threshold of the right shape", _about_labels), torch.no_grad():
        first = walk.run(contract, interpreter)
    if not first:
        return contract.settle()
    with (
        contract.promise("the same input gives the same output; nothing is remembered outside the state"),
        torch.no_grad(),
    ):
        again = walk.run(contract, interpreter)
        contract.require(
            all(same(a, b) for a, b in zip(first, again, strict=True)),
            "the same walk read twice from initial_state gives different masks: it is not deterministic, or it keeps "
            "memory on self; memory belongs in the returned state, which the framework resets",
        )
    with contract.promise("rows do not influence each other"), torch.no_grad():
        turned = walk.run(contract, interpreter, order=torch.arange(walk.rows).flip(0))
        contract.require(
            all(
                same(a.mask, b.mask.flip(0)) and same(a.threshold, b.threshold.flip(0))
                for a, b in zip(first, turned, strict=True)
            ),
            "the rows of a batch influence each other: turning the batch around changes what a row gets",
        )
    with contract.promise("equal seeds give equal weights"):
        twin = build(world)
        contract.require(
            all(same(a, b) for a, b in zip(interpreter.state_dict().values(), twin.state_dict().values(), strict=True)),
            "two instances built under the same seed have different weights: it draws from a random source of its own",
        )
    with contract.promise("state_dict holds all that it learned"), torch.no_grad():
        seed_everything(8)
        other = cls(config, world.spec).eval()
        other.load_state_dict(interpreter.state_dict())
        loaded = walk.run(contract, other)
        contract.require(
            all(same(a, b) for a, b in zip(first, loaded, strict=True)),
            "state_dict does not round-trip: a second instance that loads it gives other masks",
        )
    if cls.fit is not ConstraintInterpreter.fit:
        _check_fit(contract, interpreter, world)
    elif interpreter.learns:
        _check_learning(contract, interpreter, world, walk)
    if cls.explain is not ConstraintInterpreter.explain:
        _check_explain(contract, interpreter, world)
    return contract.settle()


def _check_explain(contract: Contract, interpreter: ConstraintInterpreter, world: ConstraintEnv) -> None:
    with contract.promise("explain returns an Explanation or None"), torch.no_grad():
        for sentence in list(world.sentences)[:8]:
            fault = explanation_fault(interpreter.explain(sentence))
            contract.require(not fault, fault)


def _about_labels(error: Exception) -> str:
    """Labels are None for those who did not ask for them."""
    asked = isinstance(error, AttributeError) and error.obj is None and error.name in Labels.__dataclass_fields__
    return "does it read inputs.labels? declare needs_labels = True" if asked else ""


def _check_encode(contract: Contract, interpreter: ConstraintInterpreter, world: ConstraintEnv) -> None:
    sentences = list(world.sentences)
    with contract.promise("encode gives one row per sentence"), torch.no_grad():
        code = interpreter.encode(sentences)
        if contract.require(
            isinstance(code, Tensor) and code.dim() >= 1 and len(code) == len(sentences),
            f"encode({len(sentences)} sentences) must return a tensor whose first size is {len(sentences)}, "
            f"got {tuple(code.shape) if isinstance(code, Tensor) else type(code).__name__}",
        ):
            turned = interpreter.encode(sentences[::-1])
            contract.require(
                same(code, turned.flip(0)), "encode reads sentences differently when their order in the table changes"
            )
    with contract.promise("encode takes odd sentences (empty, emoji, 10,000 words) without raising"), torch.no_grad():
        for sentence in ODD_SENTENCES:
            code = interpreter.encode([sentence])
            contract.require(
                not code.is_floating_point() or bool(torch.isfinite(code).all()),
                f"encode returns NaN or infinity for the sentence {sentence[:20]!r}",
            )


def _check_fit(contract: Contract, interpreter: ConstraintInterpreter, world: ConstraintEnv) -> None:
    with contract.promise("fit learns from a walk and returns numbers"):
        walks, _ = random_walk(world, 60 * world.rows, seed=5)
        lesson = Lesson(iterations=2, batch=16, learning_rate=1e-3, seed=1, report=lambda step, metrics: None)
        interpreter.train()
        metrics = interpreter.fit(walks, world.sentences, lesson)
        interpreter.eval()
        numbers = isinstance(metrics, dict) and all(isinstance(v, int | float) for v in metrics.values())
        contract.require(numbers, "fit must return a dict of plain numbers")
        finite = all(bool(torch.isfinite(v).all()) for v in interpreter.state_dict().values() if v.is_floating_point())
        contract.require(finite, "fit leaves NaN or infinity in what it learned")


def _check_learning(contract: Contract, interpreter: ConstraintInterpreter, world: ConstraintEnv, walk: _Walk) -> None:
    with contract.promise("the loss is a finite scalar whose gradient reaches every parameter"):
        interpreter.train()
        code = interpreter.encode(list(world.sentences))
        inputs = InterpreterInput(
            torch.stack(walk.obs), torch.stack([code[text] for text in walk.text]), touched=torch.stack(walk.touched)
        )
        truth = Labels(torch.stack([t.mask for t in walk.labels]), torch.stack([t.threshold for t in walk.labels]))
        interpreter.zero_grad()
        loss = interpreter.loss(inputs, truth, torch.stack(walk.start))
        if contract.require(
            isinstance(loss, Tensor) and loss.shape == () and bool(torch.isfinite(loss)),
            f"loss must return one finite number, got {loss}",
        ) and contract.require(loss.requires_grad, "loss has no gradient: something detached it from the parameters"):
            loss.backward()
            missing = [n for n, p in interpreter.named_parameters() if p.requires_grad and p.grad is None]
            contract.require(not missing, f"the loss gives no gradient to: {', '.join(missing)}")
        interpreter.eval()


class _Walk:
    """A short random walk, recorded once and shown to the interpreter several times."""

    def __init__(self, world: ConstraintEnv, with_labels: bool) -> None:
        k = world.spec.constraints
        self.rows, self.cells, self.world, self.with_labels = world.rows * k, world.spec.cells, world, with_labels
        self.obs, self.text, self.start, self.labels, self.touched = [], [], [], [], []
        stream = torch.Generator().manual_seed(3)
        now = world.reset()
        for _ in range(STEPS):
            truth = world.labels()
            self.obs.append(now.obs.repeat_interleave(k, 0))
            self.text.append(now.text.flatten())
            self.touched.append(felt_at(now).repeat_interleave(k, 0))
            self.start.append(now.episode_start.repeat_interleave(k))
            self.labels.append(Labels(truth.mask.flatten(0, 1)[:, None], truth.threshold.reshape(-1, 1)))
            size = world.spec.action.size
            if world.spec.action.kind == "discrete":
                now = world.step(torch.randint(size, (world.rows,), generator=stream))
            else:
                now = world.step(torch.rand(world.rows, size, generator=stream) * 2 - 1)

    def run(
        self, contract: Contract, interpreter: ConstraintInterpreter, order: Tensor | None = None
    ) -> list[Interpretation]:
        """What the interpreter sees on this walk, from a fresh state; shapes are checked on the way."""
        pick = torch.arange(self.rows) if order is None else order
        code = interpreter.encode(list(self.world.sentences))
        state, out = interpreter.initial_state(self.rows), []
        for t in range(STEPS):
            state = reset_rows(state, interpreter.initial_state(self.rows), self.start[t][pick])
            truth = Labels(self.labels[t].mask[pick], self.labels[t].threshold[pick]) if self.with_labels else None
            obs = self.obs[t][pick]
            kept = obs.clone()
            told = interpreter.step(
                InterpreterInput(obs, code[self.text[t][pick]], truth, self.touched[t][pick]), state
            )
            if not _is_pair(contract, told) or not self._well_formed(contract, told[0], state, told[1]):
                return []
            seen, new_state = told
            contract.require(same(obs, kept), "step changes the observation in place")
            state = new_state
            out.append(seen)
        return out

    def _well_formed(self, contract: Contract, seen: Interpretation, old: State, new: State) -> bool:
        want = (self.rows, *self.cells)
        fine = contract.require(
            tuple(seen.mask.shape) == want,
            f"mask has shape {tuple(seen.mask.shape)}; it must be [rows, *cells] = {want}",
        )
        fine &= contract.require(
            tuple(seen.threshold.shape) == (self.rows,),
            f"threshold has shape {tuple(seen.threshold.shape)}; it must be [rows] = {(self.rows,)}",
        )
        if fine:
            fine &= contract.numbers("threshold", seen.threshold)
            fine &= _probabilities(contract, "mask", seen.mask)
        for name in ("confidence", "trespass"):
            told = getattr(seen, name)
            if told is not None and contract.require(
                tuple(told.shape) == (self.rows,), f"{name} must have shape {(self.rows,)}"
            ):
                fine &= _probabilities(contract, name, told)
        shapes = [tuple(t.shape) for t in old], [tuple(t.shape) for t in new]
        return fine & contract.require(
            shapes[0] == shapes[1], f"the state's shapes change from {shapes[0]} to {shapes[1]} in a step"
        )


def _probabilities(contract: Contract, name: str, value: Tensor) -> bool:
    return contract.numbers(name, value) and contract.require(
        bool(((value >= 0) & (value <= 1)).all()),
        f"{name} has values outside [0, 1]: it holds probabilities, not logits",
    )


def _is_pair(contract: Contract, told: Any) -> bool:
    """Is this what ``step`` returns at all: an Interpretation of tensors, and a state?"""
    must = "step must return an Interpretation and the state: return Interpretation(mask, threshold), state"
    pair = isinstance(told, tuple) and len(told) == 2
    if not pair or not isinstance(told[0], Interpretation):
        got = f"({', '.join(type(item).__name__ for item in told)})" if isinstance(told, tuple) else type(told).__name__
        contract.fault(f"{must}; got {got}")
        return False
    seen, state = told
    fine = contract.require(
        isinstance(state, tuple | list) and all(isinstance(item, Tensor) for item in state),
        f"{must}; its state is {type(state).__name__}, but must be a tuple of tensors, () for no memory",
    )
    for name, optional in (("mask", False), ("threshold", False), ("confidence", True), ("trespass", True)):
        value = getattr(seen, name)
        told = f"{name} is {type(value).__name__}, but must be a tensor{', or None' if optional else ''}"
        fine &= contract.require(isinstance(value, Tensor) or (optional and value is None), told)
    return fine
