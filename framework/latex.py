"""A table as LaTeX, to paste into a paper (needs the booktabs package)."""

from __future__ import annotations

from collections.abc import Sequence

SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "Δ": r"$\Delta$",
}


def tabular(rows: Sequence[Sequence[str]]) -> str:
    """Rows of plain text, the heads first."""
    head, *body = ([escape(cell) for cell in row] for row in rows)
    lines = [r"\begin{tabular}{l" + "r" * (len(head) - 1) + "}", r"\toprule"]
    lines += [" & ".join(head) + r" \\", r"\midrule"]
    lines += [" & ".join(row) + r" \\" for row in body]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def escape(text: str) -> str:
    return "".join(SPECIAL.get(letter, letter) for letter in text)
