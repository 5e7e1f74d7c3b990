"""Posterior counts of an unordered column: a projection where the counts are certain, and less error else."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from privsyn.inference import _kernels
from privsyn.inference.consistency import norm_sub
from privsyn.inference.prior.counts import posterior_counts

noisy = arrays(np.float64, st.integers(1, 30), elements=st.floats(-300, 3000))


@given(noisy, st.floats(1e-3, 1e4), st.floats(0, 5000))
def test_posterior_counts_are_not_negative_and_keep_the_total(counts, variance, total):
    found = posterior_counts(counts, np.full(counts.shape, variance), total)
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(total, rel=1e-9)


def test_counts_of_many_values_have_less_error_than_projected_ones():
    """300 values, frequent ones and a long tail: the mean of 60 runs is clear by more than six errors."""
    exact = np.round(20_000 / np.arange(1, 301) ** 1.5)
    rng = np.random.default_rng(1)
    gains = []
    for _ in range(60):
        seen = exact + rng.normal(0, 40, exact.shape)
        posterior = posterior_counts(seen, np.full(exact.shape, 1600.0), exact.sum())
        projected = norm_sub(seen, exact.sum())
        gains.append(1 - np.abs(posterior - exact).sum() / np.abs(projected - exact).sum())
    assert np.mean(gains) - 6 * np.std(gains) / np.sqrt(60) > 0.15


@pytest.mark.slow
@given(st.integers(0, 2**32), st.integers(3, 12), st.floats(0.1, 3))
def test_the_tilt_is_that_of_the_twin(seed, cells, share):
    rng = np.random.default_rng(seed)
    counts, variance, grid = rng.normal(9, 9, cells), rng.uniform(1, 9, cells), np.geomspace(0.1, 90, 40)
    near = rng.random(cells) < 0.7
    likelihood = np.exp(-((counts[near, None] - grid) ** 2) / (2 * variance[near, None]))
    law, total = rng.dirichlet(np.ones(40)), share * max(counts.sum(), 1.0)
    cells = _kernels.SeenCells(counts, variance, near, likelihood, grid)
    tilt = _kernels.best_tilt(cells, law, total, 2.0, 30)
    assert tilt == pytest.approx(reference.best_tilt(*cells, law, total, 2.0, 30), abs=1e-7)
