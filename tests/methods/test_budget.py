"""The default's budget is split once, and the parts are the whole."""

from __future__ import annotations

from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privsyn.marginals.domain import Domain
from privsyn.methods.budget import (
    CERTAIN,
    CLEAR,
    DEPARTURES,
    FIRST_COUNT,
    HOPELESS,
    LABEL_ALONE,
    LEAST_CONCORDANCES,
    LEAST_LABEL,
    LEAST_ONE_WAYS,
    MOST_BESIDE_PAIRS,
    MOST_CONCORDANCES,
    MOST_DEPARTURES,
    UNCERTAIN,
    Split,
    concordances_share,
    departures_share,
    first_share,
    label_share,
    one_way_share,
)
from privsyn.private.noise_laws import GAUSSIAN, LAPLACE

shares = st.floats(LEAST_ONE_WAYS, 0.9)


@given(st.floats(1e-12, 1e3), shares | st.just(1.0))
def test_the_parts_sum_to_the_whole_and_none_is_negative(rho, share):
    split = Split.of(rho, one_ways=share, concordances=LEAST_CONCORDANCES)
    parts = *map(split.without, ("departures", "concordances", "sets")), split.for_sets(9, 1e9, GAUSSIAN)
    for one in (split, *parts):
        assert one.total == pytest.approx(rho, rel=1e-12)
        assert min(astuple(one)) >= 0


@given(st.floats(1e-12, 1e3), shares | st.just(1.0), st.floats(0, 1), st.floats(0, 1))
def test_tables_with_the_target_leave_the_whole_as_it_is(rho, share, label, own):
    split = Split.of(rho, one_ways=share, concordances=LEAST_CONCORDANCES)
    cost = label * split.rest
    with_label = split.for_label(cost, own * (split.rest - cost))
    assert with_label.total == pytest.approx(rho, rel=1e-12)
    assert min(astuple(with_label)) >= 0
    assert with_label.label >= cost * (1 - 1e-9) - 1e-12 * rho
    assert with_label.pairs == 0 or with_label.pairs / split.pairs == pytest.approx(
        with_label.sets / split.sets
    )


@given(st.floats(0, 1e6), st.floats(0, 1e6))
def test_noisier_tables_with_the_target_get_no_smaller_share(one, other):
    low, high = map(label_share, sorted((one, other)))
    assert 0 <= low <= high <= 1
    assert low == 0 or low >= LEAST_LABEL
    assert label_share(LABEL_ALONE) == 1


@given(shares)
def test_what_is_not_asked_gets_nothing(share):
    assert Split.of(1.0, one_ways=share).without("sets").sets == 0
    for attributes, pure in ((2, False), (2, True), (1, False)):
        columns = Split.of(
            1.0, one_ways=1.0, first_count=first_share(attributes, attributes, pure=pure), pure=pure
        )
        assert columns.first_count + columns.one_ways == 1
        assert columns.first_count == FIRST_COUNT
    assert first_share(1, 1, pure=True) == 1


@given(shares)
def test_the_one_ways_get_their_share_and_the_pairs_the_most(share):
    split = Split.of(2.0, one_ways=share, concordances=MOST_CONCORDANCES)
    assert split.first_count + split.one_ways == pytest.approx(2 * share)
    assert split.pairs > max(split.departures, split.concordances, split.sets, split.second_look)


@given(st.floats(0, 1e6), st.floats(0, 1e6), st.floats(0, 1))
def test_noisier_counts_want_no_smaller_share(one, other, informative):
    low, high = (one_way_share(noise, informative * noise) for noise in sorted((one, other)))
    assert LEAST_ONE_WAYS <= low <= high <= 1


@given(st.floats(0, 1e3), st.floats(0, HOPELESS))
def test_pairs_keep_their_part_unless_informative_cells_drown(noise, informative):
    assert one_way_share(noise, informative) <= max(MOST_BESIDE_PAIRS, informative / HOPELESS)
    assert one_way_share(noise, HOPELESS) == 1


def test_values_that_hardly_occur_take_no_budget_from_pairs():
    names = tuple("abcdefghi")
    rho = 0.0007  # about epsilon 0.2 at delta 1e-9
    few, all_values = (
        Split.for_domain(rho, Domain(names, (30,) * 9), 2672, dict.fromkeys(names, k)) for k in (8.0, 30.0)
    )
    assert few.pairs > 0.2 * rho
    assert all_values.pairs == 0


@given(st.floats(1e-6, 1.0), st.integers(2, 300), st.floats(10, 1e7))
def test_departures_are_clear_or_get_the_most(rho, attributes, total):
    share = departures_share(rho, attributes, total)
    noise = np.sqrt(attributes * (attributes - 1) / 2 / (2 * share * rho))
    assert DEPARTURES <= share <= MOST_DEPARTURES
    assert share == MOST_DEPARTURES or noise <= CLEAR * total * (1 + 1e-9)


@given(st.floats(1e-6, 1.0), st.integers(2, 300), st.floats(10, 1e7), st.sampled_from([GAUSSIAN, LAPLACE]))
def test_concordances_are_clear_or_get_the_most_or_are_not_asked(cost, columns, total, law):
    pairs = columns * (columns - 1) / 2

    def noise(share):
        return 1 / np.sqrt(2 * law.rho(share * cost / pairs)) / total

    share = concordances_share(cost, columns, total, law)
    if share == 0:
        assert noise(MOST_CONCORDANCES) > UNCERTAIN
    else:
        assert LEAST_CONCORDANCES <= share <= MOST_CONCORDANCES
        assert noise(share) <= (UNCERTAIN if share == MOST_CONCORDANCES else CERTAIN)
