"""Run spec -> the four components, checked to fit together before step 0."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar, cast

from torch import nn

from framework.catalog import Catalog
from framework.cell import Cell, class_of
from framework.errors import Problem, UserError
from framework.interfaces import ConstraintEnv, ConstraintInterpreter, PolicyNet, SafeOptimizer, Split
from framework.interfaces.component import KINDS, Kind
from framework.seeding import derive, seed_everything

T = TypeVar("T")


@dataclass(frozen=True)
class System:
    """The four components of a cell."""

    env: ConstraintEnv
    interpreter: ConstraintInterpreter
    policy: PolicyNet
    optimizer: SafeOptimizer


def build(cell: Cell, seed: int, catalog: Catalog, split: Split = "train") -> System:
    """Build all four. Weights depend on the seed alone."""
    env = build_env(cell, seed, catalog, split)
    try:
        return assemble(cell, seed, catalog, env)
    except BaseException:
        env.close()
        raise


def assemble(cell: Cell, seed: int, catalog: Catalog, env: ConstraintEnv) -> System:
    """The other three, for an env that is there."""
    interpreter = build_interpreter(cell, seed, catalog, env)
    policy_cls = cast(type[PolicyNet], class_of(cell.policy, catalog))
    optimizer_cls = cast(type[SafeOptimizer], class_of(cell.optimizer, catalog))
    _check_fit(cell, env, interpreter, policy_cls, optimizer_cls)
    policy = build_policy(cell, seed, catalog, env)
    optimizer = _make(cell, "optimizer", optimizer_cls, lambda: optimizer_cls(cell.optimizer.config, policy))
    return System(env, interpreter, policy, optimizer)


def build_env(cell: Cell, seed: int, catalog: Catalog, split: Split, rows: int | None = None) -> ConstraintEnv:
    """The env with its training or evaluation split, on a random stream of its own; ``rows``: default training's."""
    cls = cast(type[ConstraintEnv], class_of(cell.env, catalog))
    stream, rows = derive(seed, "env", split), rows or cell.training.rows
    return _make(cell, "env", cls, lambda: cls(cell.env.config, rows=rows, split=split, seed=stream))


def build_interpreter(cell: Cell, seed: int, catalog: Catalog, env: ConstraintEnv) -> ConstraintInterpreter:
    cls = cast(type[ConstraintInterpreter], class_of(cell.interpreter, catalog))
    seed_everything(derive(seed, "interpreter"))
    return _make(cell, "interpreter", cls, lambda: cls(cell.interpreter.config, env.spec))


def build_policy(cell: Cell, seed: int, catalog: Catalog, env: ConstraintEnv) -> PolicyNet:
    cls = cast(type[PolicyNet], class_of(cell.policy, catalog))
    seed_everything(derive(seed, "policy"))
    return _make(cell, "policy", cls, lambda: cls(cell.policy.config, env.spec))


def _check_fit(
    cell: Cell,
    env: ConstraintEnv,
    interpreter: ConstraintInterpreter,
    policy: type[PolicyNet],
    optimizer: type[SafeOptimizer],
) -> None:
    problems = []
    action = env.spec.action
    if action.kind not in policy.action_kinds:
        kinds = " or ".join(sorted(policy.action_kinds))
        problems.append(
            Problem(f"policy '{policy.name}' acts with {kinds} actions, but env '{env.name}' has {action.kind} ones")
        )
    missing = sorted(optimizer.needs - policy.provides)
    if missing:
        problems.append(
            Problem(f"optimizer '{optimizer.name}' needs {', '.join(missing)}, which policy '{policy.name}' lacks")
        )
    steps_per_row = cell.training.batch // cell.training.rows
    if steps_per_row < 2:
        problems.append(
            Problem(f"training.batch gives each of {cell.training.rows} rows {steps_per_row} step; it takes at least 2")
        )
    if cell.training.batch < env.spec.max_steps:
        problems.append(
            Problem(
                f"training.batch is {cell.training.batch:,}, less than one episode of env '{env.name}' "
                f"({env.spec.max_steps:,} steps): an update could not tell how an episode ends"
            )
        )
    own_way = type(interpreter).fit is not ConstraintInterpreter.fit
    if cell.training.interpreter.when == "together" and own_way and interpreter.learns:
        problems.append(
            Problem(
                f"training.interpreter.when is together, but interpreter '{interpreter.name}' learns in its own way "
                "(fit), not step by step from its loss; choose one that does, such as lstm"
            )
        )
    if problems:
        raise UserError(problems)


def _make(cell: Cell, kind: Kind, cls: type[T], construct: Callable[[], T]) -> T:
    """Call a constructor; a ValueError from it is the plugin's way to refuse what it was given, an ImportError to say
    what is not installed as it should be. Anything else is a mistake in it, told with the plugin's own line."""
    owner = f"{kind} '{getattr(cell, kind).plugin}'"
    try:
        made = construct()
        if fault := half_made(made):
            raise UserError(Problem(f"cannot be built: {fault}{_first_line(cls)}", owner=owner))
        return made
    except UserError:
        raise
    except (ValueError, ImportError) as error:
        raise UserError(Problem(str(error), owner=owner)) from error
    except Exception as error:
        spot = _spot(error, _file(cls)) or _first_line(cls)
        raise UserError(Problem(f"cannot be built: {type(error).__name__}: {error}{spot}", owner=owner)) from error


def half_made(component: object) -> str:
    """What is wrong with one whose ``__init__`` left out its base's; torch would say something about ``_modules``."""
    module = isinstance(component, nn.Module) and "_modules" not in vars(component)
    env = isinstance(component, ConstraintEnv) and not hasattr(component, "rows")
    arguments = "config, rows, split, seed" if env else "config, spec"
    return f"its __init__ must first call super().__init__({arguments})" if module or env else ""


def blame(error: Exception, cell: Cell, catalog: Catalog) -> Problem:
    """What was raised while a cell's plugins were at work, and by whom: the innermost plugin that was called."""
    told = f"{type(error).__name__}: {error}"
    files = {_file(class_of(getattr(cell, kind), catalog)): kind for kind in KINDS}
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if kind := files.get(frame.filename):
            owner = f"{kind} '{getattr(cell, kind).plugin}'"
            return Problem(f"{told} ({frame.filename}:{frame.lineno})", owner=owner)
    last = traceback.extract_tb(error.__traceback__)[-1]
    return Problem(f"{told} ({last.filename}:{last.lineno})")


def _spot(error: Exception, file: str) -> str:
    """The line of ``file`` that raised, or that called what raised: a plugin's mistake often shows inside torch."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return f" ({file}:{lines[-1]})" if lines else ""


def _first_line(cls: type) -> str:
    """Of a constructor that could not even be called."""
    code = getattr(inspect.getattr_static(cls, "__init__"), "__code__", None)
    return f" ({code.co_filename}:{code.co_firstlineno})" if code else ""


def _file(cls: type) -> str:
    return inspect.getfile(cls)
