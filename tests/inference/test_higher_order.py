"""Bigger tables: which are looked at, what is expected of them, and what becomes of the measured ones."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import reference

from privsyn.inference import higher_order as bigger
from privsyn.inference.higher_order import (
    candidates,
    denoise_higher_order,
    in_finer_groups,
    measured_as,
    score_higher_order,
)
from privsyn.inference.measured_columns import Estimate
from privsyn.marginals.domain import Domain, Records
from privsyn.marginals.marginal import Grouping, Marginal, Measurement, groups_at

CUBE = reference.binary("xyz")


@pytest.mark.parametrize("columns", [3, 4, 17, 40])
@pytest.mark.parametrize("largest", [2, 9, 40])
def test_sets_of_three_are_the_smallest_and_of_as_many_cells_the_first(columns, largest):
    sizes = np.random.default_rng(columns).integers(1, largest + 1, columns).tolist()
    domain = Domain(tuple(f"c{place:02}" for place in range(columns)), tuple(sizes))
    cells = {s: domain.project(s).cells for s in combinations(domain.names, 3)}
    small = sorted((s for s in cells if cells[s] <= bigger.MOST_CELLS), key=lambda s: (cells[s], s))
    assert [s for s in candidates(domain) if len(s) == 3] == small[: bigger.MOST_SETS]


MIXED = Domain(tuple("abcdefg"), (32, 31, 32, 10, 2, 2, 3), (32, 30, 32, 0, 0, 0, 0))
IN_BLOCKS = dict(zip(MIXED.names, (4, 5, 4, 10, 2, 2, 3), strict=True))


def small(sets):
    return {s for s in sets if np.prod([IN_BLOCKS[name] for name in s]) <= bigger.MOST_CELLS}


def test_sets_with_a_number_are_of_three_and_hold_a_nominal_attribute():
    sets = [s for size in (3, 4, 5) for s in combinations(MIXED.names, size)]
    free = [s for s in sets if set(s) <= set("defg")]
    numbers = [s for s in sets if len(s) == 3 and set(s) & set("abc") and set(s) & set("defg")]
    assert set(candidates(MIXED)) == small((*free, *numbers))
    assert len(candidates(MIXED)) == len(small((*free, *numbers)))


@pytest.mark.parametrize("target", ["d", "b"])
def test_every_set_of_four_and_five_holds_the_target_and_may_hold_numbers(target):
    sets = [s for size in (4, 5) for s in combinations(MIXED.names, size) if target in s]
    triples = [s for s in combinations(MIXED.names, 3) if target in s or set(s) <= set("defg")]
    sets = [s for s in sets if MIXED.project(s).cells <= bigger.MOST_CODES]
    assert set(candidates(MIXED, target)) == small((*sets, *triples))
    assert len(candidates(MIXED, target)) == len(small((*sets, *triples)))


def test_of_many_attributes_those_named_first_are_scored_with_the_target():
    domain = Domain(tuple(f"c{place:02}" for place in range(40)), (2,) * 40)
    first = ("c37", "c11", "c25", "c30")
    scored = candidates(domain, "c05", first=first)
    for size in (4, 5):
        alike = [s for s in scored if len(s) == size]
        assert 300 < len(alike) <= bigger.MOST_WITH_TARGET
        assert all("c05" in s for s in alike)
        for others in combinations(first, size - 1):
            assert tuple(sorted((*others, "c05"))) in alike


def exclusive_or(n=4000, seed=0):
    """z is x or y but not both: no pair tells of it."""
    x, y = np.random.default_rng(seed).integers(0, 2, (2, n))
    return Records(CUBE, np.stack([x, y, x ^ y], axis=1))


def one_ways_of(records):
    return tuple(reference.count(records, (name,)) for name in records.domain)


@pytest.mark.parametrize("d", [2, 3, 5, 8])
def test_all_small_sets_of_three_to_five_are_scored(d):
    domain = Domain(tuple("abcdefgh"[:d]), (2, 3, 4, 5, 9, 30, 100, 2)[:d])
    sets = [s for size in (3, 4, 5) for s in combinations(domain.names, size)]
    assert set(candidates(domain)) == {s for s in sets if domain.project(s).cells <= bigger.MOST_CELLS}


def test_of_many_attributes_no_more_sets_are_scored_than_there_is_time_for():
    domain = Domain(tuple(map(chr, range(100, 130))), tuple(range(2, 32)))
    found = candidates(domain)
    cells = [domain.project(s).cells for s in combinations(domain.names, 3)]
    assert {len(s) for s in found} == {3}
    assert [domain.project(s).cells for s in found] == sorted(cells)[: bigger.MOST_SETS]


def test_the_set_that_departs_most_comes_first():
    """Of three tables that are expected flat, the second is one that is not: 4,000 records of 8 cells."""
    flat = Marginal(CUBE, np.full((2, 2, 2), 500.0))
    other = tuple(Marginal(reference.binary(names), flat.counts) for names in ("abc", "def"))
    one_ways = tuple(Marginal(reference.binary(name), np.full(2, 2000.0)) for name in "xyzabcdef")
    expected = tuple(map(Estimate, (other[0], flat, other[1])))
    scored = score_higher_order(np.array([90.0, 4000.0, 80.0]), 20.0, expected, one_ways, 1.0)
    assert scored[0].attributes == ("x", "y", "z")
    assert scored[0].dispersion > 20 * scored[1].dispersion


def test_a_set_that_departs_no_further_than_a_smaller_one_inside_adds_nothing():
    """An exclusive or of x and y departs by 4,000 in x, y, z, and so with w too; 6,000 is more than that."""
    wide = reference.binary("wxyz")
    tables = Marginal(wide, np.full((2, 2, 2, 2), 250.0)), Marginal(CUBE, np.full((2, 2, 2), 500.0))
    expected = tuple(map(Estimate, tables))
    one_ways = tuple(Marginal(reference.binary(name), np.full(2, 2000.0)) for name in "wxyz")
    dispersions = []
    for distance in (4000.0, 6000.0):
        departures = np.array([distance, 4000.0])
        scored = score_higher_order(departures, 20.0, expected, one_ways, 1.0)
        assert scored[0].attributes == ("x", "y", "z")
        dispersions.append(scored[1].dispersion / scored[0].dispersion)
    assert dispersions[0] < 0.01 < 0.1 < dispersions[1]


def test_what_the_drawing_of_records_explains_is_no_departure():
    """The same distance, once from records as many as there are, once from a hundredth of them."""
    expected = (Estimate(Marginal(CUBE, np.full((2, 2, 2), 500.0))),)
    one_ways = tuple(Marginal(reference.binary(name), np.full(2, 2000.0)) for name in "xyz")
    departures = np.array([8 * 150.0])
    (near,), (far,) = (
        score_higher_order(departures, 10.0, expected, one_ways, scatter=scatter) for scatter in (1.0, 100.0)
    )
    assert near.dispersion > 3 * far.dispersion


def test_a_cell_that_no_record_fell_in_is_not_impossible():
    table = Marginal(CUBE, np.array([[[1000.0, 0], [0, 1000]], [[0, 1000], [1000, 0]]]))
    one_ways = tuple(Marginal(CUBE.project((name,)), np.full(2, 2000.0)) for name in "xyz")
    (scored,) = score_higher_order(np.array([100.0]), 10.0, (Estimate(table),), one_ways, 1.0)
    assert scored.table.counts.min() == pytest.approx(bigger.SMOOTHING * 500)
    assert scored.table.total == pytest.approx(4000)


def test_a_measured_table_brings_what_no_pair_tells_and_keeps_the_pairs():
    records = exclusive_or()
    pairs = tuple(reference.count(records, pair) for pair in combinations("xyz", 2))
    exact = reference.count(records, ("x", "y", "z"))
    flat = Marginal(CUBE, np.full((2, 2, 2), 500.0))
    (scored,) = score_higher_order(np.array([4000.0]), 20.0, (Estimate(flat),), one_ways_of(records), 1.0)
    (found,) = denoise_higher_order(
        (measured_as(scored, Measurement(exact, np.array(25.0))),), pairs, one_ways_of(records)
    )
    table = found.table
    assert np.abs(table.counts - exact.counts).sum() < 0.02 * exact.total
    for pair in pairs:
        np.testing.assert_allclose(table.project(pair.attributes).counts, pair.counts, atol=1e-3)


def test_drowned_in_noise_it_tells_what_the_pairs_tell():
    records = exclusive_or()
    pairs = tuple(reference.count(records, pair) for pair in combinations("xyz", 2))
    flat = Marginal(CUBE, np.full((2, 2, 2), 500.0))
    (scored,) = score_higher_order(np.array([0.0]), 20.0, (Estimate(flat),), one_ways_of(records), 1.0)
    noisy = Marginal(CUBE, 1e5 * np.array([1.0, -1, -1, 1, -1, 1, 1, -1]).reshape(2, 2, 2))
    (found,) = denoise_higher_order(
        (measured_as(scored, Measurement(noisy, np.array(1e10))),), pairs, one_ways_of(records)
    )
    table = found.table
    assert np.abs(table.counts - 500).max() < 60


def test_errors_of_the_pairs_are_no_departure():
    """The same distance, once from pairs that are known exactly, once from pairs with errors of that size."""
    expected = (Estimate(Marginal(CUBE, np.full((2, 2, 2), 500.0))),)
    one_ways = tuple(Marginal(reference.binary(name), np.full(2, 2000.0)) for name in "xyz")
    departures = np.array([8 * 150.0])
    pairs = tuple(Marginal(CUBE.project(pair), np.full((2, 2), 300.0**2)) for pair in combinations("xyz", 2))
    (exact,), (rough,) = (
        score_higher_order(departures, 10.0, expected, one_ways, 1.0, p) for p in ((), pairs)
    )
    assert exact.dispersion > 3 * rough.dispersion


@pytest.mark.parametrize(("rho", "level"), [(1e-4, 4), (2e-3, 8), (10.0, 16)])
def test_numbers_are_counted_in_as_many_groups_as_stand_out_of_the_noise(rho, level):
    """4 x 4 x 2 cells of 625 records at most; 8 x 8 x 2 of 156, 16 x 16 x 2 of 39: at least five sigma."""
    domain = Domain(tuple("xyz"), (32, 32, 2), (32, 32, 0))
    one_ways = tuple(
        Marginal(domain.project((name,)), np.full(size, 20_000 / size))
        for name, size in zip(domain.names, domain.sizes, strict=True)
    )
    groups = Grouping(tuple(groups_at(one_way, 4) for one_way in one_ways))
    counts = np.random.default_rng(0).dirichlet(np.ones(32)).reshape(4, 4, 2) * 20_000
    coarse = Estimate(Marginal(groups.domain(domain), counts), dispersion=64.0, grouping=groups)
    finer = in_finer_groups(coarse, one_ways, rho)
    assert finer.table.domain.sizes == (level, level, 2)
    assert finer.dispersion == pytest.approx(64 * (4 / level) ** 2)
    sums = finer.table.counts.reshape(4, level // 4, 4, level // 4, 2).sum(axis=(1, 3))
    np.testing.assert_allclose(sums, counts)


def test_a_table_of_single_codes_has_no_finer_groups():
    one_ways = tuple(Marginal(reference.binary(name), np.full(2, 2000.0)) for name in "xyz")
    table = Estimate(Marginal(CUBE, np.full((2, 2, 2), 500.0)))
    assert in_finer_groups(table, one_ways, 1e9) is table


def test_a_table_measured_in_groups_is_shared_out_as_the_pairs_predict():
    """A class by the sides of two numbers, measured in 2 x 2 groups: all codes follow, and the pairs stay."""
    x, y = np.random.default_rng(0).integers(0, 8, (2, 20_000))
    domain = Domain(tuple("xyz"), (8, 8, 2), (8, 8, 0))
    records = Records(domain, np.stack([x, y, (x < 4) ^ (y < 4)], axis=1))
    pairs = tuple(reference.count(records, pair) for pair in combinations("xyz", 2))
    exact = reference.count(records, ("x", "y", "z"))
    halves = np.repeat([0, 1], 4).astype(np.int32)
    groups = Grouping((halves, halves, np.arange(2, dtype=np.int32)))
    sums = exact.join(groups)
    flat = Marginal(sums.domain, np.full((2, 2, 2), 2500.0))
    one_ways = one_ways_of(records)
    in_groups = tuple(t.join(Grouping((g,))) for t, g in zip(one_ways, groups.groups, strict=True))
    (scored,) = score_higher_order(np.array([20_000.0]), 20.0, (Estimate(flat),), in_groups, 1.0)
    (found,) = denoise_higher_order(
        (measured_as(scored, Measurement(sums, np.array(25.0), groups)),), pairs, one_ways
    )
    table = found.table
    assert table.domain == domain
    assert np.abs(table.counts - exact.counts).sum() < 0.05 * exact.total
    for pair in pairs:
        np.testing.assert_allclose(table.project(pair.attributes).counts, pair.counts, atol=2.0)


def test_finer_groups_keep_the_sums_of_groups_that_they_would_cross():
    """The columns were even when the coarse groups were made; by new estimates one code has two thirds."""
    domain = Domain(tuple("xyz"), (32, 32, 2), (32, 32, 0))
    sides = (np.ones(32), np.append(2 * 31.0, np.ones(31)), np.ones(2))
    one_ways = tuple(
        Marginal(domain.project((name,)), side / side.sum() * 20_000)
        for name, side in zip(domain.names, sides, strict=True)
    )
    cut = (np.arange(32) // 8, np.searchsorted([1, 3, 31], np.arange(32), side="right"), np.arange(2))
    groups = Grouping(tuple(group.astype(np.int32) for group in cut))
    counts = np.random.default_rng(0).dirichlet(np.ones(32)).reshape(4, 4, 2) * 20_000
    coarse = Estimate(Marginal(groups.domain(domain), counts), dispersion=64.0, grouping=groups)
    finer = in_finer_groups(coarse, one_ways, 1e-2)
    assert finer.table.domain.cells > coarse.table.domain.cells
    spread = [np.unique(fine, return_index=True)[1] for fine in finer.grouping.groups]
    to_coarse = Grouping(tuple(group[first] for group, first in zip(groups.groups, spread, strict=True)))
    np.testing.assert_allclose(to_coarse.join(finer.table.counts), counts)


def test_a_rare_class_is_shrunk_no_further_than_the_usual_one():
    """Cells of a class of 25 and of one of 1,225 are off by 24 each way, with noise of 20."""
    domain = Domain(("x", "y", "z"), (4, 4, 2))
    flat = Marginal(domain, np.full((4, 4, 1), 1250.0) * [0.98, 0.02])
    signs = (1 - 2.0 * (np.indices((4, 4)).sum(axis=0) % 2))[..., np.newaxis] * [1, -1]
    noisy = Measurement(Marginal(domain, flat.counts + 24 * signs), np.array(400.0))
    one_ways = tuple(flat.project((name,)) for name in "xyz")
    kept = []
    for target in (None, "z"):
        (table,) = denoise_higher_order((measured_as(Estimate(flat, target=target), noisy),), (), one_ways)
        kept.append(float(np.abs(table.table.counts - flat.counts)[..., 1].mean()) / 24)
    assert kept[0] < 0.5 < 0.7 < kept[1]
