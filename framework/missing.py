"""What a plugin needs and is not there, in words: a package to install, or a file that lies beside it."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from framework.hookspecs import NamedObserver
from framework.interfaces.component import Component


def missing_requirements(cls: type[Component] | type[NamedObserver]) -> str:
    """'' or why the plugin cannot be used here: packages from ``requires`` that are not installed."""
    missing = [pip for module, pip in cls.requires.items() if importlib.util.find_spec(module) is None]
    return f"it needs {', '.join(missing)}; install with: pip install {' '.join(missing)}" if missing else ""


def not_found(module: str) -> str:
    """Why a plugin that imports ``module`` cannot be used. Names no command: who knows whose package is called so?"""
    return f"it imports '{module}', and there is no module of that name; if it is a package, install it"


def beside(target: str | Path, module: str) -> str:
    """'' or, when a plugin file imports a file or folder next to it, why that does not work and what does."""
    if not isinstance(target, Path):
        return ""
    found = next((name for name in (f"{module}.py", f"{module}/") if (target.parent / name).exists()), None)
    if found is None:
        return ""
    return (
        f"a plugin file is loaded by itself and cannot import {found} beside it; make a package of them "
        f"(a folder with __init__.py and both, say my_package/, where you type the command), import "
        f"my_package.{module} and list {{module: my_package.{target.stem}}}"
    )
