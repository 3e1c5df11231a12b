"""What names a run: which cells are one, and what of a registry and its files makes another run."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest
from small_study import HEED, SMALL

from framework.cell import run_from_dict
from framework.config import load
from framework.plugin_manager import PluginHost
from framework.run import MISTAKE
from framework.stages import interpreter_key


def test_cells_that_grids_share_run_once():
    text = (
        SMALL
        + "experiments:\n"
        + HEED
        + textwrap.dedent("""
        ablations:
          a: {base: heed, axes: {optimizer.clip: [0.2, 0.3], policy.uses.mask: [true, false]}}
          b: {base: heed, variants: {wide: {policy.hidden: [256]}, same: {optimizer.clip: 0.3}}}
          c: {base: heed, axes: {optimizer.clip: [0.2, 0.4]}, exclude: [{optimizer.clip: 0.4}], seeds: [0, 1]}
    """)
    )
    file = Path("shared.yaml")
    file.write_text(text)
    try:
        found = load(file)
    finally:
        file.unlink()
    assert [cell.label for cell in found.cells] == [
        "heed", "a/clip=0.2,mask=true", "a/clip=0.2,mask=false", "a/clip=0.3,mask=true", "a/clip=0.3,mask=false",
        "b/heed", "b/wide", "b/same", "c/clip=0.2",
    ]  # fmt: skip
    assert [cell.label for cell in found.cells if cell.baseline] == ["a/clip=0.2,mask=true", "b/heed", "c/clip=0.2"]
    assert len(found.runs) == 6
    assert found.runs[0].labels == ("heed", "a/clip=0.2,mask=true", "b/heed", "c/clip=0.2")
    assert found.runs[2].labels == ("a/clip=0.3,mask=true", "b/same")


@pytest.mark.parametrize("baseline", ["heed", "wide", "{optimizer.clip: 0.3}"])
def test_a_grid_of_axes_and_variants_has_the_baseline_that_is_named(baseline, tmp_path):
    file = tmp_path / "both.yaml"
    grid = "{base: heed, axes: {optimizer.clip: [0.2, 0.3]}, variants: {wide: {policy.hidden: [256]}}, baseline: %s}"
    file.write_text(f"{SMALL}experiments:\n{HEED}\nablations:\n  both: {grid % baseline}\n")
    named = baseline if baseline.isalpha() else "clip=0.3"
    assert [cell.name for cell in load(file).cells if cell.baseline] == [named]


def test_run_ids_do_not_drift(tmp_path):
    """Equal content, equal id, whatever the order of keys, anchors, or where a component is named."""
    one = (
        "experiments:\n"
        "  x: {env: ford, interpreter: oracle, policy: {plugin: mlp, hidden: [8]}, optimizer: ppo_lagrangian}\n"
    )
    two = (
        "components: {policies: {tiny: {plugin: mlp, hidden: [8]}}}\n"
        "experiments:\n"
        "  y: {optimizer: ppo_lagrangian, policy: tiny, interpreter: oracle, env: {plugin: ford, steps: 24}}\n"
    )
    ids = []
    for i, text in enumerate((one, two)):
        file = tmp_path / f"{i}.yaml"
        file.write_text(text)
        ids.append(load(file).runs[0].id)
    assert ids[0] == ids[1]


def test_an_override_sets_a_component_that_is_given_by_name_as_an_axis_does(tmp_path):
    file = tmp_path / "registry.yaml"
    file.write_text(
        "components: {optimizers: {careful: {plugin: ppo_lagrangian, clip: 0.1}}}\n"
        "experiments: {x: {env: ford, interpreter: oracle, policy: mlp, optimizer: careful}}\n"
        "ablations: {g: {base: x, axes: {optimizer.epochs: [3]}}}\n"
        "observers: [csv]\n"
    )
    changed = load(file, ["experiments.x.optimizer.epochs=3", "experiments.x.policy.hidden=[64, 64]"])
    assert changed.cells[0].cell.optimizer.config.clip == 0.1, "it is still the component of that name"
    assert changed.cells[0].cell.optimizer.config.epochs == 3
    changed = load(file, ["experiments.x.optimizer.epochs=3"])
    by_axis = next(cell for cell in load(file).cells if cell.group == "g")
    assert changed.cells[0].runs()[0].id == by_axis.runs()[0].id


TEXTS = {"train": '{"lava0": ["No lava"], "water1": ["Water once"]}', "test": '{"lava0": ["Lava? Never"]}'}


@pytest.mark.parametrize("env", ["hazardworld_grid", "lavawall", "hazardworld_robot"])
@pytest.mark.parametrize("split", ["train", "test"])
def test_sentences_of_ones_own_are_part_of_what_names_a_run(env, split, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if PluginHost().catalog.get("env", env).unavailable:
        pytest.skip("not installed")
    system = "interpreter: naive_bayes, policy: random_walk, optimizer: fixed"
    Path("r.yaml").write_text(f"experiments:\n  x: {{{system}, env: {{plugin: {env}, texts: mine}}}}\n")
    host, texts = PluginHost(), Path("mine")

    def names():
        run = load(Path("r.yaml")).runs[0]
        assert run_from_dict(json.loads(json.dumps(run.as_dict())), host.catalog).id == run.id, "the same in a worker"
        return run.id, interpreter_key(run, host)

    absent = names()
    texts.mkdir()
    for name, text in TEXTS.items():
        (texts / f"budgetary-{name}.json").write_text(text)
    first = names()
    (texts / "relational-train.json").write_text("{}")
    (texts / "notes.txt").write_text("not read")
    assert names() == first, "what is not read makes no difference"
    (texts / f"budgetary-{split}.json").write_text(TEXTS[split].replace("lava0", "grass0"))
    other = names()
    for one, two in ((absent, first), (first, other)):
        assert one[0] != two[0], "runs"
        assert one[1] != two[1], "interpreters"
    (texts / f"budgetary-{split}.json").write_text(TEXTS[split])
    assert names() == first


def test_a_texts_folder_that_is_not_there_is_told_as_ever(study, capsys):
    system = "interpreter: oracle, policy: polco_grid, optimizer: pcpo"
    assert study(f"  x: {{{system}, env: {{plugin: hazardworld_grid, texts: absent}}}}\n", "--check") == MISTAKE
    told = "absent/budgetary-train.json: no such file (a texts folder holds <kind>-train.json and <kind>-test.json)"
    assert capsys.readouterr().err == f"x: {Path.cwd()}/{told} [env 'hazardworld_grid']\n"


def test_a_texts_folder_is_beside_the_registry_and_a_run_has_one_name_on_every_machine(tmp_path, monkeypatch):
    system = "interpreter: naive_bayes, policy: random_walk, optimizer: fixed"
    body = f"experiments:\n  x: {{{system}, env: {{plugin: hazardworld_grid, texts: mine}}}}\n"
    grid = "ablations:\n  g: {base: x, axes: {env.texts: [mine, ../two/mine]}}\n"
    runs = []
    for folder in (tmp_path / "one", tmp_path / "two"):
        (folder / "mine").mkdir(parents=True)
        for name, text in TEXTS.items():
            (folder / "mine" / f"budgetary-{name}.json").write_text(text)
        (folder / "r.yaml").write_text(body + grid)
    monkeypatch.chdir(tmp_path)  # neither
    for folder in (tmp_path / "one", tmp_path / "two"):
        study = load(folder / "r.yaml")
        assert study.cells[0].cell.env.config.texts == str(folder / "mine")
        runs.append([run.id for run in study.runs])
    assert runs[0] == runs[1]
    assert len(runs[0]) == 1, "equal files are the same sentences, wherever they are"


def test_a_digest_that_raises_is_told(study, capsys):
    plugin = """
        from framework.hookspecs import hookimpl
        from plugins.envs.ford import Ford

        class Odd(Ford):
            name = "odd"

            @classmethod
            def content(cls, config):
                raise KeyError("what")

        @hookimpl
        def heed_components():
            return [Odd]
    """
    system = "  x: {env: odd, interpreter: oracle, policy: mlp, optimizer: ppo_lagrangian}\n"
    assert study(system, "--check", odd=plugin) == MISTAKE
    assert "experiments.x.env: content() raised KeyError: 'what' [env 'odd' (" in capsys.readouterr().err
