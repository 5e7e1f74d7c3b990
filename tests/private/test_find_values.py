"""Values and bounds are found when enough rows share them, and one person alone is never seen."""

from __future__ import annotations

from copy import deepcopy
from functools import reduce
from itertools import groupby, product
from math import floor, isqrt, sqrt

import numpy as np
import pandas as pd
import pytest
from replay import Tape
from scipy.stats import binomtest, norm
from strategies import OfNoType, StubNoise, find_values

from privsyn import Categorical, Datetime, InputError, Numerical, PrivSyn, Schema
from privsyn.methods.budget import (
    FOR_BOUNDS,
    FOR_CLOSER_BOUNDS,
    FOR_COMMON_VALUES,
    FOR_SIZE,
    FOR_VALUES,
    MOST_FOR_VALUES,
)
from privsyn.methods.complete_schema import discover, reserved_delta
from privsyn.private import find_values as find
from privsyn.private.find_values import VOTE, Finder, add_parts, count_votes, summary, threshold
from privsyn.private.noise import ExactGaussian, SeededGaussian, SeededLaplace
from privsyn.private.noise_laws import GAUSSIAN
from privsyn.private.run_ledger import RunLedger
from privsyn.private.spend import Spend
from privsyn.settings import Settings
from privsyn.table.discovery.find_bounds import GridCells, extent, extent_of_dates
from privsyn.table.discovery.open_schema import OpenSchema
from privsyn.table.encoding.bounds_cells import BoundsGrid
from privsyn.table.io.read_in_batches import read_in_batches

TINY = 1e-9  # chance that a right program fails a randomised test


class Recorder:
    """Noise of nothing, which keeps the exact answers it is added to."""

    name, private, law = "none", False, GAUSSIAN

    def draw(self, sigma, size):
        return np.zeros(size, np.int64)


def counts_of(grid, numbers):
    """How many of some numbers lie in each cell of a grid."""
    cells = GridCells("x", Numerical().widest(np.dtype(float)).encoder(np.dtype(float)), grid)
    return cells.count(pd.DataFrame({"x": np.asarray(numbers, float)}))


def asking(**columns):
    """How to ask a table of texts for votes: of each column its values, and the place of each row's."""
    held = {(name, "str"): column for name, column in columns.items()}
    return list(columns), lambda found: count_votes(held, found)


def votes_of(rows, columns):
    """The exact votes of a table of texts, by column and value, as the first round counts them."""
    codes = (np.array([row[j] for row in rows], np.int64).reshape(-1) for j in range(columns))
    _, ask = asking(**{str(j): ("abc", column) for j, column in enumerate(codes)})
    return {(kind, value): units for kind, votes in ask({}).items() for value, units in votes.items()}


def test_a_row_more_moves_the_votes_by_no_more_than_the_sensitivity():
    # Every table of two rows of three columns over (missing, a, b), and every row that may be added.
    rows = list(product((-1, 0, 1), repeat=3))
    worst = 0.0
    for pair in product(rows[::5], repeat=2):
        for added in rows:
            before, after = votes_of(list(pair), 3), votes_of([*pair, added], 3)
            worst = max(worst, sqrt(sum((after[cell] - before.get(cell, 0)) ** 2 for cell in after)))
    assert worst <= VOTE
    assert worst > 0.999 * VOTE  # attained: no budget is wasted


def test_a_row_more_moves_the_cells_of_a_grid_by_the_sensitivity():
    grid = BoundsGrid.numbers(decimals=0, dtype=np.dtype("float64"))
    worst = 0
    for numbers in product((np.nan, 0.0, 1.0, -7.0, 1e300), repeat=2):
        for added in (np.nan, 0.0, 5.0, -1e300, np.inf):
            change = counts_of(grid, np.array([*numbers, added])) - counts_of(grid, np.array(numbers))
            worst = max(worst, int(np.abs(change).sum()))
    assert worst == 1


def test_a_row_more_moves_the_number_of_numbers_by_no_more_than_the_sensitivity():
    grid = BoundsGrid.numbers(decimals=0, dtype=np.dtype("float64"))

    def asked(rows, k=1):
        counts = {
            str(j): counts_of(grid, column) for j, column in enumerate(np.array(rows, float).reshape(-1, 3).T)
        }
        finder = Finder(Recorder(), rows_per_unit=k)
        return 3 * finder.numbers(counts, 0.5), finder.log.spends[0].sensitivity

    moves = {
        asked([*rows, added])[0] - asked(rows)[0]
        for rows in ([], [(1, 2, np.nan)], [(1, 1, 1), (5, -7, 1e300)])
        for added in product((np.nan, 0.0, -1e300), repeat=3)
    }
    assert moves == {0.0, 1.0, 2.0, 3.0}
    assert (asked([])[1], asked([], k=4)[1]) == (3.0, 12.0)


