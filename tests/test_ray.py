"""The Ray executor: the same results as local processes, byte for byte, also when a machine dies in the middle."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from framework.errors import STOPPED
from framework.run import MISTAKE, OK, main

REGISTRY = """
study: shared
plugins: [{path: quiet.py}]
training: {steps: 4_000, batch: 400, rows: 10, interpreter: {iterations: 40, batch: 64, steps: 2_000, check_every: 5},
           evaluation: {episodes: 20, reading_steps: 100}}
components:
  envs: {small: {plugin: hazardworld_grid, train_maps: 30, eval_maps: 20, max_steps: 40}}
experiments:
  polco: {env: small, interpreter: lstm, policy: polco_grid, optimizer: pcpo}
  fpo: {env: small, interpreter: lstm, policy: polco_grid, optimizer: fpo}
  quiet: {env: small, interpreter: quiet, policy: fusion_grid, optimizer: trpo}
"""
PLUGIN = """
from framework.hookspecs import hookimpl
from plugins.interpreters.none import NoInterpreter

class Quiet(NoInterpreter):
    name = "quiet"

@hookimpl
def heed_components():
    return [Quiet]
"""
FORD = """
study: ford
training: {steps: 2_400, batch: 1_200, rows: 25, evaluation: {episodes: 20, reading_steps: 100}}
experiments:
  one: {env: ford, interpreter: oracle, policy: mlp, optimizer: trpo}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("quiet.py").write_text(PLUGIN)
    Path("registry.yaml").write_text(REGISTRY)
    Path("ford.yaml").write_text(FORD)
    return tmp_path


def traces(runs: str) -> dict[str, bytes]:
    kinds = ("metrics.jsonl", "policy.safetensors", "evaluation.safetensors", "interpreters/*.safetensors", "*.csv")
    return {str(f.relative_to(runs)): f.read_bytes() for kind in kinds for f in sorted(Path(runs).rglob(kind))}


def test_without_ray_the_message_says_what_to_type(folder, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)  # what Python does for a module that is not there
    assert main(["ford.yaml", "--executor", "ray"]) == MISTAKE
    assert "type: make setup-ray" in capsys.readouterr().err


def test_an_address_is_for_ray(folder, capsys):
    assert main(["ford.yaml", "--address", "1.2.3.4:6379"]) == MISTAKE
    assert capsys.readouterr().err == "--address is that of a Ray cluster; it goes with --executor ray\n"


@pytest.fixture
def ray():
    return pytest.importorskip("ray", reason="ray is not installed (make setup-ray)")


def test_on_a_cluster_of_its_own_it_is_the_same(folder, ray, capsys):
    assert main(["ford.yaml", "--runs-dir", "here", "--workers", "1"]) == OK
    assert main(["ford.yaml", "--runs-dir", "there", "--workers", "1", "--executor", "ray"]) == OK
    assert capsys.readouterr().out.count("1 done, 0 finished before, 0 failed") == 2
    assert traces("here") == traces("there")
    assert not ray.is_initialized()
    assert not list(Path("there").glob(".shared*"))


@pytest.mark.slow
def test_a_machine_that_dies_loses_nothing(folder, ray, capsys, monkeypatch):
    """Two nodes; one is taken away while both are at work. What it was at goes on, on the other."""
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("HEED_SAVE_EVERY", "0.2")
    assert main(["registry.yaml", "--runs-dir", "local", "--workers", "2", "--quiet"]) == OK
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": 100 * 2**20})
    other = cluster.add_node(num_cpus=1, object_store_memory=100 * 2**20)
    taken = threading.Event()

    def take_away() -> None:
        """Once two cells have saved, one of them on the node that goes."""
        while len(list(Path("runs").rglob("training.safetensors"))) < 2:
            time.sleep(0.05)
        cluster.remove_node(other, allow_graceful=False)
        taken.set()

    thread = threading.Thread(target=take_away, daemon=True)
    thread.start()
    try:
        code = main(["registry.yaml", "--executor", "ray", "--address", cluster.address])
    finally:
        cluster.shutdown()
    out = capsys.readouterr().out
    assert code == OK, out
    assert taken.is_set()
    assert "it goes on from its last save" in out
    assert "3 done, 0 finished before, 0 failed" in out
    logs = [(file / "log.txt").read_text() for file in Path("runs/cells").iterdir()]
    assert any("goes on from step" in log for log in logs), "from a checkpoint, not from the start"
    expected, found = traces("local"), traces("runs")
    assert expected
    assert {name: data for name, data in found.items() if name in expected} == expected


@pytest.mark.slow
def test_ctrl_c_saves_on_the_cluster_too(folder, ray):
    words = [sys.executable, "-m", "framework.run", "registry.yaml", "--executor", "ray", "--workers", "2", "--quiet"]
    job = subprocess.Popen(
        words,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parent.parent)},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # shells ignore it in the background
    )  # fmt: skip
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline and not any(f.stat().st_size for f in Path("runs").rglob("metrics.jsonl")):
        time.sleep(0.1)
    job.send_signal(signal.SIGINT)
    out, _ = job.communicate(timeout=120)
    assert job.returncode == STOPPED
    assert "what was running is saved. The same command goes on from there." in out
    assert "Traceback" not in out
    assert list(Path("runs").rglob("training.safetensors"))


@pytest.mark.slow
def test_no_cluster_at_the_address(folder, ray, capsys):
    assert main(["ford.yaml", "--executor", "ray", "--address", "127.0.0.1:1"]) == MISTAKE
    assert "no Ray cluster answers at '127.0.0.1:1'" in capsys.readouterr().err
