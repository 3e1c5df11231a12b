"""Stage 1 as a whole: early stopping, interruption, learning beside the policy."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
import torch
from torch import nn

from framework import checkpoint
from framework.errors import UserError
from framework.interfaces import ConstraintInterpreter, Interpretation
from framework.reading import Batches, learn_to_read
from framework.run import main as run
from framework.schema import InterpreterLearning
from framework.seeding import seed_everything
from framework.walks import walk
from plugins.envs.ford import Config, Ford

SETTINGS = InterpreterLearning(steps=2_000, iterations=60, batch=32, check_every=20, validation=0.25)


class Tiny(ConstraintInterpreter):
    """Enough to learn from: a vector per sentence, a number per cell code."""

    name = "tiny"

    def __init__(self, config, spec):
        super().__init__(config, spec)
        self.words = nn.Embedding(50, 4)
        self.threshold = nn.Linear(4, 1)
        self.cell = nn.Embedding(4, 1)
        self.dropout = nn.Dropout(0.3)

    def encode(self, sentences):
        return self.dropout(self.words(torch.tensor([len(s) % 50 for s in sentences])))

    def step(self, inputs, state):
        mask = torch.sigmoid(self.cell(inputs.obs[..., 0].long())[..., 0])
        return Interpretation(mask, self.threshold(inputs.code)[:, 0]), state


def lesson(unfinished=None, stop_after=None, settings=SETTINGS, make=lambda spec: Tiny(None, spec)):
    env = Ford(Config(), rows=20, split="train", seed=0)
    walks, _ = walk(env, settings.steps, 0)
    seed_everything(0)
    interpreter = make(env.spec)

    def progress(stage, step, metrics):
        if step == stop_after:
            raise KeyboardInterrupt

    try:
        metrics = learn_to_read(interpreter, env, walks, settings, 0, progress, unfinished)
    except KeyboardInterrupt:
        return None, None
    return interpreter.state_dict(), metrics


def test_an_interrupted_stage_1_goes_on_to_the_same_weights(tmp_path):
    file = tmp_path / "part.safetensors"
    whole, _ = lesson()
    assert lesson(file, stop_after=40) == (None, None)
    _, meta = checkpoint.load(file)
    assert meta["step"] == 20, "the save before the interruption"
    resumed, metrics = lesson(file)
    assert metrics["iterations"] == 60
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)
    assert not file.exists(), "nothing unfinished is left"


@pytest.mark.parametrize("damage", ["code", "bytes"])
def test_a_save_of_other_code_or_a_damaged_one_is_not_used(tmp_path, monkeypatch, capsys, damage):
    file = tmp_path / "part.unfinished"
    whole, _ = lesson()
    with monkeypatch.context() as patch:
        if damage == "code":
            patch.setattr("framework.reading.code", lambda: {"heed": "0", "commit": "older"})
        assert lesson(file, stop_after=40) == (None, None)
    if damage == "bytes":
        file.write_bytes(file.read_bytes()[:-1])
    again, metrics = lesson(file)
    told = capsys.readouterr().err
    assert f"not used, stage 1 starts over: {file}" in told
    assert ("commit 'older'" if damage == "code" else "is damaged") in told
    assert metrics["iterations"] == 60
    assert all(torch.equal(whole[name], again[name]) for name in whole)


class Spoilt(Tiny):
    """Its loss is NaN from the third step on; or only its gradient; or it learns NaN in its own way."""

    name = "spoilt"
    way, calls = "loss", 0

    def loss(self, inputs, labels, episode_start):
        self.calls += 1
        loss = super().loss(inputs, labels, episode_start)
        if self.way == "loss" and self.calls > 2:
            return loss * float("nan")
        return loss + (self.threshold.weight.sum() * 0).sqrt() if self.way == "gradient" else loss

    def fit(self, walks, sentences, lesson):
        if self.way != "fit":
            return None
        nn.init.constant_(self.threshold.bias, float("nan"))
        return {"loss": 0.0}


@pytest.mark.parametrize("validation", [0.0, 0.25])
@pytest.mark.parametrize(
    ("way", "message"),
    [
        ("loss", "its loss is nan in stage 1, after 2 iterations; nothing is saved"),
        ("gradient", "its loss is nan in stage 1, after 1 iterations; nothing is saved"),
        ("fit", "what it learned in stage 1 has NaN in it; nothing is saved"),
    ],
)
def test_nan_ends_stage_1_and_names_the_interpreter(tmp_path, way, message, validation):
    file = tmp_path / "part.unfinished"
    settings = dataclasses.replace(SETTINGS, validation=validation)
    with pytest.raises(UserError) as told:
        lesson(file, settings=settings, make=lambda spec: vars_of(Spoilt(None, spec), way=way))
    assert str(told.value).startswith(f"interpreter 'spoilt': {message}")
    assert not file.exists()


def test_nan_of_the_last_gradient_is_seen_too(tmp_path):
    """With nothing held out no loss is looked at any more."""
    settings = dataclasses.replace(SETTINGS, validation=0.0, iterations=1)
    with pytest.raises(UserError, match="has NaN in it"):
        lesson(settings=settings, make=lambda spec: vars_of(Spoilt(None, spec), way="gradient"))


def vars_of(interpreter, **values):
    for name, value in values.items():
        setattr(interpreter, name, value)
    return interpreter


def test_learning_stops_when_held_out_sentences_gain_nothing():
    settings = InterpreterLearning(
        steps=2_000, iterations=5_000, batch=32, check_every=20, patience=200, validation=0.25, learning_rate=0.05
    )
    _, metrics = lesson(settings=settings)
    assert metrics["iterations"] < 5_000
    assert metrics["iterations"] - metrics["best_iteration"] >= 200


def test_impatience_does_not_return_an_untrained_interpreter():
    settings = InterpreterLearning(steps=2_000, iterations=200, batch=32, check_every=50, patience=10, validation=0.25)
    _, metrics = lesson(settings=settings)
    assert metrics["best_iteration"] >= 50


def test_held_out_sentences_are_not_trained_on_even_with_memory():
    """Episodes of the ford are shorter than a window: windows must not run on into the next sentence."""
    env = Ford(Config(steps=10), rows=20, split="train", seed=0)
    walks, _ = walk(env, 4_000, 0)
    held = torch.tensor([i % 4 == 0 for i in range(len(env.sentences))])
    batches = Batches(walks, held, recurrent=True)
    for held_out in (False, True):
        batch = batches.draw(2_000, torch.Generator().manual_seed(0), held_out)
        assert (held[batch.text] == held_out).all()
        assert batch.episode_start[0].all()


TOGETHER = """
study: together
training: {steps: 1200, batch: 400, rows: 10, interpreter: {iterations: 12, batch: 64, when: together},
           evaluation: {episodes: 10, reading_steps: 200}}