@pytest.mark.parametrize("columns", [1, 3, 7])
def test_a_row_more_moves_the_number_of_voters_by_no_more_than_the_sensitivity(columns):
    names = [f"c{j}" for j in range(columns)]

    def asked(rows, k=1):
        codes = np.array(rows, np.int64).reshape(-1, columns).T
        votes = count_votes({(name, "str"): ("ab", c) for name, c in zip(names, codes, strict=True)}, {})
        finder = Finder(Recorder(), rows_per_unit=k)
        return finder.voters(names, votes, 0.5), finder.log.spends[0].sensitivity

    largest, votes = asked([])[1], isqrt(VOTE**2 * columns) + 1  # of the answer, in units
    for rows in ([], [[0] * columns], [[0] * columns, [-1] * (columns - 1) + [1]]):
        for added in ([-1] * columns, [0] * columns, [-1] * (columns - 1) + [0]):
            assert 0 <= votes * (asked([*rows, added])[0] - asked(rows)[0]) <= largest
    assert asked([[0] * columns])[0] == pytest.approx(1, abs=0.01)  # a row with all values is one voter
    assert asked([], k=4)[1] == 4 * largest


def test_few_rows_get_more_for_their_values_and_many_do_not():
    def rhos(rows):
        rng = np.random.default_rng(0)
        table = pd.DataFrame({f"c{j}": rng.choice(list("abcdefgh"), rows) for j in range(4)})
        finder, settings = Finder(SeededGaussian(0)), Settings(1.0)
        open_schema, source = OpenSchema.of(None, table), read_in_batches(table)
        found = discover(open_schema, source, settings, rho=0.016, delta=1e-10, finder=finder)
        assert found.share == pytest.approx(sum(spend.rho for spend in finder.log.spends) / 0.016)
        return [spend.rho / 0.016 for spend in finder.log.spends]

    always = [FOR_SIZE, FOR_COMMON_VALUES]
    assert rhos(20_000) == pytest.approx([*always, FOR_VALUES])
    assert rhos(1_500) == pytest.approx([*always, MOST_FOR_VALUES])
    # Where nothing can be found, nothing more is paid
    assert rhos(40) == pytest.approx([*always, FOR_VALUES])


@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize("columns", [1, 4])
def test_the_ledger_of_discovery_says_what_was_asked(rows, columns):
    table = pd.DataFrame({f"c{j}": ["a"] * 300 for j in range(columns)})
    for j in range(3):
        table[f"n{j}"] = 1900 + j
    open_schema = OpenSchema.of(None, table)
    finder = Finder(Recorder(), rows)
    settings = Settings(1.0, unit="who", rows_per_unit=rows)
    discovered = discover(open_schema, read_in_batches(table), settings, rho=10.0, delta=1e-10, finder=finder)
    spends = finder.log.spends
    rhos = [spend.rho for spend in spends]
    assert rhos == pytest.approx(
        [
            10 * share
            for share in (FOR_SIZE, FOR_COMMON_VALUES, FOR_VALUES, FOR_SIZE, FOR_BOUNDS, FOR_CLOSER_BOUNDS)
        ]
    )
    assert discovered.share == pytest.approx(sum(rhos) / 10)
    assert sum(spend.delta for spend in spends) == pytest.approx(1e-10)
    all_votes = rows * (isqrt(VOTE**2 * columns) + 1)
    sensitivities = [all_votes, rows * VOTE, rows * VOTE, rows * 3, rows * sqrt(3), rows * sqrt(3)]
    assert [spend.sensitivity for spend in spends] == sensitivities
    assert all("c0" in spend.what for spend in spends[:3])
    assert len({spend.what for spend in spends}) == 6


def test_the_noise_of_question_0_is_that_of_its_ledger():
    table = pd.DataFrame({"c": ["a"] * 300, "n": 1900, "m": 2.5})
    noise = StubNoise()
    finder, settings = Finder(noise, 2), Settings(1.0, unit="who", rows_per_unit=2)
    open_schema = OpenSchema.of(None, table)
    discover(open_schema, read_in_batches(table), settings, rho=10.0, delta=1e-10, finder=finder)
    drawn = [sigma for sigma, _ in noise.drawn]
    stated = [spend.sigma for spend in finder.log.spends]
    assert [sigma for sigma, _ in groupby(drawn)] == [sigma for sigma, _ in groupby(stated)]
    assert len(stated) == 7


def test_frequent_numbers_are_counted_in_one_row_of_each_person(monkeypatch):
    """Half of 4,000 persons have 9.50 in three rows, half 12.99: a person who leaves moves one count by 1."""
    persons = np.repeat(np.arange(4000), 3)
    table = pd.DataFrame({"who": persons, "price": np.where(persons % 2, 12.99, 9.5)})
    asked, cells = [], Finder.cells

    def spy(finder, counts, rho, **texts):
        asked.append((finder.rows_per_unit, counts))
        return cells(finder, counts, rho, **texts)

    monkeypatch.setattr(Finder, "cells", spy)
    schema = Schema({"price": Numerical(0, 500, decimals=2)})
    PrivSyn(2.0, schema=schema, unit="who", rows_per_unit=3, seed=0).fit(table)
    (_, on_grids), (rows, exact) = asked
    assert (rows, exact["price"].max(), exact["price"].sum()) == (1, 2000, 4000)
    assert on_grids["price"].sum() > 4000


