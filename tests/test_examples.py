"""The examples run: scripts without the framework, plugins with their registries, the notebook, the package."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from framework.check import main as check
from framework.config import load
from framework.stages import run_cell

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
STANDARD = set(sys.stdlib_module_names)


def run(name: str, *words: str, folder: Path) -> str:
    done = subprocess.run([sys.executable, EXAMPLES / name, *words], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_gymnasium_loop(tmp_path: Path) -> None:
    lines = run("gymnasium_loop.py", folder=tmp_path).splitlines()
    assert len(lines) == 5
    assert all(re.fullmatch(r".+ allows [0-5]: return [0-6], cost \d+", line) for line in lines), lines


def test_ppo(tmp_path: Path) -> None:
    lines = run("ppo_on_hazardworld.py", "--steps", "2048", folder=tmp_path).splitlines()
    assert [int(line.split()[0]) for line in lines] == [1024, 2048]
    assert re.search(r"return +[\d.]+  cost +[\d.]+  past the budget +[\d.]+$", lines[1]), lines


@pytest.mark.parametrize(
    ("name", "packages"),
    [
        ("gymnasium_loop.py", {"gymnasium", "hazardworld"}),
        ("ppo_on_hazardworld.py", {"gymnasium", "hazardworld", "numpy", "torch"}),
        ("sb3_on_hazardworld.py", {"gymnasium", "hazardworld", "numpy", "stable_baselines3"}),
    ],
)
def test_imports(name: str, packages: set[str]) -> None:
    imported = set()
    for node in ast.walk(ast.parse((EXAMPLES / name).read_text())):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(str(node.module).split(".")[0])
    assert imported - STANDARD == packages


def test_the_documentation_shows_the_loop() -> None:
    shown = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "hazardworld.md").read_text(), flags=re.DOTALL)
    assert (EXAMPLES / "gymnasium_loop.py").read_text() in shown


def test_the_documentation_names_tests_that_exist() -> None:
    named = re.findall(r"`(test_\w+\.py)::(test_\w+)`", (ROOT / "docs" / "hazardworld.md").read_text())
    assert len(named) >= 5
    for file, test in named:
        assert f"def {test}(" in (ROOT / "tests" / "hazardworld" / file).read_text(), f"{file}::{test}"


@pytest.mark.slow
def test_stable_baselines3(tmp_path: Path) -> None:
    pytest.importorskip("stable_baselines3")
    assert re.match(
        r"\d+ steps: return minus penalties", run("sb3_on_hazardworld.py", "--steps", "256", folder=tmp_path)
    )


PLUGINS = ("interpreter/keyword_reader.py", "optimizer/reinforce.py", "package/src/heed_strict/strict_reader.py")
REGISTRIES = ("interpreter/keyword_reader.yaml", "optimizer/reinforce.yaml", "gymnasium_env/corridor.yaml",
              "ablation_grid.yaml")  # fmt: skip


@pytest.mark.parametrize("name", PLUGINS)
def test_a_plugin_keeps_its_contract(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert check([str(EXAMPLES / name)]) == 0, capsys.readouterr().out


@pytest.mark.parametrize("name", REGISTRIES)
def test_a_registry_is_fine_and_its_first_system_runs(name: str, tmp_path: Path) -> None:
    small = ["training.steps=2_400", "training.batch=2_400", "training.rows=20", "training.evaluation.episodes=20"]
    study = load(EXAMPLES / name, [*small, "training.evaluation.reading_steps=200"])
    first = study.runs[0]
    (tmp_path / "cells" / first.id).mkdir(parents=True)
    assert run_cell(first, tmp_path, study.host)["summary"]["episodes"] == 20


@pytest.mark.parametrize("file", [*EXAMPLES.rglob("*.py"), *EXAMPLES.rglob("*.yaml")], ids=lambda file: file.name)
def test_an_example_says_what_to_type(file: Path) -> None:
    if file.parent.name == "heed_strict":
        file = EXAMPLES / "package" / "pyproject.toml"  # the package's first file
    head = "\n".join(file.read_text().splitlines()[:12])
    assert re.search(r"python -m framework\.\w+|python examples/|pip install", head), head


@pytest.mark.slow  # docs/python.md, which is much the same, is run by a fast one
def test_the_cells_of_the_notebook_run(tmp_path: Path) -> None:
    cells = json.loads((EXAMPLES / "notebook.ipynb").read_text())["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    code = code.replace("24_000", "2_400").replace("episodes=100", "episodes=20")
    (tmp_path / "studies").mkdir()
    shutil.copy(ROOT / "studies" / "ford.yaml", tmp_path / "studies")
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True,
                          env=os.environ | {"PYTHONPATH": str(ROOT)})  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_package_installs_and_is_listed(tmp_path: Path) -> None:
    project, site = tmp_path / "project", tmp_path / "site"
    shutil.copytree(EXAMPLES / "package", project)  # a build leaves files behind
    words = ["install", "-q", "--no-deps", "--no-build-isolation", "--no-index", "--target", str(site), str(project)]
    done = subprocess.run([sys.executable, "-m", "pip", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    command = [sys.executable, "-m", "framework.run", "--list"]
    paths = {"PYTHONPATH": os.pathsep.join([str(site), str(ROOT)])}
    listed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=os.environ | paths)
    assert "interpreter strict_reader  package heed-strict 0.1.0, entry point 'strict'" in listed.stdout, listed.stderr
