"""A study's report: tables with intervals in the terminal, as CSV and LaTeX; figures; a page that holds them all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np
from rich.console import Console

from framework import acting, comparison, figures, gallery, page
from framework.broken import over_seeds
from framework.caveats import caveats, part, present
from framework.cell import class_of
from framework.config import Study
from framework.interfaces import ConstraintInterpreter, SafeOptimizer
from framework.names import file_part
from framework.outcomes import Scores, damaged, number, scores
from framework.output import Output
from framework.tables import Column, Sheet

WORST = 5
"""Broken sentences that are shown of each system."""


READING_MEANINGS = (
    ("cells right", "share of the cells in view whose place in the mask M_C is right"),
    ("AUC", "how well the mask's probabilities order forbidden cells before others"),
    ("IoU", "forbidden cells that were found, of all that are forbidden or were called so"),
    ("h_C MSE", "squared error of the budget"),
    ("h_C exact", "share of budgets that are right after rounding"),
    ("cost AUC", "how well the predicted cost orders moves that violate before others"),
    ("sure", "mean confidence"),
)
READING = (
    ("cell_accuracy", "cells right", "{:.2%}"),
    ("auc", "AUC", "{:.2%}"),
    ("iou", "IoU", "{:.2%}"),
    ("threshold_mse", "h_C MSE", "{:.4f}"),
    ("threshold_exact", "h_C exact", "{:.2%}"),
    ("violation_auc", "cost AUC", "{:.2%}"),
    ("confidence", "sure", "{:.0%}"),
)


def reading_rows(found: Sequence[Scores]) -> list[tuple[str, str, int, dict[str, tuple[float, float, float]]]]:
    """(kind, system, seeds, score -> (mean, low, high) over seeds), kind by kind."""
    made = []
    for s in found:
        for kind in sorted({kind for result in s.results for kind in result.get("reading", {})}):
            read = [result["reading"][kind] for result in s.results if kind in result.get("reading", {})]
            columns = {name: np.array([number(r[name]) for r in read]) for name, _, _ in READING}
            summary = {name: (float(v.mean()), float(v.min()), float(v.max())) for name, v in columns.items()}
            made.append((kind, s.cell.label, len(read), summary))
    return sorted(made, key=lambda row: row[0])


def reading_table(title: str, study: Study, found: Sequence[Scores]) -> Sheet:
    """How well interpreters read unseen sentences on unseen maps, under the reference rows that the study names."""
    rows, sections, dim, last = list[list[str]](), list[int](), list[int](), ""
    for kind, system, seeds, summary in reading_rows(found):
        if kind != last:
            sections.append(len(rows))
            for known in study.report.reference:
                if known.kind == kind:
                    dim.append(len(rows))
                    cells = [text.format(known.scores[n]) if n in known.scores else "" for n, _, text in READING]
                    rows.append([kind, known.name, *cells])
            last = kind
        rows.append([kind, system, *(_span(text, summary[name], seeds) for name, _, text in READING)])
    spare = [Column(head, place) for place, (_, head, _) in enumerate(READING)]
    columns = [Column("kind", words=True), Column("interpreter", words=True), *spare]
    caption = "mean over seeds (lowest to highest); unseen sentences and maps"
    return Sheet(title, columns, rows, caption, "reading.csv", READING_MEANINGS, sections, dim)


def _span(text: str, value: tuple[float, float, float], seeds: int) -> str:
    mean, low, high = value
    if math.isnan(mean):
        return "-"
    return text.format(mean) + (f" ({text.format(low)} to {text.format(high)})" if seeds > 1 else "")


@dataclass(frozen=True)
class Written:
    """Where a report went, and how many runs are in it."""

    folder: Path
    runs: int


def write(study: Study, runs: Path, console: Console) -> Written | None:
    """Print the tables; store tables, figures and the page. None if no run is finished."""
    for problem in damaged(study, runs):
        console.print(f"damaged, so left out: {problem}", style="yellow", markup=False, soft_wrap=True)
    found = {exam: scores(study, runs, exam) for exam in (None, *study.exams)}
    if not found[None]:
        return None
    title, output = study.report.title or study.name, Output(runs / study.name)
    parts: list[page.Part] = []
    if "acting" in study.report.tables:
        for exam in found:
            parts += _acting(study, runs, exam, found[exam], output, console, title)
    else:
        output.csv("acting.csv", acting.COLUMNS, acting.flat(acting.rows(found[None])))
    if "reading" in study.report.tables:
        parts += _reading(study, found[None], output, console, title)
    if films := [(exhibit.label, exhibit.film) for exhibit in gallery.show(study, runs, console)]:
        parts.append(page.Part("Agents at work, all in the same world", films=films))
    output.write("report.html", page.make(title, study, runs, parts, caveats(study, runs, found)))
    output.close()
    if told := part(study):
        console.print(told, style="yellow", markup=False, soft_wrap=True)
    return Written(output.folder, len(present(study, found)))


def _acting(
    study: Study, runs: Path, exam: str | None, found: Sequence[Scores], output: Output, console: Console, title: str
) -> list[page.Part]:
    """Tables and figures of one evaluation."""
    if not found:
        return []
    name, where = ("", "") if exam is None else (f"-{file_part(exam)}", f": {exam}")
    made = acting.rows(found)
    main = acting.table(title + where, made, f"acting{name}.csv")
    main.show(console)
    output.sheet(main, (acting.COLUMNS, acting.flat(made)))
    parts = [page.Part.of(exam or "The training reward", main)]
    parts += _comparisons(found, where, name, output, console)
    parts += _ablations(found, where, name, output, console)
    plots = {
        f"bars{name}": (f"By budget{where}", figures.bars(found)),
        f"trade{name}": (f"Reward against violations{where}", figures.trade(found)),
    }
    if exam is None:
        plots["curves"] = ("While learning", figures.curves(study, runs))
    for file, (heading, figure) in plots.items():
        if figure is not None:
            parts.append(page.Part(heading, figure=figures.store(figure, output, file)))
    return parts + _broken(study, found, where, f"broken{name}.csv", output)


def _comparisons(found: Sequence[Scores], where: str, name: str, output: Output, console: Console) -> list[page.Part]:
    """Who is better, and by budget: those of these tables that there is something to put into."""
    sheets = [
        comparison.against(f"Who is better{where}", found, f"against{name}.csv"),
        comparison.by_budget(f"Δ_C by budget{where}", found, "violation", f"by-budget-violation{name}.csv"),
        comparison.by_budget(f"Reward by budget{where}", found, "reward", f"by-budget-reward{name}.csv"),
    ]
    parts = []
    for sheet in sheets:
        if sheet is None:
            continue
        if not sheet.file.startswith("by-budget-reward"):  # the terminal has room for the violations
            sheet.show(console)
        output.sheet(sheet)
        parts.append(page.Part.of(sheet.title, sheet))
    return parts


def _ablations(found: Sequence[Scores], where: str, name: str, output: Output, console: Console) -> list[page.Part]:
    """What each cell changes, as a table and drawn."""
    sheet, figure = (
        comparison.deltas(f"What the ablations change{where}", found, f"deltas{name}.csv"),
        figures.deltas(found),
    )
    if sheet is None or figure is None:
        return []
    sheet.show(console)
    output.sheet(sheet, (comparison.DELTAS, comparison.flat_deltas(found)))
    return [page.Part.of(sheet.title, sheet, figures.store(figure, output, f"deltas{name}"))]


def _broken(study: Study, found: Sequence[Scores], where: str, file: str, output: Output) -> list[page.Part]:
    """The sentences that each system broke most. Not of those that are told the truth or learn nothing."""
    heads = ("system", "sentence", "read as", "Δ_C with it", "share of all")
    lines = []
    for s in found:
        interpreter = cast(type[ConstraintInterpreter], class_of(s.cell.cell.interpreter, study.host.catalog))
        optimizer = cast(type[SafeOptimizer], class_of(s.cell.cell.optimizer, study.host.catalog))
        if interpreter.needs_labels or not optimizer.learns:
            continue
        for row in over_seeds([result.get("broken", []) for result in s.results])[:WORST]:
            told = (row["sentence"], row["read_as"] or "-", f"{row['violation']:.2f}", f"{row['share']:.0%}")
            lines.append((s.cell.label, *told))
    if not lines:
        return []
    legend = [
        ("read as", "how the interpreter understood it, if it can say so"),
        ("Δ_C with it", "violations in an episode with this sentence"),
        ("share of all", "of the system's violations, mean over seeds"),
    ]
    caption = f"of each system the {WORST} sentences that account for most of its violations"
    sheet = Sheet("", [Column(head) for head in heads], lines, caption, file, legend)
    output.sheet(sheet)
    shown = page.Part.of(f"Sentences broken most{where}", sheet)
    return [replace(shown, prose=(1, 2))]


def _reading(study: Study, found: Sequence[Scores], output: Output, console: Console, title: str) -> list[page.Part]:
    """How well the interpreters read."""
    sheet = reading_table(title, study, found)
    sheet.show(console)
    flat = [
        {"kind": kind, "system": system, "seeds": seeds}
        | {name: mean for name, (mean, _, _) in summary.items()}
        | {f"{name}_low": low for name, (_, low, _) in summary.items()}
        | {f"{name}_high": high for name, (_, _, high) in summary.items()}
        for kind, system, seeds, summary in reading_rows(found)
    ]
    names = [f"{name}{end}" for name, _, _ in READING for end in ("", "_low", "_high")]
    output.sheet(sheet, (("kind", "system", "seeds", *names), flat))
    return [page.Part.of("Reading", sheet)]
