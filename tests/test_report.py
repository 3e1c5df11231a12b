"""Statistics against scipy, figures and page against what they show."""

from __future__ import annotations

import base64
import csv
import html
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.stats import mannwhitneyu, trim_mean

from framework import checkpoint, gallery, latex, outcomes, report, stats
from framework.broken import most_broken, over_seeds
from framework.comparison import against
from framework.config import load
from framework.evaluator import Result
from framework.outcomes import Scores
from framework.report import plain
from framework.run import MISTAKE, OK, main
from framework.schema import SCORES
from framework.stages import read_result

REGISTRY = """
study: page
training: {steps: 1200, batch: 600, rows: 10, evaluation: {episodes: 40, reading_steps: 100}}
seeds: [0, 1]
experiments:
  heed & co: {env: ford, interpreter: oracle, policy: mlp, optimizer: ppo_lagrangian}
  random <walk>: {env: ford, interpreter: none, policy: random_walk, optimizer: fixed}
ablations:
  inputs:
    base: heed & co
    variants:
      no mask: {policy.uses.mask: false}
report: {title: "A <b>title</b>", question: "Does it escape?"}
"""


def test_iqm_is_the_trimmed_mean():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(5, 8))
    middle, low, high = stats.stratified_iqm(scores)
    assert middle == pytest.approx(trim_mean(scores.ravel(), 0.25))
    assert low < middle < high


def test_stratified_interval_covers_the_truth_about_as_often_as_it_says():
    rng = np.random.default_rng(1)
    tasks, covered = np.linspace(-1, 1, 6), 0
    for _ in range(100):
        _, low, high = stats.stratified_iqm(rng.normal(size=(8, 6)) * 0.3 + tasks)
        covered += low <= 0 <= high
    assert 82 <= covered <= 100


def test_probability_of_improvement_is_the_u_statistic():
    rng = np.random.default_rng(2)
    ours, theirs = rng.normal(0.5, 1, (6, 3)), rng.normal(0, 1, (7, 3))
    middle, low, high = stats.probability_of_improvement(ours, theirs)
    expected = [mannwhitneyu(ours[:, i], theirs[:, i]).statistic / 42 for i in range(3)]
    assert middle == pytest.approx(np.mean(expected))
    assert low < middle < high
    assert stats.probability_of_improvement(ours, ours)[0] == pytest.approx(0.5)


def test_systems_are_compared_with_those_of_their_own_env_and_what_is_not_known_is_no_loss():
    def scored(name, reward, env):
        cell = SimpleNamespace(name=name, group="experiments", cell=SimpleNamespace(env=SimpleNamespace(identity=env)))
        values = np.array(reward)
        return Scores(cell, (("budgetary", 0), ("budgetary", 1)), values, np.zeros_like(values))

    def here():
        return {"plugin": "ford"}

    ours = scored("ours on land", [[2.0, np.nan], [3.0, 4.0]], here)
    theirs = scored("theirs on water", [[1.0, 1.0], [1.0, 1.0]], here)
    elsewhere = scored("stranger on land", [[9.0, 9.0], [9.0, 9.0]], lambda: {"plugin": "grid"})
    rows = {row[0]: row for row in plain(against("who", [ours, theirs, elsewhere]))}
    assert rows["theirs on water"][3] == "1.00 [1.00, 1.00]", "won wherever it is known"
    assert rows["stranger on land"][3] == "-"


def test_what_a_reference_may_score_is_what_the_table_shows():
    assert tuple(name for name, _, _ in report.READING) == SCORES


def test_latex_escapes_what_latex_would_stumble_over():
    text = latex.tabular([["system", "Δ_C"], ["50 % & more", "{1} ~ 2"]])
    assert r"50 \% \& more & \{1\} \textasciitilde{} 2 \\" in text
    assert r"system & $\Delta$\_C \\" in text


class Reader(HTMLParser):
    """Checks that tags close, and collects text."""

    VOID = frozenset({"meta", "br", "path", "use", "rect", "image", "img"})

    def __init__(self):
        super().__init__()
        self.open, self.text, self.cells = [], [], 0

    def handle_starttag(self, tag, attrs):
        self.cells += tag == "td"
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def check_scores_by_budget(study):
    """What the bars show, against the stored episodes gone through one by one."""
    for system in outcomes.scores(study, Path("runs")):
        for row, run in enumerate(system.cell.runs()):
            tensors, _ = checkpoint.load(Path("runs/cells") / run.id / "evaluation.safetensors")
            past = (tensors["cost"] - tensors["threshold"]).clamp(min=0)[:, 0].tolist()
            for column, (kind, budget) in enumerate(system.tasks):
                mine = [i for i, h in enumerate(tensors["threshold"][:, 0].tolist()) if h == budget]
                assert kind == "budgetary"
                assert system.reward[row, column] == pytest.approx(np.mean([float(tensors["reward"][i]) for i in mine]))
                assert system.violation[row, column] == pytest.approx(np.mean([past[i] for i in mine]))


