"""Constraints as data, and what they forbid."""

from __future__ import annotations

import numpy as np
import pytest

from hazardworld.constraint import ALL_CLASSES, CLASSES, ENTITIES, Constraint, forbidden, from_label
from hazardworld.engine import Engine
from hazardworld.maps import Recipe
from hazardworld.sentences import SentenceTable


def test_all_classes_are_there() -> None:
    assert {kind: len(classes) for kind, classes in CLASSES.items()} == {
        "budgetary": 18,
        "relational": 12,
        "sequential": 15,
    }
    assert len(set(ALL_CLASSES)) == 45


@pytest.mark.parametrize("constraint", ALL_CLASSES, ids=lambda c: f"{c.kind}-{c.label}")
def test_label_goes_there_and_back(constraint: Constraint) -> None:
    assert from_label(constraint.kind, constraint.label) == constraint


def test_public_labels_mean_what_the_public_data_says() -> None:
    assert from_label("budgetary", "water5") == Constraint("budgetary", "water", budget=5)
    assert from_label("relational", "lava3") == Constraint("relational", "lava", distance=3)
    assert from_label("sequential", "agrasswater") == Constraint("sequential", "water", first="grass", order="after")
    assert from_label("sequential", "bgrasswater") == Constraint("sequential", "water", first="grass", order="before")


def test_threshold_is_the_number_in_the_label() -> None:
    """The published environment was off by one here."""
    assert [c.threshold for c in CLASSES["budgetary"]] == [0, 1, 2, 3, 4, 5] * 3
    assert {c.threshold for kind in ("relational", "sequential") for c in CLASSES[kind]} == {0}


@pytest.mark.parametrize(
    ("kind", "label", "message"),
    [
        ("budgetary", "watter5", "label 'watter5' names an unknown entity 'watter' (did you mean 'water'?)"),
        ("budgetary", "water6", "no budgetary constraint has the label 'water6' (did you mean 'water5'?)"),
        ("sequential", "blavalava", "no sequential constraint has the label 'blavalava' (did you mean 'alavalava'?)"),
        ("relational", "", "no relational constraint has the label ''"),
        ("budgetery", "water5", "unknown kind of constraint 'budgetery' (did you mean 'budgetary'?)"),
    ],
)
def test_bad_label(kind: str, label: str, message: str) -> None:
    with pytest.raises(ValueError) as error:
        from_label(kind, label)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "budgetary", "entity": "fire"},
        {"kind": "budgetary", "entity": "lava", "budget": 6},
        {"kind": "budgetary", "entity": "lava", "distance": 1},
        {"kind": "relational", "entity": "lava", "distance": 4},
        {"kind": "relational", "entity": "lava", "budget": 1},
        {"kind": "sequential", "entity": "lava"},
        {"kind": "sequential", "entity": "lava", "first": "lava", "order": "before"},
        {"kind": "budgetary", "entity": "lava", "first": "water", "order": "after"},
    ],
)
def test_impossible_constraints_are_refused(fields: dict) -> None:
    with pytest.raises(ValueError):
        Constraint(**fields)


def test_relational_is_manhattan_distance() -> None:
    terrain = np.zeros((9, 9), np.uint8)
    terrain[4, 4] = 1 + ENTITIES.index("water")
    y, x = np.indices(terrain.shape)
    for distance in range(4):
        constraint = Constraint("relational", "water", distance=distance)
        expected = abs(y - 4) + abs(x - 4) <= distance
        np.testing.assert_array_equal(forbidden(terrain, constraint, False), expected)


def test_sequential_is_active_only_on_its_side_of_the_condition() -> None:
    terrain = np.array([[2, 3]], np.uint8)
    after, before = from_label("sequential", "agrasswater"), from_label("sequential", "bgrasswater")
    assert forbidden(terrain, after, False).tolist() == [[False, False]]
    assert forbidden(terrain, after, True).tolist() == [[True, False]]
    assert forbidden(terrain, before, False).tolist() == [[True, False]]
    assert forbidden(terrain, before, True).tolist() == [[False, False]]


def test_compiled_mask_equals_the_pure_one() -> None:
    """Every class, both states of the condition, on the terrain in view."""
    table = SentenceTable.build({c: [c.label] for c in ALL_CLASSES})
    engine = Engine(Recipe("mixed").generate(range(400)), table, 400, order="sequential")
    code_of = np.zeros(13, np.uint8)
    code_of[[9, 11, 12]] = 1, 2, 3
    seen = set()
    step, rng = engine.reset(), np.random.default_rng(0)
    for _ in range(12):
        step, state = engine.step(rng.integers(0, 4, 400)), engine.state()
        mask = engine.mask()
        for n in range(400):
            constraint, met = ALL_CLASSES[state["classes"][n, 0]], bool(state["condition"][n, 0])
            np.testing.assert_array_equal(mask[n, 0], forbidden(code_of[step.obs[n, ..., 0]], constraint, met))
            seen.add((constraint, met))
    assert len(seen) == 18 + 12 + 15 * 2