def test_without_a_table_of_one_row_all_rows_of_a_person_pay_for_frequent_numbers():
    table = pd.DataFrame({"price": np.repeat([12.99, 9.5], 6000)})
    schema = Schema({"price": Numerical(0, 500, decimals=2)})
    finder, rows = Finder(SeededGaussian(0), 3), read_in_batches(table)
    open_schema, settings = OpenSchema.of(schema, table), Settings(2.0, unit="who", rows_per_unit=3)
    discovered = discover(open_schema, rows, settings, rho=0.06, delta=0.0, finder=finder)
    assert [spend.sensitivity for spend in finder.log.spends] == [3.0, 3.0]
    assert discovered.frequent["price"].numbers.tolist() == [9.5, 12.99]
    assert discovered.share == pytest.approx(sum(spend.rho for spend in finder.log.spends) / 0.06)


def test_what_question_0_asks_follows_from_released_answers_alone():
    """Few dates are counted in years: of how many they are, only the noisy number decides."""

    def asked(rows, door):
        days = pd.date_range("2010-01-01", periods=rows, freq="D").to_numpy()
        table = pd.DataFrame({"d": days})
        finder, open_schema = Finder(SeededGaussian(0)), OpenSchema.of(None, table)
        with door():
            discover(open_schema, read_in_batches(table), Settings(1.0), rho=0.0158, delta=0.0, finder=finder)
        return finder.log.spends

    for some, others in ((400, 40_000), (40_000, 400)):
        tape = Tape()
        assert asked(some, tape.record) == asked(others, tape.replay)


def test_a_second_look_that_nothing_wants_is_not_paid_for():
    table = pd.DataFrame({"n": np.arange(1000) % 60})
    discovered = discover(
        OpenSchema.of(None, table),
        read_in_batches(table),
        Settings(1.0),
        rho=10.0,
        delta=0.0,
        finder=(finder := Finder(Recorder())),
    )
    assert (len(finder.log.spends), discovered.share) == (2, FOR_BOUNDS + FOR_SIZE)


def test_nothing_to_find_costs_nothing():
    numbers = pd.DataFrame({"a": [1]})
    public = OpenSchema.of(Schema({"a": Numerical(0, 1)}), numbers)
    finder = Finder(SeededGaussian(0))
    discovered = discover(public, read_in_batches(numbers), Settings(1.0), rho=1.0, delta=0.0, finder=finder)
    assert (finder.log.spends, discovered.share) == ((), 0.0)
    open_, closed = (
        OpenSchema.of(Schema({"a": column}), pd.DataFrame({"a": [1]}))
        for column in (Categorical(), Categorical([1]))
    )
    assert reserved_delta(1e-9, closed) == 0 < reserved_delta(1e-9, open_) < 1e-9
    ledger = PrivSyn(1.0, schema=Schema({"a": Numerical(0, 1)})).fit(pd.DataFrame({"a": [1]})).ledger_
    assert summary(ledger) is None


def test_where_only_bounds_are_looked_for_no_value_is_said_to_be_rare():
    ledger = (
        PrivSyn(1.0, schema=Schema({"a": Numerical()}), seed=0).fit(pd.DataFrame({"a": [7] * 900})).ledger_
    )
    line = summary(ledger)
    assert line is not None
    assert "bounds of a" in line
    assert "rarely" not in line


@pytest.mark.parametrize("delta", [1e-323, 5e-324])
def test_a_delta_of_which_nothing_is_left_is_refused(delta):
    with pytest.raises(InputError, match="delta is too small to find values"):
        PrivSyn(1.0, delta).fit(pd.DataFrame({"a": ["x"] * 5}))


@pytest.mark.parametrize("columns", [1, 9])
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.1])
def test_the_threshold_is_the_lowest_that_keeps_its_delta(columns, rows, delta):
    sigma = 25.0 * VOTE
    enough = threshold(sigma, delta, columns=columns, rows_per_unit=rows)
    chance = columns * rows * norm.sf((enough - rows * VOTE - 0.5) / sigma)
    assert chance <= delta
    assert chance > 0.999 * delta


def releases_with_one_unique(delta, runs, noise):
    """In how many releases a value of one row comes out, beside one that 400 rows share."""
    codes = np.append(np.zeros(400, np.int64), 1)
    seen = 0
    for _ in range(runs):
        values, _ = find_values(
            *asking(name=(["common", "unique"], codes)), rho=0.01, delta=delta, noise=noise
        )
        seen += "unique" in values["name"]
    return seen


def test_a_value_of_one_person_never_appears_at_its_delta():
    assert releases_with_one_unique(1e-10, 2000, ExactGaussian()) == 0


