"""A study's report: tables with intervals in the terminal, as CSV and LaTeX; figures; a page that holds them all."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from framework import comparison, figures, gallery, latex, page
from framework.broken import over_seeds
from framework.cell import class_of
from framework.checkpoint import sweep, write_bytes
from framework.config import Study
from framework.grid import GridCell
from framework.interfaces import ConstraintInterpreter, SafeOptimizer
from framework.names import file_part
from framework.outcomes import Scores, damaged, folders, scores
from framework.stages import read_result, run_folder
from framework.stats import mean_interval

COLUMNS = ("group", "system", "seeds", "reward", "reward_low", "reward_high", "safe_reward", "safe_reward_low",
           "safe_reward_high", "violation", "violation_low", "violation_high", "violation_in_sight",
           "violation_rate", "length", "discounted_reward", "ceiling_share",
           "discounted_ceiling_share", "learning_violation")  # fmt: skip

WORST = 5
"""Broken sentences that are shown of each system."""


@dataclass(frozen=True)
class Row:
    """One system, summed up over its seeds."""

    cell: GridCell
    values: dict[str, float]
    seeds: int


def rows(study: Study, runs: Path, exam: str | None = None) -> list[Row]:
    """A row for every cell that has at least one finished run; ``exam``: of that evaluation, by name."""
    made = []
    for cell in study.cells:
        found = [read_result(folder) for run in cell.runs() for folder in folders(runs, run, exam)]
        summaries = [result["summary"] for result in found if result]
        if summaries:
            made.append(Row(cell, _over_seeds(summaries), len(summaries)))
    return made


def _over_seeds(summaries: Sequence[dict[str, float]]) -> dict[str, float]:
    """Means over seeds. The interval is over seeds; with a single seed, over its episodes."""
    values = {name: float(np.mean([_number(s.get(name)) for s in summaries])) for name in summaries[0]}
    if len(summaries) > 1:
        for name in ("reward", "safe_reward", "violation"):
            low, high = mean_interval(np.array([_number(s.get(name)) for s in summaries]))
            values |= {f"{name}_low": low, f"{name}_high": high}
    return values


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def table(title: str, made: Sequence[Row]) -> Table:
    """For the terminal. Intervals are 95 %; a star marks the baseline of an ablation."""
    out = Table(
        title=escape(title), title_justify="left", caption="95 % intervals over seeds (one seed: over episodes)"
    )
    out.add_column("system")
    unseen = any(v["violation"] - v.get("violation_in_sight", v["violation"]) > 0.005 for v in (r.values for r in made))
    heads = [
        "reward",
        "safe reward",
        "violations Δ_C",
        *(["in sight"] if unseen else []),
        "while learning",
        "violating",
        "steps",
    ]
    for head in (*heads, "of ceiling", "discounted", "seeds"):
        out.add_column(head, justify="right")
    group = ""
    for row in made:
        if row.cell.group != group:
            if group:
                out.add_section()
            group = row.cell.group
            if group != "experiments":
                out.add_row(f"[dim]ablation {escape(group)}[/dim]")
        v = row.values
        shares = [v.get(name, math.nan) for name in ("ceiling_share", "discounted_ceiling_share")]
        out.add_row(
            escape(row.cell.name) + (" *" if row.cell.baseline else ""),
            *(_with_interval(v, name) for name in ("reward", "safe_reward", "violation")),
            *([f"{v.get('violation_in_sight', math.nan):.2f}"] if unseen else []),
            f"{v['learning_violation']:.2f}" if not math.isnan(v.get("learning_violation", math.nan)) else "-",
            f"{v['violation_rate']:.0%}",
            f"{v['length']:.0f}",
            *("-" if math.isnan(share) else f"{share:.0%}" for share in shares),
            str(row.seeds),
        )
    return out


def _with_interval(values: Mapping[str, float], name: str) -> str:
    """A dash for runs of a version that did not measure it yet."""
    middle, low, high = (values.get(f"{name}{end}", math.nan) for end in ("", "_low", "_high"))
    return "-" if math.isnan(middle) else f"{middle:.2f} [{low:.2f}, {high:.2f}]"


READING = (
    ("cell_accuracy", "cells right", "{:.2%}"),
    ("auc", "AUC", "{:.2%}"),
    ("iou", "IoU", "{:.2%}"),
    ("threshold_mse", "h_C MSE", "{:.4f}"),
    ("threshold_exact", "h_C exact", "{:.2%}"),
    ("violation_auc", "cost AUC", "{:.2%}"),
    ("confidence", "sure", "{:.0%}"),
)


def reading_rows(study: Study, runs: Path) -> list[tuple[str, str, int, dict[str, tuple[float, float, float]]]]:
    """(kind, system, seeds, score -> (mean, low, high) over seeds), kind by kind."""
    made = []
    for cell in study.cells:
        found = [result for run in cell.runs() if (result := read_result(run_folder(runs, run)))]
        for kind in sorted({kind for result in found for kind in result.get("reading", {})}):
            scores = [result["reading"][kind] for result in found if kind in result["reading"]]
            columns = {name: np.array([_number(s[name]) for s in scores]) for name, _, _ in READING}
            summary = {name: (float(v.mean()), float(v.min()), float(v.max())) for name, v in columns.items()}
            made.append((kind, cell.label, len(scores), summary))
    return sorted(made, key=lambda row: row[0])


def reading_table(title: str, study: Study, runs: Path) -> Table:
    """How well interpreters read unseen sentences on unseen maps, under the reference rows that the study names."""
    out = Table(
        title=title, title_justify="left", caption="mean over seeds (lowest to highest); unseen sentences and maps"
    )
    out.add_column("kind")
    out.add_column("interpreter")
    for _, head, _ in READING:
        out.add_column(head, justify="right")
    last = ""
    for kind, system, seeds, summary in reading_rows(study, runs):
        if kind != last:
            if last:
                out.add_section()
            for known in study.report.reference:
                if known.kind == kind:
                    cells = [text.format(known.scores[n]) if n in known.scores else "" for n, _, text in READING]
                    out.add_row(kind, escape(known.name), *cells, style="dim")
            last = kind
        cells = [_span(text, summary[name], seeds) for name, _, text in READING]
        out.add_row(kind, escape(system), *map(escape, cells))
    return out


def _span(text: str, value: tuple[float, float, float], seeds: int) -> str:
    mean, low, high = value
    if math.isnan(mean):
        return "-"
    return text.format(mean) + (f" ({text.format(low)} to {text.format(high)})" if seeds > 1 else "")


def write(study: Study, runs: Path, console: Console) -> Path | None:
    """Print the tables; store tables, figures and the page. The folder they went to, or None if no run is finished."""
    for problem in damaged(study, runs):
        console.print(f"damaged, so left out: {problem}", style="yellow", markup=False)
    made = rows(study, runs)
    if not made:
        return None
    title, folder = study.report.title or study.name, runs / study.name
    folder.mkdir(parents=True, exist_ok=True)
    sweep(folder, seconds=600)
    parts: list[page.Part] = []
    if "acting" in study.report.tables:
        for exam in (None, *study.exams):
            parts += _acting(study, runs, exam, folder, console, title)
    else:
        _write_csv(folder / "acting.csv", COLUMNS, _flat(made))
    if "reading" in study.report.tables:
        parts += _reading(study, runs, folder, console, title)
    if films := [(exhibit.label, exhibit.film) for exhibit in gallery.show(study, runs, console)]:
        parts.append(page.Part("Agents at work, all in the same world", films=films))
    page.write(folder / "report.html", title, study, runs, parts)
    return folder


def _acting(study: Study, runs: Path, exam: str | None, folder: Path, console: Console, title: str) -> list[page.Part]:
    """Table and figures of one evaluation."""
    made = rows(study, runs, exam)
    if not made:
        return []
    name = "" if exam is None else f"-{file_part(exam)}"
    drawn = table(title if exam is None else f"{title}: {exam}", made)
    console.print(drawn)
    _write_csv(folder / f"acting{name}.csv", COLUMNS, _flat(made))
    write_bytes(folder / f"acting{name}.tex", latex.tabular(plain(drawn)).encode())
    parts = [page.Part("The training reward" if exam is None else exam, table=plain(drawn))]
    parts += _comparisons(scores(study, runs, exam), exam, folder, name, console)
    plots = {f"bars{name}": ("By budget", figures.bars(study, runs, exam))}
    plots[f"deltas{name}"] = ("What the ablations change", figures.deltas(study, runs, exam))
    if exam is None:
        plots["curves"] = ("While learning", figures.curves(study, runs))
    for file, (heading, figure) in plots.items():
        if figure is not None:
            parts.append(page.Part(heading, figure=figures.store(figure, folder, file)))
    return parts + _broken(study, runs, exam, folder / f"broken{name}")


def _broken(study: Study, runs: Path, exam: str | None, file: Path) -> list[page.Part]:
    """The sentences that each system broke most. Not of those that are told the truth or learn nothing."""
    heads = ("system", "sentence", "read as", "Δ_C with it", "share of all")
    lines = []
    for cell in study.cells:
        interpreter = cast(type[ConstraintInterpreter], class_of(cell.cell.interpreter, study.host.catalog))
        optimizer = cast(type[SafeOptimizer], class_of(cell.cell.optimizer, study.host.catalog))
        if interpreter.needs_labels or not optimizer.learns:
            continue
        found = [read_result(folder) for run in cell.runs() for folder in folders(runs, run, exam)]
        for row in over_seeds([result.get("broken", []) for result in found if result])[:WORST]:
            told = (row["sentence"], row["read_as"] or "-", f"{row['violation']:.2f}", f"{row['share']:.0%}")
            lines.append((cell.label, *told))
    if not lines:
        return []
    _write_csv(Path(f"{file}.csv"), heads, [dict(zip(heads, line, strict=True)) for line in lines])
    shown = [list(heads), *map(list, lines)]
    write_bytes(Path(f"{file}.tex"), latex.tabular(shown).encode())
    return [page.Part("Sentences broken most", table=shown, prose=(1, 2))]


def _comparisons(
    found: Sequence[Scores], exam: str | None, folder: Path, name: str, console: Console
) -> list[page.Part]:
    """Who is better, and by budget: those of these tables that there is something to put into."""
    where = "" if exam is None else f": {exam}"
    tables = {
        f"against{name}": (heading := f"Who is better{where}", comparison.against(heading, found)),
        f"by-budget-violation{name}": (
            heading := f"Δ_C by budget{where}",
            comparison.by_budget(heading, found, "violation"),
        ),
        f"by-budget-reward{name}": (
            heading := f"Reward by budget{where}",
            comparison.by_budget(heading, found, "reward"),
        ),
    }
    parts = []
    for file, (heading, drawn) in tables.items():
        if drawn is None:
            continue
        if not file.startswith("by-budget-reward"):  # the terminal has room for the violations
            console.print(drawn)
        lines = plain(drawn)
        _write_csv(folder / f"{file}.csv", lines[0], [dict(zip(lines[0], line, strict=True)) for line in lines[1:]])
        write_bytes(folder / f"{file}.tex", latex.tabular(lines).encode())
        parts.append(page.Part(heading, table=lines))
    return parts


def _reading(study: Study, runs: Path, folder: Path, console: Console, title: str) -> list[page.Part]:
    """How well the interpreters read."""
    drawn = reading_table(title, study, runs)
    console.print(drawn)
    flat = [
        {"kind": kind, "system": system, "seeds": seeds}
        | {name: mean for name, (mean, _, _) in summary.items()}
        | {f"{name}_low": low for name, (_, low, _) in summary.items()}
        | {f"{name}_high": high for name, (_, _, high) in summary.items()}
        for kind, system, seeds, summary in reading_rows(study, runs)
    ]
    names = [f"{name}{end}" for name, _, _ in READING for end in ("", "_low", "_high")]
    _write_csv(folder / "reading.csv", ("kind", "system", "seeds", *names), flat)
    write_bytes(folder / "reading.tex", latex.tabular(plain(drawn)).encode())
    return [page.Part("Reading", table=plain(drawn))]


def plain(drawn: Table) -> list[list[str]]:
    """A terminal table as rows of plain text, the heads first."""
    columns = [[Text.from_markup(str(cell)).plain for cell in (c.header, *c.cells)] for c in drawn.columns]
    return [list(row) for row in zip(*columns, strict=True)]


def _flat(made: Sequence[Row]) -> list[dict[str, object]]:
    return [{"group": row.cell.group, "system": row.cell.name, "seeds": row.seeds} | row.values for row in made]


def _write_csv(file: Path, columns: Sequence[str], lines: Sequence[Mapping[str, object]]) -> None:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(columns)
    writer.writerows([line.get(column, "") for column in columns] for line in lines)
    write_bytes(file, text.getvalue().encode())
