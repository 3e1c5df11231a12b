"""A run that is killed and started again ends as one that was never killed: metrics, weights, report."""

from __future__ import annotations

import json
import os
import random
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from framework import checkpoint
from framework.builder import build
from framework.config import load
from framework.errors import STOPPED, UserError
from framework.executor import TIME_TO_SAVE
from framework.resume import Saver, pack, unpack
from framework.run import MISTAKE, OK, main
from framework.trainer import Trainer

ROOT = str(Path(__file__).parent.parent)
REGISTRY = """
study: long
training: {steps: 8_000, batch: 400, rows: 10, interpreter: {iterations: 40, batch: 64, steps: 2_000, check_every: 5},
           evaluation: {episodes: 20, reading_steps: 100}}
components:
  envs:
    small: {plugin: hazardworld_grid, train_maps: 30, eval_maps: 20, max_steps: 40}
experiments:
  polco: {env: small, interpreter: lstm, policy: polco_grid, optimizer: pcpo}
  ppo: {env: small, interpreter: oracle, policy: fusion_grid, optimizer: ppo_lagrangian}
  together:
    {env: small, interpreter: lstm, policy: polco_grid, optimizer: cpo, training: {interpreter: {when: together}}}
evaluations:
  transfer: {env: {reward: transfer}, finetune: 2_000}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("registry.yaml").write_text(REGISTRY)
    return tmp_path


def start(runs: str) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", "framework.run", "registry.yaml", "--runs-dir", runs, "--workers", "2", "--quiet"]
    return subprocess.Popen(
        words,
        env=os.environ | {"HEED_SAVE_EVERY": "0.2", "PYTHONPATH": ROOT},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        # Ctrl-C is heard also where these tests were started in the background, which makes shells ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def lines(runs: str) -> int:
    return sum(len(file.read_bytes().splitlines()) for file in Path(runs).rglob("metrics.jsonl"))


def traces(runs: str) -> dict[str, bytes]:
    """All that must be the same. (result.json also says how many seconds it took.)"""
    root = Path(runs)
    kinds = (
        "metrics.jsonl",
        "policy.safetensors",
        "evaluation.safetensors",
        "*.csv",
        "*.svg",
        "interpreter*.safetensors",
    )
    return {str(f.relative_to(root)): f.read_bytes() for kind in kinds for f in sorted(root.rglob(kind))}


class Warm:
    """Starts commands by the server of tests/_warm.py."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [sys.executable, str(Path(__file__).parent / "_warm.py")],
            env=os.environ | {"HEED_SAVE_EVERY": "0.05", "PYTHONPATH": ROOT, "OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0,
        )  # fmt: skip

    def start(self, *words: str) -> int:
        """Process id, which is that of the group too."""
        self._server.stdin.write((json.dumps(["registry.yaml", "--workers", "2", "--quiet", *words]) + "\n").encode())
        return int(self._server.stdout.readline())

    def ended(self) -> bool:
        return bool(select.select([self._server.stdout], [], [], 0)[0])

    def wait(self) -> int:
        return int(self._server.stdout.readline())

    def close(self) -> None:
        self._server.stdin.close()
        self._server.wait()


def size(runs: str) -> int:
    """How much has been written: something to watch for that moves all the time."""
    return sum(file.stat().st_size for file in Path(runs).rglob("*.jsonl"))


@pytest.mark.parametrize("kills", [5, pytest.param(50, marks=pytest.mark.slow)])
def test_killed_again_and_again_ends_the_same(folder, kills):
    """SIGKILL to the whole group at random moments, counted in what was written, so that each one costs some work."""
    chance, warm = random.Random(kills), Warm()
    scale = ["training.steps=" + ("2_000" if kills < 10 else "20_000")]
    if kills < 10:
        scale += ["evaluations.transfer.finetune=400"]
    warm.start("--runs-dir", "whole", *scale)
    assert warm.wait() == OK, Path("output.txt").read_text()
    done, per_kill = 0, size("whole") / kills
    while done < kills:
        group, before = warm.start("--runs-dir", "killed", *scale), size("killed")
        aim = before + chance.uniform(0, 1.2) * per_kill
        pause = chance.uniform(0, 0.3)  # also in what leaves no line: reading, saving, evaluating
        while not warm.ended() and size("killed") <= aim:
            time.sleep(0.02)
        time.sleep(pause)
        if warm.ended():
            assert warm.wait() == OK, Path("output.txt").read_text()
            break
        os.killpg(group, signal.SIGKILL)
        warm.wait()
        done += 1
    assert done >= kills * 4 // 5, "it was over too soon to be killed as often as that"
    warm.start("--runs-dir", "killed", *scale)
    assert warm.wait() == OK, Path("output.txt").read_text()
    warm.close()
    expected, found = traces("whole"), traces("killed")
    assert set(expected) == set(found)
    different = [name for name in expected if expected[name] != found[name]]
    assert not different
    assert not list(Path("killed").rglob("training*.safetensors")), "nothing half-done is left"
    assert not list(Path("killed").rglob(".*.part")), "nor half-written"