@pytest.mark.slow
def test_a_value_of_one_person_appears_as_often_as_the_threshold_says():
    # Two rounds, each with half of delta: it stays unseen with (1 - delta / 2)^2. With half of the noise, or
    # twice, or the whole delta in each round, this fails.
    delta, runs = 0.3, 3000
    seen = releases_with_one_unique(delta, runs, ExactGaussian())
    assert binomtest(seen, runs, 1 - (1 - delta / 2) ** 2).pvalue > TINY


def test_values_that_enough_rows_share_are_found_in_every_release():
    for _ in range(50):  # 400 votes over a threshold of some 70 with a noise of 8: 40 standard deviations
        values, _ = find_values(
            *asking(name=(["few", "common"], np.append(np.ones(400, np.int64), 0))),
            rho=0.01,
            delta=1e-10,
            noise=ExactGaussian(),
        )
        assert values["name"] == ("common",)


def test_a_release_does_not_depend_on_the_order_of_the_rows():
    codes = np.repeat([0, 1, 2, 3], [300, 200, 200, 1])
    first, _ = find_values(*asking(n=("dcba", codes)), rho=1.0, delta=1e-10, noise=Recorder())
    again, _ = find_values(*asking(n=("abcd", 3 - codes[::-1])), rho=1.0, delta=1e-10, noise=Recorder())
    assert first == again == {"n": ("d", "b", "c")}


def test_votes_go_to_what_is_left():
    # In the first round each value of a row has a vote of 1/2, too little for "rare"; once the other three
    # columns are found, its rows give it all they have.
    rare = ["rare", "usual"], np.repeat([0, 1], [60, 5000])
    others = {f"c{j}": (["x"], np.zeros(5060, np.int64)) for j in range(3)}
    values, _ = find_values(*asking(n=rare, **others), rho=0.05, delta=1e-10, noise=Recorder())
    assert set(values["n"]) == {"rare", "usual"}


def test_the_votes_of_parts_add_up_to_those_of_the_table():
    rng = np.random.default_rng(0)
    columns = {name: (list("abc"), rng.integers(-1, 3, 500)) for name in "xyz"}
    for found in ({}, {("x", "str"): {"a", "c"}}):
        _, whole = asking(**columns)
        parts = [
            asking(**{name: (values, codes[some]) for name, (values, codes) in columns.items()})[1](found)
            for some in (slice(0, 200), slice(200, 201), slice(201, 500), slice(0, 0))
        ]
        kept = deepcopy(parts)
        assert reduce(add_parts, parts) == reduce(add_parts, parts[::-1]) == whole(found)
        assert parts == kept  # a part that is added once more is what it was


def test_a_few_extreme_numbers_do_not_move_the_bounds():
    grid = BoundsGrid.numbers(decimals=0, dtype=np.dtype("float64"))
    ages = np.random.default_rng(0).integers(20, 61, 5000).astype(float)
    for extreme in ([], [1e15], [-1e15, 1e300]):
        counts = counts_of(grid, np.array([*ages, *extreme]))
        noisy, sigma = Finder(SeededGaussian(1)).cells({"age": counts}, 0.005)["age"]
        first, last = extent(noisy, sigma)
        assert (grid.lows[first], grid.highs[last]) == (16, 63)


def bounds_found(numbers):
    """Bounds that are found where there is no noise, but sigma is what it is at epsilon 1."""
    table = pd.DataFrame({"x": numbers})
    open_schema = OpenSchema.of(None, table)
    discovered = discover(
        open_schema, read_in_batches(table), Settings(1.0), rho=0.0158, delta=0.0, finder=Finder(Recorder())
    )
    return discovered.schema.columns["x"].low, discovered.schema.columns["x"].high


def test_a_tail_that_thins_out_goes_on():
    """A power law, of which each doubling holds a third fewer rows; the noise hides 147 rows."""
    some = np.random.default_rng(0)
    pareto = 2.0 ** some.exponential(2.5, 20_000)
    assert (pareto > bounds_found(pareto)[1]).sum() < 100
    assert bounds_found(some.uniform(0, 250, 20_000))[1] == 256


def found_in_noise(numbers, sigma, seeds):
    """Return the share of the numbers inside of the bounds, for each seed of the noise."""
    grid = BoundsGrid.numbers(decimals=None, dtype=np.dtype("float64"))
    inside = []
    for seed in range(seeds):
        noise = np.random.default_rng(seed).normal(0, sigma, len(grid.lows))
        found = extent(np.rint(counts_of(grid, numbers) + noise).astype(np.int64), sigma, zero=grid.zero)
        low, high = grid.span(*found) if found else (np.inf, -np.inf)
        inside.append(np.mean((numbers >= low) & (numbers <= high)))
    return np.array(inside)


def test_standardised_numbers_of_few_rows_are_found_on_both_sides_of_zero():
    """500 rows, noise of 18. With each side alone, bounds held as many rows for 1 of 3 seeds."""
    numbers = np.random.default_rng(0).normal(0, 1, 500)
    assert np.mean(found_in_noise(numbers, 18.0, 100) > 0.85) > 0.95


