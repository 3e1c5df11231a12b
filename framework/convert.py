"""Plain YAML values -> frozen dataclasses, with every mistake noted where it stands.

The same code checks registry.yaml itself and the ``Config`` of every plugin, so a misspelled key gets the same message
at any depth, with the owner of the key.
"""

from __future__ import annotations

import dataclasses
import math
import re
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from framework.errors import Problem, did_you_mean

T = TypeVar("T")


@dataclass
class Notes:
    """Collects problems; ``locate`` turns a dotted path into file:line."""

    locate: Callable[[str], str] = lambda path: ""
    problems: list[Problem] = field(default_factory=list)

    def add(self, path: str, message: str, owner: str = "") -> None:
        problem = Problem(message, where=self.locate(path), path=path, owner=owner)
        if problem not in self.problems:
            self.problems.append(problem)


def convert(cls: type[T], value: object, path: str, notes: Notes, owner: str = "") -> T | None:
    """``value`` as the dataclass ``cls``, or None when problems were noted."""
    if not isinstance(value, Mapping):
        notes.add(path, f"expected a mapping of settings, got {_show(value)}", owner)
        return None
    hints = get_type_hints(cls)
    known = {f.name: f for f in dataclasses.fields(cls) if f.init}  # type: ignore[arg-type]
    values: dict[str, Any] = {}
    bad = set[str]()
    for key, item in value.items():
        inner, before = join(path, key), len(notes.problems)
        if key not in known:
            notes.add(inner, f"unknown key '{key}'{did_you_mean(str(key), list(known))}", owner)
        else:
            values[str(key)] = coerce(hints[str(key)], item, inner, notes, owner)
        if len(notes.problems) > before:
            bad.add(str(key))
    return _construct(cls, values, bad, path, notes, owner)


def _construct(cls: type[T], values: Mapping[str, Any], bad: set[str], path: str, notes: Notes, owner: str) -> T | None:
    """``cls(**values)``, or None where some are ``bad``. A constructor raises at the first value that it refuses, so it
    is asked again without that one, until it has told all. What is not about a value that was given, or speaks of one
    that was left out (whose default stands in for it), may be no mistake at all once the others are mended."""
    while True:
        given = {key: item for key, item in values.items() if key not in bad}
        try:
            made = cls(**given)
            return None if bad else made
        except (ValueError, TypeError) as error:
            told = str(error)
        culprit = next((key for key in given if told.startswith((f"{key} ", f"unknown {key} "))), None)
        if not bad:
            notes.add(path if culprit is None else join(path, culprit), told, owner)
        elif culprit is not None and not bad.intersection(re.findall(r"\w+", told)):
            notes.add(join(path, culprit), told, owner)
        if culprit is None:
            return None
        bad.add(culprit)


def coerce(hint: Any, value: object, path: str, notes: Notes, owner: str = "") -> Any:
    """``value`` checked against a type hint; a mistake is noted, and what comes back then is never used."""
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any:
        return value
    if dataclasses.is_dataclass(hint):
        return convert(cast(type, hint), value, path, notes, owner)
    if origin is Literal:
        if value not in args or isinstance(value, bool) != any(isinstance(a, bool) and a == value for a in args):
            near = did_you_mean(value, [a for a in args if isinstance(a, str)]) if isinstance(value, str) else ""
            notes.add(path, f"expected one of {', '.join(map(str, args))}, got {_show(value)}{near}", owner)
        return value
    if origin in (Union, types.UnionType):
        return _coerce_union(args, value, path, notes, owner)
    if origin is tuple:
        return _coerce_tuple(args, value, path, notes, owner)
    if origin in (dict, Mapping):
        if not isinstance(value, Mapping):
            notes.add(path, f"expected a mapping, got {_show(value)}", owner)
            return {}
        return {str(k): coerce(args[1], v, join(path, k), notes, owner) for k, v in value.items()}
    return _coerce_scalar(hint, value, path, notes, owner)


