"""A small private table with all kinds of column, and one command run on it as a user would."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from privsyn.cli.main import main

CANARY = "kanarie7391"
"""Stands in the private cells, and may never be seen outside them."""

SCHEMA = """\
columns:
  age: {kind: numerical, low: 16, high: 100, integer: true}
  job: {kind: categorical, values: [baker, clerk, miller]}
  pay: {kind: numerical, low: 0, high: 5000, decimals: 2}
  start: {kind: datetime, low: 2015-01-01, high: 2020-12-31}
"""
COLUMNS = ["age", "job", "pay", "start"]


@dataclass(frozen=True)
class Outcome:
    """What a command left: its exit code and what it printed."""

    code: int
    out: str
    err: str


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> Outcome:
    """Run ``privsyn`` in this process."""
    capsys.readouterr()
    code = main([str(argument) for argument in arguments])
    return Outcome(code, *capsys.readouterr())


CLUSTER = ("distributed", "dask.dataframe")
"""What a cluster needs. The first test that forks decides what is imported for all tests of its process."""


def forkserver(*modules: str):
    """Where processes are forked that have imported modules, and nothing else has happened in them."""
    context = get_context("forkserver")
    context.set_forkserver_preload(
        [*modules, "privsyn.cli", "privsyn.cli.synth", "privsyn.table.codec.codec"]
    )
    return context


def run_apart(*arguments: object, before: str = "", end: signal.Signals | None = None) -> Outcome:
    """Run ``privsyn`` in another process, after lines of Python. A signal may end it at its first output."""
    context = forkserver()
    ends = [context.Pipe(duplex=False) for _ in "12"]
    process = context.Process(
        target=_main, args=(before, [*map(str, arguments)], *(write for _, write in ends))
    )
    process.start()
    for _, write in ends:
        write.close()
    out, err = (os.fdopen(os.dup(read.fileno())) for read, _ in ends)
    first = ""
    if end is not None:
        first = out.readline()
        time.sleep(0.1)
        os.kill(process.pid, end)
    with out, err:
        said = first + out.read(), err.read()
    process.join(60)
    return Outcome(process.exitcode, *said)


def _main(before: str, arguments: list[str], *streams: Connection) -> None:
    sys.dont_write_bytecode = True  # a full disk would cut the files that other processes read
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts its background jobs deaf to it
    for place, stream in enumerate(streams, 1):
        os.dup2(stream.fileno(), place)
    exec(before, {})  # noqa: S102 - our own lines
    sys.exit(main(arguments))


def table(rows: int = 300) -> pd.DataFrame:
    """A table in which the job decides the pay, and a cell here and there is the canary."""
    rng = np.random.default_rng(7)
    jobs = rng.choice(["baker", "clerk", "miller", CANARY], size=rows)
    return pd.DataFrame(
        {
            "age": rng.integers(16, 100, size=rows),
            "job": jobs,
            "pay": np.where(jobs == "clerk", 3000.25, 1000.5),
            "start": np.where(jobs == "miller", "2016-02-29", "2019-01-01"),
        },
        columns=COLUMNS,
    )


def fill(folder: Path) -> None:
    """Put the table and its schema into a folder."""
    table().to_csv(folder / "data.csv", index=False)
    (folder / "schema.yaml").write_text(SCHEMA)


def visible(text):
    """What a page says: no style, no script, no tags; but the data of the script."""
    said = re.sub(r"<style>.*?</style>|<script>.*?</script>", "", text, flags=re.S)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", said))
