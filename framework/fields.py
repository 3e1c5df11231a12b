"""Names, types, defaults and docstrings of a dataclass's fields: what ``--list`` and docs/registry.md are made of."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class FieldDoc:
    """One setting."""

    name: str
    type: str
    default: str
    text: str


def describe_fields(cls: type) -> list[FieldDoc]:
    """The settings of a config dataclass, each with the docstring that follows it in the source."""
    texts = {name: text for base in reversed(cls.__mro__) for name, text in _docstrings(base).items()}
    return [
        FieldDoc(f.name, str(f.type), _default(f), texts.get(f.name, "")) for f in dataclasses.fields(cls) if f.init
    ]


def _default(field: dataclasses.Field[Any]) -> str:
    value = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
    if dataclasses.is_dataclass(value):
        return ", ".join(f"{f.name}: {_word(getattr(value, f.name))}" for f in dataclasses.fields(value))
    return _word(value)


def _word(value: Any) -> str:
    """As one would write it in YAML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_word, value))}]"
    if isinstance(value, dict):
        return "{}" if not value else str(value)
    return '""' if value == "" else str(value)


def _docstrings(cls: type) -> dict[str, str]:
    if not dataclasses.is_dataclass(cls):
        return {}
    try:
        body = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    except (OSError, TypeError, SyntaxError, IndentationError):
        return {}
    assert isinstance(body, ast.ClassDef)
    texts = {}
    for field, after in zip(body.body, body.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(after, ast.Expr):
            value = after.value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                texts[field.target.id] = " ".join(value.value.split())
    return texts
