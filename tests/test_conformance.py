"""Every built-in plugin keeps its contract; and the kit sees each way in which an interpreter can break it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import torch
from drawing import cannot_draw
from torch import nn

from framework.check import main as check
from framework.errors import UserError
from framework.interfaces import (
    ConstraintInterpreter,
    Explanation,
    Interpretation,
)
from framework.plugin_manager import PluginHost
from framework.testing import ContractBroken, check_env, check_interpreter, check_optimizer, check_policy

CHECKS = {"interpreter": check_interpreter, "policy": check_policy, "optimizer": check_optimizer, "env": check_env}
ENTRIES = {f"{entry.kind} {entry.name}": entry for entry in PluginHost().catalog}


@pytest.mark.parametrize("name", ENTRIES)
def test_builtin(name):
    entry = ENTRIES[name]
    if entry.cls is None or entry.unavailable:
        pytest.skip(entry.unavailable)
    if "pixels" in name and (reason := cannot_draw()):
        pytest.skip(reason)
    if name == "env hazardworld_robot_pixels":
        assert check_env(entry.cls, entry.cls.Config(max_steps=15, side=8, train_maps=20, eval_maps=20))
    else:
        assert CHECKS[entry.kind](entry.cls)


class Fine(ConstraintInterpreter):
    """Keeps the contract: the base of the broken ones below."""

    name = "fine"

    def __init__(self, config, spec):
        super().__init__(config, spec)
        self.weight = nn.Parameter(torch.zeros(1))

    def encode(self, sentences):
        return torch.zeros(len(sentences), 1) + self.weight

    def step(self, inputs, state):
        rows = len(inputs.obs)
        mask = torch.sigmoid(inputs.code[:, :1]).expand(rows, 6).reshape(rows, 2, 3)
        return Interpretation(mask, inputs.code[:, 0]), state


class WrongShape(Fine):
    def step(self, inputs, state):
        seen, state = super().step(inputs, state)
        return Interpretation(seen.mask.flatten(1), seen.threshold), state


class Logits(Fine):
    def step(self, inputs, state):
        seen, state = super().step(inputs, state)
        return Interpretation(seen.mask - 3, seen.threshold), state


class KeepsMemoryOnSelf(Fine):
    calls = 0

    def step(self, inputs, state):
        self.calls += 1
        seen, state = super().step(inputs, state)
        return Interpretation(seen.mask, seen.threshold + self.calls), state


class UsesLabelsUndeclared(Fine):
    def step(self, inputs, state):
        return Interpretation(inputs.labels.mask[:, 0], inputs.labels.threshold[:, 0]), state


class ReturnsNothing(Fine):
    def step(self, inputs, state):
        super().step(inputs, state)


class ForgetsTheState(Fine):
    def step(self, inputs, state):
        return super().step(inputs, state)[0]


class ThreeThings(Fine):
    def step(self, inputs, state):
        return (*super().step(inputs, state), 0.5)


class StateIsNone(Fine):
    def step(self, inputs, state):
        return super().step(inputs, state)[0], None


class NumberForThreshold(Fine):
    def step(self, inputs, state):
        return Interpretation(super().step(inputs, state)[0].mask, 2.0), state


class Stumbles(Fine):
    def step(self, inputs, state):
        return None.anything


class RowsInfluenceEachOther(Fine):
    def step(self, inputs, state):
        seen, state = super().step(inputs, state)
        return Interpretation(seen.mask, seen.threshold + torch.arange(len(inputs.obs))), state


class DrawsItsOwnSeed(Fine):
    def __init__(self, config, spec):
        super().__init__(config, spec)
        generator = torch.Generator()
        generator.seed()
        self.weight.data = torch.rand(1, generator=generator)


class HiddenWeights(Fine):
    def __init__(self, config, spec):
        super().__init__(config, spec)
        self.secret = torch.rand(1)

    def step(self, inputs, state):
        seen, state = super().step(inputs, state)
        return Interpretation(seen.mask, seen.threshold + self.secret), state


class NoGradient(Fine):
    def encode(self, sentences):
        return super().encode(sentences).detach()


class UnusedParameter(Fine):
    def __init__(self, config, spec):
        super().__init__(config, spec)
        self.spare = nn.Linear(2, 2)


class ChangesObservation(Fine):
    def step(self, inputs, state):
        inputs.obs[:] = 0
        return super().step(inputs, state)


class StumblesOnEmpty(Fine):
    def encode(self, sentences):
        [sentence.split()[0] for sentence in sentences]
        return super().encode(sentences)


class TrespassByCell(Fine):
    def step(self, inputs, state):
        seen, state = super().step(inputs, state)
        return Interpretation(seen.mask, seen.threshold, trespass=seen.mask), state


def answering(**changes):
    """An interpreter that is fine but for these parts of its answer."""

    class Answers(Fine):
        def step(self, inputs, state):
            seen, state = super().step(inputs, state)
            parts = {name: change(seen) for name, change in changes.items()}
            return dataclasses.replace(seen, **parts), state

    return Answers


class NoSuper(Fine):
    def __init__(self, config, spec):
        self.config, self.spec = config, spec


NAN = float("nan")
DOUBLE = "float64; it must be float32; torch.from_numpy keeps numpy's float64: add .float()"


@pytest.mark.parametrize(
    ("cls", "words"),
    [
        (answering(mask=lambda seen: seen.mask.double()), f"mask is {DOUBLE}"),
        (answering(threshold=lambda seen: seen.threshold.double()), f"threshold is {DOUBLE}"),
        (answering(mask=lambda seen: seen.mask > 0.5), "mask is bool; it must be float32; add .float()"),
        (answering(mask=lambda seen: seen.mask * NAN), "mask is NaN or infinite"),
        (answering(confidence=lambda seen: seen.threshold * NAN), "confidence is NaN or infinite"),
        (
            answering(confidence=lambda seen: seen.threshold * 0 + 5),
            "confidence has values outside [0, 1]: it holds probabilities, not logits",
        ),
        (answering(confidence=lambda seen: 0.5), "confidence is float, but must be a tensor, or None"),
        (answering(trespass=lambda seen: seen.threshold * NAN), "trespass is NaN or infinite"),
        (NoSuper, "its __init__ must first call super().__init__(config, spec)"),
    ],
)
def test_kit_names_what_is_wrong_with_the_numbers_and_nothing_else(cls, words):
    with pytest.raises(ContractBroken) as caught:
        check_interpreter(cls, env="ford")
    assert caught.value.faults == [words]


class OneCodeForAll(Fine):
    def encode(self, sentences):
        return super().encode(sentences)[:1]


@pytest.mark.parametrize(
    ("cls", "words"),
    [
        (WrongShape, "mask has shape (6, 6); it must be [rows, *cells] = (6, 2, 3)"),
        (Logits, "mask has values outside [0, 1]"),
        (KeepsMemoryOnSelf, "it keeps memory on self"),
        (UsesLabelsUndeclared, "declare needs_labels = True"),
        (RowsInfluenceEachOther, "the rows of a batch influence each other"),
        (DrawsItsOwnSeed, "it draws from a random source of its own"),
        (HiddenWeights, "state_dict does not round-trip"),
        (NoGradient, "loss has no gradient"),
        (UnusedParameter, "the loss gives no gradient to: spare.weight, spare.bias"),
        (ChangesObservation, "step changes the observation in place"),
        (StumblesOnEmpty, "encode takes odd sentences"),
        (TrespassByCell, "trespass must have shape (6,)"),
        (OneCodeForAll, "encode(8 sentences) must return a tensor whose first size is 8"),
    ],
)
def test_kit_sees_broken_interpreter(cls, words):
    with pytest.raises(ContractBroken) as caught:
        check_interpreter(cls, env="ford")
    assert words.replace("\n", " ") in str(caught.value).replace("\n", " ")


class PlainWords(Fine):
    def explain(self, sentence):
        return "no lava"


class HalfAnExplanation(Fine):
    def explain(self, sentence):
        return Explanation("budgetary", text=sentence)


class TensorForWords(Fine):
    def explain(self, sentence):
        return Explanation("budgetary", sentence, torch.ones(()))


@pytest.mark.parametrize(
    ("cls", "words"),
    [
        (PlainWords, "explain must return an Explanation or None, not str"),
        (HalfAnExplanation, "explain returns an Explanation or None: raised TypeError"),
        (TensorForWords, "explain: constraint of the Explanation must not be Tensor"),
    ],
)
def test_kit_sees_words_that_are_no_explanation(cls, words):
    with pytest.raises(ContractBroken) as caught:
        check_interpreter(cls, env="ford")
    assert len(caught.value.faults) == 1 and caught.value.faults[0].startswith(words)


def test_kit_says_that_explain_was_tried():
    class Explains(Fine):
        def explain(self, sentence):
            return Explanation("budgetary", sentence, 1.0, {"lava": 2}) if sentence else None

    assert check_interpreter(Explains, env="ford")[-1] == "explain returns an Explanation or None"
    assert "explain returns an Explanation or None" not in check_interpreter(Fine, env="ford"), "nothing to try"


PAIR = "step must return an Interpretation and the state: return Interpretation(mask, threshold), state; "


@pytest.mark.parametrize(
    ("cls", "words"),
    [
        (ReturnsNothing, PAIR + "got NoneType"),
        (ForgetsTheState, PAIR + "got Interpretation"),
        (ThreeThings, PAIR + "got (Interpretation, tuple, float)"),
        (StateIsNone, PAIR + "its state is NoneType, but must be a tuple of tensors, () for no memory"),
        (NumberForThreshold, "threshold is float, but must be a tensor"),
        (Stumbles, "raised AttributeError: 'NoneType' object has no attribute 'anything'"),
    ],
)
def test_kit_says_what_step_returned_and_does_not_guess(cls, words):
    with pytest.raises(ContractBroken) as caught:
        check_interpreter(cls, env="ford")
    (fault,) = caught.value.faults
    assert words in fault
    assert "needs_labels" not in fault


def test_the_check_of_a_file_is_about_that_file(capsys):
    assert check([str(Path(__file__).parent.parent / "plugins" / "optimizers" / "cpo.py")]) == 0
    heads = [line.split("  ")[0] for line in capsys.readouterr().out.splitlines() if not line.startswith(" ")]
    assert heads == ["optimizer cpo"]


def test_an_env_that_is_not_there_is_no_fault_of_the_plugin(capsys):
    assert check(["oracle", "--env", "fort"]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "no env plugin is called 'fort'; did you mean 'ford'?\n")
    with pytest.raises(UserError, match="no env plugin is called 'fort'"):
        check_interpreter(Fine, env="fort")


def test_the_check_says_where_and_takes_an_env_from_a_file(tmp_path, capsys):
    assert check(["none"]) == 0
    assert "it can be built for env 'ford', where all this is tried" in capsys.readouterr().out
    file = tmp_path / "my_ford.py"
    file.write_text(
        "from framework.hookspecs import hookimpl\nfrom plugins.envs.ford import Ford\n"
        "class MyFord(Ford):\n    name = 'my_ford'\n"
        "@hookimpl\ndef heed_components():\n    return [MyFord]\n"
    )
    assert check(["none", "--env", "my_ford", "--plugin", str(file)]) == 0
    assert "it can be built for env 'my_ford', where all this is tried" in capsys.readouterr().out
    with pytest.raises(ContractBroken, match="breaks its contract in env 'ford':"):
        check_interpreter(Logits, env=ENTRIES["env ford"].cls)


def test_kit_passes_the_fine_one():
    assert check_interpreter(Fine, env="ford")


def test_an_entity_that_is_not_there_is_told_with_those_that_are(tmp_path, capsys):
    (tmp_path / "lava_reader.py").write_text(
        "from framework.hookspecs import hookimpl\n"
        "from framework.interfaces import ConstraintInterpreter, Interpretation\n"
        "import torch\n\n"
        "class LavaReader(ConstraintInterpreter):\n"
        "    name = 'lava_reader'\n\n"
        "    def encode(self, sentences):\n"
        "        return torch.zeros(len(sentences), 1)\n\n"
        "    def step(self, inputs, state):\n"
        "        lava = inputs.obs[..., 0] == self.spec.code_of('lava')\n"
        "        return Interpretation(lava.float(), inputs.code[:, 0]), state\n\n"
        "@hookimpl\n"
        "def heed_components():\n"
        "    return [LavaReader]\n"
    )
    file = str(tmp_path / "lava_reader.py")
    assert check([file]) == 1
    said = capsys.readouterr().out
    assert "no entity is called 'lava' here; known: bridge, grass, post, water" in said
    assert "--env NAME tries it there" in said
    assert check([file, "--env", "hazardworld_grid"]) == 0
    assert "--env NAME" not in capsys.readouterr().out
    assert check([file, "--env", "hazardworld_robot"]) == 1
    assert "no entity has a code here: the observation is no grid of codes" in capsys.readouterr().out
