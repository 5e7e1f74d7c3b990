"""On a cluster the same codec and kernel count: the release is that of the rows in memory, bit for bit."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import warnings

import pandas as pd
import pytest
from command import CLUSTER, forkserver
from table.io.test_read_in_batches import KNOWN, OPEN, complaint, rows, saved

from privsyn import Categorical, PrivSyn, Schema
from privsyn.methods.reading import coded
from privsyn.table.codec.codec import Codec
from privsyn.table.io.dask_source import PARTS
from privsyn.table.io.read_in_batches import read_in_batches

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.slow("each case")  # the cluster takes seconds

FORKED = {"distributed.worker.multiprocessing-method": "forkserver"}


@pytest.fixture(scope="module")
def cluster():
    """Two processes on this machine, forked from one that has imported what they need."""
    with warnings.catch_warnings(action="ignore"), dask.config.set(FORKED):
        distributed.utils.get_mp_context()  # else it would change what is imported first
        forkserver(*CLUSTER)
        with (
            distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None) as workers,
            distributed.Client(workers) as client,
        ):
            yield client


def in_parts(table, parts):
    return dd.from_pandas(table, npartitions=parts, sort=False)


@pytest.mark.parametrize(("memory", "times"), [("2GB", [1, 1, 1]), ("20 kB", [1, 2, 1]), (0, [4, 4, 4])])
def test_a_part_whose_codes_fit_in_its_share_of_half_the_memory_is_made_once(memory, times):
    """Of 20 kB each of three parts may keep 3,333 bytes; a row takes 6. With 0, each table is a walk."""
    made = []

    def part(place, rows):
        made.append(place)
        return rows

    table = pd.DataFrame({f"c{j}": [0, 199] * 450 for j in range(6)})
    ends = [0, 100, 800, 900]
    parts = [dask.delayed(part)(k, table[a:b]) for k, (a, b) in enumerate(itertools.pairwise(ends))]
    frame = dd.from_delayed(parts, meta=table[:0], verify_meta=False)
    schema = Schema({name: Categorical(list(range(200)), nullable=False) for name in table})
    codec = Codec.for_table(schema, table, fine=True)
    found = coded(read_in_batches(frame), codec, memory)
    sets = [("c0",), ("c1",)], [("c2",), ("c3",)]
    counts = [[count.tolist() for count in found.count(of)] for of in sets]
    whole = coded(read_in_batches(table), codec, "2GB")
    assert counts == [[count.tolist() for count in whole.count(of)] for of in sets]
    assert [made.count(k) for k in range(3)] == times


@pytest.mark.slow("each case")
@pytest.mark.parametrize(("schema", "parts"), [(KNOWN, 1), (OPEN, 5)])
def test_parts_on_a_cluster_give_the_same_release(schema, parts, cluster, tmp_path):
    table = in_parts(rows().drop(columns="person"), parts)
    expected = saved(table.compute(), tmp_path, schema)
    assert saved(table, tmp_path, schema, memory=0) == expected
    assert saved(table, tmp_path, schema) == expected


def test_the_rows_of_a_person_are_bounded_over_all_parts(cluster, tmp_path):
    table, settings = in_parts(rows(), 4), {"unit": "person", "rows_per_unit": 2}
    assert saved(table, tmp_path, **settings) == saved(table.compute(), tmp_path, **settings)


def test_no_warning_tells_how_much_was_sent(cluster):
    """With `unit` it grows with the rows; here a warning is an error, and the run would be refused."""
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 B"}):
        PrivSyn(1.0, 1e-9, KNOWN, unit="person", rows_per_unit=2).fit(in_parts(rows(), 2))


@pytest.mark.slow
def test_threads_without_a_cluster_are_asked_too():
    """In a process of its own, where nothing has imported Dask's cluster and set what it needs."""
    run = (
        "import dask.dataframe as dd, pandas as pd; from privsyn import PrivSyn\n"
        "table = dd.from_pandas(pd.DataFrame({'a': [0, 1] * 50}), npartitions=2)\n"
        "for _ in range(2): PrivSyn(1.0, 1e-9).fit(table)\n"
        "import distributed; print(distributed.config['distributed']['comm'] is not None)"
    )
    said = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, check=False)
    assert said.stdout == "True\n", said.stderr


def test_a_part_that_fails_is_one_line_that_does_not_quote_it(cluster):
    def fail(part):
        raise ValueError("secret")

    table = rows().drop(columns="person")
    failing = in_parts(table, 3).map_partitions(fail, meta=table[:0])
    assert complaint(failing).startswith("a part of the table could not be counted")


def test_a_killed_worker_changes_nothing(cluster, tmp_path):
    table = in_parts(rows().drop(columns="person"), 6)
    before = saved(table.compute(), tmp_path)
    os.kill(next(iter(cluster.run(os.getpid).values())), signal.SIGKILL)
    assert saved(table, tmp_path) == before


# --- each part must be what is announced -------------------------------------------------------------------

LARGE = 2**60 + 1  # as a double it is another number
TOWNS = pd.DataFrame({"who": [LARGE, 5], "town": ["a", "b"]})


def of_parts(*parts):
    """A frame whose parts are made by a function, so that Dask believes them to be like the first."""
    return dd.from_map(lambda part: part, list(parts), meta=parts[0][:0])


@pytest.mark.parametrize(
    "other",
    [
        TOWNS.assign(who=[LARGE, None]),  # in floats, for want of an identifier
        TOWNS.assign(who=["5", "6"]),
        TOWNS[["town", "who"]],
        TOWNS.assign(more=1),
        TOWNS[["who"]],
    ],
)
def test_a_part_with_other_columns_or_dtypes_than_announced_is_refused(other):
    """Else one missing cell would take the identifiers beyond 2^53 from all rows of its part."""
    with dask.config.set(scheduler="sync"):
        schema = Schema({"town": Categorical(["a", "b"])})
        bounded = {"unit": "who", "rows_per_unit": 1}
        assert "announced" in complaint(of_parts(TOWNS, other), schema, **bounded)
        assert "announced" in complaint(of_parts(TOWNS, other), None)
        model = PrivSyn(1.0, 1e-9, schema, **bounded).fit(of_parts(TOWNS, TOWNS))
    assert PARTS in model.ledger_.public_inputs


def category(cells, **settings):
    return pd.DataFrame({"x": pd.Series(cells, **settings).astype("category")})


def test_categories_of_another_type_in_one_part_are_refused():
    """Else 2.5 in one row would make 1.0 of each 1 in its part, and move the votes of all."""
    whole, odd = category([1, 2] * 50), category([1, 2] * 50 + [2.5])
    with dask.config.set(scheduler="sync"):
        assert "announced" in complaint(of_parts(whole, odd), None)
        PrivSyn(1.0, 1e-9).fit(of_parts(whole, category([1, 3] * 50)))  # which they are is no matter


def test_categories_that_dask_does_not_know_are_refused(cluster, tmp_path):
    for place, cells in enumerate(([1, 2] * 50, [1, 3] * 50)):
        category(cells).to_parquet(tmp_path / f"{place}.parquet")
    read = dd.read_parquet(tmp_path)
    assert "call .cat.as_known()" in complaint(read, None)
    known = read.assign(x=read["x"].cat.as_known())
    assert saved(known, tmp_path, None) == saved(known.compute(), tmp_path, None)
