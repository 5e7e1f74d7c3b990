"""Domain and Records: what they refuse, and what projection keeps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import binary
from strategies import coded_tables, domains

from privsyn.marginals.domain import Domain, Records


def some_of(data, domain):
    """A few attributes of a domain, in any order."""
    return tuple(data.draw(st.lists(st.sampled_from(domain.names), unique=True)))


@pytest.mark.slow
@given(domains())
def test_cells_are_those_of_a_table_of_that_shape(domain):
    assert domain.cells == np.empty(domain.shape).size
    assert len(domain) == len(domain.shape) == len(list(domain))


def test_the_number_of_cells_does_not_overflow():
    assert Domain(tuple(map(str, range(100))), (1000,) * 100).cells == 1000**100


@given(domains(), st.data())
def test_projection_takes_sizes_and_orders_along_in_the_order_asked(domain, data):
    attributes = some_of(data, domain)
    projected = domain.project(attributes)
    assert projected.names == attributes
    for name in attributes:
        (here,), (there,) = projected.axes((name,)), domain.axes((name,))
        assert (projected.sizes[here], projected.ordered[here]) == (
            domain.sizes[there],
            domain.ordered[there],
        )


def test_attributes_are_nominal_unless_said_otherwise():
    assert binary("ab").ordered == (0, 0)


def test_an_absent_attribute_is_named():
    with pytest.raises(KeyError, match="'z'"):
        binary("ab").project(("a", "z"))


@pytest.mark.parametrize(
    ("names", "sizes", "ordered", "complaint"),
    [
        (("a", "b"), (2,), (), "2 names, 1 sizes"),
        (("a",), (2,), (1, 1), "1 sizes, 2 orders"),
        (("a", "a"), (2, 2), (), "share a name"),
        (("a",), (0,), (), "at least one value"),
        (("a",), (2,), (3,), "does not fit"),
        (("a",), (2,), (-1,), "does not fit"),
    ],
)
def test_a_domain_that_contradicts_itself_is_refused(names, sizes, ordered, complaint):
    with pytest.raises(ValueError, match=complaint):
        Domain(names, sizes, ordered)


@given(coded_tables(), st.data())
def test_projected_records_have_the_columns_asked_for(records, data):
    attributes = some_of(data, records.domain)
    projected = records.project(attributes)
    assert projected.domain == records.domain.project(attributes)
    assert len(projected) == len(records)
    assert projected.codes.tolist() == [
        [row[j] for j in records.domain.axes(attributes)] for row in records.codes
    ]


@pytest.mark.parametrize("codes", [[0, 1], [[0, 1, 1]], [[[0, 1]]]])
def test_codes_of_another_shape_are_refused(codes):
    with pytest.raises(ValueError, match="over 2 attributes"):
        Records(binary("ab"), np.array(codes))


@pytest.mark.parametrize("code", [-1, 2, 2**32, 2**63 - 1, 2**64 - 1])
def test_a_code_outside_its_domain_is_refused_and_not_shown(code):
    with pytest.raises(ValueError, match=r"^a code lies outside its domain$"):
        Records(binary("ab"), np.array([[0, 0], [0, code]], np.uint64 if code >= 2**63 else np.int64))


@pytest.mark.parametrize("codes", [[[0.5, 1.0]], [[np.nan, 1.0]], [["0", "1"]]])
def test_codes_that_are_not_integers_are_refused(codes):
    with pytest.raises(ValueError, match="codes are integers"):
        Records(binary("ab"), np.array(codes))
