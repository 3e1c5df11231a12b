"""The reference environments as good citizens of Gymnasium and MiniGrid."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from minigrid import wrappers
from minigrid.core.grid import Grid

import hazardworld
from hazardworld.constraint import CLASSES
from hazardworld.maps import MapSet, Recipe
from hazardworld.objects import Grass, Water
from hazardworld.reference import HazardWorldEnv, LavaWallEnv

GRID_IDS = [name for name in hazardworld.IDS if "Robot" not in name]


@pytest.mark.parametrize("actions", ["compass", "turn"])
@pytest.mark.parametrize("name", GRID_IDS)
def test_check_env(name: str, actions: str, texts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")  # it also renders for people, and there may be no screen
    env = gymnasium.make(name, texts=texts, actions=actions, constraints=2, render_mode="rgb_array")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*font.*")  # MiniGrid's choice of font
        check_env(env.unwrapped)


@pytest.mark.parametrize("actions", ["compass", "turn"])
@pytest.mark.parametrize(
    ("wrapper", "shape"),
    [
        (wrappers.FullyObsWrapper, (13, 13, 3)),
        (wrappers.RGBImgPartialObsWrapper, (56, 56, 3)),
        (wrappers.RGBImgObsWrapper, (104, 104, 3)),
        (wrappers.OneHotPartialObsWrapper, (7, 7, 22)),
        (lambda env: wrappers.ViewSizeWrapper(env, 5), (5, 5, 3)),
    ],
)
def test_minigrid_wrappers(wrapper, shape: tuple[int, ...], actions: str, texts: Path) -> None:  # type: ignore[no-untyped-def]
    env = wrappers.ImgObsWrapper(wrapper(HazardWorldEnv(texts=texts, actions=actions)))
    obs, _ = env.reset(seed=0)
    assert obs.shape == shape and env.observation_space.contains(obs)
    for action in (0, 1, 2, 3):
        obs, *_ = env.step(action)
        assert obs.shape == shape and env.observation_space.contains(obs)


@pytest.mark.parametrize("actions", ["compass", "turn"])
@pytest.mark.parametrize("pov", [False, True])
def test_render(actions: str, pov: bool, texts: Path) -> None:
    env = HazardWorldEnv(texts=texts, actions=actions, render_mode="rgb_array", tile_size=16, agent_pov=pov)
    env.reset(seed=0)
    frame = env.render()
    side = (7 if pov else 13) * 16
    assert frame.shape == (side, side, 3) and frame.dtype == np.uint8
    assert len(np.unique(frame.reshape(-1, 3), axis=0)) > 10


def test_highlight_is_the_view(texts: Path) -> None:
    env = HazardWorldEnv(texts=texts, render_mode="rgb_array", tile_size=4)
    env.reset(seed=0)
    lit, plain = env.get_frame(True, 4), env.get_frame(False, 4)
    changed = (lit != plain).any(-1).reshape(13, 4, 13, 4).any((1, 3)).T  # [x, y]
    x, y = env.agent_pos
    expected = np.zeros((13, 13), bool)
    expected[max(0, x - 3) : x + 4, max(0, y - 3) : y + 4] = True
    np.testing.assert_array_equal(changed, expected)


def test_water_and_grass_look_different() -> None:
    tiles = [Grid.render_tile(thing, tile_size=16) for thing in (Water(), Grass())]
    water, grass = (tile.mean((0, 1)) for tile in tiles)
    assert water.argmax() == 2 and grass.argmax() == 1
    assert all(tile.std() > 5 for tile in tiles)


def test_seeds_are_honoured(texts: Path) -> None:
    """The published environment ignored them."""

    def story(seed: int) -> list:
        env = HazardWorldEnv(texts=texts)
        obs, info = env.reset(seed=seed)
        told = [obs["mission"], info["map"]]
        rng = np.random.default_rng(0)
        for _ in range(30):
            told.append(env.step(int(rng.integers(4)))[0]["image"].tobytes())
        obs, info = env.reset()  # the second episode follows from the same seed
        return [*told, obs["mission"], info["map"]]

    assert story(5) == story(5)
    assert story(5) != story(6)


def test_map_option(texts: Path) -> None:
    env = HazardWorldEnv(texts=texts, split="eval")
    _, info = env.reset(options={"map": 17})
    assert info["map"] == 17
    np.testing.assert_array_equal(env.terrain, Recipe("budgetary", "eval").generate([17]).terrain[0])
    with pytest.raises(ValueError, match=r"options\['map'\] is 5000, but this split has maps 0\.\.4999"):
        env.reset(options={"map": 5000})


def test_split_chooses_sentences(texts: Path) -> None:
    for split, word in (("train", "train"), ("eval", "test")):
        obs, _ = HazardWorldEnv("sequential", texts=texts, split=split).reset(seed=0)
        assert obs["mission"].startswith(word)


def test_mission_says_each_constraint_on_a_line(texts: Path) -> None:
    obs, info = HazardWorldEnv("relational", texts=texts, constraints=3).reset(seed=1)
    lines = obs["mission"].split("\n")
    assert len(lines) == 3
    for line, label in zip(lines, info["constraint"], strict=True):
        assert f" {label} " in line
    assert info["mask"].shape == (3, 7, 7)


@pytest.mark.parametrize("actions", ["compass", "turn"])
def test_observation_does_not_tell_the_constraint(actions: str, texts: Path) -> None:
    """Episodes that differ only in their constraint look the same; the published environment showed the budget."""
    base = Recipe("budgetary").generate([4])
    stories = set()
    for class_id in range(len(CLASSES["budgetary"])):
        maps = MapSet(base.terrain, base.points, base.direction, np.array([[class_id]]))
        env = HazardWorldEnv(maps=maps, texts=texts, actions=actions)
        obs, _ = env.reset(seed=0)
        seen = [obs]
        rng = np.random.default_rng(1)
        for _ in range(60):
            obs, _, terminated, truncated, _ = env.step(int(rng.integers(4)))
            seen.append(obs)
            if terminated or truncated:
                break
        assert set(obs) == {"image", "direction", "mission"}
        stories.add(b"".join(o["image"].tobytes() + bytes([o["direction"]]) for o in seen))
    assert len(stories) == 1


def test_info(texts: Path) -> None:
    env = HazardWorldEnv(texts=texts, labels=False)
    _, info = env.reset(seed=0)
    assert "mask" not in info
    _, _, _, _, info = env.step(0)
    assert set(info) == {"cost", "costs", "budget", "kind", "constraint", "collected", "touched", "map"}


def test_mistakes_are_named(texts: Path) -> None:
    with pytest.raises(ValueError, match=r"unknown actions 'compas' \(did you mean 'compass'\?\)"):
        HazardWorldEnv(texts=texts, actions="compas")
    with pytest.raises(ValueError, match="no object is worth collecting"):
        HazardWorldEnv(texts=texts, reward=(0, -1, -1))
    with pytest.raises(ValueError, match="LavaWall has budgetary constraints only, not 'relational'"):
        LavaWallEnv(kind="relational", texts=texts)
    env = HazardWorldEnv(texts=texts)
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"action 4 is outside 0\.\.3"):
        env.step(4)


def test_vector_env(texts: Path) -> None:
    envs = gymnasium.make_vec("HazardWorld-Relational-v0", num_envs=3, vectorization_mode="sync", texts=texts)
    obs, _ = envs.reset(seed=0)
    assert obs["image"].shape == (3, 7, 7, 3) and len(obs["mission"]) == 3
    for _ in range(5):
        obs, _, _, _, info = envs.step(envs.action_space.sample())
    assert info["mask"].shape == (3, 1, 7, 7)
    envs.close()


def test_importing_is_registering_and_twice_is_quiet() -> None:
    code = (
        "import warnings; warnings.simplefilter('error'); import gymnasium, hazardworld; hazardworld.register();"
        "print(sorted(i for i in gymnasium.registry if i in hazardworld.IDS));"
        "import sys; print('torch' in sys.modules, 'framework' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split("\n")[:2] == [str(sorted(hazardworld.IDS)), "False False"], run.stderr
