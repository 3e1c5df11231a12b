"""Further safety evaluations: another reward with fine-tuning, several constraints, other densities."""

from __future__ import annotations

import csv
import dataclasses
import json
import shutil
from pathlib import Path

import pytest
import torch

from framework import builder, checkpoint, stages
from framework.config import load
from framework.plugin_manager import PluginHost
from framework.run import MISTAKE, OK, main

REGISTRY = """
study: exams
training: {steps: 800, batch: 400, rows: 10, evaluation: {episodes: 20, reading_steps: 100}}
components:
  envs:
    small: {plugin: hazardworld_grid, train_maps: 30, eval_maps: 20, max_steps: 40}
experiments:
  polco: {env: small, interpreter: oracle, policy: polco_grid, optimizer: pcpo}
  random walk: {env: small, interpreter: none, policy: random_walk, optimizer: fixed}
"""
EXAMS = """
evaluations:
  transfer: {env: {reward: transfer}, finetune: 800}
  three constraints: {env: {constraints: 3}}
  greedy: {greedy: true, episodes: 10}
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def go(text, *words):
        Path("registry.yaml").write_text(text)
        return main(["registry.yaml", "--workers", "1", *words])

    return go


def exams() -> dict[tuple[str, str], dict]:
    """(plugin of the policy, name) -> result."""
    files = Path("runs/cells").glob("*/evaluations/*/result.json")
    results = [json.loads(file.read_text()) for file in files]
    return {(result["id"].split("-")[2], result["evaluation"]["name"]): result for result in results}


def episodes(policy: str, name: str) -> dict[str, torch.Tensor]:
    """What an evaluation stored of each episode."""
    key = next(
        file.parent
        for file in Path("runs/cells").glob(f"*{policy}*/evaluations/*/result.json")
        if json.loads(file.read_text())["evaluation"]["name"] == name
    )
    return checkpoint.load(key / "evaluation.safetensors")[0]


def test_every_system_goes_through_every_evaluation(run, capsys):
    assert run(REGISTRY + EXAMS) == OK, capsys.readouterr().out
    found = exams()
    assert len(found) == 6
    transfer = found["polco_grid", "transfer"]["summary"]
    assert transfer["episodes"] == 20
    assert transfer["learning_episodes"] >= 10
    assert "learning_episodes" not in found["random_walk", "transfer"]["summary"], "nothing to fine-tune"
    assert "learning_episodes" not in found["polco_grid", "three constraints"]["summary"]
    assert found["polco_grid", "greedy"]["summary"]["episodes"] == 10
    played = {name: episodes("polco_grid", name) for name in ("transfer", "three constraints", "greedy")}
    assert played["three constraints"]["cost"].shape == (20, 3)
    assert played["greedy"]["cost"].shape == (10, 1)
    assert float(played["transfer"]["ceiling"].max()) == 3, "ball and box; the key is worth -3 now"
    assert float(played["greedy"]["ceiling"].max()) == 6
    shown = capsys.readouterr().out
    assert "three constraints" in shown
    rows = list(csv.DictReader(Path("runs/exams/acting-transfer.csv").read_text().splitlines()))
    assert [row["system"] for row in rows] == ["polco", "random walk"]


def test_fine_tuning_starts_from_the_trained_policy_and_keeps_it(run):
    run(REGISTRY + EXAMS)
    (cell,) = (p.parent for p in Path("runs/cells").glob("*polco_grid*/result.json"))
    tuned = next(cell.glob("evaluations/*/policy.safetensors"))
    assert tuned.read_bytes() != (cell / "policy.safetensors").read_bytes()
    steps = [json.loads(line)["step"] for line in (tuned.parent / "metrics.jsonl").read_text().splitlines()]
    assert steps == [400, 800]


def test_an_evaluation_that_is_added_later_trains_nothing_anew(run):
    assert run(REGISTRY) == OK
    cells = sorted(Path("runs/cells").iterdir())
    before = [(cell / "result.json").stat().st_mtime_ns for cell in cells]
    assert run(REGISTRY + EXAMS) == OK
    assert sorted(Path("runs/cells").iterdir()) == cells
    assert [(cell / "result.json").stat().st_mtime_ns for cell in cells] == before
    assert len(exams()) == 6


@pytest.mark.parametrize(
    ("exam", "message"),
    [
        ("{env: {rewrd: transfer}}", "did you mean 'reward'?"),
        ("{env: {constraints: 99}}", "constraints"),
        ("{env: {plugin: ford}}", "changes the env's settings, not the env"),
        ("{finetune: 500}", "multiple of training.batch (400)"),
        ("{finetune: -1}", "at least 0"),
        ("{fine_tune: 400}", "did you mean 'finetune'?"),
        ("3", "expected a mapping"),
    ],
)
def test_mistakes_are_told_with_their_place(run, capsys, exam, message):
    assert run(REGISTRY + f"\nevaluations:\n  wrong: {exam}\n") == 2
    said = capsys.readouterr().err
    assert "evaluations.wrong" in said
    assert message in said
    assert not Path("runs/cells").exists()


def test_an_evaluation_can_be_for_some_systems_only(run, capsys):
    only = REGISTRY + "evaluations:\n  greedy: {greedy: true, systems: [pol*]}\n"
    assert run(only) == OK
    assert set(exams()) == {("polco_grid", "greedy")}
    assert run(only.replace("pol*", "plco"), "--check") == MISTAKE
    assert "registry.yaml:11: evaluations.greedy.systems.0: no system is called 'plco'" in capsys.readouterr().err


def test_violations_in_sight_are_those_that_the_true_mask_showed(run):
    """Keeping three steps away from something one step past the view cannot be foreseen; stepping on it can."""
    relational = REGISTRY.replace("max_steps: 40", "max_steps: 40, constraint: relational")
    assert run(relational) == OK
    tensors, _ = checkpoint.load(next(Path("runs/cells").glob("*random*/evaluation.safetensors")))
    assert bool((tensors["cost_in_sight"] <= tensors["cost"]).all())
    assert float(tensors["cost_in_sight"].sum()) < float(tensors["cost"].sum())


def test_in_sight_is_everything_where_the_mask_shows_all(run):
    assert run(REGISTRY) == OK
    tensors, _ = checkpoint.load(next(Path("runs/cells").glob("*random*/evaluation.safetensors")))
    assert float(tensors["cost"].sum()) > 0
    assert torch.equal(tensors["cost_in_sight"], tensors["cost"])


def test_fine_tuning_starts_from_a_softened_policy(run):
    """Softened to nothing, the first batch is nearly uniform; as it is, it is not."""
    exams_ = "evaluations:\n  sure: {env: {reward: transfer}, finetune: 400, soften: 1, systems: [polco]}\n"
    exams_ += "  open: {env: {reward: transfer}, finetune: 400, soften: 0, systems: [polco]}\n"
    assert run(REGISTRY.replace("steps: 800", "steps: 8_000") + exams_) == OK
    entropy = {}
    for file in Path("runs/cells").glob("*polco*/evaluations/*/result.json"):
        first = json.loads((file.parent / "metrics.jsonl").read_text().splitlines()[0])
        entropy[json.loads(file.read_text())["evaluation"]["name"]] = first["entropy"]
    assert entropy["open"] > 1.36  # log 4 is 1.386, less one step of the trust region
    assert entropy["sure"] < entropy["open"] - 0.005


AFTER = (
    EXAMS
    + """
  transfer, greedy: {after: transfer, greedy: true, episodes: 10}
  transfer, two at once: {after: transfer, env: {constraints: 2}}
