"""The gradual update method: it comes nearer to its tables and gives back the best it met."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import coded_tables

from privsyn.marginals.domain import Domain, Records
from privsyn.marginals.marginal import Marginal
from privsyn.methods.paper.gum import gradually_update
from privsyn.methods.paper.parameters import PAPER, Parameters
from privsyn.synthesis.synthesise import independent_start

DOMAIN = Domain(tuple("abc"), (3, 2, 4))
seeds = st.integers(0, 2**32 - 1)
some_sets = st.lists(
    st.sampled_from([pair for k in (1, 2, 3) for pair in combinations("abc", k)]), max_size=4, unique=True
)


def error(records, tables):
    return sum(reference.distance(records, table) for table in tables)


def cycle(n=1000, scale=1.0):
    """Start and tables of a - b - c - d - a: each attribute copies the one before, mostly."""
    rng = np.random.default_rng(0)
    columns = [rng.integers(0, 4, n)]
    for _ in range(3):
        columns.append(np.where(rng.random(n) < 0.3, rng.integers(0, 4, n), columns[-1]))
    records = Records(Domain(tuple("abcd"), (4,) * 4), np.stack(columns, axis=1))
    tables = [reference.count(records, (a, b)) for a, b in ("ab", "bc", "cd", "da")]
    tables = tuple(Marginal(table.domain, table.counts * scale) for table in tables)
    one_ways = tuple(reference.count(records, (name,)) for name in records.domain)
    return independent_start(records.domain, one_ways, n, rng), tables


@pytest.mark.slow
@settings(deadline=None, max_examples=50)
@given(coded_tables(DOMAIN), coded_tables(DOMAIN).filter(len), some_sets, seeds)
def test_it_never_ends_farther_off_than_it_began(begun, aimed_at, sets, seed):
    tables = tuple(reference.count(aimed_at, attributes) for attributes in sets)
    before = begun.codes.copy()
    ended = gradually_update(begun, tables, np.random.default_rng(seed), parameters=Parameters(5))
    assert (ended.domain, len(ended)) == (DOMAIN, len(begun))
    assert np.array_equal(begun.codes, before)
    if len(begun):
        assert error(ended, tables) <= error(begun, tables) + 1e-9


@pytest.mark.slow
def test_of_all_it_met_the_best_is_returned():
    """Full steps move the rows back and forth, and a worse state is not returned."""
    begun, tables = cycle()
    met = []
    for rounds in range(16):
        parameters = Parameters(rounds, step=5.0)
        ended = gradually_update(begun, tables, np.random.default_rng(1), parameters=parameters)
        met.append(error(ended, tables))
    assert met == sorted(met, reverse=True)
    assert met[0] == error(begun, tables)


@pytest.mark.parametrize("scale", [1.0, 0.01, 1234.5])
def test_the_tables_of_a_cycle_are_nearly_met_whatever_they_sum_to(scale):
    begun, tables = cycle(scale=scale)
    ended = gradually_update(begun, tables, np.random.default_rng(1))
    assert error(ended, tables) < 0.05 * error(begun, tables)


def test_a_single_table_is_met_exactly():
    begun, tables = cycle()
    ended = gradually_update(begun, tables[:1], np.random.default_rng(1), parameters=Parameters(20))
    assert error(ended, tables[:1]) == 0


def test_progress_is_told_round_by_round():
    begun, tables = cycle()
    told = []
    gradually_update(
        begun,
        tables,
        np.random.default_rng(1),
        parameters=Parameters(3),
        progress=lambda *report: told.append(report),
    )
    assert told == [("synthesising", 1, 3), ("synthesising", 2, 3), ("synthesising", 3, 3)]


def test_where_rows_are_only_copied_none_is_new():
    begun, tables = cycle()
    ended = gradually_update(begun, tables, np.random.default_rng(1), parameters=Parameters(3, duplication=1))
    assert {tuple(row) for row in ended.codes} <= {tuple(row) for row in begun.codes}


def test_the_published_schedules():
    assert [PAPER.step_of(t) for t in (0, 19, 20, 40)] == [1.0, 1.0, 0.84, 0.84**2]
    assert [PAPER.copied_in(t) for t in range(4)] == [0.5, 1.0, 0.5, 1.0]
