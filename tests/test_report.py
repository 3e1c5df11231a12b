"""A study's report, from its runs: files, figures and page against what they show."""

from __future__ import annotations

import base64
import csv
import html
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from framework import checkpoint, gallery, latex, outcomes, report, stats
from framework.config import load
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
    assert lines["random <walk>"]["P(first has more reward)"] == f"{chance:.2f} (2 and 2 runs)"
    assert lines["heed & co"]["mean Δ_C"].startswith(f"{heed.violation.mean():.2f} [")
    (change,) = csv.DictReader((folder / "deltas.csv").read_text().splitlines())
    base, other = outcomes.scores(study, Path("runs"))[2:]
    assert (change["system"], change["baseline"], change["seeds"]) == ("no mask", "heed & co", "2")
    differences = other.summary("reward") - base.summary("reward")
    assert float(change["reward"]) == pytest.approx(differences.mean())
    assert float(change["reward_high"]) == pytest.approx(stats.mean_interval(differences)[1])
    budgets = list(csv.DictReader((folder / "by-budget-violation.csv").read_text().splitlines()))
    assert budgets[0]["system"] == "heed & co"
    assert budgets[0]["h_C = 0"].startswith(f"{heed.violation[:, 0].mean():.2f} [")


def test_a_study_leaves_tables_figures_and_a_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("registry.yaml").write_text(REGISTRY)
    assert main(["registry.yaml", "--workers", "1"]) == OK, capsys.readouterr().out
    folder = Path("runs/page")
    names = {file.name for file in folder.iterdir()}
    tables = ("acting", "against", "by-budget-violation", "by-budget-reward", "deltas")
    assert names == {"report.html", ".report.json"} | {
        f"{table}.{kind}" for table in tables for kind in ("csv", "tex")
    } | {f"{figure}.{kind}" for figure in ("bars", "trade", "curves", "deltas") for kind in ("png", "svg")}
    page = (folder / "report.html").read_text()
    reader = Reader()
    reader.feed(page)
    assert not reader.open, "every tag is closed"
    text = "".join(reader.text)
    assert "A <b>title</b>" in text, "shown as it was written, not as markup"
    assert "random <walk>" in text
    assert not re.search(r"(?:src|href)=[\"']https?:", page), "opens without a network"
    assert page.count("<svg") == 4
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
    assert "1 of 1 run; tables in runs/page; open runs/page/report.html" in out


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
    for file in (first, third):
        assert f"damaged, so left out: {file}: not a result; delete {file}, and the run is made again" in out
    (told,) = (line for line in out.splitlines() if str(second.parent / "evaluation.safetensors") in line)
    assert told.endswith(f"; delete {second}, and the run is made again")
    assert first.read_text() == "{", "a report changes no run"
    assert "3 of 6 runs; tables in" in out
    second.unlink()
    capsys.readouterr()
    assert main(["registry.yaml", "--workers", "1", "--quiet"]) == OK
    assert "3 done, 3 finished before" in capsys.readouterr().out, "that was the way to have them again"


@pytest.mark.parametrize("broken", ["result.json", "evaluation.safetensors"])
def test_a_run_that_cannot_be_read_is_in_no_table(tmp_path, monkeypatch, capsys, broken):
    monkeypatch.chdir(tmp_path)
    Path("s.yaml").write_text(REGISTRY.replace("seeds: [0, 1]", "seeds: [0, 1, 2]"))
    assert main(["s.yaml", "--workers", "1", "--quiet", "report.gallery=0"]) == OK
    study = load(Path("s.yaml"))
    (Path("runs/cells") / study.cells[1].runs()[1].id / broken).write_bytes(b"{")
    assert main(["s.yaml", "--report", "report.gallery=0"]) == OK
    rows = list(csv.DictReader(Path("runs/page/acting.csv").read_text().splitlines()))
    assert [row["seeds"] for row in rows] == ["3", "2", "3", "3"]
    rows = list(csv.DictReader(Path("runs/page/against.csv").read_text().splitlines()))
    assert rows[1]["P(first violates less)"].endswith(" (3 and 2 runs)")
    page = html.unescape(Path("runs/page/report.html").read_text())
    assert "8 of 9 runs are in this report. Missing: random <walk> (seed 1): cannot be read." in page


