"""How long it takes, and how much memory: `python -m benchmarks`, a line for each piece of work.

Everything runs in a process of its own, on rows drawn afresh from a real table or from a few hidden classes,
so that times and peaks are those a user would see. Processor time is what a machine shared with others does
not spoil. The numbers of docs/performance.md are from here.

    python -m benchmarks rows adult.csv 10000000 big.parquet   # makes a file to measure with
    python -m benchmarks wide 300 100000 wide.parquet
    python -m benchmarks many 1000000 5000000 many.parquet
    python -m benchmarks fit big.parquet --schema schema.yaml --memory 2GB --model m.privsyn
    python -m benchmarks fit big.parquet --schema schema.yaml --engine spark
    python -m benchmarks sample m.privsyn 10000000 out.parquet
    python -m benchmarks count 1000000 15                      # the kernel against a plain twin
    python -m benchmarks against peer/bin/python adult.csv schema.yaml   # fit and sample against MST (mst.py)

`python -m benchmarks.turns` compares two checkouts.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from privsyn import Categorical, PrivSyn, Schema, evaluate, load, read_schema

STRETCH = 500_000  # rows made at a time


def rows(source: Path, n: int, out: Path) -> None:
    """`n` rows drawn afresh from a small table."""
    table, rng = pd.read_csv(source), np.random.default_rng(0)
    _write(out, n, lambda size: table.iloc[rng.integers(0, len(table), size)])


def wide(columns: int, n: int, out: Path) -> None:
    """Columns of 2 to 16 values that hang together by six hidden classes."""
    rng = np.random.default_rng(0)
    sizes = rng.choice([2, 3, 4, 6, 8, 12, 16], columns)
    odds = [rng.dirichlet(np.full(size, 0.7), 6).cumsum(axis=1) for size in sizes]

    def column(hidden: np.ndarray, edges: np.ndarray) -> pa.Array:
        drawn = np.zeros(len(hidden), np.int8)
        where = rng.random(len(hidden), np.float32)
        for edge in edges[:, :-1].T.astype(np.float32):
            drawn += where > edge[hidden]
        return pa.DictionaryArray.from_arrays(drawn, [str(v) for v in range(edges.shape[1])]).cast(
            pa.string()
        )

    def block(size: int) -> pa.Table:
        hidden = rng.integers(0, 6, size)
        return pa.table({f"c{j}": column(hidden, edges) for j, edges in enumerate(odds)})

    _write(out, n, block)


def many(values: int, n: int, out: Path) -> None:
    """One column of very many values, few of them common, and two that go with it."""
    rng = np.random.default_rng(0)

    def block(size: int) -> pd.DataFrame:
        which = np.minimum((values * rng.random(size) ** 3).astype(np.int64), values - 1)
        return pd.DataFrame(
            {
                "which": "value " + pd.Series(which).astype(str),
                "group": (which % 7).astype(str),
                "other": rng.integers(0, 50, size),
            }
        )

    _write(out, n, block)


def fit(table: Path, schema: Path | None, memory: str, model: Path | None, engine: str | None) -> None:
    """Fit, with a line for each stage; processor time and peak are this process's, and no engine's."""
    with ENGINES[engine](table) as source:
        _fit(source, schema, memory, model)


def _fit(table: object, schema: Path | None, memory: str, model: Path | None) -> None:
    watch = Watch()
    fitted = PrivSyn(
        1.0,
        1e-9,
        None if schema is None else read_schema(schema),
        memory=memory,
        progress=lambda stage, done, total: watch.say(f"{stage} {done}/{total}"),
    ).fit(table)
    watch.say("fit")
    if model is not None:
        fitted.save(model)


@contextmanager
def _dask(table: Path) -> Iterator[object]:
    """Two processes of Dask."""
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    with LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster):
        yield dd.read_parquet(table, split_row_groups=1)


@contextmanager
def _spark(table: Path) -> Iterator[object]:
    """Two threads of Spark, and two processes of Python beside them."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.showConsoleProgress", "false")
    session = builder.getOrCreate()
    yield session.read.parquet(str(table))
    session.stop()


ENGINES = {None: nullcontext, "dask": _dask, "spark": _spark}


def sample(model: Path, n: int, out: Path) -> None:
    """Sample to a file."""
    watch = Watch()
    load(model).sample_to(out, n)
    watch.say("sample")


