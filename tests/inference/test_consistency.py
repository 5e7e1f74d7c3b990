"""Tables that agree, are non-negative and have one total, nearer to the truth than they came."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import reference
from hypothesis import example, given, settings
from hypothesis import strategies as st
from reference import binary

from privsyn.inference.consistency import average_one_ways, combine_measurements, estimate_total, norm_sub
from privsyn.marginals.domain import Domain, Records
from privsyn.marginals.marginal import Marginal, Measurement
from privsyn.methods.paper import learn as consistency
from privsyn.methods.paper.learn import make_consistent

SHAPES = {
    "single table": ["ab"],
    "single attribute": ["a"],
    "duplicates": ["ab", "ba", "ab", "a"],
    "apart": ["a", "b", "cd"],
    "forest": ["ab", "bc", "de"],
    "cycle": ["ab", "bc", "cd", "da"],
    "all pairs": [*"abcd", *map("".join, combinations("abcd", 2))],
    "cliques": ["abc", "bcd", "cda", "e", "ab"],
    "clique and star": ["abc", "cd", "ce", "c"],
}
shapes = st.sampled_from(list(SHAPES))


def draw_records(seed, n=200):
    """Rows of five attributes that depend on one another, some values seldom."""
    rng = np.random.default_rng(seed)
    domain = Domain(tuple("abcde"), tuple(rng.integers(1, 5, 5)))
    joint = rng.dirichlet(np.full(domain.cells, 0.3))
    rows = np.unravel_index(rng.choice(domain.cells, n, p=joint), domain.shape)
    return Records(domain, np.stack(rows, axis=1))


def measure(seed, shape, sigma, *, uneven=True):
    """Exact tables of some records and noisy ones, each with a variance of its own."""
    rng = np.random.default_rng([seed, 1])
    exact = [reference.count(draw_records(seed), tuple(attributes)) for attributes in SHAPES[shape]]
    noisy = []
    for table in exact:
        scale = sigma * (rng.uniform(0.3, 3.0) if uneven else 1.0)
        counts = table.counts + rng.normal(0, scale, table.counts.shape).round()
        noisy.append(Measurement(Marginal(table.domain, counts), scale**2))
    return exact, tuple(noisy)


def disagreement(tables):
    """The largest difference, in records, on anything that two tables share."""
    gaps = [0.0]
    for one, other in combinations(tables, 2):
        shared = tuple(name for name in one.attributes if name in other.attributes)
        gaps.append(np.abs(one.project(shared).counts - other.project(shared).counts).max())
    return max(gaps)


seeds = st.integers(0, 2**32 - 1)
sigmas = st.sampled_from([0.01, 3.0, 30.0, 300.0])


@settings(deadline=None)
@given(seeds, shapes, sigmas)
def test_tables_agree_are_not_negative_and_have_the_total(seed, shape, sigma):
    """They agree but for the cells that were set to 0 at the end, and for the rescaling after it."""
    _, noisy = measure(seed, shape, sigma)
    total = estimate_total(noisy)
    tables = make_consistent(noisy, total)
    assert [table.domain for table in tables] == [m.marginal.domain for m in noisy]
    assert disagreement(tables) <= 2 * consistency.NEGLIGIBLE * max(table.domain.cells for table in tables)
    for table in tables:
        assert table.counts.min() >= 0
        assert table.total == pytest.approx(total, abs=1e-6)


@pytest.mark.parametrize("rounds", [0, 1, 2])
@pytest.mark.parametrize("shape", SHAPES)
def test_no_cell_is_negative_however_soon_the_repetition_ends(monkeypatch, shape, rounds):
    monkeypatch.setattr(consistency, "AVERAGINGS", rounds)
    _, noisy = measure(0, shape, 100.0)
    for table in make_consistent(noisy, 200.0):
        assert table.counts.min() >= 0
        assert table.total == pytest.approx(200.0, abs=1e-6)


def assert_moved_less_than_noise(exact, noisy, tables):
    """The truth is consistent. So all tables together need not move further than the noise moved them.

    Distances are Euclidean, and all noise has one variance. A single table may move further, at most twice.
    """
    moved = [np.linalg.norm(t.counts - m.marginal.counts) for t, m in zip(tables, noisy, strict=True)]
    noise = [np.linalg.norm(e.counts - m.marginal.counts) for e, m in zip(exact, noisy, strict=True)]
    assert np.linalg.norm(moved) <= 1.01 * np.linalg.norm(noise)
    expected = [np.sqrt(m.variance.sum()) for m in noisy]
    assert (np.array(moved) <= 2 * np.maximum(noise, expected)).all()


@pytest.mark.parametrize("sigma", [0.3, 3.0, 30.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_no_table_moves_further_from_its_measurement_than_the_noise(shape, sigma):
    for seed in range(20):
        exact, noisy = measure(seed, shape, sigma, uneven=False)
        assert_moved_less_than_noise(exact, noisy, make_consistent(noisy, 200.0))


@pytest.mark.parametrize("sigma", [1.0, 10.0])
def test_no_pair_pays_for_the_empty_cells_of_a_large_table(sigma):
    """Of 4,096 cells most expect far less than a record: a negative cell concerns no other table."""
    rng, n, names = np.random.default_rng(0), 16_000, "abcdefghijklm"
    shares = np.where(rng.random(n) < 0.15, 0.6, 0.02)
    rows = rng.random((n, len(names))) < shares[:, np.newaxis]
    records = Records(binary(names), rows.astype(np.int32))
    sets = [*names, names[:12], *(name + "m" for name in names[:12])]
    exact = [reference.count(records, tuple(attributes)) for attributes in sets]
    noisy = tuple(
        Measurement(Marginal(t.domain, t.counts + rng.normal(0, sigma, t.counts.shape)), sigma**2)
        for t in exact
    )
    assert_moved_less_than_noise(exact, noisy, make_consistent(noisy, float(n)))


@settings(deadline=None)
@given(seeds, shapes)
@example(0, "duplicates")
def test_without_negatives_one_pass_of_plain_averaging_is_all(seed, shape):
    """Tables lifted far above zero: what is left is the weighted mean of everything that is shared."""
    _, noisy = measure(seed, shape, 3.0)
    lifted = tuple(
        Measurement(
            Marginal(m.marginal.domain, m.marginal.counts + 1e6 / m.marginal.domain.cells), m.variance
        )
        for m in noisy
    )
    total = estimate_total(lifted)
    for fast, slow in zip(make_consistent(lifted, total), reference.agree(lifted, total), strict=True):
        np.testing.assert_allclose(fast.counts, slow.counts, rtol=1e-9)


@settings(deadline=None)
@given(seeds, st.floats(0.01, 100.0), st.floats(0.01, 100.0))
def test_two_tables_meet_at_their_inverse_variance_mean(seed, variance, other):
    """A projection of `ab` to `a` sums three cells, and so three variances."""
    rng = np.random.default_rng(seed)
    a = Marginal(Domain(("a",), (2,)), rng.uniform(100, 200, 2))
    ab = Marginal(Domain(("a", "b"), (2, 3)), rng.uniform(100, 200, (2, 3)))
    ab = Marginal(ab.domain, ab.counts * a.total / ab.total)
    met, _ = make_consistent((Measurement(a, variance), Measurement(ab, other)), a.total)
    weights = np.array([1 / variance, 1 / (3 * other)])
    mean = (weights[0] * a.counts + weights[1] * ab.project(("a",)).counts) / weights.sum()
    np.testing.assert_allclose(met.counts, mean, rtol=1e-9)


def test_an_exact_table_is_believed():
    exact = Measurement(Marginal(Domain(("a",), (2,)), np.array([30.0, 70.0])), 0.0)
    noisy = Measurement(Marginal(Domain(("a", "b"), (2, 2)), np.full((2, 2), 25.0)), 1.0)
    a, ab = make_consistent((exact, noisy), 100.0)
    np.testing.assert_allclose(a.counts, [30.0, 70.0], atol=1e-6)
    np.testing.assert_allclose(ab.counts, [[15.0, 15.0], [35.0, 35.0]], atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["cycle", "all pairs", "cliques", "clique and star"])
@pytest.mark.parametrize("sigma", [1.0, 5.0, 25.0])
def test_the_tables_come_nearer_to_the_truth(shape, sigma):
    """In sum over many; a table that stands alone has nothing to gain but its negatives."""
    raw = done = 0.0
    for seed in range(10):
        exact, noisy = measure(seed, shape, sigma, uneven=False)
        tables = make_consistent(noisy, estimate_total(noisy))
        raw += sum(np.abs(m.marginal.counts - e.counts).sum() for m, e in zip(noisy, exact, strict=True))
        done += sum(np.abs(t.counts - e.counts).sum() for t, e in zip(tables, exact, strict=True))
    assert done < 0.95 * raw


def test_a_single_table_with_a_negative_total_is_overruled():
    low = Measurement(Marginal(Domain(("a",), (2,)), np.array([-50.0, -70.0])), 400.0)
    sure = Measurement(Marginal(Domain(("a", "b"), (2, 2)), np.full((2, 2), 25.0)), 1.0)
    alone = Measurement(Marginal(Domain(("c",), (3,)), np.array([-9.0, -9.0, -3.0])), 400.0)
    total = estimate_total((low, sure, alone))
    assert 90 < total < 101
    tables = make_consistent((low, sure, alone), total)
    assert disagreement(tables) < 0.1
    assert all(table.counts.min() >= 0 for table in tables)


@settings(deadline=None)
@given(seeds, sigmas)
def test_one_ways_are_averaged_over_all_that_tell_of_them(seed, sigma):
    _, noisy = measure(seed, "clique and star", sigma)
    domain = draw_records(seed).domain
    averaged = average_one_ways(domain, noisy, 200.0)
    assert [table.attributes for table in averaged] == [(name,) for name in domain]
    for (name,), table in ((table.attributes, table) for table in averaged):
        told = [m.project((name,)) for m in noisy if name in m.attributes]
        weights = [1 / m.variance[0] for m in told]
        mean = sum(w * m.marginal.counts for w, m in zip(weights, told, strict=True)) / sum(weights)
        np.testing.assert_allclose(table.counts, norm_sub(mean, 200.0), atol=1e-6)


@given(st.floats(0.1, 10.0), st.floats(0.1, 10.0))
def test_two_looks_are_averaged_by_precision(variance, other):
    domain = Domain(("a",), (2,))
    looks = [
        Measurement(Marginal(domain, np.array(counts)), v)
        for counts, v in (([8.0, 4.0], variance), ([2.0, 9.0], other))
    ]
    both = combine_measurements(*looks)
    precision = 1 / variance + 1 / other
    np.testing.assert_allclose(both.variance, 1 / precision)
    mean = sum(m.marginal.counts / m.variance for m in looks) / precision
    np.testing.assert_allclose(both.marginal.counts, mean)


def test_exact_looks_count_alike_and_outweigh_any_other():
    domain = Domain(("a",), (2,))
    one, two, noisy = (
        Measurement(Marginal(domain, np.array(counts)), variance)
        for counts, variance in (([4.0, 0.0], 0.0), ([6.0, 0.0], 0.0), ([99.0, 9.0], 1.0))
    )
    for looks, counts in (((one, two), [5, 0]), ((one, noisy), [4, 0]), ((noisy, one), [4, 0])):
        both = combine_measurements(*looks)
        assert both.marginal.counts.tolist() == pytest.approx(counts)
        assert both.variance.tolist() == pytest.approx([0, 0])


def test_the_total_is_weighted_by_precision():
    """Sums 10 and 20, told with variances 2 and 8."""
    a = Measurement(Marginal(Domain(("a",), (2,)), np.array([4.0, 6.0])), 1.0)
    b = Measurement(Marginal(Domain(("b",), (4,)), np.full(4, 5.0)), 2.0)
    assert estimate_total((a, b)) == pytest.approx((10 / 2 + 20 / 8) / (1 / 2 + 1 / 8))


def test_there_is_at_least_one_record():
    none = Measurement(Marginal(Domain(("a",), (2,)), np.array([-4.0, -6.0])), 1.0)
    assert estimate_total((none,)) == 1.0
    (table,) = make_consistent((none,), 1.0)
    np.testing.assert_allclose(table.counts, [1.0, 0.0], atol=0.02)


def test_an_average_of_one_ways_weighs_each_cell_by_its_own_precision():
    """A pool of many values is uncertain; that must not discredit the value beside it."""
    domain = Domain(("a",), (2,))
    pooled = Measurement(Marginal(domain, np.array([40.0, 60.0])), np.array([1.0, 99.0]))
    even = Measurement(Marginal(domain, np.array([44.0, 50.0])), 1.0)
    (average,) = average_one_ways(domain, (pooled, even), 92.1)
    np.testing.assert_allclose(average.counts, [42.0, 50.1])


@pytest.mark.slow
def test_an_average_of_one_ways_has_the_variance_of_two_precisions_added():
    """Of variance 100, and 3 x 100 by way of a pair: 75 together, where a plain mean has 100.

    Norm-sub takes away the error of the sum, which is half of it. From 4000 draws a variance is told with
    a standard error of 2.2 %; six of them: wrong with probability under 1e-8.
    """
    rng = np.random.default_rng(0)
    domain = Domain(("a", "b"), (2, 3))
    errors = []
    for _ in range(4000):
        one = Marginal(domain.project(("a",)), rng.normal(3000.0, 10.0, 2))
        two = Marginal(domain, rng.normal(1000.0, 10.0, (2, 3)))
        (average, _) = average_one_ways(domain, (Measurement(one, 100.0), Measurement(two, 100.0)), 6000.0)
        errors.append(average.counts[0] - 3000.0)
    assert np.var(errors) == pytest.approx(75.0 / 2, rel=0.135)


@settings(deadline=None)
@given(seeds, sigmas, st.floats(1.0, 1e6))
def test_averages_of_one_ways_have_the_total_and_no_negatives(seed, sigma, total):
    _, noisy = measure(seed, "all pairs", sigma)
    domain = draw_records(seed).domain.project(tuple("abcd"))
    for table in average_one_ways(domain, noisy, total):
        assert table.counts.min() >= 0
        assert table.total == pytest.approx(total, rel=1e-9)
