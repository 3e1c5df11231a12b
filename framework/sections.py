"""The sections of a registry as its schema has them: each is well formed, or noted and empty."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from framework.convert import Notes, convert
from framework.errors import did_you_mean, near
from framework.names import file_part, folder_fault, name_fault
from framework.plugin_manager import PluginRef
from framework.schema import Ablation, Exam, Experiment, PluginEntry, Registry
from framework.source import Source

RESERVED = ("cells", "interpreters")
NAMED: dict[str, type] = {"experiments": Experiment, "ablations": Ablation, "evaluations": Exam}
"""Sections that are mappings of names to these."""


def well_formed(source: Source, notes: Notes) -> Registry:
    """The sections that are well formed; each bad one is noted and stands empty, so that the rest is checked too."""
    sections: dict[str, Any] = {}
    known = list(Registry.__dataclass_fields__)
    for key, value in source.values.items():
        if key not in known:
            notes.add(key, f"unknown key '{key}'{did_you_mean(key, known)}", "registry")
        elif value is None and key not in ("study", "seeds"):
            continue  # a section whose lines are all commented out
        elif key in NAMED:
            cls = NAMED[key]
            sections[key] = _named(cls, key, value, notes)
        elif key in ("plugins", "observers"):
            continue  # plugin_refs and observer_refs
        else:
            trial = convert(Registry, {key: value}, "", notes, key)
            if trial is not None:
                sections[key] = getattr(trial, key)
    name = sections.get("study", "")
    if name in RESERVED:
        notes.add("study", f"'{name}' is the name of a folder that runs use; choose another", "registry")
    if "study" in sections and (fault := folder_fault(name)):
        notes.add("study", fault, "registry")
        sections.pop("study")
    _check_file_names(sections.get("evaluations", {}), notes)
    return Registry(**sections)


def _named(cls: type, section: str, value: object, notes: Notes) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        notes.add(section, f"expected a mapping of names, got {value!r}", section)
        return {}
    for name in value:
        if fault := name_fault(str(name)):
            notes.add(section, fault, section)
    made = {str(name): _lenient(cls, body, f"{section}.{name}", notes, section) for name, body in value.items()}
    return {name: item for name, item in made.items() if item is not None}


def _check_file_names(evaluations: Mapping[str, Any], notes: Notes) -> None:
    """Tables and figures of an evaluation are files with its name in theirs."""
    taken: dict[str, str] = {}
    for name in evaluations:
        other = taken.setdefault(file_part(name), name)
        if other != name:
            said = f"'{name}' and '{other}' would have the same files (acting-{file_part(name)}.csv); rename one"
            notes.add(f"evaluations.{name}", said, "evaluations")


def _lenient(cls: type, body: object, path: str, notes: Notes, owner: str) -> Any:
    """Like ``convert``, but a bad key is noted and left out, so that what the others say is checked as well. A misspelt
    one is noted and then read as what it was meant to be: nobody is told that a component is missing which is there."""
    if not isinstance(body, Mapping):
        return convert(cls, body, path, notes, owner)
    known = [f.name for f in dataclasses.fields(cls)]
    good = {}
    for key, value in body.items():
        before = len(notes.problems)
        convert(cls, {key: value}, path, notes, owner)
        if len(notes.problems) == before:
            good[key] = value
        elif key not in known and (meant := near(str(key), known)) and meant not in body:
            trial = Notes()
            convert(cls, {meant: value}, path, trial, owner)
            good |= {} if trial.problems else {meant: value}
    return convert(cls, good, path, notes, owner)


def plugin_refs(source: Source, folder: Path, notes: Notes) -> tuple[PluginRef, ...]:
    entries = source.values.get("plugins") or []
    if not isinstance(entries, list):
        notes.add("plugins", "expected a list of {path: file.py} or {module: name}", "registry")
        return ()
    refs = []
    for i, item in enumerate(entries):
        entry = convert(PluginEntry, item, f"plugins.{i}", notes, "registry")
        if entry is not None:
            path = os.path.abspath(folder / entry.path) if entry.path else None
            refs.append(PluginRef(path, entry.module, source.locate(f"plugins.{i}")))
    return tuple(refs)


def observer_refs(source: Source, notes: Notes) -> tuple[PluginRef, ...]:
    entries = source.values.get("observers") or []
    if not isinstance(entries, list):
        notes.add("observers", "expected a list of names, or of {plugin: name, settings}", "registry")
        return ()
    refs = []
    for i, item in enumerate(entries):
        settings = dict(item) if isinstance(item, Mapping) else {"plugin": item}
        name = settings.pop("plugin", None)
        if isinstance(name, str):
            refs.append(PluginRef(where=source.locate(f"observers.{i}"), observer=name, settings=settings))
        else:
            notes.add(f"observers.{i}", f"expected a name, or {{plugin: name, settings}}, got {item!r}", "registry")
    return tuple(refs)
