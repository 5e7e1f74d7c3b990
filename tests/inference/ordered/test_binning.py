"""Fine cells are joined so that spikes and tails survive and what is noise does not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from privsyn import Categorical, Numerical, PrivSyn, Schema
from privsyn.inference.ordered.binning import STEP, Axis, fit_steps, join_cells
from privsyn.table.encoding.grid import FINE, Grid, holds


def cost(counts, sigma, widths, cuts):
    """What a fit with these first cells costs, worked out piece by piece."""
    total = 0.0
    for start, end in zip(cuts, [*cuts[1:], len(counts)], strict=True):
        w, c = widths[start:end], counts[start:end]
        total += ((c - w * max(w @ c, 0) / (w @ w)) ** 2).sum() + STEP * np.log(len(counts)) * sigma**2
    return total


@settings(max_examples=20, deadline=None)
@given(st.lists(st.floats(-20, 100), min_size=2, max_size=8), st.floats(0.5, 10))
def test_no_other_steps_fit_better(counts, sigma):
    counts, n = np.array(counts), len(counts)
    widths = np.arange(1.0, n + 1)
    density = fit_steps(counts, sigma, widths) / widths
    chosen = [0, *np.flatnonzero(~np.isclose(np.diff(density), 0, atol=1e-9)) + 1]
    every = ([0, *(i for i in range(1, n) if mask >> (i - 1) & 1)] for mask in range(2 ** (n - 1)))
    assert (
        cost(counts, sigma, widths, chosen) <= min(cost(counts, sigma, widths, cuts) for cuts in every) + 1e-6
    )


def test_a_spike_stands_alone_and_bounds_far_away_cost_few_groups():
    expected = np.concatenate([[9000.0], np.full(30, 100.0), np.zeros(1969)])
    group = join_cells(expected, 10.0, Axis(np.ones(2000), 16))
    assert (group == group[0]).sum() == 1
    assert group[-1] - group[30] <= 6  # each of twice the length of the one before
    assert group[30] >= 6


@pytest.mark.parametrize("number", [0, -20_000, 20_000])
def test_many_rows_at_zero_or_a_bound_stay_there_though_noise_of_fine_cells_nearly_hides_them(number):
    """About 450 of 10,000 rows, where the noise of a fine cell has a standard deviation of about 110 rows.

    Of another number as many rows may be spread over its range, and a line says so.
    """
    rng, rows = np.random.default_rng(3), 10_000
    columns = [f"c{index}" for index in range(6)]
    table = pd.DataFrame({name: rng.normal(0, 4000, rows).round().clip(-19_000, 19_000) for name in columns})
    table[columns] = table[columns].where(rng.random((rows, 6)) > 0.045, number)
    schema = Schema({name: Numerical(-20_000, 20_000, integer=True, nullable=False) for name in columns})
    model = PrivSyn(1.0, 1e-9, schema, seed=0).fit(table)
    shares = (model.sample(20_000, seed=0) == number).mean()
    assert shares.between(0.03, 0.06).all()
    spread = [loss for loss in model.losses_ if loss.kind == "spread values"]
    assert [loss.column for loss in spread] == columns
    assert all(loss.text.startswith("a value that ") for loss in spread)


def test_a_cell_of_most_records_stands_alone_however_wide_it_is():
    """A heap is as wide as the numbers that are rounded to it, so it is no denser than they are."""
    expected = np.array([30.0, 9700, 30, 30, 30, 30, 30, 30])
    group = join_cells(expected, 20.0, Axis(np.where(expected > 30, 200.0, 1.0), 32))
    assert (group == group[1]).sum() == 1


def test_a_cell_of_most_records_leaves_groups_to_the_others():
    """Of 39,000 gains 36,000 were 0, and 3,270 others were in six groups: none of these had a 32nd of all."""
    expected = np.concatenate([[36_000.0], np.full(200, 10.0), [300.0], np.full(200, 5.0)])
    group = join_cells(expected, 20.0, Axis(np.ones(402), 32))
    assert np.count_nonzero(group == group[0]) == 1
    assert np.count_nonzero(group == group[201]) == 1
    assert len(set(group.tolist())) > 20


@pytest.mark.slow
@pytest.mark.parametrize("target", [None, "paid"])
def test_what_the_few_values_beside_zero_show_is_kept(target):
    """Each of ten gains says which class: a quarter of these rows were in the other one."""
    rng, rows = np.random.default_rng(0), 20_000
    odds = {
        0: 0.2,
        1500: 0,
        2400: 0.1,
        3100: 0.9,
        4400: 0.1,
        5200: 1,
        7300: 0,
        7700: 1,
        15_000: 0.1,
        99_999: 1,
    }
    gain = np.where(rng.random(rows) < 0.92, 0, rng.choice([*odds][1:], rows))
    table = pd.DataFrame({"gain": gain, "paid": rng.random(rows) < pd.Series(gain).map(odds)})
    for name in "abcd":
        table[name] = rng.choice(["u", "v", "w"], rows)
    schema = Schema(
        {
            "gain": Numerical(0, 100_000, integer=True, nullable=False),
            "paid": Categorical([False, True], nullable=False),
            **dict.fromkeys("abcd", Categorical(["u", "v", "w"], nullable=False)),
        }
    )
    made = PrivSyn(5.0, 1e-9, schema, target=target, seed=0).fit(table).sample(seed=0)
    cuts = [1, 2000, 2800, 3800, 4800, 6200, 7500, 11_000, 20_000]
    real, synthetic = (
        pd.crosstab(np.searchsorted(cuts, frame["gain"], "right"), frame["paid"]).loc[1:]
        for frame in (table, made)
    )
    assert (real - synthetic).abs().to_numpy().sum() / 2 < 0.05 * real.to_numpy().sum()


GRIDS = {
    "few": Grid.exact(17, 90, decimals=0, bins=32),
    "money": Grid.exact(0, 99_999, decimals=0, bins=32),
    "both signs": Grid.exact(-5000, 70_000, decimals=2, bins=32),
    "below zero": Grid.real(-122.6, -121.2, bins=32, dtype=np.dtype("f8")),
    "real": Grid.real(-1.0, 1e6, bins=32, dtype=np.dtype("f8")),
    "narrow": Grid.real(1.0, np.nextafter(1.0, 2), bins=32, dtype=np.dtype("f8")),
}


@pytest.mark.parametrize("grid", GRIDS.values(), ids=GRIDS)
def test_a_fine_grid_is_a_cut_of_the_same_points(grid):
    fine = grid.fine()
    assert fine.points == grid.points
    assert fine.bins <= FINE + 5  # zero, two bounds, and what lies beside them
    assert (np.diff(fine.edges) > 0).all()
    assert (fine.edges[0], fine.edges[-1]) == (0, grid.points)
    codes = np.arange(fine.bins)
    assert (fine.encode(fine.draw(codes, np.random.default_rng(0))) == codes).all()
    if grid.points <= FINE:
        assert fine.bins == grid.points
    if grid.low <= 0 <= grid.high:
        zero = fine.encode(np.zeros(1))
        assert (fine.draw(np.repeat(zero, 50), np.random.default_rng(0)) == 0).all()


ENDS = st.one_of(
    st.sampled_from([0.0, -0.0, 1e-300, 5e-324, 1e-13, 0.125, 1.0, 1.5, 1e6, 1e15]), st.floats(0, 1e12)
)


@given(
    ENDS,
    ENDS,
    st.tuples(st.sampled_from([-1, 1]), st.sampled_from([-1, 1])),
    st.sampled_from([1, 2, 7, 32, 512]),
    st.sampled_from(["f2", "f4", "f8"]),
    st.sampled_from([None, 0, 2]),
)
@example(1.0, 0.0, (-1, 1), 32, "f8", None)  # reals up to zero
def test_every_grid_marks_bins_that_it_has(first, second, signs, bins, dtype, decimals):
    low, high = sorted([first * signs[0], second * signs[1]])
    floats = np.dtype(dtype)
    if decimals is None:
        assume(max(-low, high) <= float(np.finfo(floats).max))
        grid = Grid.real(floats.type(low), floats.type(high), bins=bins, dtype=floats)
    else:
        low, high = round(low, decimals), round(high, decimals)
        assume(holds(np.dtype(float), low, high, decimals))
        grid = Grid.exact(low, high, decimals=decimals, bins=bins)
    for cut in (grid, grid.fine()):
        ends = np.array([cut.low, cut.high, *([0.0] if cut.low <= 0 <= cut.high else [])])
        codes = cut.encode(ends)
        assert ((codes >= 0) & (codes < cut.bins)).all()
        assert set(cut.marks.tolist()) <= set(codes.tolist())
        assert (cut.widths[cut.marks] == 1).all()
        drawn = cut.draw(np.arange(cut.bins), np.random.default_rng(0))
        assert ((cut.low <= drawn) & (drawn <= cut.high)).all()
        assert (cut.encode(drawn) == np.arange(cut.bins)).all()


@pytest.mark.parametrize("seed", range(3))
def test_real_numbers_up_to_zero_are_fitted_without_a_schema(seed):
    """Their highest point is zero."""
    numbers = -np.random.default_rng(seed).random(400)
    drawn = PrivSyn(20.0, 1e-9, seed=seed).fit(pd.DataFrame({"x": numbers})).sample(100, seed=0)
    assert (drawn["x"] <= 0).all()


def test_spikes_and_heaps_survive_the_whole_way():
    rng = np.random.default_rng(0)
    gain = np.where(rng.random(20_000) < 0.9, 0, rng.lognormal(8, 1, 20_000).astype(int))
    hours = np.where(rng.random(20_000) < 0.5, 40, rng.integers(1, 99, 20_000))
    table = pd.DataFrame({"gain": gain, "hours": hours})
    schema = Schema({"gain": Numerical(0, 99_999), "hours": Numerical(1, 99)})
    drawn = PrivSyn(1.0, schema=schema, seed=0).fit(table).sample(20_000, seed=0)
    assert (drawn["gain"] == 0).mean() == pytest.approx((gain == 0).mean(), abs=0.02)
    assert (drawn["hours"] == 40).mean() == pytest.approx((hours == 40).mean(), abs=0.02)
    assert (drawn["gain"] > np.quantile(gain, 0.98)).mean() == pytest.approx(0.02, abs=0.01)
    coarse = PrivSyn.paper(1.0, schema=schema, seed=0).fit(table).sample(20_000, seed=0)
    assert (coarse["gain"] == 0).mean() < 0.1  # equal intervals, as published


@pytest.mark.slow
def test_a_code_at_a_bound_keeps_its_share_beside_a_long_tail():
    """Like Adult's 99,999. In one group with all of the tail it would be one row in thousands."""
    rng = np.random.default_rng(0)
    gain = np.where(rng.random(40_000) < 0.9, 0, rng.lognormal(8, 1, 40_000).astype(int))
    gain = np.minimum(np.where(rng.random(40_000) < 0.01, 99_999, gain), 99_999)
    others = [f"c{number}" for number in range(10)]
    table = pd.DataFrame({"gain": gain} | dict.fromkeys(others, gain % 2))
    schema = Schema({"gain": Numerical(0, 99_999)} | {name: Categorical([0, 1]) for name in others})
    drawn = PrivSyn(1.0, schema=schema, seed=0).fit(table).sample(40_000, seed=0)
    assert (drawn["gain"] == 99_999).mean() == pytest.approx((gain == 99_999).mean(), rel=0.3)
