"""Small whole studies through the command line, for the tests of what a run leaves, of failures and of names."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest

from framework.run import main

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