@pytest.mark.parametrize("cell", ["polco", "ppo", "together"])
def test_a_trainer_that_is_restored_goes_on_as_if_nothing_had_been(folder, cell):
    study = load(Path("registry.yaml"), ["training.steps=1_600"])
    run = next(run for run in study.runs if run.labels == (cell,))

    def trainer() -> Trainer:
        system = build(run.cell, run.seed, study.host.catalog)
        return Trainer(system, run.cell.training, run.seed, lambda step, metrics: None, tutored=cell == "together")

    whole = trainer()
    saved, read = [], []

    def save(step, metrics):
        if step == 800:
            tensors, counters = whole.state()
            saved.append(({name: tensor.clone() for name, tensor in tensors.items()}, counters))
            read.append(whole.collector.agent.code.clone())

    whole.log = save
    whole.train()
    again = trainer()
    again.restore(*saved[0])
    assert torch.equal(again.collector.agent.code, read[0]), "sentences mean the same as before"
    again.train()
    expected, found = whole.state(), again.state()
    assert found[1] == expected[1]
    assert [name for name, value in expected[0].items() if not torch.equal(value, found[0][name])] == []


def test_plugins_that_draw_from_numpy_or_python_go_on_as_well(folder):
    study = load(Path("registry.yaml"), ["training.steps=1_200"])
    run = next(run for run in study.runs if run.labels == ("ppo",))
    draws, saved = [], []

    def log(step, metrics):
        draws.append((np.random.normal(), random.gauss(0, 1)))
        if step == 400:
            saved.append(whole.state())

    def trainer() -> Trainer:
        return Trainer(build(run.cell, run.seed, study.host.catalog), run.cell.training, run.seed, log)

    whole = trainer()
    whole.train()
    expected = draws[1:]
    draws.clear()
    again = trainer()
    again.restore(*saved[0])
    again.train()
    assert draws == expected
    tensors, counters = saved[0]
    old = {name: value for name, value in tensors.items() if not name.startswith("random.")}
    trainer().restore(old | {"torch": tensors["random.torch"]}, counters)  # as versions before this one saved it


@pytest.mark.slow
def test_two_commands_on_one_folder_do_the_work_once(folder):
    """Whoever comes second waits, and finds it done."""
    jobs = [start("shared") for _ in range(2)]
    outputs = [job.communicate(timeout=300)[0] for job in jobs]
    assert [job.returncode for job in jobs] == [OK, OK], outputs
    for file in Path("shared").rglob("metrics.jsonl"):
        steps = [json.loads(line)["step"] for line in file.open()]
        assert steps == sorted(set(steps)), "one writer, from the first step to the last"
    assert len(list(Path("shared/cells").glob("*/result.json"))) == 3


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_asked_to_stop_it_saves_and_says_how_to_go_on(folder, how, capsys):
    job, deadline = start("runs"), time.monotonic() + 120
    while lines("runs") < 5 and time.monotonic() < deadline:
        time.sleep(0.05)
    job.send_signal(how)
    out, _ = job.communicate(timeout=60)
    assert job.returncode == STOPPED
    assert "what was running is saved. The same command goes on from there." in out
    assert "Traceback" not in out
    saved = list(Path("runs").rglob("training.safetensors"))
    assert saved
    _, meta = checkpoint.load(saved[0])
    assert meta["step"] == max(json.loads(line)["step"] for line in (saved[0].parent / "metrics.jsonl").open())
    log = (saved[0].parent / "log.txt").read_text()
    assert log.endswith("stopped, as it was told to; the same command goes on from here\n")
    assert "Traceback" not in log
    assert main(["registry.yaml", "--dry-run"]) == OK
    assert "0 of 1, 1 begun" in capsys.readouterr().out


