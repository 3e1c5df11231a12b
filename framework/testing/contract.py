"""Bookkeeping of a conformance check: promises that were tried, and those that were broken."""

from __future__ import annotations

import contextlib
import inspect
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from framework.builder import half_made
from framework.catalog import Catalog, Entry
from framework.errors import UserError
from framework.interfaces import ConstraintEnv
from framework.interfaces.component import Component
from framework.missing import missing_requirements
from framework.plugin_manager import PluginHost, class_faults


class ContractBroken(AssertionError):
    """What a plugin does against its interface's contract, in words."""

    def __init__(self, plugin: str, faults: list[str], env: str = "") -> None:
        self.faults, self.env = faults, env
        where = f" in env '{env}'" if env else ""
        super().__init__(f"{plugin} breaks its contract{where}:\n" + "\n".join(f"  - {fault}" for fault in faults))


class Contract:
    """Tries promises one by one; ``settle`` raises if any was broken."""

    def __init__(self, cls: type[Component]) -> None:
        self.plugin = f"{cls.kind} '{cls.name}'"
        self.faults = list(class_faults(cls))
        missing = missing_requirements(cls)
        if missing:
            self.faults.append(missing)
        self.kept: list[str] = []
        self.env = ""
        """Where it is tried, if it is not an env itself."""
        self._file = inspect.getfile(cls)

    @property
    def hopeless(self) -> bool:
        """So broken that nothing further can be tried."""
        return bool(self.faults) and not self.kept

    def fault(self, text: str) -> None:
        if text not in self.faults:
            self.faults.append(text)

    def require(self, fine: bool, fault: str) -> bool:
        if not fine:
            self.fault(fault)
        return fine

    @contextlib.contextmanager
    def promise(self, text: str, hint: Callable[[Exception], str] = lambda error: "") -> Iterator[None]:
        """A group of requirements; an exception inside is a fault, told with the line of the plugin that raised, and
        with the hint that belongs to it, if any."""
        before = len(self.faults)
        try:
            yield
        except ContractBroken:
            raise
        except Exception as error:
            told = f"{text}: raised {type(error).__name__}: {error} ({self.spot(error)})"
            advice = hint(error)
            self.fault(told + (f"; {advice}" if advice else ""))
        if len(self.faults) == before:
            self.kept.append(text)

    def spot(self, error: Exception) -> str:
        """The plugin's line that raised, or that called what raised: its mistakes often show inside torch."""
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if frame.filename == self._file]
        return f"{(own or frames)[-1].filename}:{(own or frames)[-1].lineno}"

    def numbers(self, name: str, value: Tensor, dtype: torch.dtype = torch.float32) -> bool:
        """Of that type, and finite: to be asked before anything is made of them."""
        why = " torch.from_numpy keeps numpy's float64:" if value.dtype == torch.float64 else ""
        hint = f";{why} add .float()" if dtype == torch.float32 else ""
        right = self.require(value.dtype == dtype, f"{name} is {_plain(value.dtype)}; it must be {_plain(dtype)}{hint}")
        if value.is_floating_point():
            right &= self.require(bool(torch.isfinite(value).all()), f"{name} is NaN or infinite")
        return right

    def settle(self) -> list[str]:
        """The promises that were kept, or ContractBroken."""
        if self.faults:
            raise ContractBroken(self.plugin, self.faults, self.env)
        return self.kept


def _plain(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def same(a: Any, b: Any, tolerance: float = 1e-5) -> bool:
    """Equal tensors, or tuples and dataclasses of them, up to rounding."""
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return a.shape == b.shape and torch.allclose(a.float(), b.float(), atol=tolerance, rtol=1e-4, equal_nan=True)
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(same(x, y, tolerance) for x, y in zip(a, b, strict=True))
    if hasattr(a, "__dataclass_fields__"):
        return all(same(getattr(a, name), getattr(b, name), tolerance) for name in a.__dataclass_fields__)
    return bool(a == b)


def default_catalog() -> Catalog:
    return PluginHost().catalog


TRIED_ENVS = ("ford", "hazardworld_grid", "hazardworld_robot", "hazardworld_robot_pixels")
"""Where a plugin is tried when no env is named: the first that it does not refuse."""


EnvChoice = str | type[ConstraintEnv]
"""An env by its name, or one of your own by its class."""


def small_env(
    env: EnvChoice, rows: int = 6, seed: int = 1, split: str = "train", catalog: Catalog | None = None
) -> ConstraintEnv:
    """An env plugin with default settings."""
    cls = (catalog or default_catalog()).get("env", env).cls if isinstance(env, str) else env
    assert cls is not None
    return cls(cls.Config(), rows=rows, split=split, seed=seed)  # type: ignore[call-arg, return-value]


def fitting_env(
    build: Any, env: EnvChoice | None, contract: Contract, rows: int = 6
) -> tuple[ConstraintEnv, Any] | None:
    """An environment the plugin can be built for (it refuses others with ValueError), and the plugin built."""
    catalog = default_catalog()
    usual = [name for name in TRIED_ENVS if isinstance(catalog.find("env", name), Entry)]
    choices: Sequence[EnvChoice] = [env] if env else usual
    refusals = []
    for choice in choices:
        name = choice if isinstance(choice, str) else choice.name
        try:
            world = small_env(choice, rows, catalog=catalog)
            made = build(world)
            if fault := half_made(made):
                contract.fault(fault)
                return None
            contract.env = name
            contract.kept.append(f"it can be built for env '{name}', where all this is tried")
            return world, made
        except ValueError as error:
            refusals.append(f"{name}: {error}")
        except UserError:  # no such env: not the plugin's fault
            raise
        except Exception as error:
            told = f"{type(error).__name__}: {error} ({contract.spot(error)})"
            contract.fault(f"cannot be built for env '{name}': {told}")
            return None
    contract.fault("refuses every environment it was tried with: " + "; ".join(refusals))
    return None
