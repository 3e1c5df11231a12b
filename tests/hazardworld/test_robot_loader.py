"""Without Safety-Gymnasium one is told what to type; the grid world never asks for it."""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from typing import Any

import pytest

from hazardworld.robot import loader


@pytest.fixture
def forgotten() -> Iterator[None]:
    """As if nothing of Safety-Gymnasium had been imported."""
    known = {name: module for name, module in sys.modules.items() if name.split(".")[0] == loader.NAME}
    for name in known:
        del sys.modules[name]
    yield
    for name in [name for name in sys.modules if name.split(".")[0] == loader.NAME]:
        del sys.modules[name]
    sys.modules.update(known)


def test_absent(forgotten: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"make setup.*pip install --no-deps safety-gymnasium==1\.0\.0"):
        loader.load.__wrapped__()
    assert loader.NAME not in sys.modules


def test_another_version(forgotten: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", lambda name: "1.2.0")
    with pytest.raises(ImportError, match=r"needs safety-gymnasium 1\.0\.0, but 1\.2\.0 is installed.*make setup"):
        loader.load.__wrapped__()


def test_something_it_needs_is_absent(forgotten: None, monkeypatch: pytest.MonkeyPatch) -> None:
    true_import = importlib.import_module

    def without_xmltodict(name: str) -> Any:
        if name.endswith(".world"):
            raise ModuleNotFoundError("No module named 'xmltodict'")
        return true_import(name)

    monkeypatch.setattr(importlib, "import_module", without_xmltodict)
    with pytest.raises(ImportError, match=r"something it needs is not: No module named 'xmltodict'.*make setup"):
        loader.load.__wrapped__()
    assert loader.NAME not in sys.modules


def test_layouts_need_no_simulation() -> None:
    code = "import sys, hazardworld, hazardworld.robot.layout; print({'mujoco', 'safety_gymnasium'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_the_framework_says_what_to_install(monkeypatch):
    """In a registry, absent safety-gymnasium is a message with the command, not a traceback."""
    from framework.plugin_manager import missing_requirements
    from plugins.envs.hazardworld_robot import HazardWorldRobot

    assert missing_requirements(HazardWorldRobot) == ""
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "safety_gymnasium" else found(name))
    assert "pip install --no-deps safety-gymnasium==1.0.0" in missing_requirements(HazardWorldRobot)
