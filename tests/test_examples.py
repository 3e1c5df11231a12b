"""The examples run, import no framework, and are the ones that the documentation shows."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

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
