"""Figures: legends that fit, and reward against violations."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib import pyplot as plt
from scoring import scored

from framework import figures, outcomes


@pytest.mark.parametrize(("systems", "columns"), [(1, 1), (5, 5), (6, 6), (7, 4), (13, 5)])
def test_a_legend_has_up_to_six_names_in_a_row_and_rows_of_a_length(systems, columns):
    kinds = ["budgetary", "relational", "sequential"]
    found = [scored(f"system {i}", np.ones((2, 9)), kinds=kinds) for i in range(systems)]
    figure = figures.bars(found)
    assert figure.legends[0]._ncols == columns
    plt.close(figure)


def test_a_legend_of_long_names_stays_within_the_figure():
    found = [scored(f"{i} " + "a long name " * 3, np.ones((2, 2))) for i in range(5)]
    figure = figures.bars(found)
    figure.set_layout_engine("constrained")
    figure.canvas.draw()
    assert figure.legends[0].get_window_extent().width <= figure.bbox.width
    plt.close(figure)


def met(name, tables, share=None, group="experiments"):
    """``tables``: task -> reward, violation, episodes; the same for two seeds. ``share`` of what is lawful."""
    whole = np.array(list(tables.values()), float)
    reward = float((whole[:, 0] * whole[:, 2]).sum() / whole[:, 2].sum())
    results = [{"summary": {"reward": reward, "ceiling_share": share}}] * 2
    columns = (np.array([whole[:, i]] * 2) for i in range(3))
    rewards, violations, episodes = columns
    cell = SimpleNamespace(name=name, group=group)
    return outcomes.Scores(cell, tuple(tables), rewards, violations, (0, 1), tuple(results), episodes)


def dots(axis):
    return {each.get_label(): each.get_offsets().tolist() for each in axis.collections}


def test_reward_is_shown_against_violations_with_what_is_lawful():
    """A point is a seed's mean over its episodes, so a budget that hardly comes up hardly counts."""
    one = met("polco on lava", {("budgetary", 0): (3, 0, 75), ("budgetary", 5): (5, 4, 25)}, share=0.7)
    two = met("walk", {("budgetary", 0): (1, 8, 50), ("budgetary", 5): (2, 7, 50)})
    figure = figures.trade([one, two, met("without", {("budgetary", 0): (9, 9, 1)}, group="inputs")])
    (axis,) = figure.axes
    assert dots(axis) == {"polco": [[1, 3.5]] * 2, "walk": [[7.5, 1.5]] * 2}
    (line,) = axis.lines
    assert list(line.get_ydata()) == pytest.approx([5, 5])
    assert axis.get_xlim()[0] < 0 and axis.get_xlim()[1] > 7.5, "nobody is cut off"
    plt.close(figure)
    assert not figures.trade([one]), "one system alone has nobody to stand beside"


def test_of_two_systems_with_one_name_both_are_shown():
    sparse = met("polco on sparse maps", {("budgetary", 0): (6, 0, 9)}, share=1)
    dense = met("polco on dense maps", {("budgetary", 0): (4, 1, 9)}, share=0.8)
    figure = figures.trade([sparse, dense])
    (axis,) = figure.axes
    assert dots(axis) == {"polco on sparse maps": [[0, 6]] * 2, "polco on dense maps": [[1, 4]] * 2}
    assert not axis.lines, "the most that is lawful is 6 on one and 5 on the other"
    plt.close(figure)


def test_where_a_system_meets_several_kinds_each_has_its_panel():
    both = {("budgetary", 0): (6, 0, 50), ("relational", 0): (2, 3, 50)}
    figure = figures.trade(
        [met("polco", both, share=1), met("walk", both | {("relational", 0): (1, 9, 50)}, share=0.9)]
    )
    left, right = figure.axes
    assert dots(left) == {"polco": [[0, 6]] * 2, "walk": [[0, 6]] * 2}
    assert dots(right) == {"polco": [[3, 2]] * 2, "walk": [[9, 1]] * 2}
    assert not left.lines and not right.lines, "the share is of all episodes, and says nothing about one kind"
    plt.close(figure)


def test_ten_systems_look_different():
    found = [met(f"system {i}", {("budgetary", 0): (i, i, 9)}) for i in range(10)]
    figure = figures.trade(found)
    looks = {(str(d.get_facecolor()), str(d.get_paths()[0].vertices.tolist())) for d in figure.axes[0].collections}
    assert len(looks) == 10
    plt.close(figure)