SLOW_EVALUATION = """
import time
from pathlib import Path
from framework.hookspecs import RunObserver, hookimpl

class Slow(RunObserver):
    def evaluate(self, stage, metrics):
        Path("evaluating").touch()
        time.sleep(2)

@hookimpl
def heed_observe(run):
    return Slow()
"""


def test_asked_to_stop_while_it_evaluates_it_does_not_wait_for_another_task(folder):
    Path("slow.py").write_text(SLOW_EVALUATION)
    one = REGISTRY.replace("evaluations:", "# ").replace("  transfer:", "#").replace("steps: 8_000", "steps: 400")
    Path("registry.yaml").write_text(one + "plugins: [{path: slow.py}]\n")
    job, deadline = start("runs"), time.monotonic() + 120
    while not Path("evaluating").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    asked = time.monotonic()
    job.send_signal(signal.SIGINT)
    out, _ = job.communicate(timeout=100)
    assert job.returncode == STOPPED
    assert "what was running is saved" in out
    assert time.monotonic() - asked < TIME_TO_SAVE / 2


def saved_run(folder: Path) -> Path:
    """A run that was stopped half-way, by hand: its save says another commit."""
    assert main(["registry.yaml", "--only", "ppo", "--workers", "1", "--quiet", "training.steps=4_000"]) == OK
    (run,) = Path("runs/cells").iterdir()
    (run / "result.json").unlink()
    return run


def test_a_save_of_other_code_is_refused_unless_told_otherwise(folder, capsys, monkeypatch):
    run = saved_run(folder)
    saver = Saver(run, run.name)
    monkeypatch.setattr("framework.resume.code", lambda: {"heed": "0", "commit": "older"})
    saver.save({"x": torch.ones(2)}, {"step": 400})
    monkeypatch.undo()
    os.chdir(folder)
    words = ["registry.yaml", "--only", "ppo", "--workers", "1", "--quiet", "training.steps=4_000"]
    assert main(words) == 1
    out = capsys.readouterr().out
    assert "was saved with heed '0'" in out
    assert "commit 'older'" in out
    assert "--resume anyway goes on all the same, --resume fresh starts over" in out
    about = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(about | {"provenance": {"commit": "older"}}))
    assert main([*words, "--resume", "anyway"]) == 1, "what was saved here fits no run"
    gone_on = json.loads((run / "run.json").read_text())
    assert gone_on["earlier_commits"] == ["older"] and gone_on["provenance"] == about["provenance"]
    assert main([*words, "--resume", "fresh"]) == OK
    assert "earlier_commits" not in json.loads((run / "run.json").read_text())


def test_a_damaged_save_is_named_and_the_one_before_is_used(tmp_path, capsys):
    saver = Saver(tmp_path, "run")
    saver.save({"x": torch.zeros(3)}, {"step": 1})
    saver.save({"x": torch.ones(3)}, {"step": 2})
    data = bytearray(saver.file.read_bytes())
    data[-1] ^= 1
    saver.file.write_bytes(data)
    tensors, meta = saver.find()
    assert meta["step"] == 1
    assert torch.equal(tensors["x"], torch.zeros(3))
    assert "its checksum does not fit its content" in capsys.readouterr().err
    saver.before.write_bytes(b"")
    assert saver.find() is None


def test_told_so_it_goes_on_from_a_save_of_other_code(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("framework.resume.code", lambda: {"heed": "0", "commit": "older"})
        Saver(tmp_path, "run").save({"x": torch.ones(2)}, {"step": 400})
    with pytest.raises(UserError, match="commit 'older'"):
        Saver(tmp_path, "run").find()
    _, meta = Saver(tmp_path, "run", "anyway").find()
    assert meta["step"] == 400
    assert Saver(tmp_path, "run", "fresh").find() is None
    assert not list(tmp_path.iterdir()), "starting over leaves nothing of the old one"


def test_pack_and_unpack():
    value = (torch.arange(3), (torch.ones(2, dtype=torch.bool),), None)
    tensors = pack(value, "v")
    assert set(tensors) == {"v.0", "v.1.0"}
    back = unpack((torch.zeros(3), (torch.zeros(2),), None), tensors, "v")
    assert torch.equal(back[0], value[0])
    assert back[1][0].dtype == torch.bool
    assert back[2] is None


def test_check_reports_a_bad_choice(folder, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["registry.yaml", "--resume", "maybe"])
    assert stop.value.code == MISTAKE