"""
)


def test_an_evaluation_goes_on_with_what_another_one_fine_tuned(run):
    """In its env, with its weights; a random walk has none of its own to go on with."""
    assert run(REGISTRY + AFTER) == OK
    found = exams()
    assert len(found) == 2 * 5
    assert "learning_episodes" not in found["polco_grid", "transfer, greedy"]["summary"], "nothing is trained anew"
    greedy, two = (episodes("polco_grid", f"transfer, {name}") for name in ("greedy", "two at once"))
    assert float(greedy["ceiling"].max()) == 3, "the key is worth -3 there"
    assert two["cost"].shape == (20, 2) and float(two["ceiling"].max()) == 3


def test_it_plays_with_the_fine_tuned_weights(run):
    """Other weights in the fine-tuned policy's place are what an evaluation after it plays with."""
    assert run(REGISTRY + EXAMS) == OK
    (tuned,) = Path("runs/cells").glob("*polco_grid*/evaluations/*/policy.safetensors")
    weights, _ = checkpoint.load(tuned)
    checkpoint.save(tuned, {name: torch.zeros_like(value) for name, value in weights.items()}, {})
    assert run(REGISTRY + AFTER) == OK
    greedy = episodes("polco_grid", "transfer, greedy")
    assert float(greedy["length"].min()) == 40, "of four equal actions it takes the first, to the wall and for ever"


@pytest.mark.parametrize(
    ("exams_", "message"),
    [
        ("{first: {after: trnsfer}, transfer: {finetune: 400}}", "first.after: no evaluation is called 'trnsfer'; did"),
        ("{first: {after: transfer}, transfer: {finetune: 400}}", "first.after: 'transfer' has to stand before"),
        (
            "{plain: {}, second: {after: plain}}",
            "second.after: 'plain' does not fine-tune, so there is nothing to go on",
        ),
        ("{one: {after: one}}", "one.after: an evaluation cannot go on from itself"),
        (
            "{a: {finetune: 400}, b: {after: a}, c: {after: b}}",
            "c.after: 'b' does not fine-tune; it goes on from 'a', so",
        ),
        ("{b: {after: plain}, plain: {}}", "b.after: 'plain' has to stand before 'b'"),
        ("{b: {after: plain}, plain: {}}", "b.after: 'plain' does not fine-tune, so"),
        (
            "{a: {finetune: 400, systems: [polco]}, b: {after: a, systems: [random*]}}",
            "b.systems: none of these systems goes",
        ),
        ("{a: {finetune: 400}, b: {after: a, soften: 0.5}}", "b.soften: 'soften' is for evaluations with 'finetune'"),
        ("{a: {finetune: 450}, b: {after: a, env: {stepz: 3}}}", "b.env.stepz: unknown key 'stepz'"),
        ("{a: {finetune: 400}, b: {after: a, finetune: 400}}", "b.finetune: 'finetune' and 'after' exclude each other"),
    ],
)
def test_after_what_cannot_be_gone_on_from(run, capsys, exams_, message):
    assert run(REGISTRY + f"\nevaluations: {exams_}\n", "--check") == MISTAKE
    assert f"evaluations.{message}" in capsys.readouterr().err


