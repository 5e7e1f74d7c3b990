"""Real tables for the experiments: a folder of NAME.csv.gz beside NAME.json, which says what is public.

The folder is an argument or the variable PRIVSYN_DATA. The JSON names the kind of each column, the range of
numbers, the target and the mark of missing cells; lists of values are read off the rows. In an experiment all
of that passes for public; of a private table it would not be.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from privsyn import Categorical, Datetime, Numerical, Schema


class Table(NamedTuple):
    """Rows, what is public of them, and what models are to predict."""

    name: str
    frame: pd.DataFrame
    schema: Schema
    target: str | None


def add_data_argument(parser: argparse.ArgumentParser) -> None:
    """``--folder``, by default PRIVSYN_DATA."""
    folder = os.environ.get("PRIVSYN_DATA")
    parser.add_argument(
        "--folder",
        type=Path,
        default=folder,
        required=folder is None,
        help="of NAME.csv.gz and NAME.json; by default the variable PRIVSYN_DATA",
    )


def read(folder: Path, name: str) -> Table:
    """The table NAME of the folder; dates as such, marks of missing cells as missing."""
    about = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    columns = about["columns"]
    marks = {c["name"]: [c["missing_marker"]] for c in columns if c.get("missing_marker")}
    frame = pd.read_csv(folder / f"{name}.csv.gz", low_memory=False, na_values=marks)
    for c in columns:
        if c["kind"] == "datetime":
            frame[c["name"]] = pd.to_datetime(frame[c["name"]])
    schema = Schema({c["name"]: column(c, frame[c["name"]]) for c in columns})
    return Table(name, frame, schema, about.get("target"))


def column(about: dict, cells: pd.Series) -> Categorical | Numerical | Datetime:
    """What the JSON says of a column."""
    nullable = bool(about["missing"])
    if about["kind"] == "categorical":
        return Categorical(sorted(cells.dropna().unique()), nullable=nullable)
    if about["kind"] == "datetime":
        return Datetime(str(cells.min().date()), str(cells.max().date()), nullable=nullable)
    return Numerical(about["min"], about["max"], integer=about["kind"] == "integer", nullable=nullable)
