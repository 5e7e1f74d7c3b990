"""The share of records that meet a condition: its interval holds for rare, frequent and split codes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from privsyn.inference.fitted import count_intervals
from privsyn.inference.posterior.tables import TILT
from privsyn.inference.rare_values import Hidden, PooledValues, merge_rare
from privsyn.inference.ratios import joint_counts
from privsyn.inference.ratios.intervals import ratio_interval, share_interval
from privsyn.inference.ratios.joint_counts import LEAST_TILT, JointCounts
from privsyn.inference.ratios.weights import Weights
from privsyn.marginals.domain import Domain
from privsyn.marginals.marginal import Grouping, Marginal, Measurement

TRUE = np.array([2.0, 300.0, 0.0, 50.0, 648.0])
DOMAIN = Domain(("a",), (5,), ordered=(5,))
RUNS, SIGMA = 2000, 10.0


@pytest.mark.slow
@pytest.mark.parametrize(
    "parts", [[1, 0, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 0, 1], [0, 1, 0, 1, 1], [0, 1, 0, 0, 0]]
)
def test_95_of_100_intervals_hold(parts):
    rng = np.random.default_rng(0)
    parts = np.array(parts, dtype=float)
    truth, held = TRUE @ parts / TRUE.sum(), 0
    for _ in range(RUNS):
        seen = Marginal(DOMAIN, TRUE + rng.normal(0, SIGMA, 5))
        found = share_interval(Measurement(seen, SIGMA**2), seen, parts, SIGMA * np.eye(5))
        assert 0 <= found.low <= found.high <= 1
        held += found.low <= truth <= found.high
    assert binom.ppf(1e-7, RUNS, 0.95) <= held <= binom.ppf(1 - 1e-7, RUNS, 0.96)


def test_the_share_of_one_rare_code_is_that_of_its_count():
    seen = Marginal(DOMAIN, TRUE)
    found = share_interval(Measurement(seen, SIGMA**2), seen, np.eye(5)[3], SIGMA * np.eye(5))
    low, high = count_intervals(np.array([50.0]), np.array([SIGMA**2]))
    assert found.estimate == 0.05
    assert [found.low, found.high] == pytest.approx([low[0] / 1000, high[0] / 1000], rel=0.05)


def test_a_condition_that_splits_a_code_has_a_wider_interval_and_nothing_is_known_of_noise():
    seen, noise = Marginal(DOMAIN, TRUE), SIGMA * np.eye(5)
    whole, split = (
        share_interval(Measurement(seen, SIGMA**2), seen, np.array([0, 0, 0, 0, part]), noise)
        for part in (1.0, 0.5)
    )
    assert split.estimate == pytest.approx(whole.estimate / 2)
    assert split.high - split.low > 2 * (whole.high - whole.low)
    every = share_interval(Measurement(seen, SIGMA**2), seen, np.full(5, np.nextafter(1, 2)), noise)
    assert every.estimate == every.high == 1
    lost = share_interval(Measurement(seen, 300.0**2), seen, np.eye(5)[1], 300 * np.eye(5))
    assert (lost.low, lost.high) == (0, 1)


def test_a_condition_that_splits_a_cell_of_few_records_allows_for_chance():
    """Exact counts: without chance, a quarter of the intervals missed. Error probability 1e-7."""
    runs, rng, cell = 2000, np.random.default_rng(5), np.array([3.0, 997.0])
    counts = Marginal(Domain(("a",), (2,), ordered=(2,)), cell)
    found = share_interval(Measurement(counts, 0.0), counts, np.array([0.5, 0.0]), np.zeros((2, 2)))
    shares = rng.binomial(3, 0.5, runs) / 1000
    held = int(((found.low <= shares) & (shares <= found.high)).sum())
    assert held >= binom.ppf(1e-7, runs, 0.95)
    assert found.high < 0.005


@pytest.mark.slow
@pytest.mark.parametrize("rows", [0.0, 20.0, 31.0, 60.0])
def test_a_value_that_noise_hides_is_in_its_interval_95_times_in_a_hundred(rows):
    """It joins another code if its own noisy count is under the threshold. Then no count shows its share."""
    rng, held = np.random.default_rng(1), 0
    true = np.array([900.0, rows, 100.0])
    met = np.array([0.0, 1.0, 0.0])
    for _ in range(RUNS):
        counts = true + rng.normal(0, SIGMA, 3)
        one_way = Measurement(Marginal(Domain(("a",), (3,), ordered=(3,)), counts), SIGMA**2)
        merging = merge_rare((one_way,), float(counts.sum()))
        (group,), (shares,) = merging.groups, merging.shares
        seen = merging.merge_counts(one_way)
        noise = np.diag(np.sqrt(seen.variance))
        parts = np.bincount(group, shares * met)
        hidden = Hidden.of(seen, PooledValues(group, shares, one_way.variance), met)
        found = share_interval(seen, seen.marginal, parts, noise, hidden=hidden)
        held += found.low <= rows / true.sum() <= found.high
    assert held >= binom.ppf(1e-7, RUNS, 0.94)


@pytest.mark.parametrize(("correlation", "widest"), [(0.0, 0.8), (0.2, 0.9), (0.8, 1.01)])
def test_groups_hide_as_much_of_a_pair_as_they_show_between_them(correlation, widest, monkeypatch):
    """A mean above a limit inside a group: before, the place was `TILT` off whatever the groups showed."""
    rng, sigma, codes = np.random.default_rng(3), 15.0, np.arange(16)
    normal = rng.multivariate_normal([0, 0], [[1, correlation], [correlation, 1]], 8000)
    true = np.zeros((16, 16))
    np.add.at(true, tuple(np.clip((normal + 2) * 4, 0, 15).astype(int).T), 1)
    group, inside = (codes // 4).astype(np.int32), (codes >= 10) * 1.0
    grouping, zeros = Grouping((group, group)), [np.zeros((16, 16))] * 3
    weights = Weights(np.outer(codes / 15, inside), np.outer(np.ones(16), inside), tuple(zeros))
    truth = float((true * weights.above).sum() / (true * weights.below).sum())
    sides = [true.sum(axis=1), true.sum(axis=0)]
    inside_groups = np.outer(*(side / np.bincount(group, side)[group] for side in sides))

    def interval(least):
        monkeypatch.setattr(joint_counts, "LEAST_TILT", least)
        answers = JointCounts(released, sides, zeros[:2], (16, 16), measured)
        return ratio_interval(answers, weights, (0.0, 1.0 - 1e-9))

    held, runs = 0, 25
    for _ in range(runs):
        noisy = grouping.join(true) + rng.normal(0, sigma, (4, 4))
        released = np.maximum(noisy, 0.1)[np.ix_(group, group)] * inside_groups
        measured = Measurement(
            Marginal(Domain(("a", "b"), (4, 4), ordered=(4, 4)), noisy), sigma**2, grouping
        )
        estimated = interval(LEAST_TILT)
        held += estimated.low <= truth <= estimated.high
    prior = interval(TILT)
    assert held >= binom.ppf(1e-7, runs, 0.95)
    assert estimated.high - estimated.low < widest * (prior.high - prior.low)


def test_a_share_that_changes_from_group_to_group_may_change_inside_them(monkeypatch):
    """Those without work are young or old: their mean age says nothing, and their share changes."""
    age, group = np.arange(16), (np.arange(16) // 4).astype(np.int32)
    old = np.where((age < 3) | (age > 12), 300.0, 20.0)
    grouping, zeros = Grouping((group, np.arange(2, dtype=np.int32))), np.zeros((16, 2))
    true = np.column_stack([old, 320 - old])
    counts = grouping.join(true)
    measured = Measurement(Marginal(Domain(("a", "b"), (4, 2), ordered=(4, 0)), counts), 10.0**2, grouping)
    inside = np.outer(age >= 13, np.ones(2)) * 1.0
    weights = Weights(inside * [1.0, 0.0], inside, (zeros,) * 3)
    widths = []
    for least in (LEAST_TILT, TILT):
        monkeypatch.setattr(joint_counts, "LEAST_TILT", least)
        sides, noise = [true.sum(axis=1), true.sum(axis=0)], [np.zeros((16, 16)), np.zeros((2, 2))]
        answers = JointCounts(counts[group] / 4, sides, noise, (16, 0), measured)
        interval = ratio_interval(answers, weights, (0.0, 1.0))
        widths.append(interval.high - interval.low)
    assert widths[0] > 0.5 * widths[1]


def test_a_value_that_noise_hides_is_no_more_known_with_a_second_column():
    """Missing cells were merged into another code of a gap, and their number was said to be exactly 0."""
    counts, zeros = np.array([[300.0, 200.0], [200.0, 300.0]]), np.zeros((2, 2))
    answers = JointCounts(counts, [np.full(2, 500.0)] * 2, [10 * np.eye(2)] * 2, (0, 0))
    weights = Weights(zeros, np.ones((2, 2)), (zeros,) * 3)
    interval = ratio_interval(answers, weights, (0.0, 1.0), hidden=Hidden(100.0, 0.0, 50.0))
    assert interval.low == 0
    assert 50 <= 1000 * interval.high <= 85  # of the rows that may have it, and the noise that hides them
    few = ratio_interval(answers, weights, (0.0, 1.0))
    assert few.high < 1e-6
