"""The rows that are most alike: those of the slow search, by their weights."""

from __future__ import annotations

import numpy as np
import reference
from hypothesis import given
from hypothesis import strategies as st

from privsyn.marginals.nearest_rows import nearest_rows

seeds = st.integers(0, 2**32 - 1)


def picked(listed, weights, wanted, seed):
    rng = np.random.default_rng(seed)
    return nearest_rows(list(listed.T), np.asarray(weights, float), list(wanted.T), rng)


@given(st.integers(1, 4), st.integers(1, 8), st.integers(0, 8), st.booleans(), seeds)
def test_a_row_is_among_the_most_alike_and_has_weight_if_one_of_them_has(columns, n, m, real, seed):
    rng = np.random.default_rng(seed)
    listed, wanted = rng.integers(0, 3, (n, columns)), rng.integers(0, 4, (m, columns))
    if real:
        listed, wanted = listed / 3, wanted / 3
    weights = rng.random(n) * (rng.random(n) < 0.7)
    found = picked(listed, weights, wanted, seed)
    for place, alike in zip(found, reference.most_alike(listed, wanted), strict=True):
        assert place in alike
        assert weights[place] > 0 or not weights[alike].any()


def test_of_rows_equally_alike_each_is_drawn_by_its_weight():
    """40,000 draws: a share is 0.02 off with a chance below 2 exp(-2 * 40,000 * 0.02^2) < 3e-14 each.

    Were weights left out, all shares would be a quarter.
    """
    listed = np.array([[1, 0], [2, 0], [1, 0], [1, 0], [1, 0], [1, 7]])
    found = picked(listed, [1, 50, 2, 3, 4, 50], np.tile([1, 0], (40_000, 1)), 0)
    shares = np.bincount(found, minlength=6) / len(found)
    assert np.abs(shares - np.array([0.1, 0, 0.2, 0.3, 0.4, 0])).max() < 0.02
