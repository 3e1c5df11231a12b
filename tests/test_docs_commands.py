"""What the documentation tells people to type: every command is parsed, every registry checked, every link followed."""

from __future__ import annotations

import importlib
import re
import shlex
import sys
from pathlib import Path

import pytest
import yaml

import framework
from framework.__main__ import commands
from framework.config import load

ROOT = Path(__file__).parent.parent
PAGES = {str(page.relative_to(ROOT)): page.read_text() for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"))}


def fenced(language: str) -> list[tuple[str, str]]:
    """(page, content) of every block of code in that language."""
    pattern = re.compile(rf"^( *)```{language}\n(.*?)^\1```", flags=re.DOTALL | re.MULTILINE)
    return [(page, match[2]) for page, text in PAGES.items() for match in pattern.finditer(text)]


def typed() -> list[tuple[str, str]]:
    """(page, command) of every line that starts a module of ours."""
    found = []
    for page, block in fenced("sh"):
        lines = (line.strip() for line in block.replace("\\\n", " ").splitlines())
        found += [(page, line) for line in lines if line.startswith("python -m framework")]
    return found


@pytest.mark.parametrize(("page", "command"), typed(), ids=lambda value: value.split("  #")[0].strip()[:80])
def test_a_command_is_understood(page, command, monkeypatch):
    _, _, module, *words = shlex.split(command, comments=True)
    if module == "framework":
        assert not words
        return
    parser = importlib.import_module(module)._parser()
    try:
        options = parser.parse_intermixed_args(words)
    except SystemExit:
        pytest.fail(f"{page}: {command}: not understood")
    registry = getattr(options, "registry", None)
    if registry is not None and (ROOT / registry).is_file():
        monkeypatch.chdir(ROOT)
        study = load(ROOT / registry, options.overrides)
        if options.only:
            from framework.run import select

            assert select(study, *options.only).cells


def test_there_are_commands_to_check():
    modules = {shlex.split(command, comments=True)[2] for _, command in typed()}
    assert modules == {"framework", *(f"framework.{name}" for name in commands())}  # every command is documented


@pytest.mark.parametrize("name", commands())
def test_every_command_explains_itself(name, capsys, monkeypatch):
    module = importlib.import_module(f"framework.{name}")
    monkeypatch.setattr(sys, "argv", ["x", "--help"])
    with pytest.raises(SystemExit) as stop:
        module.main()
    assert stop.value.code == 0
    text = capsys.readouterr().out
    assert f"python -m framework.{name}" in text
    bare = [action.dest for action in module._parser()._actions if not action.help]
    assert not bare, f"no help for {bare}"


def test_the_list_of_commands(capsys):
    from framework.__main__ import main

    assert main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    for name in commands():
        (line,) = (line for line in lines if line.startswith(f"  python -m framework.{name} "))
        assert len(line.split("  ")) >= 3, line  # what to type, and what it is for
    assert main(["shwo"]) == 2
    assert "did you mean 'show'?" in capsys.readouterr().err
    assert main(["run", "registry.yaml"]) == 2
    assert "type python -m framework.run" in capsys.readouterr().err


@pytest.mark.parametrize(("page", "text"), fenced("yaml"))
def test_yaml_is_yaml_and_whole_registries_are_fine(page, text, tmp_path):
    content = yaml.safe_load(text)
    if "experiments" not in content or "plugins" in content or "reuse" in content:
        return  # a part of one, or one that needs files beside it (test_readme.py, test_examples.py)
    (tmp_path / "registry.yaml").write_text(text)
    assert load(tmp_path / "registry.yaml").runs


@pytest.mark.parametrize(("page", "text"), fenced("python"), ids=lambda value: value[:40])
def test_python_is_python(page, text):
    compile(text, page, "exec")


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)", PAGES[page]):
        if not target.startswith("http"):
            assert ((ROOT / page).parent / target).exists(), f"{page}: {target}"


def test_every_page_can_be_reached_from_the_readme():
    reached, todo = set(), ["README.md"]
    while todo:
        page = todo.pop()
        if page in reached or page not in PAGES:
            continue
        reached.add(page)
        for target in re.findall(r"\]\(([^)#\s]+\.md)", PAGES[page]):
            todo.append(str(((ROOT / page).parent / target).resolve().relative_to(ROOT.resolve())))
    assert not set(PAGES) - reached


def test_the_files_around_it_fit():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == framework.__version__
    assert citation["references"][0]["authors"][0]["family-names"] == "Yang"
    assert f"## {framework.__version__}" in PAGES["CHANGELOG.md"]
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    lint = (ROOT / "Makefile").read_text()
    for hook in hooks:  # the same tools as `make lint`
        assert hook["entry"].replace(".venv/bin", "$(VENV)") in lint
