"""The tables and figures of docs/: kept as a CSV of finished evaluations, made from it.

    python scripts/results.py keep studies/systems.yaml docs/data/systems.csv    # add what is finished in runs/
    python scripts/results.py table docs/data/systems.csv                        # a table for each evaluation
    python scripts/results.py page docs/results.md                               # a page's tables, made anew
    python scripts/results.py draw docs/data/systems.csv transfer docs/img/transfer.png   # bars, as in the paper
    python scripts/results.py trade docs/data/systems.csv transfer docs/img/trade.png     # reward against violations

A long study is run in parts, on one machine or another: its runs are too large for the repository, its results are not.
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from pathlib import Path
from typing import Any

import result_tables
from matplotlib import pyplot as plt
from result_tables import BUDGET, SAME_REWARD, check, grouped, rank, read, values

import framework
from framework import checkpoint, figures
from framework.errors import UserError
from framework.figures import BLUES, GREENS, PATTERNS
from framework.interfaces.component import KINDS
from framework.records import TRAINING

KEY = ("system", "evaluation", "seed")
LEFT_OUT = {"folder", "episodes_file", "group", "cell", "baseline", *KINDS, "seconds"}
LOOSE = ("cf with pcpo",)
"""Systems that are shown with another setting, too."""


def keep(registry: Path, overrides: list[str], only: list[str], runs: Path, file: Path) -> None:
    """Add a row for each evaluation that the registry asks for and that is finished, in place of one of the same system
    and seed; nothing else is lost."""
    kept = {_key(row): row for row in read(file)}
    study = framework.load(registry, *overrides)
    for record in (study.only(*only) if only else study).results(runs):
        row = {name: value for name, value in record.items() if name not in LEFT_OUT}
        row["evaluation"] = SAME_REWARD if row["evaluation"] == TRAINING else row["evaluation"]
        budgets = by_budget(Path(record["episodes_file"]))
        kept[_key(row)] = row | {"commit": str(row["commit"])[:7]} | budgets
    rows = [kept[key] for key in sorted(kept, key=lambda key: (*key[:2], int(key[2])))]
    names = list(dict.fromkeys(name for row in rows for name in row))
    with file.open("w", newline="", encoding="utf-8") as lines:
        writer = csv.DictWriter(lines, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: _rounded(value) for name, value in row.items()} for row in rows)


def _key(row: dict[str, Any]) -> tuple[str, ...]:
    return tuple(str(int(float(row[name]))) if name == "seed" else row[name] for name in KEY)


def _rounded(value: Any) -> Any:
    return f"{value:.5g}" if isinstance(value, float) else value


def by_budget(episodes: Path) -> dict[str, float]:
    """Delta_C for each true h_C, where budgets differ."""
    tensors, _ = checkpoint.load(episodes)
    violation = (tensors["cost"] - tensors["threshold"]).clamp(min=0).sum(-1)
    budget = tensors["threshold"].amin(-1)
    budgets = budget.unique().tolist()
    return {f"{BUDGET}{h:g}": float(violation[budget == h].mean()) for h in budgets} if len(budgets) > 1 else {}


def draw(file: Path, evaluation: str, picture: Path) -> None:
    """Reward and violations of each system, a group of bars for each kind; whiskers from lowest to highest seed."""
    found = grouped(read(file), evaluation)
    kinds = list(dict.fromkeys(kind for kind, _ in found))
    systems = sorted({system for _, system in found}, key=rank)
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    for axis, what, colours in zip(axes, ("reward", "violation"), (GREENS, BLUES), strict=True):
        for place, system in enumerate(systems):
            there = [(i, values(found[kind, system], what)) for i, kind in enumerate(kinds) if (kind, system) in found]
            wide = 0.8 / len(systems)
            at = [i + (place - (len(systems) - 1) / 2) * wide for i, _ in there]
            shade = colours(0.9 - 0.6 * place / len(systems))
            axis.bar(at, [v.mean() for _, v in there], wide, color=shade, edgecolor="white", label=system,
                     hatch=PATTERNS[place % len(PATTERNS)])  # fmt: skip
            axis.vlines(at, [v.min() for _, v in there], [v.max() for _, v in there], color="black", linewidth=1)
        axis.set_xticks(range(len(kinds)), kinds)
        axis.axhline(0, color="black", linewidth=0.8)
    axes[0].set_title("reward $J_R$")
    axes[1].set_title(r"violations $\Delta_C$")
    axes[1].set_yscale("symlog", linthresh=0.1)
    axes[1].set_ylim(bottom=0)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(systems), frameon=False)
    figure.savefig(picture, dpi=160)


def trade(file: Path, evaluation: str, picture: Path, also: Path | None) -> None:
    """Reward against violations, a panel for each kind."""
    shown, panels, lawful = grouped(read(file), evaluation), defaultdict[str, Any](dict), {}
    for (kind, system), seeds in shown.items():
        panels[kind][system] = (values(seeds, "violation"), values(seeds, "reward"))
        here = [row for (k, _), rows in shown.items() if k == kind for row in rows]
        lawful[kind] = figures.ceiling(values(here, "reward"), values(here, "ceiling_share"))
    for (kind, system), seeds in (grouped(read(also), evaluation) if also else {}).items():
        if system in LOOSE and kind in panels:
            panels[kind][f"{system}, {also.stem.rpartition('-')[2]}"] = (
                values(seeds, "violation"),
                values(seeds, "reward"),
            )
    figure = figures.points(panels, lawful)
    figure.set_layout_engine("constrained")
    figure.savefig(picture, dpi=160)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    one = verbs.add_parser("keep")
    one.add_argument("registry", type=Path)
    one.add_argument("csv", type=Path)
    one.add_argument("overrides", nargs="*", metavar="key=value", help="with which it was run")
    one.add_argument("--only", action="append", default=[], metavar="PATTERN", help="of these cells")
    one.add_argument("--runs-dir", type=Path, default=Path("runs"))
    one = verbs.add_parser("table")
    one.add_argument("csv", type=Path)
    one = verbs.add_parser("draw")
    one.add_argument("csv", type=Path)
    one.add_argument("evaluation")
    one.add_argument("picture", type=Path)
    one = verbs.add_parser("trade")
    one.add_argument("csv", type=Path)
    one.add_argument("evaluation")
    one.add_argument("picture", type=Path)
    one.add_argument("--also", type=Path, help="results of another setting of the systems in LOOSE")
    one = verbs.add_parser("page")
    one.add_argument("pages", type=Path, nargs="+")
    said = parser.parse_args()
    try:
        if said.verb == "keep":
            keep(said.registry, said.overrides, said.only, said.runs_dir, said.csv)
        elif said.verb == "table":
            print(result_tables.every_table(said.csv))
        elif said.verb == "page":
            for file, text in [(file, result_tables.page(file)) for file in said.pages]:
                file.write_text(text, encoding="utf-8")
        else:
            for file in filter(None, (said.csv, getattr(said, "also", None))):
                check(file, said.evaluation)
            if said.verb == "draw":
                draw(said.csv, said.evaluation, said.picture)
            else:
                trade(said.csv, said.evaluation, said.picture, said.also)
    except (UserError, OSError) as error:
        parser.exit(2, f"{error}\n")


if __name__ == "__main__":
    main()
