"""The sentences that were broken most: who they are, and how a report shows them."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from framework.broken import most_broken, over_seeds
from framework.evaluator import Result
from framework.interfaces import Explanation
from framework.run import OK, main

REGISTRY = """
study: page
training: {steps: 1200, batch: 600, rows: 10, evaluation: {episodes: 40, reading_steps: 100}}
seeds: [0, 1]
experiments:
  heed & co: {env: ford, interpreter: none, policy: mlp, optimizer: ppo_lagrangian}
  random walk: {env: ford, interpreter: none, policy: random_walk, optimizer: fixed}
"""


def test_the_sentences_that_account_for_the_violations():
    """Sentence 2 was broken by 6 in two episodes, sentence 0 by 2 in one; a constraint that was kept counts as well."""
    cost = torch.tensor([[3.0, 0], [5, 1], [2, 0], [0, 0]])
    text = torch.tensor([[2, 1], [2, 1], [0, 1], [0, 2]])
    nothing = torch.zeros(4)
    result = Result(nothing, nothing, nothing, cost, cost, torch.ones(4, 2), text, text, nothing, nothing, nothing)
    interpreter = SimpleNamespace(explain=lambda sentence: Explanation("budgetary", sentence.upper(), 1.0))
    assert most_broken(result, ["a", "b", "c"], interpreter) == [
        {"sentence": "c", "read_as": "C", "episodes": 3, "violation": 2.0, "share": pytest.approx(6 / 7)},
        {"sentence": "a", "read_as": "A", "episodes": 2, "violation": 0.5, "share": pytest.approx(1 / 7)},
    ]


def test_broken_sentences_of_several_seeds():
    def entry(sentence, read_as, episodes, violation, share):
        return {"sentence": sentence, "read_as": read_as, "episodes": episodes, "violation": violation, "share": share}

    found = over_seeds([[entry("a", "x", 1, 4.0, 1.0)], [entry("b", None, 5, 1.0, 0.6), entry("a", "y", 3, 2.0, 0.4)]])
    assert found == [entry("a", "x; y", 4, 2.5, 0.7), entry("b", "", 5, 1.0, 0.3)]
    assert over_seeds([]) == over_seeds([[], []]) == []


def test_the_page_shows_the_sentences_that_were_broken_and_escapes_them(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("registry.yaml").write_text(REGISTRY)
    assert main(["registry.yaml", "--workers", "1"]) == OK
    for file in sorted(Path("runs/cells").glob("*/result.json"), key=lambda file: "random_walk" not in str(file)):
        result = json.loads(file.read_text())
        assert result["broken"], "a walk that reads nothing breaks something"
        assert all(row["violation"] > 0 and row["read_as"] is None for row in result["broken"])
        assert sum(row["share"] for row in result["broken"]) <= 1 + 1e-9
    result["broken"][0] |= {"sentence": "<i>Stay</i> " + 10 * "out of there ", "read_as": "no </td> water"}
    file.write_text(json.dumps(result))
    assert main(["registry.yaml", "--report"]) == OK
    page = Path("runs/page/report.html").read_text()
    assert "Sentences broken most" in page
    assert '<td class="prose">&lt;i&gt;Stay&lt;/i&gt; out' in page and "no &lt;/td&gt; water" in page
    rows = list(csv.DictReader(io.StringIO(Path("runs/page/broken.csv").read_text())))
    assert {row["system"] for row in rows} == {"heed & co"}, "a walk reads nothing"
    assert len(rows) <= 5
