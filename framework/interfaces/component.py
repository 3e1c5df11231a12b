"""What every plugin class has in common: a name, a config dataclass, one line that says what it is."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

Kind = Literal["interpreter", "policy", "optimizer", "env"]
KINDS: tuple[Kind, ...] = ("interpreter", "policy", "optimizer", "env")


@dataclass(frozen=True)
class NoConfig:
    """For a plugin without settings."""


class Component:
    """Base of the four interfaces.

    ``name`` is the word people write in YAML. ``Config`` is a frozen dataclass: its fields are the plugin's settings,
    their types and defaults are checked before anything runs, and ``__post_init__`` may raise ``ValueError`` to refuse
    a value with a message of its own.
    """

    kind: ClassVar[Kind]
    name: ClassVar[str] = ""
    Config: ClassVar[type] = NoConfig
    requires: ClassVar[Mapping[str, str]] = {}
    """Optional packages: import name -> pip name. Import them where they are used, not at the top of the file, so that
    listing plugins stays fast; one that is not installed makes the plugin unavailable, and says what to type."""
    config: Any

    @classmethod
    def content(cls, config: Any) -> str:
        """A digest of what decides what it does and is not in the config: files that a setting names, say.

        Part of what names a run, so that a run is made anew when they change; "" (the default): there is nothing such.
        It is not the place to complain: leave out what cannot be read, ``__init__`` will say so.
        """
        return ""

    @classmethod
    def summary(cls) -> str:
        """First line of the class's own docstring, shown by ``--list``."""
        return (inspect.cleandoc(cls.__doc__ or "").splitlines() or [""])[0]
