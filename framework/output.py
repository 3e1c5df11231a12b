"""The folder of a report: what it writes, and nothing of the report before."""

from __future__ import annotations

import contextlib
import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from framework import latex
from framework.checkpoint import sweep, write_bytes, write_json
from framework.tables import Sheet

LIST = ".report.json"
"""What the last report wrote. Other files in the folder are somebody else's."""
KINDS = (".csv", ".tex", ".png", ".svg", ".html")


class Output:
    """Remembers what it wrote; ``close`` removes what an earlier report wrote and this one did not."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._written = set[str]()
        folder.mkdir(parents=True, exist_ok=True)
        sweep(folder, seconds=600)

    def write(self, name: str, data: bytes) -> None:
        write_bytes(self.folder / name, data)
        self._written.add(name)

    def csv(self, name: str, columns: Sequence[str], lines: Sequence[Mapping[str, object]]) -> None:
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow(columns)
        writer.writerows([line.get(column, "") for column in columns] for line in lines)
        self.write(name, text.getvalue().encode())

    def sheet(self, sheet: Sheet, flat: tuple[Sequence[str], Sequence[Mapping[str, object]]] | None = None) -> None:
        """As CSV and LaTeX. ``flat``: columns and lines of the CSV, if it has more than what is shown."""
        heads, *rows = sheet.plain()
        self.csv(sheet.file, *(flat or (heads, [dict(zip(heads, row, strict=True)) for row in rows])))
        self.write(str(Path(sheet.file).with_suffix(".tex")), latex.tabular([heads, *rows]).encode())

    def close(self) -> None:
        for name in self._before() - self._written:
            with contextlib.suppress(OSError):
                (self.folder / name).unlink()
        write_json(self.folder / LIST, sorted(self._written))

    def _before(self) -> set[str]:
        try:
            names = json.loads((self.folder / LIST).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return set()
        names = [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
        return {name for name in names if Path(name).name == name and name.endswith(KINDS)}
