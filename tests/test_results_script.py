"""``scripts/results.py``: results of a long study, kept from part to part, and the tables made of them."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import framework
from framework.run import main

SCRIPT = Path(__file__).parent.parent / "scripts" / "results.py"
REGISTRY = """
study: parts
training: {steps: 1_200, batch: 600, rows: 25, evaluation: {episodes: 40, reading_steps: 100}}
seeds: [0, 1]
experiments:
  polco on ford: {env: ford, interpreter: oracle, policy: mlp, optimizer: ppo_lagrangian}
  walk on ford: {env: ford, interpreter: none, policy: random_walk, optimizer: fixed}
evaluations:
  shorter: {env: {steps: 12}}
"""


def script(*words: str) -> str:
    done = subprocess.run([sys.executable, str(SCRIPT), *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def part(seeds: str, folder: str) -> None:
    assert main(["parts.yaml", f"seeds={seeds}", "--runs-dir", folder, "--workers", "1", "--quiet"]) == 0


def cells(table: str, row: str) -> list[str]:
    line = next(line for line in table.splitlines() if line.startswith(f"| {row} |"))
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


def test_parts_of_a_study_add_up(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("parts.yaml").write_text(REGISTRY)
    part("[0]", "first")
    script("keep", "first", "kept.csv")
    one = script("table", "kept.csv")
    reward, *_, seeds = cells(one, "polco, ford")
    assert "(" in reward and seeds == "1", "one seed: its interval is over episodes, in round brackets"

    part("[1]", "second")  # on another machine, say
    script("keep", "second", "kept.csv")
    kept = Path("kept.csv").read_text()
    rows = list(csv.DictReader(kept.splitlines()))
    assert len(rows) == 8, "two systems, two seeds, two evaluations"
    assert all(row["commit"] for row in rows)
    script("keep", "second", "kept.csv")
    assert Path("kept.csv").read_text() == kept, "what is kept twice is there once"

    found = {r["system"] + r["evaluation"] + str(r["seed"]): r["reward"] for f in ("first", "second")
             for r in framework.results(f)}  # fmt: skip
    mean = sum(found[f"polco on fordtraining{seed}"] for seed in (0, 1)) / 2
    reward, *_, seeds = cells(script("table", "kept.csv"), "polco, ford")
    assert reward.startswith(f"{mean:.2f} [") and seeds == "2", "Student's interval over seeds, in square ones"

    script("draw", "kept.csv", "shorter", "bars.png")
    script("trade", "kept.csv", "shorter", "points.png", "--also", "kept.csv")
    for picture in ("bars.png", "points.png"):
        assert Path(picture).stat().st_size > 5_000
