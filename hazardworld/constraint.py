"""Constraints as data, and the one definition of what they forbid.

A sentence says a constraint; this file knows nothing of sentences. The labels are those of the public data set:
``water5`` (budgetary: enter water at most five times), ``lava3`` (relational: stay more than three steps from lava),
``agrasswater`` / ``bgrasswater`` (sequential: after / before grass, no water).
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ENTITIES = ("lava", "water", "grass")
EMPTY, LAVA, WATER, GRASS, WALL = range(5)
"""Terrain codes. The code of an entity is one more than its place in ENTITIES."""

KINDS = ("budgetary", "relational", "sequential")
ORDERS = ("after", "before")
MAX_BUDGET = 5
MAX_DISTANCE = 3


@dataclass(frozen=True)
class Constraint:
    """What must not happen in an episode."""

    kind: str
    entity: str
    budget: int = 0
    distance: int = 0
    first: str | None = None
    order: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"unknown kind of constraint {self.kind!r}{suggest(self.kind, KINDS)}")
        for entity in (self.entity, self.first):
            if entity is not None and entity not in ENTITIES:
                raise ValueError(f"unknown entity {entity!r}{suggest(entity, ENTITIES)}")
        sequential = self.kind == "sequential"
        if sequential != (self.first is not None) or sequential != (self.order in ORDERS):
            raise ValueError(f"`first` and `order` (after, before) belong to sequential constraints: {self}")
        if self.order == "before" and self.first == self.entity:
            raise ValueError(f"'before {self.entity}, avoid {self.entity}' can never be lifted")
        if not 0 <= self.budget <= (MAX_BUDGET if self.kind == "budgetary" else 0):
            raise ValueError(f"budget {self.budget} is outside 0..{MAX_BUDGET}, or not on a budgetary constraint")
        if not 0 <= self.distance <= (MAX_DISTANCE if self.kind == "relational" else 0):
            raise ValueError(f"distance {self.distance} is outside 0..{MAX_DISTANCE}, or not on a relational one")

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


def _classes(kind: str) -> tuple[Constraint, ...]:
    """All constraints of a kind, in the order that their ids keep for ever."""
    if kind == "budgetary":
        return tuple(Constraint(kind, e, budget=h) for e in ENTITIES for h in range(MAX_BUDGET + 1))
    if kind == "relational":
        return tuple(Constraint(kind, e, distance=d) for e in ENTITIES for d in range(MAX_DISTANCE + 1))
    return tuple(
        Constraint(kind, entity, first=first, order=order)
        for order in ORDERS
        for first in ENTITIES
        for entity in ENTITIES
        if order == "after" or first != entity
    )


CLASSES: dict[str, tuple[Constraint, ...]] = {kind: _classes(kind) for kind in KINDS}
ALL_CLASSES: tuple[Constraint, ...] = tuple(c for kind in KINDS for c in CLASSES[kind])
"""Every constraint there is; arrays name a constraint by its place here (its class id)."""
CLASS_ID: dict[Constraint, int] = {constraint: index for index, constraint in enumerate(ALL_CLASSES)}


def from_label(kind: str, label: str) -> Constraint:
    """The class of a public label, or a ValueError that says what is wrong with the label."""
    if kind not in KINDS:
        raise ValueError(f"unknown kind of constraint {kind!r}{suggest(kind, KINDS)}")
    known = {constraint.label: constraint for constraint in CLASSES[kind]}
    if label in known:
        return known[label]
    word = label.rstrip("0123456789") if kind != "sequential" else ""
    if word and word != label and word not in ENTITIES:
        raise ValueError(f"label {label!r} names an unknown entity {word!r}{suggest(word, ENTITIES)}")
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
