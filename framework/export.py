"""Take a trained policy elsewhere: ``python -m framework.export RUN_FOLDER``.

The file holds one step of the policy, its memory included::

    action values, *next state  =  step(obs, mask, budget, threshold, touched, last_action, text, tokens, *state)

Action values are log-probabilities of the actions, or the mean of continuous ones. A memory that is not made of torch
operations cannot be in it; then ``--network-only`` leaves it out, and its features are one more input, ``memory``.
Beside it, FILE.json names every input and output with shape and type.

What was written is loaded again and compared with the policy on a walk through its world; a file that does not give the
same is not kept.

Exit codes: 0 done, 2 the user's mistake, or a policy that cannot be exported that way, 130 stopped (Ctrl-C).
"""

from __future__ import annotations

import argparse
import dataclasses
import logging
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch import Tensor, nn

from framework.agent import labels_for
from framework.builder import build_env
from framework.checkpoint import write_json
from framework.errors import Problem, UserError, complain, did_you_mean, stopped
from framework.interfaces import Categorical, PolicyInput, PolicyNet, State
from framework.interfaces.interpreter import reset_rows
from framework.seeding import generator
from framework.trained import Trained, load_trained, plugin_host

INPUTS = ("obs", "mask", "budget", "threshold", "touched", "last_action", "text", "tokens")
SUFFIX = {"torchscript": ".ts", "onnx": ".onnx", "torch": ".pt2"}
WALK, CLOSE = 30, 1e-4


def main(argv: list[str] | None = None) -> int:
    """Returns the exit code."""
    options = _parser().parse_args(argv)
    console = Console(highlight=False, soft_wrap=True)
    try:
        if options.format not in SUFFIX:
            raise UserError(f"--format '{options.format}' is not known{did_you_mean(options.format, list(SUFFIX))}")
        if options.rows < 1:
            raise UserError(f"--rows must be at least 1, not {options.rows}")
        out = options.out or Path(f"policy{SUFFIX[options.format]}")
        if out.suffix != SUFFIX[options.format]:
            raise UserError(Problem(f"--out must end in {SUFFIX[options.format]} for {options.format}", str(out)))
        trained = load_trained(options.run, plugin_host(options.plugin))
        steps = export(trained, options.format, out, options.rows, options.network_only)
    except UserError as error:
        return complain(error)
    except KeyboardInterrupt:
        return stopped()
    console.print(f"{out}: gives what the policy gives, on {steps} steps; {out}.json has its inputs", markup=False)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m framework.export", description="Write the policy of a finished run for use elsewhere."
    )
    add = parser.add_argument
    add("run", type=Path, metavar="RUN_FOLDER", help="runs/cells/<id>")
    add("--format", default="torchscript", metavar="NAME", help="torchscript (default), onnx, or torch (torch.export)")
    add("--out", type=Path, metavar="FILE", help="default: policy.ts, policy.onnx or policy.pt2")
    add("--rows", type=int, default=1, metavar="N", help="how many agents one call serves (default: 1)")
    add("--network-only", action="store_true", help="leave the policy's memory out; its features are an input")
    add("--plugin", type=Path, action="append", default=[], metavar="FILE", help="a plugin file that the run needs")
    return parser


class Step(nn.Module):
    """One step of a policy as a function of tensors alone: with its memory, or ``network_only`` after it."""

    def __init__(self, policy: PolicyNet, network_only: bool = False) -> None:
        super().__init__()
        self.policy = policy
        self.network_only = network_only
        states = 0 if network_only else len(policy.initial_state(1))
        self.input_names = [*INPUTS, *(["memory"] if network_only else [f"state{i}" for i in range(states)])]
        self.output_names = ["values", *(f"next_state{i}" for i in range(states))]

    def given(self, inputs: PolicyInput, state: State) -> tuple[Tensor, ...]:
        """What it is called with, of a policy's own input."""
        return (*(getattr(inputs, name) for name in INPUTS), *((inputs.memory,) if self.network_only else state))

    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        named, rest = dict(zip(INPUTS, tensors, strict=False)), tensors[len(INPUTS) :]
        nothing = tensors[0].new_zeros(len(tensors[0]), 0, dtype=torch.float32)
        inputs = PolicyInput(memory=rest[0] if self.network_only else nothing, **named)
        state: State = ()
        if not self.network_only:
            memory, state = self.policy.remember(inputs, rest)
            inputs = dataclasses.replace(inputs, memory=memory)
        chosen = self.policy.distribution(inputs)
        return (chosen.log_probs if isinstance(chosen, Categorical) else chosen.mean, *state)


@dataclass(frozen=True)
class Sample:
    """What went into one step of the policy, and what came out."""

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]


