"""Generated pages are up to date, and every hook and key is documented."""

from __future__ import annotations

import dataclasses
import importlib
import runpy
from pathlib import Path

import pytest

from framework import hookspecs, schema
from framework.fields import describe_fields
from framework.plugin_manager import PluginHost

ROOT = Path(__file__).parent.parent
PAGES = runpy.run_path(str(ROOT / "scripts" / "make_reference.py"))["PAGES"]


@pytest.mark.parametrize("page", PAGES)
def test_generated_page_is_up_to_date(page):
    assert (ROOT / "docs" / page).read_text() == PAGES[page](), "run: python scripts/make_reference.py"


@pytest.mark.parametrize("page", ["README.md", "docs/results.md", "docs/robot.md"])
def test_tables_of_results_are_those_of_the_data(page, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    tables = importlib.import_module("result_tables")
    text = (ROOT / page).read_text()
    assert tables.PLACE.search(text)
    assert text == tables.page(ROOT / page), f"run: python scripts/results.py page {page}"


def test_every_key_of_the_schema_is_explained():
    classes = [cls for cls in vars(schema).values() if isinstance(cls, type) and dataclasses.is_dataclass(cls)]
    assert len(classes) == 11
    bare = [f"{cls.__name__}.{f.name}" for cls in classes for f in describe_fields(cls) if not f.text]
    assert not bare


def test_every_key_of_the_schema_is_in_the_reference():
    sections = runpy.run_path(str(ROOT / "scripts" / "make_reference.py"))["SECTIONS"]
    classes = {cls for cls in vars(schema).values() if isinstance(cls, type) and dataclasses.is_dataclass(cls)}
    assert {cls.__name__ for _, cls in sections} == {cls.__name__ for cls in classes}
    page = (ROOT / "docs" / "registry.md").read_text()
    assert [f.name for cls in classes for f in describe_fields(cls) if f"| `{f.name}` |" not in page] == []


def test_every_setting_of_a_builtin_plugin_is_explained():
    host = PluginHost()
    configs = {entry.name: entry.cls.Config for entry in host.catalog if entry.cls is not None}
    configs |= {name: cls.Config for name, (cls, _) in host.observer_types.items()}
    bare = [f"{name}.{f.name}" for name, config in configs.items() for f in describe_fields(config) if not f.text]
    assert not bare


@pytest.mark.parametrize("kind", ["interpreter", "policy", "optimizer"])
def test_every_builtin_plugin_is_on_the_page_of_its_kind(kind):
    page = (ROOT / "docs" / ("policies.md" if kind == "policy" else f"{kind}s.md")).read_text()
    assert [name for name in PluginHost().catalog.names(kind) if f"`{name}`" not in page] == []


def test_every_hook_is_in_the_manual():
    page = (ROOT / "docs" / "hooks.md").read_text()
    hooks = [name for name in vars(hookspecs) if name.startswith("heed_")]
    assert hooks == ["heed_components", "heed_observers", "heed_observe", "heed_agents"]
    assert all(f"`{name}(" in page for name in hooks)


def test_every_file_of_the_framework_is_in_the_table_of_the_design():
    page = (ROOT / "docs" / "design.md").read_text()
    files = [file.name for file in (ROOT / "framework").glob("*.py") if not file.name.startswith("__")]
    assert [name for name in files if f"`{name}`" not in page] == []
