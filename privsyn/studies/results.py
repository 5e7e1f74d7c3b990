"""The results of a sweep: its file, results of other programs, and the long form."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

import pandas as pd

from privsyn.errors import InputError, replace_errors
from privsyn.evaluation.metric import TABLES
from privsyn.evaluation.registry import METRICS
from privsyn.files import check_target

SETTINGS = ("private", "name", "preset", "epsilon", "delta", "seed", "version", "config")
"""The columns of a run that the long form repeats."""


def read_results(out: str | PathLike[str] | None) -> pd.DataFrame:
    """Return the rows of earlier runs."""
    if out is not None:
        check_target(out)
        if not str(out).lower().endswith((".csv", ".csv.gz")):
            raise InputError(f"{out}: results are CSV: use a name that ends in .csv")
    if out is None or not Path(out).exists():
        return pd.DataFrame()
    with replace_errors(f"{out}: this file contains no results of a sweep: give another name"):
        rows = pd.read_csv(out, dtype=dict.fromkeys(("config", "table", "settings"), str))
        rows["config"]
        return rows


def check_results(out: object, rows: pd.DataFrame, table: str) -> None:
    """Refuse results on another table, because they would be mixed with those on this one."""
    if not len(rows):
        return
    if not {"table", "settings"} <= set(rows):
        raise InputError(
            f"{out}: its results are from an earlier version without a digest of the table: give another name"
        )
    if (rows["table"] != table).any():
        raise InputError(
            f"{out}: contains runs on another table (other rows, names or types): give another name"
        )


def read_peers(path: str | PathLike[str]) -> pd.DataFrame:
    """Return the results of other programs: a CSV with ``method``, ``epsilon``, and scores by our names."""
    with replace_errors(
        f"{path}: peers are a CSV with the columns method, epsilon, and scores such as pair_mean"
    ):
        peers = pd.read_csv(path, dtype={"method": str, "epsilon": float})
        peers[["method", "epsilon"]]
        if not set(peers) & set(METRICS):
            raise KeyError
        return peers


def long_form(rows: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each score of each run and table: ``score``, ``of`` and ``value``.

    `of` is the table that has the score: "synthetic", or a reference table.
    """
    settings = [column for column in SETTINGS if column in rows]
    parts = []
    for score in METRICS:
        for of in TABLES:
            column = score if of == "synthetic" else f"{score}_{of}"
            if column in rows:
                parts.append(rows[settings].assign(score=score, of=of, value=rows[column]))
    long = pd.concat(parts, ignore_index=True) if parts else rows[settings]
    return long.dropna(subset=["value"]).reset_index(drop=True)
