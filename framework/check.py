"""Check a plugin against its contract: ``python -m framework.check PATH_OR_NAME``. Says in words what is broken.

Exit codes: 0 it does, 1 it does not, 2 the plugin cannot be found or loaded, 130 stopped (Ctrl-C).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from rich.console import Console

from framework.catalog import Entry
from framework.convert import Notes, convert
from framework.errors import Problem, UserError, complain, did_you_mean, stopped
from framework.interfaces import ConstraintEnv
from framework.interfaces.component import Kind
from framework.plugin_manager import PluginHost, PluginRef
from framework.source import parse_overrides
from framework.testing import ContractBroken, check_env, check_interpreter, check_optimizer, check_policy
from framework.trained import plugin_host

HOME = Path(__file__).resolve().parent.parent
"""Origins of built-in plugins are relative to this."""
CHECKS: dict[Kind, Callable[..., list[str]]] = {
    "interpreter": check_interpreter,
    "policy": check_policy,
    "optimizer": check_optimizer,
    "env": check_env,
}


def main(argv: list[str] | None = None) -> int:
    """Returns the exit code."""
    options = _parser().parse_intermixed_args(argv)
    console = Console(highlight=False)
    try:
        env = None if options.env is None else _env(options.env, options.files)  # before the plugin is blamed for it
        entries = _find(options.plugin)
        broken = [entry for entry in entries if not _check(entry, options.settings, env, console)]
    except UserError as error:
        return complain(error)
    except KeyboardInterrupt:
        return stopped()
    return 1 if broken else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m framework.check", description="Check a plugin against its contract."
    )
    parser.add_argument("plugin", help="a plugin file, or the name of a plugin")
    parser.add_argument("settings", nargs="*", metavar="key=value", help="settings of the plugin")
    parser.add_argument("--env", help="the environment to try it in (default: the first that it takes)")
    files = "a plugin file with that environment"
    parser.add_argument("--plugin", type=Path, action="append", default=[], dest="files", metavar="FILE", help=files)
    return parser


def _env(name: str, files: list[Path]) -> type[ConstraintEnv]:
    return cast(type[ConstraintEnv], plugin_host(files).catalog.get("env", name).cls)


def _find(target: str) -> list[Entry]:
    path = Path(target)
    if path.suffix == ".py" or path.exists():
        builtin = _is_builtin(path)
        origin = path.resolve().relative_to(HOME).as_posix() if builtin else str(path.resolve())
        host = PluginHost([] if builtin else [PluginRef(path=origin, where=target)])
        found = [entry for entry in host.catalog if entry.origin == origin]
    else:
        host = PluginHost()
        found = [entry for entry in host.catalog if entry.name == target]
    if not found and path.is_file():
        said = "hands over nothing to check: no interpreter, policy, optimizer or env"
        raise UserError(Problem(said, where=target))
    if not found:
        names = sorted({entry.name for entry in host.catalog})
        raise UserError(f"no plugin is called '{target}'{did_you_mean(target, names)}")
    return found


def _is_builtin(path: Path) -> bool:
    return path.resolve().parent.parent == HOME / "plugins"


def _check(entry: Entry, settings: list[str], env: type[ConstraintEnv] | None, console: Console) -> bool:
    console.print(f"[bold]{entry.kind} {entry.name}[/bold]  [dim]{entry.origin}[/dim]")
    if entry.cls is None:
        raise UserError(f"{entry.owner} is not available: {entry.unavailable}")
    notes = Notes(lambda path: "command line")
    config = convert(entry.cls.Config, parse_overrides(settings), "", notes, entry.owner)
    if notes.problems:
        raise UserError(notes.problems)
    extra: dict[str, Any] = {} if entry.kind == "env" else {"env": env}
    try:
        for promise in CHECKS[entry.kind](entry.cls, config, **extra):
            console.print(f"  [green]ok[/green]  {promise}", soft_wrap=True)
    except ContractBroken as error:
        if error.env:
            console.print(f"  in env '{error.env}':", markup=False)
        for fault in error.faults:
            console.print("  [red]NO[/red]", end="  ")
            console.print(fault, markup=False, soft_wrap=True)
        if error.env and env is None and any(": raised " in fault for fault in error.faults):
            console.print("  (made for another environment? --env NAME tries it there)", style="dim", soft_wrap=True)
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
