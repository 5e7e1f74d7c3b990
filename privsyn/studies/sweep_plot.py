"""Plots of a sweep: errors against epsilon, one panel a number. Needs matplotlib, an extra."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from privsyn.errors import InputError
from privsyn.evaluation.scores import TITLES
from privsyn.files import atomic_path

ENDINGS = (".png", ".svg", ".pdf")

SHOWN = ("pair_mean", "triple_mean", "query_mean", "boosting_auc", "boosting_r2")
"""What is drawn, where the rows have it."""

YARDSTICKS = {"real": "real rows", "independent": "columns drawn alone"}

INK = ("#1f5fa8", "#c2571a", "#3f7d3a", "#8a4fa3")


def check_plot(path: Path) -> None:
    """Refuse a plot that cannot be drawn, before anything is run."""
    if path.suffix.lower() not in ENDINGS:
        raise InputError(f"--plot {path}: the ending is none of {', '.join(ENDINGS)}")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise InputError('--plot needs matplotlib: run pip install "privsyn[plot]" and try again') from None


def draw(rows: pd.DataFrame, path: Path) -> None:
    """The mean over seeds of each number, and from the least to the largest of them; yardsticks dashed."""
    from matplotlib.figure import Figure  # by itself: no screen, no global state

    shown = [name for name in SHOWN if name in rows and rows[name].notna().any()]
    figure = Figure(figsize=(4.2 * len(shown), 3.6), layout="constrained")
    panels = figure.subplots(1, len(shown), squeeze=False)[0]
    for panel, name in zip(panels, shown, strict=True):
        _panel(panel, rows, name)
    panels[0].legend(frameon=False, fontsize=8)
    figure.suptitle("Not private: made from the real table", fontsize=9)
    with atomic_path(path) as part:
        figure.savefig(part, dpi=150)


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
    panel.set(xscale="log", xlabel="epsilon", title=_title(name))
    panel.set_xticks(epsilons := sorted(rows["epsilon"].unique()), [f"{epsilon:g}" for epsilon in epsilons])
    panel.minorticks_off()
    if name in TITLES:  # an error
        panel.set(yscale="log")
        panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        panel.yaxis.set_major_formatter("{x:g}")
        panel.yaxis.set_minor_formatter("")
    panel.grid(alpha=0.3)
    panel.spines[["top", "right"]].set_visible(False)


def _title(name: str) -> str:
    return TITLES.get(name, name.replace("_", ", ").replace("auc", "AUC").replace("r2", "R2"))
