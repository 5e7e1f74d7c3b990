"""Hierarchical counts: noise stays where records are, and spikes stand out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privsyn.inference.consistency import norm_sub
from privsyn.inference.ordered.binning import LEVELS, expected_cells, in_runs, runs
from privsyn.marginals.domain import Domain, Records

CELLS = 512


def levels_of(counts, sigma, seed):
    """Return each level of a column with Gaussian noise."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(LEVELS):
        found.append((counts + rng.normal(0, sigma, len(counts)), np.full(len(counts), sigma**2)))
        counts = np.bincount(runs(len(counts)), counts)
    return found


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 200), st.floats(0.1, 1e4), st.integers(0, 2**32))
def test_expected_cells_are_not_negative_and_have_the_total(cells, sigma, seed):
    found = expected_cells(levels_of(np.full(cells, 3.0), sigma, seed), np.arange(1.0, cells + 1), 77.0)
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(77.0)


def test_a_row_lies_in_one_run():
    """So the counts of a level have the sensitivity of one-ways."""
    domain = Domain(("a", "b"), (21, 4), (20, 0))
    merging = in_runs(domain, {"a"})
    assert merging.merged.sizes == (3, 4)
    assert merging.merged.ordered == (2, 0)
    rows = Records(domain, np.array([[7, 1], [8, 2], [19, 3], [20, 0]]))
    assert merging.merge(rows).codes.tolist() == [[0, 1], [1, 2], [1, 3], [2, 0]]


def test_noise_of_wide_bounds_puts_few_records_far_away():
    """Over 40 noises: share of records outside the eighth that holds all, beside that of cells alone."""
    true = np.concatenate([np.full(CELLS // 8, 40.0), np.zeros(7 * CELLS // 8)])
    total, sigma = true.sum(), 40.0
    far, alone = [], []
    for seed in range(40):
        levels = levels_of(true, sigma, seed)
        far.append(expected_cells(levels, np.ones(CELLS), total)[CELLS // 8 :].sum() / total)
        cells = levels[0][0] / np.sqrt(LEVELS)  # with the whole budget
        alone.append(norm_sub(cells, total)[CELLS // 8 :].sum() / total)
    assert np.mean(far) < 0.1 < 0.3 < np.mean(alone)


def test_a_spike_of_ten_standard_deviations_is_kept():
    """250 are six standard deviations: one of 40 noises exceeds them with a probability below 1e-6."""
    true = np.zeros(CELLS)
    true[:64], true[300] = 30.0, 400.0
    kept = [
        expected_cells(levels_of(true, 40.0, seed), np.ones(CELLS), true.sum())[300] for seed in range(40)
    ]
    assert 150 < min(kept) < max(kept) < 650
