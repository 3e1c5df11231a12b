"""The README's own plugin and commands, run as a reader would: outside the repository."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "counting_reader.py").write_text(blocks("python")[0])
    (tmp_path / "mine.yaml").write_text(blocks("yaml")[0])
    return tmp_path


def shell(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", *words], cwd=folder, capture_output=True, text=True)


def test_the_plugin_is_short():
    assert len(blocks("python")[0].splitlines()) < 40


def test_the_plugin_keeps_its_contract(folder):
    done = shell(folder, "framework.check", "counting_reader.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "NO" not in done.stdout


def test_the_plugin_works_in_another_world_with_water_too(folder):
    done = shell(folder, "framework.check", "counting_reader.py", "--env", "hazardworld_grid")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "for env 'hazardworld_grid'" in done.stdout


def test_the_plugin_is_found_checked_run_and_compared(folder):
    checked = shell(folder, "framework.run", "mine.yaml", "--check")
    assert checked.returncode == 0, checked.stderr
    assert "7 cells, 12 runs" in checked.stdout
    assert "mine.yaml            # 7 cells, 12 runs: " in README
    small = ["training.steps=4_800", "training.evaluation.episodes=50", "seeds=[0]"]
    ran = shell(folder, "framework.run", "mine.yaml", *small)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "6 done, 0 finished before, 0 failed" in ran.stdout
    assert f"plugin code: {folder / 'counting_reader.py'}" in ran.stdout
    table = (folder / "runs" / "mine" / "acting.csv").read_text()
    assert "interpreter=counting_reader,constraint=mean" in table
    again = shell(folder, "framework.run", "mine.yaml", *small)
    assert "0 done, 6 finished before, 0 failed" in again.stdout


def test_the_same_plugin_as_an_installed_package(folder, tmp_path_factory):
    """With an entry point, the registry needs no ``plugins:`` section."""
    project, site = tmp_path_factory.mktemp("project"), tmp_path_factory.mktemp("site")
    shutil.copy(folder / "counting_reader.py", project)
    (project / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
        '[project]\nname = "heed-counting"\nversion = "1.2.3"\n'
        '[project.entry-points."heed.plugins"]\ncounting = "counting_reader"\n'
        '[tool.setuptools]\npy-modules = ["counting_reader"]\n'
    )
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(site), str(project)]
    subprocess.run(install, check=True, capture_output=True)
    code = f"import sys; sys.path.insert(0, {str(site)!r}); from framework.run import main; sys.exit(main({{}}))"
    listed = subprocess.run([sys.executable, "-c", code.format(["--list"])], capture_output=True, text=True)
    assert "interpreter counting_reader  package heed-counting 1.2.3, entry point 'counting'" in listed.stdout
    registry = folder / "mine.yaml"
    registry.write_text(registry.read_text().replace("plugins:\n  - path: counting_reader.py\n", ""))
    words = [str(registry), "--runs-dir", str(folder / "runs"), "--workers", "1", "--only", "reader"]
    words += ["training.steps=4_800", "training.evaluation.episodes=50", "seeds=[0]"]
    script = folder / "go.py"
    script.write_text(
        f"import sys; sys.path.insert(0, {str(site)!r})\nfrom framework.run import main\n"
        f"if __name__ == '__main__': sys.exit(main({words!r}))\n"
    )
    ran = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, cwd=folder)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "1 done, 0 finished before, 0 failed" in ran.stdout


def test_commands_of_the_readme_exist():
    """Each make target that the README names is one, and each module can be asked for help."""
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make ([a-z-]+)", "\n".join(blocks("sh")), flags=re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
    for module in set(re.findall(r"python -m ([a-z.]+)", README)):
        assert shell(ROOT, module, "--help").returncode == 0, module
    for document in re.findall(r"\]\(([\w/]+\.md)\)", README):
        assert (ROOT / document).is_file(), document
