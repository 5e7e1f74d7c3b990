"""Columns drawn by quota: each value as often as it should be, to within one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privsyn.marginals.domain import Domain
from privsyn.marginals.marginal import Marginal
from privsyn.synthesis.synthesise import draw_by_quota, draw_given

weights = st.lists(st.just(0.0) | st.floats(1e-9, 1e6), min_size=1, max_size=12).map(np.array)
seeds = st.integers(0, 2**32 - 1)
ROUNDING = 1e-6  # of quotas, in rows


@settings(deadline=None)
@given(weights, st.integers(0, 2000), seeds)
def test_quotas_are_kept_to_within_one(weight, n, seed):
    codes = draw_by_quota(weight, n, np.random.default_rng(seed))
    expected = n * (weight / weight.sum() if weight.any() else np.full(len(weight), 1 / len(weight)))
    assert (codes.dtype, len(codes)) == (np.int32, n)
    assert (np.abs(np.bincount(codes, minlength=len(weight)) - expected) < 1 + ROUNDING).all()


@settings(deadline=None)
@given(weights.filter(np.any), st.integers(0, 50), seeds)
def test_a_value_of_weight_zero_is_never_drawn(weight, n, seed):
    assert (weight[draw_by_quota(weight, n, np.random.default_rng(seed))] > 0).all()


@settings(deadline=None)
@given(st.lists(st.integers(0, 50), min_size=1, max_size=12), seeds)
def test_whole_counts_are_met_exactly(counts, seed):
    codes = draw_by_quota(np.array(counts, float), sum(counts), np.random.default_rng(seed))
    assert np.bincount(codes, minlength=len(counts)).tolist() == counts


class Fixed:
    """A generator that always draws the same number and shuffles nothing."""

    def __init__(self, number):
        self.number = number

    def random(self):
        return self.number

    def shuffle(self, codes):
        pass


@pytest.mark.parametrize(
    ("weight", "offset", "n"),
    [([1.5, 1.5], np.nextafter(1.0, 0.0), 3), ([0.1] * 10, 0.0, 1), ([0.7, 0.1, 0.2], 0.0, 10)],
)
def test_a_sum_rounded_over_a_whole_number_costs_no_row(weight, offset, n):
    """In floating point 1.5 + 1.5 + offset is 4, and ten times 0.1 is less than 1."""
    assert len(draw_by_quota(np.array(weight), n, Fixed(offset))) == n


def test_what_is_left_over_is_drawn_by_its_weight():
    """Two-sided at 5.5 standard deviations, which independent draws would have: wrong under 4e-8 each."""
    weight, draws = np.array([0.2, 1.5, 0.9, 0.4]), 10_000
    rng = np.random.default_rng(3)
    drawn = sum(np.bincount(draw_by_quota(weight, 1, rng), minlength=4) for _ in range(draws))
    share = weight / weight.sum()
    assert (np.abs(drawn - draws * share) < 5.5 * np.sqrt(draws * share * (1 - share))).all()


def test_the_order_is_random():
    """Where the first value stands among 50 places: each 100 times of 5000, within 5.5 deviations."""
    rng = np.random.default_rng(4)
    places = [int(np.argmin(draw_by_quota(np.array([1.0, 49.0]), 50, rng))) for _ in range(5000)]
    assert (np.abs(np.bincount(places, minlength=50) - 100) < 5.5 * np.sqrt(100)).all()


@st.composite
def tables_and_given(draw):
    shape = draw(st.tuples(st.integers(1, 5), st.integers(1, 5)))
    cells = st.just(0.0) | st.floats(1e-3, 100.0)
    counts = draw(st.lists(cells, min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]))
    known = draw(st.lists(st.integers(0, shape[0] - 1), max_size=60))
    return Marginal(Domain(("a", "b"), shape), np.array(counts).reshape(shape)), np.array(known, np.int32)


@settings(deadline=None)
@given(tables_and_given(), seeds)
def test_each_known_value_is_followed_by_its_own_quotas(case, seed):
    table, known = case
    drawn = draw_given(table, known, np.random.default_rng(seed))
    assert len(drawn) == len(known)
    for value, weight in enumerate(table.counts):
        if weight.any():
            here = np.bincount(drawn[known == value], minlength=len(weight))
            expected = (known == value).sum() * weight / weight.sum()
            assert (np.abs(here - expected) < 1 + ROUNDING).all()


def test_a_value_that_the_table_does_not_know_is_followed_by_any():
    table = Marginal(Domain(("a", "b"), (2, 3)), np.array([[0.0, 0.0, 0.0], [10.0, 0.0, 30.0]]))
    drawn = draw_given(table, np.zeros(8, np.int32), np.random.default_rng(0))
    assert np.bincount(drawn, minlength=3).tolist() == [2, 0, 6]


def test_of_exact_counts_the_pairs_come_back_exactly():
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 20, (4, 6))
    known = np.repeat(np.arange(4, dtype=np.int32), counts.sum(axis=1))
    rng.shuffle(known)
    drawn = draw_given(Marginal(Domain(("a", "b"), (4, 6)), counts), known, rng)
    again = np.zeros((4, 6))
    np.add.at(again, (known, drawn), 1)
    assert np.array_equal(again, counts)
