"""The report's gallery: each experiment's agent in the same world, with its sentence, its mask and its budget."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from framework.checkpoint import write_bytes
from framework.config import Study
from framework.errors import UserError
from framework.film import gif, record
from framework.player import Player
from framework.plugin_manager import PluginHost
from framework.seeding import generator
from framework.stages import is_trained, run_folder
from framework.trained import load_trained

WORLD = 0
"""Seed of map, sentence and choices: the same for all, so that what differs is the agent."""
FRAMES = 120
"""At most; of a longer film every n-th step is shown."""
FPS = 6.0
MOST = 12
"""Agents. A page with more is not looked at."""


@dataclass(frozen=True)
class Exhibit:
    """An agent's film."""

    label: str
    film: bytes


def show(study: Study, runs: Path, console: Console) -> list[Exhibit]:
    """One film for each experiment that is finished. Who cannot be drawn is left out, and said."""
    episodes, made = study.report.gallery, list[Exhibit]()
    cells = [cell for cell in study.cells if cell.group == "experiments"] if episodes else []
    for cell in cells[:MOST]:
        run = next((run for run in cell.runs() if is_trained(run_folder(runs, run))), None)
        if run is None:
            continue
        try:
            made.append(Exhibit(cell.label, _film(run_folder(runs, run), study.host, episodes)))
        except Exception as error:  # a plugin draws it: whatever goes wrong there, the report has the numbers
            told = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
            console.print(f"not in the gallery: {cell.label}: {told}", style="yellow", markup=False)
    return made


def _film(folder: Path, host: PluginHost, episodes: int) -> bytes:
    """Recorded once; the run's folder keeps it."""
    file = folder / f"gallery-{episodes}.gif"
    if not file.is_file():
        trained = load_trained(folder, host)
        env = trained.world(WORLD)
        try:
            film = record(Player(env, trained.agent(env)), episodes, generator(WORLD, "show"))
        finally:
            env.close()
        write_bytes(file, gif(film.thinned(-(-len(film) // FRAMES)), FPS))
    return file.read_bytes()
