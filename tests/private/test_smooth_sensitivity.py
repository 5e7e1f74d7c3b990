"""The smooth sensitivity of the median is that of the definition, and its Cauchy noise keeps the promise."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise
from math import ceil, exp, inf

import mpmath
import numpy as np
import pytest
from scipy.stats import chi2

from privsyn.private.randomness import os_entropy
from privsyn.private.smooth_sensitivity import (
    falling,
    lower_median,
    rounded_cauchy,
    smooth_sensitivity_of_median,
)

HIGH = 3
TABLES = [table for size in range(7) for table in combinations_with_replacement(range(HIGH + 1), size)]
SMALL = [table for table in TABLES if len(table) <= 4]
CHANCE = 1e-8
"""Probability with which a test of draws may fail although they follow the law."""


def median(table):
    return sorted(table)[ceil(len(table) / 2) - 1] if table else 0


def neighbours(table):
    yield from (tuple(sorted((*table, value))) for value in range(HIGH + 1))
    yield from (table[:index] + table[index + 1 :] for index in range(len(table)))


def distance(one, other):
    one, other = Counter(one), Counter(other)
    return (one - other).total() + (other - one).total()


LOCAL = {table: max(abs(median(other) - median(table)) for other in neighbours(table)) for table in TABLES}


def smooth(table, beta):
    return smooth_sensitivity_of_median(np.array(table, np.int64), 0, HIGH, beta)


@pytest.mark.parametrize("beta", [0.05, 0.5, 2.0])
def test_it_is_the_largest_local_sensitivity_that_falls_with_the_distance(beta):
    """Brute force over all tables of up to six rows: the definition of Nissim, Raskhodnikova and Smith."""
    for table in SMALL:
        truth = max(LOCAL[other] * exp(-beta * distance(table, other)) for other in TABLES)
        assert float(smooth(table, beta)) == pytest.approx(truth, rel=1e-12)


@pytest.mark.parametrize("beta", [0.05, 0.5, 2.0])
def test_it_bounds_the_local_one_and_changes_by_a_factor_of_e_to_the_beta(beta):
    rng = np.random.default_rng(1)
    tables = [*SMALL, *(tuple(sorted(rng.integers(0, HIGH + 1, size).tolist())) for size in (9, 20, 41))]
    for table in tables:
        sensitivity = smooth(table, beta)
        for other in neighbours(table):
            assert abs(median(other) - median(table)) <= sensitivity
            assert float(smooth(other, beta) / sensitivity) <= exp(beta) * (1 + 1e-14)


def test_weights_never_fall_faster_than_beta_allows():
    for beta in (1e-17, 1e-9, 0.1, 5.0):
        weights = [Fraction(weight) for weight in falling(beta, 400).tolist()]
        with mpmath.workdps(60):
            ratio = mpmath.exp(-mpmath.mpf(beta)) * (1 - mpmath.mpf(10) ** -50)
            for one, other in pairwise(weights):
                assert other <= one
                assert (
                    mpmath.mpf(other.numerator) / other.denominator >= ratio * one.numerator / one.denominator
                )
        assert float(weights[9]) == pytest.approx(exp(-9 * beta), rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])
def test_the_density_of_the_answer_changes_by_at_most_e_to_the_epsilon(epsilon):
    """For all neighbours of all small tables, and not much less for some of them."""
    half, answers = epsilon / 2, np.concatenate([np.linspace(-60, 60, 2_001), [-1e9, 1e9]])

    def log_density(table):
        scale = float(smooth(table, half)) / half
        return -np.log(scale) - np.log1p(((answers - median(table)) / scale) ** 2)

    largest = max(
        float(np.max(np.abs(log_density(table) - log_density(other))))
        for table in SMALL
        for other in neighbours(table)
    )
    assert epsilon / 3 < largest <= epsilon * (1 + 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(5), Fraction(1000)])
def test_draws_follow_the_rounded_cauchy_distribution_and_no_other(scale):
    draws = np.array([rounded_cauchy(scale, 10**6, os_entropy) for _ in range(5_000)])
    assert likelihood(draws, float(scale)) > CHANCE
    assert likelihood(draws, 1.3 * float(scale)) < CHANCE


def likelihood(draws, scale):
    inner = np.unique(np.rint(scale * np.tan(np.pi * (np.linspace(0, 1, 25)[1:-1] - 0.5))))
    edges = np.concatenate([[-inf], inner + 0.5, [inf]])
    expected = len(draws) * np.diff(np.arctan(edges / scale) / np.pi + 0.5)
    counts = np.histogram(draws, edges)[0]
    kept = expected > 30
    return float(chi2.sf(np.sum((counts[kept] - expected[kept]) ** 2 / expected[kept]), kept.sum() - 1))


def test_a_word_at_a_tail_is_decided_by_further_words():
    scale, magnitude = Fraction(7, 4), 4
    with mpmath.workprec(360):
        tail = 2 * mpmath.atan(mpmath.mpf(1.75) / (magnitude - mpmath.mpf(0.5))) / mpmath.pi
        tail = Fraction(int(mpmath.nint(tail * mpmath.mpf(2) ** 300)), 2**300)
    k, rest = divmod(tail * 2**63, 1)
    first, rest = divmod(rest * 2**64, 1)
    for further, expected in (([first - 1], magnitude), ([first + 1], magnitude - 1)):
        for sign in (0, 1):
            words = iter([2 * k + sign, *further])
            drawn = rounded_cauchy(scale, 10**6, lambda size, words=words: np.array([next(words)], np.uint64))
            assert drawn == (-1) ** sign * expected


def test_draws_are_cut_off_and_take_no_more_words_for_it():
    assert rounded_cauchy(Fraction(10**12), 50, lambda size: np.full(size, 2**40, np.uint64)) == 50
    assert lower_median(np.array([1, 2, 3, 9]), 0) == 2
