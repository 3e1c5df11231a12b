"""Heed: safe reinforcement learning with constraints said in plain language.

From Python (docs/python.md)::

    import framework
    study = framework.load("registry.yaml", "training.steps=10_000")
    study.run(workers=1)
    framework.results("runs").to_pandas()
    agent = framework.load_agent("runs/cells/<id>")
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_API = {"load": "api", "results": "api", "history": "api", "load_agent": "trained_agent"}
"""Where each name is. Loaded at first use: torch alone takes seconds, and ``import framework`` should take none."""


def __getattr__(name: str) -> Any:
    if name not in _API:
        raise AttributeError(f"module 'framework' has no attribute '{name}'")
    return getattr(import_module(f"framework.{_API[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_API})
