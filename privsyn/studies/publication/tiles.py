"""What the public page shows of a table: a tile for each column, and what is known about the table."""

from __future__ import annotations

import csv
from base64 import b64encode
from collections.abc import Mapping
from io import StringIO
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from privsyn.inference.fitted import HALF, LEVEL, TWO_SIDED
from privsyn.marginals.domain import Ints
from privsyn.pages.picture import Axis, Bins, error_bars, percent_of
from privsyn.pages.sections import at_most, interval, visible
from privsyn.release.accuracy.agreement import Agreement
from privsyn.release.accuracy.outlook import far_above_noise, noise_alone
from privsyn.release.losses.facts import steps_found
from privsyn.release.table_model import TableModel
from privsyn.studies.publication.relationships import facts
from privsyn.table.codec.labels import members

if TYPE_CHECKING:
    import pandas as pd

MOST_VALUES = 32
"""Largest number of values shown of an unordered column: the most frequent ones."""

FEW_VALUES = 6
"""Number of values shown at first. An ordered column with more values is drawn along an axis."""

MOST_TABLES = 12
"""Number of tables shown at first: those with the strongest relationships."""

MOST_LISTED = 500
"""Number of tables on the page at all."""

FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n")
"""Beginnings of a text that a spreadsheet may run as a formula."""

NOT_FOUND = " Nothing was found of this column: this is a default."

STEP_FOUND = (
    " Noisy counts confirm this step or showed it, in place of a finer one: other numbers are rounded."
)
"""Of a column whose grid was asked for: its release has no other step."""

SEEN = 0.05
"""How far numbers inside their ranges may move a mean is shown above this share of its interval."""

LIMITS = {"most": MOST_TABLES, "listed": MOST_LISTED, "level": LEVEL}

MOVED, MUCH = 1.25, 0.005
"""A column is marked if rows that are drawn are off by more than noise by this factor and share of rows."""


def in_short(release: TableModel, agreement: Agreement | None, *, beside: bool = False) -> dict[str, Any]:
    """Return what pages show of a table, by name.

    Parameters
    ----------
    release : TableModel
    agreement : Agreement, optional
        That of rows drawn from the release.
    beside : bool
        Whether to show the counts of these rows beside the estimates, as if there were as many rows as in
        the release.
    """
    facts_of_table, codec = facts(release), release.codec
    drawn = {}
    if agreement is not None:  # of a column that the rows lack, nothing was drawn
        alone = {columns: counts for columns, counts in agreement.counts.items() if len(columns) == 1}
        drawn = {name: counts for (name,), counts in alone.items() if agreement.compares((name,))}
    words = members(codec, release.fitted.merging.groups)
    columns = [
        _column(release, name, drawn.get(name), values, beside=beside)
        for name, values in zip(codec.domain, words, strict=True)
    ]
    singles = release.fitted.certainties[: len(columns)]
    rows = facts_of_table["tables"]
    in_rows = {
        codec.column_of(column["name"]): (column["in_rows"], column["noise"])
        for column in columns
        if not column["lost"]
    }
    return facts_of_table | {
        "columns": columns,
        "far": far_above_noise(codec.schema, in_rows),
        "least": TWO_SIDED * max(certainty.sigma for certainty in singles),
        "least_pair": TWO_SIDED * median(row["sigma"] for row in rows) if rows else None,
        "drawn": sum(next(iter(drawn.values()))) if drawn else 0,
        "uncovered": {  # by reason
            "computed from other columns": [
                f"{maker.column} (from {', '.join(maker.by)})"
                for maker in codec.computed
                if maker.column not in codec.gaps
            ],
            "counted by their distance from another column": [
                f"{gap.column} (from {', '.join(gap.side.columns)})" for gap in codec.gaps.values()
            ],
            "generated, with no relation to the private table": [
                name for name in codec.names if name not in (*codec.schema.coded, *codec.dropped)
            ],
            "free text, left out": [name for name in codec.names if name in codec.dropped],
            "invented, because no values or bounds were found": [*release.accuracy_.not_found],
        },
        "schema": _schema(release),
    }


def estimates(releases: Mapping[str, TableModel]) -> str:
    """Return a link with the counts of all columns and their 95 % intervals, as a CSV for spreadsheets.

    Parameters
    ----------
    releases : mapping of a table to its TableModel
        A single table has the name "", and its CSV no column of tables.
    """
    text = StringIO()
    writer = csv.writer(text)
    writer.writerow((*(["table"] if any(releases) else []), "column", "value", "estimate", "low", "high"))
    for table, release in releases.items():
        for name in release.codec.domain:
            if release.codec.column_of(name) in release.accuracy_.not_found:
                continue
            for value, *numbers in release.accuracy_.labelled_counts(name).to_numpy().tolist():
                cells = (*filter(None, [table]), name, str(value))
                words = (f"'{word}" if word.startswith(FORMULAS) else word for word in cells)
                writer.writerow((*words, *(round(number, 1) for number in numbers)))
    return f"data:text/csv;charset=utf-8;base64,{b64encode(text.getvalue().encode()).decode()}"


def _schema(release: TableModel) -> list[tuple[str, str]]:
    """Return what is public about each column and which constraints hold, in words."""
    schema, lost, steps = release.codec.schema, release.accuracy_.not_found, steps_found(release)
    return [
        *(
            (name, schema.sentence_on(name) + NOT_FOUND * (name in lost) + STEP_FOUND * (name in steps))
            for name in schema.columns
        ),
        *(
            (f"constraint {number}", constraint.explain())
            for number, constraint in enumerate(schema.constraints, 1)
        ),
    ]


