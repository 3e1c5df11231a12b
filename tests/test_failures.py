"""When the machine fails: killed workers, full disks, folders that vanish. Told in words; the other cells go on."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from framework.cell import RunSpec
from framework.plan import Outcome, Patience, Plan, Task
from framework.run import FAILED, OK, main

ROOT = Path(__file__).parent.parent
REGISTRY = """
study: failing
training: {steps: 2_400, batch: 1_200, rows: 25, evaluation: {episodes: 20, reading_steps: 100}}
experiments:
  small: {env: ford, interpreter: oracle, policy: {plugin: mlp, hidden: [8]}, optimizer: trpo}
  large: {env: ford, interpreter: oracle, policy: {plugin: mlp, hidden: [400, 400]}, optimizer: trpo}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("registry.yaml").write_text(REGISTRY)
    return tmp_path


def plugin(code: str) -> None:
    Path("plugin.py").write_text(textwrap.dedent(code))
    Path("registry.yaml").write_text(REGISTRY + "plugins: [{path: plugin.py}]\n")


ONCE = """
    import os, signal
    from pathlib import Path
    from framework.hookspecs import RunObserver, hookimpl

    class Killer(RunObserver):
        def __init__(self, run):
            self.mark = Path("killed")
        def update(self, step, metrics):
            if step == 1_200 and not self.mark.exists():
                self.mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)

    @hookimpl
    def heed_observe(run):
        return Killer(run) if run.labels[0] == "small" else None
"""


def test_a_worker_that_is_killed_once_is_tried_again(folder, capsys):
    plugin(ONCE)
    assert main(["registry.yaml", "--workers", "1", "--only", "small"]) == OK
    out = capsys.readouterr().out
    assert "the process died (killed by signal 9); out of memory, perhaps; it goes on from its last save" in out
    assert "1 done, 0 finished before, 0 failed" in out
    assert not list(Path("runs").rglob("failure.json"))


def run_here(*words: str, limit: int | None = None) -> subprocess.CompletedProcess[str]:
    """As a command; ``limit``: the system refuses files larger than that, as it does on a disk that is full."""

    def refuse() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    return subprocess.run(
        [sys.executable, "-m", "framework.run", "registry.yaml", "--workers", "1", *words],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        preexec_fn=None if limit is None else refuse,
        capture_output=True,
        text=True,
    )


def test_starting_over_is_done_once(folder, monkeypatch):
    """``--resume fresh`` throws away what an earlier launch saved, not what this one did before its worker died."""
    steps = "        def update(self, step, metrics):\n            print(step, file=open('steps', 'a'))\n"
    plugin(ONCE.replace("step == 1_200", "step == 2_400").replace("        def update(self, step, metrics):\n", steps))
    monkeypatch.setenv("HEED_SAVE_EVERY", "0")
    done = run_here("--only", "small", "--resume", "fresh")
    assert done.returncode == OK and "it goes on from its last save" in done.stdout
    assert Path("steps").read_text().split() == ["1200", "2400", "2400"]


def test_a_cell_that_the_disk_refuses_fails_alone_and_leaves_nothing_half_written(folder):
    done = run_here(limit=200_000)
    assert done.returncode == FAILED, done.stderr
    assert "1 done, 0 finished before, 1 failed" in done.stdout
    assert "training.safetensors: File too large; make room, and the same command goes on" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    cells = {json.loads((c / "run.json").read_text())["labels"][0]: c for c in Path("runs/cells").iterdir()}
    assert (cells["small"] / "result.json").is_file()
    assert not (cells["large"] / "policy.safetensors").exists()
    assert not list(Path("runs").rglob(".*.part"))
    assert "File too large" in json.loads((cells["large"] / "failure.json").read_text())["error"]
    again = run_here()
    assert again.returncode == OK
    assert "1 done, 1 finished before, 0 failed" in again.stdout


