"""Which values of a column with found bounds occur, by its noisy counts."""

from __future__ import annotations

import numpy as np
import pytest

from privsyn.inference.ordered.support import (
    FALSE_END,
    FALSE_VALUE,
    Covariance,
    GroupedCells,
    counts_of_levels,
    likely_shares,
    occurring,
    occurring_groups,
    with_counts,
)
from privsyn.inference.rare_values import merge_rare
from privsyn.marginals.domain import Domain
from privsyn.marginals.marginal import Marginal, Measurement
from privsyn.private.noise_laws import GAUSSIAN

SIGMA = 10.0


def occur(exact, rng, columns=1):
    """Return which values occur by counts with noise."""
    noisy = np.array(exact) + rng.normal(0, SIGMA, len(exact))
    return occurring(
        noisy, Covariance.independent(np.full(len(exact), SIGMA**2)), GAUSSIAN.deviations, columns
    )


def test_values_between_few_values_are_left_out():
    """Of 1, 2 and 5, synthetic tables had 3 and 4."""
    rng, exact = np.random.default_rng(0), [0, 800, 700, 0, 0, 500, 0, 0]
    for _ in range(200):
        found = occur(exact, rng)
        assert found[[1, 2, 5]].all()
    found = np.mean([occur(exact, rng) for _ in range(1000)], axis=0)
    assert found[[3, 4]].max() < 0.05


def test_dense_values_have_no_gaps():
    rng = np.random.default_rng(0)
    ages = 100 * np.exp(-(((np.arange(30) - 15) / 8) ** 2))
    assert np.mean([occur(ages, rng)[8:23] for _ in range(500)]) > 0.99


@pytest.mark.parametrize("columns", [1, 20])
def test_noise_alone_makes_a_false_value_of_a_flag_in_few_tables(columns):
    """The limit is five standard deviations of the share of 4,000 tables above the rate that is promised."""
    rng, rate, tables = np.random.default_rng(columns), FALSE_VALUE + FALSE_END, 4000 // columns
    wrong = [
        any(occur([2000, 400, 0, 0, 0, 0], rng, columns=columns)[2:].any() for _ in range(columns))
        for _ in range(tables)
    ]
    assert np.mean(wrong) < rate + 5 * np.sqrt(rate / tables)


def test_an_end_is_where_counts_end_and_a_rare_value_of_a_flag_stays():
    rng = np.random.default_rng(0)
    for _ in range(100):
        found = occur([0, 300, 900, 400, 0, 0, 0, 0, 0, 0], rng, columns=20)
        assert found[1:4].all()
        assert occur([2000, 1, 0, 0], rng)[:2].all()


def test_codes_that_do_not_occur_are_never_drawn():
    counts = Marginal(Domain(("x",), (6,), (6,)), np.array([3.0, 90, 80, -4, 5, 70]))
    occurs = {"x": np.array([False, True, True, False, False, True])}
    merging = merge_rare((Measurement(counts, 25.0),), 244.0, doubtful=["x"], occurs=occurs)
    assert merging.shares[0].tolist() == [0, 1, 1, 0, 0, 1]
    assert merging.groups[0].tolist() == [0, 0, 1, 1, 1, 2]


def drawn_at_the_end(exact, looks, rng):
    """Return the expected records of 64 cells, of which the last 40 are counted in one group."""
    group = np.repeat(np.arange(7), [4, 4, 4, 4, 4, 4, 40])
    counts = np.bincount(group, exact) + rng.normal(0, SIGMA, 7)
    variances, even = np.full(7, SIGMA**2), 1 / np.bincount(group)[group]
    some = occurring_groups(counts, Covariance.independent(variances), GAUSSIAN.deviations)
    cells = GroupedCells(group, even, np.ones(64))
    shares = likely_shares(counts, variances, some, cells, looks)
    return np.where(some[group], np.maximum(counts, 0)[group] * shares, 0.0)


def test_a_column_ends_within_its_last_group_where_the_groups_before_are_as_dense():
    """Ages to 27 were drawn to 63. Evenly, 180 of 200 records lay outside; noise of 10 moves that little."""
    rng, exact = np.random.default_rng(0), np.where(np.arange(64) < 28, 50.0, 0.0)
    for _ in range(100):
        made = drawn_at_the_end(exact, [], rng)
        assert made[28:].sum() < 0.5 * exact[24:].sum()
        assert made.sum() == pytest.approx(exact.sum(), abs=7 * SIGMA * np.sqrt(7))


def test_a_spike_at_the_end_is_found_by_noisy_cells():
    """The last 300 of 400 records are equal. The noise of a cell is a tenth of that."""
    rng, exact = np.random.default_rng(0), np.where(np.arange(64) < 24, 50.0, 0.0)
    exact[24:40], exact[40] = 100 / 16, 300.0
    for _ in range(100):
        cells = exact + rng.normal(0, 30, 64)
        made = drawn_at_the_end(exact, counts_of_levels([(cells, np.full(64, 900.0))]), rng)
        assert made[40] > 150
        assert made[41:].sum() < 20


def test_a_column_that_thins_out_is_not_cut():
    """Fewer and fewer records in 16 cells: with evenly spread ends alone, a third of them lay elsewhere."""
    rng, exact = np.random.default_rng(0), 50 * np.clip((39.5 - np.arange(64)) / 16, 0, 1)
    off = []
    for _ in range(100):
        looks = counts_of_levels([(exact + rng.normal(0, SIGMA, 64), np.full(64, SIGMA**2))])
        off.append(np.abs(drawn_at_the_end(exact, looks, rng) - exact)[24:].sum() / exact[24:].sum())
    assert np.mean(off) < 0.2


