"""Playground: a world of one row for people to play with, in which sentences are typed and hazards are drawn.

An env offers one by ``ConstraintEnv.playground``; ``python -m framework.play`` asks for it. The framework knows nothing
of lava and keys: a world tells it by ``Tile`` what there is and how it looks, and maps travel as text.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from framework.interfaces.env import ConstraintEnv


@dataclass(frozen=True)
class Tile:
    """Something that a cell can show."""

    mark: str
    """One character: how it is written in a map."""
    name: str
    svg: str
    """How it looks: the inside of an SVG of 24 by 24 units. It goes into the page as it is, so never a user's text."""
    paintable: bool = False
    """People may put it on a map, and other paintable tiles in its place."""
    note: str = ""
    """What it is for, if that has to be said."""


@dataclass(frozen=True)
class Board:
    """Where everything is now."""

    rows: tuple[str, ...]
    """The map as it is now, marks of tiles, north first; the agent is not in it."""
    agent: tuple[int, int]  # x, y
    heading: tuple[int, int]  # dx, dy
    view: NDArray[np.int64]  # [*cells, 2]: the (x, y) of each cell of the mask; some may lie off the map


class Playground(ConstraintEnv):
    """K = how many sentences were typed. ``Timestep.text`` is 0 ... K - 1. Every episode has the same map."""

    @property
    @abstractmethod
    def tiles(self) -> tuple[Tile, ...]:
        """All that there can be."""

    @property
    @abstractmethod
    def layout(self) -> str:
        """The map at the start of an episode, as text: what this playground was made of, or could be made of again."""

    @abstractmethod
    def board(self) -> Board:
        """Where everything is now."""

    @property
    @abstractmethod
    def truths(self) -> tuple[str | None, ...]:
        """[K]: what each sentence truly means, in words; None if nobody knows. Then its true cost means nothing."""

    @property
    @abstractmethod
    def examples(self) -> dict[str, tuple[str, ...]]:
        """Sentences to try, by kind of constraint."""

    def outlook(self) -> tuple[Tensor, NDArray[np.int64]] | None:
        """What one would see from every cell, were one there: observations [P, *shape], and [P, *cells, 2] as in Board.

        A cell one stands on looks empty, so that nobody takes it for visited. None (the default) if that has no sense.
        """
        return None
