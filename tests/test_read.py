"""``python -m framework.read``: the command that tries an interpreter."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

import framework
from framework import checkpoint
from framework.errors import UserError
from framework.read import main
from framework.run import main as run
from framework.stages import run_cell

STUDY = """
study: reading
training:
  {steps: 1_000, batch: 1_000, rows: 10, interpreter: {steps: 20_000}, evaluation: {episodes: 20, reading_steps: 2_000}}
experiments:
  counts: {env: hazardworld_grid, interpreter: naive_bayes, policy: random_walk, optimizer: fixed}
report:
  tables: [reading]
  reference: [{name: "the paper, rule-based", kind: budgetary, scores: {cell_accuracy: 0.9586}}]
"""


def test_a_trained_interpreter_can_be_tried_and_scored(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "registry.yaml").write_text(STUDY)
    assert run(["registry.yaml", "--workers", "1"]) == 0
    out = capsys.readouterr().out
    assert "the paper, rule-based" in out
    assert "95.86%" in out
    assert main(["Never touch the lava", "the water twice only"]) == 0
    out = capsys.readouterr().out
    assert "Never touch the lava" in out
    assert "at most" in out
    assert "[L]" in out
    assert "@ agent; [ ] forbidden now" in out
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "budgetary-test.json").write_text('{"lava0": ["lava is forbidden"], "water2": ["water two times",],}')
    assert main(["--texts", "mine", "--steps", "2000"]) == 0
    assert "naive_bayes on mine (test, 2 sentences)" in capsys.readouterr().out
    (folder / "budgetary-test.json").write_text('{"lavva0": ["lava is forbidden"]}')
    assert main(["--texts", "mine"]) == 2
    assert "budgetary-test.json:1" in capsys.readouterr().err
    assert main(["--texts", "nowhere"]) == 2
    capsys.readouterr()
    assert main(["--texts", "mine", "--steps", "-5"]) == 2
    assert capsys.readouterr().err == "--steps must be at least 1, not -5\n"
    assert main(["Never wade", "--interpreter", "naive_bayes", "--env", "ford"]) == 2
    said = "learned in a world of its own; --env is for an interpreter that has nothing to learn"
    assert said in capsys.readouterr().err
    assert main([]) == 2


def test_without_a_run_an_interpreter_that_comes_with_heed_answers(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["Never step on the grass"]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("interpreter: ")
    assert "plugins/agents/interpreters/reader-s0-a4a2bfce8fed.safetensors" in said.out
    assert (
        "(comes with Heed, learned budgetary sentences; others are beside it; there is none in runs/interpreters)"
        in said.out
    )
    assert "at most 0 times" in said.out
    assert "[G]" in said.out
    monkeypatch.setattr("framework.plugin_manager.PluginHost.agent_folders", lambda host: iter(()))
    assert main(["Never touch lava"]) == 2
    assert (
        capsys.readouterr().err == "runs/interpreters: no trained interpreter here; a study makes one, e.g. make run\n"
    )
    assert main(["Never touch lava", "--env", "ford"]) == 2
    told = "--env is for an interpreter that has nothing to learn; name it: --interpreter NAME\n"
    assert capsys.readouterr().err == told


NOTHING_TO_LEARN = """
import torch
from framework.hookspecs import hookimpl
from framework.interfaces import ConstraintInterpreter, Interpretation

class Length(ConstraintInterpreter):
    name = "length"

    def encode(self, sentences):
        return torch.tensor([[float(len(s.split()))] for s in sentences])

    def step(self, inputs, state):
        mask = torch.zeros(len(inputs.obs), *self.spec.cells)
        return Interpretation(mask, inputs.code[:, 0]), state

@hookimpl
def heed_components():
    return [Length]
"""


def test_an_interpreter_with_nothing_to_learn_reads_without_a_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("length.py").write_text(NOTHING_TO_LEARN)
    assert main(["three words long", "--plugin", "length.py", "--env", "ford"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("interpreter: length (nothing to learn) in ford\n")
    assert "at most 3 times" in out
    assert main(["two words", "--plugin", "length.py", "--interpreter", "length"]) == 0
    assert "in hazardworld_grid\n" in capsys.readouterr().out
    for words, told in (
        (["--interpreter", "lenght"], "no interpreter plugin is called 'lenght'; did you mean 'length'?"),
        (["--interpreter", "oracle"], "interpreter 'oracle' is told the truth of a world; it reads no sentence"),
        (
            ["--interpreter", "lstm"],
            "interpreter 'lstm' has to learn first; there is no file of it in runs/interpreters",
        ),
        (["--env", "fjord"], "env: no env plugin is called 'fjord'; did you mean 'ford'?"),
    ):
        assert main(["x", "--plugin", "length.py", *words]) == 2
        assert capsys.readouterr().err == f"{told}\n"


def test_an_interpreter_that_breaks_its_contract_is_told_as_in_a_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("length.py").write_text(NOTHING_TO_LEARN.replace("torch.zeros(", "torch.full((")
                                 .replace("*self.spec.cells)", "*self.spec.cells), 2.5)"))  # fmt: skip
    assert main(["three words long", "--plugin", "length.py", "--env", "ford"]) == 2
    assert capsys.readouterr().err.startswith("interpreter 'length': mask has values from 2.5 to 2.5: it")


PLUGIN = """
import torch
from torch import nn
from framework.hookspecs import hookimpl
from framework.interfaces import ConstraintInterpreter, Interpretation

SIZE = 4