components:
  envs:
    small: {plugin: hazardworld_grid, train_maps: 30, eval_maps: 20, max_steps: 40}
experiments:
  polco: {env: small, interpreter: lstm, policy: polco_grid, optimizer: pcpo}
evaluations:
  three: {env: {constraints: 3}}
"""


def test_an_interpreter_can_learn_while_the_policy_does(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("registry.yaml").write_text(TOGETHER)
    assert run(["registry.yaml", "--workers", "1", "--quiet"]) == 0
    (folder,) = Path("runs/cells").iterdir()
    losses = [json.loads(line)["reading_loss"] for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert len(losses) == 3
    assert losses[-1] < losses[0]
    tensors, _ = checkpoint.load(folder / "interpreter.safetensors")
    assert int((tensors["vocabulary.words"] >= 0).sum()) > 20, "it has met words"
    assert not Path("runs/interpreters").exists(), "there was no stage 1"
    assert len(list(folder.glob("evaluations/*/result.json"))) == 1, "and it can be evaluated elsewhere"


def test_an_interpreter_with_lessons_of_its_own_cannot_learn_beside_a_policy(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("registry.yaml").write_text(TOGETHER.replace("interpreter: lstm", "interpreter: naive_bayes"))
    assert run(["registry.yaml", "--check"]) == 2
    assert "interpreter 'naive_bayes' learns in its own way" in capsys.readouterr().err