def check_comparison(study, folder):
    """The tables' numbers, from the scores by budget."""
    heed, walk = outcomes.scores(study, Path("runs"))[:2]
    lines = {line["system"]: line for line in csv.DictReader((folder / "against.csv").read_text().splitlines())}
    assert lines["heed & co"]["P(first violates less)"] == "-"
    pairs = [(a, b) for ours, theirs in zip(heed.reward.T, walk.reward.T, strict=True) for a in ours for b in theirs]
    chance = np.mean([(a > b) + 0.5 * (a == b) for a, b in pairs])
    assert lines["random <walk>"]["P(first has more reward)"].startswith(f"{chance:.2f} [")
    budgets = list(csv.DictReader((folder / "by-budget-violation.csv").read_text().splitlines()))
    assert budgets[0]["system"] == "heed & co"
    assert budgets[0]["h_C = 0"].startswith(f"{heed.violation[:, 0].mean():.2f} [")


def test_a_study_leaves_tables_figures_and_a_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("registry.yaml").write_text(REGISTRY)
    assert main(["registry.yaml", "--workers", "1"]) == OK, capsys.readouterr().out
    folder = Path("runs/page")
    names = {file.name for file in folder.iterdir()}
    tables = ("acting", "against", "by-budget-violation", "by-budget-reward")
    assert names == {"report.html"} | {f"{table}.{kind}" for table in tables for kind in ("csv", "tex")} | {
        f"{figure}.{kind}" for figure in ("bars", "curves", "deltas") for kind in ("png", "svg")
    }
    page = (folder / "report.html").read_text()
    reader = Reader()
    reader.feed(page)
    assert not reader.open, "every tag is closed"
    text = "".join(reader.text)
    assert "A <b>title</b>" in text, "shown as it was written, not as markup"
    assert "random <walk>" in text
    assert not re.search(r"(?:src|href)=[\"']https?:", page), "opens without a network"
    assert page.count("<svg") == 3
    rows = list(csv.DictReader((folder / "acting.csv").read_text().splitlines()))
    assert len(rows) == 4
    check_scores_by_budget(load(Path("registry.yaml")))
    check_comparison(load(Path("registry.yaml")), folder)
    assert reader.cells >= 4 * 8


