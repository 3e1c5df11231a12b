"""Whole studies through the command line: results, reuse, failure, observers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import framework
from framework.cell import run_from_dict
from framework.config import load
from framework.plugin_manager import PluginHost
from framework.run import FAILED, MISTAKE, OK, main
from framework.stages import interpreter_key

SMALL = """
study: small
training: {steps: 4_800, batch: 1_200, rows: 25, evaluation: {episodes: 100}}
seeds: [0]
"""
HEED = "  heed: {env: ford, interpreter: oracle, policy: mlp, optimizer: ppo_lagrangian}\n"


@pytest.fixture
def study(tmp_path, monkeypatch):
    """Write a registry (and plugin files) and run it; returns exit code and cells' folders."""
    monkeypatch.chdir(tmp_path)

    def run(experiments: str, *words: str, **plugins: str):
        for name, code in plugins.items():
            Path(f"{name}.py").write_text(textwrap.dedent(code))
        listed = "".join(f"  - path: {name}.py\n" for name in plugins)
        text = SMALL + (f"plugins:\n{listed}" if listed else "") + "experiments:\n" + experiments
        Path("registry.yaml").write_text(text)
        return main(["registry.yaml", "--workers", "1", *words])

    return run


def cells() -> dict[str, Path]:
    """Label -> folder."""
    return {json.loads((p / "run.json").read_text())["labels"][0]: p for p in Path("runs/cells").iterdir()}


def lines(folder: Path) -> list[dict]:
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in row.items() if "second" not in k} for row in rows]


def test_a_run_leaves_its_record_and_is_not_run_twice(study, capsys):
    assert study(HEED) == OK
    folder = cells()["heed"]
    record, result = (json.loads((folder / f"{name}.json").read_text()) for name in ("run", "result"))
    assert record["provenance"]["packages"]["torch"].startswith("2.")
    assert record["config"]["optimizer"]["clip"] == 0.2, "defaults are written out"
    assert result["summary"]["episodes"] == 100
    assert [row["step"] for row in lines(folder)] == [1200, 2400, 3600, 4800]
    assert "violation_h0" in lines(folder)[0]
    assert study(HEED) == OK
    assert "0 done, 1 finished before, 0 failed" in capsys.readouterr().out


def test_one_seed_one_result(study):
    """The same cell twice, bit for bit; another seed differs."""
    assert study(HEED, "--runs-dir", "runs") == OK
    assert study(HEED, "--runs-dir", "again") == OK
    assert study(HEED, "--runs-dir", "other", "seeds=[1]") == OK
    one, two, three = (next(Path(d, "cells").iterdir()) for d in ("runs", "again", "other"))
    assert (one / "policy.safetensors").read_bytes() == (two / "policy.safetensors").read_bytes()
    assert (one / "evaluation.safetensors").read_bytes() == (two / "evaluation.safetensors").read_bytes()
    assert lines(one) == lines(two)
    assert lines(one) != lines(three)


BROKEN = """
    from framework.hookspecs import hookimpl
    from plugins.interpreters.oracle import Oracle
    import os, signal

    class Raises(Oracle):
        name = "raises"
        def step(self, inputs, state):
            raise RuntimeError("cannot read this")

    class Dies(Oracle):
        name = "dies"
        def step(self, inputs, state):
            os.kill(os.getpid(), signal.SIGKILL)

    @hookimpl
    def heed_components():
        return [Raises, Dies]
"""


