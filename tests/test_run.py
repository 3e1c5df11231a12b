"""Whole studies through the command line: results, reuse, observers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from small_study import HEED, cells, lines

import framework
from framework.config import load
from framework.plugin_manager import PluginHost
from framework.run import OK
from framework.stages import interpreter_key


def test_a_run_leaves_its_record_and_is_not_run_twice(study, capsys):
    assert study(HEED) == OK
    folder = cells()["heed"]
    record, result = (json.loads((folder / f"{name}.json").read_text()) for name in ("run", "result"))
    assert record["provenance"]["packages"]["torch"].startswith("2.")
    assert record["config"]["optimizer"]["clip"] == 0.2, "defaults are written out"
    assert result["summary"]["episodes"] == 100
    assert [row["step"] for row in lines(folder)] == [1200, 2400, 3600, 4800]
    assert "violation_h0" in lines(folder)[0]
    assert study(HEED) == OK
    assert "0 done, 1 finished before, 0 failed" in capsys.readouterr().out


def test_one_seed_one_result(study):
    """The same cell twice, bit for bit; another seed differs."""
    assert study(HEED, "--runs-dir", "runs") == OK
    assert study(HEED, "--runs-dir", "again") == OK
    assert study(HEED, "--runs-dir", "other", "seeds=[1]") == OK
    one, two, three = (next(Path(d, "cells").iterdir()) for d in ("runs", "again", "other"))
    assert (one / "policy.safetensors").read_bytes() == (two / "policy.safetensors").read_bytes()
    assert (one / "evaluation.safetensors").read_bytes() == (two / "evaluation.safetensors").read_bytes()
    assert lines(one) == lines(two)
    assert lines(one) != lines(three)


def test_a_plugins_folder_in_the_working_directory_hides_nothing(tmp_path):
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "mine.py").write_text("x = 1\n")
    listed = subprocess.run(
        [sys.executable, "-m", "framework.run", "--list"], cwd=tmp_path, capture_output=True, text=True
    )
    assert "interpreter oracle" in listed.stdout, listed.stderr


def test_names_with_brackets_are_names(study, capsys):
    assert study(HEED.replace("heed:", '"heed [/ours]":')) == OK
    assert "heed [/ours]" in capsys.readouterr().out


OBSERVER = """
    from pathlib import Path
    from framework.hookspecs import RunObserver, hookimpl

    class Diary(RunObserver):
        def __init__(self, run):
            self.file = Path("diary.txt")
            self.write(f"start {run.labels[0]} {run.config['seed']}")
        def write(self, line):
            with self.file.open("a") as f:
                f.write(line + "\\n")
        def update(self, step, metrics):
            self.write(f"update {step} {'reward' in metrics}")
        def evaluate(self, stage, metrics):
            self.write(f"{stage} {metrics['episodes']:.0f}")
        def end(self, error):
            self.write(f"end {error}")

    class Clumsy(RunObserver):
        def update(self, step, metrics):
            raise KeyError("oops")

    @hookimpl
    def heed_observe(run):
        return Diary(run)
"""
CLUMSY = OBSERVER.replace("return Diary(run)", "return Clumsy()")
WORSE = OBSERVER.replace("return Diary(run)", "raise ValueError('no')")


def test_observers_see_start_updates_evaluation_and_end(study):
    assert study(HEED, diary=OBSERVER, clumsy=CLUMSY, worse=WORSE) == OK
    assert Path("diary.txt").read_text().splitlines() == [
        "start heed 0",
        "update 1200 True",
        "update 2400 True",
        "update 3600 True",
        "update 4800 True",
        "evaluation 100",
        "end None",
    ]
    log = (cells()["heed"] / "log.txt").read_text()
    assert log.count("clumsy.py raised KeyError: 'oops'; it is dropped") == 1


LEARNER = """
    import torch
    from torch import nn
    from framework.hookspecs import hookimpl
    from framework.interfaces import ConstraintInterpreter, Interpretation

    class Learner(ConstraintInterpreter):
        name = "learner"
        def __init__(self, config, spec):
            super().__init__(config, spec)
            self.words = nn.EmbeddingBag(1000, 8)
            self.threshold = nn.Linear(8, 1)
            self.cell = nn.Embedding(4, 1)
        def encode(self, sentences):
            ids = [[sum(map(ord, w)) % 1000 for w in s.split()] or [0] for s in sentences]
            return torch.stack([self.words(torch.tensor([i]))[0] for i in ids])
        def step(self, inputs, state):
            open("steps.txt", "a").write(".") if self.training else None
            mask = torch.sigmoid(self.cell(inputs.obs[..., 0].long())[..., 0])
            return Interpretation(mask, self.threshold(inputs.code)[:, 0]), state

    @hookimpl
    def heed_components():
        return [Learner]
