"""How a stage tells how far it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping

Progress = Callable[[str, int, Mapping[str, float]], None]
"""progress(stage, step, numbers)"""
