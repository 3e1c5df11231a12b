"""A table for every place that shows one: terminals of any width, the page, CSV and LaTeX.

In a terminal names are folded and never cut, so that rows can be told apart, and numbers are never broken. What has no
room is left out, and the caption says which file has it. Where there is no terminal (a pipe, a file) all is shown.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table

READABLE, NARROWEST = 28, 16
"""Characters that a column of words keeps while there are columns to leave out, and at last."""
_AROUND = re.compile(r" [\[(].*[\])]$")
"""What stands after a number: its interval, or of how many runs it is."""


@dataclass(frozen=True)
class Column:
    """``spare``: where there is no room, the column with the highest goes first; one with 0 stays."""

    head: str
    spare: int = 0
    words: bool = False


@dataclass(frozen=True)
class Sheet:
    """Heads and rows of plain text, and what a reader must know of them."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]
    caption: str
    file: str
    """The CSV that has it all."""
    legend: Sequence[tuple[str, str]] = ()
    """Head -> meaning, for the page."""
    sections: Collection[int] = ()
    """Rows that begin a section."""
    dim: Collection[int] = ()

    def plain(self) -> list[list[str]]:
        """The heads, then the rows."""
        return [[column.head for column in self.columns], *map(list, self.rows)]

    def show(self, console: Console) -> None:
        drawn = self._whole() if not console.is_terminal else self._fitted(console.width)
        console.print(drawn, crop=False)

    def _whole(self) -> Table:
        kept, plain = range(len(self.columns)), self.plain()
        return self._draw(kept, plain, self.caption, _needed(self.columns, plain))

    def _fitted(self, width: int) -> Table:
        kept, plain, missing = list(range(len(self.columns))), self.plain(), list[str]()

        def needed(least: int) -> int:
            return _needed([self.columns[i] for i in kept], [[row[i] for i in kept] for row in plain], least)

        if needed(READABLE) > width:
            plain[0] = self._folded_heads(plain[1:])
        while needed(READABLE) > width and (spare := max(self.columns[i].spare for i in kept)):
            kept = [i for i in kept if self.columns[i].spare != spare]
            missing = ["more columns"]
        if needed(NARROWEST) > width:
            plain[1:] = [[self._bare(i, cell) for i, cell in enumerate(row)] for row in plain[1:]]
            plain[0] = self._folded_heads(plain[1:])
            missing += ["intervals"]
        caption = self.caption + (f"; {' and '.join(missing)} in {self.file}" if missing else "")
        least = needed(NARROWEST)
        return self._draw(kept, plain, caption, least if least > width else None)

    def _folded_heads(self, rows: Sequence[Sequence[str]]) -> list[str]:
        """Heads on several lines, where the numbers below are narrower."""
        heads = []
        for i, column in enumerate(self.columns):
            room = max(cell_len(text) for text in (*(row[i] for row in rows), *column.head.split()))
            heads.append(column.head if column.words else textwrap.fill(column.head, room, break_on_hyphens=False))
        return heads

    def _bare(self, i: int, cell: str) -> str:
        return cell if self.columns[i].words else _AROUND.sub("", cell)

    def _draw(self, kept: Sequence[int], plain: Sequence[Sequence[str]], caption: str, width: int | None) -> Table:
        out = Table(title=escape(self.title), title_justify="left", caption=escape(caption), width=width)
        for i in kept:
            words = self.columns[i].words
            side = "left" if words else "right"
            out.add_column(escape(plain[0][i]), justify=side, overflow="fold", no_wrap=not words)  # type: ignore[arg-type]
        for number, row in enumerate(plain[1:]):
            if number in self.sections:
                out.add_section()
            out.add_row(*(escape(row[i]) for i in kept), style="dim" if number in self.dim else None)
        return out


def _needed(columns: Sequence[Column], plain: Sequence[Sequence[str]], least: int | None = None) -> int:
    """Characters across, borders and all, if columns of words may shrink to ``least``."""
    total = 1
    for i, column in enumerate(columns):
        widest = max(cell_len(line) for row in plain for line in row[i].split("\n"))
        total += 3 + (min(widest, least) if column.words and least else widest)
    return total
