"""Pictures of the grid: size, what is where, and that a mask marks its own cells and no others."""

from __future__ import annotations

import numpy as np
import pytest
from minigrid.core.grid import Grid

from hazardworld.constraint import EMPTY, GRASS, LAVA, WALL, WATER
from hazardworld.engine import Engine
from hazardworld.maps import Recipe
from hazardworld.objects import TERRAIN_OBJECTS, reward_objects
from hazardworld.pictures import TILE, Scene, draw, scene_of, view_cells
from hazardworld.sentences import SentenceTable


def engine(actions="compass", kind="budgetary", rows=3):
    table = SentenceTable.load(kind, "eval", None)
    maps = Recipe(kind, "eval", classes=table.classes).generate(range(10))
    made = Engine(maps, table, rows, actions=actions, seed=1)
    made.reset()
    return made


def cell(picture, x, y, tile=TILE):
    return picture[y * tile : (y + 1) * tile, x * tile : (x + 1) * tile]


def changed_cells(one, two, tile=TILE):
    size = len(one) // tile
    differs = (one != two).any(-1).reshape(size, tile, size, tile).any((1, 3))
    return {(int(x), int(y)) for y, x in np.argwhere(differs)}


@pytest.mark.parametrize("tile", [8, 24, 32])
def test_size_and_type(tile):
    picture = draw(scene_of(engine(), 0), tile=tile)
    assert picture.shape == (13 * tile, 13 * tile, 3)
    assert picture.dtype == np.uint8


def test_tiles_are_minigrids():
    """All but the grid lines, which are fainter here."""
    codes = np.zeros((13, 13), np.uint8)
    codes[12, :8] = range(8)
    picture = draw(Scene(codes, (6, 4), 0), tile=32)
    things = [None, *(TERRAIN_OBJECTS[code]() for code in range(1, 5)), *reward_objects()]
    for x, thing in enumerate(things):
        theirs = Grid.render_tile(thing, tile_size=32).astype(int)
        assert np.abs(cell(picture, x, 12, 32)[2:, 2:] - theirs[2:, 2:]).max() <= 1, thing


def test_the_scene_is_the_engines_map():
    world = engine()
    for row in range(world.rows):
        scene, number = scene_of(world, row), world.map_index[row]
        start, *places = world.maps.points[number]
        expected = world.maps.terrain[number].copy()
        for item, (x, y) in enumerate(places):
            expected[y, x] = 5 + item
        assert (scene.codes == expected).all()
        assert scene.agent == tuple(start)
        assert scene.direction == world.maps.direction[number]


@pytest.mark.parametrize("actions", ["compass", "turn"])
def test_view_cells_are_what_the_observation_shows(actions):
    world, stream = engine(actions), np.random.default_rng(0)
    code_of = {1: EMPTY, 9: LAVA, 11: WATER, 12: GRASS, 2: WALL, 6: 5, 7: 6, 5: 7}
    for _ in range(60):
        obs = world.step(stream.integers(0, 4, world.rows)).obs
        scene = scene_of(world, 1, actions == "compass")
        for place in np.ndindex(7, 7):
            x, y = view_cells(scene)[place]
            if 0 <= x < 13 and 0 <= y < 13:
                assert scene.codes[y, x] == code_of[int(obs[1][place][0])]


@pytest.mark.parametrize("actions", ["compass", "turn"])
def test_the_mask_marks_its_cells_and_no_others(actions):
    world = engine(actions, "relational")
    scene = scene_of(world, 2, actions == "compass")
    plain = draw(scene)
    assert (draw(scene, np.zeros((7, 7))) == plain).all()
    assert (draw(scene, np.full((7, 7), 0.5)) == plain).all()
    mask = np.random.default_rng(3).random((7, 7))
    wanted = {tuple(map(int, place)) for place in view_cells(scene)[mask > 0.5]}
    wanted = {(x, y) for x, y in wanted if 0 <= x < 13 and 0 <= y < 13}
    assert changed_cells(plain, draw(scene, mask)) == wanted != set()


def test_the_agent_turns_and_shows_its_ground():
    codes = np.zeros((13, 13), np.uint8)
    tiles = [cell(draw(Scene(codes, (6, 6), direction)), 6, 6)[1:, 1:] for direction in range(4)]
    assert len({tile.tobytes() for tile in tiles}) == 4
    codes[6, 6] = WATER
    corner = cell(draw(Scene(codes, (6, 6), 0)), 6, 6)[-1, -1]
    assert tuple(corner) == (40, 110, 220)


def test_a_mask_of_the_wrong_shape_and_a_tiny_tile_are_refused():
    scene = scene_of(engine(), 0)
    with pytest.raises(ValueError, match=r"the mask has shape \(6, 7\); it must be \(7, 7\), as the view"):
        draw(scene, np.zeros((6, 7)))
    with pytest.raises(ValueError, match="tile is 4 pixels, but must be at least 8"):
        draw(scene, tile=4)