def _column(
    release: TableModel, name: str, drawn: Ints | None, words: tuple[tuple[str, ...], ...], *, beside: bool
) -> dict[str, Any]:
    """Return a column: its error, its counts and a plot of them; `words` are the values of each count."""
    codec, fitted = release.codec, release.fitted
    axis = codec.domain.names.index(name)
    certainty = fitted.certainties[axis]
    counts = release.accuracy_.labelled_counts(name)
    noise = noise_alone(certainty, fitted.total)
    scaled = None if drawn is None else drawn * (fitted.total / drawn.sum())
    in_rows = certainty.error if scaled is None else certainty.distance(scaled)
    counts = counts.assign(synthetic=np.nan if scaled is None or not beside else scaled)
    constrained = {column for constraint in codec.schema.constraints for column in constraint.columns}
    bins = fitted.merging.merged.ordered[axis]
    picture, stretched = _picture(release, name, counts[:bins]) if bins > FEW_VALUES else (None, False)
    rows = _rows(counts, [*words])
    shown = rows if codec.domain.ordered[axis] else _most_frequent(rows)
    # At first: no bars without a length at the end, and no short rest.
    filled = max((number for number, row in enumerate(shown, 1) if row["estimate"] >= HALF), default=1)
    return {
        "name": name,
        "error": certainty.error,
        "in_rows": in_rows,
        "noise": noise,
        "moved": in_rows > MOVED * noise and in_rows > noise + MUCH,
        "lost": codec.column_of(name) in release.accuracy_.not_found,
        "facts": _facts(release, name),
        "constrained": codec.column_of(name) in constrained,
        "drawn": drawn is not None,
        "more": len(rows) - len(shown),
        "outside": sum(row["outside"] for row in rows),
        "counts": len(rows),
        "picture": picture,
        "stretched": stretched,
        "rows": shown,
        "shown": filled if filled <= FEW_VALUES + 2 else FEW_VALUES,
    }


def _facts(release: TableModel, name: str) -> str:
    """Return the mean and the median of a column of numbers, with intervals; empty for any other column."""
    column = release.codec.schema.columns.get(name)
    if column is None or not column.has_numbers:
        return ""
    step = steps_found(release).get(name)
    words = [] if step is None else [f"rounded to multiples of {step:g}"]
    for statistic, frame, share in (
        ("mean", release.accuracy_.means, 1.0),
        ("median", release.accuracy_.quantiles, 0.5),
    ):
        rows = frame[(frame["column"] == name) & (frame.get("share", share) == share)]
        for row in rows[rows["covered"].astype(bool)].to_dict("records"):
            estimate, low, high = interval(row["estimate"], row["low"], row["high"])
            words.append(f"{statistic} {estimate} ({low} to {high})")
            if (within := row.get("within_cells", 0.0)) > SEEN * (row["high"] - row["low"]):
                words[-1] += f", or up to {at_most(within)} higher or lower, as only ranges were counted"
    return "; ".join(words)


def _picture(release: TableModel, name: str, bins: pd.DataFrame) -> tuple[Any, bool]:
    """Return bars of counts along an axis, and whether it is stretched, by the released counts."""
    cells = release.codec.cells(release.fitted.merging)[name]
    estimate, low, high, rows = (bins[part].to_numpy() for part in ("estimate", "low", "high", "synthetic"))
    inside = cells.groups < len(bins)
    weights = (cells.shares[inside] * estimate[cells.groups[inside]]).clip(0)
    step = 0.0 if cells.grid is None else cells.grid.step
    edges = np.append(cells.reach[0][: len(bins)], cells.highs[inside].max() + step)
    axis = Axis.of(edges[0], edges[-1], (cells.lows[inside] + cells.highs[inside]) / 2, weights)
    drawn = Bins(bins[name].tolist(), axis.positions(edges), not axis.stretched)
    synthetic = None if np.isnan(rows).any() else rows
    return error_bars(name, drawn, estimate, low, high, synthetic), axis.stretched


def _rows(counts: pd.DataFrame, groups: list[tuple[str, ...]]) -> list[dict[str, Any]]:
    """Return each count with its values, the ends of its bar and interval, and the synthetic count."""
    longest = max(float(counts[["estimate", "high", "synthetic"]].max().max()), 1e-12)
    return [
        {
            "label": visible(label),
            "members": tuple(map(visible, values)) if len(values) > 1 else (),
            "estimate": estimate,
            "low": low,
            "high": high,
            "bar": percent_of(longest, estimate),
            "low_at": percent_of(longest, low),
            "long": percent_of(longest, high - low),
            "synthetic": synthetic,
            "synthetic_at": percent_of(longest, synthetic),
            "outside": synthetic < low - HALF or synthetic > high + HALF,  # not if nothing was drawn
        }
        for (label, estimate, low, high, synthetic), values in zip(
            counts.to_numpy().tolist(), groups, strict=True
        )
    ]


def _most_frequent(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the most frequent values, and all that were counted together, the most frequent first."""
    ranked = sorted(rows, key=lambda row: -row["estimate"])
    together = [row for row in ranked if row["members"]]
    single = [row for row in ranked if not row["members"]][: MOST_VALUES - len(together)]
    return sorted([*single, *together], key=lambda row: -row["estimate"])