def test_a_run_far_from_all_others_must_stand_out_more():
    """By chance one of many far cells does, and bounds would be too wide by a factor of thousands."""
    noisy = np.zeros(60, np.int64)
    noisy[30:32] = 900
    for place, count, found in ((36, 50, 36), (40, 50, 31), (40, 65, 40), (20, -1, 31)):
        cells = noisy.copy()
        cells[place] = count
        assert extent(cells, 10.0) == (30, found)


def test_bounds_of_a_skewed_column_begin_at_zero():
    """Of 856 rows with noise of 18, 4 to 10 % lie below the first cell that stands out."""
    numbers = np.random.default_rng(0).lognormal(3, 1, 856)
    found = found_in_noise(numbers, 18.0, 100)
    assert found.min() > 0.8
    assert found.mean() > 0.95
    grades = np.random.default_rng(0).integers(1, 11, 20_000)
    assert bounds_found(grades) == (1, 11)


def test_a_side_of_zero_with_fewer_rows_is_found_by_its_distance():
    numbers = np.random.default_rng(0).normal(5, 10, 856)
    assert np.mean(found_in_noise(numbers, 18.0, 100) > 0.85) > 0.8


def test_bounds_of_a_single_number_hold_the_next_one():
    """Of rare ones among zeros, the noise hides 99."""
    assert bounds_found(np.repeat([0, 1], [9950, 50])) == (0, 1)
    assert bounds_found(np.repeat([0, 1], [50, 9950])) == (0, 1)
    assert bounds_found(np.repeat([0, -1], [50, 9950])) == (-1, 0)
    assert bounds_found(np.repeat([0.0, 250.5], [9950, 50])) == (0, 1)  # a flag of reals may have a rare 1
    assert bounds_found(np.full(1000, 255, np.uint8))[1] == 255


@pytest.mark.slow
def test_few_rows_get_bounds_for_a_larger_share_of_the_budget():
    """400 rows in 20 columns at epsilon 1: with the least share, no bounds are found for most columns."""
    some = np.random.default_rng(0)
    table = pd.DataFrame({f"x{j}": some.normal(50, 10, 400) for j in range(20)})
    model = PrivSyn(1.0, 1e-9, seed=0).fit(table)
    assert len(model.not_found_) <= 2
    assert sum(spend.rho for spend in model.ledger_.spends) == pytest.approx(model.ledger_.budget, rel=1e-6)


def test_numbers_far_from_zero_get_close_bounds():
    some = np.random.default_rng(0)
    assert bounds_found(some.integers(1990, 2021, 20_000)) == (1976, 2031)
    assert bounds_found(47 + some.random(20_000) / 2) == (46.75, 47.75)
    assert bounds_found(-47 - some.random(20_000) / 2) == (-47.75, -46.75)


def test_a_tail_that_few_cells_hold_is_not_cut_off_by_a_second_look():
    heavy, tail = np.full(20_000, 2000), np.random.default_rng(0).integers(1100, 2000, 6_000)
    assert bounds_found(np.concatenate([heavy, tail])) == (1024, 2047)


def test_bounds_of_a_narrow_dtype_are_always_some():
    """Noise alone may stand out in any cell of a grid; none lies beyond the dtype."""
    grid = OpenSchema.of(None, pd.DataFrame({"x": np.zeros(1, "uint8")})).grids["x"]
    assert (grid.lows[0], grid.highs[-1]) == (0, 255)
    grid = OpenSchema.of(None, pd.DataFrame({"x": np.zeros(1, "int8")})).grids["x"]
    assert (grid.lows[0], grid.highs[-1]) == (-128, 127)


def test_where_nothing_stands_out_there_are_no_bounds():
    assert extent(np.array([3, -9, 12]), 10.0) is None


def test_a_cell_next_to_others_counts_with_less():
    assert extent(np.array([0, 0, 25, 25, 900, 0, 30, 30]), 10.0) == (2, 7)
    assert extent(np.array([30, 30, 0, 0, 900, 0, 0, 0]), 10.0) == (4, 4)


@pytest.mark.parametrize("years", [3, 30, 75])
def test_bounds_of_dates_that_are_spread_over_decades_cut_few_of_them(years):
    """Of 20,000 dates with noise of 60 rows, 85 in 100 were beyond the bounds. The seeds are fixed."""
    grid = BoundsGrid.dates("D").by_year()
    usual, cut = np.flatnonzero(~grid.is_rare), []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        days = 20_000 - rng.integers(0, round(365.25 * years), 20_000).astype(float)
        noisy = counts_of(grid, days)[usual] + np.rint(rng.normal(0, 60, len(usual))).astype(np.int64)
        low, high = grid.span(*usual[[*extent_of_dates(noisy, 60.0)]])
        cut.append(np.mean((days < low) | (days > high)))
    assert np.median(cut) < 0.005
    assert max(cut) < 0.02