class Mine(ConstraintInterpreter):
    name = "mine"

    def __init__(self, config, spec):
        super().__init__(config, spec)
        self.length = nn.Linear(1, SIZE)
        self.out = nn.Linear(SIZE, 1)

    def encode(self, sentences):
        return torch.tensor([[float(len(s))] for s in sentences])

    def step(self, inputs, state):
        rows = len(inputs.obs)
        threshold = self.out(self.length(inputs.code))[:, 0]
        return Interpretation(torch.sigmoid(threshold).expand(6, rows).T.reshape(rows, 2, 3), threshold), state

@hookimpl
def heed_components():
    return [Mine]
"""
ALONE = """
study: alone
plugins: [{path: mine.py}]
training: {steps: 1_200, batch: 1_200, rows: 25, interpreter: {steps: 500, iterations: 2, when: %s},
           evaluation: {episodes: 25, reading_steps: 100}}
experiments:
  mine: {env: ford, interpreter: mine, policy: mlp, optimizer: ppo_lagrangian}
"""


def write_plugin(code):
    """As if by hand, between two commands: a process imports a file only once."""
    Path("mine.py").write_text(code)
    for name in [name for name in sys.modules if name.startswith("heed_plugin_mine_")]:
        del sys.modules[name]


@pytest.fixture(params=["before", "together"])
def learned(request, tmp_path, monkeypatch):
    """Folder of a run with an interpreter from a file, and the interpreter's file."""
    monkeypatch.chdir(tmp_path)
    write_plugin(PLUGIN)
    Path("alone.yaml").write_text(ALONE % request.param)
    study = framework.load("alone.yaml")
    (spec,) = study.checked.runs
    folder = Path("runs/cells") / spec.id
    folder.mkdir(parents=True)
    run_cell(spec, Path("runs"), study.checked.host)
    (file,) = Path("runs").rglob("*mine*.safetensors" if request.param == "before" else "interpreter.safetensors")
    return folder, file


def test_a_run_is_found_though_its_plugin_was_changed_and_that_is_said(learned, capsys):
    folder, file = learned
    words = ["Never wade", "--plugin", "mine.py", "--interpreter", str(file)]
    framework.load_agent(folder, ["mine.py"]).close()
    assert main(words) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert said.out.startswith(f"interpreter: {file}\n")
    write_plugin(PLUGIN + "# another version\n")
    framework.load_agent(folder, ["mine.py"]).close()
    warning = (
        "interpreter 'mine' was changed after the run: "
        "old weights meet new code; framework.run with its registry makes the run anew"
    )
    assert capsys.readouterr().err == f"{folder}/run.json: {warning}\n"
    assert main(words) == 0
    assert capsys.readouterr().err == f"{file}: {warning}\n"


def test_the_plugin_that_is_handed_over_is_the_one_that_answers(learned, capsys):
    """Though another interpreter's file is newer."""
    _, file = learned
    other = Path("runs/interpreters/other.safetensors")
    other.parent.mkdir(exist_ok=True)
    _, meta = checkpoint.load(file)
    meta["run"]["interpreter"] = {"plugin": "none"}
    checkpoint.save(other, {}, meta)
    os.utime(other, (2e9, 2e9))
    code = main(["Never wade", "--plugin", "mine.py"])
    if file.parent == other.parent:
        assert code == 0
        assert capsys.readouterr().out.startswith(f"interpreter: {file}\n")
    else:  # it learned beside a policy, and is in that run's folder
        assert code == 2
        told = "interpreter 'mine' has to learn first; there is no file of it in runs/interpreters\n"
        assert capsys.readouterr().err.endswith(told)


def test_weights_that_do_not_fit_a_changed_plugin_are_told(learned, capsys):
    folder, file = learned
    write_plugin(PLUGIN.replace("SIZE = 4", "SIZE = 5"))
    told = f"{file}: does not fit interpreter 'mine' any more: its code was changed after the run"
    assert main(["Never wade", "--plugin", "mine.py", "--interpreter", str(file)]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == told
    with pytest.raises(UserError, match="does not fit interpreter 'mine' any more"):
        framework.load_agent(folder, ["mine.py"])


def test_files_that_cannot_be_read_with_are_told(learned, capsys):
    folder, file = learned
    policy = folder / "policy.safetensors"
    assert main(["Never wade", "--interpreter", str(policy)]) == 2
    assert capsys.readouterr().err == f"{policy}: is no trained interpreter (they are in RUNS/interpreters)\n"
    assert main(["Never wade", "--interpreter", str(file)]) == 2
    assert capsys.readouterr().err == (
        f"{file}: no interpreter plugin is called 'mine'; name its file: --plugin FILE\n"
    )
    checkpoint.save(file, {}, {"run": {"env": "ford"}})
    assert main(["Never wade", "--interpreter", str(file)]) == 2
    assert capsys.readouterr().err == f"{file}: is damaged and cannot be read\n"


def test_an_interpreter_that_is_gone_is_told(learned):
    folder, file = learned
    file.unlink()
    with pytest.raises(UserError, match="the run's interpreter is not there: it was taken away, or settings, or files"):
        framework.load_agent(folder, ["mine.py"])


def test_a_run_whose_name_does_not_fit_any_more_is_told(learned, capsys):
    folder, _ = learned
    record = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(record | {"id": "other"}))
    framework.load_agent(folder, ["mine.py"]).close()
    assert "settings of its plugins, or files that they read, were changed after the run" in capsys.readouterr().err
