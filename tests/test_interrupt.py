"""Ctrl-C in a command: one line, no traceback, exit code 130; and what is half done is said to be."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest

from framework import run
from framework.config import load
from framework.errors import STOPPED
from framework.run import OK, main
from framework.stages import interpreter_file

REGISTRY = """
training: {steps: 1_200, batch: 1_200, rows: 25, evaluation: {episodes: 20, reading_steps: 100}}
seeds: [0, 1]
experiments:
  heed: {env: ford, interpreter: oracle, policy: mlp, optimizer: ppo_lagrangian}
evaluations: {again: {episodes: 30}}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("registry.yaml").write_text(REGISTRY)
    return tmp_path


def interrupt(*_, **__):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("command", "words", "at"),
    [
        ("run", ["registry.yaml", "--check"], "build_all"),
        ("run", ["registry.yaml", "--dry-run"], "_print_cells"),
        ("run", ["registry.yaml", "--report"], "_write_report"),
        ("check", ["oracle"], "_find"),
        ("read", ["No lava"], "choose"),
        ("new", ["env", "mine"], "write"),
        ("export", ["runs/cells/x"], "load_trained"),
    ],
)
def test_a_command_that_is_interrupted_says_so(folder, capsys, monkeypatch, command, words, at):
    module = importlib.import_module(f"framework.{command}")
    monkeypatch.setattr(module, at, interrupt)
    assert module.main(words) == STOPPED == 130
    assert capsys.readouterr().err == "stopped\n", "nothing was running, so nothing was saved"


def test_a_study_that_is_interrupted_says_how_to_go_on(folder, capsys, monkeypatch):
    monkeypatch.setattr(run, "launch", interrupt)
    assert main(["registry.yaml", "--quiet"]) == STOPPED
    assert capsys.readouterr().err == "stopped; what was running is saved. The same command goes on from there.\n"


def test_what_is_begun_is_told_beside_what_is_finished(folder, capsys):
    def table() -> str:
        assert main(["registry.yaml", "--dry-run"]) == OK
        return capsys.readouterr().out

    assert "0 of 2 " in table() and "begun" not in table()
    assert main(["registry.yaml", "--workers", "1", "--quiet"]) == OK
    assert "2 of 2 " in table() and "begun" not in table()
    records = {json.loads(file.read_text())["config"]["seed"]: file.parent for file in Path("runs").rglob("run.json")}
    next((records[0] / "evaluations").rglob("result.json")).unlink()
    assert "1 of 2, 1 trained, evaluations to do" in " ".join(table().replace("│", " ").split())
    for file in records[0].rglob("result.json"):
        file.unlink()
    assert "1 of 2 " in table() and "begun" not in table(), "nothing is there to go on from"
    (records[0] / "training.previous.safetensors").touch()
    assert "1 of 2, 1 begun" in table(), "a save"


def test_a_stage_1_that_is_half_done_is_begun(folder, capsys):
    words = ["registry.yaml", "experiments.heed.env=hazardworld_grid", "experiments.heed.interpreter=lstm", "seeds=[3]"]
    study = load(Path(words[0]), words[1:])
    file = interpreter_file(Path("runs"), study.runs[0], study.host).with_suffix(".unfinished")
    file.parent.mkdir(parents=True)
    file.touch()
    assert main([*words, "--dry-run"]) == OK
    assert "0 of 1, 1 begun" in capsys.readouterr().out


def test_saves_of_a_run_that_was_killed_while_it_cleared_up_are_cleared_later(folder):
    assert main(["registry.yaml", "seeds=[0]", "--quiet"]) == OK
    (cell,) = Path("runs/cells").iterdir()
    left = cell / "training.previous.safetensors"
    left.write_bytes(b"whatever")
    for result in cell.glob("evaluations/*/result.json"):
        result.unlink()  # killed before it was evaluated once more
    assert main(["registry.yaml", "seeds=[0]", "--quiet"]) == OK
    assert not left.exists()
    assert list(cell.glob("evaluations/*/result.json"))