def test_small_whole_numbers_above_one_are_not_taken_for_a_flag():
    """Of 2,000 numbers 15 in 100 are 2 or 3, and noise of 60 rows hides each of them. The seeds are fixed."""
    grid, beyond = BoundsGrid.numbers(decimals=0, dtype=np.dtype("float64")), []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        numbers = rng.choice(4, 2000, p=[0.6, 0.25, 0.1, 0.05]).astype(float)
        noisy = counts_of(grid, numbers) + np.rint(rng.normal(0, 60, len(grid.lows))).astype(np.int64)
        cells = grid.widened(*extent(noisy, 60.0, zero=grid.zero), noisy, 60.0)
        beyond.append(np.mean(numbers > grid.span(*cells)[1]))
    assert np.median(beyond) == 0
    assert np.mean(np.array(beyond) > 0.02) <= 0.1


def test_rows_that_no_cell_shows_alone_are_found_together():
    """No cell exceeds 4 standard deviations; the sum of all 16 exceeds 8. The seed is fixed."""
    noisy = np.random.default_rng(0).normal(2.0, 0.5, 369)
    noisy[:100] -= 2
    noisy[116:] -= 2
    assert noisy.max() < 4
    assert extent(10 * noisy, 10.0) == (100, 115)


GRIDS = {
    "whole": BoundsGrid.numbers(decimals=0, dtype=np.dtype("float64")),
    "cents": BoundsGrid.numbers(decimals=2, dtype=np.dtype("float64")),
    "real": BoundsGrid.numbers(decimals=None, dtype=np.dtype("float64")),
    "half": BoundsGrid.numbers(decimals=None, dtype=np.dtype("float16")),
    "days": BoundsGrid.dates("D"),
    "seconds": BoundsGrid.dates("s"),
    "byte": BoundsGrid.numbers(decimals=0, dtype=np.dtype("float64"), limits=(-128.0, 127.0)),
    "closer years": BoundsGrid.numbers(decimals=0, dtype=np.dtype("float64")).between(120, 121, step=1.0),
    "closer cents": BoundsGrid.numbers(decimals=2, dtype=np.dtype("float64")).between(100, 101, step=0.01),
    "closer reals": BoundsGrid.numbers(decimals=None, dtype=np.dtype("float64")).between(5, 9, step=None),
}


@pytest.mark.parametrize("grid", GRIDS.values(), ids=GRIDS)
def test_every_number_within_a_grid_lies_in_its_cell(grid):
    assert (np.diff(grid.lows) > 0).all()
    for ends in (grid.lows, grid.highs):
        cells = grid.find(ends)
        assert ((grid.lows[cells] <= ends) & (ends <= grid.highs[cells])).all()
    assert grid.find(np.array([-1e300, 1e300])).tolist() == [0, len(grid.lows) - 1]


def hard_cells():
    """A column of objects of all kinds, in which nothing is common but 1, True and "?"."""
    return (
        [1] * 3
        + [True] * 4
        + [1.0] * 2
        + ["?"] * 5
        + [[1], {}, None, np.nan, 10**400, np.inf, "\ud800", "x" * 10**6, OfNoType()]
    )


def test_equal_values_of_different_types_are_told_apart_until_they_are_released():
    open_schema = OpenSchema.of(Schema({"a": Categorical()}, missing="?"), pd.DataFrame({"a": hard_cells()}))
    held = open_schema.distinct_values(pd.DataFrame({"a": hard_cells()}))
    assert all(type(value).__name__ == kind for (_, kind), (values, _) in held.items() for value in values)
    assert count_votes(held, {}) == {
        ("a", "int"): {1: 3 * VOTE},
        ("a", "bool"): {True: 4 * VOTE},
        ("a", "float"): {1.0: 2 * VOTE},
        ("a", "str"): {"x" * 10**6: VOTE},
    }
    assert count_votes(held, {("a", "int"): {1}})["a", "bool"] == {True: 4 * VOTE}
    listed = open_schema.fill({"a": (True, 1, 1.0)}, {}).columns["a"].values
    assert [(type(value), value) for value in listed] == [(bool, True), (str, "(other)")]


def test_a_category_that_nobody_foresaw_is_no_value():
    cells = pd.Series(["a"] * 3 + [OfNoType()], dtype=object).astype("category")
    open_schema = OpenSchema.of(Schema({"a": Categorical()}), pd.DataFrame({"a": cells}))
    assert count_votes(open_schema.distinct_values(pd.DataFrame({"a": cells})), {}) == {
        ("a", "str"): {"a": 3 * VOTE}
    }


def test_a_value_that_is_found_may_have_the_name_for_all_others():
    open_schema = OpenSchema.of(Schema({"a": Categorical(other="z")}), pd.DataFrame({"a": ["z", "y"]}))
    assert open_schema.fill({"a": ("z", "y")}, {}).columns["a"].values == ("z", "y")


