"""After a run that failed no file is open, although the error is kept: a database would stay locked."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from privsyn import Categorical, Database, InputError, Numerical, PrivSyn, Schema, Table, evaluate
from privsyn.table.codec.codec import Codec
from privsyn.table.drafting.draft import draft_schema

OPEN = Path("/proc/self/fd")
ROWS = 300_000  # several batches, so that a walk can end in the middle
PEOPLE = pd.DataFrame({"age": np.arange(ROWS) % 100, "sex": ["f", "m"] * (ROWS // 2)})
SCHEMA = Schema({"age": Numerical(0, 99, integer=True), "sex": Categorical(["f", "m"])})
OTHER = Schema({"age": Numerical(0, 99), "size": Numerical(0, 9)})
PLACES = [
    "t.csv",
    "t.csv.gz",
    "t.parquet",
    "t.sqlite",
    "t.xlsx",
    "t.dta",
    "t.duckdb",
    "t.duckdb::from people",
]


class StoppedError(Exception):
    """Stops a run."""


def stop(*_):
    raise StoppedError


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("open")
    PEOPLE.to_csv(folder / "t.csv", index=False)
    PEOPLE.to_csv(folder / "t.csv.gz", index=False, compression={"method": "gzip", "compresslevel": 1})
    PEOPLE.to_parquet(folder / "t.parquet", row_group_size=50_000)
    with closing(sqlite3.connect(folder / "t.sqlite")) as base, base:
        PEOPLE.to_sql("people", base, index=False)
    if find_spec("openpyxl"):
        PEOPLE[:5000].to_excel(folder / "t.xlsx", index=False)
    if find_spec("pyreadstat"):
        PEOPLE[:5000].to_stata(folder / "t.dta", write_index=False)
    if find_spec("duckdb"):
        import duckdb

        with duckdb.connect(str(folder / "t.duckdb")) as base:
            base.register("frame", PEOPLE)
            base.execute("create table people as from frame")
    return folder


def opened(folder):
    """Return the files in a folder that this process has open."""
    found = set()
    for link in OPEN.iterdir():
        with suppress(OSError):
            found.add(str(link.readlink()))
    return sorted(path.name for path in folder.iterdir() if str(path) in found)


@pytest.mark.skipif(not OPEN.exists(), reason="the system does not list open files")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("why", ["columns", "measuring", "rows", "none"])
def test_no_file_is_open_after_a_run(place, why, folder, monkeypatch):
    if not (folder / place.partition("::")[0]).exists():
        pytest.skip("its library is not installed")
    model = PrivSyn(
        1.0,
        schema=OTHER if why == "columns" else SCHEMA,
        progress=(lambda stage, *_: stop() if stage == "measuring" else None) if why == "measuring" else None,
    )
    if why == "rows":
        monkeypatch.setattr(Codec, "encode", stop)
    kept = None
    try:
        model.fit(f"{folder}/{place}")
    except (InputError, StoppedError) as error:
        kept = error
    assert (kept is None) is (why == "none")
    assert opened(folder) == []


def test_a_database_of_duckdb_can_be_written_to_after_a_run_that_was_refused(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "t.duckdb"
    with duckdb.connect(str(path)) as base:
        base.execute("create table people as select range % 9 as age, 'f' as sex from range(50)")
        base.execute("create table others as select range % 9 as age, range as id from range(50)")
    people = f"{path}::people"
    both = Database({"people": Table(SCHEMA, key="id"), "others": Table(SCHEMA, parent="people", link="id")})
    refused = {
        "two tables": lambda: PrivSyn(1.0).fit(path),
        "no such table": lambda: PrivSyn(1.0).fit(f"{path}::pupils"),
        "a query that does not run": lambda: PrivSyn(1.0).fit(f"{path}::from pupils"),
        "other columns": lambda: PrivSyn(1.0, schema=OTHER).fit(people),
        "linked tables": lambda: PrivSyn(1.0, schema=both).fit(path),
        "a draft": lambda: draft_schema(path),
        "an evaluation": lambda: evaluate(people, f"{path}::others", unit="none"),
    }
    kept = []
    for run in refused.values():
        with pytest.raises((InputError, TypeError)) as error:
            run()
        kept.append(error)
        with duckdb.connect(str(path)) as base:
            base.execute("insert into people values (1, 'f')")
