"""What a run was made with: code, versions, machine. Recorded with every run, so that a number can be traced."""

from __future__ import annotations

import functools
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import framework

PACKAGES = (
    "torch", "numpy", "gymnasium", "minigrid", "mujoco", "safety-gymnasium", "sentence-transformers",
    "numba", "omegaconf", "pluggy", "safetensors",
)  # fmt: skip


CODE = ("framework", "plugins", "hazardworld")
"""What a run is made by; changes elsewhere (docs, tests) do not make it another run."""


@functools.cache
def provenance() -> dict[str, Any]:
    """Commit (with a mark when there are changes on top), package versions, Python, platform."""
    return {
        "heed": framework.__version__,
        "commit": _commit(),
        "python": platform.python_version(),
        "platform": platform.platform(terse=True),
        "packages": {name: found for name in PACKAGES if (found := _version(name))},
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _commit() -> str | None:
    root = Path(__file__).resolve().parent.parent
    try:
        head = _git(root, "rev-parse", "HEAD")
        changed = _git(root, "status", "--porcelain", "--untracked-files=no", "--", *CODE)
        return head + ("+changes" if changed else "")
    except (OSError, subprocess.SubprocessError):
        return None


def _git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, timeout=10, check=True)
    return done.stdout.strip()
