"""The framework's view of the grid worlds."""

from __future__ import annotations

import ast
import copy
import dataclasses
import itertools
from pathlib import Path

import pytest
import torch

from framework.interfaces.types import Timestep
from plugins.envs import hazardworld_grid, lavawall
from plugins.envs.hazardworld_grid import HazardWorldGrid, HazardWorldGridConfig
from plugins.envs.lavawall import LavaWall, LavaWallConfig

FEW = {"train_maps": 40, "eval_maps": 20}


def make(texts: Path, rows: int = 6, split: str = "train", seed: int = 0, **settings: object) -> HazardWorldGrid:
    config = HazardWorldGridConfig(texts=str(texts), **FEW, **settings)  # type: ignore[arg-type]
    return HazardWorldGrid(config, rows, split, seed)  # type: ignore[arg-type]


def assert_same(left: Timestep, right: Timestep) -> None:
    for field in dataclasses.fields(left):
        a, b = getattr(left, field.name), getattr(right, field.name)
        assert (a is None and b is None) or torch.equal(a, b), field.name


def test_hooks_hand_over_the_plugins() -> None:
    assert hazardworld_grid.heed_components() == [HazardWorldGrid]
    assert lavawall.heed_components() == [LavaWall]
    assert (HazardWorldGrid.name, LavaWall.name) == ("hazardworld_grid", "lavawall")
    assert HazardWorldGrid.summary() and LavaWall.summary() != HazardWorldGrid.summary()


@pytest.mark.parametrize("constraints", [1, 2])
def test_shapes_and_types(texts: Path, constraints: int) -> None:
    env = make(texts, constraint="mixed", constraints=constraints)
    for step in (env.reset(), env.step(torch.zeros(6, dtype=torch.int64))):
        assert step.obs.shape == (6, *env.spec.observation.shape) and step.obs.dtype == torch.uint8
        assert step.text.shape == step.cost.shape == (6, constraints)
        assert (step.text.dtype, step.cost.dtype, step.reward.dtype) == (torch.int64, torch.float32, torch.float32)
        assert step.touched.shape == (6, *env.spec.cells) and step.touched.dtype == torch.bool
        assert step.terminated.dtype == step.truncated.dtype == step.episode_start.dtype == torch.bool
        assert step.final_obs is None
    labels = env.labels()
    assert labels.mask.shape == (6, constraints, 7, 7) and labels.mask.dtype == torch.float32
    assert torch.equal(labels.threshold, step.threshold)
    assert step.threshold.shape == step.kind.shape == (6, constraints)
    assert (step.threshold.dtype, step.kind.dtype) == (torch.float32, torch.int64)
    for n in range(6):
        for k in range(constraints):
            assert f" {env.kinds[step.kind[n, k]]} " in env.sentences[step.text[n, k]]


def test_spec(texts: Path) -> None:
    spec = make(texts).spec
    assert (spec.observation.kind, spec.observation.shape, spec.observation.levels) == ("codes", (7, 7, 3), (13, 6, 3))
    assert (spec.action.kind, spec.action.size, spec.cells, spec.constraints) == ("discrete", 4, (7, 7), 1)
    assert (spec.max_threshold, spec.max_steps, spec.entities) == (5, 200, ("lava", "water", "grass"))


def test_a_step_is_not_overwritten_by_the_next(texts: Path) -> None:
    env = make(texts)
    first = env.reset()
    kept = copy.deepcopy(first)
    labels = env.labels()
    mask = labels.mask.clone()
    for action in (0, 1, 2, 3):
        env.step(torch.full((6,), action))
        env.labels()
    assert_same(first, kept)
    assert torch.equal(labels.mask, mask)


@pytest.mark.parametrize("split", ["train", "eval"])
def test_state_dict_goes_on_exactly(texts: Path, split: str) -> None:
    def actions(t: int) -> torch.Tensor:
        return torch.randint(4, (6,), generator=torch.Generator().manual_seed(t))

    env = make(texts, split=split, max_steps=9)
    env.reset()
    for t in range(15):
        env.step(actions(t))
    state = env.state_dict()
    assert all(isinstance(value, torch.Tensor) and value.dtype != torch.uint64 for value in state.values())
    truth = env.labels()
    later = [env.step(actions(t)) for t in range(15, 50)]
    again = make(texts, split=split, max_steps=9)
    again.load_state_dict(state)
    assert torch.equal(again.labels().mask, truth.mask)
    for t, step in enumerate(later, start=15):
        assert_same(step, again.step(actions(t)))


def test_splits_have_their_own_sentences(texts: Path) -> None:
    train, held_out = make(texts).sentences, make(texts, split="eval").sentences
    assert not set(train) & set(held_out)


def test_lavawall(texts: Path) -> None:
    env = LavaWall(LavaWallConfig(texts=str(texts), **FEW), 4, "train", 0)
    step = env.reset()
    assert step.obs.shape == (4, 7, 7, 3)
    assert (step.kind == env.kinds.index("budgetary")).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"constraint": "budget"}, "unknown constraint 'budget' (did you mean 'budgetary'?)"),
        ({"actions": "fly"}, "actions is 'fly', but must be one of compass, turn"),
        ({"density": 1.0}, "density 1.0 is too high"),
        ({"train_maps": 0}, "train_maps is 0, but must be at least 1"),
        ({"reward": "x"}, "unknown reward 'x'"),
        ({"constraints": 99}, "constraints 99 is outside 1..18"),
    ],
)
def test_config_mistakes(settings: dict, message: str) -> None:
    with pytest.raises(ValueError) as error:
        HazardWorldGridConfig(**settings)
    assert str(error.value).startswith(message)


def test_every_setting_is_explained() -> None:
    for module, name in ((hazardworld_grid, "HazardWorldGridConfig"), (lavawall, "LavaWallConfig")):
        tree = ast.parse(Path(module.__file__).read_text())
        body = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name).body
        for field, after in itertools.pairwise(body):
            if isinstance(field, ast.AnnAssign):
                assert isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant), ast.unparse(field)


def test_bad_action_names_the_row(texts: Path) -> None:
    env = make(texts)
    env.reset()
    with pytest.raises(ValueError, match=r"action of row 5 is 7, outside 0\.\.3"):
        env.step(torch.tensor([0, 0, 0, 0, 0, 7]))
