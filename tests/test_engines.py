"""On a cluster the same codec and kernel count: the release is that of the rows in memory, bit for bit."""

from __future__ import annotations

import os
import signal
import warnings

import pytest
from test_stream import KNOWN, OPEN, complaint, rows, saved

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def cluster():
    """Two processes on this machine."""
    with (
        warnings.catch_warnings(action="ignore"),
        distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None) as workers,
        distributed.Client(workers) as client,
    ):
        yield client


def in_parts(table, parts):
    return dd.from_pandas(table, npartitions=parts, sort=False)


@pytest.mark.parametrize("parts", [1, 4, 5])
@pytest.mark.parametrize("schema", [KNOWN, OPEN], ids=["known", "open"])
def test_parts_on_a_cluster_give_the_same_release(schema, parts, cluster, tmp_path):
    table = in_parts(rows().drop(columns="person"), parts)
    assert saved(table, tmp_path, schema, memory=0) == saved(table.compute(), tmp_path, schema)


def test_the_rows_of_a_person_are_bounded_over_all_parts(cluster, tmp_path):
    table, settings = in_parts(rows(), 4), {"unit": "person", "rows_per_unit": 2}
    assert saved(table, tmp_path, **settings) == saved(table.compute(), tmp_path, **settings)


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
