"""Tails: noise far from all records makes no records; a tail that is there stays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privsyn.inference.consistency import norm_sub
from privsyn.inference.ordered.binning import Axis
from privsyn.inference.ordered.tails import (
    EMPTY,
    POINT,
    USUAL_SHARE,
    VARYING,
    TailCounts,
    Tails,
    _usual_scale,
    expected_tail,
)
from privsyn.marginals.domain import Domain
from privsyn.marginals.marginal import Marginal, Measurement, groups_at
from privsyn.marginals.recoding import Merging

CELLS, GROUPS = 60, 30
DOMAIN = Domain(("a",), (CELLS + 1,), ordered=(CELLS,))
MERGED = Domain(("a",), (GROUPS + 1,), ordered=(GROUPS,))
GROUP = np.append(np.arange(CELLS) // 2, GROUPS).astype(np.int32)
MERGING = Merging(DOMAIN, MERGED, (GROUP,), (1 / np.bincount(GROUP)[GROUP],))
TAILS = Tails(MERGING, {"a": Axis(np.ones(CELLS), GROUPS)})
BULK = np.concatenate([[200.0, 500, 300], np.zeros(GROUPS - 3), [50.0]])  # the last code is the missing ones'
HEAVY = np.concatenate([[2000.0], 4000 / np.arange(1, GROUPS) ** 2, [50.0]])


def noisy(true, sigma, seed):
    counts = true + np.random.default_rng(seed).normal(0, sigma, len(true))
    return Measurement(Marginal(MERGED, counts), sigma**2)


def deviation(counts):
    """Standard deviation of the column, in groups."""
    places, shares = np.arange(GROUPS), counts[:GROUPS] / counts[:GROUPS].sum()
    return np.sqrt(shares @ places**2 - (shares @ places) ** 2)


def test_noise_beyond_the_bulk_makes_few_records():
    """Over 40 noises: the error of the standard deviation, in logarithms, beside that of noise as it is."""
    with_tails, without = [], []
    for seed in range(40):
        measured = noisy(BULK, 20.0, seed)
        with_tails.append(np.log(deviation(TAILS.settle(measured, 1050.0).counts) / deviation(BULK)))
        without.append(np.log(deviation(norm_sub(measured.marginal.counts, 1050.0)) / deviation(BULK)))
    assert np.mean(with_tails) < 0.5 < 1.5 < np.mean(without)


def test_a_tail_that_is_there_stays():
    found = [TAILS.settle(noisy(HEAVY, 20.0, seed), HEAVY.sum()).counts for seed in range(40)]
    assert np.mean(found, axis=0)[5:GROUPS].sum() == pytest.approx(HEAVY[5:GROUPS].sum(), rel=0.15)


@pytest.mark.slow
def test_a_tail_within_careful_bounds_keeps_its_records_on_average():
    """Two-sided: five standard errors, so that one seed in a million fails. The median loses a sixth."""
    rng, gaps, places = np.random.default_rng(0), [], np.arange(5)
    for _ in range(400):
        usual = USUAL_SHARE * 4e3 * np.exp(VARYING * rng.normal())
        mass = min(usual, 1e3) if rng.random() > EMPTY else 0.0
        beyond = np.exp(-places / np.exp(0.5 * rng.normal()))
        counts = -np.diff(beyond) / (1 - beyond[-1]) * mass + rng.normal(0, 30, 4)
        near = {"before": (1e3, 1.0), "usual": 1.0, "records": 4e3}
        tail, _ = expected_tail(TailCounts(counts, np.full(4, 900.0), np.ones(4), places[:4]), **near)
        gaps.append(tail.sum() - mass)
    assert abs(np.mean(gaps)) < 5 * np.std(gaps) / np.sqrt(len(gaps))


@given(st.integers(0, 2**32 - 1), st.floats(0.1, 1e3))
def test_counts_are_non_negative_and_have_the_total(seed, sigma):
    rng = np.random.default_rng(seed)
    true = rng.exponential(50, GROUPS + 1) * (rng.random(GROUPS + 1) < 0.5)
    measured = noisy(true, sigma, seed)
    found = TAILS.settle(measured, 1000.0).counts
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1000.0)
    shared = TAILS.share((measured,))  # a merging is refused whose shares do not sum to 1
    assert shared.merged == MERGED


def test_cells_of_a_tail_fade():
    (shares,) = TAILS.share((noisy(BULK, 10.0, 0),)).shares
    assert shares[20] > shares[21]
    assert (shares[:2] == 0.5).all()  # of the bulk they stay as they were


def test_bounds_twenty_times_as_wide_as_the_records_do_not_stretch_a_column():
    """Over 40 noises: the error of the standard deviation, in logarithms; arithmetic means: .36 and .5."""
    widths = np.concatenate([np.ones(20), 20.0 * 2 ** np.arange(5)])
    places = np.cumsum(widths) - widths / 2
    bulk = np.concatenate([300 * np.exp(-0.5 * ((np.arange(20) - 8) / 3.0) ** 2), np.zeros(5)])
    domain, size = Domain(("a",), (25,), ordered=(25,)), bulk.sum()
    merging = Merging(domain, domain, (np.arange(25, dtype=np.int32),), (np.ones(25),))
    tails = Tails(merging, {"a": Axis(widths, 25)})

    def spread(counts):
        shares = counts / counts.sum()
        return np.sqrt(shares @ places**2 - (shares @ places) ** 2)

    logs = []
    for seed in range(40):
        counts = bulk + np.random.default_rng(seed).normal(0, 20.0, 25)
        settled = tails.settle(Measurement(Marginal(domain, counts), 400.0), size).counts
        logs.append(np.log(spread(settled) / spread(bulk)))
    assert abs(np.mean(logs)) < 0.1
    assert np.quantile(np.abs(logs), 0.9) < 0.25


@pytest.mark.slow
@pytest.mark.parametrize("ends", [(1200,), (620, 1200)])
def test_a_wide_group_is_densest_at_its_start(ends: tuple[int, ...]) -> None:
    """Over 20 noises: the error of the standard deviation, in logarithms. Drawn evenly in the groups: 2."""
    true = 1e8 / np.arange(20, 1220) ** 4.0  # single cells up to 40, then wide groups
    group = np.minimum(np.arange(1200), 40 + np.searchsorted(ends, np.arange(1200), side="right"))
    group, groups = group.astype(np.int32), 40 + len(ends)
    whole, joined = Domain(("a",), (1200,), ordered=(1200,)), Domain(("a",), (groups,), ordered=(groups,))
    merging = Merging(whole, joined, (group,), (1 / np.bincount(group)[group],))
    tails = Tails(merging, {"a": Axis(np.ones(1200), groups)})

    def spread(cells):
        places, shares = np.arange(1200), cells / cells.sum()
        return np.sqrt(shares @ places**2 - (shares @ places) ** 2)

    logs = []
    for seed in range(20):
        counts = np.bincount(group, true) + np.random.default_rng(seed).normal(0, 5.0, groups)
        measured = Measurement(Marginal(joined, counts), 25.0)
        settled, (shares,) = tails.settle(measured, true.sum()).counts, tails.share((measured,)).shares
        logs.append(np.log(spread(settled[group] * shares) / spread(true)))
    assert np.mean(np.abs(logs)) < 0.3


@pytest.mark.parametrize("width", [1.0, 400.0])
@pytest.mark.parametrize(("count", "kept"), [(68.0, False), (90.0, True)])
def test_noise_far_outside_the_bulk_is_no_spike(width: float, count: float, kept: bool) -> None:
    """3.4 standard deviations in careless bounds are noise; 4.5 are not."""
    widths = np.append(np.ones(30), width)
    counts = np.concatenate([[200.0, 500, 300], np.zeros(27), [count]])
    domain = Domain(("a",), (31,), ordered=(31,))
    merging = Merging(domain, domain, (np.arange(31, dtype=np.int32),), (np.ones(31),))
    tails = Tails(merging, {"a": Axis(widths, 31)})
    settled = tails.settle(Measurement(Marginal(domain, counts), 400.0), 1000.0).counts
    assert (settled[-1] > 20) == kept


@pytest.mark.parametrize(("count", "kept"), [(1000.0, 0.7), (200.0, 0.0)])
def test_numbers_far_from_a_spike_stay_where_earlier_counts_put_them(count: float, kept: float) -> None:
    """Of the rows beyond a 0, most lie in the last cell: that is known of many rows, and noise of few."""
    shares = np.array([1.0, 0.3, *[0.0] * 18, 0.7])
    group = np.array([0] + [1] * 20, np.int32)
    whole, joined = Domain(("a",), (21,), ordered=(21,)), Domain(("a",), (2,), ordered=(2,))
    axes = {"a": Axis(np.array([1.0] + [100.0] * 20), 2)}
    measured = Measurement(Marginal(joined, np.array([9000.0, count])), 900.0)
    found = Tails(Merging(whole, joined, (group,), (shares,)), axes).share((measured,))
    assert found.shares[0][-1] == pytest.approx(kept, abs=0.05)


@pytest.mark.parametrize("cells", [2, 3, 20, 21])
def test_even_counts_are_not_far_whatever_the_number_of_cells(cells: int) -> None:
    shares = np.array([1.0, *[1 / cells] * cells])
    group = np.array([0] + [1] * cells, np.int32)
    whole, joined = Domain(("a",), (cells + 1,), ordered=(cells + 1,)), Domain(("a",), (2,), ordered=(2,))
    axes = {"a": Axis(np.array([1.0] + [100.0] * cells), 2)}
    measured = Measurement(Marginal(joined, np.array([9000.0, 1000])), 900.0)
    found = Tails(Merging(whole, joined, (group,), (shares,)), axes).share((measured,))
    assert found.shares[0][1] > found.shares[0][-1]


def test_a_tail_beside_a_value_that_most_rows_have_lies_where_the_counts_put_it():
    """Three of four rows have one value, so their quartiles do not tell how far the others reach."""
    widths = np.geomspace(1, 20_000, 16)
    counts = np.array([160.0, 80, 240, -300, -280, -40, -90, 470, 50, 180, 440, 700, 660, 610, -340, 330])
    cells, _ = expected_tail(
        TailCounts(counts, np.full(16, 215.0**2), widths, np.arange(16)),
        before=(36_000.0, 2.0),
        usual=POINT,
        records=39_000.0,
        careless=True,
    )
    assert 1500 < cells.sum() < 4500
    assert cells[10:].sum() > 0.8 * cells.sum()


def test_noise_in_a_thin_group_does_not_make_the_next_one_part_of_the_bulk():
    """The last group is 17 times as wide as the one before. Taken as bulk, its records are drawn evenly."""
    widths = np.concatenate([np.ones(20), 5.0 * 2 ** np.arange(4), np.ones(17) * 40])
    group = np.minimum(np.arange(len(widths)), 24).astype(np.int32)
    whole, joined = Domain(("a",), (41,), ordered=(41,)), Domain(("a",), (25,), ordered=(25,))
    tails = Tails(
        Merging(whole, joined, (group,), (widths / np.bincount(group, widths)[group],)),
        {"a": Axis(widths, 25)},
    )
    counts = np.concatenate([np.full(20, 800.0), [760.0, 680, 300, 7, 246]])
    (shares,) = tails.share((Measurement(Marginal(joined, counts), 55.0**2),)).shares
    assert shares[24] > 2 * widths[24] / widths[24:].sum()  # densest at its start


def test_numbers_beside_a_zero_are_not_tiny():
    """Three of four rows are 0. Cells grow by a factor: most scales are tiny, and all were equally likely."""
    widths = np.concatenate([[1.0], np.geomspace(1e6, 3e11, 256)])
    ends = np.array([1, 226, 234, 250])  # later groups begin at 14, 22 and 63 % of the range
    group = np.searchsorted(ends, np.arange(257), side="right").astype(np.int32)
    whole, joined = Domain(("a",), (257,), ordered=(257,)), Domain(("a",), (5,), ordered=(5,))
    shares = widths / np.bincount(group, widths)[group]
    tails = Tails(Merging(whole, joined, (group,), (shares,)), {"a": Axis(widths, 5)})
    counts, noise = np.array([4158.0, 833, 68, 177, 120]), np.array([27.0, 113, 119, 100, 42])
    measured = Measurement(Marginal(joined, counts), noise**2)
    (found,) = tails.share((measured,)).shares
    assert found[1] < 0.01
    assert tails.settle(measured, counts.sum()).counts[2:].sum() > 200


@pytest.mark.parametrize("noise", [-15.0, 15.0, 40.0])
def test_the_scale_beside_a_zero_is_that_of_all_other_values(noise: float) -> None:
    """Whole numbers from 0, and two wide groups that are empty: these alone had scales of hundreds."""
    counts = np.array([8000.0, 900, 500, 300, 200, 20, noise])
    assert 1 < _usual_scale(counts, np.array([1.0, 1, 1, 1, 1, 50, 945])) < 4


def test_blocks_of_a_skewed_number_lose_less_of_its_variance_and_hold_enough_rows():
    """Each code has a fifth fewer rows than the one before. Blocks of equal counts join all of the last."""
    counts = np.append(np.exp(-np.arange(GROUPS) / 5) * 1000, 50.0)
    column = Marginal(MERGED, counts)
    blocks, even = TAILS.blocks_of(column, 4), groups_at(column, 4)
    rows = counts[:GROUPS]

    def lost(group):
        numbers, group = np.arange(GROUPS), group[:GROUPS]
        means = np.bincount(group, rows * numbers) / np.bincount(group, rows)
        return rows @ (numbers - means[group]) ** 2

    assert lost(blocks) < 0.6 * lost(even)
    assert np.bincount(blocks[:GROUPS], rows).min() > 0.04 * rows.sum()
    assert blocks[GROUPS:].tolist() == [4]  # missing cells are a block of their own
    ranked = Tails(MERGING, TAILS.axes, ranked={"a"})
    assert ranked.blocks_of(column, 4).tolist() == even.tolist()
