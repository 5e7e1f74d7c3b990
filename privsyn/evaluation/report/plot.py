"""Plot scores beside those of the reference tables. Needs the optional matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from math import isnan
from typing import TYPE_CHECKING, Any

from privsyn.errors import InputError, printable, replace_errors, safe_repr
from privsyn.evaluation.metric import TABLES
from privsyn.evaluation.registry import METRICS

if TYPE_CHECKING:
    from privsyn.evaluation.scores import Scores

MARKS = {"synthetic": ("o", "#1f5fa8"), "real": ("|", "#222222"), "held_out": ("x", "#888888")}
MARKS["independent"] = ("D", "#c2571a")
"""The marker and the colour of each table."""


def plot_scores(scores: Scores, names: Sequence[str]) -> Any:
    """Return a matplotlib figure with one panel for each metric, and in it one mark for each table."""
    with replace_errors('plot needs matplotlib: run pip install "privsyn[plot]"', ImportError):
        from matplotlib.figure import Figure  # not pyplot: it needs no screen and no global state

    known = scores.table()
    for name in names:
        if name not in known:
            raise InputError(f"there is no score {safe_repr(name)}: choose from {', '.join(known)}")
    chosen = list(names) or [name for name in known if METRICS[name].headline or name in scores.learning]
    chosen = chosen or list(known)[:1]

    class Plot(Figure):
        def _repr_png_(self) -> bytes:
            self.savefig(png := BytesIO(), format="png", dpi=100)
            return png.getvalue()

    figure = Plot(figsize=(7, 0.7 * len(chosen) + 0.9), layout="constrained")
    panels = figure.subplots(len(chosen), 1, squeeze=False)[:, 0]
    for panel, name in zip(panels, chosen, strict=True):
        label, score = known[name]
        for table, (marker, colour) in MARKS.items():
            if not isnan(number := getattr(score, table)):
                panel.plot(number, 0, marker, color=colour, ms=8, label=TABLES[table], linestyle="")
        panel.set_yticks([0], [_escape(label)])
        panel.set_xlabel(METRICS[name].hint, fontsize=7)
        panel.tick_params(labelsize=8)
        panel.margins(x=0.15)
        panel.spines[["top", "right", "left"]].set_visible(False)
    panels[0].legend(frameon=False, fontsize=8, ncols=4, loc="lower left", bbox_to_anchor=(0, 1))
    figure.suptitle("Not private: made from the real table", fontsize=9)
    return figure


def _escape(label: str) -> str:
    """Return a label in which matplotlib reads no formula."""
    return printable(label).replace("$", r"\$")
