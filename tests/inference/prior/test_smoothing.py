"""Pairs with an ordered attribute: what is smooth is taken out of the noise, and nothing is made up."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from privsyn.inference.measured_columns import Estimate, MeasuredColumns
from privsyn.inference.pairs import estimate_pairs
from privsyn.inference.prior.copula import (
    CORNERS,
    best_correlation,
    best_gumbel,
    copula,
    gumbel,
    hermite,
    with_unrelated,
)
from privsyn.inference.prior.dispersion import DISPERSIONS
from privsyn.inference.prior.smoothing import Waves, covariance, fitted_waves, is_smooth, spectrum_of
from privsyn.marginals.domain import Domain
from privsyn.marginals.marginal import NO_GROUPS, Grouping, Marginal, Measurement, groups_at
from privsyn.marginals.recoding import Merging
from privsyn.marginals.structural_zeros import product

SIZE, TOTAL, SIGMA = 20, 20_000.0, 15.0
PLACES = (np.arange(SIZE) + 0.5) / SIZE - 0.5


def square(ordered):
    return Domain(("a", "b"), (SIZE, SIZE), ordered=(SIZE, SIZE) if ordered else ())


def even_sides(ordered):
    domain = square(ordered)
    return tuple(Marginal(domain.project((name,)), np.full(SIZE, TOTAL / SIZE)) for name in "ab")


FLAT = product(square(True), even_sides(True)).counts
SMOOTH = FLAT * (1 + 3 * np.outer(PLACES, PLACES))  # a rank correlation of a quarter


def errors(true, **settings):
    """Share of the records that are misplaced by the estimate of one pair, over ten noises. Seeded."""
    return np.array([np.abs(counts - true).sum() / TOTAL for counts in estimated(true, **settings)])


def estimated(true, *, ordered=True, level=SIZE, sigma=SIGMA):
    """Return the estimated counts of one pair, over ten noises. Seeded."""
    found, sides = [], even_sides(ordered)
    for seed in range(10):
        rng = np.random.default_rng(seed)
        one_ways = tuple(
            Measurement(Marginal(s.domain, s.counts + rng.normal(0, 5, SIZE)), 25.0) for s in sides
        )
        groups = Grouping(tuple(groups_at(side, level) for side in sides))
        table = Marginal(square(ordered), true).join(groups)
        noisy = Marginal(table.domain, table.counts + rng.normal(0, sigma, table.domain.shape))
        measured = Measurement(noisy, sigma**2, groups if ordered else NO_GROUPS)
        measured_columns = MeasuredColumns(reference.unmerged(square(ordered)), one_ways=one_ways)
        pair = Estimate(noisy, measured=measured)
        (estimate,) = estimate_pairs(measured_columns, (pair,), rng).tables
        found.append(estimate.counts)
    return found


def test_what_is_smooth_is_estimated_with_less_error_than_cell_by_cell():
    """The cells' own noise is as large as what they depart by."""
    assert errors(SMOOTH).mean() < 0.4 * errors(SMOOTH, ordered=False).mean()


@pytest.mark.parametrize("level", [4, SIZE])
def test_the_posterior_is_that_of_all_cells_at_once(level):
    """Against the covariance of all cells written out, before negative cells and margins are settled."""
    rng = np.random.default_rng(1)
    domain = Domain(("a", "b"), (6, 5), ordered=(6, 4))
    expected = np.outer(rng.uniform(1, 3, 6), rng.uniform(1, 3, 5)) * 1000
    table = Marginal(domain, expected)
    sides = (table.project(("a",)), table.project(("b",)))
    groups = Grouping(tuple(groups_at(side, level) for side in sides))
    noisy = Marginal(domain, expected + rng.normal(0, 20, (6, 5))).join(groups)
    measured = Measurement(noisy, 400.0, groups)
    waves = Waves(sides, 1.0)

    joins = [np.eye(group.max() + 1)[group].T for group in groups.groups]
    prior = 30.0 * table.total * np.kron(waves.covariance("a"), waves.covariance("b"))
    join = np.kron(*joins)
    deviation = (noisy.counts - joins[0] @ expected @ joins[1].T).ravel()
    scatter = join @ prior @ join.T + 400.0 * np.eye(len(join))
    slow = expected + (prior @ join.T @ np.linalg.solve(scatter, deviation)).reshape(6, 5)
    pair = Estimate(table, measured=measured, margins=sides)
    (found,) = waves.mean([pair], np.array([30.0]))
    np.testing.assert_allclose(found.counts, slow, rtol=1e-5)

    at = int(np.argmin(np.abs(DISPERSIONS - 30)))
    (told,) = waves.evidence([pair])
    slow_told = []
    for dispersion in (DISPERSIONS[at], DISPERSIONS[at + 3]):
        spread = dispersion / 30.0 * (scatter - 400.0 * np.eye(len(join)))
        values, vectors = np.linalg.eigh(spread)
        seen = values > 1e-6 * values.max()  # what lies in the margins is left out
        parts = (vectors.T @ deviation)[seen] ** 2
        slow_told.append(-0.5 * np.sum(np.log(values[seen] + 400) + parts / (values[seen] + 400)))
    assert told[at] - told[at + 3] == pytest.approx(slow_told[0] - slow_told[1], rel=1e-3)


