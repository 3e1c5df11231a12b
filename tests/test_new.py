"""``python -m framework.new``: three files that work as written, nothing overwritten, bad names told."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from textwrap import indent

import pytest

from framework.check import main as check
from framework.config import load
from framework.interfaces.component import KINDS
from framework.new import main
from framework.run import main as run
from framework.stages import run_cell

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("kind", KINDS)
def test_the_registry_as_written_is_fine_and_its_systems_train(kind, tmp_path, capsys):
    assert main([kind, f"my_{kind}", "--dir", str(tmp_path)]) == 0
    assert f"python -m framework.run {tmp_path / f'my_{kind}.yaml'}" in capsys.readouterr().out
    small = ["training.steps=6_000", "training.batch=3_000", "training.rows=100", "training.evaluation.episodes=20"]
    small += ["training.evaluation.reading_steps=200", "training.interpreter.steps=2_000"]
    small += ["training.interpreter.iterations=5", "training.interpreter.rows=20"]
    study = load(tmp_path / f"my_{kind}.yaml", small)
    assert len(study.runs) == 2  # itself, and what it is compared with
    mine = study.runs[0]
    (tmp_path / "runs" / "cells" / mine.id).mkdir(parents=True)
    result = run_cell(mine, tmp_path / "runs", study.host)
    assert result["summary"]["episodes"] == 20


def test_the_tests_as_written_pass(tmp_path):
    for kind in KINDS:
        assert main([kind, f"own_{kind}", "--dir", str(tmp_path)]) == 0
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path)]
    done = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "12 passed" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "system", "enough"),
    [
        ("policy", "mine", lambda s: s["reward"] > 5 and s["violation"] < 0.2),
        ("optimizer", "mine", lambda s: s["reward"] > 5 and s["violation"] < 0.3),
        ("env", "heeds", lambda s: s["reward"] > 2.5 and s["violation"] < 0.3),
    ],
)
def test_what_is_generated_learns(kind, system, enough, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main([kind, "my_own"]) == 0
    assert run(["my_own.yaml", "--only", system, "--workers", "1", "--quiet"]) == 0
    import framework

    (record,) = framework.results("runs")
    assert enough(record), record


@pytest.mark.slow
def test_the_generated_interpreter_learns_to_read(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["interpreter", "my_own"]) == 0
    assert run(["my_own.yaml", "--only", "mine", "--workers", "1", "--quiet"]) == 0
    table = (tmp_path / "runs" / "my_own" / "reading.csv").read_text().splitlines()
    scores = dict(zip(table[0].split(","), table[1].split(","), strict=True))
    assert float(scores["cell_accuracy"]) > 0.95


def test_the_tutorial_improves_what_is_generated(tmp_path, monkeypatch, capsys):
    """Its fourth step as a reader takes it: a setting, another loop, and both versions in one grid."""
    monkeypatch.chdir(tmp_path)
    assert main(["interpreter", "my_reader"]) == 0
    page = (ROOT / "docs" / "tutorials" / "interpreter.md").read_text()
    setting, loop = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    (axis,) = re.findall(r"```yaml\naxes:\n *(.*?)\n```", page)
    plugin, registry = Path("my_reader.py"), Path("my_reader.yaml")
    old_loop = re.search(r" +for word in re.findall.*?\n.*?\n", plugin.read_text())[0]
    code = plugin.read_text().replace(old_loop, indent(loop, " " * 12))
    plugin.write_text(code.replace("    def __post_init__", f"{indent(setting, ' ' * 4)}\n    def __post_init__"))
    registry.write_text(registry.read_text().replace("interpreter: [my_reader, naive_bayes]", axis))
    assert check(["my_reader.py", "pairs=true"]) == 0, capsys.readouterr().out
    readers = [run.cell.interpreter for run in load(registry).runs]
    assert [reader.plugin for reader in readers] == ["my_reader", "my_reader", "naive_bayes"]
    assert [reader.config.pairs for reader in readers[:2]] == [False, True]


def told(words, capsys) -> str:
    assert main(words) == 2
    return capsys.readouterr().err.replace("\n", " ")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["interprter", "x"], "'interprter' is no kind of plugin; did you mean 'interpreter'?"),
        (["env", "Foo-1"], "'Foo-1' cannot name a plugin; use lower_case letters, digits and underscores"),
        (["env", "../up"], "'../up' cannot name a plugin"),
        (["env", "class"], "'class' is a word of the Python language"),
        (["env", "ford"], "there is env 'ford' (plugins/envs/ford.py) already; choose another name"),
        (["policy", "random"], "'random' is a Python module, which random.py would hide"),
        (["policy", "torch"], "'torch' is a Python module"),
        (["policy", "framework"], "'framework' is a Python module"),
        (["policy", "test_me"], "pytest would take test_me.py for a test"),
    ],
)
def test_bad_names_are_told(words, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert message in told(words, capsys)
    assert not list(tmp_path.iterdir())


def test_nothing_is_overwritten(tmp_path, capsys):
    (tmp_path / "mine.yaml").write_text("precious")
    assert "mine.yaml: is there already; nothing was written" in told(["env", "mine", "--dir", str(tmp_path)], capsys)
    assert [file.name for file in tmp_path.iterdir()] == ["mine.yaml"]
    assert (tmp_path / "mine.yaml").read_text() == "precious"


def test_a_folder_that_cannot_be_made_is_told(tmp_path, capsys):
    (tmp_path / "file").touch()
    assert "cannot be written" in told(["env", "mine", "--dir", str(tmp_path / "file" / "in")], capsys)
