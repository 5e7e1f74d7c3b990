"""Tables, views and queries of DuckDB: run once, and closed when a run ends."""

from __future__ import annotations

import pytest

from privsyn.table.io.read_in_batches import read_in_batches

duckdb = pytest.importorskip("duckdb")

QUERY = "select range as place, random() as odd, 'x' as town from range(300)"


@pytest.fixture
def base(tmp_path):
    path = tmp_path / "t.duckdb"
    with duckdb.connect(str(path)) as made:
        made.execute("create table people as select range as place, 'x' as town from range(300)")
        made.execute("create table others as select 1 as place")
        made.execute(f"create view odd as {QUERY}")
    return path


@pytest.mark.parametrize("inside", ["odd", QUERY, "from odd"])
def test_a_view_or_query_is_run_once_for_all_walks(base, inside):
    """Else each walk could see other rows, and an answer could move by more than its sensitivity."""
    source = read_in_batches(f"{base}::{inside}")
    first, second = (
        list(source.results(lambda frames: [frame.copy() for frame in frames])[0]) for _ in range(2)
    )
    alone = source.only("odd").column("odd")
    cells = [[cell for frame in frames for cell in frame["odd"]] for frames in (first, second)]
    assert cells[0] == cells[1] == alone.tolist()
    assert len(set(cells[0])) > 290
