"""Agents from their files: what a finished run learned, built anew from run.json and filled with its weights."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, cast

from framework import checkpoint
from framework.agent import Agent
from framework.builder import build_env, build_interpreter, build_policy
from framework.catalog import Catalog
from framework.cell import Part, RunSpec, class_of, run_from_dict
from framework.errors import Problem, UserError
from framework.interfaces import ConstraintEnv, ConstraintInterpreter, PolicyNet, Split
from framework.interfaces.component import KINDS, Kind
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
    """The run of a folder in ``runs/cells``, which must be finished. Plugins that were changed since are told."""
    file = folder / "run.json"
    if not file.is_file():
        what = "is no run: it has no run.json" if folder.is_dir() else "no such folder"
        raise UserError(Problem(f"{what}; give a folder in runs/cells", where=str(folder)))
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        raw, labels, name = record["config"], tuple(map(str, record.get("labels", ()))), record.get("id")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise _damaged(file) from None
    run = recorded_run(raw, catalog, file, labels)
    if not is_trained(folder):
        failed = (folder / "failure.json").is_file()
        what = "this run failed; see its log.txt" if failed else "this run is not finished"
        raise UserError(Problem(f"{what}; framework.run with its registry goes on with it", where=str(folder)))
    if not warn_of_changes(run, catalog, file) and name not in (None, run.id):
        _warn("settings of its plugins, or files that they read, were changed after the run", file)
    return run


def recorded_run(raw: Mapping[str, Any], catalog: Catalog, file: Path, labels: tuple[str, ...] = ()) -> RunSpec:
    """``RunSpec.as_dict`` as ``file`` has it -> the run. It bears the plugins' versions of that time: these are part of
    its name, and of its interpreter's, so what it wrote is found though a plugin was changed since."""
    try:
        wanted = [(kind, raw[kind]["plugin"]) for kind in KINDS]
        missing = [(kind, name) for kind, name in wanted if name not in catalog.names(kind)]
        if missing:
            kind, name = missing[0]
            raise UserError(f"no {kind} plugin is called '{name}'; name its file: --plugin FILE")
        run = run_from_dict({**raw, "optimizer": _still_known(raw["optimizer"], catalog)}, catalog, labels)
        versions = {kind: str(raw[kind].get("plugin_version", "")) for kind in KINDS}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise _damaged(file) from None
    except UserError as error:
        raise UserError([dataclasses.replace(p, where=str(file)) for p in error.problems]) from None
    parts = {kind: dataclasses.replace(getattr(run.cell, kind), version=versions[kind]) for kind in KINDS}
    return dataclasses.replace(run, cell=dataclasses.replace(run.cell, **parts))


def _still_known(raw: Mapping[str, Any], catalog: Catalog) -> dict[str, Any]:
    """An optimizer's settings, without those that it no longer has: what it has learned acts without it."""
    optimizer = class_of(Part("optimizer", raw["plugin"], None), catalog)
    settings = {f.name for f in dataclasses.fields(optimizer.Config)}
    return {name: value for name, value in raw.items() if name in settings or name.startswith("plugin")}


def warn_of_changes(run: RunSpec, catalog: Catalog, file: Path, kinds: Sequence[Kind] = KINDS) -> bool:
    """Say on stderr which plugins are other versions than those of the run; False if none is."""
    parts = [cast(Part, getattr(run.cell, kind)) for kind in kinds]
    changed = [part for part in parts if part.version != catalog.get(part.kind, part.plugin).version]
    for part in changed:
        _warn(f"{part.kind} '{part.plugin}' was changed after the run", file)
    return bool(changed)


def _warn(what: str, file: Path) -> None:
    advice = "old weights meet new code; framework.run with its registry makes the run anew"
    print(Problem(f"{what}: {advice}", where=str(file)), file=sys.stderr)


def _damaged(file: Path) -> UserError:
    return UserError(Problem("is damaged and cannot be read", where=str(file)))


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
    together = run.cell.training.interpreter.when == "together"  # then it is in the folder, whatever the folder's name
    file = folder / "interpreter.safetensors" if together else interpreter_file(folder.resolve().parents[1], run, host)
    return interpreter_from(file, run, host, env)


def interpreter_from(file: Path, run: RunSpec, host: PluginHost, env: ConstraintEnv) -> ConstraintInterpreter:
    """The interpreter of a run, with what is in this file."""
    interpreter = build_interpreter(run.cell, run.seed, host.catalog, env)
    if interpreter.learns and not file.is_file():
        why = "it was taken away, or settings, or files that plugins read, were changed after the run"
        raise UserError(Problem(f"the run's interpreter is not there: {why}", where=str(file)))
    try:
        freeze(interpreter, file)
    except RuntimeError:
        name = run.cell.interpreter.plugin
        message = f"does not fit interpreter '{name}' any more: its code was changed after the run"
        raise UserError(Problem(message, where=str(file))) from None
    return interpreter


def untrained(
    name: str, env: ConstraintEnv, catalog: Catalog, advice: str = "show a finished run that uses it"
) -> ConstraintInterpreter:
    """One without parameters: what another has to learn is in no file that belongs to this env and seed."""
    entry = catalog.get("interpreter", name)
    cls = cast(type[ConstraintInterpreter], class_of(Part("interpreter", name, None), catalog))
    try:
        interpreter = cls(cls.Config(), env.spec)
    except ValueError as error:
        raise UserError(Problem(str(error), owner=entry.owner)) from None
    if interpreter.learns:
        raise UserError(f"interpreter '{name}' has to learn first; {advice}")
    interpreter.eval()
    return interpreter


def plugin_host(files: Sequence[str | PathLike[str]]) -> PluginHost:
    """All plugins, with those in ``files``."""
    return PluginHost([PluginRef(path=str(Path(file).resolve()), where=str(file)) for file in files])
