"""Intervals hold 95 times in a hundred, whatever the true count: by integration, not by chance."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr

from privsyn.inference.fitted import MISSED, ROUNDING, TWO_SIDED, count_intervals

FINE = np.linspace(-40.0, 60.0, 2_000_001)  # what may be seen, in standard deviations


@pytest.fixture(scope="module")
def ends():
    return count_intervals(FINE, np.full(FINE.shape, 1.0 - ROUNDING))


@pytest.mark.parametrize("truth", [0.0, 1e-3, 0.01, 0.1, 0.5, 1.0, 1.5, 1.95, 2.0, 3.0, 3.9, 4.0, 20.0])
def test_an_interval_holds_95_times_in_a_hundred(ends, truth):
    low, high = ends
    held = np.flatnonzero((low <= truth) & (truth <= high))
    assert (np.diff(held) == 1).all()  # one stretch
    first = -np.inf if held[0] == 0 else FINE[held[0]]
    assert ndtr(FINE[held[-1]] - truth) - ndtr(first - truth) == pytest.approx(1 - MISSED, abs=1e-3)


def test_an_interval_is_never_empty_nor_below_zero_and_moves_with_what_was_seen(ends):
    low, high = ends
    assert ((low >= 0) & (high > low)).all()
    assert (np.diff(low) >= 0).all()
    assert (np.diff(high) >= 0).all()


def test_far_from_zero_it_is_the_usual_one(ends):
    low, high = (end[FINE > 4] for end in ends)
    usual = FINE[FINE > 4]
    np.testing.assert_allclose((low, high), (usual - TWO_SIDED, usual + TWO_SIDED))


@given(st.floats(-1e4, 1e4), st.floats(1.0, 1e6))
def test_it_is_as_wide_as_the_noise(seen, variance):
    low, high = count_intervals(np.array([seen]), np.array([variance]))
    sigma = np.sqrt(variance + ROUNDING)
    unit = count_intervals(np.array([seen / sigma]), np.array([1.0 - ROUNDING]))
    np.testing.assert_allclose((low, high), np.multiply(unit, sigma), rtol=1e-6, atol=1e-6 * sigma)


def test_an_exact_count_is_held():
    low, high = count_intervals(np.array([0.0, 7.0]), np.zeros(2))
    assert (low <= [0, 7]).all()
    assert (high >= [0, 7]).all()
    assert (high - low < 2).all()