def test_departures_sum_to_nothing_along_an_attribute_with_missing_values():
    domain = Domain(("a",), (9,), ordered=(8,))
    found = covariance(Marginal(domain, np.arange(1.0, 10.0)), 0.75)
    np.testing.assert_allclose(found.sum(axis=0), 0, atol=1e-12)
    assert np.linalg.eigvalsh(found).min() > -1e-12


def test_nominal_codes_depart_each_by_itself():
    one_way = Marginal(Domain(("a",), (3,)), np.array([5.0, 3, 2]))
    p = np.array([0.5, 0.3, 0.2])
    np.testing.assert_allclose(covariance(one_way, 0.75), np.diag(p) - np.outer(p, p))


def test_codes_beside_one_of_most_records_depart_as_they_would_without_it():
    """Of 92 % zeros the others span a twelfth of the shares, along which waves hardly vary."""
    others = np.arange(1.0, 9.0)
    beside = covariance(
        Marginal(Domain(("a",), (9,), ordered=(9,)), np.append(414.0, others)), 0.75, apart=True
    )
    alone = covariance(Marginal(Domain(("a",), (8,), ordered=(8,)), others), 0.75)
    share = 36 / 450
    within = beside[1:, 1:] / share
    sums = within.sum(axis=1)
    np.testing.assert_allclose(within - np.outer(sums, sums) / sums.sum(), alone, atol=1e-12)


def test_a_spectrum_is_the_covariance_of_the_groups():
    one_way = Marginal(Domain(("a",), (12,), ordered=(12,)), np.arange(1.0, 13.0))
    prior, group = covariance(one_way, 1.0), groups_at(one_way, 4)
    found, join = spectrum_of(prior, group), np.eye(4)[group].T
    np.testing.assert_allclose(
        (found.vectors * found.variances) @ found.vectors.T, join @ prior @ join.T, atol=1e-9
    )
    np.testing.assert_allclose(found.lift @ found.vectors.T, prior @ join.T, atol=1e-6)


def test_how_smooth_pairs_are_is_found():
    rng = np.random.default_rng(0)
    sides, found = even_sides(True), []
    for smoothness in (0.25, 1.5):
        root = np.linalg.cholesky(covariance(sides[0], smoothness) + 1e-12 * np.eye(SIZE))
        tables = (FLAT + 900 * root @ rng.normal(size=(SIZE, SIZE)) @ root.T for _ in range(10))
        measured = [Measurement(Marginal(square(True), table), 1e-4) for table in tables]
        flat = Marginal(square(True), FLAT)
        found.append(fitted_waves(sides, [Estimate(flat, measured=m) for m in measured]).smoothness)
    assert found == [0.25, 1.5]


@pytest.mark.parametrize("correlation", [-0.8, 0.3, 0.9])
def test_the_copula_is_that_of_two_normal_variables(correlation):
    domain = Domain(("a",), (4,), ordered=(4,))
    side = hermite(Marginal(domain, np.array([10.0, 20, 40, 30])))
    found = copula(correlation, (side, side))
    both = multivariate_normal(cov=[[1, correlation], [correlation, 1]])
    ends = np.array([-1.2815515655446004, -0.5244005127080409, 0.5244005127080407])
    below = np.array([[both.cdf([x, y]) for y in ends] for x in ends])
    np.testing.assert_allclose(found.cumsum(axis=0).cumsum(axis=1)[:-1, :-1], below, atol=2e-4)
    group = np.arange(4, dtype=np.int32)
    assert best_correlation(found - copula(0.0, (side, side)), (group, group), (side, side)) == pytest.approx(
        correlation,
        abs=0.011,  # a step of the grid is 0.02
    )


