"""Concordances move the estimated tables of pairs as far as their noise allows, and keep the columns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privsyn.inference.measured_columns import Estimate
from privsyn.inference.ordered.concordance import (
    ENOUGH,
    LEAST_SHARE,
    SURE,
    USUAL_SHARE,
    Concordance,
    signs_of,
    with_concordances,
)
from privsyn.inference.prior.dispersion import DISPERSIONS
from privsyn.inference.prior.smoothing import Waves
from privsyn.marginals.domain import Domain
from privsyn.marginals.marginal import Marginal, Measurement, groups_at

CODES = 8
SQUARE = Domain(("a", "b"), (CODES, CODES), (CODES, CODES))


def even(total=800.0, domain=SQUARE):
    """Return the table of two independent columns with equal counts, and its margins."""
    table = Marginal(domain, np.full(domain.shape, total / domain.cells))
    return table, tuple(table.project((name,)) for name in "ab")


def concordance(table, found, variance):
    signs = tuple(np.where(groups_at(table.project((name,)), 2) > 0, 1.0, -1.0) for name in "ab")
    return Concordance(dict(zip("ab", signs, strict=True)), found, variance)


def measured(table, noise):
    """Return a measurement of which all noise together has this variance."""
    return Measurement(table, noise / table.domain.cells)


@given(st.floats(-600.0, 600.0))
def test_an_imposed_concordance_is_met_and_the_margins_are_kept(wanted):
    table, margins = even()
    one = concordance(table, wanted, 1e-6)
    found = one.imposed(table, wanted, margins)
    assert one.gap(found.counts) == pytest.approx(0.0, abs=0.5)
    for margin in margins:
        assert found.project(margin.attributes).counts == pytest.approx(margin.counts, rel=1e-3)
    assert (found.counts > 0).all()


def spiked(rng, size):
    """Return counts of a column of which most records have one code."""
    counts = rng.gamma(0.3, 1.0, size)
    counts[rng.integers(size)] += 10 ** rng.uniform(-1, 1.5) * counts.sum()
    return counts


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(300))
def test_a_tilt_meets_what_is_wanted_or_comes_as_close_as_the_margins_allow(seed):
    """Columns with spikes, pairs that exclude each other, and tables of 2 x 2."""
    rng = np.random.default_rng(seed)
    sizes = tuple(rng.integers(2, 9, 2).tolist())
    total = 10 ** rng.uniform(2, 5)
    rows, columns = (spiked(rng, size) for size in sizes)
    start = np.outer(rows, columns) * rng.gamma(rng.choice([0.2, 5.0]), 1.0, sizes) + 1e-9
    if seed % 2:  # hardly any record is away from both spikes
        start *= 1 - (1 - 1e-5) * np.outer(rows < rows.max(), columns < columns.max())
    domain = Domain(("a", "b"), sizes, sizes)
    table = Marginal(domain, start * total / start.sum())
    margins = tuple(table.project((name,)) for name in "ab")
    signs = tuple(map(signs_of, margins))
    one = Concordance(dict(zip("ab", signs, strict=True)), 0.0, rng.uniform(1, 100) ** 2)
    p, q = (float(side.counts[sign > 0].sum()) for side, sign in zip(margins, signs, strict=True))
    least, most = (table.total - 2 * p - 2 * q + 4 * both for both in (max(0, p + q - total), min(p, q)))
    now = one.concordance_of(table.counts)
    wanted = now + one.variance**0.5 * rng.standard_normal() * 10 ** rng.uniform(-1, 1)
    found = one.concordance_of(one.imposed(table, wanted, margins).counts)
    enough = 2 * ENOUGH * one.variance**0.5 + 1e-3 * total
    assert min(now, wanted) - enough <= found <= max(now, wanted) + enough
    # Proportional fitting to margins that allow hardly any other table does not converge: 4 % are left.
    near = min(max(wanted, least), most)
    assert abs(found - near) <= enough + 0.04 * total


def test_ranks_of_codes_that_hardly_any_record_has_stay_finite():
    """Where all but one record of ten billion have one code, the ranks of the others are enormous."""
    rare = np.full(CODES, 1e-9)
    rare[0] = 4.0
    table = Marginal(SQUARE, np.outer(rare, rare) / rare.sum())
    margins = tuple(table.project((name,)) for name in "ab")
    found = concordance(table, -3.0, 1e-6).imposed(table, -3.0, margins)
    assert np.isfinite(found.counts).all()
    assert found.project(("a",)).counts == pytest.approx(rare, rel=1e-3)


def test_numbers_that_agree_in_their_sign_alone_are_not_put_on_a_diagonal():
    """Within each quadrant the two are independent: their rank correlation is 3/4."""
    table, margins = even()
    quadrants = np.kron(np.eye(2), np.full((CODES // 2, CODES // 2), 2.0)) * table.counts
    one = concordance(table, 800.0, 1.0)
    found = one.imposed(Marginal(SQUARE, 0.9 * quadrants + 0.1 * table.counts), 790.0, margins).counts
    ranks = (np.arange(CODES) - (CODES - 1) / 2) / np.sqrt((CODES**2 - 1) / 12)
    assert ranks @ quadrants @ ranks / 800 == pytest.approx(0.7619, abs=1e-4)
    assert ranks @ found @ ranks / 800 == pytest.approx(0.77, abs=0.03)


@given(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3), st.floats(-300.0, 300.0))
def test_a_table_moves_by_inverse_variance(own, noise, gap):
    """One pair, so that the share of the table's noise is known in closed form."""
    table, margins = even()
    one = concordance(table, gap, noise)
    pair = Estimate(table, measured=measured(table, own), margins=margins)
    (found,) = with_concordances([pair], [one])
    weight = 1 / (own + noise)
    share = max((SURE * USUAL_SHARE + weight * (gap**2 - noise)) / (SURE + weight * own), LEAST_SHARE)
    expected = share * own / (share * own + noise) * gap
    assert one.concordance_of(found.table.counts) == pytest.approx(expected, abs=0.06 * noise**0.5 + 2.0)


def test_noise_moves_nothing_and_pairs_without_a_concordance_stay():
    table, margins = even()
    pair = Estimate(table, measured=measured(table, 1.0), margins=margins)
    (found,) = with_concordances([pair], [concordance(table, 40.0, 1e12)])
    assert found.table.counts == pytest.approx(table.counts, abs=1e-3)
    assert with_concordances([pair], []) == (pair,)


def test_codes_without_an_order_keep_their_counts():
    domain = Domain(("a", "b"), (CODES + 1, CODES), (CODES, CODES))
    table, margins = even(720.0, domain)
    one = concordance(table, 200.0, 1e-6)
    found = one.imposed(table, 200.0, margins)
    assert one.concordance_of(found.counts) == pytest.approx(200.0, abs=0.5)
    assert found.counts.sum(axis=1) == pytest.approx(table.counts.sum(axis=1), rel=1e-3)


def test_a_clear_concordance_speaks_for_dependence():
    table, margins = even()
    waves = Waves(margins)
    clear, none = (concordance(table, found, 100.0).likelihoods(table.counts, waves) for found in (400, 0))
    assert DISPERSIONS[clear.argmax()] > 1.0
    assert none.argmax() == 0
