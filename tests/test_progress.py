"""What a person sees while a study runs."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from framework.clock import Clock
from framework.config import load
from framework.progress import Display, duration
from framework.run import MISTAKE, main

REGISTRY = """
study: two
training: {steps: 10_000, batch: 1_000, rows: 10}
seeds: [0, 1, 2]
experiments:
  a: {env: ford, interpreter: oracle, policy: mlp, optimizer: ppo_lagrangian}
"""


class Time:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def study(tmp_path):
    (tmp_path / "registry.yaml").write_text(REGISTRY)
    return load(tmp_path / "registry.yaml")


def test_time_left_is_known_before_the_first_run_ends(study):
    """Two of three at work, 1,000 steps in 10 s each: 90 s for these, then 100 for the third."""
    time = Time()
    clock = Clock(study.runs, time)
    first, second, _ = (run.id for run in study.runs)
    assert clock.left() is None
    clock.start(first)
    clock.start(second)
    for time.now in (0.0, 10.0):
        for run in (first, second):
            clock.progress(run, "policy", 1_000 + 100 * int(time.now), {"steps_per_second": 100.0})
    assert clock.stage(first) == ("policy", 2_000, 10_000, pytest.approx(80.0))
    assert clock.left() == pytest.approx((80 + 80 + 100) / 2)
    assert clock.share() == pytest.approx(0.4 / 3)
    time.now = 90.0
    clock.end(first)
    assert clock.share() == pytest.approx(1.2 / 3)


def test_a_run_that_goes_on_from_a_save_is_not_thought_to_be_quicker(study):
    time = Time()
    clock = Clock(study.runs, time)
    run = study.runs[0].id
    clock.start(run)
    clock.progress(run, "policy", 8_000, {"steps_per_second": 50.0})
    assert clock.stage(run)[3] == pytest.approx(40.0), "by its own account"
    time.now = 20.0
    clock.progress(run, "policy", 9_000, {"steps_per_second": 50.0})
    assert clock.stage(run)[3] == pytest.approx(20.0)


def test_fine_tunings_of_different_lengths(tmp_path):
    """10,000 steps, then 1,000 and 4,000 of fine-tuning, all of it at 100 a second."""
    exams = "evaluations: {one: {env: {steps: 12}, finetune: 1_000}, two: {env: {steps: 14}, finetune: 4_000}}"
    (tmp_path / "registry.yaml").write_text(REGISTRY.replace("[0, 1, 2]", "[0]") + exams)
    study, time = load(tmp_path / "registry.yaml"), Time()
    clock, run = Clock(study.runs, time), study.runs[0].id
    clock.start(run)
    for stage, steps in (("policy", (5_000, 10_000)), ("finetune: one", (500, 1_000)), ("finetune: two", (500, 2_000))):
        for step in steps:
            time.now += (step - steps[0]) / 100
            clock.progress(run, stage, step, {"steps_per_second": 100.0})
    assert clock.stage(run) == ("finetune: two", 2_000, 4_000, pytest.approx(20.0))
    assert clock.left() == pytest.approx(20.0)
    assert clock.share() == pytest.approx(13 / 15)


def test_fine_tuning_that_goes_on_from_a_save(tmp_path):
    """Two runs of 10,000 steps, then 1,000 and 4,000. The first was stopped within the second fine-tuning."""
    exams = "evaluations: {one: {env: {steps: 12}, finetune: 1_000}, two: {env: {steps: 14}, finetune: 4_000}}"
    (tmp_path / "registry.yaml").write_text(REGISTRY.replace("[0, 1, 2]", "[0, 1]") + exams)
    study, time = load(tmp_path / "registry.yaml"), Time()
    clock, run = Clock(study.runs, time), study.runs[0].id
    clock.start(run)
    clock.progress(run, "finetune: two", 3_000, {"steps_per_second": 100.0})
    time.now = 5.0
    clock.progress(run, "finetune: two", 3_500, {"steps_per_second": 100.0})
    assert clock.stage(run) == ("finetune: two", 3_500, 4_000, pytest.approx(5.0))
    assert clock.share() == pytest.approx(14.5 / 15 / 2)
    time.now = 10.0
    clock.end(run)
    assert clock.left() == pytest.approx(150.0), "15,000 steps at 1,000 in ten seconds"


def test_fine_tunings_of_a_single_update_each(tmp_path):
    exams = "evaluations: {one: {env: {steps: 12}, finetune: 1_000}, two: {env: {steps: 14}, finetune: 1_000}}"
    (tmp_path / "registry.yaml").write_text(REGISTRY.replace("[0, 1, 2]", "[0]") + exams)
    study, time = load(tmp_path / "registry.yaml"), Time()
    clock, run = Clock(study.runs, time), study.runs[0].id
    clock.start(run)
    for stage, step in (("policy", 10_000), ("finetune: one", 1_000), ("finetune: two", 1_000)):
        clock.progress(run, stage, step, {"steps_per_second": 100.0})
    assert clock.share() == pytest.approx(1.0)


def shown(study, loudness: str, terminal: bool) -> str:
    """Everything printed in the course of one run."""
    time, out = Time(), io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=160, highlight=False)
    run = study.runs[0].id
    metrics = {"reward": 1.5, "violation": 0.25, "steps_per_second": 1_000.0}
    with Display(study, console, loudness, time) as display:
        display.watch(run, "start", {"kind": "cell"})
        for time.now in range(1, 10):
            details = {"stage": "policy", "step": 1_000 * time.now, "metrics": metrics}
            display.watch(run, "progress", details)
        display.watch(run, "again", {"error": "the process died", "kind": "cell"})
        if terminal:
            display.watch(run, "start", {"kind": "cell"})
            display.watch(run, "progress", {"stage": "policy", "step": 9_000, "metrics": metrics})
            display._progress.refresh()
        result = {"summary": {"reward": 2.0, "violation": 0.5, "seconds": 9.0}}
        display.watch(run, "done", {"kind": "cell", "result": result})
    return out.getvalue()


def test_plain_and_quiet_where_there_is_no_terminal(study):
    assert shown(study, "normal", terminal=False).splitlines() == [
        "[0/3] a seed 0: the process died; it goes on from its last save",
        "[1/3] a seed 0: reward 2.00, violations 0.50, 9 s",
    ]
    assert shown(study, "quiet", terminal=False) == ""


def test_verbose_tells_every_few_seconds(study):
    lines = shown(study, "verbose", terminal=False).splitlines()
    assert lines[0] == "[0/3] a seed 0: starts"
    assert lines[1].startswith("[0/3] a seed 0: learning to act 1,000/10,000, 0:00:09 left, reward 1.50  Δ_C 0.25")
    assert sum("learning to act" in line for line in lines) == 2, "at 1 s and at 6 s"
    assert "all runs: 0:00:" in lines[2]


def test_on_a_terminal_every_run_has_stage_bar_and_time(study):
    out = shown(study, "normal", terminal=True)
    assert "all runs" in out
    assert "learning to act 9,000/10,000" in out
    assert "0:00:01 left" in out


def test_duration():
    assert duration(3_723.4) == "1:02:03 left"
    assert duration(None) == ""


def test_quiet_and_verbose_exclude_each_other(capsys):
    with pytest.raises(SystemExit) as stop:
        main([str(Path("registry.yaml")), "--quiet", "--verbose"])
    assert stop.value.code == MISTAKE
