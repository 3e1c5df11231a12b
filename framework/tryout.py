"""Tries a study out before it runs: what does not fit is found here, not after an hour."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable, Iterator

import torch

from framework.agent import Glance
from framework.builder import System, assemble, blame, build, build_env
from framework.cell import Cell, RunSpec
from framework.config import Study
from framework.errors import Problem, UserError
from framework.ledger import Reckoning
from framework.plugin_manager import PluginHost
from framework.rollout import Collector
from framework.schema import Training
from framework.seeding import generator


def build_all(study: Study) -> int:
    """Build every distinct system once, let it look at its world, and build the worlds that it is to be evaluated in.
    Returns how many systems."""
    distinct: dict[str, RunSpec] = {}
    for run in study.runs:
        distinct.setdefault(repr(run.cell), run)
    problems, looked, unfit = list[Problem](), set[str](), set[str]()
    for cell, run in distinct.items():
        actors, before = repr((run.cell.env, run.cell.interpreter, run.cell.policy)), len(problems)
        with _noting(problems, ", ".join(run.labels), run.cell, study.host):
            _try_training(run, study.host, look=actors not in looked)
        looked.add(actors)
        if len(problems) > before:
            unfit.add(cell)
    for world in _worlds(run for run in study.runs if repr(run.cell) not in unfit):
        _try_evaluation(world, problems, study.host)
    if problems:
        raise UserError(problems)
    return len(distinct)


@contextlib.contextmanager
def _noting(problems: list[Problem], where: str, cell: Cell, host: PluginHost) -> Iterator[None]:
    try:
        yield
    except UserError as error:
        problems += [dataclasses.replace(p, path=p.path or where) for p in error.problems]
    except Exception as error:
        problems.append(dataclasses.replace(blame(error, cell, host.catalog), path=where))


def _try_training(run: RunSpec, host: PluginHost, look: bool) -> None:
    system = build(run.cell, run.seed, host.catalog)
    try:
        if look:
            _look(system, run.cell.training)
    finally:
        system.env.close()


def _look(system: System, training: Training) -> None:
    """The first moment of stage 2, by an interpreter that has not learned yet: read, look, and choose an action."""
    system.interpreter.eval()
    agent = Glance(system.env, system.interpreter, system.policy, Reckoning.of(training))
    stream = generator(0, "check")
    first = Collector(system.env, agent, training, stream)
    with torch.no_grad():
        system.policy.distribution(first.inputs).sample(stream)


@dataclasses.dataclass
class _World:
    """An env that is evaluated in, and by whom: many runs share one, and it may take a while to build."""

    cell: Cell
    seed: int
    where: str
    guests: dict[str, tuple[Cell, str]]
    """Systems that were trained in another env and must fit into this one; and where the registry says so."""


def _worlds(runs: Iterable[RunSpec]) -> list[_World]:
    found: dict[str, _World] = {}
    for run in runs:
        label = ", ".join(run.labels)
        places = [(run.cell, label)]
        places += [
            (dataclasses.replace(run.cell, env=exam.env), f"{label}: evaluations.{exam.name}") for exam in run.exams
        ]
        for i, (cell, where) in enumerate(places):
            world = found.setdefault(repr((cell.env, cell.training.rows)), _World(cell, run.seed, where, {}))
            if i and cell.env != run.cell.env:
                world.guests.setdefault(repr(cell), (cell, where))
    return list(found.values())


def _try_evaluation(world: _World, problems: list[Problem], host: PluginHost) -> None:
    with _noting(problems, world.where, world.cell, host):
        env = build_env(world.cell, world.seed, host.catalog, "eval")
        with contextlib.closing(env):
            for cell, where in world.guests.values():
                with _noting(problems, where, cell, host):
                    assemble(cell, world.seed, host.catalog, env)
