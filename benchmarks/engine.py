"""Rows that a database counts, against the same rows in a Parquet file.

python -m benchmarks.engine 10000000 folder                    # makes rows.parquet and rows.duckdb there
python -m benchmarks.engine 10000000 folder --fit parquet      # seconds and peak memory of one fit
python -m benchmarks.engine 10000000 folder --fit duckdb
python -m benchmarks.engine 1000000 folder --fit postgres://me@host/db   # copies the rows into a table first

15 columns: seven lists, four integers, three reals, and a date.
"""

import argparse
import resource
import sys
import time
from pathlib import Path

import duckdb
import ibis

from privsyn import Categorical, Datetime, Numerical, PrivSyn, Schema

LISTS = {"sex": 2, "race": 5, "job": 15, "marital": 7, "degree": 16, "class": 9, "income": 2}
INTEGERS = {"age": 90, "hours": 99, "gain": 100_000, "loss": 4_500}
REALS = {"weight": 150.0, "price": 1_000.0, "rate": 1.0}


def schema() -> Schema:
    """Return the schema, which leaves nothing open."""
    columns = {name: Categorical([f"{name}-{code}" for code in range(size)]) for name, size in LISTS.items()}
    columns |= {name: Numerical(0, high, integer=True) for name, high in INTEGERS.items()}
    columns |= {name: Numerical(0, high) for name, high in REALS.items()}
    return Schema({**columns, "day": Datetime("2015-01-01", "2024-12-31")})


def make(rows: int, folder: Path) -> None:
    """Write the rows into a file of Parquet and one of DuckDB."""
    skewed = "pow(random(), 3)"
    cells = [f"'{name}-' || floor({skewed} * {size})::INTEGER AS {name}" for name, size in LISTS.items()]
    cells += [f"floor({skewed} * {high})::INTEGER AS {name}" for name, high in INTEGERS.items()]
    cells += [f"{skewed} * {high} AS {name}" for name, high in REALS.items()]
    cells.append("DATE '2015-01-01' + floor(random() * 3650)::INTEGER AS day")
    (folder / "rows.duckdb").unlink(missing_ok=True)
    base = duckdb.connect(str(folder / "rows.duckdb"))
    base.execute("SELECT setseed(0.5)").fetchall()
    base.execute(f"CREATE TABLE rows AS SELECT {', '.join(cells)} FROM range({rows})")  # noqa: S608
    base.execute(f"COPY rows TO '{folder / 'rows.parquet'}' (ROW_GROUP_SIZE 200000)")
    base.close()


def copied(rows: int, folder: Path, url: str) -> ibis.Table:
    """Return the table of PostgreSQL with the first rows, copied there if it is not."""
    connection = ibis.connect(url)
    if "rows" not in connection.list_tables():
        types = {"INTEGER": "integer", "DOUBLE": "double precision", "DATE": "date", "VARCHAR": "text"}
        base = duckdb.connect(str(folder / "rows.duckdb"), read_only=True)
        columns = base.execute("DESCRIBE rows").fetchall()
        listed = ", ".join(f"{name} {types[kind]}" for name, kind, *_ in columns)
        connection.raw_sql(f"CREATE TABLE rows ({listed})").close()
        result = base.execute(f"FROM rows LIMIT {rows}")
        with connection.con.cursor() as cursor, cursor.copy("COPY rows FROM STDIN") as copy:
            while some := result.fetchmany(10_000):
                for row in some:
                    copy.write_row(row)
        connection.raw_sql("ANALYZE rows").close()
    return connection.table("rows")


def main() -> None:
    """Make the files, or fit one of them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("rows", type=int)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--fit")
    given = parser.parse_args()
    if given.fit is None:
        make(given.rows, given.folder)
        return
    if given.fit == "parquet":
        table = given.folder / "rows.parquet"
    elif given.fit == "duckdb":
        connection = ibis.duckdb.connect(given.folder / "rows.duckdb", read_only=True, memory_limit="300MB")
        table = connection.table("rows")
    else:
        table = copied(given.rows, given.folder, given.fit)
    begun, before = time.perf_counter(), time.process_time()
    PrivSyn(1.0, 1e-9, schema=schema(), seed=0).fit(table)
    seconds, processor = time.perf_counter() - begun, time.process_time() - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    sys.stdout.write(f"{given.fit}: {seconds:.1f} s, {processor:.1f} s of processor, {peak:.2f} GB\n")


if __name__ == "__main__":
    main()
