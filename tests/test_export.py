"""Exported policies give what the policy gives; what cannot be exported is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from framework import export as module
from framework.builder import build
from framework.config import load
from framework.errors import UserError
from framework.export import INPUTS, Step, _walk, export
from framework.trained import Trained

REGISTRY = """
experiments:
  e: {{env: {env}, interpreter: none, policy: {policy}, optimizer: fixed}}
"""


def untrained(folder: Path, env: str, policy: str) -> Trained:
    """Weights do not matter here."""
    (folder / "r.yaml").write_text(REGISTRY.format(env=env, policy=policy))
    study = load(folder / "r.yaml")
    system = build(study.runs[0].cell, 0, study.host.catalog)
    system.env.close()
    return Trained(study.runs[0], study.host, system.interpreter.eval(), system.policy.requires_grad_(False).eval())


@pytest.mark.parametrize(
    ("env", "policy"), [("ford", "mlp"), ("hazardworld_grid", "polco_grid"), ("hazardworld_grid", "fusion_grid")]
)
def test_torchscript_gives_the_same_actions(env, policy, tmp_path):
    trained, out = untrained(tmp_path, env, policy), tmp_path / "policy.ts"
    network_only = policy != "mlp"
    assert export(trained, "torchscript", out, rows=2, network_only=network_only) == 30
    again = torch.jit.load(str(out))
    for sample in _walk(trained, Step(trained.policy, network_only), rows=2)[::7]:
        (values,) = again(*sample.inputs)
        assert torch.equal(values.argmax(-1), sample.outputs[0].argmax(-1))
    about = json.loads((tmp_path / "policy.ts.json").read_text())
    assert about["rows"] == 2 and about["values"] == "log-probability of each action"
    assert set(INPUTS) <= set(about["inputs"]) and about["outputs"]["values"]["shape"] == [2, 4]
    assert ("memory" in about["inputs"]) == network_only


def test_a_memory_that_cannot_be_exported_is_noticed(tmp_path):
    """The map of polco_grid is drawn by compiled code: a trace takes it for a constant, and the comparison sees it."""
    trained = untrained(tmp_path, "hazardworld_grid", "polco_grid")
    with pytest.raises(UserError, match=r"policy 'polco_grid' .*try --network-only, if its memory is what cannot"):
        export(trained, "torchscript", tmp_path / "policy.ts")
    assert not (tmp_path / "policy.ts").exists()


@pytest.mark.slow
@pytest.mark.parametrize("form", ["onnx", "torch"])
@pytest.mark.parametrize(
    ("env", "policy", "network_only"),
    [
        ("ford", "mlp", False),
        ("gymnasium_adapter", "mlp", False),
        ("hazardworld_grid", "polco_grid", True),
    ],
)
def test_other_formats(form, env, policy, network_only, tmp_path):
    if form == "onnx":
        pytest.importorskip("onnxruntime")
        pytest.importorskip("onnxscript")
    out = tmp_path / f"policy{module.SUFFIX[form]}"
    assert export(untrained(tmp_path, env, policy), form, out, network_only=network_only) == 30


@pytest.mark.slow
def test_a_sentence_read_at_its_own_length_cannot_be_held_by_torch_export(tmp_path):
    trained = untrained(tmp_path, "hazardworld_grid", "fusion_grid")
    with pytest.raises(UserError, match=r"policy 'fusion_grid' cannot be exported as torch: .*data-dependent"):
        export(trained, "torch", tmp_path / "policy.pt2", network_only=True)


def test_a_file_that_differs_is_not_kept(tmp_path, monkeypatch):
    trained = untrained(tmp_path, "ford", "mlp")
    monkeypatch.setattr(module, "_difference", lambda got, wanted: 0.5)
    with pytest.raises(
        UserError, match=r"policy 'mlp' as torchscript is off by 0.5; nothing was kept; try --format onnx"
    ):
        export(trained, "torchscript", tmp_path / "policy.ts")
    assert not (tmp_path / "policy.ts").exists()


@pytest.mark.parametrize("place", ["policy.ts", "/proc/policy.ts"])
def test_a_place_that_cannot_be_written_is_told_as_that(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    trained = untrained(tmp_path, "ford", "mlp")
    Path("policy.ts").mkdir()
    with pytest.raises(UserError, match=f"^{place}: cannot be written: "):
        export(trained, "torchscript", Path(place))


def test_a_description_that_cannot_be_written_is_told(tmp_path, monkeypatch):
    trained = untrained(tmp_path, "ford", "mlp")
    (tmp_path / "policy.ts.json").mkdir()
    with pytest.raises(UserError, match=r"policy\.ts\.json: cannot be written: "):
        export(trained, "torchscript", tmp_path / "policy.ts")


def test_a_package_that_is_missing_leaves_no_empty_file(tmp_path, monkeypatch):
    trained = untrained(tmp_path, "ford", "mlp")
    monkeypatch.setattr(module, "_installed", lambda name: False)
    with pytest.raises(UserError, match="--format onnx needs onnx, onnxscript, onnxruntime"):
        export(trained, "onnx", tmp_path / "policy.onnx")
    assert not (tmp_path / "policy.onnx").exists()


def test_what_cannot_be_exported_is_told(tmp_path, monkeypatch):
    trained = untrained(tmp_path, "ford", "mlp")

    def refuse(*_: object) -> None:
        raise RuntimeError("data-dependent control flow\nand more")

    monkeypatch.setattr(module, "_torchscript", (refuse, None))
    with pytest.raises(
        UserError, match="policy 'mlp' cannot be exported as torchscript: data-dependent control flow; try"
    ):
        export(trained, "torchscript", tmp_path / "policy.ts")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["absent"], "absent: no such folder; give a folder in runs/cells"),
        (["absent", "--format", "oonx"], "--format 'oonx' is not known; did you mean 'onnx'?"),
        (["absent", "--rows", "0"], "--rows must be at least 1, not 0"),
        (["absent", "--format", "onnx", "--out", "p.ts"], "p.ts: --out must end in .onnx for onnx"),
    ],
)
def test_mistakes_are_told(words, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert module.main(words) == 2
    assert message in capsys.readouterr().err
