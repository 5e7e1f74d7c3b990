"""Marginal and Measurement: project, its mirror spread, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from reference import binary
from strategies import domains

from privsyn.marginals.marginal import Marginal, Measurement, lift, unstacked

counts_in_records = st.floats(-1e6, 1e6)
CLOSE = {"rtol": 1e-12, "atol": 1e-6}  # sums of numbers up to 1e6


@st.composite
def marginals(draw, domain=None):
    domain = draw(domains()) if domain is None else domain
    counts = draw(st.lists(counts_in_records, min_size=domain.cells, max_size=domain.cells))
    return Marginal(domain, np.array(counts).reshape(domain.shape))


@st.composite
def marginals_and_attributes(draw):
    table = draw(marginals())
    return table, tuple(draw(st.lists(st.sampled_from(table.attributes), unique=True)))


@given(marginals_and_attributes())
def test_projection_sums_the_other_attributes_out(case):
    table, attributes = case
    projected, slow = table.project(attributes), reference.project(table, attributes)
    assert projected.domain == slow.domain
    np.testing.assert_allclose(projected.counts, slow.counts, **CLOSE)


@given(marginals_and_attributes(), st.data())
def test_spread_is_the_mirror_of_project(case, data):
    table, attributes = case
    delta = data.draw(marginals(table.domain.project(attributes)))
    np.testing.assert_allclose(
        table.spread(delta).project(attributes).counts,
        table.project(attributes).counts + delta.counts,
        **CLOSE,
    )


@given(marginals_and_attributes())
def test_lift_repeats_a_table_over_the_attributes_it_lacks(case):
    table, attributes = case
    part = table.project(attributes)
    lifted = np.broadcast_to(lift(part, table.domain), table.domain.shape)
    axes = table.domain.axes(attributes)
    for cell in np.ndindex(table.domain.shape):
        assert lifted[cell] == part.counts[tuple(cell[axis] for axis in axes)]


def test_unstacked_tables_share_counts_that_nobody_can_change():
    counts = np.arange(4.0).reshape(2, 2)
    one, two = unstacked([binary("a"), binary("b")], counts)
    assert two.counts.tolist() == [2.0, 3.0]
    with pytest.raises(ValueError, match="read-only"):
        one.counts[0] = 5.0


def test_counts_of_another_shape_are_refused():
    with pytest.raises(ValueError, match=r"counts \(3,\) over a domain of \(2,\)"):
        Marginal(binary("a"), np.ones(3))


def test_attributes_that_a_table_lacks_are_refused():
    with pytest.raises(KeyError, match="'z'"):
        Marginal(binary("a"), np.ones(2)).project(("z",))


@given(marginals_and_attributes(), st.data())
def test_variances_of_a_sum_add_up(case, data):
    table, attributes = case
    variance = Marginal(table.domain, np.abs(data.draw(marginals(table.domain)).counts))
    measurement = Measurement(table, variance.counts)
    projected = measurement.project(attributes)
    assert measurement.attributes == table.attributes
    assert np.array_equal(projected.marginal.counts, table.project(attributes).counts)
    np.testing.assert_allclose(projected.variance, reference.project(variance, attributes).counts, **CLOSE)


@pytest.mark.parametrize("variance", [-1.0, np.nan, np.inf])
def test_a_variance_that_is_none_is_refused(variance):
    with pytest.raises(ValueError, match="at least 0"):
        Measurement(Marginal(binary("a"), np.zeros(2)), variance)