"""


def test_a_learning_interpreter_is_trained_once_and_shared(study, capsys):
    experiments = (
        "  a: {env: ford, interpreter: learner, policy: mlp, optimizer: ppo_lagrangian}\n"
        "  b: {env: ford, interpreter: learner, policy: {plugin: mlp, hidden: [8]}, optimizer: ppo_lagrangian}\n"
    )
    assert (
        study(experiments, "training.interpreter.iterations=300", "training.interpreter.steps=20_000", learner=LEARNER)
        == OK
    )
    assert len(list(Path("runs/interpreters").glob("*.safetensors"))) == 1
    assert Path("steps.txt").stat().st_size == 300
    for folder in cells().values():
        assert lines(folder)[-1]["reward"] > 0
    assert "2 done, 0 finished" in capsys.readouterr().out


CLOSES = """
    from framework.hookspecs import hookimpl
    from plugins.envs.ford import Ford

    class Closes(Ford):
        name = "closes"
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            open("opened.txt", "a").write(".")
        def close(self):
            open("closed.txt", "a").write(".")

    @hookimpl
    def heed_components():
        return [Closes]
"""


def test_every_env_that_is_opened_is_closed(study):
    assert study(HEED.replace("env: ford", "env: closes"), closes=CLOSES) == OK
    assert Path("opened.txt").read_text() == Path("closed.txt").read_text() != ""


def test_settings_that_make_no_difference_to_stage_1_share_its_file(tmp_path):
    file = tmp_path / "registry.yaml"
    system = "env: hazardworld_grid, policy: random_walk, optimizer: fixed"
    readers = {"once": "", "often": ", readings: 16", "longer": ", steps: 700"}
    rows = [f"  {name}: {{{system}, interpreter: {{plugin: reader{more}}}}}\n" for name, more in readers.items()]
    file.write_text("training: {batch: 1_000, steps: 1_000}\nexperiments:\n" + "".join(rows))
    once, often, longer = (interpreter_key(run, PluginHost()) for run in load(file).runs)
    assert once == often != longer


def test_dry_run_and_only_write_nothing(study, capsys):
    assert study(HEED + HEED.replace("heed:", "other:"), "--dry-run", "--only", "oth*") == OK
    out = capsys.readouterr().out
    assert "other" in out
    assert "0 of 1" in out
    assert not os.path.exists("runs")


def test_only_may_be_given_several_times(study, capsys):
    grid = "ablations: {g: {base: heed, axes: {optimizer.clip: [0.1, 0.3]}}}\n"
    others = HEED.replace("heed:", "a:") + HEED.replace("heed:", "b:")
    assert study(HEED + others + grid, "--dry-run", "--only", "g/*", "--only", "a", "--only", "g/clip=0.1") == OK
    out = capsys.readouterr().out
    assert "small: 3 cells" in out
    assert [cell in out for cell in ("g/clip=0.1", "g/clip=0.3", " a ", " b ", " heed ")] == [True] * 3 + [False] * 2
    assert framework.load("registry.yaml").only("g/*", "b").cells == ["b", "g/clip=0.1", "g/clip=0.3"]


def test_huge_grid_with_yes_is_expanded(tmp_path):
    axes = ", ".join(
        f"optimizer.{k}: [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]" for k in ("clip", "kl_stop", "entropy", "multiplier")
    )
    file = tmp_path / "registry.yaml"
    file.write_text(f"experiments:\n{HEED}ablations: {{big: {{base: heed, axes: {{{axes}}}}}}}\n")
    assert len(load(file, max_cells=10**9).cells) == 7**4 + 1