def test_failures_stay_in_their_cells(study, capsys):
    """One cell raises, one is killed; the third is done, the exit code is 1, and the words say what happened."""
    experiments = (
        "  raises: {env: ford, interpreter: raises, policy: mlp, optimizer: ppo_lagrangian}\n"
        "  dies: {env: ford, interpreter: dies, policy: mlp, optimizer: ppo_lagrangian}\n" + HEED
    )
    assert study(experiments, broken=BROKEN) == FAILED
    out = capsys.readouterr().out
    assert "1 done, 0 finished before, 2 failed" in out
    told = "RuntimeError: cannot read this (broken.py:9) [interpreter 'raises']"
    assert f"failed: raises (seed 0): {told}\n" in out.replace(f"{Path.cwd()}/", "")
    assert out.count("; tables in runs/small; open runs/small/report.html\n") == 1
    assert "failed: dies (seed 0): the process died (killed by signal 9)" in out
    assert "Traceback" not in out
    found = cells()
    assert "Traceback" in (found["raises"] / "log.txt").read_text(), "the log has it all"
    failure = json.loads((found["raises"] / "failure.json").read_text())
    assert failure["error"].replace(f"{Path.cwd()}/", "") == told
    assert (found["heed"] / "result.json").is_file()
    assert not (found["dies"] / "result.json").exists()


TIRED = """
    from framework.hookspecs import hookimpl
    from plugins.envs.ford import Ford

    class Tired(Ford):
        name = "tired"
        steps = 0
        def step(self, action):
            self.steps += 1
            if self.steps > 60:
                raise ConnectionError("simulator died")
            return super().step(action)

    @hookimpl
    def heed_components():
        return [Tired]
"""


def test_a_failure_in_the_middle_of_a_run_says_whose_and_where(study, capsys):
    assert study(HEED.replace("env: ford", "env: tired"), tired=TIRED) == FAILED
    out = capsys.readouterr().out.replace(f"{Path.cwd()}/", "")
    assert "failed: heed (seed 0): ConnectionError: simulator died (tired.py:11) [env 'tired']\n" in out
    assert "report.html" not in out, "there is none: nothing is finished"


BLIND = """
    import dataclasses, math
    from framework.hookspecs import hookimpl
    from plugins.interpreters.oracle import Oracle

    class Blind(Oracle):
        name = "blind"
        def step(self, inputs, state):
            seen, state = super().step(inputs, state)
            return dataclasses.replace(seen, mask=seen.mask * math.nan), state

    @hookimpl
    def heed_components():
        return [Blind]
"""


def test_a_mask_of_nan_fails_the_run_and_names_the_interpreter(study, capsys):
    assert study(HEED.replace("oracle", "blind"), blind=BLIND) == FAILED
    out = capsys.readouterr().out
    assert "failed: heed (seed 0): interpreter 'blind': mask is NaN or infinite\n" in out
    assert "Traceback" not in out


CARELESS = """
    import torch
    from torch import nn
    from framework.hookspecs import hookimpl
    from framework.interfaces import Interpretation
    from plugins.interpreters.oracle import Oracle
    from plugins.policies.mlp import MLP

    class Forgetful(Oracle):
        name = "forgetful"
        def __init__(self, config, spec):
            self.layer = nn.Linear(1, 1)

    class Signature(Oracle):
        name = "signature"
        def __init__(self, config):
            super().__init__(config, None)

    class Lookup(MLP):
        name = "lookup"
        def __init__(self, config, spec):
            super().__init__(config, spec)
            self.table = {}["size"]

    class Nothing(Oracle):
        name = "nothing"
        def step(self, inputs, state):
            return None

    class Stateless(Oracle):
        name = "stateless"
        def step(self, inputs, state):
            return super().step(inputs, state)[0]

    class Numpy(Oracle):
        name = "numpy"
        def step(self, inputs, state):
            seen, state = super().step(inputs, state)
            return Interpretation(seen.mask.numpy(), seen.threshold), state

    class Shape(Oracle):
        name = "shape"
        def step(self, inputs, state):
            seen, state = super().step(inputs, state)
            return Interpretation(seen.mask, seen.threshold[:, None]), state

    class Raises(Oracle):
        name = "raises"
        def step(self, inputs, state):
            return self.nowhere

    class Plain(Oracle):
        name = "plain"
        def __init__(self, config, spec):
            self.spec = spec

    @hookimpl
    def heed_components():
        return [Forgetful, Signature, Lookup, Nothing, Stateless, Numpy, Shape, Raises, Plain]
"""


