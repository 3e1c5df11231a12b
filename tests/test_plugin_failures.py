"""A mistake in a plugin stays in its cell, and is told with whose it is and where."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from small_study import HEED, cells, lines

from framework.run import FAILED, MISTAKE, OK, main

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


def test_a_misspelt_import_is_told_whatever_the_plugin_is_called(tmp_path, monkeypatch, capsys):
    """Its file says another name, so nobody knows which name is missing: it is not a misspelt one."""
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text("import torhc\n")
    Path("s.yaml").write_text(
        "study: s\nplugins: [{path: mine.py}]\n"
        "experiments: {a: {env: ford, interpreter: keyreader, policy: mlp, optimizer: trpo}}\n"
    )
    assert main(["s.yaml", "--check"]) == MISTAKE
    told = capsys.readouterr().err
    assert "no interpreter plugin is called 'keyreader'; it may be in what could not be imported: " in told
    assert "mine.py: it imports 'torhc', and there is no module of that name" in told and "did you mean" not in told
