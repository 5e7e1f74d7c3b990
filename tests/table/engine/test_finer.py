"""Several tables of counts from one scan: each is covered once, and is what a count of the rows gives."""

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privsyn.marginals.counting import Tables
from privsyn.marginals.domain import Domain
from privsyn.table.engine.engine import Engine
from privsyn.table.engine.engine_table import CodedTable, coverings

NAMES = "abcdef"
SETS = st.lists(st.sets(st.sampled_from(NAMES), min_size=1, max_size=4).map(sorted).map(tuple), unique=True)
SIZES = st.lists(st.integers(1, 9), min_size=6, max_size=6)


@given(SETS, SIZES, st.integers(1, 3000), st.integers(1, 5))
def test_each_set_is_covered_once_by_a_table_that_is_not_too_large(sets, sizes, finest, limit):
    size_of = dict(zip(NAMES, sizes, strict=True))
    covered = []
    for names, indices in coverings(sets, size_of, finest, limit):
        assert all({*sets[index]} <= {*names} for index in indices)
        assert 1 <= len(indices) <= limit
        largest = max(np.prod([size_of[name] for name in attributes]) for attributes in sets)
        assert np.prod([size_of[name] for name in names]) <= max(finest, largest)
        covered += indices
    assert sorted(covered) == list(range(len(sets)))


class Counted:
    """A backend of DuckDB with the statements that it gets."""

    name = "duckdb"

    def __init__(self, rows):
        self.sent, self.con = [], duckdb.connect()
        self.con.register("arrow_rows", rows)
        self.con.execute("CREATE TABLE codes AS FROM arrow_rows")

    def raw_sql(self, statement):
        self.sent.append(statement)
        return self.con.execute(statement)


@pytest.fixture(scope="module")
def coded():
    """Return coded rows in DuckDB, their domain, and a block of them."""
    import pyarrow as pa

    domain = Domain(tuple(NAMES), (2, 9, 7, 1, 40, 300))
    rng = np.random.default_rng(0)
    block = tuple((rng.random(2000) ** 2 * size).astype(np.uint16) for size in domain.sizes)
    return Counted(pa.table(dict(zip(NAMES, block, strict=True)))), domain, block


@settings(max_examples=25, deadline=None)
@given(SETS.filter(len))
def test_tables_that_share_a_scan_are_those_of_the_rows(coded, sets):
    from sqlglot import exp

    backend, domain, block = coded
    table = CodedTable(Engine(backend), exp.to_table("codes"), dict(zip(NAMES, NAMES, strict=True)))
    tables = Tables(domain, sets)
    for counted, expected in zip(table.count(tables), tables.count([block]), strict=True):
        assert np.array_equal(counted, expected)


def test_all_pairs_of_small_columns_take_one_scan(coded):
    from sqlglot import exp

    backend, domain, _ = coded
    backend.sent.clear()
    table = CodedTable(Engine(backend), exp.to_table("codes"), dict(zip(NAMES, NAMES, strict=True)))
    table.count(Tables(domain, [("a", "b"), ("b", "a"), ("a", "c"), ("b", "c"), ("c", "d")]))
    (statement,) = backend.sent
    assert statement.count("FROM codes") == 1