@pytest.mark.parametrize(
    ("system", "message"),
    [
        (
            "interpreter: forgetful, policy: mlp",
            "cannot be built: AttributeError: cannot assign module before Module.__init__() call "
            "(careless.py:12) [interpreter 'forgetful']",
        ),
        (
            "interpreter: plain, policy: mlp",
            "cannot be built: its __init__ must first call super().__init__(config, spec) "
            "(careless.py:54) [interpreter 'plain']",
        ),
        (
            "interpreter: signature, policy: mlp",
            "cannot be built: TypeError: Signature.__init__() takes 2 positional arguments but 3 were given "
            "(careless.py:16) [interpreter 'signature']",
        ),
        (
            "interpreter: oracle, policy: lookup",
            "cannot be built: KeyError: 'size' (careless.py:23) [policy 'lookup']",
        ),
        (
            "interpreter: nothing, policy: mlp",
            "interpreter 'nothing': step must return (Interpretation, state), not NoneType",
        ),
        (
            "interpreter: stateless, policy: mlp",
            "interpreter 'stateless': step must return (Interpretation, state), not Interpretation",
        ),
        (
            "interpreter: numpy, policy: mlp",
            "interpreter 'numpy': mask must be a tensor of shape [25, 2, 3], not ndarray",
        ),
        (
            "interpreter: shape, policy: mlp",
            "interpreter 'shape': threshold must be a tensor of shape [25], not [25, 1]",
        ),
        (
            "interpreter: raises, policy: mlp",
            "AttributeError: 'Raises' object has no attribute 'nowhere' (careless.py:50) [interpreter 'raises']",
        ),
        (
            "interpreter: {plugin: reader, layers: 99}, policy: mlp",
            "[interpreter 'reader']",
        ),
    ],
)
def test_check_finds_mistakes_in_plugins_and_tells_where(study, capsys, system, message):
    env = "hazardworld_grid" if "reader" in system else "ford"
    registry = f"  heed: {{env: {env}, {system}, optimizer: ppo_lagrangian}}\n"
    assert study(registry, "--check", careless=CARELESS) == MISTAKE
    told = capsys.readouterr().err.replace(f"{Path.cwd()}/", "")
    assert told.startswith("heed: ")
    assert told.endswith(f"{message}\n")
    assert "Traceback" not in told


STILLBORN = """
    import os, multiprocessing
    if multiprocessing.parent_process() is not None:
        os.kill(os.getpid(), 9)
    from framework.hookspecs import hookimpl

    @hookimpl
    def heed_components():
        return []
"""


def test_a_worker_that_dies_before_it_reads_its_job_does_not_end_the_study(study, capsys):
    assert study(HEED, stillborn=STILLBORN) == FAILED
    assert "the process died (killed by signal 9)" in capsys.readouterr().out


SPOILT = """
    import dataclasses
    from framework.hookspecs import hookimpl
    from plugins.optimizers.ppo_lagrangian import PPOLagrangian

    class Spoilt(PPOLagrangian):
        name = "spoilt"
        calls = 0
        def update(self, rollout):
            self.calls += 1
            bad = rollout.advantage * float("nan") if self.calls == self.when else rollout.advantage
            return super().update(dataclasses.replace(rollout, advantage=bad))
        when = 2

    class Hopeless(Spoilt):
        name = "hopeless"
        def update(self, rollout):
            self.when = self.calls + 1
            return super().update(rollout)

    @hookimpl
    def heed_components():
        return [Spoilt, Hopeless]
"""


def test_an_update_that_makes_nan_is_undone_and_one_that_always_does_ends_the_run(study, capsys):
    experiments = (
        "  spoilt: {env: ford, interpreter: oracle, policy: mlp, optimizer: spoilt}\n"
        "  hopeless: {env: ford, interpreter: oracle, policy: mlp, optimizer: hopeless}\n"
    )
    assert study(experiments, "training.steps=6_000", spoilt=SPOILT) == FAILED
    assert "updates in a row made the policy's weights NaN or infinite" in capsys.readouterr().out
    rows = lines(cells()["spoilt"])
    assert [row.get("dropped_updates") for row in rows] == [None, 1.0, None, None, None], "it goes on as if nothing was"


