"""Plot a sweep: headline metrics against epsilon, one panel each. Needs the optional matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from privsyn.errors import InputError, replace_errors, safe_repr
from privsyn.evaluation.registry import METRICS
from privsyn.files import atomic_path

ENDINGS = (".png", ".svg", ".pdf")

YARDSTICKS = {"real": "real rows", "independent": "independent columns"}

MARKS = "sD^vPX*<>"
"""The marker of each method of other programs."""

INK = ("#1f5fa8", "#c2571a", "#3f7d3a", "#8a4fa3")


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
        Results of other programs, as for `privsyn.studies.results.read_peers`.
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
            raise InputError(f"there is no score {safe_repr(name)}: choose from {', '.join(METRICS)}")


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
    for (which, label), style in zip(YARDSTICKS.items(), ("--", ":"), strict=True):
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
