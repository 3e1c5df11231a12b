"""Constraints as data, and the one definition of what they forbid.

A sentence says a constraint; this file knows nothing of sentences. The labels are those of the public data set:
``water5`` (budgetary: enter water at most five times), ``lava3`` (relational: stay more than three steps from lava),
``agrasswater`` / ``bgrasswater`` (sequential: after / before grass, no water). The robot's are made likewise:
``vases10``, ``gremlins40`` (stay 40 cm from gremlins), ``abuttonsvases``.
"""

from __future__ import annotations

import difflib
import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

KINDS = ("budgetary", "relational", "sequential")
ORDERS = ("after", "before")


@dataclass(frozen=True)
class Domain:
    """What constraints of a world can speak of."""

    name: str
    entities: tuple[str, ...]
    budgets: tuple[int, ...]
    distances: tuple[int, ...]


GRID = Domain("grid", ("lava", "water", "grass"), tuple(range(6)), tuple(range(4)))
ROBOT = Domain("robot", ("hazards", "vases", "pillars", "buttons", "gremlins"), (0, 5, 10, 15, 20), (20, 40, 60))
"""Distances in centimetres."""

ENTITIES = GRID.entities
EMPTY, LAVA, WATER, GRASS, WALL = range(5)
"""Terrain codes of the grid. The code of an entity is one more than its place in ENTITIES."""
MAX_BUDGET = GRID.budgets[-1]
MAX_DISTANCE = GRID.distances[-1]


@dataclass(frozen=True)
class Constraint:
    """What must not happen in an episode."""

    kind: str
    entity: str
    budget: int = 0
    distance: int = 0
    first: str | None = None
    order: str | None = None
    domain: Domain = GRID

    def __post_init__(self) -> None:
        entities, budgets, distances = self.domain.entities, self.domain.budgets, self.domain.distances
        if self.kind not in KINDS:
            raise ValueError(f"unknown kind of constraint {self.kind!r}{suggest(self.kind, KINDS)}")
        for entity in (self.entity, self.first):
            if entity is not None and entity not in entities:
                raise ValueError(f"unknown entity {entity!r}{suggest(entity, entities)}")
        sequential = self.kind == "sequential"
        if sequential != (self.first is not None) or sequential != (self.order in ORDERS):
            raise ValueError(f"`first` and `order` (after, before) belong to sequential constraints: {self}")
        if self.order == "before" and self.first == self.entity:
            raise ValueError(f"'before {self.entity}, avoid {self.entity}' can never be lifted")
        if self.budget not in (budgets if self.kind == "budgetary" else (0,)):
            raise ValueError(f"budget {self.budget} is outside {_span(budgets)}, or not on a budgetary constraint")
        if self.distance not in (distances if self.kind == "relational" else (0,)):
            raise ValueError(f"distance {self.distance} is outside {_span(distances)}, or not on a relational one")

    @property
    def threshold(self) -> int:
        """h_C: how much cost an episode may have. Only budgetary constraints leave any."""
        return self.budget

    @property
    def label(self) -> str:
        """The public data set's name of this class."""
        if self.kind == "sequential":
            return f"{str(self.order)[0]}{self.first}{self.entity}"
        return f"{self.entity}{self.budget if self.kind == 'budgetary' else self.distance}"


def _span(values: tuple[int, ...]) -> str:
    """0..5, or each of them where they are not in a row."""
    in_a_row = values == tuple(range(values[0], values[-1] + 1))
    return f"{values[0]}..{values[-1]}" if in_a_row else ", ".join(map(str, values))


@functools.cache
def classes_of(kind: str, domain: Domain) -> tuple[Constraint, ...]:
    """All constraints of a kind, in the order that their ids keep for ever."""
    entities = domain.entities
    if kind == "budgetary":
        return tuple(Constraint(kind, e, budget=h, domain=domain) for e in entities for h in domain.budgets)
    if kind == "relational":
        return tuple(Constraint(kind, e, distance=d, domain=domain) for e in entities for d in domain.distances)
    return tuple(
        Constraint(kind, entity, first=first, order=order, domain=domain)
        for order in ORDERS
        for first in entities
        for entity in entities
        if order == "after" or first != entity
    )


@functools.cache
def all_classes(domain: Domain) -> tuple[Constraint, ...]:
    """Every constraint there is; arrays name a constraint by its place here (its class id)."""
    return tuple(c for kind in KINDS for c in classes_of(kind, domain))


CLASSES: dict[str, tuple[Constraint, ...]] = {kind: classes_of(kind, GRID) for kind in KINDS}
ALL_CLASSES: tuple[Constraint, ...] = all_classes(GRID)
CLASS_ID: dict[Constraint, int] = {constraint: index for index, constraint in enumerate(ALL_CLASSES)}


def from_label(kind: str, label: str, domain: Domain = GRID) -> Constraint:
    """The class of a public label, or a ValueError that says what is wrong with the label."""
    if kind not in KINDS:
        raise ValueError(f"unknown kind of constraint {kind!r}{suggest(kind, KINDS)}")
    known = {constraint.label: constraint for constraint in classes_of(kind, domain)}
    if label in known:
        return known[label]
    word = label.rstrip("0123456789") if kind != "sequential" else ""
    if word and word != label and word not in domain.entities:
        raise ValueError(f"label {label!r} names an unknown entity {word!r}{suggest(word, domain.entities)}")
    raise ValueError(f"no {kind} constraint has the label {label!r}{suggest(label, tuple(known))}")


def suggest(word: str, known: tuple[str, ...]) -> str:
    """`` (did you mean ...?)``, or else the list of what is known."""
    close = difflib.get_close_matches(word, known, n=1)
    return f" (did you mean {close[0]!r}?)" if close else f" (known: {', '.join(known)})"


def active(constraint: Constraint, condition_met: bool) -> bool:
    """Whether the constraint holds now. ``condition_met``: its ``first`` entity was entered in this episode."""
    if constraint.kind != "sequential":
        return True
    return condition_met if constraint.order == "after" else not condition_met


def forbidden(terrain: NDArray[np.uint8], constraint: Constraint, condition_met: bool) -> NDArray[np.bool_]:
    """[H, W] bool: the cells that would cost if they were entered now.

    On the whole map this gives the cost of a move; on the terrain in view it gives the true mask M_C. Walls near an
    entity are marked like any cell: the rule is about distance, and nobody can enter a wall anyway.
    """
    cells = terrain == 1 + ENTITIES.index(constraint.entity)
    if not active(constraint, condition_met):
        return np.zeros_like(cells)
    for _ in range(constraint.distance):  # d steps of growing by one neighbour are a Manhattan ball of radius d
        inner = cells.copy()
        cells[1:] |= inner[:-1]
        cells[:-1] |= inner[1:]
        cells[:, 1:] |= inner[:, :-1]
        cells[:, :-1] |= inner[:, 1:]
    return cells
