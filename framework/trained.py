"""The agent of a finished run, back from its folder: to watch, to export, or to act with from Python."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from framework import checkpoint
from framework.agent import Agent
from framework.builder import build, build_env
from framework.catalog import Catalog
from framework.cell import RunSpec, run_from_dict
from framework.errors import Problem, UserError
from framework.interfaces import ConstraintEnv, ConstraintInterpreter, InterpreterInput, PolicyNet, Split
from framework.interfaces.component import KINDS
from framework.player import Player
from framework.plugin_manager import PluginHost, PluginRef
from framework.seeding import generator
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
        return Agent(env, interpreter or self.interpreter, self.policy, self.run.cell.training.rounding)


def load_trained(folder: Path, host: PluginHost) -> Trained:
    """Interpreter and policy of a finished run."""
    run = read_run(folder, host.catalog)
    if not is_trained(folder):
        failed = (folder / "failure.json").is_file()
        what = "this run failed; see its log.txt" if failed else "this run is not finished"
        raise UserError(Problem(f"{what}; framework.run with its registry goes on with it", where=str(folder)))
    system = build(run.cell, run.seed, host.catalog)
    system.env.close()
    freeze(system.interpreter, interpreter_file(folder.resolve().parent.parent, run, host))
    weights, _ = checkpoint.load(folder / "policy.safetensors")
    try:
        system.policy.load_state_dict(weights)
    except RuntimeError:
        message = f"does not fit policy '{run.cell.policy.plugin}' any more: its code was changed after the run"
        raise UserError(Problem(message, where=str(folder / "policy.safetensors"))) from None
    system.policy.requires_grad_(False).eval()
    return Trained(run, host, system.interpreter, system.policy)


def read_run(folder: Path, catalog: Catalog) -> RunSpec:
    """run.json, checked against the plugins that are here."""
    file = folder / "run.json"
    if not file.is_file():
        what = "is no run: it has no run.json" if folder.is_dir() else "no such folder"
        raise UserError(Problem(f"{what}; give a folder in runs/cells", where=str(folder)))
    try:
        raw = json.loads(file.read_text())["config"]
        wanted = [(kind, raw[kind]["plugin"]) for kind in KINDS]
        missing = [(kind, name) for kind, name in wanted if name not in catalog.names(kind)]
        if missing:
            kind, name = missing[0]
            raise UserError(Problem(f"no {kind} plugin is called '{name}'; name its file: --plugin FILE", str(file)))
        return run_from_dict(raw, catalog)
    except (OSError, ValueError, KeyError, TypeError):
        raise UserError(Problem("is damaged and cannot be read", where=str(file))) from None
    except UserError as error:
        raise UserError([dataclasses.replace(p, where=str(file)) for p in error.problems]) from None


def plugin_host(files: Sequence[str | PathLike[str]]) -> PluginHost:
    """All plugins, with those in ``files``."""
    return PluginHost([PluginRef(path=str(Path(file).resolve()), where=str(file)) for file in files])


def load_agent(run_folder: str | PathLike[str], plugins: Sequence[str | PathLike[str]] = ()) -> TrainedAgent:
    """The agent of a finished run (``runs/cells/<id>``); ``plugins``: files of plugins that it needs."""
    return TrainedAgent(load_trained(Path(run_folder), plugin_host(plugins)))


@dataclass(frozen=True)
class Reading:
    """What the interpreter made of a sentence, in the present view."""

    sentence: str
    threshold: float
    """h_C: how often it is allowed."""
    mask: NDArray[np.float32]
    """[*cells]: probability that entering the cell would cost now (M_C)."""
    confidence: float | None
    """How sure it is that this is a constraint that it knows; None if it does not say."""


class TrainedAgent:
    """Acts in a world of its own::

    agent.reset(seed=1)
    while not agent.done:
        agent.step(agent.act())
    print(agent.sentence, agent.reward, agent.cost, agent.budget)
    """

    def __init__(self, trained: Trained) -> None:
        self.trained = trained
        self.env: ConstraintEnv | None = None
        self.reset()

    def reset(self, seed: int = 0, split: Split = "eval") -> str:
        """A new world; returns what holds in it. Equal seeds, equal worlds and choices."""
        self.close()
        self.env = self.trained.world(seed, split)
        self._player = Player(self.env, self.trained.agent(self.env))
        self._generator = generator(seed, "show")
        self._cost = 0.0
        return self.sentence

    def act(self, greedy: bool = False) -> Any:
        """What the policy chooses here: a number, or an array where actions are continuous."""
        action = self._player.choose(self._generator, greedy)[0]
        return action.numpy() if action.dim() else int(action)

    def step(self, action: Any) -> tuple[float, float]:
        """Do it; returns reward and true cost. After the end of an episode the next step starts another."""
        if self.done:
            self._cost = 0.0
        self._player.act(torch.as_tensor(np.asarray(action)).unsqueeze(0))
        now = self._player.now
        cost = float(now.cost.sum())
        self._cost += cost
        return float(now.reward[0]), cost

    @torch.no_grad()
    def understand(self, sentence: str) -> Reading:
        """Read any sentence, against the view that the agent has now."""
        interpreter, now = self.trained.interpreter, self._player.now
        if interpreter.needs_labels:
            raise UserError(f"interpreter '{interpreter.name}' is told the truth; it reads no sentences")
        code = interpreter.encode([sentence])
        seen, _ = interpreter.step(InterpreterInput(now.obs, code), interpreter.initial_state(1))
        sure = None if seen.confidence is None else float(seen.confidence[0])
        return Reading(sentence, float(seen.threshold[0]), seen.mask[0].numpy(), sure)

    @property
    def done(self) -> bool:
        return self._player.done

    @property
    def sentence(self) -> str:
        """What holds in this episode; several sentences are joined."""
        assert self.env is not None
        return " ".join(self.env.sentences[int(i)] for i in self._player.now.text[0])

    @property
    def reward(self) -> float:
        """Of this episode so far."""
        return self._player.reward

    @property
    def cost(self) -> float:
        """True cost of this episode so far."""
        return self._cost

    @property
    def budget(self) -> float:
        """True budget of this episode (of all its sentences together)."""
        return float(self._player.now.threshold.sum())

    @property
    def observation(self) -> Tensor:
        return self._player.now.obs[0]

    def picture(self) -> NDArray[np.uint8]:
        """RGB [H, W, 3], with what the interpreter holds to be forbidden."""
        return self._player.frame()

    def close(self) -> None:
        """Let go of the world's processes, if it has any."""
        if self.env is not None:
            self.env.close()
