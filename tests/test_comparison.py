"""Statistics against scipy and against the truth; tables that compare systems."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import mannwhitneyu, trim_mean
from scoring import scored

from framework import stats
from framework.comparison import against, by_budget, deltas, flat_deltas


def test_iqm_is_the_trimmed_mean():
    scores = np.random.default_rng(0).normal(size=(5, 8))
    assert stats.iqm(scores) == pytest.approx(trim_mean(scores, 0.25, axis=-1))


def test_an_interval_of_violations_is_not_negative():
    assert stats.mean_interval(np.array([0.0, 0.1]))[0] < 0
    low, high = stats.mean_interval(np.array([0.0, 0.1]), floor=0.0)
    assert low == 0 and high == stats.mean_interval(np.array([0.0, 0.1]))[1]
    table = by_budget("by", [scored("a", [[1, 1], [2, 2]], [[0.1, 0], [0, 0]])], "violation", "by.csv")
    assert table.rows[0][2:] == ["0.05 [0.00, 0.69]", "0.00 [0.00, 0.00]"]


def test_probability_of_improvement_is_the_u_statistic():
    rng = np.random.default_rng(2)
    ours, theirs = rng.normal(0.5, 1, (12, 3)), rng.normal(0, 1, (10, 3))
    middle, low, high = stats.probability_of_improvement(ours, theirs)
    expected = [mannwhitneyu(ours[:, i], theirs[:, i]).statistic / 120 for i in range(3)]
    assert middle == pytest.approx(np.mean(expected))
    assert low < middle < high
    assert stats.probability_of_improvement(ours, ours)[0] == pytest.approx(0.5)
    few = stats.probability_of_improvement(ours, theirs[:9])
    assert np.isnan(few[1:]).all(), "no interval that would hold"


def correlated(rng, seeds, tasks=6):
    """A seed's scores in its tasks come from one policy: they go up and down together."""
    return rng.normal(size=(seeds, tasks)) * 0.4 + rng.normal(size=(seeds, 1)) * 0.9 + np.linspace(-1, 1, tasks)


def test_the_interval_of_who_is_better_holds_the_truth_as_often_as_it_says():
    """True values are 0: of the IQM by symmetry."""
    rng = np.random.default_rng(1)
    held = [low <= 0 <= high for low, high in (stats.mean_interval(stats.iqm(correlated(rng, 3))) for _ in range(400))]
    assert 0.92 < np.mean(held) < 0.98


def test_two_equal_systems_are_seldom_told_apart():
    """Drawing runs within each task, as if its tasks were further runs, tells them apart in two cases of five."""
    rng = np.random.default_rng(3)
    wrong = 0
    for _ in range(100):
        _, low, high = stats.probability_of_improvement(correlated(rng, 10), correlated(rng, 10))
        wrong += not low <= 0.5 <= high
    assert wrong <= 14


def test_systems_are_compared_with_those_of_their_own_env_and_what_is_not_known_is_no_loss():
    ours = scored("ours on land", [[2.0, np.nan], [3.0, 4.0]])
    theirs = scored("theirs on water", [[1.0, 1.0], [1.0, 1.0]])
    elsewhere = scored("stranger on land", [[9.0, 9.0], [9.0, 9.0]], env="grid")
    rows = {row[0]: row for row in against("who", [ours, theirs, elsewhere], "who.csv").rows}
    assert rows["theirs on water"][3] == "1.00 (2 and 2 runs)", "won wherever it is known"
    assert rows["stranger on land"][3] == "-"


def test_with_ten_runs_each_there_is_an_interval():
    rewards = np.random.default_rng(0).normal(size=(2, 10, 4))
    rows = against("who", [scored("a", rewards[0]), scored("b", rewards[1])], "who.csv").rows
    assert rows[1][3].count("[") == 1 and "runs" not in rows[1][3]


def test_violations_where_the_budget_is_zero_are_seen():
    """They were in the quarter that an interquartile mean leaves out."""
    quiet, loud = np.zeros((3, 6)), np.zeros((3, 6))
    loud[:, 0] = 2.0
    reward = np.ones((3, 6))
    rows = against("who", [scored("quiet", reward, quiet), scored("loud", reward, loud)], "who.csv").rows
    assert rows[0][2] == "0.00 [0.00, 0.00]"
    assert rows[1][2] == "0.33 [0.33, 0.33]"


def test_ablations_are_compared_with_their_baseline_seed_by_seed():
    base = scored("all", [[1.0], [5.0], [9.0]], [[0.0], [1.0], [2.0]], group="parts", baseline=True)
    less = scored("no mask", [[0.0], [4.0]], [[0.5], [1.5]], group="parts", seeds=(0, 1))
    other = scored("other seeds", [[2.0], [4.0]], [[1.0], [3.0]], group="parts", seeds=(7, 8))
    alone = scored("no base", [[1.0]], group="elsewhere")
    found = [scored("heed", [[1.0], [2.0]]), base, less, other, alone]
    table = deltas("what", found, "deltas.csv")
    assert table.rows == [
        ["ablation parts, against all", "", "", ""],
        ["no mask", "-1.00 [-1.00, -1.00]", "+0.50 [+0.50, +0.50]", "2"],
        ["other seeds", "-2.00", "+1.00", "0"],
    ], "the same in every seed: far surer than the means of the two tell"
    lines = flat_deltas(found)
    assert [line["seeds"] for line in lines] == [2, 0]
    assert lines[0]["violation_low"] == pytest.approx(0.5) and "violation_low" not in lines[1]
    assert deltas("what", found[:2], "deltas.csv") is None
