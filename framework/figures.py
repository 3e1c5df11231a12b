"""The figures of a report: bars by budget, reward against violations, learning curves, ablations. PNG and SVG.

Reward is green and violations are blue, as in the paper; systems differ in lightness and in pattern, so that they can
be told apart without seeing colour.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

from framework.cell import Cell
from framework.config import Study
from framework.grid import GridCell
from framework.outcomes import Array, Scores, Task, ablations, changes, history, walk_violations
from framework.output import Output
from framework.stages import run_folder

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

matplotlib.rcParams |= {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "font.size": 9,
    "svg.hashsalt": "heed",  # the same data give the same file
    "hatch.linewidth": 0.6,
}
GREENS, BLUES = plt.get_cmap("Greens"), plt.get_cmap("Blues")
LINES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999933")
"""Okabe and Ito's colours, which most colour-blind people can tell apart."""
STYLES = ("-", "--", "-.", ":")
PATTERNS = ("", "///", "...", "xxx", "\\\\\\", "+++", "ooo", "---")
MARKERS = "os^Dvp*X"
Points = Mapping[str, tuple[Array, Array]]
"""System -> violations and reward, an entry for each seed."""
SMOOTH = 5
"""Updates that a learning curve is averaged over."""


def bars(scores: Sequence[Scores]) -> Figure | None:
    """The paper's bars: mean reward and mean violation of each system, by true h_C, one column per kind."""
    found = [s for s in scores if s.cell.group == "experiments"]
    if not found:
        return None
    names = list(dict.fromkeys(_system(s.cell) for s in found))
    kinds = sorted({task[0] for s in found for task in s.tasks})
    met = {kind: [s for s in found if any(task[0] == kind for task in s.tasks)] for kind in kinds}
    sizes = [max(4.0, len(_budgets(found, kind)) * (len(met[kind]) + 1)) for kind in kinds]
    figure, axes = plt.subplots(
        2, len(kinds), figsize=(min(16.0, 3 + 0.16 * sum(sizes)), 4.6), squeeze=False, sharey="row", width_ratios=sizes
    )
    for column, kind in enumerate(kinds):
        budgets = _budgets(found, kind)
        for row, (what, colours) in enumerate((("reward", GREENS), ("violation", BLUES))):
            axis = axes[row][column]
            for place, system in enumerate(met[kind]):
                look = names.index(_system(system.cell))
                shift, wide = (place - (len(met[kind]) - 1) / 2), 0.8 / len(met[kind])
                at = [i + shift * wide for i in range(len(budgets))]
                _draw_bars(axis, system, [(kind, h) for h in budgets], at, wide, what, colours, look, len(names))
            axis.set_xticks(range(len(budgets)), [str(h) for h in budgets])
            axis.set_xlim(-0.7, len(budgets) - 0.3)
            axis.axhline(0, color="black", linewidth=0.8)
        axes[0][column].set_title(kind)
        axes[1][column].set_xlabel("budget $h_C$")
    axes[0][0].set_ylabel("reward $J_R$")
    axes[1][0].set_ylabel(r"violations $\Delta_C$")
    axes[1][0].set_yscale("symlog", linthresh=0.1)  # a random walk has a thousand times the violations of a good agent
    axes[1][0].set_ylim(bottom=0)
    named = {label: handle for axis in axes[1] for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    _legend(figure, list(named), list(named.values()))
    return figure


def _system(cell: GridCell) -> str:
    """The same system in several envs is called "polco on lava", "polco on water": it looks the same in each."""
    return cell.name.split(" on ")[0]


def _budgets(found: Sequence[Scores], kind: str) -> list[int]:
    return sorted({task[1] for s in found for task in s.tasks if task[0] == kind})


def _draw_bars(
    axis: Any,
    system: Scores,
    tasks: list[Task],
    at: list[float],
    wide: float,
    what: str,
    colours: Any,
    look: int,
    of: int,
) -> None:
    known = [(x, system.tasks.index(task)) for x, task in zip(at, tasks, strict=True) if task in system.tasks]
    places, columns = [x for x, _ in known], [column for _, column in known]
    values = getattr(system, what)[:, columns]
    shade, pattern = colours(0.3 + 0.6 * (look + 1) / of), PATTERNS[look % len(PATTERNS)]
    means = np.nanmean(values, axis=0)
    axis.bar(places, means, wide, color=shade, edgecolor="white", hatch=pattern, label=_system(system.cell))
    axis.vlines(places, np.nanmin(values, axis=0), np.nanmax(values, axis=0), color="black", linewidth=1)


def trade(scores: Sequence[Scores]) -> Figure | None:
    """What each system pays for its reward: a point for each seed, a panel for each kind of constraint."""
    found = [s for s in scores if s.cell.group == "experiments"]
    kinds = sorted({kind for s in found for kind in s.kinds})
    met = {kind: [s for s in found if kind in s.kinds] for kind in kinds}
    panels, lawful = dict[str, Points](), dict[str, float]()
    for kind, those in met.items():
        systems = [_system(s.cell) for s in those]
        names = systems if len(set(systems)) == len(those) else [s.cell.name for s in those]
        values = ((s.of_kind(kind, "violation"), s.of_kind(kind, "reward")) for s in those)
        panels[kind] = dict(zip(names, values, strict=True))
        # The share is of all of a cell's episodes, so where they are of several kinds it says nothing about one.
        one_kind = all(len(s.kinds) == 1 for s in those)
        known = (np.concatenate([s.summary(name) for s in those]) for name in ("reward", "ceiling_share"))
        lawful[kind] = ceiling(*known) if one_kind else np.nan
    return points(panels, lawful) if any(len(panel) > 1 for panel in panels.values()) else None


def ceiling(reward: Array, share: Array) -> float:
    """What the share is a share of; NaN where no planner knows, or where it is not the same for all."""
    known = np.isfinite(share) & (np.abs(share) > 0.01)
    if not known.any():
        return np.nan
    found = reward[known] / share[known]
    middle = float(np.median(found))
    return middle if np.allclose(found, middle, rtol=0.01) else np.nan


def points(panels: Mapping[str, Points], lawful: Mapping[str, float]) -> Figure:
    """Up and to the left is better. ``lawful``: the most reward that can be had without a violation, or NaN."""
    names = list(dict.fromkeys(name for panel in panels.values() for name in panel))
    wide = max(5.0, 1 + 3 * len(panels))
    figure, axes = plt.subplots(1, len(panels), figsize=(wide, 3.6), squeeze=False, sharex=True, sharey=True)
    for axis, (kind, panel) in zip(axes[0], panels.items(), strict=True):
        if not np.isnan(lawful[kind]):
            axis.axhline(lawful[kind], color="grey", linestyle="--", linewidth=0.8, label="most that is lawful")
        for name, (violation, reward) in panel.items():
            look = names.index(name)
            colour, marker = LINES[look % len(LINES)], MARKERS[(look + look // len(LINES)) % len(MARKERS)]
            axis.scatter(violation, reward, s=40, color=colour, marker=marker, alpha=0.7, label=name)
        axis.set_title(kind)
        axis.set_xlabel(r"violations $\Delta_C$ of an episode")
    axes[0][0].set_ylabel("reward $J_R$")
    known = [v for panel in panels.values() for violation, _ in panel.values() for v in violation if np.isfinite(v)]
    axes[0][0].set_xscale("symlog", linthresh=0.1)
    axes[0][0].set_xlim(-0.005, max(0.1, 2 * max(known, default=0.0)))
    named = {label: handle for axis in axes[0] for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    _legend(figure, list(named), list(named.values()))
    return figure


def curves(study: Study, runs: Path) -> Figure | None:
    """Reward, violations and length of episodes while learning; stage 1's random walks stand in front."""
    panels = (("reward", "reward $J_R$"), ("violation", r"violations $\Delta_C$"), ("length", "steps of an episode"))
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.4))
    drawn = 0
    for cell in study.cells:
        if cell.group != "experiments":
            continue
        logs = [log for run in cell.runs() if "reward" in (log := history(run_folder(runs, run)))]
        if not logs:
            continue
        colour, style = LINES[drawn % len(LINES)], STYLES[drawn // len(LINES) % len(STYLES)]
        for axis, (name, _) in zip(axes, panels, strict=True):
            steps, (low, middle, high) = _band(logs, name, _first_fair_step(cell.cell))
            axis.plot(steps, middle, style, color=colour, label=cell.name)
            axis.fill_between(steps, low, high, color=colour, alpha=0.2, linewidth=0)
        walks = walk_violations(study, runs, cell.runs()[0])
        if len(walks):
            length = float(logs[0]["step"][-1]) * 0.15
            axes[1].plot(np.linspace(-length, 0, len(walks)), walks, style, color=colour, linewidth=0.8, alpha=0.7)
        drawn += 1
    if not drawn:
        plt.close(figure)
        return None
    for axis, (_, title) in zip(axes, panels, strict=True):
        axis.set_xlabel("environment steps")
        axis.set_title(title)
        axis.xaxis.set_major_locator(MaxNLocator(5))
        axis.xaxis.set_major_formatter(EngFormatter())  # 50 k, 1 M
    axes[1].set_yscale("symlog", linthresh=0.1)
    axes[1].set_ylim(bottom=0)
    axes[1].axvline(0, color="grey", linewidth=0.6)
    handles, names = axes[0].get_legend_handles_labels()
    _legend(figure, names, handles)
    return figure


def _legend(figure: Figure, names: Sequence[str], handles: Sequence[Any]) -> None:
    """Above the figure: up to six names in a row if it is wide enough, and rows of about the same length."""
    widest = max(len(name) for name in names) * 0.085 + 0.6  # inches, with the patch beside it
    most = max(1, min(6, int(figure.get_figwidth() / widest)))
    lines = -(-len(names) // most)
    figure.legend(handles, names, loc="outside upper center", ncols=-(-len(names) // lines), frameon=False)


def _first_fair_step(cell: Cell) -> int:
    """Before every row can have finished an episode, only the short ones count, and they are the lucky ones."""
    settings = cell.env.config
    decisions = (getattr(settings, "max_steps", None) or 0) / getattr(settings, "repeat", 1)  # robots hold an action
    return int(cell.training.rows * decisions)


def _band(logs: Sequence[dict[str, Array]], name: str, start: int) -> tuple[Array, tuple[Array, Array, Array]]:
    """Steps, and the lowest, mean and highest of the seeds, smoothed."""
    count = min(len(log["step"]) for log in logs)
    steps = logs[0]["step"][:count]
    fair = steps >= min(start, steps[-1])
    values = np.array([_smooth(log[name][:count][fair]) for log in logs])
    return steps[fair], (values.min(0), values.mean(0), values.max(0))


def _smooth(values: Array) -> Array:
    """Mean of each value and up to SMOOTH - 1 before it; gaps are left out."""
    padded = np.concatenate([np.full(SMOOTH - 1, np.nan), values])
    windows = np.lib.stride_tricks.sliding_window_view(padded, SMOOTH)
    known = ~np.isnan(windows)
    total = np.where(known, windows, 0).sum(-1)
    return np.where(known.any(-1), total / np.maximum(known.sum(-1), 1), np.nan)


def deltas(scores: Sequence[Scores]) -> Figure | None:
    """What each cell of an ablation changes against its baseline, in reward and in violations."""
    lines = ablations(scores)
    if not lines:
        return None
    figure, axes = plt.subplots(1, 2, figsize=(9, 1.2 + 0.45 * len(lines)), sharey=True)
    for axis, what, colours in zip(axes, ("reward", "violation"), (GREENS, BLUES), strict=True):
        for i, (system, base) in enumerate(lines):
            difference, _ = changes(system, base, what)
            axis.barh(i, difference.mean(), color=colours(0.6))
            axis.hlines(i, difference.min(), difference.max(), color="black", linewidth=1)
        axis.axvline(0, color="black", linewidth=0.8)
        axis.set_title({"reward": "change in reward", "violation": r"change in violations $\Delta_C$"}[what])
    axes[0].set_yticks(range(len(lines)), [f"{s.cell.name}\n({s.cell.group})" for s, _ in lines])
    axes[0].invert_yaxis()
    return figure


def store(figure: Figure, output: Output, name: str) -> str:
    """As <name>.png and <name>.svg; returns the SVG's text."""
    figure.set_layout_engine("constrained")
    png, svg = io.BytesIO(), io.StringIO()
    figure.savefig(png, format="png", dpi=160)
    figure.savefig(svg, format="svg", metadata={"Date": None})
    plt.close(figure)
    output.write(f"{name}.png", png.getvalue())
    output.write(f"{name}.svg", svg.getvalue().encode())
    return svg.getvalue()
