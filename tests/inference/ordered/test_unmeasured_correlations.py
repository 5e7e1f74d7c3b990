"""Rank correlations of pairs that were not measured: from a concordance, and from a distance."""

import numpy as np
import pytest

from privsyn.inference.ordered.concordance import signs_of
from privsyn.inference.ordered.number_intervals import Interval, Ranks, correlation_of
from privsyn.inference.ordered.unmeasured_correlations import (
    Halves,
    NoisySigns,
    concordance_interval,
    largest_correlation,
    margin_noise,
    unmeasured_interval,
)
from privsyn.inference.ratios.joint_counts import Departure
from privsyn.marginals.domain import Domain
from privsyn.marginals.marginal import Grouping, Marginal

CODES = 40


def sides_of(counts):
    """Return the ranks of both columns of a table, and its columns."""
    margins = [
        Marginal(Domain((name,), (len(side),), ordered=(len(side),)), side)
        for name, side in (("a", counts.sum(axis=1)), ("b", counts.sum(axis=0)))
    ]
    return tuple(Ranks.of(margin, np.arange(len(margin.counts))) for margin in margins), margins


def normal_pair(rho, rows, rng):
    """Return the counts of two columns with a Gaussian copula; the second one is skewed."""
    x, z = rng.normal(size=(2, rows))
    y = np.exp(0.5 * (rho * x + np.sqrt(1 - rho**2) * z))
    codes = [
        np.clip((v - low) / (high - low) * CODES, 0, CODES - 1) for v, low, high in ((x, -3, 3), (y, 0, 4))
    ]
    table = np.zeros((CODES, CODES))
    np.add.at(table, tuple(code.astype(int) for code in codes), 1.0)
    return table


@pytest.mark.parametrize("rho", [-0.6, 0.0, 0.3, 0.9])
def test_the_interval_of_a_concordance_holds(rho):
    rng, held, noise = np.random.default_rng(0), [], 60.0
    for _ in range(60):
        table = normal_pair(rho, 2000, rng)
        sides, margins = sides_of(table)
        signs = [signs_of(margin) for margin in margins]
        first_above = [int(np.argmax(sign > 0)) for sign in signs]
        halves = tuple(map(Halves, sides, first_above))
        measured = float(signs[0] @ table @ signs[1]) + noise * rng.normal()
        interval = concordance_interval(measured, noise**2, halves, 2000.0)
        held.append(interval.low <= correlation_of(table, sides) <= interval.high)
        assert interval.low <= interval.estimate <= interval.high
        assert interval.high - interval.low < 0.4
    assert np.mean(held) > 0.9


def test_a_constant_column_has_no_interval():
    table = np.zeros((3, 3))
    table[:, 1] = 5.0
    sides, _ = sides_of(table)
    interval = concordance_interval(3.0, 1.0, tuple(Halves(side, 1) for side in sides), 15.0)
    assert (interval.low, interval.high) == (-1.0, 1.0)


@pytest.mark.parametrize("seed", range(20))
def test_no_table_has_a_larger_correlation_than_its_distance_allows(seed):
    rng = np.random.default_rng(seed)
    table = rng.gamma(rng.choice([0.05, 1.0, 20.0]), size=(4, 5)) * 1000
    table += rng.choice([0.0, 3000.0]) * np.eye(4, 5)
    sides, _ = sides_of(table)
    total = table.sum()
    distance = np.abs(table - np.outer(table.sum(axis=1), table.sum(axis=0)) / total).sum()
    blocks = Grouping((np.arange(4), np.arange(5)))
    largest = largest_correlation(Departure(float(distance), 0.0, blocks), sides, float(total))
    assert abs(correlation_of(table, sides)) <= largest + 1e-3


def test_a_distance_of_nothing_allows_nothing_and_a_large_one_everything():
    sides, _ = sides_of(np.full((4, 4), 100.0))
    blocks = Grouping((np.arange(4), np.arange(4)))
    assert largest_correlation(Departure(0.0, 1e-9, blocks), sides, 1600.0) < 0.01
    assert largest_correlation(Departure(3200.0, 1.0, blocks), sides, 1600.0) == 1.0


def test_both_are_combined_and_the_distance_wins():
    concordance = Interval(0.3, 0.1, 0.5)
    assert unmeasured_interval(concordance, 0.4) == Interval(0.3, 0.1, 0.4)
    assert unmeasured_interval(concordance, 0.2) == Interval(0.2, 0.1, 0.2)
    assert unmeasured_interval(concordance, 0.05) == Interval(0.05, -0.05, 0.05)
    assert unmeasured_interval(None, 0.4) == Interval(0.0, -0.4, 0.4)


def test_noise_of_columns_matters_where_halves_are_unequal():
    sign, equal, skewed = np.array([-1.0, 1.0]), np.array([0.5, 0.5]), np.array([0.9, 0.1])
    noise = 3 * np.eye(2)
    assert margin_noise(NoisySigns(sign, equal, noise), NoisySigns(sign, equal, noise)) == 0.0
    added = margin_noise(NoisySigns(sign, skewed, noise), NoisySigns(sign, equal, noise))
    assert added == pytest.approx(0.8**2 * 18)