def test_a_plugins_folder_in_the_working_directory_hides_nothing(tmp_path):
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "mine.py").write_text("x = 1\n")
    listed = subprocess.run(
        [sys.executable, "-m", "framework.run", "--list"], cwd=tmp_path, capture_output=True, text=True
    )
    assert "interpreter oracle" in listed.stdout, listed.stderr


def test_names_with_brackets_are_names(study, capsys):
    assert study(HEED.replace("heed:", '"heed [/ours]":')) == OK
    assert "heed [/ours]" in capsys.readouterr().out


OBSERVER = """
    from pathlib import Path
    from framework.hookspecs import RunObserver, hookimpl

    class Diary(RunObserver):
        def __init__(self, run):
            self.file = Path("diary.txt")
            self.write(f"start {run.labels[0]} {run.config['seed']}")
        def write(self, line):
            with self.file.open("a") as f:
                f.write(line + "\\n")
        def update(self, step, metrics):
            self.write(f"update {step} {'reward' in metrics}")
        def evaluate(self, stage, metrics):
            self.write(f"{stage} {metrics['episodes']:.0f}")
        def end(self, error):
            self.write(f"end {error}")

    class Clumsy(RunObserver):
        def update(self, step, metrics):
            raise KeyError("oops")

    @hookimpl
    def heed_observe(run):
        return Diary(run)
"""
CLUMSY = OBSERVER.replace("return Diary(run)", "return Clumsy()")
WORSE = OBSERVER.replace("return Diary(run)", "raise ValueError('no')")


def test_observers_see_start_updates_evaluation_and_end(study):
    assert study(HEED, diary=OBSERVER, clumsy=CLUMSY, worse=WORSE) == OK
    assert Path("diary.txt").read_text().splitlines() == [
        "start heed 0",
        "update 1200 True",
        "update 2400 True",
        "update 3600 True",
        "update 4800 True",
        "evaluation 100",
        "end None",
    ]
    log = (cells()["heed"] / "log.txt").read_text()
    assert log.count("clumsy.py raised KeyError: 'oops'; it is dropped") == 1


WORDLESS = """
    from framework.hookspecs import hookimpl
    from framework.interfaces import Explanation
    from plugins.interpreters.none import NoInterpreter

    class Wordless(NoInterpreter):
        name = "wordless"
        def explain(self, sentence):
            return Explanation("budgetary", text="no water")

    @hookimpl
    def heed_components():
        return [Wordless]
"""


def test_a_mistake_in_explain_costs_its_words_and_not_the_run(study):
    assert study(HEED.replace("oracle", "wordless"), wordless=WORDLESS) == OK
    folder = cells()["heed"]
    broken = json.loads((folder / "result.json").read_text())["broken"]
    assert broken and all(row["read_as"] is None for row in broken)
    log = (folder / "log.txt").read_text()
    assert log.count("interpreter 'wordless': explain raised TypeError: ") == 1, "once, not for every sentence"
    assert "wordless.py:9); its words are left out" in log


LEARNER = """
    import torch
    from torch import nn
    from framework.hookspecs import hookimpl
    from framework.interfaces import ConstraintInterpreter, Interpretation

    class Learner(ConstraintInterpreter):
        name = "learner"
        def __init__(self, config, spec):
            super().__init__(config, spec)
            self.words = nn.EmbeddingBag(1000, 8)
            self.threshold = nn.Linear(8, 1)
            self.cell = nn.Embedding(4, 1)
        def encode(self, sentences):
            ids = [[sum(map(ord, w)) % 1000 for w in s.split()] or [0] for s in sentences]
            return torch.stack([self.words(torch.tensor([i]))[0] for i in ids])
        def step(self, inputs, state):
            open("steps.txt", "a").write(".") if self.training else None
            mask = torch.sigmoid(self.cell(inputs.obs[..., 0].long())[..., 0])
            return Interpretation(mask, self.threshold(inputs.code)[:, 0]), state

    @hookimpl
    def heed_components():
        return [Learner]
"""


