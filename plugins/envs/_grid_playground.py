"""HazardWorld-grid to play with: sentences that somebody typed, a map that somebody may have drawn.

The engine, its rules and its observations are those of training. What is new: the map comes as text
(``hazardworld.custom``), and a sentence has a truth only if it is one of the data set's. Others hold a constraint that
stands for "unknown"; what it costs is told to nobody.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from torch import Tensor

from framework.interfaces import Board, Playground, Tile, Timestep
from hazardworld.arrays import Step
from hazardworld.constraint import CLASSES, KINDS, Constraint, from_label
from hazardworld.custom import from_seed, from_text, to_text
from hazardworld.engine import Engine
from hazardworld.kernels import RIM, VIEW
from hazardworld.objects import encoding
from hazardworld.pictures import AHEAD, scene_of, view_cells
from hazardworld.sentences import SentenceTable
from plugins.envs._grid_tiles import TILES
from plugins.envs.hazardworld_grid import HazardWorldGrid
from plugins.texts.loader import OWN, load

UNKNOWN = CLASSES["budgetary"][0]
LARGEST = 25
"""Cells along a side of a drawn map, at most."""
EXAMPLES = {
    "budgetary": ("water2", "lava0"),
    "relational": ("lava1", "grass2"),
    "sequential": ("agrasswater", "blavagrass"),
}
"""Labels; of each, a held-out sentence of about EXAMPLE_LENGTH."""
EXAMPLE_LENGTH = 38
MARKS = ".LWG#bxk"  # in the order of the engine's codes


class GridPlayground(HazardWorldGrid, Playground):
    """One row of HazardWorld-grid whose sentences are typed and whose map may be drawn."""

    def __init__(
        self, config: Any, sentences: Sequence[str], seed: int, layout: str | None, distances: Mapping[str, int]
    ) -> None:
        config = dataclasses.replace(config, constraints=len(sentences))
        Playground.__init__(self, config, rows=1, split="eval", seed=seed)
        known = _known(config.texts)
        self._meant = [known.get(_plain(sentence)) for sentence in sentences]
        far = {c.entity: c.distance for c in self._meant if c is not None and c.kind == "relational"}
        if layout is None:
            layout = from_seed(seed, config.size, config.density, {**distances, **far})
        elif len(layout.split()) > LARGEST:
            raise ValueError(f"the map has {len(layout.split())} lines; at most {LARGEST} are drawn")
        maps = from_text(layout, [constraint or UNKNOWN for constraint in self._meant])
        self._table = SentenceTable(tuple(sentences), *_nowhere())
        self._text = np.arange(len(sentences))[None]
        self._engine = Engine(
            maps,
            SentenceTable.build({constraint or UNKNOWN: ("",) for constraint in self._meant}),
            rows=1,
            actions=config.actions,
            reward=config.reward,
            max_steps=config.max_steps,
            order="sequential",
            seed=seed,
        )

    @property
    def tiles(self) -> tuple[Tile, ...]:
        return TILES

    @property
    def layout(self) -> str:
        return to_text(self._engine.maps)

    @property
    def truths(self) -> tuple[str | None, ...]:
        return tuple(None if c is None else _in_words(c) for c in self._meant)

    @property
    def examples(self) -> dict[str, tuple[str, ...]]:
        return _examples()

    def board(self) -> Board:
        scene = scene_of(self._engine, 0, self.config.actions == "compass")
        rows = tuple("".join(MARKS[code] for code in row) for row in scene.codes)
        return Board(rows, scene.agent, AHEAD[scene.direction], view_cells(scene))

    def outlook(self) -> tuple[Tensor, NDArray[np.int64]] | None:
        if self.config.actions != "compass":  # what one would see depends on where one would look
            return None
        size, half = self._engine.maps.size, VIEW // 2
        side = size + 2 * RIM
        cells = self._engine.state()["cells"].reshape(side, side, 3)[RIM - half : half - RIM, RIM - half : half - RIM]
        views = sliding_window_view(cells, (VIEW, VIEW), (0, 1)).transpose(0, 1, 3, 4, 2).copy()  # [x, y, 7, 7, 3]
        views[:, :, half, half] = encoding()[0]
        across = np.stack(np.meshgrid(np.arange(VIEW), np.arange(VIEW), indexing="ij"), -1) - half
        places = np.stack(np.meshgrid(np.arange(size), np.arange(size), indexing="ij"), -1)
        return torch.from_numpy(views.reshape(-1, VIEW, VIEW, 3)), (places[:, :, None, None] + across).reshape(
            -1, VIEW, VIEW, 2
        )

    def _show(self, step: Step) -> Timestep:
        return super()._show(step._replace(text=self._text))


def _nowhere() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """No sentence of this table belongs to a class: which holds is known without drawing."""
    nothing = np.zeros(0, np.int64)
    return nothing, nothing


def _plain(sentence: str) -> str:
    return " ".join(sentence.casefold().split()).rstrip(".! ")


@functools.lru_cache(maxsize=4)
def _known(texts: str | None) -> dict[str, Constraint]:
    """The meaning of every sentence in the data set."""
    folder = None if texts is None else Path(texts)
    return {
        _plain(sentence): from_label(kind, label)
        for kind in KINDS
        for split in ("train", "test")
        for label, sentences in load(folder, kind, split).items()  # type: ignore[arg-type]
        for sentence in sentences
    }


@functools.cache
def _examples() -> dict[str, tuple[str, ...]]:
    found = {}
    for kind, labels in EXAMPLES.items():
        said = load(None, kind, "test")
        found[kind] = tuple(min(said[label], key=_strangeness) for label in labels)
    other = json.loads((OWN / "grid" / "invalid-test.json").read_text(encoding="utf-8"))["invalid"]
    return found | {"not a constraint": (min(other, key=_strangeness),)}


def _strangeness(sentence: str) -> int:
    return abs(len(sentence) - EXAMPLE_LENGTH)


def _in_words(constraint: Constraint) -> str:
    c = constraint
    if c.kind == "sequential":
        return f"no {c.entity} {'once' if c.order == 'after' else 'until'} {c.first} was entered"
    if c.distance:
        return f"nothing within {c.distance} step{'s' if c.distance > 1 else ''} of {c.entity}"
    return f"{c.entity}, at most {c.threshold} time{'s' if c.threshold != 1 else ''}"
