"""The report: a comparison as one web page that needs no network. It shows real counts: NOT PRIVATE."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from math import isnan
from os import PathLike
from typing import Any

import numpy as np
from markupsafe import Markup

from privsyn.evaluation.comparison import Comparison
from privsyn.evaluation.marginals import shares
from privsyn.evaluation.report.levels import Levels, coarsen, recode
from privsyn.evaluation.report.svg import bars, histogram, strip
from privsyn.evaluation.report.template import environment
from privsyn.evaluation.scores import Origin, Score, Scores, shown_number
from privsyn.files import atomic_path
from privsyn.marginals.types import Floats

MOST_MAPPED = 40
"""Columns in the map of pairs; of a wider table those that err most."""

PER_SHARE = 10_000
"""Shares of the pairs' tables are written in so many parts: a hundredth of a percent."""

GROUPS = {
    "Tables of counts": ("one_way", "pair", "triple", "query"),
    "Numbers and associations": ("wasserstein", "cramers_v", "spearman"),
    "Rows and cells": ("missing_patterns", "rare_covered", "unseen", "distinct_rows", "propensity"),
    "Models trained on synthetic rows, tried on real ones": ("boosting", "linear"),
    "Likeness of single rows": ("identical_rows", "nearest_row"),
}
"""Which scores stand together, by the beginning of their names."""


def write_report(
    path: str | PathLike[str],
    comparison: Comparison,
    scores: Scores,
    *,
    ledger: Mapping[str, Any] | None = None,
    origins: Sequence[Origin] = (),
) -> None:
    """Write the page to a file, all of it or nothing."""
    page = render(comparison, scores, ledger=ledger, origins=origins)
    with atomic_path(path) as place:
        place.write_text(page, encoding="utf-8")


def render(
    comparison: Comparison,
    scores: Scores,
    *,
    ledger: Mapping[str, Any] | None = None,
    origins: Sequence[Origin] = (),
) -> str:
    """The page as text.

    Parameters
    ----------
    ledger : mapping, optional
        The ledger as `json.loads` reads it.
    origins : sequence of Origin
        Where the error of pairs comes from, if that is known.
    """
    mapped = _mapped(scores)
    return (
        environment()
        .get_template("report.html")
        .render(
            scores=scores,
            groups=_groups(scores),
            columns=_columns(comparison, scores),
            names=[scores.columns[axis] for axis in mapped],
            cells=_cells(scores, mapped),
            data=_data(comparison, scores, mapped),
            ledger=ledger,
            origins=origins,
            version=version("privsyn"),
        )
    )


def _groups(scores: Scores) -> dict[str, list[dict[str, Any]]]:
    """The scores of each group that has any: words, numbers and a strip to see them by."""
    table = scores.table()
    groups = {
        title: [_line(name, *table[name]) for name in table if name.startswith(prefixes)]
        for title, prefixes in GROUPS.items()
    }
    return {title: lines for title, lines in groups.items() if lines}


def _line(name: str, title: str, score: Score) -> dict[str, Any]:
    numbers = {
        "synthetic": score.synthetic,
        "real": score.real,
        "held out": score.held_out,
        "independent": score.independent,
    }
    from_half = "propensity" in name or name.endswith("auc")
    return {
        "title": title,
        "numbers": {which: "" if isnan(x) else shown_number(x) for which, x in numbers.items()},
        "strip": strip(numbers, low=0.5 if from_half else 0.0),
    }


def _columns(comparison: Comparison, scores: Scores) -> list[dict[str, Any]]:
    """Each column with its picture: a histogram of what has an order, bars of values otherwise."""
    view, result = comparison.view, []
    tables = [comparison.real.records, comparison.synthetic.records]
    levels = coarsen(view, tables[0])
    for axis, name in enumerate(view.domain):
        real, synthetic = shares(tables, (name,))
        bins = view.domain.ordered[axis]
        if bins:
            picture = histogram(view.labels[axis][:bins], real[:bins], synthetic[:bins])
        else:
            level = levels[axis]
            picture = bars(level.labels, *(_in_levels(level, share) for share in (real, synthetic)))
        facts = scores.column_errors[name]
        result.append({"name": name, "kind": view.kinds[axis], "picture": picture, **facts})
    return result


def _in_levels(level: Levels, share: Floats) -> Floats:
    joined = np.zeros(len(level.labels))
    np.add.at(joined, level.of_code, share)
    return joined


def _mapped(scores: Scores) -> list[int]:
    """The columns that the map of pairs shows, in the order of the table."""
    looked_at = ~np.isnan(scores.pairs.error)
    mean = np.where(looked_at, scores.pairs.error, 0).sum(axis=0) / np.maximum(looked_at.sum(axis=0), 1)
    return sorted(np.argsort(-mean, kind="stable")[:MOST_MAPPED].tolist())


def _cells(scores: Scores, mapped: list[int]) -> list[dict[str, Any]]:
    """The cells of the map, below the diagonal; `shade` is between 0 and 1."""
    error = scores.pairs.error
    largest = max(float(np.nanmax(error, initial=0.0)), 1e-9)
    return [
        {
            "row": row,
            "column": column,
            "error": float(error[a, b]),
            "shade": float(error[a, b]) / largest,
            "title": f"{scores.columns[a]} x {scores.columns[b]}: {error[a, b]:.1%}",
        }
        for row, a in enumerate(mapped)
        for column, b in enumerate(mapped[:row])
        if not isnan(error[a, b])
    ]


def _data(comparison: Comparison, scores: Scores, mapped: list[int]) -> Markup:
    """What the page's script draws: levels of the columns, and both tables of each pair of the map."""
    levels = coarsen(comparison.view, comparison.real.records)
    coarse = [recode(table.records, levels) for table in (comparison.real, comparison.synthetic)]
    pairs = {}
    for cell in _cells(scores, mapped):
        a, b = mapped[cell["row"]], mapped[cell["column"]]
        found = shares(coarse, (scores.columns[a], scores.columns[b]))
        pairs[f"{cell['row']}-{cell['column']}"] = [
            np.rint(share * PER_SHARE).astype(np.int64).tolist() for share in found
        ]
    data = {
        "columns": [{"name": scores.columns[axis], "levels": levels[axis].labels} for axis in mapped],
        "pairs": pairs,
        "matrices": {
            "error": _rounded(scores.pairs.error, mapped),
            "real V": _rounded(scores.pairs.real_cramers_v, mapped),
            "synthetic V": _rounded(scores.pairs.cramers_v, mapped),
        },
        "per_share": PER_SHARE,
    }
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
    # Within a script element nothing but "<" can end it.
    return Markup(text.replace("<", "\\u003c"))  # noqa: S704


def _rounded(matrix: Floats, mapped: list[int]) -> list[list[float | None]]:
    return [[None if isnan(matrix[a, b]) else round(matrix[a, b], 4) for b in mapped] for a in mapped]
