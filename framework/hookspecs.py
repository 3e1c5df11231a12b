"""The hooks of Heed. This file is the manual for plugin authors.

A plugin is one Python file (or an installed package) with a class and a hook that hands it over::

    from framework.hookspecs import hookimpl
    from framework.interfaces import ConstraintInterpreter

    class MyReader(ConstraintInterpreter):
        name = "my_reader"
        ...

    @hookimpl
    def heed_components():
        return [MyReader]

Plugins are found in this order: the built-in ones in ``plugins/<kind>/``; installed packages that declare an entry
point in the group ``heed.plugins``; the files and modules that a registry lists under ``plugins:``. Two plugins of one
kind and name are an error that prints both origins. A plugin file runs as Python code: list only files you trust.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

import pluggy

from framework.interfaces.component import Component, NoConfig

PROJECT = "heed"
ENTRY_POINT_GROUP = "heed.plugins"

F = TypeVar("F")
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@dataclass(frozen=True)
class RunInfo:
    """One run, as observers see it."""

    id: str
    """Stable name of the run: a hash of all that determines it."""
    labels: tuple[str, ...]
    """The experiments and ablation cells of the registry that this run serves."""
    folder: Path
    """Where its files are."""
    config: Mapping[str, Any]
    """The resolved cell: components with all their settings, training, seed."""
    step: int = 0
    """Environment steps that were done before: more than 0 when a run that was stopped goes on."""


class RunObserver(Protocol):
    """Watches one run. Inherit from this class and override what you need; the rest does nothing."""

    def update(self, step: int, metrics: Mapping[str, float]) -> None:
        """After each policy update: environment steps so far, and what the trainer and the optimizer measured."""

    def evaluate(self, stage: str, metrics: Mapping[str, float]) -> None:
        """After each evaluation stage, with its summary."""

    def end(self, error: str | None) -> None:
        """Once, when the run is over; ``error`` says why it failed, or is None."""


class NamedObserver(RunObserver):
    """An observer that a registry switches on by name, with settings: ``observers: [{plugin: my_log, every: 10}]``.

    ``name``, ``Config`` and ``requires`` are those of any plugin (framework/interfaces/component.py). One is made for
    each run.
    """

    name: ClassVar[str] = ""
    Config: ClassVar[type] = NoConfig
    requires: ClassVar[Mapping[str, str]] = {}

    def __init__(self, config: Any, run: RunInfo) -> None:
        self.config, self.run = config, run


@hookspec
def heed_components() -> Sequence[type[Component]]:  # type: ignore[empty-body]
    """Hand over the plugin's classes: interpreters, policies, optimizers, environments.

    Called once, when the plugin is loaded. Return a list of classes (not instances). Each must be a subclass of one of
    the four interfaces, with a ``name``, a frozen dataclass ``Config``, and every abstract method written; whatever is
    missing is listed in the error.
    """


@hookspec
def heed_observers() -> Sequence[type[NamedObserver]]:  # type: ignore[empty-body]
    """Hand over observers that people switch on by name (``observers`` in a registry). Return a list of classes."""


@hookspec
def heed_observe(run: RunInfo) -> RunObserver | None:
    """Watch every run, without being asked for in the registry: called when a run starts. Return an observer, or None.

    The observer lives in the process of the run. If it raises, the error is printed with the plugin's name, the
    observer is dropped, and the run goes on: a logger must not cost anyone a training run.
    """


@hookspec
def heed_agents() -> Sequence[Path]:  # type: ignore[empty-body]
    """Hand over trained agents that come with the plugin, as runs folders (``cells/`` and ``interpreters/``).

    Called when somebody looks for agents (``python -m framework.play``). A run's files may be stored in half precision.
    """
