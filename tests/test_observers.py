"""Observers that a registry switches on: what they write, and what one is told of mistakes."""

from __future__ import annotations

import csv
import time
from pathlib import Path

import pytest

from framework.hookspecs import RunInfo
from framework.logger import RunLog
from framework.plugin_manager import PluginHost, PluginRef
from framework.run import main

REGISTRY = """study: watched
observers: {observers}
training: {{steps: 4_800, batch: 2_400, rows: 100, evaluation: {{episodes: 20, reading_steps: 200}}}}
experiments:
  heed: {{env: ford, interpreter: oracle, policy: mlp, optimizer: ppo_lagrangian}}
"""
OWN = """
from dataclasses import dataclass
from framework.hookspecs import NamedObserver, hookimpl

@dataclass(frozen=True)
class Config:
    word: str = "seen"

class Own(NamedObserver):
    "Writes a word."
    name = "own"
    Config = Config

    def end(self, error):
        (self.run.folder / "own.txt").write_text(f"{self.config.word} {self.run.labels}")

@hookimpl
def heed_observers():
    return [Own]
"""


def log(folder: Path, *names: str, until: int = 0) -> RunLog:
    host = PluginHost([PluginRef(observer=name) for name in names])
    return RunLog(RunInfo("ford-x-s0-abc", ("heed",), folder, {"seed": 0}), host, until=until)


def test_csv_grows_columns_and_goes_on_after_a_stop(tmp_path):
    first = log(tmp_path, "csv")
    first.update("policy", 10, {"reward": 1.0})
    first.update("policy", 20, {"reward": 2.0, "violation_h1": float("nan")})
    first.update("policy", 30, {"reward": 3.0})
    log(tmp_path, "csv", until=20).update("policy", 30, {"reward": 4.0})  # killed after 20, and started again
    with open(tmp_path / "metrics.csv", newline="") as content:
        rows = list(csv.DictReader(content))
    assert [(row["step"], row["reward"], row["violation_h1"]) for row in rows] == [
        ("10", "1.0", ""), ("20", "2.0", ""), ("30", "4.0", "")
    ]  # fmt: skip


def test_tensorboard_has_every_metric(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    watched = log(tmp_path, "tensorboard")
    watched.update("policy", 10, {"reward": 1.5, "kl": 0.1})
    watched.update("policy", 20, {"reward": 2.5})
    watched.evaluate("evaluation", {"violation": 0.25})
    watched.end(None)
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    assert [(e.step, e.value) for e in events.Scalars("learning/reward")] == [(10, 1.5), (20, 2.5)]
    assert [(e.step, e.value) for e in events.Scalars("evaluation/violation")] == [(20, 0.25)]


def test_in_a_registry_with_settings_and_an_observer_of_ones_own(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(OWN)
    registry = REGISTRY.format(observers="[csv, {plugin: own, word: watched}]") + "plugins: [{path: own.py}]\n"
    (tmp_path / "r.yaml").write_text(registry)
    assert main(["r.yaml", "--workers", "1", "--quiet"]) == 0, capsys.readouterr().out
    (folder,) = (tmp_path / "runs" / "cells").iterdir()
    assert len((folder / "metrics.csv").read_text().splitlines()) == 3
    assert (folder / "own.txt").read_text() == "watched ('heed',)"
    (tmp_path / "r.yaml").write_text(REGISTRY.format(observers="[]"))
    assert main(["r.yaml", "--dry-run"]) == 0  # who watches is no part of what names a run
    assert "1 of 1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("observers", "message"),
    [
        ("[tensorbord]", "r.yaml:2: observers: no observer is called 'tensorbord'; did you mean 'tensorboard'?"),
        ("tensorboard", "r.yaml:2: observers: expected a list of names, or of {plugin: name, settings}"),
        ("[4]", "observers.0: expected a name, or {plugin: name, settings}, got 4"),
        ("[{plugin: csv, file: x}]", "observers.file: unknown key 'file' [observer 'csv' (plugins/observers/csv.py)]"),
    ],
)
def test_mistakes_are_told(observers, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "r.yaml").write_text(REGISTRY.format(observers=observers))
    assert main(["r.yaml", "--check"]) == 2
    assert message in capsys.readouterr().err


def test_an_observer_whose_package_is_absent_says_what_to_type(monkeypatch):
    import importlib.util

    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == "wandb" else found(name, *a))
    host = PluginHost([PluginRef(observer="wandb", where="r.yaml:2")], strict=False)
    assert str(host.problems[0]) == (
        "r.yaml:2: observers: observer 'wandb' is not available: it needs wandb; install with: pip install wandb "
        "[plugins/observers/wandb.py]"
    )


@pytest.mark.slow
def test_wandb_writes_offline(tmp_path, monkeypatch):
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_SILENT", "true")
    watched = log(tmp_path, "wandb")
    watched.update("policy", 10, {"reward": 1.5, "odd": float("nan")})
    watched.evaluate("evaluation", {"violation": 0.25})
    watched.end(None)
    (file,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    for _ in range(100):  # its own process writes it
        if b"learning/reward" in file.read_bytes():
            return
        time.sleep(0.3)
    pytest.fail("the metric is not in the file")