def export(trained: Trained, form: str, out: Path, rows: int = 1, network_only: bool = False) -> int:
    """Write ``out`` and ``out``.json; returns on how many steps it was compared. UserError if it cannot be done."""
    step = Step(trained.policy, network_only).eval()
    samples = _walk(trained, step, rows)
    write, read = {"torchscript": _torchscript, "onnx": _onnx, "torch": _torch}[form]
    name, hint = trained.policy.name, " or ".join(f"--format {other}" for other in SUFFIX if other != form)
    if not network_only and trained.policy.initial_state(1):
        hint = f"--network-only, if its memory is what cannot be exported, or {hint}"
    fresh = not out.exists()
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with open(out, "ab"):  # exporters have words of their own for a place that cannot be written
            pass
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # exporters warn of what the comparison below decides
            logging.getLogger("torch.onnx").setLevel(logging.ERROR)
            write(step, samples[0].inputs, out)
            again = read(out, step.input_names)
            worst = max(_difference(again(sample.inputs), sample.outputs) for sample in samples)
    except UserError:
        if fresh:
            out.unlink(missing_ok=True)
        raise
    except OSError as error:
        raise _unwritable(out, error) from None
    except Exception as error:
        out.unlink(missing_ok=True)
        why = (_plain(str(error)).strip().splitlines() or [type(error).__name__])[0][:200]
        raise UserError(f"policy '{name}' cannot be exported as {form}: {why}; try {hint}") from None
    if not worst < CLOSE:
        out.unlink(missing_ok=True)
        raise UserError(f"policy '{name}' as {form} is off by {worst:.2g}; nothing was kept; try {hint}")
    try:
        _describe(trained, step, samples[0], out, rows)
    except OSError as error:
        raise _unwritable(out.with_name(f"{out.name}.json"), error) from None
    return len(samples)


def _unwritable(file: Path, error: OSError) -> UserError:
    return UserError(Problem(f"cannot be written: {error.strerror or error}", where=str(file)))


@torch.no_grad()
def _walk(trained: Trained, step: Step, rows: int) -> list[Sample]:
    """The policy in its own world, on maps and sentences that it has never met."""
    env = build_env(trained.run.cell, trained.run.seed, trained.host.catalog, "eval", rows)
    agent, draw = trained.agent(env), generator(trained.run.seed, "export")
    now, mind, action, samples = env.reset(), agent.fresh_mind(), agent.no_action(), list[Sample]()
    for _ in range(WALK):
        state: State = reset_rows(mind.policy, agent.policy.initial_state(rows), now.episode_start)
        inputs, mind = agent.perceive(now, mind, action, labels_for(agent.interpreter, env))
        given = step.given(inputs, state)
        samples.append(Sample(given, step(*given)))
        action = agent.policy.distribution(inputs).sample(draw)
        now = env.step(action)
    env.close()
    return samples


def _plain(text: str) -> str:
    """Without the colours that exporters put into their messages."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def _difference(got: Sequence[Tensor], wanted: Sequence[Tensor]) -> float:
    """Largest difference of any number; infinite where shapes differ or one of them is NaN."""
    if [g.shape for g in got] != [w.shape for w in wanted]:
        return float("inf")
    gaps = [float((g.float() - w.float()).abs().max()) for g, w in zip(got, wanted, strict=True) if w.numel()]
    return max(gap if gap == gap else float("inf") for gap in gaps)


# The formats: how to write a file, and how to read it back as a function of the inputs.

Inputs = tuple[Tensor, ...]
Written = Callable[[Inputs], Sequence[Tensor]]


def _write_torchscript(step: Step, inputs: Inputs, out: Path) -> None:
    torch.jit.trace(step, inputs, check_trace=False).save(str(out))


def _read_torchscript(file: Path, names: list[str]) -> Written:
    module: Any = torch.jit.load(str(file))
    return lambda inputs: module(*inputs)


def _write_torch(step: Step, inputs: Inputs, out: Path) -> None:
    torch.export.save(torch.export.export(step, inputs), str(out))


def _read_torch(file: Path, names: list[str]) -> Written:
    module: Any = torch.export.load(str(file)).module()
    return lambda inputs: module(*inputs)


def _write_onnx(step: Step, inputs: Inputs, out: Path) -> None:
    missing = [name for name in ("onnx", "onnxscript", "onnxruntime") if not _installed(name)]
    if missing:
        raise UserError(f"--format onnx needs {', '.join(missing)}; install with: pip install {' '.join(missing)}")
    torch.onnx.export(
        step, inputs, str(out), input_names=step.input_names, output_names=step.output_names,
        dynamo=True, external_data=False, verbose=False,
    )  # fmt: skip


def _read_onnx(file: Path, names: list[str]) -> Written:
    import onnxruntime

    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    wanted = [item.name for item in session.get_inputs()]  # an input that the policy does not use may be gone

    def call(inputs: Inputs) -> list[Tensor]:
        given = {name: tensor.numpy() for name, tensor in zip(names, inputs, strict=True) if name in wanted}
        return [torch.from_numpy(array) for array in session.run(None, given)]

    return call


def _installed(name: str) -> bool:
    from importlib.util import find_spec

    return find_spec(name) is not None


_torchscript = _write_torchscript, _read_torchscript
_torch = _write_torch, _read_torch
_onnx = _write_onnx, _read_onnx


def _describe(trained: Trained, step: Step, sample: Sample, out: Path, rows: int) -> None:
    def about(names: Sequence[str], tensors: Sequence[Tensor]) -> dict[str, dict[str, Any]]:
        return {
            name: {"shape": list(tensor.shape), "type": str(tensor.dtype).removeprefix("torch.")}
            for name, tensor in zip(names, tensors, strict=True)
        }

    action = trained.policy.spec.action
    meaning = "log-probability of each action" if action.kind == "discrete" else "mean action, in [-1, 1]"
    content = {
        "run": trained.run.id,
        "policy": trained.run.cell.policy.as_dict(),
        "rows": rows,
        "inputs": about(step.input_names, sample.inputs),
        "outputs": about(step.output_names, sample.outputs),
        "values": meaning,
    }
    write_json(out.with_name(f"{out.name}.json"), content)


if __name__ == "__main__":
    sys.exit(main())
