"""``--check`` and the first moment of a run: what can be trained but not evaluated is found before it is trained."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from framework import load
from framework.errors import UserError
from framework.run import FAILED, MISTAKE, OK, main

TRAINING = "training: {steps: 1_200, batch: 1_200, rows: 25, evaluation: {episodes: 20, reading_steps: 100}}\n"
TEXTS = """
experiments:
  heed: {env: {plugin: hazardworld_grid, texts: mine}, interpreter: naive_bayes, policy: random_walk, optimizer: fixed}
"""
ABSENT = "mine/budgetary-test.json: no such file (a texts folder holds <kind>-train.json and <kind>-test.json)"
FUSSY = """
    from dataclasses import dataclass
    from framework.hookspecs import hookimpl
    from plugins.envs.ford import Ford

    @dataclass(frozen=True)
    class FussyConfig(Ford.Config):
        split: str = "none"
        variant: int = 0

    class Fussy(Ford):
        name = "fussy"
        Config = FussyConfig
        def __init__(self, config, rows, split, seed):
            if split == config.split:
                raise RuntimeError("no maps")
            super().__init__(config, rows, split, seed)
            open("built.txt", "a").write(f"{split} {config.variant}\\n")
        def close(self):
            open("closed.txt", "a").write("closed\\n")

    @hookimpl
    def heed_components():
        return [Fussy]
"""
FORD = "interpreter: oracle, policy: mlp, optimizer: ppo_lagrangian"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("fussy.py").write_text(textwrap.dedent(FUSSY))
    return tmp_path


def write(text: str) -> None:
    Path("r.yaml").write_text(TRAINING + "plugins: [{path: fussy.py}]\n" + text)


def trained() -> list[Path]:
    return [*Path("runs").rglob("metrics.jsonl"), *Path("runs").rglob("interpreters/*.safetensors")]


@pytest.mark.parametrize("bad", [None, '{"grass0": 3}'])
def test_sentences_for_evaluation_that_are_absent_or_bad(folder, capsys, bad):
    write(TEXTS)
    Path("mine").mkdir()
    Path("mine/budgetary-train.json").write_text('{"lava0": ["No lava"], "water1": ["Water once"]}')
    if bad is not None:
        Path("mine/budgetary-test.json").write_text(bad)
    assert main(["r.yaml", "--check"]) == MISTAKE
    told = capsys.readouterr().err.replace(f"{folder}/", "")
    assert told.startswith("heed: mine/budgetary-test.json:")
    assert bad is not None or told == f"heed: {ABSENT} [env 'hazardworld_grid']\n"
    assert main(["r.yaml", "--workers", "1"]) == FAILED
    assert "failed: heed (seed 0): mine/budgetary-test.json:" in capsys.readouterr().out.replace(f"{folder}/", "")
    assert not trained(), "not even the interpreter"


def test_an_env_that_raises_for_the_eval_split(folder, capsys):
    write(f"experiments: {{heed: {{env: {{plugin: fussy, split: eval}}, {FORD}}}}}\n")
    assert main(["r.yaml", "--check"]) == MISTAKE
    told = capsys.readouterr().err.replace(f"{folder}/", "")
    assert told == "heed: cannot be built: RuntimeError: no maps (fussy.py:16) [env 'fussy']\n"
    with pytest.raises(UserError, match="no maps"):
        load("r.yaml").check()
    assert main(["r.yaml", "--workers", "1"]) == FAILED
    assert not trained()


def test_an_evaluation_whose_env_cannot_be_built(folder, capsys):
    write(f"experiments: {{heed: {{env: fussy, {FORD}}}}}\nevaluations: {{far: {{env: {{split: eval}}}}}}\n")
    assert main(["r.yaml", "--check"]) == MISTAKE
    told = capsys.readouterr().err.replace(f"{folder}/", "")
    assert told == "heed: evaluations.far: cannot be built: RuntimeError: no maps (fussy.py:16) [env 'fussy']\n"
    assert main(["r.yaml", "--workers", "1"]) == FAILED
    assert "failed: heed (seed 0): evaluations.far: cannot be built: RuntimeError: no maps" in capsys.readouterr().out
    assert not trained()


def test_an_evaluation_that_the_system_does_not_fit(folder, capsys):
    write(f"experiments: {{heed: {{env: fussy, {FORD}}}}}\nevaluations: {{far: {{env: {{steps: 100}}}}}}\n")
    small = ["training.batch=50", "training.rows=25", "training.steps=100"]
    assert main(["r.yaml", "--check", *small]) == MISTAKE
    assert capsys.readouterr().err.startswith("heed: evaluations.far: training.batch is 50, less than one episode")


def test_worlds_that_many_share_are_built_once_and_closed(folder, capsys):
    write(
        "seeds: [0, 1]\n"
        f"experiments: {{heed: {{env: fussy, {FORD}}}}}\n"
        "ablations: {clips: {base: heed, axes: {optimizer.clip: [0.1, 0.3]}}}\n"
        "evaluations: {same: {episodes: 30}, far: {env: {variant: 1}}, further: {env: {variant: 1}, episodes: 40}}\n"
    )
    assert main(["r.yaml", "--check"]) == OK
    built = Path("built.txt").read_text().splitlines()
    assert sorted(built) == ["eval 0", "eval 1", *["train 0"] * 3], "one for each system to train, one to evaluate in"
    assert len(Path("closed.txt").read_text().splitlines()) == len(built)
    assert "3 systems built" in capsys.readouterr().out