@pytest.mark.parametrize("corner", CORNERS)
def test_a_gumbel_copula_has_its_margins_and_is_found_in_groups(corner):
    shares = np.full(8, 1 / 8), np.arange(1, 9) / 36
    found = gumbel(0.5, corner, shares)
    for axis, side in enumerate(shares):
        np.testing.assert_allclose(found.sum(axis=1 - axis), side, atol=1e-9)
    below = np.flip(found, np.flatnonzero(corner))[:3, :3].sum()
    u, v = (np.flip(side)[:3] if low else side[:3] for side, low in zip(shares, corner, strict=True))
    assert below == pytest.approx(np.exp(-np.hypot(np.log(u.sum()), np.log(v.sum()))))
    group = np.arange(8, dtype=np.int32) // 2
    deviation = Grouping((group, group)).join(found - np.outer(*shares))
    assert best_gumbel(deviation, (group, group), shares) == (pytest.approx(0.5, abs=0.011), corner)


@pytest.mark.parametrize("corner", CORNERS)
def test_tail_dependence_is_kept_inside_groups(corner):
    """With a Gaussian copula alone, 12 % of the records are misplaced."""
    true = TOTAL * gumbel(0.5, corner, (np.full(SIZE, 1 / SIZE),) * 2)
    assert errors(true, level=4).max() < 0.02


def shares_far_off(correlation, unrelated, sigma):
    """Share of records in cells whose ranks are more than half apart, real and estimated, over ten noises."""
    even = np.full(SIZE, 1 / SIZE)
    side = hermite(even_sides(True)[0])
    cells = unrelated * np.outer(even, even) + (1 - unrelated) * copula(correlation, (side, side))
    true, far = TOTAL * cells / cells.sum(), np.abs(np.subtract.outer(PLACES, PLACES)) > 0.5
    found = [estimate[far].sum() / TOTAL for estimate in estimated(true, level=8, sigma=sigma)]
    return true[far].sum() / TOTAL, np.array(found)


@pytest.mark.parametrize("unrelated", [0.1, 0.3])
@pytest.mark.parametrize("correlation", [0.8, 0.97])
def test_unrelated_records_beside_a_copula_stay_as_many(correlation, unrelated):
    """With a copula alone, up to all of them are lost."""
    true, found = shares_far_off(correlation, unrelated, 25.0)
    assert (0.6 * true < found).all()
    assert (found < 1.5 * true).all()


@pytest.mark.parametrize("unrelated", [0.0, 0.1, 0.5])
def test_the_part_of_a_copula_is_found_whatever_its_family(unrelated):
    """Without noise the cells are found; with noise above all counts the copula alone is fitted."""
    even = np.full(SIZE, 1 / SIZE)
    group, side = np.arange(SIZE, dtype=np.int32), hermite(even_sides(True)[0])

    def gaussian(deviation):
        return copula(best_correlation(deviation, (group, group), (side, side)), (side, side))

    def of_gumbel(deviation):
        return gumbel(*best_gumbel(deviation, (group, group), (even, even)), (even, even))

    for fit, related in (
        (gaussian, copula(0.93, (side, side))),
        (of_gumbel, gumbel(0.8, CORNERS[0], (even,) * 2)),
    ):
        true = unrelated * np.outer(even, even) + (1 - unrelated) * related
        deviation = true - np.outer(even, even)
        found = with_unrelated(fit, deviation, (group, group), (even, even), 1e-6)
        assert np.abs(found - true).sum() < 0.03
        found = with_unrelated(fit, deviation, (group, group), (even, even), 1.0)
        np.testing.assert_array_equal(found, fit(deviation))


def test_a_pair_is_smooth_if_one_attribute_has_an_order():
    assert is_smooth(Domain(("a", "b"), (9, 3), ordered=(8, 0)))
    assert not is_smooth(Domain(("a", "b"), (9, 3)))


@given(st.integers(0, 2**32 - 1))
def test_margins_and_public_zeros_stay(seed):
    rng = np.random.default_rng(seed)
    domain = Domain(("a", "b"), (9, 3), ordered=(8, 0))
    expected = rng.exponential(50, domain.shape) * (rng.random(domain.shape) < 0.8)
    expected[:, 0] += 1  # no margin is empty
    expected[0] += 1
    table = Marginal(domain, expected)
    sides = (table.project(("a",)), table.project(("b",)))
    noisy = Marginal(domain, expected + rng.normal(0, 20, domain.shape) * (expected > 0))
    pair = Estimate(table, measured=Measurement(noisy, 400.0), margins=sides)
    (found,) = Waves(sides).mean([pair], np.ones(1))
    found = found.counts
    assert (found[expected == 0] == 0).all()
    assert found.min() >= 0
    np.testing.assert_allclose(found.sum(axis=1), sides[0].counts, atol=1e-3 * expected.sum())
    np.testing.assert_allclose(found.sum(axis=0), sides[1].counts, atol=1e-3 * expected.sum())


