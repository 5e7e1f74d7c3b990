"""Blocks of records together hold what they should, and are the same whoever makes them."""

from __future__ import annotations

import threading
from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import reference

from privsyn import Categorical, Identifier, InputError, Numerical, PrivSyn, Release, Schema
from privsyn.marginals.counting import Tables, block_of
from privsyn.marginals.domain import Domain, Records
from privsyn.marginals.marginal import Marginal
from privsyn.methods.methods import METHODS
from privsyn.synthesis import synthesise as blocks
from privsyn.synthesis.synthesise import block_ends, in_blocks, synthesise
from privsyn.synthesis.targets import Targets
from privsyn.table.io.read_in_memory import read_in_memory
from privsyn.table.io.write import write_blocks

DOMAIN = Domain(("a", "b", "c"), (4, 3, 50))


def tables():
    """One-ways and pairs of dependent attributes; the last attribute has rare values."""
    rng = np.random.default_rng(0)
    a = rng.integers(0, 4, 20_000)
    b = np.where(rng.random(20_000) < 0.5, a % 3, rng.integers(0, 3, 20_000))
    c = np.minimum(rng.geometric(0.15, 20_000) + a, 49)
    records = Records(DOMAIN, np.stack([a, b, c], axis=1))
    sets = [(name,) for name in DOMAIN] + list(combinations(DOMAIN.names, 2))
    return tuple(reference.count(records, attributes) for attributes in sets)


LEARNT = tables()


def make(tables, n, rng):
    return synthesise(Targets(tables[:3], tables[3:]), n, rng, sweeps=5)


def faults(made, tables=LEARNT):
    """Mean distance of all pairs from what they should be, in parts of the records."""
    counted = Tables(DOMAIN, [table.attributes for table in tables]).count(map(block_of, made))
    total = counted[0].sum()
    return np.mean(
        [
            np.abs(counts / total - table.counts / table.total).sum() / 2
            for counts, table in zip(counted[3:], tables[3:], strict=True)
        ]
    )


