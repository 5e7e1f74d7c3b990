"""What is smooth is taken out of the noise in blocks; where nothing is smooth, nothing changes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privsyn.inference.dispersion import DISPERSIONS
from privsyn.inference.pairs import estimate_pairs
from privsyn.inference.smoothing import RUNS, has_blocks, in_runs, smoothed
from privsyn.marginals.domain import Domain
from privsyn.marginals.ipf import fit_margins
from privsyn.marginals.marginal import Marginal, Measurement
from privsyn.marginals.recoding import Merging
from privsyn.marginals.structural_zeros import product

SIZE, TOTAL, SIGMA = 20, 20_000.0, 15.0
SQUARE = Domain(("a", "b"), (SIZE, SIZE), ordered=(SIZE, SIZE))
SIDES = tuple(Marginal(SQUARE.project((name,)), np.full(SIZE, TOTAL / SIZE)) for name in "ab")
FLAT = product(SQUARE, SIDES).counts
NOTHING = [np.zeros_like(DISPERSIONS)]
PLACES = (np.arange(SIZE) + 0.5) / SIZE - 0.5

SMOOTH = FLAT * (1 + 3 * np.outer(PLACES, PLACES))  # a rank correlation of a quarter
APART = Merging(SQUARE, SQUARE, (np.arange(SIZE, dtype=np.int32),) * 2, (np.ones(SIZE),) * 2)
INDEPENDENT, DEPENDENT = ([-50.0 * np.log(DISPERSIONS / at) ** 2] for at in (0.02, 1000.0))  # sharp scores
CHECKERED = FLAT * (1 + 0.3 * np.outer((-1) ** np.arange(SIZE), (-1) ** np.arange(SIZE)))


def scattered():
    """Cells that depart by themselves, with the margins of `FLAT`: blocks depart as such cells do."""
    cells = FLAT * (1 + 0.5 * np.random.default_rng(5).normal(size=FLAT.shape)).clip(0.05)
    return fit_margins(Marginal(SQUARE, cells), SIDES, rounds=200).counts


def seen(true, scores=NOTHING, sigma=SIGMA):
    """What is expected once blocks were seen, over 20 noises. Seeded."""
    blocks, found = in_runs(SQUARE, SIDES), []
    for seed in range(20):
        noisy = true + np.random.default_rng(seed).normal(0, sigma, true.shape)
        table = Measurement(Marginal(SQUARE, noisy), sigma**2)
        found += smoothed(blocks, (table,), [FLAT], [SIDES], scores)
    return found


def apart(some, true):
    """Share of the records."""
    return np.array([np.abs(one - true).sum() for one in some]) / TOTAL


def estimated(true, blocks, scores):
    """Errors of what is made of a pair in the end, over ten noises. Seeded."""
    found = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        sides = tuple(Measurement(Marginal(s.domain, s.counts + rng.normal(0, 5, SIZE)), 25.0) for s in SIDES)
        noisy = Measurement(Marginal(SQUARE, true + rng.normal(0, SIGMA, true.shape)), SIGMA**2)
        found.append(estimate_pairs(SQUARE, sides, (noisy,), scores, blocks, rng).tables[0].counts)
    return apart(found, true)


def test_what_is_smooth_is_seen_in_blocks():
    """The cells' own noise is as large as what they depart by."""
    before, after = apart([FLAT], SMOOTH)[0], apart(seen(SMOOTH), SMOOTH)
    assert before == pytest.approx(0.1875, abs=0.001)
    assert (after < 0.55 * before).all()
    assert (after > 0.1 * before).all()  # noise has been added


def test_so_pairs_are_estimated_with_less_error():
    with_blocks, without = (estimated(SMOOTH, b, NOTHING).mean() for b in (in_runs(SQUARE, SIDES), APART))
    assert with_blocks < 0.7 * without


def test_what_is_not_smooth_is_left_to_the_cells():
    """Cells that alternate add up to nothing in blocks; cells that scatter, to no more than they would."""
    assert (apart(seen(CHECKERED), CHECKERED) < 1.03 * apart([FLAT], CHECKERED)).all()
    assert (apart(seen(scattered(), sigma=5.0), FLAT) < 0.02).all()  # their blocks depart by 0.044


def test_where_there_is_nothing_little_is_made_up():
    assert apart(seen(FLAT), FLAT).mean() < 0.02  # the noise of the cells is 0.24 of the records


def test_what_was_known_of_the_blocks_counts():
    """A score that rules dependence out where there is some; one that swears to it where there is none."""
    assert (apart(seen(SMOOTH, INDEPENDENT), FLAT) < 0.01).all()
    assert (apart(seen(SMOOTH), FLAT) > 0.1).all()
    assert apart(seen(FLAT, DEPENDENT), FLAT).mean() > 0.03


def test_and_not_of_the_cells():
    """By a score of blocks cells that depart much would be made of noise."""
    assert (estimated(FLAT, in_runs(SQUARE, SIDES), DEPENDENT) < 0.1).all()


def test_without_order_nothing_changes():
    square = Domain(("a", "b"), (SIZE, SIZE))
    sides = tuple(Marginal(square.project((name,)), np.full(SIZE, TOTAL / SIZE)) for name in "ab")
    blocks = in_runs(square, sides)
    table = Measurement(Marginal(square, SMOOTH), 1.0)
    assert not has_blocks(blocks, table.marginal)
    (found,) = smoothed(blocks, (table,), [FLAT], [sides], NOTHING)
    assert found is FLAT


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
    measured = Measurement(noisy, 400.0 * (expected > 0))
    (found,) = smoothed(in_runs(domain, sides), (measured,), [expected], [sides], NOTHING)
    assert (found[expected == 0] == 0).all()
    assert found.min() >= 0
    np.testing.assert_allclose(found.sum(axis=1), sides[0].counts, atol=1e-3 * expected.sum())
    np.testing.assert_allclose(found.sum(axis=0), sides[1].counts, atol=1e-3 * expected.sum())


@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(0, 3))
def test_runs_are_few_neighbours_of_about_equal_records(seed, ordered, others):
    domain = Domain(("a",), (ordered + others,), ordered=(ordered,))
    counts = np.random.default_rng(seed).exponential(10, ordered + others)
    group = in_runs(domain, (Marginal(domain, counts),)).groups[0]
    assert set(np.diff(group)) <= {0, 1}
    assert group[0] == 0
    assert len(set(group[:ordered])) <= max(RUNS, 1)
    assert len(set(group[ordered:])) == others
    assert not set(group[:ordered]) & set(group[ordered:])
    if ordered > RUNS:
        records = np.bincount(group[:ordered], counts[:ordered])
        assert records.max() <= counts[:ordered].sum() / RUNS + 2 * counts[:ordered].max()


@given(st.integers(0, 2**32 - 1))
def test_joined_cells_are_those_of_joined_records(seed):
    """`join` of a table in any order of its attributes, against sums over cells one by one."""
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
    joined = merging.join(names, cells)
    assert joined.dtype == cells.dtype
    assert np.array_equal(joined, slow)
