"""Heed from Python: the walk-through of docs/python.md as a script, and what else the functions promise."""

from __future__ import annotations

import hashlib
import importlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import framework
from framework.errors import UserError
from framework.records import Records
from framework.stages import run_cell

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "python.md").read_text()
REGISTRY = """
study: small
training: {steps: 4_800, batch: 2_400, rows: 100, evaluation: {episodes: 20, reading_steps: 200}}
experiments:
  heed: {env: ford, interpreter: oracle, policy: mlp, optimizer: ppo_lagrangian}
  untold: {env: ford, interpreter: none, policy: mlp, optimizer: ppo_lagrangian}
evaluations:
  shorter: {env: {steps: 12}}
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("api")
    (folder / "small.yaml").write_text(REGISTRY)
    study = framework.load(folder / "small.yaml")
    assert study.cells == ["heed", "untold"]
    study.check()
    for run in study.checked.runs:  # in this process: faster; the walk-through below runs a study as people do
        (folder / "runs" / "cells" / run.id).mkdir(parents=True)
        run_cell(run, folder / "runs", study.checked.host)
    return folder / "runs"


def test_importing_is_light():
    code = (
        "import sys, framework; assert 'load' in dir(framework); print({'torch', 'numpy', 'rich'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout == "set()\n", done.stderr


def test_what_is_not_there_is_said_as_for_any_module():
    with pytest.raises(AttributeError, match="has no attribute 'lod'"):
        framework.lod  # noqa: B018


def test_the_walk_through_of_the_documentation_runs_as_a_script(tmp_path):
    """Joined to one script without a guard for __main__: worker processes must not run it again."""
    registry = re.search(r"```yaml\n(.*?)```", PAGE, flags=re.DOTALL)[1]
    (tmp_path / "small.yaml").write_text(registry.replace("9_600", "2_400"))
    (tmp_path / "walk.py").write_text("\n".join(re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)))
    done = subprocess.run([sys.executable, "walk.py"], cwd=tmp_path, capture_output=True, text=True,
                          env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"})  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("[1/") == 1  # the study ran once


MINE = """
from framework.hookspecs import hookimpl
from plugins.interpreters.oracle import Oracle

class Mine(Oracle):
    name = "mine"
    edition = 1

@hookimpl
def heed_components():
    return [Mine]
"""
USES_MINE = "experiments: {a: {env: ford, interpreter: mine, policy: mlp, optimizer: ppo_lagrangian}}\n"


@pytest.mark.parametrize("how", ["path: my_plugin.py", "module: my_plugin_module"])
def test_class_and_version_of_a_plugin_belong_together_after_an_edit(tmp_path, monkeypatch, how):
    """As in a notebook: a file is read again; a module is what it was until it is reloaded."""
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / (how.split(": ")[1].removesuffix(".py") + ".py")
    file.write_text(MINE)
    (tmp_path / "r.yaml").write_text(f"plugins: [{{{how}}}]\n{USES_MINE}")

    def found():
        study = framework.load(tmp_path / "r.yaml").checked
        return study.host.catalog.get("interpreter", "mine").cls.edition, study.runs[0].cell.interpreter.version

    edition, version = found()
    assert (edition, version) == (1, "sha256:" + hashlib.sha256(MINE.encode()).hexdigest()[:12])
    assert found() == (edition, version)
    edited = MINE.replace("edition = 1", "edition = 2")  # of the same length, within the same second
    file.write_text(edited)
    new = (2, "sha256:" + hashlib.sha256(edited.encode()).hexdigest()[:12])
    if how.startswith("path"):
        assert found() == new
        return
    assert found() == (edition, version)
    shutil.rmtree(tmp_path / "__pycache__", ignore_errors=True)
    importlib.reload(sys.modules["my_plugin_module"])
    assert found() == new


def test_results_are_flat_and_name_their_run(runs):
    records = framework.results(runs)
    assert isinstance(records, Records) and len(records) == 4
    assert sorted((r["system"], r["evaluation"]) for r in records) == [
        ("heed", "shorter"), ("heed", "training"), ("untold", "shorter"), ("untold", "training")
    ]  # fmt: skip
    assert all(isinstance(value, str | int | float | None) for record in records for value in record.values())
    assert records[0]["length"] in (12, 24) and records[0]["env"] == "ford"


def test_a_study_finds_its_own_results_and_runs_nothing_twice(runs):
    study = framework.load(runs.parent / "small.yaml")
    assert len(study.results(runs)) == 4
    part = study.only("untold")
    assert [record["cell"] for record in part.results(runs)] == ["untold", "untold"]
    outcome = part.run(runs=runs, workers=1, quiet=True)
    assert not outcome.done and len(outcome.skipped) == 1


def test_pandas(runs):
    pandas = pytest.importorskip("pandas")
    table = framework.results(runs).to_pandas()
    assert isinstance(table, pandas.DataFrame) and len(table) == 4
    assert table.groupby("system").reward.mean().notna().all()


def test_without_pandas_one_is_told_what_to_type(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UserError, match="pip install pandas"):
        Records().to_pandas()


def test_history_is_the_learning_curve(runs):
    curve = framework.history(framework.results(runs)[0]["folder"])
    assert [row["step"] for row in curve] == [2400, 4800]
    assert "reward" in curve[0]


def folder_of(runs: Path, system: str) -> str:
    return next(r["folder"] for r in framework.results(runs) if r["system"] == system)


def test_an_agent_acts_understands_and_repeats_itself(runs):
    agent = framework.load_agent(folder_of(runs, "untold"))

    def episode(seed: int) -> tuple[list[int], float, float]:
        agent.reset(seed=seed)
        actions, total, cost = [], 0.0, 0.0
        while not agent.done:
            actions.append(agent.act())
            reward, price = agent.step(actions[-1])
            total, cost = total + reward, cost + price
        assert (total, cost) == (agent.reward, agent.cost)
        return actions, agent.reward, agent.cost

    first, other = episode(1), episode(2)
    assert episode(1) == first != other and len(first[0]) == 24
    assert agent.sentence and agent.budget in range(4)
    agent.step(agent.act())  # starts the next episode
    assert (agent.reward, agent.cost, agent.done) == (0.0, 0.0, False)
    reading = agent.understand("Never wade.")
    assert reading.mask.shape == (2, 3) and reading.threshold >= 0 and not reading.mask.any()  # `none` forbids nothing
    assert agent.picture().dtype == np.uint8


def test_an_agent_whose_optimizer_has_lost_a_setting_still_acts(runs, tmp_path):
    """What has been learned does not need what it was learned with."""
    folder = Path(folder_of(runs, "heed"))
    copy = tmp_path / "runs" / "cells" / folder.name
    shutil.copytree(folder, copy)
    record = json.loads((copy / "run.json").read_text())
    record["config"]["optimizer"]["impatience"] = 0.1
    (copy / "run.json").write_text(json.dumps(record))
    agent = framework.load_agent(copy)
    agent.reset(seed=0)
    assert agent.act() in range(4)


def test_an_oracle_reads_no_sentences(runs):
    with pytest.raises(UserError, match="reads no sentences"):
        framework.load_agent(folder_of(runs, "heed")).understand("Never wade.")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: framework.load("absent.yaml"), "absent.yaml: no such file"),
        (lambda: framework.results("absent"), "absent: is no runs folder"),
        (lambda: framework.history("absent"), "absent: is no run"),
        (lambda: framework.load_agent("absent"), "absent: no such folder"),
    ],
)
def test_mistakes_are_told_in_words(call, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=re.escape(message)):
        call()