def test_the_pool_never_has_the_name_of_a_value_that_is_found():
    """A real value "other" was counted together with all rare ones."""
    open_schema = OpenSchema.of(Schema({"a": Categorical()}), pd.DataFrame({"a": ["z"]}))
    for found, pool in ((("z", "other"), "(other)"), (("(other)", "z"), "((other))")):
        column = open_schema.fill({"a": found}, {}).columns["a"]
        assert (column.values, column.other) == ((*found, pool), pool)


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (pd.Series(["a"], dtype="object"), ("(other)",)),
        (pd.Series(["a"], dtype="category"), ("(other)",)),
        (pd.Series([3]), (0,)),
        (pd.Series([0.5]), (0,)),
        (pd.Series([True]), (False, True)),
    ],
)
def test_where_no_value_is_found_there_is_still_one(cells, values):
    open_schema = OpenSchema.of(Schema({"a": Categorical()}), pd.DataFrame({"a": cells}))
    assert open_schema.fill({}, {}).columns["a"].values == values


def test_a_name_for_others_that_the_dtype_cannot_hold_is_refused_before_anything_is_spent():
    with pytest.raises(InputError, match="cannot hold the listed value 'rest'"):
        OpenSchema.of(Schema({"a": Categorical(other="rest")}), pd.DataFrame({"a": [1]}))
    with pytest.raises(InputError, match="mark for missing"):
        Schema({"a": Categorical(other="?")}, missing="?")


def test_found_values_have_no_order_of_categories_which_may_come_from_the_rows():
    cells = pd.Series(pd.Categorical(["c", "a", "b"], ordered=True))
    open_schema = OpenSchema.of(Schema({"a": Categorical(other="z")}), pd.DataFrame({"a": cells}))
    assert open_schema.fill({"a": ("c", "a")}, {}).columns["a"].values == ("c", "a", "z")


@pytest.mark.parametrize(
    ("column", "dtype", "extent_of", "bounds"),
    [
        (Numerical(), "uint8", (0.0, 300.0), (0, 255)),
        (Numerical(), "float64", None, (0.0, 1.0)),
        (Numerical(integer=True), "float64", (3.0, 17.0), (3, 23)),
        (Numerical(decimals=1), "float64", (0.3, 1.7), (0.3, 2.3)),
    ],
)
def test_bounds_fit_the_dtype(column, dtype, extent_of, bounds):
    open_schema = OpenSchema.of(Schema({"a": column}), pd.DataFrame({"a": pd.Series([1], dtype=dtype)}))
    cells = {}
    if extent_of:
        cells = {"a": (counts_of(open_schema.grids["a"], np.repeat(extent_of, 1000)), 1.0)}
    found = open_schema.fill({}, open_schema.bounds_of(cells, {}, {})).columns["a"]
    assert (found.low, found.high) == bounds
    assert type(found.low) is type(bounds[0])


def test_dates_of_few_rows_are_found_to_the_year():
    """400 dates of ten years. Counted in months, none were found for any of these seeds."""
    days = pd.Timestamp("2010-01-01") + pd.to_timedelta(np.random.default_rng(0).integers(0, 3650, 400), "D")
    for seed in range(3):
        model = PrivSyn(1.0, seed=seed).fit(pd.DataFrame({"d": days}))
        found = model.release_.codec.schema.columns["d"]
        assert np.mean((days >= found.low) & (days <= found.high)) > 0.7
        assert 2000 < found.low.year < found.high.year < 2030


@pytest.mark.parametrize("unit", ["D", "s"])
def test_years_are_twelve_months(unit):
    numbers = np.random.default_rng(0).integers(-20_000, 20_000, 500) * (1.0 if unit == "D" else 86_400.0)
    table = pd.DataFrame({"d": pd.to_datetime(numbers, unit=unit, origin="unix"), "n": 1.0})
    schema = OpenSchema.of(Schema({"d": Datetime(unit=unit), "n": Numerical()}), table)
    counts = schema.bounds_question(schema.grids).count(table)
    years = schema.by_year(counts)
    assert (years["d"] == counts_of(schema.grids["d"].by_year(), numbers)).all()
    assert (years["n"] == counts["n"]).all()


def test_dates_are_found_to_the_month():
    days = pd.date_range("2014-05-02", "2015-05-27").to_series().sample(4000, replace=True, random_state=0)
    table = pd.DataFrame({"d": days.to_numpy()})
    model = PrivSyn(5.0, seed=0).fit(table)
    found = model.release_.codec.schema.columns["d"]
    assert (str(found.low.date()), str(found.high.date()), found.unit) == ("2014-05-01", "2015-05-31", "D")
    nothing = OpenSchema.of(Schema({"d": Datetime()}), table).fill({}, {}).columns["d"]
    assert (str(nothing.low.date()), str(nothing.high.date())) == ("1970-01-01", "1970-01-31")