def test_what_an_evaluation_goes_on_from_is_part_of_its_name(tmp_path):
    """Or figures of the policy as it was trained could be taken for those of the fine-tuned one."""

    def keys(soften: float) -> dict[str, str]:
        tuned = f"tuned: {{env: {{reward: transfer}}, finetune: 400, soften: {soften}}}"
        after = "after: {after: tuned, greedy: true}, plain: {env: {reward: transfer}, greedy: true}"
        (tmp_path / "s.yaml").write_text(f"{REGISTRY}evaluations: {{{tuned}, {after}}}\n")
        run = load(tmp_path / "s.yaml").runs[0]
        return {exam.name: exam.key for exam in run.exams}

    little, much = keys(0.5), keys(0.1)
    assert little["after"] != little["plain"]
    assert little["plain"] == much["plain"]
    assert little["tuned"] != much["tuned"] and little["after"] != much["after"]


@pytest.mark.parametrize("plugin", ["hazardworld_grid", "lavawall", "hazardworld_robot", "safety_point"])
def test_fine_tuning_plays_other_maps_than_the_evaluation(plugin):
    """An agent must not be examined on what it was fine-tuned with."""
    catalog = PluginHost().catalog
    cls = catalog.get("env", plugin).cls
    settings = cls.Config()
    other = cls.other_maps(settings)
    assert dataclasses.replace(other, map_seed=settings.map_seed) == settings, "nothing else differs"
    worlds = [
        cls(dataclasses.replace(config, eval_maps=20), rows=20, split="eval", seed=0) for config in (settings, other)
    ]
    first, second = (world.reset().obs.flatten(1) for world in worlds)
    alike = (first[:, None] == second[None]).all(-1).any(-1).float().mean()
    assert alike < (0.5 if plugin == "lavawall" else 0.01), "of a lava wall little is in view at first"


def test_a_run_is_fine_tuned_on_those_maps_and_examined_on_its_own(run, monkeypatch):
    built = []
    original = stages.build_env

    def recorded(module):
        make = module.build_env

        def build_env(cell, *words, **named):
            built.append((cell.env.config.reward, cell.env.config.map_seed))
            return make(cell, *words, **named)

        monkeypatch.setattr(module, "build_env", build_env)

    Path("registry.yaml").write_text(REGISTRY + EXAMS)
    study = load(Path("registry.yaml"), [])
    (polco,) = (spec for spec in study.runs if "polco" in spec.labels)
    recorded(builder)  # what ``build`` makes: for training, and for fine-tuning
    monkeypatch.setattr(stages, "build_env", original)
    stages.run_cell(polco, Path("runs"), study.host)
    assert ("transfer", 1) in built and ("transfer", 0) not in built
    built.clear()
    recorded(stages)  # what evaluations make
    shutil.rmtree("runs")
    stages.run_cell(polco, Path("runs"), study.host)
    assert ("transfer", 0) in built


SHARED = """
study: shared
training: {steps: 400, batch: 400, rows: 10, evaluation: {episodes: 20, reading_steps: 100}}
experiments:
  base: {env: ford, interpreter: oracle, policy: mlp, optimizer: ppo_lagrangian}
ablations:
  grid: {base: base, variants: {narrow: {policy.hidden: [8]}}}
evaluations:
  short: {systems: [base], episodes: 10}
  brief: {systems: ["grid/*"], episodes: 10}
  long: {systems: ["grid/*"], episodes: 30}
"""


def test_a_run_that_two_cells_share_goes_through_the_evaluations_of_both(run):
    """base and grid/base are one run; short and brief are one evaluation under two names."""
    assert run(SHARED, "--quiet") == OK
    found = load(Path("registry.yaml"))
    assert [[exam.name for exam in spec.exams] for spec in found.runs] == [
        ["short", "brief", "long"],
        ["brief", "long"],
    ]
    assert len(list(Path("runs/cells").glob("*/evaluations/*/result.json"))) == 2 + 2
    shown = {}
    for name in ("short", "brief", "long"):
        rows = csv.DictReader(Path(f"runs/shared/acting-{name}.csv").read_text().splitlines())
        shown[name] = [row["system"] for row in rows]
    assert shown == {"short": ["base"], "brief": ["base", "narrow"], "long": ["base", "narrow"]}