def count(n: int, columns: int) -> None:
    """All pairs of columns: in one pass, and pair by pair with NumPy."""
    from privsyn.marginals.counting import Tables
    from privsyn.marginals.domain import Domain

    rng = np.random.default_rng(0)
    sizes = [int(size) for size in rng.integers(2, 33, columns)]
    domain = Domain(tuple(f"c{j}" for j in range(columns)), tuple(sizes))
    block = tuple(rng.choice(s, n, p=rng.dirichlet(np.ones(s))).astype(np.uint8) for s in sizes)
    pairs = list(combinations(range(columns), 2))
    tables = Tables(domain, [(f"c{a}", f"c{b}") for a, b in pairs])
    tables.count([tuple(column[:10] for column in block)])  # compiled
    watch = Watch()
    fast = tables.count([block])
    watch.say("in one pass")
    watch = Watch()
    slow = [
        np.bincount(block[a].astype(np.int64) * sizes[b] + block[b], minlength=sizes[a] * sizes[b])
        for a, b in pairs
    ]
    watch.say("pair by pair")
    if any((f.ravel() != s).any() for f, s in zip(fast, slow, strict=True)):
        raise AssertionError("the counts differ")


def against(peer: Path, table: Path, schema: Path) -> None:
    """Fit and sample of a table in codes, against MST of another package, one after the other."""
    from privsyn.table.codec.codec import Codec

    rows = pd.read_csv(table)
    records = Codec.for_table(read_schema(schema), rows, fine=False).encode(rows)
    coded = pd.DataFrame(records.codes, columns=list(records.domain))
    sizes = dict(zip(records.domain.names, records.domain.sizes, strict=True))
    public = Schema({n: Categorical(list(range(size)), nullable=False) for n, size in sizes.items()})
    PrivSyn(1.0, 1e-9, public).fit(coded[:1000]).sample()  # compiled
    watch = Watch()
    own = PrivSyn(1.0, 1e-9, public).fit(coded).sample(len(coded))
    ours = watch.say("privsyn")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "coded.npz"
        np.savez(place, codes=records.codes.astype(np.int64), sizes=np.array(records.domain.sizes))
        twin = Path(__file__).with_name("mst.py")
        said = subprocess.run([peer, twin, place], check=True, capture_output=True, text=True).stdout
        other = pd.DataFrame(np.load(place)["codes"], columns=list(coded))
    theirs = float(said.split()[-1])
    print(f"{'MST of dpmm':24} {theirs:7.2f} s, {theirs / ours:.0f} times as long")  # noqa: T201
    for name, made in (("privsyn", own), ("MST of dpmm", other)):
        scores = evaluate(coded, made, public, models=False)
        errors = f"pairs {scores.pair_mean.synthetic:.4f}, triples {scores.triple_mean.synthetic:.4f}"
        print(f"{name:24} mean total variation: {errors}")  # noqa: T201


class Watch:
    """What has been used since it was made."""

    def __init__(self) -> None:
        self.begun, self.used = time.perf_counter(), time.process_time()

    def say(self, what: str) -> float:
        """One line; and the seconds."""
        wall, used = time.perf_counter() - self.begun, time.process_time() - self.used
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(f"{what:24} {wall:7.2f} s  processor {used:7.2f} s  peak {peak:5.2f} GB", flush=True)  # noqa: T201
        return wall


def _write(out: Path, n: int, block) -> None:
    writer = None
    for start in range(0, n, STRETCH):
        made = block(min(STRETCH, n - start))
        table = made if isinstance(made, pa.Table) else pa.Table.from_pandas(made, preserve_index=False)
        writer = writer or pq.ParquetWriter(out, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def main() -> None:
    """One piece of work."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    work = parser.add_subparsers(required=True)
    for run, numbers in ((rows, "n"), (wide, "columns n"), (many, "values n"), (count, "n columns")):
        command = work.add_parser(run.__name__)
        if run is rows:
            command.add_argument("source", type=Path)
        for name in numbers.split():
            command.add_argument(name, type=int)
        if run is not count:
            command.add_argument("out", type=Path)
        command.set_defaults(run=run)
    command = work.add_parser("fit")
    command.add_argument("table", type=Path)
    command.add_argument("--schema", type=Path)
    command.add_argument("--memory", default="2GB")
    command.add_argument("--model", type=Path)
    command.add_argument("--engine", choices=["dask", "spark"])
    command.set_defaults(run=fit)
    command = work.add_parser("sample")
    command.add_argument("model", type=Path)
    command.add_argument("n", type=int)
    command.add_argument("out", type=Path)
    command.set_defaults(run=sample)
    command = work.add_parser("against")
    for name in ("peer", "table", "schema"):
        command.add_argument(name, type=Path)
    command.set_defaults(run=against)
    given = vars(parser.parse_args())
    given.pop("run")(**given)


if __name__ == "__main__":
    main()