def test_a_learning_interpreter_is_trained_once_and_shared(study, capsys):
    experiments = (
        "  a: {env: ford, interpreter: learner, policy: mlp, optimizer: ppo_lagrangian}\n"
        "  b: {env: ford, interpreter: learner, policy: {plugin: mlp, hidden: [8]}, optimizer: ppo_lagrangian}\n"
    )
    assert (
        study(experiments, "training.interpreter.iterations=300", "training.interpreter.steps=20_000", learner=LEARNER)
        == OK
    )
    assert len(list(Path("runs/interpreters").glob("*.safetensors"))) == 1
    assert Path("steps.txt").stat().st_size == 300
    for folder in cells().values():
        assert lines(folder)[-1]["reward"] > 0
    assert "2 done, 0 finished" in capsys.readouterr().out


CLOSES = """
    from framework.hookspecs import hookimpl
    from plugins.envs.ford import Ford

    class Closes(Ford):
        name = "closes"
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            open("opened.txt", "a").write(".")
        def close(self):
            open("closed.txt", "a").write(".")

    @hookimpl
    def heed_components():
        return [Closes]
"""


def test_every_env_that_is_opened_is_closed(study):
    assert study(HEED.replace("env: ford", "env: closes"), closes=CLOSES) == OK
    assert Path("opened.txt").read_text() == Path("closed.txt").read_text() != ""


def test_settings_that_make_no_difference_to_stage_1_share_its_file(tmp_path):
    file = tmp_path / "registry.yaml"
    system = "env: hazardworld_grid, policy: random_walk, optimizer: fixed"
    readers = {"once": "", "often": ", readings: 16", "longer": ", steps: 700"}
    rows = [f"  {name}: {{{system}, interpreter: {{plugin: reader{more}}}}}\n" for name, more in readers.items()]
    file.write_text("training: {batch: 1_000, steps: 1_000}\nexperiments:\n" + "".join(rows))
    once, often, longer = (interpreter_key(run, PluginHost()) for run in load(file).runs)
    assert once == often != longer


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


def test_dry_run_and_only_write_nothing(study, capsys):
    assert study(HEED + HEED.replace("heed:", "other:"), "--dry-run", "--only", "oth*") == OK
    out = capsys.readouterr().out
    assert "other" in out
    assert "0 of 1" in out
    assert not os.path.exists("runs")


def test_only_may_be_given_several_times(study, capsys):
    grid = "ablations: {g: {base: heed, axes: {optimizer.clip: [0.1, 0.3]}}}\n"
    others = HEED.replace("heed:", "a:") + HEED.replace("heed:", "b:")
    assert study(HEED + others + grid, "--dry-run", "--only", "g/*", "--only", "a", "--only", "g/clip=0.1") == OK
    out = capsys.readouterr().out
    assert "small: 3 cells" in out
    assert [cell in out for cell in ("g/clip=0.1", "g/clip=0.3", " a ", " b ", " heed ")] == [True] * 3 + [False] * 2
    assert framework.load("registry.yaml").only("g/*", "b").cells == ["b", "g/clip=0.1", "g/clip=0.3"]


def test_huge_grid_with_yes_is_expanded(tmp_path):
    axes = ", ".join(
        f"optimizer.{k}: [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]" for k in ("clip", "kl_stop", "entropy", "multiplier")
    )
    file = tmp_path / "registry.yaml"
    file.write_text(f"experiments:\n{HEED}ablations: {{big: {{base: heed, axes: {{{axes}}}}}}}\n")
    assert len(load(file, max_cells=10**9).cells) == 7**4 + 1
