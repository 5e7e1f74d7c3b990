"""The results of a sweep: its file, results of other programs, the long form, and a plot.

The plot shows headline metrics against epsilon, one panel each. It needs the optional matplotlib.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Sequence
from io import StringIO
from itertools import product
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd

from privsyn.errors import InputError, did_you_mean, replace_errors, safe_repr, warn_cut
from privsyn.evaluation.metric import TABLES
from privsyn.evaluation.registry import METRICS
from privsyn.files import atomic_path, check_target

SETTINGS = ("private", "name", "preset", "epsilon", "delta", "seed", "version", "config")
"""The columns of a run that the long form repeats."""

ENDINGS = (".png", ".svg", ".pdf")

YARDSTICKS = {"real": ("real rows", "--"), "independent": ("independent columns", ":")}
"""The label and the line of each reference table."""

MARKS = "sD^vPX*<>"
"""The marker of each method of other programs."""

INK = ("#1f5fa8", "#c2571a", "#3f7d3a", "#8a4fa3")


def read_results(out: str | PathLike[str] | None) -> pd.DataFrame:
    """Return the rows of earlier runs. Without those that were cut, by a full disk or a broken copy.

    Warns
    -----
    CutWarning
        If a line has not as many cells as the header, or the last one has no end. Such a run is repeated.
    """
    if out is not None:
        check_target(out)
        if not str(out).lower().endswith((".csv", ".csv.gz")):
            raise InputError(f"{out}: results are CSV: use a name that ends in .csv")
    if out is None or not Path(out).exists():
        return pd.DataFrame()
    with replace_errors(f"{out}: this file contains no results of a sweep: give another name"):
        opened = gzip.open if str(out).lower().endswith(".gz") else open
        with opened(out, "rt", encoding="utf-8", newline="") as file:
            text = file.read()
        lines = [line for line in csv.reader(StringIO(text, newline="")) if line]
        complete = [line for line in lines if len(line) == len(lines[0])]
        if not text.endswith("\n") and complete[-1] is lines[-1]:
            complete.pop()  # its last cell may have lost digits
        cut = len(lines) - len(complete)
        if not complete and cut == 1:  # nothing but a header that was cut
            return pd.DataFrame()
        complete_text = StringIO(newline="")
        csv.writer(complete_text).writerows(complete)
        complete_text.seek(0)
        rows = pd.read_csv(complete_text, dtype=dict.fromkeys(("config", "table", "settings"), str))
        rows["config"]
    warn_cut(out, cut)
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

    `of` is the table that has the score: "synthetic", or a reference table. Of linked tables ``linked_table``
    has the name of the one that the score is about, and "" for scores of all together.
    """
    settings = [column for column in SETTINGS if column in rows]
    names = [str(column).partition(".") for column in rows]
    parts, linked = [], dict.fromkeys(table for table, _, score in names if score in METRICS)
    for (table, prefix), score, table_scored in product(
        [("", ""), *((table, f"{table}.") for table in linked)], METRICS, TABLES
    ):
        column = prefix + (score if table_scored == "synthetic" else f"{score}_{table_scored}")
        if column in rows:
            about = {"linked_table": table} if linked else {}
            parts.append(rows[settings].assign(**about, score=score, of=table_scored, value=rows[column]))
    long = pd.concat(parts, ignore_index=True) if parts else rows[settings]
    return long.dropna(subset=["value"]).reset_index(drop=True)


def check_plot(path: Path) -> None:
    """Refuse a plot that cannot be drawn, before the first run."""
    if path.suffix.lower() not in ENDINGS:
        raise InputError(f"--plot {path}: the ending must be one of {', '.join(ENDINGS)}")
    with replace_errors(
        '--plot needs matplotlib: run pip install "privsyn[plot]" and try again', ImportError
    ):
        import matplotlib  # noqa: F401


def draw(
    rows: pd.DataFrame, path: Path, scores: Sequence[str] = (), peers: pd.DataFrame | None = None
) -> None:
    """Draw scores against epsilon: mean over seeds, their range as a band; reference tables are dashed.

    Parameters
    ----------
    rows : pandas.DataFrame
        The results of a sweep.
    path : Path
    scores : list of str
        One panel for each. Default: the headline metrics.
    peers : pandas.DataFrame, optional
        Results of other programs, as for `read_peers`.
    """
    from matplotlib.figure import Figure  # not pyplot: it needs no screen and no global state

    check_scores(scores)
    names = list(scores) or [name for name, metric in METRICS.items() if metric.headline]
    shown = [name for name in names if name in rows and rows[name].notna().any()]
    if not shown:
        raise InputError("no run has a score to plot: choose others, or a target")
    figure = Figure(figsize=(4.2 * len(shown), 3.6), layout="constrained")
    panels = figure.subplots(1, len(shown), squeeze=False)[0]
    for panel, name in zip(panels, shown, strict=True):
        _panel(panel, rows, name)
        if peers is not None and name in peers:
            _peers(panel, peers, name)
    panels[0].legend(frameon=False, fontsize=8)
    figure.suptitle(
        "Not private: made from the real table. Bands: smallest to largest of the seeds", fontsize=9
    )
    with atomic_path(path) as part:
        figure.savefig(part, dpi=150)


def check_scores(scores: Sequence[str]) -> None:
    """Refuse a score that no metric has."""
    for name in scores:
        if name not in METRICS:
            meant = did_you_mean(name, METRICS) or f": choose from {', '.join(METRICS)}"
            raise InputError(f"there is no score {safe_repr(name)}{meant}")


def _peers(panel: Any, peers: pd.DataFrame, name: str) -> None:
    """Draw the mean of each method of other programs at each epsilon."""
    for (method, group), mark in zip(peers.dropna(subset=[name]).groupby("method"), MARKS, strict=False):
        means = group.groupby("epsilon")[name].mean()
        panel.plot(means.index, means, f"-.{mark}", color="#444444", lw=1, ms=4, label=method)


def _panel(panel: Any, rows: pd.DataFrame, name: str) -> None:
    from matplotlib.ticker import LogLocator

    for (preset, group), ink in zip(rows.groupby("preset", sort=False), INK, strict=False):
        over_seeds = group.groupby("epsilon")[name].agg(["mean", "min", "max"])
        panel.plot(over_seeds.index, over_seeds["mean"], marker="o", color=ink, label=preset)
        panel.fill_between(over_seeds.index, over_seeds["min"], over_seeds["max"], color=ink, alpha=0.2, lw=0)
    for which, (label, style) in YARDSTICKS.items():
        if (yardstick := f"{name}_{which}") in rows:
            means = rows.groupby("epsilon")[yardstick].mean()
            panel.plot(means.index, means, style, color="#666666", label=label)
    panel.set(xscale="log", xlabel="epsilon", title=METRICS[name].label)
    panel.set_xticks(epsilons := sorted(rows["epsilon"].unique()), [f"{epsilon:g}" for epsilon in epsilons])
    panel.minorticks_off()
    if METRICS[name].better == "lower":  # an error
        panel.set(yscale="log")
        panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        panel.yaxis.set_major_formatter("{x:g}")
        panel.yaxis.set_minor_formatter("")
    panel.grid(alpha=0.3)
    panel.spines[["top", "right"]].set_visible(False)