@given(st.integers(0, 2**32 - 1), st.integers(3, 40), st.floats(1, 1e4), st.sampled_from([2, 4, 8, 16]))
def test_finer_groups_divide_coarser_ones_also_beside_one_code_of_most_records(seed, ordered, times, level):
    """Tables are fitted from coarse groups to fine ones, which keep the sums of the coarse ones."""
    rng = np.random.default_rng(seed)
    counts = rng.exponential(10, ordered)
    counts[rng.integers(ordered)] *= times
    coarse, fine = (
        groups_at(Marginal(Domain(("a",), (ordered,), ordered=(ordered,)), counts), groups)
        for groups in (level, 2 * level)
    )
    assert len(set(zip(coarse.tolist(), fine.tolist(), strict=True))) == len(set(fine.tolist()))


def test_the_codes_beside_one_of_most_records_have_as_many_groups_as_it_takes():
    counts = np.append(9200.0, np.full(16, 50.0))
    group = groups_at(Marginal(Domain(("a",), (17,), ordered=(17,)), counts), 8)
    assert group.tolist() == [0, *np.repeat([1, 2, 3, 4], 4)]


@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(0, 3), st.sampled_from([2, 4, 8]))
def test_groups_are_few_neighbours_of_about_equal_records(seed, ordered, others, level):
    domain = Domain(("a",), (ordered + others,), ordered=(ordered,))
    counts = np.random.default_rng(seed).exponential(10, ordered + others)
    group, finer = (groups_at(Marginal(domain, counts), groups) for groups in (level, 2 * level))
    assert set(np.diff(group)) <= {0, 1}
    assert group[0] == 0
    assert len(set(group[ordered:])) == others
    assert not set(group[:ordered]) & set(group[ordered:])
    if ordered > level:
        assert len(set(group[:ordered])) <= level
        records = np.bincount(group[:ordered], counts[:ordered])
        assert records.max() <= counts[:ordered].sum() / level + 2 * counts[:ordered].max()
    assert len({(f, g) for f, g in zip(finer.tolist(), group.tolist(), strict=True)}) == len(set(finer))


@given(st.integers(0, 2**32 - 1))
def test_joined_cells_are_those_of_joined_records(seed):
    """`Grouping.join` of a table in any order of its attributes, against sums over cells one by one."""
    rng = np.random.default_rng(seed)
    domain = Domain(("a", "b", "c"), (5, 3, 4))
    groups = tuple(
        np.unique(rng.integers(0, 3, size), return_inverse=True)[1].astype(np.int32) for size in domain.sizes
    )
    merged = Domain(domain.names, tuple(int(group.max()) + 1 for group in groups))
    merging = Merging(domain, merged, groups, tuple(1 / np.bincount(group)[group] for group in groups))
    names = tuple(rng.permutation(["a", "b", "c"])[: rng.integers(1, 4)].tolist())
    table = domain.project(names)
    cells = rng.integers(-9, 9, table.shape)
    slow = np.zeros(merged.project(names).shape, np.int64)
    for cell in np.ndindex(*table.shape):
        place = tuple(groups["abc".index(name)][value] for name, value in zip(names, cell, strict=True))
        slow[place] += cells[cell]
    joined = merging.grouping(names).join(cells)
    assert joined.dtype == cells.dtype
    assert np.array_equal(joined, slow)


def test_the_variance_left_in_blocks_is_that_of_the_posterior():
    """Against the covariance of all cells, for a pair measured in groups and looked at in other blocks."""
    domain = Domain(("a", "b"), (8, 6), ordered=(8, 0))
    counts = np.random.default_rng(0).uniform(1, 9, (8, 6))
    sides = tuple(Marginal(domain.project((n,)), counts.sum(axis=1 - k)) for k, n in enumerate("ab"))
    waves = Waves(sides)
    groups = Grouping((groups_at(sides[0], 4), np.arange(6, dtype=np.int32)))
    blocks = Grouping((groups_at(sides[0], 2), np.arange(6, dtype=np.int32)))
    measured = Measurement(Marginal(domain, counts).join(groups), np.array(7.0), groups)
    pair = Estimate(Marginal(domain, counts), dispersion=3.0, measured=measured)
    prior = 3.0 * sides[0].total * np.kron(waves.covariance("a"), waves.covariance("b"))
    seen, asked = (np.kron(*(np.eye(g.max() + 1)[:, g] for g in of.groups)) for of in (groups, blocks))
    gain = prior @ seen.T @ np.linalg.inv(seen @ prior @ seen.T + 7.0 * np.eye(len(seen)))
    left = asked @ (prior - gain @ seen @ prior) @ asked.T
    np.testing.assert_allclose(
        waves.posterior_variance(pair, blocks).ravel(), np.diag(left), rtol=1e-6, atol=1e-9
    )
