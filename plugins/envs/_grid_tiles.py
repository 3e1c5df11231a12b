"""How the grid's things look on the page: colours of Okabe and Ito, and a pattern for each, so hue alone tells nothing."""

from __future__ import annotations

from framework.interfaces import Tile

_WAVE = "q3-3 6 0t6 0 6 0 6 0"
_BLADES = "".join(f"M{x} {y}q-1-4-3-6M{x} {y}q0-5 1-8M{x} {y}q1-3 4-5" for x, y in ((6, 11), (17, 12), (11, 22)))


def _line(path: str, colour: str, width: float = 1.6) -> str:
    return f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="{width}" stroke-linecap="round"/>'


def _ground(colour: str) -> str:
    return f'<rect width="24" height="24" fill="{colour}"/>'


TILES = (
    Tile(".", "floor", "", paintable=True),
    Tile("L", "lava", _ground("#D55E00") + _line("M2 6l6 4 4-5 5 4 5-3M2 17l5-3 5 5 4-4 6 3M12 5v6l-5 3M17 9l-1 6", "#ffd9a8"), True),
    Tile("W", "water", _ground("#3D8FC9") + _line(f"M0 7{_WAVE}M0 13{_WAVE}M0 19{_WAVE}", "#e3f3ff"), True),
    Tile("G", "grass", _ground("#1E9E77") + _line(_BLADES, "#d5f5e3", 1.4), True),
    Tile("#", "wall", _ground("#7d838c") + _line("M0 8h24M0 16h24M8 0v8M18 8v8M8 16v8", "#5c626b", 1.2), True),
    Tile("b", "ball", '<circle cx="12" cy="12" r="7" fill="#CC79A7" stroke="#3b1029" stroke-width="1.5"/>'
         '<circle cx="9.6" cy="9.4" r="1.8" fill="#fff" fill-opacity=".8"/>'),
    Tile("x", "box", '<rect x="5" y="5" width="14" height="14" rx="1.5" fill="#E69F00" stroke="#4a3300" stroke-width="1.5"/>'
         + _line("M5 10.5h14M12 5v5.5", "#4a3300", 1.5)),
    Tile("k", "key", '<g fill="none" stroke="#2b2600" stroke-width="5"><circle cx="8" cy="12" r="3.6"/>'
         '<path d="M11.5 12H20M16 12v4M20 12v4"/></g>'
         '<g fill="none" stroke="#F0E442" stroke-width="2.4"><circle cx="8" cy="12" r="3.6"/>'
         '<path d="M11.5 12H20M16 12v4M20 12v4"/></g>'),
)  # fmt: skip