def test_the_counts_of_bounds_say_in_which_part_of_a_group_the_records_are():
    """Such are 99,999 beyond all other gains: one count of the upper half of a wide group sees them."""
    rng, exact = np.random.default_rng(0), np.where(np.arange(64) < 24, 50.0, 0.0)
    exact[60] = 200.0
    for _ in range(100):
        looks = [(np.repeat([0, 1], [48, 16]), np.array([1200.0, 200.0]), np.full(2, 100.0))]
        assert drawn_at_the_end(exact, looks, rng)[48:].sum() > 100


def test_groups_without_records_are_not_drawn_at_either_end():
    """A false group has a probability of a tenth at each end: the bounds are five standard errors away."""
    rng, exact = np.random.default_rng(0), np.array([0.0, 0, 0, 300, 300, 300, 300, 0, 0, 0])
    covariance = Covariance.independent(np.full(10, SIGMA**2))
    found = [
        occurring_groups(exact + rng.normal(0, SIGMA, 10), covariance, GAUSSIAN.deviations)
        for _ in range(1000)
    ]
    assert np.all([some[3:7].all() for some in found])
    assert 0.13 < np.mean([some.sum() > 4 for some in found]) < 0.26


YEARS = np.array(
    [0.0, 83, 247, 509, 955, 756, 1389, 1812, 657, 15784, 10878, 2061, 1601, 8025, 2657, 834, 594]
)
"""Rows with each number of years of education, in Adult; bounds of 0 and 23 were found."""


def ends_of_years(rng, *, looked):
    """Return which of 24 numbers occur, by counts with the noise of Adult at epsilon 1."""
    exact, place = np.append(YEARS, np.zeros(7)), np.repeat(np.arange(9), [1, 1, 1, 1, 2, 2, 4, 4, 8])
    counts, variances = exact + rng.normal(0, 66, 24), np.full(24, 66.0**2)
    covariance = Covariance.independent(variances)
    if looked:
        seen = np.bincount(place, exact) + rng.normal(0, 43, 9)
        look = place, seen, np.full(9, 43.0**2)
        counts, covariance = with_counts(counts, variances, np.arange(24), np.ones(24), look)
    return occurring(counts, covariance, GAUSSIAN.deviations, 15)


def test_counts_of_bounds_say_where_whole_numbers_end():
    """Both ends were right in 21 % of tables by the counts alone, and are in 62 % with those of the bounds.

    Of 600 tables fewer than 300 are with a probability of 1e-9, and more than 300 of the others with less.
    """
    rng = np.random.default_rng(0)
    right = np.append(YEARS, np.zeros(7)) > 0
    with_bounds, alone = (
        np.mean([(ends_of_years(rng, looked=looked) == right).all() for _ in range(600)])
        for looked in (True, False)
    )
    assert alone < 0.5 < with_bounds < 0.8


def test_beyond_a_steep_end_more_must_be_seen():
    """The next value holds 2.5 standard deviations: a tail where the column thins out, else noise."""
    covariance = Covariance.independent(np.full(8, SIGMA**2))
    steep = np.array([300.0, 400, 500, 400, 200, 25, 0, 0])
    thin = np.array([300.0, 400, 300, 150, 60, 25, 0, 0])
    assert np.flatnonzero(occurring(steep, covariance, GAUSSIAN.deviations, 10)).tolist() == [0, 1, 2, 3, 4]
    assert np.flatnonzero(occurring(thin, covariance, GAUSSIAN.deviations, 10)).tolist() == [0, 1, 2, 3, 4, 5]


def test_another_look_is_combined_by_least_squares():
    """Minimise the squares of both looks' errors, each over its variance, with the counts as unknowns."""
    rng = np.random.default_rng(0)
    counts, seen = rng.normal(100, 30, 6), rng.normal(200, 30, 3)
    variances, noise, place = rng.uniform(50, 150, 6), rng.uniform(50, 150, 3), np.array([0, 0, 1, 1, 1, 2])
    rows = np.vstack([np.eye(6), np.eye(3)[place].T])
    weights = 1 / np.concatenate([variances, noise])
    exact = np.linalg.inv(rows.T * weights @ rows)
    found, left = with_counts(counts, variances, np.arange(6), np.ones(6), (place, seen, noise))
    assert left.deviations() ** 2 == pytest.approx(np.diag(exact))
    order = rng.permutation(6)
    sums = [exact[np.ix_(order[:k], order[:k])].sum() for k in range(1, 7)]
    assert left.deviations_of_sums(order) ** 2 == pytest.approx(sums)
    assert found == pytest.approx(exact @ (rows.T * weights) @ np.concatenate([counts, seen]))


def test_a_group_in_two_counts_of_a_look_moves_less():
    """Two cells of a group of 900 records may hold any part of it: a look at one of them says little."""
    place, seen, noise = np.array([0, 1]), np.array([900.0, 0.0]), np.full(2, 100.0)
    found, left = with_counts(
        np.array([900.0]), np.array([400.0]), np.zeros(2, int), np.full(2, 0.5), (place, seen, noise)
    )
    assert found[0] == pytest.approx(900, abs=20)
    assert left.deviations()[0] ** 2 > 300


def test_a_long_thin_tail_stays():
    """Each value beyond the first 100 holds too few rows to be seen alone: 2,000 steps outwards."""
    exact = np.repeat([1000.0, 25.0], [100, 2000])
    assert occurring(exact, Covariance.independent(np.full(2100, SIGMA**2)), GAUSSIAN.deviations).all()
