"""The default's budget is split once, and the parts are the whole."""

from __future__ import annotations

from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privsyn.marginals.domain import Domain
from privsyn.methods.budget import (
    CLEAR,
    DEPARTURES,
    HOPELESS,
    LEAST,
    MOST_BESIDE_TARGET,
    MOST_DEPARTURES,
    Split,
    departures_share,
    one_way_share,
)

shares = st.floats(LEAST, 0.9)


@given(st.floats(1e-12, 1e3), shares | st.just(1.0))
def test_the_parts_sum_to_the_whole_and_none_is_negative(rho, share):
    split = Split.of(rho, one_ways=share)
    for one in (split, split.without_scores()):
        assert one.total == pytest.approx(rho, rel=1e-12)
        assert min(astuple(one)) >= 0


@given(shares)
def test_what_is_not_asked_gets_nothing(share):
    assert Split.of(1.0, one_ways=share).without_scores().scores == 0
    hopeless, alone = (Split.of(1.0, one_ways=1.0, attributes=d) for d in (2, 1))
    assert hopeless.first_look + hopeless.one_ways == 1
    assert alone.first_look == 1


@given(shares)
def test_the_one_ways_get_their_share_and_the_pairs_the_most(share):
    split = Split.of(2.0, one_ways=share)
    assert split.first_look + split.one_ways == pytest.approx(2 * share)
    assert split.pairs > max(split.departures, split.scores, split.second_look)


@given(st.floats(0, 1e6), st.floats(0, 1e6))
def test_noisier_counts_want_no_smaller_share(one, other):
    assert LEAST <= one_way_share(min(one, other)) <= one_way_share(max(one, other)) <= 1


@given(st.floats(0, HOPELESS, exclude_max=True))
def test_a_target_keeps_half_for_the_pairs(noise):
    assert one_way_share(noise, predict=True) == min(one_way_share(noise), MOST_BESIDE_TARGET)


def test_numbers_leave_budget_for_pairs_where_as_many_values_would_not():
    names = tuple("abcdefghi")
    numbers, values = Domain(names, (30,) * 9, (30,) * 9), Domain(names, (30,) * 9)
    rho = 0.0007  # about epsilon 0.2 at delta 1e-9
    assert Split.for_domain(rho, values, 2672).pairs == 0
    assert Split.for_domain(rho, numbers, 2672).pairs > 0.2 * rho


@given(st.floats(1e-6, 1.0), st.integers(2, 300), st.floats(10, 1e7))
def test_departures_are_clear_or_get_the_most(rho, attributes, total):
    share = departures_share(rho, attributes, total)
    noise = np.sqrt(attributes * (attributes - 1) / 2 / (2 * share * rho))
    assert DEPARTURES <= share <= MOST_DEPARTURES
    assert share == MOST_DEPARTURES or noise <= CLEAR * total * (1 + 1e-9)


def test_few_records_leave_more_of_the_budget_for_departures():
    domain = Domain(tuple("abcdefg"), (8,) * 7, (8,) * 7)
    few, many = (Split.for_domain(0.01, domain, rows) for rows in (800, 80_000))
    assert few.departures / (few.departures + few.pairs) > 4 * many.departures / (
        many.departures + many.pairs
    )
