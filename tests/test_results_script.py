"""``scripts/results.py``: results of a long study, kept from part to part, and the tables made of them."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import framework
from framework import checkpoint
from framework.provenance import provenance
from framework.run import main

SCRIPT = Path(__file__).parent.parent / "scripts" / "results.py"
REGISTRY = """
study: parts
training: {steps: 1_200, batch: 600, rows: 25, evaluation: {episodes: 40, reading_steps: 100}}
seeds: [0, 1]
experiments:
  cf with pcpo on ford: {env: ford, interpreter: oracle, policy: mlp, optimizer: ppo_lagrangian}
  walk on ford: {env: ford, interpreter: none, policy: random_walk, optimizer: fixed}
evaluations:
  shorter: {env: {steps: 12}}
"""


def script(*words: str) -> str:
    done = subprocess.run([sys.executable, str(SCRIPT), *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refused(*words: str) -> str:
    done = subprocess.run([sys.executable, str(SCRIPT), *words], capture_output=True, text=True)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    return done.stderr


def part(seeds: str, folder: str) -> None:
    assert main(["parts.yaml", f"seeds={seeds}", "--runs-dir", folder, "--workers", "1", "--quiet"]) == 0


def cells(table: str, row: str) -> list[str]:
    line = next(line for line in table.splitlines() if line.startswith(f"| {row} |"))
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


def test_parts_of_a_study_add_up(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("parts.yaml").write_text(REGISTRY)
    part("[0]", "first")
    script("keep", "parts.yaml", "kept.csv", "--runs-dir", "first")
    one = script("table", "kept.csv")
    reward, *_, seeds = cells(one, "cf with pcpo, ford")
    assert "(" in reward and seeds == "1", "one seed: its interval is over episodes, in round brackets"

    part("[1]", "second")  # on another machine, say
    script("keep", "parts.yaml", "kept.csv", "--runs-dir", "second")
    kept = Path("kept.csv").read_text()
    rows = list(csv.DictReader(kept.splitlines()))
    assert len(rows) == 8, "two systems, two seeds, two evaluations"
    for record in (r for f in ("first", "second") for r in framework.load("parts.yaml").results(f)):
        name = "same reward" if record["evaluation"] == "training" else record["evaluation"]
        (row,) = (r for r in rows if (r["system"], r["evaluation"], int(r["seed"]))
                  == (record["system"], name, record["seed"]))  # fmt: skip
        tensors, _ = checkpoint.load(Path(record["episodes_file"]))
        none_allowed = tensors["threshold"][:, 0] == 0
        at_zero = (tensors["cost"] - tensors["threshold"]).clamp(min=0)[none_allowed].mean()
        assert float(row["violation_h0"]) == pytest.approx(float(at_zero), abs=1e-4)
        assert row["commit"] == provenance()["commit"][:7]
    script("keep", "parts.yaml", "kept.csv", "--runs-dir", "second")
    assert Path("kept.csv").read_text() == kept, "what is kept twice is there once"

    found = {r["system"] + r["evaluation"] + str(r["seed"]): r["reward"] for f in ("first", "second")
             for r in framework.results(f)}  # fmt: skip
    mean = sum(found[f"cf with pcpo on fordtraining{seed}"] for seed in (0, 1)) / 2
    reward, *_, seeds = cells(script("table", "kept.csv"), "cf with pcpo, ford")
    assert reward.startswith(f"{mean:.2f} [") and seeds == "2", "Student's interval over seeds, in square ones"

    script("draw", "kept.csv", "shorter", "bars.png")
    script("trade", "kept.csv", "shorter", "points.png", "--also", "kept.csv")
    for picture in ("bars.png", "points.png"):
        assert Path(picture).stat().st_size > 5_000
    with_one, bars = Path("points.png").read_bytes(), Path("bars.png").read_bytes()
    script("trade", "kept.csv", "shorter", "points.png")
    assert Path("points.png").read_bytes() != with_one, "--also adds its systems"

    assert {row["violation_h1"] != "" for row in rows} == {True}, "the ford has budgets of 0, 1, ..."
    for evaluation in ("same reward", "shorter"):
        budgets = cells(script("table", "kept.csv").split(f"{evaluation}: Delta_C by h_C")[1], "cf with pcpo, ford")
        at_one = [
            float(row["violation_h1"]) for row in rows if row["evaluation"] == evaluation and "cf" in row["system"]
        ]
        assert budgets[1] == f"{sum(at_one) / 2:.3f}" and budgets[-1] == "2"
    for line, told in [
        (("draw", "kept.csv", "shortr", "bars.png"), "no evaluation is called 'shortr'; did you mean 'shorter'?"),
        (("draw", "absent.csv", "shorter", "bars.png"), "absent.csv: there are no results in it"),
        (("trade", "kept.csv", "shorter", "p.png", "--also", "absent.csv"), "absent.csv: there are no results in it"),
        (("table", "absent.csv"), "absent.csv: there are no results in it"),
        (("draw", "kept.csv", "shorter", "absent/bars.png"), "No such file or directory: 'absent/bars.png'"),
        (("keep", "absent.yaml", "kept.csv"), "absent.yaml: "),
    ]:
        assert told in refused(*line)
    assert Path("bars.png").read_bytes() == bars, "and nothing is overwritten"


def test_rows_are_named_by_the_registry_and_are_of_its_evaluations_alone(tmp_path, monkeypatch, capsys):
    """A folder may hold runs that another study made first, and evaluations with settings that have changed since."""
    monkeypatch.chdir(tmp_path)
    Path("parts.yaml").write_text(REGISTRY.replace("walk on ford", "stroll on meadow").replace("steps: 12", "steps: 6"))
    part("[0]", "runs")
    Path("parts.yaml").write_text(REGISTRY)
    part("[0]", "runs")
    walk = next(Path("runs/cells").glob("ford-none-*"))
    assert len(list(walk.glob("evaluations/*/result.json"))) == 2
    later = json.loads((walk / "result.json").read_text())
    for result in walk.glob("evaluations/*/result.json"):
        found = json.loads(result.read_text())
        wanted = found["evaluation"]["env"]["steps"] == 12
        result.write_text(json.dumps(found | {"commit": "later" if wanted else "outdated"}))
    (walk / "evaluations" / "begun").mkdir()
    script("keep", "parts.yaml", "kept.csv")
    rows = {
        (row["system"], row["evaluation"]): row for row in csv.DictReader(Path("kept.csv").read_text().splitlines())
    }
    assert set(rows) == {(f"{s} on ford", e) for s in ("walk", "cf with pcpo") for e in ("same reward", "shorter")}
    assert rows["walk on ford", "shorter"]["commit"] == "later"
    assert float(rows["walk on ford", "shorter"]["length"]) > 6, "of the longer one, which the registry names"
    assert rows["walk on ford", "same reward"]["commit"] == later["commit"][:7]


def test_cells_of_a_grid_have_a_table_too(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    grid = (
        "ablations:\n  inputs on land: {base: cf with pcpo on ford, variants: {no mask: {policy.uses.mask: false}}}\n"
    )
    Path("parts.yaml").write_text(REGISTRY + grid)
    words = ["parts.yaml", "seeds=[0]", "--only", "inputs*", "--workers", "1", "--quiet", "report.gallery=0"]
    assert main(words) == 0
    script("keep", "parts.yaml", "kept.csv", "--only", "inputs*")
    assert {row["system"] for row in csv.DictReader(Path("kept.csv").read_text().splitlines())} == {
        "inputs on land/cf with pcpo on ford",
        "inputs on land/no mask",
    }
    assert "\n| inputs on land/no mask | " in script("table", "kept.csv")


PAGE = """# A page

