"""Gymnasium ids -> environments, with every way of failing told as a ValueError."""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import sys
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, VectorEnv
from gymnasium.wrappers import TransformObservation

from framework.errors import did_you_mean
from plugins.envs import _gymnasium_cartpole
from plugins.envs._gymnasium_spaces import ObservationCodec


@dataclass(frozen=True)
class Maker:
    """Makes copies of one environment. Can be sent to another process, which registers the id for itself."""

    id: str
    module: str | None
    kwargs: Mapping[str, Any]
    max_steps: int | None

    def one(self) -> gymnasium.Env[Any, Any]:
        """A single environment, with Gymnasium's time limit."""
        spec = find(self.id, self.module)
        limit = {} if self.max_steps is None else {"max_episode_steps": self.max_steps}
        with _told(self.id):
            return gymnasium.make(spec, disable_env_checker=True, **limit, **self.kwargs)

    def vector(self, rows: int) -> VectorEnv[Any, Any, Any]:
        """The environment's own vector form."""
        spec = find(self.id, self.module)
        if spec.vector_entry_point is None:
            raise ValueError(f"'{self.id}' has no vector form of its own; set vectorization to sync or async")
        own = spec.max_episode_steps is not None and self.max_steps is not None
        limit = {"max_episode_steps": self.max_steps} if own else {}
        with _told(self.id):
            return gymnasium.make_vec(spec, rows, vectorization_mode="vector_entry_point", **limit, **self.kwargs)

    def processes(self, rows: int, codec: ObservationCodec, mode: AutoresetMode) -> AsyncVectorEnv[Any, Any]:
        """One process for each row; observations are encoded there, so that only numbers travel."""
        makers = [_Encoded(self, codec, row) for row in range(rows)]
        how = "fork" if sys.platform == "linux" else None  # anything else imports torch once for each row
        with may_have_children():
            return AsyncVectorEnv(makers, autoreset_mode=mode, context=how)


@dataclass(frozen=True)
class _Encoded:
    """Makes an environment whose observations are encoded already; a class, because closures cannot be sent."""

    maker: Maker
    codec: ObservationCodec
    row: int

    def __call__(self) -> gymnasium.Env[Any, Any]:
        return TransformObservation(
            self.maker.one(), lambda raw: self.codec.encode(raw, self.row), self.codec.encoded_space
        )


def find(name: str, module: str | None) -> EnvSpec:
    """The id's entry in Gymnasium's registry; ``module`` is imported first."""
    _gymnasium_cartpole.register()
    if module is not None:
        try:
            importlib.import_module(module)
        except ImportError as error:
            raise ValueError(f"module '{module}' cannot be imported: {error}") from error
        except (Exception, SystemExit) as error:  # somebody else's code
            spot = traceback.extract_tb(error.__traceback__)[-1]
            told = f"{type(error).__name__}: {error} ({spot.filename}:{spot.lineno})"
            raise ValueError(f"module '{module}' raised at import: {told}") from error
    if ":" in name:
        first, _, rest = name.partition(":")
        raise ValueError(f"id '{name}' names a module; write it as module: {first} and id: {rest}")
    if name not in gymnasium.registry:
        hint = "" if module else "; if a package of your own registers it, set module"
        raise ValueError(f"id '{name}' is not known to Gymnasium{did_you_mean(name, list(gymnasium.registry))}{hint}")
    return gymnasium.registry[name]


@contextlib.contextmanager
def _told(name: str) -> Iterator[None]:
    try:
        yield
    except (gymnasium.error.Error, ImportError, TypeError, ValueError, AssertionError) as error:
        raise ValueError(f"'{name}' cannot be made: {error}") from error


@contextlib.contextmanager
def may_have_children() -> Iterator[None]:
    """Runs are daemons, so that they die with the command line, and Python allows daemons no children.

    Environment processes end by themselves when the pipe to their parent closes, so nothing is left behind.
    """
    config: dict[str, Any] = multiprocessing.current_process()._config  # type: ignore[attr-defined]
    was = config.get("daemon", False)
    config["daemon"] = False
    try:
        yield
    finally:
        config["daemon"] = was
