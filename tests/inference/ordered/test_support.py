"""Which values of a column with found bounds occur, by its noisy counts."""

from __future__ import annotations

import numpy as np
import pytest

from privsyn.inference.ordered.support import FALSE_END, FALSE_VALUE, occurring
from privsyn.inference.rare_values import merge_rare
from privsyn.marginals.domain import Domain
from privsyn.marginals.marginal import Marginal, Measurement
from privsyn.private.laws import GAUSSIAN

SIGMA = 10.0


def occur(exact, rng, columns=1):
    """Return which values occur by counts with noise."""
    noisy = np.array(exact) + rng.normal(0, SIGMA, len(exact))
    return occurring(noisy, np.full(len(exact), SIGMA**2), GAUSSIAN.deviations, columns)


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
