"""Agents from their files: what a finished run learned, built anew from run.json and filled with its weights."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import cast

from framework import checkpoint
from framework.agent import Agent
from framework.builder import build_env, build_interpreter, build_policy
from framework.catalog import Catalog
from framework.cell import Part, RunSpec, class_of, run_from_dict
from framework.errors import Problem, UserError
from framework.interfaces import ConstraintEnv, ConstraintInterpreter, PolicyNet, Split
from framework.interfaces.component import KINDS
from framework.ledger import Reckoning
from framework.plugin_manager import PluginHost, PluginRef
from framework.stages import freeze, interpreter_file, is_trained


@dataclass(frozen=True)
class Trained:
    """What a run learned, without a world."""

    run: RunSpec
    host: PluginHost
    interpreter: ConstraintInterpreter
    policy: PolicyNet

    def world(self, seed: int = 0, split: Split = "eval") -> ConstraintEnv:
        """The world it was trained in, one row; ``eval``: maps and sentences that it has never met."""
        return build_env(self.run.cell, seed, self.host.catalog, split, rows=1)

    def agent(self, env: ConstraintEnv, interpreter: ConstraintInterpreter | None = None) -> Agent:
        return Agent(env, interpreter or self.interpreter, self.policy, Reckoning.of(self.run.cell.training))


def load_trained(folder: Path, host: PluginHost) -> Trained:
    """Interpreter and policy of a finished run."""
    run = read_run(folder, host.catalog)
    env = build_env(run.cell, run.seed, host.catalog, "eval", rows=1)
    try:
        interpreter = load_interpreter(folder, run, host, env)
        return Trained(run, host, interpreter, load_policy(folder, run, host.catalog, env))
    finally:
        env.close()


def read_run(folder: Path, catalog: Catalog) -> RunSpec:
    """The run of a folder in ``runs/cells``, which must be finished."""
    file = folder / "run.json"
    if not file.is_file():
        what = "is no run: it has no run.json" if folder.is_dir() else "no such folder"
        raise UserError(Problem(f"{what}; give a folder in runs/cells", where=str(folder)))
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        raw, labels = record["config"], tuple(map(str, record.get("labels", ())))
        wanted = [(kind, raw[kind]["plugin"]) for kind in KINDS]
        missing = [(kind, name) for kind, name in wanted if name not in catalog.names(kind)]
        if missing:
            kind, name = missing[0]
            raise UserError(Problem(f"no {kind} plugin is called '{name}'; name its file: --plugin FILE", str(file)))
        run = run_from_dict(raw, catalog, labels)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise UserError(Problem("is damaged and cannot be read", where=str(file))) from None
    except UserError as error:
        raise UserError([dataclasses.replace(p, where=str(file)) for p in error.problems]) from None
    if not is_trained(folder):
        failed = (folder / "failure.json").is_file()
        what = "this run failed; see its log.txt" if failed else "this run is not finished"
        raise UserError(Problem(f"{what}; framework.run with its registry goes on with it", where=str(folder)))
    return run


def load_policy(folder: Path, run: RunSpec, catalog: Catalog, env: ConstraintEnv) -> PolicyNet:
    """Its policy, to act with."""
    policy = build_policy(run.cell, run.seed, catalog, env)
    file = folder / "policy.safetensors"
    weights, _ = checkpoint.load(file)
    critics = {name: value for name, value in policy.state_dict().items() if name.startswith("critic")}
    try:
        policy.load_state_dict(critics | weights)  # an agent that only acts needs no critics, so a file may lack them
    except RuntimeError:
        message = f"does not fit policy '{run.cell.policy.plugin}' any more: its code was changed after the run"
        raise UserError(Problem(message, where=str(file))) from None
    policy.requires_grad_(False)
    policy.eval()
    return policy


def load_interpreter(folder: Path, run: RunSpec, host: PluginHost, env: ConstraintEnv) -> ConstraintInterpreter:
    """Its interpreter, as stage 2 had it."""
    interpreter = build_interpreter(run.cell, run.seed, host.catalog, env)
    file = interpreter_file(folder.resolve().parent.parent, run, host)
    try:
        freeze(interpreter, file)
    except RuntimeError:
        name = run.cell.interpreter.plugin
        message = f"does not fit interpreter '{name}' any more: its code was changed after the run"
        raise UserError(Problem(message, where=str(file))) from None
    return interpreter


def untrained(name: str, env: ConstraintEnv, catalog: Catalog) -> ConstraintInterpreter:
    """One without parameters: what another has to learn is in no file that belongs to this env and seed."""
    entry = catalog.get("interpreter", name)
    cls = cast(type[ConstraintInterpreter], class_of(Part("interpreter", name, None), catalog))
    try:
        interpreter = cls(cls.Config(), env.spec)
    except ValueError as error:
        raise UserError(Problem(str(error), owner=entry.owner)) from None
    if interpreter.learns:
        raise UserError(f"interpreter '{name}' has to learn first; show a finished run that uses it")
    interpreter.eval()
    return interpreter


def plugin_host(files: Sequence[str | PathLike[str]]) -> PluginHost:
    """All plugins, with those in ``files``."""
    return PluginHost([PluginRef(path=str(Path(file).resolve()), where=str(file)) for file in files])
