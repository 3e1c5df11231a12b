"""How the grid's things look on the page: colours of Okabe and Ito, and a pattern each: hue alone tells nothing."""

from __future__ import annotations

from framework.interfaces import Tile

_CRACKS = "M2 6l6 4 4-5 5 4 5-3M2 17l5-3 5 5 4-4 6 3M12 5v6l-5 3M17 9l-1 6"
_WAVES = "".join(f"M0 {y}q3-3 6 0t6 0 6 0 6 0" for y in (7, 13, 19))
_BLADES = "".join(f"M{x} {y}q-1-4-3-6M{x} {y}q0-5 1-8M{x} {y}q1-3 4-5" for x, y in ((6, 11), (17, 12), (11, 22)))
_BRICKS = "M0 8h24M0 16h24M8 0v8M18 8v8M8 16v8"
_KEY = '<circle cx="8" cy="12" r="3.6"/><path d="M11.5 12H20M16 12v4M20 12v4"/>'


def _hazard(colour: str, pattern: str, ink: str, width: float = 1.6) -> str:
    return f'<rect width="24" height="24" fill="{colour}"/>' + _line(pattern, ink, width)


def _line(path: str, colour: str, width: float = 1.5) -> str:
    return f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="{width}" stroke-linecap="round"/>'


_BALL = (
    '<circle cx="12" cy="12" r="7" fill="#CC79A7" stroke="#3b1029" stroke-width="1.5"/>'
    '<circle cx="9.6" cy="9.4" r="1.8" fill="#fff" fill-opacity=".8"/>'
)
_BOX = '<rect x="5" y="5" width="14" height="14" rx="1.5" fill="#E69F00" stroke="#4a3300" stroke-width="1.5"/>' + _line(
    "M5 10.5h14M12 5v5.5", "#4a3300"
)
_GOLD_KEY = "".join(
    f'<g fill="none" stroke="{colour}" stroke-width="{width}">{_KEY}</g>'
    for colour, width in (("#2b2600", 5), ("#F0E442", 2.4))
)

TILES = (
    Tile(".", "floor", "", paintable=True),
    Tile("L", "lava", _hazard("#D55E00", _CRACKS, "#ffd9a8"), paintable=True),
    Tile("W", "water", _hazard("#3D8FC9", _WAVES, "#e3f3ff"), paintable=True),
    Tile("G", "grass", _hazard("#1E9E77", _BLADES, "#d5f5e3", 1.4), paintable=True),
    Tile("#", "wall", _hazard("#7d838c", _BRICKS, "#5c626b", 1.2), paintable=True),
    Tile("b", "ball", _BALL, note="to collect"),
    Tile("x", "box", _BOX, note="to collect"),
    Tile("k", "key", _GOLD_KEY, note="to collect"),
)
