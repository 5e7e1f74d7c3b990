"""Public zeros: which cells they are, that nothing is counted there, and that no record is lost by it."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from strategies import domains

from privsyn.marginals.domain import Domain
from privsyn.marginals.ipf import fit_margins
from privsyn.marginals.marginal import Marginal, Measurement
from privsyn.marginals.structural_zeros import StructuralZeros


@st.composite
def zeros(draw):
    """A domain, and what is known of up to three sets of its attributes; each set has a possible cell."""
    domain = draw(domains(max_attributes=3, max_size=3))
    masks = []
    for _ in range(draw(st.integers(0, 3))):
        names = draw(st.lists(st.sampled_from(domain.names), min_size=1, unique=True))
        of = domain.project(tuple(names))
        mask = draw(st.lists(st.booleans(), min_size=of.cells, max_size=of.cells).filter(any))
        masks.append((of, np.array(mask).reshape(of.shape)))
    return domain, StructuralZeros(tuple(masks))


def counts(domain, seed):
    return np.random.default_rng(seed).normal(0, 50, domain.shape)


@given(zeros(), st.data())
def test_a_cell_is_possible_where_every_mask_has_a_cell_beside_it(known, data):
    domain, possible = known
    names = data.draw(st.lists(st.sampled_from(domain.names), min_size=1, unique=True))
    some = domain.project(tuple(names))
    found = possible.mask(some)
    for cell in reference.cells_of(some.shape):
        at = dict(zip(some.names, cell, strict=True))
        assert found[cell] == all(
            any(
                mask[other]
                for other in reference.cells_of(mask.shape)
                if all(at.get(name, code) == code for name, code in zip(of.names, other, strict=True))
            )
            for of, mask in possible.masks
            if set(of.names) & set(at)
        )


@given(zeros(), st.integers(0, 99))
def test_what_is_impossible_is_counted_exactly_zero_and_nothing_else_is_changed(known, seed):
    domain, possible = known
    measured = Measurement(Marginal(domain, counts(domain, seed)), 4.0)
    cleaned, mask = possible.clean(measured), possible.mask(domain)
    assert (cleaned.marginal.counts[~mask] == 0).all()
    assert (np.broadcast_to(cleaned.variance, mask.shape)[~mask] == 0).all()
    assert np.array_equal(cleaned.marginal.counts[mask], measured.marginal.counts[mask])
    assert (np.broadcast_to(cleaned.variance, mask.shape)[mask] == 4.0).all()


@given(zeros(), st.integers(0, 99), st.floats(0, 0.9))
def test_a_fitted_table_has_nothing_in_its_zeros_and_the_total_of_its_margins(known, seed, empty):
    """Also where all that was counted lies in public zeros, and where no table with them has the margins."""
    domain, possible = known
    sides = _sides(domain, seed, empty)
    mask = possible.mask(domain)
    start = np.random.default_rng(seed).random(domain.shape) * (
        np.random.default_rng(seed + 1).random() > empty
    )
    fitted = possible.fit(Marginal(domain, start), sides)
    if possible.masks and mask.any() and not mask.all():
        assert (fitted.counts[~mask] == 0).all()
        assert fitted.total == pytest.approx(1000, rel=1e-8)
    again = fit_margins(fitted, sides)
    assert again.total == pytest.approx(1000, rel=1e-8)
    assert (again.counts >= 0).all()
    for table in possible.missing_from((), sides):
        assert table.total == pytest.approx(1000, rel=1e-8)


@given(zeros(), st.integers(0, 99), st.floats(0, 0.8))
def test_settled_one_ways_keep_their_total_and_are_non_negative(known, seed, empty):
    """Also where all that was counted lies in public zeros."""
    domain, possible = known
    settled = possible.settle(_sides(domain, seed, empty))
    assert [table.attributes for table in settled] == [(name,) for name in domain.names]
    for table in settled:
        assert table.total == pytest.approx(1000, rel=1e-9)
        assert (table.counts >= 0).all()


def _sides(domain, seed, empty):
    """One-ways of a thousand records in all, with so large a part of their values held by nobody."""
    rng = np.random.default_rng(seed)
    one_ways = []
    for name in domain.names:
        side = domain.project((name,))
        shares = np.where(rng.random(side.shape) < empty, 0, rng.random(side.shape))
        shares = shares if shares.any() else np.eye(1, side.cells)[0]
        one_ways.append(Marginal(side, shares * (1000 / shares.sum())))
    return tuple(one_ways)


def test_margins_that_no_table_with_the_zeros_has_are_moved_until_one_has_them():
    pair = Domain(("a", "b"), (2, 2))
    never = StructuralZeros(((pair, np.array([[False, True], [True, True]])),))
    sides = tuple(Marginal(pair.project((name,)), np.array([80.0, 20.0])) for name in "ab")
    settled = never.settle(sides)
    table = never.fit(Marginal(pair, np.ones((2, 2)) * 25), settled)
    for side in settled:
        assert np.abs(table.project(side.attributes).counts - side.counts).max() < 0.2


@pytest.mark.parametrize("seed", range(5))
def test_margins_with_many_equal_values_are_met_beside_an_order(seed):
    """The largest gap grew at first, and fitting stopped 2.5 % of the records away from the margins."""
    rng, size = np.random.default_rng(seed), 32
    domain = Domain(("paid", "billed"), (size, size))
    billed = rng.gamma(1, 100, size)
    counts = np.diag(0.4 * billed)
    counts[0] += 0.6 * billed
    sides = tuple(Marginal(domain, counts).project((name,)) for name in domain)
    order = StructuralZeros(((domain, np.triu(np.ones((size, size), np.bool_))),))
    start = Marginal(domain, np.multiply.outer(sides[0].counts, sides[1].counts) / counts.sum())
    fitted = order.fit(start, sides)
    for side, settled in zip(sides, order.settle(sides), strict=True):
        assert fitted.project(side.attributes).counts == pytest.approx(side.counts, abs=1e-5 * counts.sum())
        assert settled.counts == pytest.approx(side.counts)