<!-- table data/kept.csv shorter: reward, seeds -->
<!-- end -->

Between the tables.

<!-- budgets data/kept.csv shorter -->
| out of date |
<!-- end -->

<!-- kinds data/kept.csv same reward -->
<!-- end -->
"""


def test_the_tables_of_a_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("parts.yaml").write_text(REGISTRY)
    part("[0, 1]", "runs")
    Path("docs/data").mkdir(parents=True)
    script("keep", "parts.yaml", "docs/data/kept.csv")
    Path("docs/page.md").write_text(PAGE)
    script("page", "docs/page.md")
    made = Path("docs/page.md").read_text()
    reward, seeds = cells(made, "walk, ford")
    assert "[" in reward and seeds == "2"
    assert "Between the tables." in made and "out of date" not in made and made.count("shorter: Delta_C by h_C") == 1
    assert "| same reward: reward / Delta_C | ford |" in made and re.search(
        r"\| walk \| -?\d\.\d\d / \d+\.\d\d \|", made
    )
    script("page", "docs/page.md")
    assert Path("docs/page.md").read_text() == made, "made twice is made once"

    for wrong, told in [
        ("data/kept.csv shrter: reward", "no evaluation is called 'shrter'; did you mean 'shorter'?"),
        (
            "data/kept.csv shorter: reward, seeds -->\n<!-- end -->\n<!-- kinds data/kept.csv shorter: reward",
            "'kinds' has columns of its own; only 'table' takes others (reward, seeds)",
        ),
        ("data/kept.csv shorter: rewrd", "docs/page.md: no column is called 'rewrd'; did you mean 'reward'?"),
        ("data/absent.csv shorter: reward", "absent.csv: there are no results in it"),
    ]:
        bad = PAGE.replace("data/kept.csv shorter: reward", wrong)
        Path("docs/page.md").write_text(bad)
        assert told in refused("page", "docs/page.md")
        assert Path("docs/page.md").read_text() == bad, "nothing is half written"
