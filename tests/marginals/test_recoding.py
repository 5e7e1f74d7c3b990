"""Merging: rare values are pooled, row by row, and shared out again within their pool."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from strategies import coded_tables, domains

from privsyn.inference.rare_values import THRESHOLD, merge_rare, merge_rare_as_published
from privsyn.marginals.domain import Domain, Records
from privsyn.marginals.marginal import Marginal, Measurement
from privsyn.marginals.recoding import Merging

noisy_counts = st.integers(-60, 200).map(float)
variances = st.sampled_from([0.0, 1.0, 25.0, 400.0])
seeds = st.integers(0, 2**32 - 1)


def one_way(counts, variance, ordered=0, name="x"):
    return Measurement(Marginal(Domain((name,), (len(counts),), (ordered,)), np.array(counts)), variance)


def merged(counts, variance, ordered=0, total=100.0):
    """Groups and shares of one attribute, as lists."""
    merging = merge_rare((one_way(counts, variance, ordered),), total)
    return merging.groups[0].tolist(), merging.shares[0].tolist()


@st.composite
def one_ways(draw, domain=None):
    """Noisy one-way tables of every attribute of a domain."""
    domain = draw(domains(max_size=8)) if domain is None else domain
    return tuple(
        one_way(
            draw(st.lists(noisy_counts, min_size=size, max_size=size)),
            draw(variances),
            domain.ordered[j],
            name,
        )
        for j, (name, size) in enumerate(zip(domain.names, domain.sizes, strict=True))
    )


@st.composite
def mergings(draw):
    answers = draw(one_ways())
    total = draw(st.floats(1.0, 1000.0))
    return draw(st.sampled_from([merge_rare, merge_rare_as_published]))(answers, total), answers


@given(mergings())
def test_every_value_goes_to_one_group_and_no_group_is_empty(case):
    merging, answers = case
    assert merging.original.names == merging.merged.names == tuple(m.attributes[0] for m in answers)
    for group, before, after in zip(
        merging.groups, merging.original.sizes, merging.merged.sizes, strict=True
    ):
        assert len(group) == before
        assert set(group.tolist()) == set(range(after))


@given(mergings())
def test_counts_and_variances_of_a_group_add_up(case):
    merging, answers = case
    for group, answer in zip(merging.groups, answers, strict=True):
        together = merging.merge_counts(answer)
        assert together.marginal.total == pytest.approx(answer.marginal.total)
        for code in range(group.max() + 1):
            assert together.marginal.counts[code] == answer.marginal.counts[group == code].sum()
            assert together.variance[code] == answer.variance[group == code].sum()


@given(mergings(), st.data())
def test_merging_records_and_counting_is_counting_and_merging(case, data):
    merging, _ = case
    records = data.draw(coded_tables(merging.original))
    for name in records.domain:
        exact = Measurement(reference.count(records, (name,)), 1.0)
        late = reference.count(merging.merge(records), (name,))
        assert np.array_equal(merging.merge_counts(exact).marginal.counts, late.counts)


@given(mergings(), st.data())
def test_some_columns_are_merged_as_they_are_among_all(case, data):
    merging, _ = case
    records = data.draw(coded_tables(merging.original))
    names = tuple(data.draw(st.lists(st.sampled_from(records.domain.names), unique=True)))
    some = merging.project(names).merge(records.project(names))
    among_all = merging.merge(records).project(names)
    assert some.domain == among_all.domain
    assert np.array_equal(some.codes, among_all.codes)


@given(mergings(), st.data())
def test_each_row_is_merged_by_itself(case, data):
    """So that neighbouring tables stay neighbours."""
    merging, _ = case
    records = data.draw(coded_tables(merging.original))
    whole = merging.merge(records).codes
    assert len(whole) == len(records)
    for row in range(len(records)):
        alone = Records(records.domain, records.codes[[row]])
        assert np.array_equal(merging.merge(alone).codes, whole[[row]])


@given(mergings(), seeds, st.data())
def test_a_restored_value_comes_from_its_pool(case, seed, data):
    merging, _ = case
    records = data.draw(coded_tables(merging.merged))
    restored = merging.restore(records, np.random.default_rng(seed))
    assert restored.domain == merging.original
    assert np.array_equal(merging.merge(restored).codes, records.codes)


@given(mergings(), seeds)
def test_a_value_without_a_share_is_never_drawn(case, seed):
    merging, _ = case
    rows = 200
    codes = np.stack([np.arange(rows) % size for size in merging.merged.sizes], axis=1)
    restored = merging.restore(Records(merging.merged, codes), np.random.default_rng(seed))
    for j, share in enumerate(merging.shares):
        assert (share[restored.codes[:, j]] > 0).all()


@given(mergings())
def test_values_that_are_common_enough_stay_by_themselves(case):
    """All but the bins of a number: these may take a rare neighbour in."""
    merging, answers = case
    for j, answer in enumerate(answers):
        common = answer.marginal.counts >= THRESHOLD * np.sqrt(answer.variance)
        alone = merging.shares[j] == 1.0
        start = answer.marginal.domain.ordered[0] if merging.merged.ordered[j] else 0
        assert alone[start:][common[start:]].all()


@given(one_ways(), st.floats(1.0, 1000.0), st.booleans())
def test_a_pool_left_in_is_itself_not_rare(answers, total, as_published):
    """Unless there is nothing else for it to join, or the total less the common values says more than it.

    As published, the threshold of a pool is that of a single value, and the total does not count.
    """
    merging = (merge_rare_as_published if as_published else merge_rare)(answers, total)
    variance_of_total = np.inf if as_published else min(answer.variance.sum() for answer in answers)
    for group, share, runs, answer in zip(
        merging.groups, merging.shares, merging.merged.ordered, answers, strict=True
    ):
        drawn = share > 0
        counts = np.bincount(group, answer.marginal.counts * drawn)
        variance = np.zeros(len(counts))
        (np.maximum if as_published else np.add).at(variance, group, answer.variance * drawn)
        rare = counts < THRESHOLD * np.sqrt(variance) - 1e-9
        common = answer.marginal.counts >= THRESHOLD * np.sqrt(answer.variance)
        rare &= np.bincount(group, common) == 0  # a common value ends its run, whatever it took in
        assert rare[:runs].sum() <= 3  # what is left over before, between and after the common values
        assert not (rare & (variance <= variance_of_total))[runs:].any() or len(rare) == 1


@given(st.lists(noisy_counts, min_size=1, max_size=12), variances)
def test_ordered_values_are_joined_in_runs_that_reach_the_threshold(counts, variance):
    group, _ = merged(counts, variance, ordered=len(counts))
    assert group == sorted(group)
    threshold = THRESHOLD * variance**0.5
    common = [place for place, count in enumerate(counts) if count >= threshold]
    parts = (
        [counts[: common[0]], counts[common[0] : common[-1] + 1], counts[common[-1] + 1 :]]
        if common
        else [counts]
    )
    joined = [reference.join_runs(part, [threshold] * len(part)) for part in parts if part]
    assert np.bincount(group).tolist() == [size for part in joined for size in part]


def test_values_outside_the_common_ones_join_none_of_them():
    """They may all be empty: bounds that were found are often too wide."""
    group, _ = merged([3.0, 900.0, 2.0, 850.0, -4.0, 5.0, 1.0], 25.0, ordered=7)
    assert group == [0, 1, 2, 2, 3, 3, 3]


def test_an_order_that_is_not_to_be_looked_at_is_gone():
    answer = one_way([2.0, 90.0, 2.0, 90.0], 25.0, ordered=4)
    merging = merge_rare_as_published((answer,), 184.0)
    assert merging.merged.ordered == (0,)
    assert merging.groups[0].tolist() == [0, 0, 0, 1]


def test_rare_values_share_the_last_code():
    assert merged([90.0, 14.0, 80.0, 12.0], 25.0, total=196.0) == (
        [0, 2, 1, 2],
        pytest.approx([1.0, 14 / 26, 1.0, 12 / 26]),
    )


def test_a_pool_too_small_joins_the_largest_value_and_is_dropped():
    assert merged([20.0, 3.0, 90.0, 4.0], 25.0, total=117.0) == ([0, 1, 1, 1], [1.0, 0.0, 1.0, 0.0])


@pytest.mark.parametrize(("second", "kept"), [(8.0, False), (14.0, True)])
def test_the_noise_of_a_pool_grows_with_its_values(second, kept):
    """Two values under 15 records each make a pool with a threshold of 21.2."""
    _, shares = merged([90.0, 10.0, second], 25.0, total=90.0 + 10.0 + second)
    assert (min(shares) > 0) == kept


@pytest.mark.parametrize(("second", "kept"), [(4.0, False), (6.0, True)])
def test_as_published_a_pool_is_judged_like_a_single_value(second, kept):
    """Its threshold is 15 records, however many values it has; an order changes nothing."""
    for ordered in (0, 4):
        answer = one_way([90.0, 10.0, second, 0.0], 25.0, ordered)
        shares = merge_rare_as_published((answer,), 100.0 + second).shares[0]
        assert (shares[1] > 0) == kept


def test_where_nothing_is_known_a_dropped_value_is_still_not_drawn():
    """The total is far below the counts, and leaves nothing for the smaller of them."""
    group, shares = merged([100.0, 95.0, 90.0, 30.0, 1.0], 9.0, ordered=3, total=5.0)
    assert (group, shares) == ([0, 1, 2, 3, 0], [1.0, 1.0, 1.0, 1.0, 0.0])


def test_a_missing_value_too_rare_joins_the_largest_bin_and_is_dropped():
    """The last code, outside the order; a column that may be empty and never is costs no cells."""
    assert merged([40.0, 60.0, 2.0], 25.0, ordered=2) == ([0, 1, 1], [1.0, 1.0, 0.0])


@given(one_ways(), st.integers(0, 8))
def test_attributes_of_few_values_may_be_spared(answers, spared):
    merging, strict = merge_rare(answers, 100.0, spared=spared), merge_rare(answers, 100.0)
    for j, size in enumerate(merging.original.sizes):
        if size <= spared:
            assert merging.groups[j].tolist() == list(range(size))
            assert merging.merged.ordered[j] == merging.original.ordered[j]
        else:
            assert np.array_equal(merging.groups[j], strict.groups[j])


def test_a_pool_is_shared_out_by_its_shares():
    """Two-sided: each count lies within 5.5 standard deviations; wrong with probability under 4e-8 each."""
    shares = np.array([0.5, 1.0, 0.3, 0.2])
    domain, small = Domain(("x",), (4,)), Domain(("x",), (2,))
    merging = Merging(domain, small, (np.array([0, 1, 0, 0], np.int32),), (shares,))
    n = 40_000
    restored = merging.restore(Records(small, np.zeros((n, 1), int)), np.random.default_rng(7))
    drawn = np.bincount(restored.codes[:, 0], minlength=4)
    assert drawn[1] == 0
    pool = [0, 2, 3]
    deviation = np.sqrt(n * shares[pool] * (1 - shares[pool]))
    assert (np.abs(drawn[pool] - n * shares[pool]) < 5.5 * deviation).all()


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"groups": (np.array([0, 2, 2], np.int32),)}, "groups are not 0 to 1"),
        ({"groups": (np.array([0, 1], np.int32),)}, r"not of shape \(3,\)"),
        ({"shares": (np.array([1.0, 0.5]),)}, r"not of shape \(3,\)"),
        ({"shares": (np.array([1.0, 0.5, 0.4]),)}, "do not sum to 1"),
        ({"shares": (np.array([1.0, 1.5, -0.5]),)}, "do not sum to 1"),
        ({"merged": Domain(("y",), (2,))}, "merged to"),
    ],
)
def test_a_merging_that_contradicts_itself_is_refused(change, complaint):
    whole = Merging(
        Domain(("x",), (3,)),
        Domain(("x",), (2,)),
        (np.array([0, 1, 1], np.int32),),
        (np.array([1.0, 0.5, 0.5]),),
    )
    with pytest.raises(ValueError, match=complaint):
        replace(whole, **change)


@given(mergings(), st.data())
def test_one_merging_then_another_is_both_in_turn(case, data):
    first, _ = case
    second = merge_rare(data.draw(one_ways(first.merged)), data.draw(st.floats(1.0, 1000.0)))
    both = first.then(second)
    records = data.draw(coded_tables(first.original))
    assert np.array_equal(both.merge(records).codes, second.merge(first.merge(records)).codes)
    for j, share in enumerate(both.shares):
        for code in range(second.merged.sizes[j]):
            inside = both.groups[j] == code
            assert share[inside].sum() == pytest.approx(1.0)
            for value in np.flatnonzero(inside):
                between = first.groups[j][value]
                assert share[value] == pytest.approx(first.shares[j][value] * second.shares[j][between])


def test_a_doubtful_attribute_is_not_spared():
    """Where values were found, nobody may hold the one that stands for the others."""
    counts = Measurement(Marginal(Domain(("a",), (3,)), np.array([90.0, 70.0, 2.0])), 25.0)
    assert merge_rare((counts,), 162.0, spared=500).merged.sizes == (3,)
    assert merge_rare((counts,), 162.0, spared=500, doubtful=("a",)).merged.sizes == (2,)
    assert merge_rare((counts,), 162.0, spared=500, doubtful=("b",)).merged.sizes == (3,)


@pytest.mark.parametrize(("missing", "sizes"), [(19.0, (2,)), (21.0, (3,))])
def test_missing_cells_that_noise_explains_are_dropped_also_of_a_spared_attribute(missing, sizes):
    noisy = (one_way([90.0, 40.0, missing], 100.0),)
    merging = merge_rare(noisy, 150.0, spared=500, nullable={"x": 20.0})
    assert merging.merged.sizes == sizes
    assert merging.shares[0][2] == (missing > 20)
    assert merge_rare(noisy, 150.0, spared=500, nullable={"y": 20.0}).merged.sizes == (3,)
