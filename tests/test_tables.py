"""Tables in terminals of any width: rows can be told apart, numbers are whole, and what has no room is told."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from framework.tables import Column, Sheet
from framework.wording import counted

NAMES = [f"constraint={form},multiplier_rate={rate} [x]" for form in ("excess", "mean") for rate in (0.1, 0.5)]
SHEET = Sheet(
    "Main",
    [
        Column("system", words=True),
        Column("reward"),
        Column("while learning", 1),
        Column("violations"),
        Column("of", 2),
    ],
    [["heed", "1.44 [-2.48, 5.36]", "1.81", "0.10 [0.00, 4.34]", "22%"]]
    + [[name, "-1.25 [-2.48, 5.36]", "1.81", "0.10 [0.00, 4.34]", f"{i}%"] for i, name in enumerate(NAMES)],
    "95 % intervals",
    "acting.csv",
    sections=(1,),
)


def shown(sheet, width, terminal=True):
    out = io.StringIO()
    sheet.show(Console(file=out, width=width, force_terminal=terminal, color_system=None, highlight=False))
    return out.getvalue()


def names_in(text):
    """The first column, folded lines put together again."""
    found, rows = [], [line for line in text.splitlines() if line.startswith("│")]
    for line in rows:
        first, second = line.split("│")[1:3]
        if second.strip():
            found.append("")
        found[-1] += first.strip()
    return found


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 140, 200])
def test_names_are_never_cut_and_numbers_never_broken(width):
    text = shown(SHEET, width)
    assert [name.replace(" ", "") for name in names_in(text)] == [n.replace(" ", "") for n in ["heed", *NAMES]]
    assert "…" not in text
    assert text.count("-1.25") == 4
    if width >= 80:
        assert text.count("-1.25 [-2.48, 5.36]") == 4
        assert max(map(len, text.splitlines())) <= width


def test_columns_go_in_order_and_that_is_told():
    assert "of" in shown(SHEET, 120).split("┡")[0] and "more columns" not in shown(SHEET, 120)
    heads = {width: shown(SHEET, width).split("┡")[0] for width in (97, 90, 80, 60)}
    assert "learning" in heads[97] and "of" in heads[97]
    assert "learning" in heads[90] and " of " not in heads[90]
    assert "learning" not in heads[80] and "violations" in heads[60]
    assert "95 % intervals; more columns in acting.csv" in shown(SHEET, 80)
    narrow = " ".join(shown(SHEET, 60).split())
    assert "[-2.48" not in narrow and "more columns and intervals in acting.csv" in narrow


def test_a_pipe_gets_all_of_it():
    text = shown(SHEET, 40, terminal=False)
    assert all(name in text for name in NAMES) and text.count("1.81") == 5
    assert len({len(line) for line in text.splitlines()}) == 1


def test_one_is_singular():
    assert [counted(n, "run") for n in (0, 1, 2, 1000)] == ["0 runs", "1 run", "2 runs", "1,000 runs"]
