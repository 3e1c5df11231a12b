"""Every mistake a person can make in a registry: the YAML is in bad_input/<case>/, the exact words beside it.

After changing a message on purpose: ``python tests/test_bad_input.py`` writes the expected files anew; read the diff.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from framework.run import MISTAKE, main

CASES = Path(__file__).parent / "bad_input"


def words(case: Path, folder: Path, capture) -> tuple[int, str]:
    """Exit code and what is printed, with the folder's own path taken out."""
    os.chdir(folder)
    code = main(["registry.yaml", "--runs-dir", str(folder / "runs")])
    return code, capture.readouterr().err.replace(str(folder.resolve()) + "/", "")


@pytest.mark.parametrize("case", sorted(p.name for p in CASES.iterdir()))
def test_message(case, tmp_path, monkeypatch, capsys):
    folder = tmp_path / "case"
    shutil.copytree(CASES / case, folder)
    monkeypatch.chdir(folder)
    code, text = words(CASES / case, folder, capsys)
    assert text == (CASES / case / "expected.txt").read_text()
    assert code == MISTAKE
    assert "Traceback" not in text
    assert not (folder / "runs").exists(), "nothing may be written before the mistakes are mended"


def test_five_mistakes_give_five_lines_with_line_numbers():
    lines = (CASES / "five_mistakes" / "expected.txt").read_text().splitlines()
    problems = [line for line in lines if line.startswith("registry.yaml:")]
    assert len(problems) == 5
    assert all(line.split(":")[1].isdigit() for line in problems)


@pytest.mark.parametrize("content", [b"\x00\x01\x02\xff", b"\xff\xfe\x00binary"])
def test_binary_file(content, tmp_path, capsys):
    file = tmp_path / "registry.yaml"
    file.write_bytes(content)
    assert main([str(file)]) == MISTAKE
    assert capsys.readouterr().err == f"{file}: is not a text file (UTF-8 YAML expected)\n"


def test_missing_file_and_folder(tmp_path, capsys):
    assert main([str(tmp_path / "none.yaml")]) == MISTAKE
    assert main([str(tmp_path)]) == MISTAKE
    expected = f"{tmp_path}/none.yaml: no such file\n{tmp_path}: is a folder; name a YAML file\n"
    assert capsys.readouterr().err == expected


def test_no_registry_named(capsys):
    assert main([]) == MISTAKE
    assert capsys.readouterr().err == "which registry? e.g. python -m framework.run registry.yaml\n"


GOOD = "experiments:\n  heed: {env: ford, interpreter: oracle, policy: mlp, optimizer: ppo_lagrangian}\n"


@pytest.fixture
def good(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("registry.yaml").write_text(GOOD)
    return tmp_path


def test_overrides_pass_the_same_validation(good, capsys):
    assert main(["registry.yaml", "training.stepz=10", "experiments.heed.env=fordd", "oops"]) == MISTAKE
    assert capsys.readouterr().err == "command line: 'oops': expected path.to.key=value\n"
    assert main(["registry.yaml", "training.stepz=10", "experiments.heed.env=fordd"]) == MISTAKE
    assert capsys.readouterr().err == (
        "command line: training.stepz: unknown key 'stepz'; did you mean 'steps'? [training]\n"
        "command line: experiments.heed.env: no env plugin is called 'fordd'; did you mean 'ford'?\n"
        "2 problems; nothing was run\n"
    )


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("trainig.steps=10", "trainig: unknown key 'trainig'; did you mean 'training'? [registry]"),
        ("experiments.heed.optimiser.clip=1", "experiments.heed.optimiser: unknown key 'optimiser'; did you mean"),
        ("experiments.heed.optimizer.clipp=1", "experiments.heed.optimizer.clipp: unknown key 'clipp'; did you mean"),
        ("experiments.heed.env={plugin: fordd}", "experiments.heed.env: no env plugin is called 'fordd'; did you mean"),
        ("experiments={heed: {env: fordd}}", "experiments.heed.env: no env plugin is called 'fordd'; did you mean"),
        ("seeds=[0, x]", "seeds.1: expected a whole number, got text 'x' [seeds]"),
        ("study.name=x", "'study.name=x': study is 'mine', which has no settings"),
        ("training.steps.all=1", "'training.steps.all=1': training.steps is 40000, which has no settings"),
    ],
)  # fmt: skip
def test_what_an_override_brings_is_told_as_such(good, capsys, override, message):
    Path("registry.yaml").write_text("study: mine\ntraining: {steps: 40_000}\nseeds: [0, 1]\n" + GOOD)
    assert main(["registry.yaml", override]) == MISTAKE
    told = capsys.readouterr().err
    assert told.startswith(f"command line: {message}") and told.count("\n") == 1


def test_unwritable_runs_folder(good, capsys):
    (good / "taken").write_text("a file, not a folder")
    assert main(["registry.yaml", "--runs-dir", "taken"]) == MISTAKE
    assert capsys.readouterr().err == "taken: cannot write to the runs folder: File exists\n"


def test_workers_and_only(good, capsys):
    assert main(["registry.yaml", "--workers", "0"]) == MISTAKE
    assert main(["registry.yaml", "--only", "pol*"]) == MISTAKE
    assert capsys.readouterr().err == (
        "--workers must be at least 1, not 0\n--only 'pol*' matches no cell; there are: heed\n"
    )
    assert main(["registry.yaml", "--only", "heed", "--only", "pol*", "--dry-run"]) == MISTAKE
    assert capsys.readouterr().err == "--only 'pol*' matches no cell; there are: heed\n"


def test_check_builds_and_refuses_what_does_not_fit(good, capsys):
    assert main(["registry.yaml", "--check", "training.batch=50"]) == MISTAKE
    assert capsys.readouterr().err == ("heed: training.batch gives each of 50 rows 1 step; it takes at least 2\n")
    small = ["training.batch=20", "training.rows=10", "training.steps=40"]
    assert main(["registry.yaml", "--check", *small]) == MISTAKE
    assert capsys.readouterr().err == (
        "heed: training.batch is 20, less than one episode of env 'ford' (24 steps): "
        "an update could not tell how an episode ends\n"
    )


@pytest.mark.parametrize(
    "nasty",
    ["a: " * 3000, "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\n" + "".join(
        f"k{i}: &k{i} [*{'c' if i == 0 else f'k{i - 1}'}, *{'c' if i == 0 else f'k{i - 1}'}]\n" for i in range(40)
    ), "[" * 5000, "x: " + "y" * 2_000_000],
    ids=["keys", "billion laughs", "brackets", "large"],
)  # fmt: skip
def test_absurd_files_are_refused_at_once(nasty, tmp_path, capsys):
    file = tmp_path / "registry.yaml"
    file.write_text(nasty)
    assert main([str(file)]) == MISTAKE
    assert capsys.readouterr().err.startswith(f"{file}")


def rewrite() -> None:
    import subprocess
    import sys

    for case in sorted(CASES.iterdir()):
        command = [sys.executable, "-m", "framework.run", "registry.yaml", "--runs-dir", "/nonexistent/runs"]
        done = subprocess.run(command, cwd=case, capture_output=True, text=True)
        text = done.stderr.replace(str(case.resolve()) + "/", "")
        (case / "expected.txt").write_text(text)
        print(f"== {case.name} (exit {done.returncode})\n{text}{done.stdout}")


if __name__ == "__main__":
    rewrite()