def test_the_gallery_shows_each_agent_in_the_same_world(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("s.yaml").write_text(REGISTRY.replace("report: {", "report: {gallery: 2, "))
    assert main(["s.yaml", "--workers", "1"]) == OK
    page = Path("runs/page/report.html").read_text()
    films = re.findall(r'<img alt="([^"]*)" src="data:image/gif;base64,([^"]*)"', page)
    assert [html.unescape(label) for label, _ in films] == ["heed & co", "random <walk>"]  # no film of an ablation
    for _, data in films:
        film = Image.open(io.BytesIO(base64.b64decode(data)))
        assert 2 < film.n_frames <= gallery.FRAMES + 2
    kept = sorted(Path("runs/cells").glob("*/gallery-2.gif"))
    before = [file.stat().st_mtime_ns for file in kept]
    assert len(kept) == 2
    assert main(["s.yaml", "--report"]) == OK
    assert [file.stat().st_mtime_ns for file in kept] == before  # recorded once
    assert main(["s.yaml", "--report", "report.gallery=0"]) == OK
    assert "data:image/gif" not in Path("runs/page/report.html").read_text()
    assert main(["s.yaml", "--check", "report.gallery=11"]) == MISTAKE
    assert "gallery must be 0 to 10 episodes, not 11" in capsys.readouterr().err


def test_who_cannot_be_drawn_is_left_out_of_the_gallery_and_said(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("s.yaml").write_text(REGISTRY)
    assert main(["s.yaml", "--workers", "1", "--only", "random*"]) == OK
    for file in Path("runs/cells").glob("*/gallery-1.gif"):
        file.unlink()
    for file in Path("runs/cells").glob("*/policy.safetensors"):
        file.write_bytes(b"not weights")
    capsys.readouterr()
    assert main(["s.yaml", "--report", "--only", "random*"]) == OK
    assert "not in the gallery: random <walk>" in capsys.readouterr().out


CANNOT_DRAW = """
from framework.hookspecs import hookimpl
from plugins.envs.ford import Ford

class Dark(Ford):
    name = "dark"
    def frame(self, *args, **settings):
        raise KeyError("no such colour")

@hookimpl
def heed_components():
    return [Dark]
"""


def test_an_env_that_cannot_draw_itself_costs_its_film_and_not_the_report(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("dark.py").write_text(CANNOT_DRAW)
    registry = REGISTRY.replace("heed & co: {env: ford", "heed & co: {env: dark")
    Path("s.yaml").write_text(registry + "plugins: [{path: dark.py}]\n")
    assert main(["s.yaml", "--workers", "1", "seeds=[0]"]) == OK
    captured = capsys.readouterr()
    assert "not in the gallery: heed & co: KeyError: 'no such colour'" in captured.out
    assert "Traceback" not in captured.out + captured.err
    assert re.findall(r'<img alt="([^"]*)"', Path("runs/page/report.html").read_text()) == ["random &lt;walk&gt;"]


def test_a_damaged_interpreter_is_named_and_the_report_is_written(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = REGISTRY.replace("rows: 10,", "rows: 10, interpreter: {steps: 2_000},")
    Path("s.yaml").write_text(
        text.replace(
            "heed & co: {env: ford, interpreter: oracle, policy: mlp",
            "heed & co: {env: hazardworld_grid, interpreter: naive_bayes, policy: mlp",
        )
    )
    assert main(["s.yaml", "--workers", "1", "--only", "heed*", "seeds=[0]", "--quiet"]) == OK
    (file,) = Path("runs/interpreters").glob("*.safetensors")
    file.write_bytes(file.read_bytes()[:-1])
    capsys.readouterr()
    assert main(["s.yaml", "--report", "--only", "heed*", "seeds=[0]"]) == OK
    out = capsys.readouterr().out
    assert f"damaged, so left out: {file}: is damaged" in out
    assert "1 of 1 runs; tables in" in out


@pytest.mark.parametrize(
    "summary", [{}, {"reward": 1.0}, {"reward": "much", "violation": 0.0, "violation_rate": 0.0, "length": 3.0}, []]
)
def test_a_result_without_what_every_result_has_is_none(tmp_path, summary):
    (tmp_path / "result.json").write_text(json.dumps({"summary": summary}))
    assert read_result(tmp_path) is None
    whole = {"reward": None, "violation": 0.0, "violation_rate": 0, "length": 3.0}  # what was NaN is null
    (tmp_path / "result.json").write_text(json.dumps({"summary": whole}))
    assert read_result(tmp_path) == {"summary": whole}


def test_figures_are_the_same_for_the_same_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("registry.yaml").write_text(REGISTRY)
    main(["registry.yaml", "--workers", "1"])
    before = Path("runs/page/bars.svg").read_bytes()
    main(["registry.yaml", "--workers", "1"])
    assert Path("runs/page/bars.svg").read_bytes() == before


def test_a_report_of_what_is_there_runs_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("registry.yaml").write_text(REGISTRY)
    assert main(["registry.yaml", "--report"]) == MISTAKE
    assert "no run of study 'page' is finished here" in capsys.readouterr().err
    assert main(["registry.yaml", "--workers", "1", "--quiet"]) == OK
    first, second, third = sorted(Path("runs/cells").glob("*/result.json"))[:3]
    first.write_text("{")
    third.write_text('{"summary": {}}')
    (second.parent / "evaluation.safetensors").write_bytes(b"x" * 100)
    capsys.readouterr()
    assert main(["registry.yaml", "--report"]) == OK
    out = capsys.readouterr().out
    assert f"damaged, so left out: {first}" in out
    assert f"damaged, so left out: {third}" in out
    assert str(second.parent / "evaluation.safetensors") in out
    assert first.read_text() == "{", "a report changes no run"


def test_finished_runs_of_another_folder_are_taken(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("registry.yaml").write_text(REGISTRY + "reuse: [elsewhere]\n")
    assert main(["registry.yaml", "--check"]) == MISTAKE
    assert "registry.yaml:14: reuse.0: 'elsewhere' is not a runs folder" in capsys.readouterr().err
    Path("first.yaml").write_text(REGISTRY)
    assert main(["first.yaml", "--workers", "1", "--runs-dir", "elsewhere", "--quiet"]) == OK
    damaged = sorted(Path("elsewhere/cells").glob("*/policy.safetensors"))[0]
    damaged.write_bytes(damaged.read_bytes()[:50])
    capsys.readouterr()
    assert main(["registry.yaml", "--workers", "1"]) == OK
    out = capsys.readouterr().out
    assert "5 finished runs taken from elsewhere" in out
    assert f"damaged there, made anew: {damaged.parent.name}" in out
    assert "1 done, 5 finished before, 0 failed" in out


def test_the_sentences_that_account_for_the_violations():
    """Sentence 2 was broken by 6 in two episodes, sentence 0 by 2 in one; a constraint that was kept counts as well."""
    cost = torch.tensor([[3.0, 0], [5, 1], [2, 0], [0, 0]])
    text = torch.tensor([[2, 1], [2, 1], [0, 1], [0, 2]])
    nothing = torch.zeros(4)
    result = Result(nothing, nothing, nothing, cost, cost, torch.ones(4, 2), text, text, nothing, nothing, nothing)
    interpreter = SimpleNamespace(explain=lambda sentence: SimpleNamespace(text=sentence.upper()))
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
    text = REGISTRY.replace("interpreter: oracle", "interpreter: none")
    Path("registry.yaml").write_text(text)
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
    assert {row["system"] for row in rows} == {"heed & co", "inputs/heed & co", "inputs/no mask"}, (
        "a walk reads nothing"
    )
    assert max(sum(row["system"] == name for row in rows) for name in {row["system"] for row in rows}) <= 5
