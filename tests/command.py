"""A small private table with all kinds of column, and one command run on it as a user would."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from privsyn.cli import main

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
