"""Every study in the repository can be read; scaled down, each of them runs to its report (slow)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from drawing import cannot_draw
from omegaconf import OmegaConf

from framework.config import load
from framework.run import OK, main

ROOT = Path(__file__).parent.parent
STUDIES = [*sorted(ROOT.glob("studies/*.yaml")), ROOT / "registry.yaml"]


@pytest.mark.parametrize("file", STUDIES, ids=lambda file: file.stem)
def test_a_study_can_be_read_and_says_what_it_asks(file):
    study = load(file)
    assert study.runs
    assert study.report.title
    assert study.report.question.endswith("?")


def test_the_default_study_has_the_papers_systems_and_ablations():
    study = load(ROOT / "registry.yaml")
    names = {cell.name for cell in study.cells}
    assert {"polco", "cf with pcpo", "cf with trpo", "random walk"} <= names
    assert {"without M_C", "without M_B", "without h_C"} <= names
    assert study.exams == ("transfer",)


@pytest.mark.slow
@pytest.mark.parametrize("file", STUDIES, ids=lambda file: file.stem)
def test_a_study_scaled_down_runs_to_its_report(file, tmp_path, monkeypatch, capsys):
    """Few steps, one seed, few maps; everything else as it is written."""
    if "pixels" in file.stem and (reason := cannot_draw()):
        pytest.skip(reason)
    monkeypatch.chdir(tmp_path)
    raw = OmegaConf.to_container(OmegaConf.load(file))  # plain YAML takes 1e-3 for text
    raw["seeds"] = [0]
    raw["training"] = {"steps": 2_000, "batch": 1_000, "rows": 10, "interpreter": {"steps": 2_000, "iterations": 3}}
    raw["training"]["evaluation"] = {"episodes": 20, "reading_steps": 200}
    for experiment in raw["experiments"].values():
        (experiment.get("training") or {}).pop("interpreter", None)
    for interpreter in ((raw.get("components") or {}).get("interpreters") or {}).values():
        interpreter |= {"readings": 2} if interpreter.get("readings") else {}
    for group in (raw.get("ablations") or {}).values():
        group.pop("seeds", None)
    for exam in (raw.get("evaluations") or {}).values():
        if exam.get("finetune"):
            exam["finetune"] = 1_000
    Path("small.yaml").write_text(json.dumps(raw))  # JSON is YAML
    assert main(["small.yaml", "--workers", "2", "--quiet"]) == OK, capsys.readouterr().out[-3_000:]
    assert (Path("runs") / raw["study"] / "report.html").is_file()
