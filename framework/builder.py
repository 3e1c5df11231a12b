"""Run spec -> the four components, checked to fit together before step 0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from framework.catalog import Catalog
from framework.cell import Cell, class_of
from framework.errors import Problem, UserError
from framework.interfaces import ConstraintEnv, ConstraintInterpreter, PolicyNet, SafeOptimizer, Split
from framework.seeding import derive, seed_everything


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
    interpreter = build_interpreter(cell, seed, catalog, env)
    policy_cls = cast(type[PolicyNet], class_of(cell.policy, catalog))
    optimizer_cls = cast(type[SafeOptimizer], class_of(cell.optimizer, catalog))
    _check_fit(cell, env, interpreter, policy_cls, optimizer_cls)
    policy = build_policy(cell, seed, catalog, env)
    optimizer = _make(cell, "optimizer", lambda: optimizer_cls(cell.optimizer.config, policy))
    return System(env, interpreter, policy, cast(SafeOptimizer, optimizer))


def build_env(cell: Cell, seed: int, catalog: Catalog, split: Split, rows: int | None = None) -> ConstraintEnv:
    """The env with its training or evaluation split, on a random stream of its own; ``rows``: default training's."""
    cls = cast(type[ConstraintEnv], class_of(cell.env, catalog))
    stream, rows = derive(seed, "env", split), rows or cell.training.rows
    return cast(
        ConstraintEnv,
        _make(cell, "env", lambda: cls(cell.env.config, rows=rows, split=split, seed=stream)),
    )


def build_interpreter(cell: Cell, seed: int, catalog: Catalog, env: ConstraintEnv) -> ConstraintInterpreter:
    cls = cast(type[ConstraintInterpreter], class_of(cell.interpreter, catalog))
    seed_everything(derive(seed, "interpreter"))
    made = _make(cell, "interpreter", lambda: cls(cell.interpreter.config, env.spec))
    return cast(ConstraintInterpreter, made)


def build_policy(cell: Cell, seed: int, catalog: Catalog, env: ConstraintEnv) -> PolicyNet:
    cls = cast(type[PolicyNet], class_of(cell.policy, catalog))
    seed_everything(derive(seed, "policy"))
    return cast(PolicyNet, _make(cell, "policy", lambda: cls(cell.policy.config, env.spec)))


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


def _make(cell: Cell, kind: str, construct: object) -> object:
    """Call a constructor; a ValueError from it is the plugin's way to refuse what it was given, an ImportError to say
    what is not installed as it should be."""
    try:
        return construct()  # type: ignore[operator]
    except (ValueError, ImportError) as error:
        name = getattr(cell, kind).plugin
        raise UserError(Problem(str(error), owner=f"{kind} '{name}'")) from error