def _coerce_union(args: tuple[Any, ...], value: object, path: str, notes: Notes, owner: str) -> Any:
    if value is None and type(None) in args:
        return None
    choices = [a for a in args if a is not type(None)]
    for choice in choices:
        trial = Notes()
        result = coerce(choice, value, path, trial, owner)
        if not trial.problems:
            return result
    fitting = choices if len(choices) == 1 else [c for c in choices if _same_shape(c, value)]
    if len(fitting) == 1:  # what is wrong is inside it
        return coerce(fitting[0], value, path, notes, owner)
    notes.add(path, f"expected {' or '.join(_name(c) for c in args)}, got {_show(value)}", owner)
    return value


def _same_shape(hint: Any, value: object) -> bool:
    """A list where a list may be, a mapping where a mapping may be."""
    if isinstance(value, Mapping):
        return dataclasses.is_dataclass(hint) or get_origin(hint) in (dict, Mapping)
    return get_origin(hint) is tuple and isinstance(value, Sequence) and not isinstance(value, str)


def _coerce_tuple(args: tuple[Any, ...], value: object, path: str, notes: Notes, owner: str) -> Any:
    if isinstance(value, str) or not isinstance(value, Sequence):
        notes.add(path, f"expected a list, got {_show(value)}", owner)
        return ()
    if len(args) == 2 and args[1] is Ellipsis:
        return tuple(coerce(args[0], item, join(path, i), notes, owner) for i, item in enumerate(value))
    if len(args) != len(value):
        notes.add(path, f"expected a list of {len(args)} items, got {len(value)}", owner)
        return ()
    return tuple(
        coerce(a, item, join(path, i), notes, owner) for i, (a, item) in enumerate(zip(args, value, strict=True))
    )


def _coerce_scalar(hint: Any, value: object, path: str, notes: Notes, owner: str) -> Any:
    if hint not in (int, float, bool, str):
        raise TypeError(f"{path}: settings of type {hint} cannot come from YAML")  # class_faults refuses such plugins
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            notes.add(path, "expected a finite number, got one that is far too large", owner)
            return value
    if hint is int and isinstance(value, float) and value.is_integer():
        return int(value)  # 1e6 is a float in YAML; as a count of steps it means 1000000
    if isinstance(value, bool) != (hint is bool) or not isinstance(value, hint):
        notes.add(path, f"expected {_name(hint)}, got {_show(value)}", owner)
    elif hint is float and not math.isfinite(cast(float, value)):
        notes.add(path, f"expected a finite number, got {value}", owner)
    return value


def join(path: str, key: object) -> str:
    return f"{path}.{key}" if path else str(key)


def from_yaml(hint: Any) -> bool:
    """Can values of this type be written in YAML and checked here?"""
    origin, args = get_origin(hint), get_args(hint)
    if hint in (Any, int, float, bool, str, type(None)) or origin is Literal:
        return True
    if dataclasses.is_dataclass(hint):
        return all(from_yaml(h) for h in get_type_hints(hint).values())
    if origin in (Union, types.UnionType):
        return all(map(from_yaml, args))
    if origin is tuple:
        return all(from_yaml(a) for a in args if a is not Ellipsis)
    return origin in (dict, Mapping) and from_yaml(args[1])


_NAMES = {int: "a whole number", float: "a number", bool: "true or false", str: "text", type(None): "null"}


def _name(hint: Any) -> str:
    if get_origin(hint) is tuple:
        return "a list" if Ellipsis in get_args(hint) else f"a list of {len(get_args(hint))} items"
    if get_origin(hint) is Literal:
        return " or ".join(map(str, get_args(hint)))
    return _NAMES.get(hint, getattr(hint, "__name__", str(hint)))


def _show(value: object) -> str:
    if value is None:
        return "nothing (null)"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, str):
        return f"text '{value if len(value) <= 40 else value[:37] + '...'}'"
    if isinstance(value, Sequence):
        return "a list"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
