"""Watch an agent, or play: ``python -m framework.show RUN_FOLDER_OR_ENV``.

Exit codes: 0 done, 2 the user's mistake, 130 stopped (Ctrl-C).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from framework.agent import Agent
from framework.catalog import Catalog
from framework.convert import Notes, convert
from framework.errors import Problem, UserError, complain, stopped
from framework.film import check_target, record, write
from framework.interfaces import ConstraintEnv
from framework.player import Player, RandomPolicy
from framework.plugin_manager import PluginHost
from framework.seeding import derive, generator
from framework.source import parse_overrides
from framework.terminal import play
from framework.trained import load_trained, plugin_host, untrained
from framework.wording import counted

TRUTH = "oracle"
"""Whose mask is shown where there is no trained agent and none was asked for."""
A_MOMENT = 1.0


def main(argv: list[str] | None = None) -> int:
    """Returns the exit code."""
    options = _parser().parse_intermixed_args(argv)
    console = Console(highlight=False)
    try:
        _main(options, console)
    except UserError as error:
        return complain(error)
    except KeyboardInterrupt:
        return stopped("stopped; nothing was written")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m framework.show", description="Watch an agent, or play yourself.")
    add = parser.add_argument
    add("target", metavar="RUN_FOLDER_OR_ENV", help="runs/cells/<id>, or the name of an env (then actions are random)")
    add("settings", nargs="*", metavar="key=value", help="settings of the env, when it is named")
    add("--play", action="store_true", help="play yourself, in the terminal")
    add("--episodes", type=int, default=3, metavar="N", help="how many to record (default: 3)")
    add("--out", type=Path, default=Path("agent.gif"), metavar="FILE", help=".gif, .mp4, or a folder for PNG files")
    add("--seed", type=int, default=0, metavar="N", help="of the worlds and the actions (default: 0)")
    add("--split", choices=("train", "eval"), default="eval", help="which maps and sentences (default: eval)")
    add("--greedy", action="store_true", help="always the likeliest action")
    add("--interpreter", metavar="NAME", help="show what this one understands (default: the run's own, or the truth)")
    add("--fps", type=float, default=8.0, metavar="N", help="steps per second (default: 8)")
    add("--kilobytes", type=int, default=500, metavar="N", help="thin a GIF that is larger; 0: never (default: 500)")
    add("--plugin", type=Path, action="append", default=[], metavar="FILE", help="a plugin file that the run needs")
    return parser


def _main(options: argparse.Namespace, console: Console) -> None:
    _check(options)
    host = plugin_host(options.plugin)
    catalog = host.catalog
    folder = Path(options.target)
    if (folder / "run.json").is_file():
        if options.settings:
            raise UserError(f"'{options.settings[0]}': a run has its settings already; they go with the name of an env")
        player = _trained(folder, options, host)
    elif options.target not in catalog.names("env") and (folder.exists() or len(folder.parts) > 1):
        what = "is no run: it has no run.json" if folder.is_dir() else "no such folder"
        raise UserError(Problem(f"{what}; give a folder in runs/cells, or the name of an env", where=options.target))
    else:
        player = _random(options, catalog)
    try:
        player.frame()  # whoever cannot be drawn says so here
        if options.play:
            play(player, sys.stdin, sys.stdout)
            return
        with _progress(options.episodes, console) as watch:
            film = record(player, options.episodes, generator(options.seed, "show"), options.greedy, watch)
        every = write(film, options.out, options.fps, options.kilobytes * 1000 or None)
        thinned = f"; only every {every} steps are in it (--kilobytes {options.kilobytes})" if every > 1 else ""
        console.print(
            f"{options.out}: {counted(options.episodes, 'episode')}, {counted(len(film), 'frame')}{thinned}",
            markup=False,
        )
    finally:
        player.env.close()


def _check(options: argparse.Namespace) -> None:
    if options.episodes < 1:
        raise UserError(f"--episodes must be at least 1, not {options.episodes}")
    if options.kilobytes < 0:
        raise UserError(f"--kilobytes must be at least 0, not {options.kilobytes}")
    if not 0.1 <= options.fps <= 50:
        raise UserError(f"--fps must be between 0.1 and 50, not {options.fps:g}")
    if not options.play:
        check_target(options.out)


def _trained(folder: Path, options: argparse.Namespace, host: PluginHost) -> Player:
    """The agent of a finished run, in a world of one row."""
    trained = load_trained(folder, host)
    env = trained.world(options.seed, options.split)
    other = None
    if options.interpreter not in (None, trained.run.cell.interpreter.plugin):
        other = untrained(options.interpreter, env, host.catalog)
    return Player(env, trained.agent(env, other))


def _random(options: argparse.Namespace, catalog: Catalog) -> Player:
    """Random actions in an env of that name."""
    if options.greedy:
        raise UserError("--greedy needs a trained agent: give the folder of a run, not the name of an env")
    entry = catalog.get("env", options.target)
    notes = Notes(lambda path: "command line")
    config = convert(cast(Any, entry.cls).Config, parse_overrides(options.settings), "", notes, entry.owner)
    if notes.problems:
        raise UserError(notes.problems)
    stream = derive(options.seed, "env", options.split)
    try:
        env = cast(type[ConstraintEnv], entry.cls)(config, rows=1, split=options.split, seed=stream)
    except ValueError as error:
        raise UserError(Problem(str(error), owner=entry.owner)) from None
    interpreter = untrained(options.interpreter or TRUTH, env, catalog)
    return Player(env, Agent(env, interpreter, RandomPolicy(None, env.spec)))


@contextmanager
def _progress(episodes: int, console: Console) -> Iterator[Callable[[int, int], None]]:
    """A bar on a terminal, once it takes longer than a moment."""
    bar = Progress(
        TextColumn("recording"), BarColumn(bar_width=24), MofNCompleteColumn(), TextColumn("{task.fields[frames]}"),
        console=console, transient=True,
    )  # fmt: skip
    task = bar.add_task("", total=episodes, frames="")
    started, visible = time.monotonic(), False

    def watch(finished: int, frames: int) -> None:
        nonlocal visible
        if not visible and console.is_terminal and time.monotonic() - started > A_MOMENT:
            visible = True
            bar.start()
        bar.update(task, completed=finished, frames=f"episodes, {frames} frames")

    try:
        yield watch
    finally:
        if visible:
            bar.stop()


if __name__ == "__main__":
    sys.exit(main())
