"""Counts are those of the slow twin, whatever the tables, the blocks, the types of codes and the memory."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from strategies import coded_tables

from privsyn.inference.rare_values import merge_rare
from privsyn.marginals import counting
from privsyn.marginals.counting import Packing, Tables, block_of, code_type
from privsyn.marginals.domain import Domain, Records
from privsyn.marginals.marginal import Grouping, Marginal, Measurement
from privsyn.private.rows import CELL, CachedWalk, Rows

DOMAIN = Domain(("a", "b", "c", "d"), (3, 300, 2, 5))
SETS = (("b", "a"), ("c",), ("d", "a", "c"), ("a", "b"), ("c", "d"), ("d", "c", "b", "a"))


def draw(n, domain=DOMAIN, seed=0):
    rng = np.random.default_rng(seed)
    return Records(domain, np.stack([rng.integers(0, size, n) for size in domain.sizes], axis=1))


def blocks_of(records, *ends):
    parts = np.split(records.codes, ends)
    return [block_of(Records(records.domain, part)) for part in parts]


def expected(records, sets=SETS):
    return [reference.count(records, attributes).counts for attributes in sets]


def alike(counts, others):
    return [c.tolist() for c in counts] == [np.asarray(o).tolist() for o in others]


@pytest.mark.slow
@given(records=coded_tables(), data=st.data())
def test_counts_are_those_of_the_twin_and_add_up_over_blocks(records, data):
    names = st.lists(st.sampled_from(records.domain.names), max_size=4, unique=True)
    sets = data.draw(st.lists(names.map(tuple), max_size=5))
    cut = data.draw(st.integers(0, len(records)))
    assert alike(Tables(records.domain, sets).count(blocks_of(records, cut)), expected(records, sets))


@pytest.mark.slow
@given(records=coded_tables(), data=st.data())
def test_codes_are_counted_by_group(records, data):
    sizes = [data.draw(st.integers(1, size)) for size in records.domain.sizes]
    groups = tuple(np.arange(size) % few for size, few in zip(records.domain.sizes, sizes, strict=True))
    merged = Domain(records.domain.names, tuple(sizes))
    codes = [group[column] for group, column in zip(groups, records.codes.T, strict=True)]
    found = Tables(merged, sets := [(name,) for name in merged.names], Grouping(groups)).count(
        [block_of(records)]
    )
    assert alike(found, expected(Records(merged, np.stack(codes, axis=1)), sets))


def test_an_error_in_a_thread_or_in_the_rows_ends_the_count(monkeypatch):
    """Also if it is found while the next block is prepared, or after the last."""

    def fail(*_):
        raise OSError("lost")

    monkeypatch.setattr(counting, "cpu_count", lambda: 2)
    monkeypatch.setattr(counting, "FEW", 0)
    block = block_of(draw(10))
    with pytest.raises(ZeroDivisionError):
        Tables(DOMAIN, SETS).count(1 // n and block for n in (1, 1, 0))
    monkeypatch.setattr(counting, "add_counts", fail)
    for blocks in ([block], [block, block]):
        with pytest.raises(OSError, match="lost"):
            Tables(DOMAIN, SETS).count(blocks)


def test_two_threads_count_as_one(monkeypatch):
    records = draw(3000)
    monkeypatch.setattr(counting, "FEW", 0)
    for cores in (1, 2, 4, 100, None):
        monkeypatch.setattr(counting, "cpu_count", lambda cores=cores: cores)
        assert alike(Tables(DOMAIN, SETS).count([block_of(records)]), expected(records))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "kind"), [(1, "u1"), (256, "u1"), (257, "u2"), (65536, "u2"), (65537, "u4")]
)
def test_codes_are_as_small_as_may_be_and_the_largest_is_counted(size, kind):
    assert code_type(size) == np.dtype(kind)
    domain = Domain(("x", "y"), (size, 2))
    records = Records(domain, np.array([[size - 1, 1], [0, 1]]))
    assert block_of(records)[0].dtype == np.dtype(kind)
    counted = Tables(domain, [("x",), ("y", "x")]).count([block_of(records)])
    assert counted[0].sum() == 2
    assert counted[0][size - 1] >= 1
    assert counted[1][1, size - 1] >= 1


@pytest.mark.parametrize("shape", [(256, 256), (257, 256), (1, 65536), (65536, 1), (2, 32768), (64, 32, 32)])
def test_the_cells_of_a_row_fit_in_two_bytes_or_are_counted_in_more(shape):
    domain, last = Domain(tuple("abc"[: len(shape)]), shape), np.array(shape) - 1
    records = Records(domain, np.vstack([draw(200, domain).codes, last, last]))
    sets = [domain.names, ()]
    assert alike(Tables(records.domain, sets).count([block_of(records)]), expected(records, sets))


# --- the private rows --------------------------------------------------------------------------------------


class Walked:
    """A walk over blocks, which says how often it was gone."""

    def __init__(self, blocks):
        self.blocks, self.times = blocks, 0

    def __call__(self, ask):
        self.times += 1
        return ask(iter(self.blocks))


def merging_of(records):
    """Some codes of the larger attributes in one."""
    one_ways = [
        Measurement(Marginal(m.domain, m.counts), 4.0)
        for m in (reference.count(records, (name,)) for name in records.domain)
    ]
    return merge_rare(tuple(one_ways), float(len(records)))


def test_rows_in_blocks_answer_as_rows_in_memory_before_and_after_merging():
    records = draw(2000)
    rows = Rows(DOMAIN, Walked(blocks_of(records, 7, 7, 1500)), np.inf)
    merging = merging_of(records)
    assert merging.merged != DOMAIN
    assert alike(rows.count(SETS), expected(records))
    once = merging.merge(records)
    assert alike(rows.merge(merging).count(SETS), expected(once))
    again = merging_of(once)
    twice = again.merge(once)
    assert alike(rows.merge(merging).merge(again).count(SETS), expected(twice))


def test_single_attributes_are_counted_once_and_added_up_after_merging():
    records, ones = draw(2000), [(name,) for name in DOMAIN]
    walk = Walked([block_of(records)])
    rows = Rows(DOMAIN, walk, np.inf)
    list(rows.count(ones))
    merging = merging_of(records)
    assert alike(rows.merge(merging).count(ones), expected(merging.merge(records), ones))
    assert walk.times == 1


@pytest.mark.parametrize(
    ("memory", "walks"), [(np.inf, [1, 1]), (CELL * 900, [4, 7]), (CELL * 1800, [2, 3]), (0, [6, 12])]
)
def test_counts_are_the_same_in_little_memory_in_more_walks(memory, walks):
    sets = list(combinations("abcd", 2))  # of 900, 6, 15, 600, 1500 and 10 cells
    records = draw(500)
    walk = Walked([block_of(records)])
    rows, taken = Rows(DOMAIN, walk, memory), []
    for _ in range(2):
        assert alike(rows.count(sets), expected(records, sets))
        taken.append(walk.times)
    assert taken == walks


def test_a_set_asked_twice_is_counted_once():
    records = draw(50)
    rows = Rows.in_memory(records)
    assert alike(rows.count([("a",), ("a",)]), expected(records, [("a",), ("a",)]))
    assert list(rows.count([])) == []


@pytest.mark.parametrize(("room", "walks"), [(np.inf, 1), (3 * 400, 1), (3 * 400 - 1, 3), (0, 3)])
def test_blocks_are_kept_if_all_of_them_fit(room, walks):
    records = draw(400)  # of 5 bytes each, 3 packed
    walk = Walked(blocks_of(records, 100, 300))
    rows = Rows(DOMAIN, CachedWalk(walk, Packing(DOMAIN.sizes), room), 0)
    for _ in range(3):
        assert alike(rows.count([("a", "b")]), expected(records, [("a", "b")]))
    assert walk.times == walks