def test_what_is_not_found_becomes_other_and_what_is_missing_stays_so():
    table = pd.DataFrame(
        {"town": ["Rome"] * 600 + ["Oslo"] * 500 + [f"u{i}" for i in range(400)] + [None] * 500}
    )
    model = PrivSyn(1.0, schema=Schema({"town": Categorical(other="elsewhere")}), seed=0).fit(table)
    drawn = model.sample(2000, seed=0)["town"].value_counts(dropna=False, normalize=True)
    assert set(drawn.index.dropna()) == {"Rome", "Oslo", "elsewhere"}
    assert drawn["elsewhere"] == pytest.approx(0.2, abs=0.05)
    assert summary(model.ledger_) == (
        "looked for under privacy, for 15% of the budget and 30% of delta: values of town;"
        " a value needs some 100 rows to be found; others are (other), or absent if few"
    )


def test_errors_while_counting_quote_no_cell(monkeypatch):
    table = pd.DataFrame({"a": ["secret"], "b": [1.0]})
    open_schema = OpenSchema.of(None, table)
    grids = open_schema.grids
    asks = (
        ("distinct_cells", open_schema.distinct_values),
        ("BoundsGrid.find", open_schema.bounds_question(grids).count),
    )
    for name, ask in asks:
        with monkeypatch.context() as patch:
            patch.setattr(f"privsyn.table.discovery.open_schema.{name}", lambda *_: 1 / 0)
            with pytest.raises(InputError, match="please report") as raised:
                ask(table)
        assert raised.value.__context__ is None


def test_floor_is_exact():
    assert find._votes([np.zeros(1, np.int64)] * 2).tolist() == [floor(VOTE / sqrt(2))]


def test_the_command_line_says_what_was_found(tmp_path, capsys):
    from privsyn.cli.main import main

    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.integers(18, 60, 3000), "town": rng.choice(["Rome", "Oslo"], 3000)})
    table["town"] = table["town"].where(rng.random(3000) < 0.9, None)
    table.to_csv(tmp_path / "t.csv", index=False)
    assert (
        main(["synth", str(tmp_path / "t.csv"), str(tmp_path / "o.csv"), "--epsilon", "1", "--verbose"]) == 0
    )
    said = capsys.readouterr().out
    assert (
        "looked for under privacy, for 26% of the budget and 30% of delta: values of town; bounds of age"
        in said
    )
    assert set(pd.read_csv(tmp_path / "o.csv")["town"].dropna()) <= {"Rome", "Oslo", "(other)"}


def test_checking_a_schema_passes_over_what_is_to_be_found():
    from privsyn.table.drafting.draft import check_schema

    table = pd.DataFrame({"age": [1, 200], "town": ["a", "b"]})
    assert check_schema(table, Schema({"age": Numerical(), "town": Categorical()}))[0].startswith(
        "nothing to check"
    )
    (line,) = check_schema(table, Schema({"age": Numerical(0, 100), "town": Categorical()}))
    assert "'age': 1 of 2" in line
    (line,) = check_schema(table, Schema({"age": Numerical(), "town": Categorical(["a"], other="z")}))
    assert "become 'z'" in line


def test_a_person_of_many_rows_is_protected_by_question_0_too():
    rng = np.random.default_rng(0)
    who = rng.integers(0, 900, 3000)
    table = pd.DataFrame(
        {"who": who, "town": rng.choice(["Rome", "Oslo"], 3000), "age": rng.integers(20, 60, 3000)}
    )
    ledger = PrivSyn(2.0, unit="who", rows_per_unit=3, seed=0).fit(table).ledger_
    k = ledger.rows_per_unit
    histogram, _, *others = ledger.spends[:6]
    assert histogram.sensitivity == 1
    assert [spend.sensitivity for spend in others] == [k * (VOTE + 1), k * VOTE, k * VOTE, k]
    assert ledger.rho == pytest.approx(ledger.budget, rel=1e-9)
    assert not any("who" in spend.what for spend in ledger.spends[:4])


def test_values_are_not_searched_with_noise_for_which_the_threshold_does_not_hold():
    finder = Finder(SeededLaplace(0))
    with pytest.raises(ValueError, match="needs Gaussian noise"):
        finder.values(("a",), {"a": {"x": 9}}, number=1, rho=1.0, delta=1e-9)
    assert not finder.log.spends


def test_flags_that_are_floats_have_both_values():
    """Where 0 was lost in noise, all rows were 1."""
    grid = BoundsGrid.numbers(decimals=None, dtype=np.dtype("float64"))
    noisy, one = np.zeros(len(grid.lows), np.int64), int(grid.find(np.ones(1))[0])
    noisy[one] = 900
    assert grid.span(*grid.widened(one, one, noisy, 30.0)) == (0.0, 1.5)
    assert grid.span(*grid.widened(grid.zero, one, noisy, 30.0)) == (0.0, 1.5)


def test_the_summary_says_how_many_rows_a_value_needs_at_most():
    """Of four columns a row gives each value half a vote, if none of its values is found."""
    spend = Spend("values of a, b, c, d (round 2 of 2)", 4, float(VOTE), 8.0 * VOTE, 1e-10, "gaussian")
    ledger = RunLedger((spend,), 4.0, 1e-5, "gaussian", "operating system", True, (), "1.0")
    assert "a value needs some 54 to 110 rows to be found; others" in summary(ledger)
