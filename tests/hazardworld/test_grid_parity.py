"""The engine and the MiniGrid reference are two statements of one set of rules: they must agree on every step."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from hazardworld.engine import Engine
from hazardworld.lavawall import LavaWallRecipe
from hazardworld.maps import Recipe
from hazardworld.reference import HazardWorldEnv, LavaWallEnv

ROWS = 10
KINDS = ("budgetary", "relational", "sequential", "mixed")


@dataclass
class Seen:
    """How much happened, so that a test cannot pass on episodes in which nothing did."""

    episodes: int = 0
    cost: float = 0.0
    collected: int = 0
    terminated: int = 0
    truncated: int = 0


def drive(worlds: list[HazardWorldEnv], engine: Engine, episodes: int, rng: np.random.Generator) -> Seen:
    """Play both with the same maps and actions until so many episodes have been compared."""
    seen = Seen()
    step = engine.reset()
    actions = np.zeros(ROWS, np.int64)
    done = np.ones(ROWS, bool)
    while True:
        mask, maps = engine.mask(), engine.map_index
        for n, world in enumerate(worlds):
            if done[n]:
                assert step.episode_start[n]
                obs, info = world.reset(options={"map": int(maps[n])})
                reward, terminated, truncated = 0.0, False, False
            else:
                assert not step.episode_start[n]
                obs, reward, terminated, truncated, info = world.step(int(actions[n]))
            np.testing.assert_array_equal(step.obs[n], obs["image"])
            np.testing.assert_array_equal(mask[n], info["mask"])
            np.testing.assert_array_equal(step.touched[n], info["touched"])
            assert step.reward[n] == reward
            assert step.cost[n].tolist() == info["costs"]
            assert engine.threshold()[n].tolist() == info["budget"]
            assert (step.terminated[n], step.truncated[n]) == (terminated, truncated)
            done[n] = terminated or truncated
            seen.episodes += done[n]
            seen.cost += info["cost"]
            seen.collected += reward != 0
            seen.terminated += terminated
            seen.truncated += truncated
        if seen.episodes >= episodes:
            return seen
        actions = _actions(worlds, rng)
        step = engine.step(actions)


def _actions(worlds: list[HazardWorldEnv], rng: np.random.Generator) -> np.ndarray:
    """Even rows go towards an object half of the time, odd rows just wander, so that episodes end in both ways."""
    actions = rng.integers(0, 4, len(worlds))
    for n, world in enumerate(worlds):
        if n % 2 or not world.objects or rng.random() < 0.5:
            continue
        where = next(iter(world.objects)).cur_pos
        dx, dy = where[0] - world.agent_pos[0], where[1] - world.agent_pos[1]
        if world.compass:
            actions[n] = (0 if dx > 0 else 2) if abs(dx) > abs(dy) else (1 if dy > 0 else 3)
        elif world.grid.get(*world.front_pos) in world.objects:
            actions[n] = 3
        else:
            ahead = dx * world.dir_vec[0] + dy * world.dir_vec[1]
            aside = dx * world.right_vec[0] + dy * world.right_vec[1]
            actions[n] = 2 if ahead > 0 else int(aside > 0)
    return actions


def compare(
    kind: str, actions: str, constraints: int, reward: str, texts: Path, episodes: int, split: str = "train"
) -> None:
    recipe: Recipe | LavaWallRecipe
    if kind == "lavawall":
        make, recipe = partial(LavaWallEnv), LavaWallRecipe(split, constraints=constraints)
    else:
        make, recipe = partial(HazardWorldEnv, kind), Recipe(kind, split, constraints=constraints)
    rules = {"actions": actions, "reward": reward, "max_steps": 60}
    worlds = [make(constraints=constraints, texts=texts, split=split, **rules) for _ in range(ROWS)]
    engine = Engine(recipe.generate(range(500)), worlds[0].table, ROWS, **rules)
    seen = drive(worlds, engine, episodes, np.random.default_rng(episodes))
    assert seen.cost and seen.collected and seen.terminated and seen.truncated, seen


@pytest.mark.parametrize("reward", ["train", "transfer"])
@pytest.mark.parametrize("constraints", [1, 2])
@pytest.mark.parametrize("actions", ["compass", "turn"])
@pytest.mark.parametrize("kind", [*KINDS, "lavawall"])
def test_same_rules(kind: str, actions: str, constraints: int, reward: str, texts: Path) -> None:
    compare(kind, actions, constraints, reward, texts, episodes=20)


@pytest.mark.slow
@pytest.mark.parametrize("reward", ["train", "transfer"])
@pytest.mark.parametrize("constraints", [1, 3])
@pytest.mark.parametrize("actions", ["compass", "turn"])
@pytest.mark.parametrize("kind", [*KINDS, "lavawall"])
def test_same_rules_for_long(kind: str, actions: str, constraints: int, reward: str, texts: Path) -> None:
    compare(kind, actions, constraints, reward, texts, episodes=150, split="eval")