def run(n, rows, seed=0, make=make):
    ends = [round(n * (i + 1) / (n // rows)) for i in range(n // rows)]
    return list(in_blocks(LEARNT, ends, make, np.random.SeedSequence(seed)))


def test_the_blocks_of_a_sample_are_nearly_equal_and_none_is_lost():
    for n in (0, 1, 99_999, 100_001, 1_234_567):
        sizes = np.diff([0, *block_ends(n, 15)])
        assert sizes.sum() == n
        assert sizes.max() - sizes.min() <= 1
    assert len(block_ends(10**6, 3)) == 10
    assert len(block_ends(10**6, 1000)) == 50


def test_together_they_are_nearer_than_each_and_than_with_targets_in_fractions():
    made = run(40_000, 1000)
    alone = [make(LEARNT, 1000, np.random.default_rng(seed)) for seed in range(40)]
    assert [len(block) for block in made] == [1000] * 40
    assert faults(made) < 0.5 * faults(alone)
    assert faults(made) < 0.25 * faults(made[:1])


def test_together_they_are_far_nearer_than_records_drawn_afresh():
    odds = LEARNT[-1].counts.ravel() / LEARNT[-1].total
    drawn = np.random.default_rng(0).multinomial(40_000, odds) / 40_000
    assert faults(run(40_000, 1000)) < 0.25 * np.abs(drawn - odds).sum() / 2


def test_values_too_rare_for_any_block_are_in_the_whole():
    # 3 in 20,000: 0.03 of a block of 200, 6 of all.
    rare = [Marginal(Domain(("a", "b"), (2, 2)), np.array([[9997.0, 3.0], [5000.0, 5000.0]]))]
    rare = [rare[0].project(("a",)), rare[0].project(("b",)), *rare]

    def small(tables, n, rng):
        return synthesise(Targets(tables[:2], tables[2:]), n, rng)

    made = list(in_blocks(tuple(rare), list(range(200, 40_001, 200)), small, np.random.SeedSequence(1)))
    counts = Tables(rare[2].domain, [("a", "b")]).count(map(block_of, made))[0]
    assert np.abs(counts - 2 * rare[2].counts).max() <= 3


def test_no_two_blocks_are_alike():
    first, second, *_ = run(4000, 1000)
    assert (first.codes != second.codes).any()


def test_blocks_have_draws_of_their_own_and_any_may_have_a_rare_cell():
    """Half of 1,000 cells, each of half a record, have one: 500, with a standard deviation of 16."""
    domain, targets, draws = Domain(("a",), (1000,)), [], []

    def watch(tables, n, rng):
        targets.append(tables[0].counts)
        draws.append(rng.random())
        return Records(domain, np.zeros((n, 1), np.int64))

    list(in_blocks((Marginal(domain, np.ones(1000)),), [250, 500], watch, np.random.SeedSequence(0)))
    assert draws[0] != draws[1]
    assert set(np.unique(sum(targets))) == {0, 1}
    assert all(150 < target.sum() < 350 for target in targets)


def test_what_is_made_does_not_depend_on_the_number_of_threads(monkeypatch):
    made = []
    for cores in (1, 2, 7):
        monkeypatch.setattr(blocks, "cpu_count", lambda cores=cores: cores)
        made.append(np.concatenate([block.codes for block in run(9000, 500)]))
    assert (made[0] == made[1]).all()
    assert (made[0] == made[2]).all()
    assert (made[0] != np.concatenate([block.codes for block in run(9000, 500, seed=1)])).any()


def test_a_failure_ends_it_and_so_does_whoever_has_enough():
    def fail(tables, n, rng):
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        run(4000, 500, make=fail)
    some = in_blocks(LEARNT, range(500, 20_001, 500), make, np.random.SeedSequence(0))
    next(some)
    some.close()


def test_tables_that_contradict_each_other_do_not_drive_blocks_away():
    # One table says that a and b agree, the other that they differ: every block is as bad as the first.
    domain = Domain(("a", "b"), (2, 2))
    same, other = Marginal(domain, np.diag([50.0, 50.0])), Marginal(domain, 50 - np.diag([50.0, 50.0]))
    one_ways = (same.project(("a",)), same.project(("b",)))

    def torn(tables, n, rng):
        return synthesise(Targets(tables[:2], tables[2:]), n, rng)

    made = list(in_blocks((*one_ways, same, other), range(100, 8001, 100), torn, np.random.SeedSequence(0)))
    for block in (made[0], made[-1]):
        assert np.abs(reference.count(block, ("a",)).counts - 50).max() <= 5


# --- samples -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.integers(0, 30, 3000), "y": rng.choice(["p", "q"], 3000)})
    table["z"] = np.where(rng.random(3000) < 0.8, table["y"], "q")
    schema = Schema(
        {"x": Numerical(0, 29, integer=True), "y": Categorical(["p", "q"]), "z": Categorical(["p", "q"])}
    )
    return PrivSyn(2.0, 1e-9, schema, seed=0).fit(table)


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "MOST_ROWS", 1000)
    monkeypatch.setattr(blocks, "LEAST_ROWS", 1000)


@pytest.mark.parametrize("method", ["default", "published"])
def test_a_sample_is_its_blocks(model, method, small_blocks):
    release = Release.of_table(replace(model.release_.table(), method=METHODS[method]))
    told = []
    parts = list(release.sample_blocks(5300, seed=2, progress=lambda *step: told.append(step)))
    assert [len(part) for part in parts] == [1060] * 5
    pd.testing.assert_frame_equal(pd.concat(parts, ignore_index=True), release.sample(5300, seed=2))
    assert told[:6] == [("synthesising", done, 5) for done in range(6)]


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet"])
def test_blocks_are_written_as_one_table(model, ending, small_blocks, tmp_path):
    path = tmp_path / f"out.{ending}"
    assert write_blocks(model.sample_blocks(2500, seed=2), path) == (2500, 3)
    written = read_in_memory(path, model.schema).frame.astype({"x": "int64"})
    pd.testing.assert_frame_equal(written, model.sample(2500, seed=2))
    if ending == "parquet":
        assert pq.ParquetFile(path).num_row_groups == 2


def test_a_column_that_is_missing_in_the_first_block_may_hold_text_in_the_next(tmp_path):
    parts = [pd.DataFrame({"a": pd.Series(cells, dtype=object)}) for cells in ([None, None], ["x", None])]
    write_blocks(iter(parts), tmp_path / "t.parquet")
    assert pq.read_table(tmp_path / "t.parquet")["a"].to_pylist() == [None, None, "x", None]
    with pytest.raises(InputError, match="mixes types"):
        write_blocks(iter([parts[1], parts[1].assign(a=[1, 2])]), tmp_path / "u.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["t.parquet"]


def test_identifiers_go_on_from_block_to_block(small_blocks, tmp_path):
    table = pd.DataFrame({"x": [0, 1] * 50, "who": "n1", "key": 7})
    schema = Schema({"x": Categorical([0, 1]), "who": Identifier("n{}"), "key": Identifier()})
    model = PrivSyn(1.0, 1e-9, schema, seed=0).fit(table)
    sample = pd.concat(model.sample_blocks(3000))
    assert sample["key"].tolist() == list(range(1, 3001))
    assert sample["who"].tolist() == [f"n{number}" for number in range(1, 3001)]


def test_what_is_broken_off_leaves_nothing(model, small_blocks, tmp_path):
    def broken():
        yield next(model.sample_blocks(2500, seed=2))
        raise KeyboardInterrupt

    for name in ("t.csv", "t.parquet"):
        with pytest.raises(KeyboardInterrupt):
            write_blocks(broken(), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_two_blocks_are_made_at_once(monkeypatch):
    """Threads that wait for each other never end if one begins after the other."""
    monkeypatch.setattr(blocks, "cpu_count", lambda: 2)
    domain, both = Domain(("a",), (2,)), threading.Barrier(2, timeout=20)

    def make(tables, n, rng):
        both.wait()
        return Records(domain, np.arange(n).reshape(-1, 1) % 2)

    tables = (Marginal(domain, np.array([3.0, 3.0])),)
    made = in_blocks(tables, [3, 6], make, np.random.SeedSequence(0))
    assert [len(block) for block in made] == [3, 3]