def test_a_part_of_a_study_leaves_nothing_of_the_whole_and_says_that_it_is_one(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("s.yaml").write_text(REGISTRY)
    assert main(["s.yaml", "--workers", "1", "--quiet", "report.gallery=0"]) == OK
    folder = Path("runs/page")
    assert "Not the study" not in (folder / "report.html").read_text() + capsys.readouterr().out
    (folder / "bars-mine.png").write_bytes(b"of a person")
    assert main(["s.yaml", "--report", "--only", "heed*", "seeds=[0]", "report.gallery=0"]) == OK
    said = "Not the study as its registry has it, but with seeds=[0], --only 'heed*' (1 of 4 systems)."
    assert said in capsys.readouterr().out
    page = html.unescape((folder / "report.html").read_text())
    assert said in page
    assert "One seed only, so nothing is known of the spread between seeds: heed & co." in page
    names = {file.name for file in folder.iterdir()}
    tables = ("acting", "by-budget-violation", "by-budget-reward")
    assert names == {"report.html", ".report.json", "bars-mine.png"} | {
        f"{table}.{kind}" for table in tables for kind in ("csv", "tex")
    } | {f"{figure}.{kind}" for figure in ("bars", "curves") for kind in ("png", "svg")}
    assert main(["s.yaml", "--report", "--only", "*", "report.gallery=0"]) == OK
    assert "Not the study" not in (folder / "report.html").read_text(), "all of it is no part"
    assert (folder / "deltas.csv").is_file()


@pytest.mark.parametrize("seed", ["0", "null"])
def test_one_interpreter_for_all_seeds_is_told(tmp_path, monkeypatch, seed):
    monkeypatch.chdir(tmp_path)
    reading = f"interpreter: {{seed: {seed}, steps: 1_000, iterations: 2}}, batch"
    Path("s.yaml").write_text(REGISTRY.replace("batch", reading, 1).replace("oracle", "lstm"))
    assert main(["s.yaml", "--workers", "1", "--quiet", "report.gallery=0"]) == OK
    page = html.unescape(Path("runs/page/report.html").read_text())
    said = "One trained interpreter for all seeds, so intervals leave out how readers differ: heed & co, inputs/no mask"
    assert (said in page) == (seed == "0")


def test_the_page_tells_what_is_missing_and_what_the_columns_mean(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("s.yaml").write_text(REGISTRY)
    assert main(["s.yaml", "--workers", "1", "--quiet", "--only", "heed*", "seeds=[0]", "report.gallery=0"]) == OK
    assert main(["s.yaml", "--workers", "1", "--quiet", "--only", "random*", "report.gallery=0"]) == OK
    failed = Path("runs/cells") / load(Path("s.yaml")).cells[3].runs()[0].id
    failed.mkdir()
    (failed / "failure.json").write_text(json.dumps({"error": "ValueError: too <small>\nmore"}))
    capsys.readouterr()
    assert main(["s.yaml", "--report", "report.gallery=0"]) == OK
    assert "3 of 6 runs; tables in" in capsys.readouterr().out
    page = html.unescape((Path("runs/page/report.html")).read_text())
    missing = (
        "3 of 6 runs are in this report. Missing: heed & co, inputs/heed & co (seed 1): not finished; "
        "inputs/no mask (seed 0): failed (ValueError: too <small>); inputs/no mask (seed 1): not finished."
    )
    assert missing in page
    assert "spread between seeds: heed & co." in page, "by what is finished, under its first name"
    for told in ("* marks the baseline", "<b>safe reward</b>: the part", "95 % intervals over seeds", "<b>h_C</b>: "):
        assert told in page


def test_evaluations_that_were_asked_for_later_are_missing_and_the_runs_are_not(tmp_path, monkeypatch):
    def told() -> str:
        assert main(["s.yaml", "--report", "report.gallery=0"]) == OK
        return html.unescape(Path("runs/page/report.html").read_text())

    monkeypatch.chdir(tmp_path)
    Path("s.yaml").write_text(REGISTRY)
    assert main(["s.yaml", "--workers", "1", "--quiet", "report.gallery=0"]) == OK
    assert "are in this report" not in told()
    more = "evaluations: {longer: {env: {steps: 14}}, far: {env: {steps: 16}, systems: [heed*]}}\n"
    Path("s.yaml").write_text(REGISTRY + more)
    said = "6 of 6 runs are in this report. Evaluations that are missing: 'longer' of all of them: not finished; 'far'"
    assert f"{said} of all of them: not finished." in told()
    assert main(["s.yaml", "--workers", "1", "--quiet", "--only", "heed*", "seeds=[0]", "report.gallery=0"]) == OK
    said = "Evaluations that are missing: 'longer' of heed & co, inputs/heed & co (seed 1): not finished; 'longer' of"
    assert said in told() and "'far' of heed & co, inputs/heed & co (seed 1): not finished." in told()
    assert told().count("safe reward</th>") == 3, "a table for each evaluation"
    assert told().count("<b>safe reward</b>: the part") == 1, "a word is explained where it first stands"


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


def test_evaluations_that_are_finished_elsewhere_are_taken_too(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("plain.yaml").write_text(REGISTRY)
    assert main(["plain.yaml", "--workers", "1", "--quiet", "report.gallery=0"]) == OK
    more = "evaluations: {longer: {env: {steps: 14}}}\n"
    Path("first.yaml").write_text(REGISTRY + more)
    assert main(["first.yaml", "--workers", "1", "--runs-dir", "elsewhere", "--quiet", "report.gallery=0"]) == OK
    one, other = sorted(Path("elsewhere/cells").glob("*/evaluations/*/result.json"))[:2]
    one.unlink()
    (other.parent / "evaluation.safetensors").write_bytes(b"x")
    before = {file: file.stat().st_mtime_ns for file in Path("runs/cells").glob("*/result.json")}
    Path("registry.yaml").write_text(REGISTRY + more + "reuse: [elsewhere]\n")
    capsys.readouterr()
    assert main(["registry.yaml", "--workers", "1", "report.gallery=0"]) == OK
    out = capsys.readouterr().out
    assert "4 finished runs taken from elsewhere" in out
    assert "2 done, 4 finished before, 0 failed" in out
    assert {file: file.stat().st_mtime_ns for file in before} == before, "what was trained here is left alone"


def test_the_page_names_every_version_of_the_code_that_its_numbers_are_of(tmp_path, monkeypatch):
    def told() -> str:
        assert main(["s.yaml", "--report", "report.gallery=0"]) == OK
        return html.unescape(Path("runs/page/report.html").read_text())

    monkeypatch.chdir(tmp_path)
    Path("s.yaml").write_text(REGISTRY + "evaluations: {longer: {env: {steps: 14}}}\n")
    assert main(["s.yaml", "--workers", "1", "--quiet", "seeds=[0]", "report.gallery=0"]) == OK
    assert "Code: commit " in told()
    run = next(iter(Path("runs/cells").iterdir()))
    result = next(run.glob("evaluations/*/result.json"))
    result.write_text(json.dumps(json.loads(result.read_text()) | {"commit": "evaluatedlater"}))
    about = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(about | {"earlier_commits": ["begunbefore"]}))
    versions = sorted({"begunbefore", "evaluatedlater", about["provenance"]["commit"]})
    assert f"The runs were made by different versions of the code: {', '.join(versions)}." in told()
