"""Rules by brute force: the cells they leave, and that mending stays among what the release told."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from privsyn.table.encoding.grid import Grid
from privsyn.table.enforcement.allowed import AllowedRule
from privsyn.table.enforcement.forbidden import ForbiddenRule
from privsyn.table.enforcement.increasing import IncreasingRule
from privsyn.table.schema.box import Span
from privsyn.table.schema.draws import Cells, DrawnRows

NAMES = ("a", "b", "c")


def test_a_missing_code_that_no_record_gets_opens_no_cell():
    """Its code joins that of a value, with a share of 0: the masks are those without missing cells."""
    places, some = np.array([0.0, 1.0, np.nan]), np.array([0, 1, 1])
    dropped = Cells(places, places, None, some, np.array([1.0, 1.0, 0.0]))
    strict = Cells.unmerged(places[:2], places[:2], None)
    rules = (
        AllowedRule(("a", "b"), np.array([[0.0, 0.0], [1.0, 1.0]])),
        ForbiddenRule({name: Span(np.array([1.0]), np.array([1.0]), missing=False) for name in "ab"}),
    )
    for rule in rules:
        assert np.array_equal(rule.possible([dropped, dropped]), rule.possible([strict, strict]))
        assert not rule.possible([dropped, dropped]).all()


seeds = st.integers(0, 2**32 - 1)


@st.composite
def ordered(draw):
    """Whole numbers in bins of several, merged in runs; missing is by itself."""
    low = draw(st.integers(-2, 3))
    grid = Grid.exact(low, low + draw(st.integers(0, 5)), decimals=0, bins=draw(st.integers(1, 4)))
    lows, highs = grid.extents
    steps = draw(st.lists(st.integers(0, 1), min_size=len(lows) - 1, max_size=len(lows) - 1))
    groups = np.cumsum([0, *steps])
    if draw(st.booleans()):
        lows, highs = np.append(lows, np.nan), np.append(highs, np.nan)
        groups = np.append(groups, groups[-1] + 1)
    return Cells(lows, highs, grid, groups, np.ones(len(lows)))


@st.composite
def listed(draw):
    """Listed values, merged in any way, missing too."""
    size, nullable = draw(st.integers(1, 4)), draw(st.booleans())
    places = np.append(np.arange(size, dtype=float), [np.nan] * nullable)
    said = draw(st.lists(st.integers(0, 2), min_size=len(places), max_size=len(places)))
    groups = np.unique(said, return_inverse=True)[1]
    return Cells(places, places, None, groups, np.ones(len(places)))


def several(kind, least=2):
    return st.lists(kind, min_size=least, max_size=3)


def numbers_of(cells):
    """Every number of a column, and the merged code of each."""
    codes = [
        np.arange(low, high + 1) if low == low else [np.nan]
        for low, high in zip(cells.lows, cells.highs, strict=True)
    ]
    return np.concatenate(codes), np.repeat(cells.groups, [len(code) for code in codes])


def left(rule, cells):
    """The cells in which some row keeps the rule."""
    found = np.zeros([c.merged for c in cells], bool)
    columns = [numbers_of(c) for c in cells]
    rows = list(product(*(range(len(numbers)) for numbers, _ in columns)))
    at = np.array(rows).T
    numbers = {name: column[0][place] for name, column, place in zip(NAMES, columns, at, strict=False)}
    np.logical_or.at(
        found, tuple(c[1][place] for c, place in zip(columns, at, strict=True)), rule.holds(numbers)
    )
    return found


@st.composite
def spans(draw, cells):
    """A range, or some values; the values of an ordered column that are not apart are no range."""
    low, high = sorted(draw(st.tuples(st.integers(-3, 6), st.integers(-3, 6))))
    if draw(st.booleans()) or cells.grid is not None:
        low = draw(st.sampled_from([low, -np.inf]))
        return Span(np.array([float(low)]), np.array([float(high)]), missing=draw(st.booleans()))
    values = np.array(sorted(draw(st.sets(st.integers(0, 3)))), float)
    return Span(values, values, missing=draw(st.booleans()))


@given(several(ordered() | listed(), least=1), st.data())
def test_a_combination_leaves_the_cells_that_a_row_outside_it_has(cells, data):
    rule = ForbiddenRule({name: data.draw(spans(c)) for name, c in zip(NAMES, cells, strict=False)})
    assert np.array_equal(rule.possible(cells), left(rule, cells))


@st.composite
def listings(draw, cells):
    numbers = [[n for n in numbers_of(c)[0].tolist() if n == n] for c in cells]
    rows = draw(st.lists(st.tuples(*map(st.sampled_from, numbers)), min_size=1, max_size=5, unique=True))
    return AllowedRule(NAMES[: len(cells)], np.array(rows, float))


@given(several(ordered() | listed(), least=1), st.data())
def test_a_list_leaves_the_cells_of_what_it_lists_and_of_missing(cells, data):
    rule = data.draw(listings(cells))
    assert np.array_equal(rule.possible(cells), left(rule, cells))


@given(several(ordered()), st.booleans())
def test_an_order_leaves_the_cells_that_a_row_in_order_has(cells, strict):
    """Exactly; but of three that rise strictly within narrow groups it may leave one too many."""
    rule = IncreasingRule(dict.fromkeys(NAMES[: len(cells)], 1.0), strict)
    possible, some = rule.possible(cells), left(rule, cells)
    assert (possible >= some).all()
    if not strict or len(cells) == 2:
        assert np.array_equal(possible, some)


def drawn(cells, seed, n=40):
    """Rows drawn from codes at random."""
    rng = np.random.default_rng(seed)
    codes = {name: rng.integers(len(c.lows), size=n) for name, c in zip(NAMES, cells, strict=False)}
    numbers = {}
    for (name, code), c in zip(codes.items(), cells, strict=True):
        numbers[name] = np.floor(c.lows[code] + rng.random(n) * (c.highs[code] - c.lows[code] + 1))
    return DrawnRows(numbers, codes, dict(zip(NAMES, cells, strict=False)))


def stays(rule, cells, seed):
    """Of each row whether its numbers are in their groups still, and these; no row comes to break it."""
    rows = drawn(cells, seed)
    kept = rule.holds(rows.numbers)
    rule.repair(rows, np.flatnonzero(~kept), np.random.default_rng(seed))
    assert (rule.holds(rows.numbers) >= kept).all()
    groups = [(rows.merged(name, slice(None)), rows.cells[name]) for name in rule.columns]
    merged = tuple(group for group, _ in groups)
    same = [
        c.groups[c.find(rows.numbers[name])] == group
        for name, (group, c) in zip(rule.columns, groups, strict=True)
    ]
    return np.all(same, axis=0), merged


@given(several(ordered()), st.booleans(), seeds)
def test_mending_an_order_stays_in_the_groups_of_each_row(cells, strict, seed):
    same, _ = stays(IncreasingRule(dict.fromkeys(NAMES[: len(cells)], 1.0), strict), cells, seed)
    assert same.all()


@given(several(ordered() | listed(), least=1), st.data(), seeds)
def test_mending_a_combination_stays_in_the_groups_of_each_row(cells, data, seed):
    rule = ForbiddenRule({name: data.draw(spans(c)) for name, c in zip(NAMES, cells, strict=False)})
    assert stays(rule, cells, seed)[0].all()


@given(several(ordered() | listed(), least=1), st.data(), seeds)
def test_mending_by_a_list_stays_in_the_groups_of_each_row_that_it_lists(cells, data, seed):
    rule = data.draw(listings(cells))
    same, merged = stays(rule, cells, seed)
    has_one = np.zeros([c.merged for c in cells], bool)
    has_one[tuple(c.groups[c.find(rule.rows[:, j])] for j, c in enumerate(cells))] = True
    assert same[has_one[merged]].all()
