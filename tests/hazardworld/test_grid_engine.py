"""The engine's own promises: autoreset, order of maps, saving, threads, errors. The rules are in other files."""

from __future__ import annotations

import numpy as np
import pytest

from hazardworld.arrays import Step
from hazardworld.constraint import ALL_CLASSES
from hazardworld.engine import Engine
from hazardworld.maps import MapSet, Recipe
from hazardworld.objects import LEVELS
from hazardworld.sentences import SentenceTable

TABLE = SentenceTable.build({c: [f"{c.kind} {c.label} {i}" for i in range(3)] for c in ALL_CLASSES})


def make(rows: int = 8, maps: int = 50, kind: str = "mixed", **settings: object) -> Engine:
    k = int(settings.pop("constraints", 1))  # type: ignore[call-overload]
    return Engine(Recipe(kind, constraints=k).generate(range(maps)), TABLE, rows, **settings)  # type: ignore[arg-type]


def copy(step: Step) -> Step:
    return Step(*(array.copy() for array in step))


def story(engine: Engine, steps: int, seed: int = 0) -> list[Step]:
    rng = np.random.default_rng(seed)
    return [copy(engine.step(rng.integers(0, 4, engine.rows))) for _ in range(steps)]


def assert_same(left: list[Step], right: list[Step]) -> None:
    for one, other in zip(left, right, strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_next_step_autoreset() -> None:
    engine = make(rows=5, max_steps=3)
    first = copy(engine.reset())
    assert first.episode_start.all() and not first.touched.any() and not first.reward.any()
    steps = story(engine, 8)
    for t, step in enumerate(steps, start=1):
        assert step.truncated.all() == (t % 4 == 3) and step.episode_start.all() == (t % 4 == 0)
        if t % 4 == 0:
            assert not step.touched.any() and not step.cost.any() and not step.reward.any()
            assert not step.truncated.any() and not step.terminated.any()
    np.testing.assert_array_equal(steps[2].text, first.text)  # the last observation still belongs to its episode


def test_equal_seeds_equal_worlds() -> None:
    one, same, other = make(seed=1), make(seed=1), make(seed=2)
    for engine in (one, same, other):
        engine.reset()
    told = story(one, 50)
    assert_same(told, story(same, 50))
    assert any((a.obs != b.obs).any() for a, b in zip(told, story(other, 50), strict=True))
    one.reset()
    assert_same(told, story(one, 50))


def test_random_order_draws_from_the_whole_set() -> None:
    engine = make(rows=400, maps=50)
    engine.reset()
    assert len(set(engine.map_index)) == 50


def test_sequential_order_goes_through_the_maps() -> None:
    engine = make(rows=4, maps=10, order="sequential", max_steps=1)
    engine.reset()
    seen = [engine.map_index.tolist()]
    for _ in range(3):
        story(engine, 2)
        seen.append(engine.map_index.tolist())
    assert seen == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 0, 1], [2, 3, 4, 5]]


def test_evaluation_does_not_depend_on_how_many_rows_run() -> None:
    """Episode i has the same map and the same sentence."""

    def episodes(rows: int) -> list[tuple[int, int]]:
        engine = make(rows=rows, maps=12, order="sequential", max_steps=1)
        step = engine.reset()
        told = []
        for _ in range(12 // rows):
            told += list(zip(engine.map_index.tolist(), step.text[:, 0].tolist(), strict=True))
            story(engine, 1)
            step = engine.step(np.zeros(rows, np.int64))
        return told

    assert episodes(2) == episodes(3) == episodes(6)


@pytest.mark.parametrize("order", ["random", "sequential"])
def test_goes_on_exactly_where_it_was_saved(order: str) -> None:
    engine = make(constraints=2, max_steps=7, order=order, actions="turn")
    engine.reset()
    story(engine, 20)
    saved = engine.state()
    masks = engine.mask().copy()
    told = story(engine, 40, seed=1)
    fresh = make(constraints=2, max_steps=7, order=order, actions="turn", seed=99 if order == "random" else 0)
    fresh.restore(saved)
    np.testing.assert_array_equal(fresh.mask(), masks)
    assert_same(told, story(fresh, 40, seed=1))
    with pytest.raises(ValueError, match="engine state 'cells' has shape"):
        make(rows=3, constraints=2).restore(saved)
    with pytest.raises(ValueError, match="engine state has the parts"):
        fresh.restore({})


def test_threads_change_nothing() -> None:
    one, two = make(rows=301, max_steps=20), make(rows=301, max_steps=20, threads=2)
    one.reset()
    two.reset()
    assert_same(story(one, 60), story(two, 60))


def test_observation_does_not_tell_the_constraint() -> None:
    base = Recipe("budgetary").generate([4])
    stories = []
    for class_id in range(len(ALL_CLASSES)):
        maps = MapSet(base.terrain, base.points, base.direction, np.array([[class_id]]))
        engine = Engine(maps, TABLE, 1)
        engine.reset()
        stories.append(b"".join(step.obs.tobytes() for step in story(engine, 100)))
    assert len(set(stories)) == 1


def test_observations_stay_below_their_levels() -> None:
    engine = make(rows=64)
    engine.reset()
    assert all((step.obs.max((0, 1, 2)) < LEVELS).all() for step in story(engine, 30))


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        (np.array([0, 1, 4]), "action of row 2 is 4, outside 0..3"),
        (np.array([0, -1, 4]), "action of row 1 is -1, outside 0..3"),
        (np.array([0, 1]), "actions must be 3 whole numbers, one per row; got shape (2,), int64"),
        (np.zeros(3), "actions must be 3 whole numbers, one per row; got shape (3,), float64"),
    ],
)
def test_bad_actions(actions: np.ndarray, message: str) -> None:
    engine = make(rows=3)
    engine.reset()
    before = engine.state()
    with pytest.raises(ValueError) as error:
        engine.step(actions)
    assert str(error.value) == message
    for name, array in engine.state().items():
        np.testing.assert_array_equal(array, before[name])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rows": 0}, "rows is 0, but must be at least 1"),
        ({"max_steps": 0}, "max_steps is 0, but must be at least 1"),
        ({"order": "sequentail"}, "unknown order 'sequentail' (did you mean 'sequential'?)"),
        ({"reward": "transfr"}, "unknown reward 'transfr' (did you mean 'transfer'?), or three numbers"),
        ({"reward": (1, 2)}, "reward needs three numbers (ball, box, key), got 2: [1, 2]"),
    ],
)
def test_bad_settings(settings: dict, message: str) -> None:
    with pytest.raises(ValueError) as error:
        make(**settings)
    assert str(error.value) == message


def test_a_class_without_sentences_is_refused() -> None:
    table = SentenceTable.build({ALL_CLASSES[0]: ["no lava"]})
    with pytest.raises(ValueError, match="a map has the budgetary constraint 'lava1', but no sentence says it"):
        Engine(Recipe().generate(range(100)), table, 1)


def test_text_belongs_to_the_class() -> None:
    engine = make(rows=200, constraints=2)
    step = engine.reset()
    for ids, texts in zip(engine.state()["classes"], step.text, strict=True):
        for class_id, text in zip(ids, texts, strict=True):
            constraint = ALL_CLASSES[class_id]
            assert TABLE.sentences[text].startswith(f"{constraint.kind} {constraint.label} ")
    assert {TABLE.sentences[text][-1] for text in step.text.ravel()} == {"0", "1", "2"}
