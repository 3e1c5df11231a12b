"""The default interpreter, trained for real: what it must read, and what it must not fall over."""

from __future__ import annotations

import pytest
import torch

from framework.interfaces import InterpreterInput
from framework.plugin_manager import PluginHost
from framework.reading import learn_to_read
from framework.schema import InterpreterLearning
from framework.scoring import score
from framework.seeding import seed_everything
from framework.walks import walk
from plugins.envs.hazardworld_grid import HazardWorldGrid, HazardWorldGridConfig

pytestmark = pytest.mark.slow


def world(split, rows=50, **settings):
    return HazardWorldGrid(HazardWorldGridConfig(constraint="budgetary", **settings), rows=rows, split=split, seed=0)


@pytest.fixture(scope="module")
def reader():
    env = world("train")
    cls = PluginHost().catalog.get("interpreter", "reader").cls
    seed_everything(0)
    interpreter = cls(cls.Config(), env.spec)
    settings = InterpreterLearning(iterations=10_000)
    walks, _ = walk(env, settings.steps, 0)
    learn_to_read(interpreter, env, walks, settings, 0)
    return interpreter.requires_grad_(False).eval()


def read(reader, sentence):
    obs = world("eval", rows=1).reset().obs
    seen, _ = reader.step(InterpreterInput(obs, reader.encode([sentence])), reader.initial_state(1))
    return seen


def test_held_out_sentences(reader):
    scores = score(reader, world("eval"), 50_000, seed=0)["budgetary"]
    assert scores["cell_accuracy"] >= 0.99
    assert scores["auc"] >= 0.995
    assert scores["threshold_mse"] <= 0.10


@pytest.mark.parametrize("probe", ["other_entity", "other_number", "digits", "words", "shouting"])
def test_probes(reader, probe):
    scores = score(reader, world("eval", eval_probe=probe), 30_000, seed=0)["budgetary"]
    assert scores["cell_accuracy"] >= 0.98
    assert scores["threshold_mse"] <= 0.25


@pytest.mark.parametrize(
    ("sentence", "threshold"),
    [
        ("please keep off the lava", 0),
        ("I only let you touch the water 2 times", 2),
        ("walking over grass five times is fine, six is not", 5),
        ("fewer than four steps in the lava", 3),
    ],
)
def test_new_sentences(reader, sentence, threshold):
    seen = read(reader, sentence)
    assert round(float(seen.threshold)) == threshold
    assert float(seen.confidence) > 0.5


@pytest.mark.parametrize(
    "sentence", ["", "   ", "🔥🌊", "asdf", "good job", "word " * 10_000, "\x00\x07", "Не ступай на воду"]
)
def test_what_is_no_constraint_is_doubted(reader, sentence):
    seen = read(reader, sentence)
    assert float(seen.confidence) < 0.5
    assert torch.isfinite(seen.threshold).all()


def test_numbers_beyond_the_range_are_doubted_and_read_as_the_largest(reader):
    seen = read(reader, "You may step on the water up to a hundred times.")
    assert float(seen.confidence) < 0.5
    assert float(seen.threshold) > 3