FULL_DISK = 'mount -t tmpfs -o size="$1" none runs && shift && exec "$@"'


@pytest.mark.slow
@pytest.mark.parametrize("size", ["100k", "800k"])
def test_a_full_disk(folder, size):
    """A real one, of so many kilobytes: a file system in memory, in a namespace of its own."""
    Path("runs").mkdir()
    command = ["unshare", "-Urm", "sh", "-c", FULL_DISK, "sh", size]
    if shutil.which("unshare") is None or subprocess.run([*command, "true"], capture_output=True).returncode:
        pytest.skip("this machine lets nobody mount a file system of their own")
    words = [sys.executable, "-m", "framework.run", "registry.yaml", "--workers", "1"]
    done = subprocess.run(
        [*command, *words], env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    assert done.returncode == FAILED, done.stdout + done.stderr
    assert "No space left on device; make room, and the same command goes on" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


GONE = """
    import shutil
    from pathlib import Path
    from framework.hookspecs import RunObserver, hookimpl

    class Thief(RunObserver):
        def __init__(self, run):
            self.folder = {what}
        def update(self, step, metrics):
            shutil.rmtree(self.folder, ignore_errors=True)

    @hookimpl
    def heed_observe(run):
        return Thief(run) if run.labels[0] == "small" else None
"""


def test_a_cells_folder_that_vanishes_fails_that_cell(folder, capsys):
    plugin(GONE.format(what="run.folder"))
    assert main(["registry.yaml", "--workers", "1"]) == FAILED
    out = capsys.readouterr().out
    assert "1 done, 0 finished before, 1 failed" in out
    assert "No such file or directory" in out
    assert "Traceback" not in out


def test_a_runs_folder_that_vanishes_is_told_and_not_made_anew(folder, capsys):
    """It may have been a disk that was unmounted."""
    plugin(GONE.format(what='Path("runs").resolve()'))
    assert main(["registry.yaml", "--workers", "1"]) == FAILED
    captured = capsys.readouterr()
    assert "failed: large (seed 0): runs: the runs folder is gone" in captured.out
    assert "2 failed" in captured.out
    assert "Traceback" not in captured.out + captured.err
    assert not Path("runs").exists()


def task(name: str, interpreter: str, kind: str = "cell") -> Task:
    run = object.__new__(RunSpec)
    run.__dict__.update(id=name, labels=(name,), seed=0, exams=())
    return Task(kind, run, Path(interpreter))


def test_cells_wait_for_the_interpreter_they_share():
    a, b, c = task("a", "shared"), task("b", "shared"), task("c", "alone")
    plan = Plan([a, b, c])
    first = plan.next()
    assert (first.kind, first.interpreter) == ("interpreter", Path("shared"))
    assert plan.next() is c
    assert plan.next() is None
    assert plan, "there is more to come"
    plan.again(first)
    second = plan.next()
    assert second.key == first.key and second.again and not first.again
    assert not plan.ended(second, failed=False)
    assert [plan.next(), plan.next(), plan.next()] == [a, b, None]
    assert not plan


def test_cells_whose_interpreter_failed_are_given_up():
    plan = Plan([task("a", "shared"), task("b", "shared")])
    assert [cell.run.id for cell in plan.ended(plan.next(), failed=True)] == ["a", "b"]
    assert not plan
    assert Outcome().failed == {}


def test_what_dies_is_tried_again_as_long_as_it_comes_further():
    patience, cell = Patience(), task("a", "x")
    patience.progress(cell, "policy", 100)
    assert patience.died(cell)
    patience.progress(cell, "policy", 50)
    assert not patience.died(cell), "twice, and no further"
    patience.ended(cell)
    for step in (100, 200, 300):
        patience.progress(cell, "policy", step)
        assert patience.died(cell)
    for stage in ("finetune: one", "finetune: two"):  # each counts from 0
        for step in (100, 200):
            patience.progress(cell, stage, step)
            assert patience.died(cell)
