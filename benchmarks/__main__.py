"""Run benchmarks and print one table for each.

python -m benchmarks                 all of them
python -m benchmarks grid_engine     some of them
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import pkgutil
import sys
from types import ModuleType

from rich.console import Console
from rich.table import Table

import benchmarks


def main(words: list[str] | None = None) -> int:
    names = sorted(m.name for m in pkgutil.iter_modules(benchmarks.__path__) if not m.name.startswith("_"))
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Speed, as ratios within one run.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"default: all ({', '.join(names)})")
    chosen = parser.parse_args(words).names or names
    for name in chosen:
        if name not in names:
            close = difflib.get_close_matches(name, names, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(names)}"
            print(f"no benchmark is called {name!r}; {hint}", file=sys.stderr)
            return 2
    for name in chosen:
        module = importlib.import_module(f"benchmarks.{name}")
        Console().print(table(name, module, module.run()))
    return 0


def table(name: str, module: ModuleType, rows: list[tuple[str, float, str]]) -> Table:
    """One line per row; ratios stand out, and say so when they miss the module's AIM (one for all, or by row)."""
    drawn = Table(title=f"{name}: {(module.__doc__ or '').strip().splitlines()[0]}", title_justify="left")
    drawn.add_column("what")
    drawn.add_column("number", justify="right")
    drawn.add_column("unit")
    aims = getattr(module, "AIM", 0)
    for what, number, unit in rows:
        ratio = unit == "times"
        aim = aims.get(what, 0) if isinstance(aims, dict) else aims
        note = f" (below the aim of {aim:,})" if ratio and number < aim else ""
        drawn.add_row(what, f"{number:,.0f}" if number >= 100 else f"{number:,.3g}", unit + note, style="bold" * ratio)
    return drawn


if __name__ == "__main__":
    sys.exit(main())
