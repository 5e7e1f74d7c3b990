"""The report: a comparison as one web page that needs no network. It shows real counts: NOT PRIVATE."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from itertools import pairwise
from math import isnan
from os import PathLike
from typing import Any

import numpy as np
from markupsafe import Markup

from privsyn.evaluation.axis import Axis
from privsyn.evaluation.comparison import Comparison
from privsyn.evaluation.marginals import shares
from privsyn.evaluation.report.levels import Levels, coarsen, recode
from privsyn.evaluation.report.svg import histogram, percent_of, strip
from privsyn.evaluation.report.template import environment, percent
from privsyn.evaluation.scores import Origin, Score, Scores, shown_number
from privsyn.files import atomic_path
from privsyn.marginals.types import Floats
from privsyn.table.encoding.labels import number_range

MOST_MAPPED = 40
"""Columns in the map of pairs; of a wider table those that err most."""

FEW_VALUES, PARTS = 12, 40
"""An ordered column of more bins is drawn along an axis; of a stretched one, in so many steps."""

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
            largest=_largest(scores, mapped),
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
    """Each column with its picture: a histogram along an axis, or bars of its values."""
    view, result = comparison.view, []
    tables = [comparison.real.records, comparison.synthetic.records]
    levels = coarsen(view, tables[0])
    for axis, name in enumerate(view.domain):
        both = shares(tables, (name,))
        bins = view.domain.ordered[axis]
        drawn: dict[str, Any] = {"picture": None, "stretched": False, "rows": []}
        if bins > FEW_VALUES:
            drawn |= _histogram(comparison, axis, *(share[:bins] for share in both))
        elif bins:
            drawn["rows"] = _rows(view.labels[axis], *both)
        else:
            drawn["rows"] = _rows(levels[axis].labels, *(_in_levels(levels[axis], share) for share in both))
        facts = scores.column_errors[name]
        result.append({"name": name, "kind": view.kinds[axis], **drawn, **facts})
    return result


def _histogram(comparison: Comparison, axis: int, real: Floats, synthetic: Floats) -> dict[str, Any]:
    """Both tables along an axis: in the bins of the comparison, or in finer ones where most rows crowd."""
    name, labels = comparison.view.domain.names[axis], comparison.view.labels[axis][: len(real)]
    both = [table.numbers[name] for table in (comparison.real, comparison.synthetic)]
    numbers, drawn = (one[~np.isnan(one)] for one in both)
    ends = (float(numbers.min()), float(numbers.max())) if len(numbers) else (0.0, 0.0)
    along = Axis.of(*ends, numbers, np.ones(len(numbers)))
    lies = np.linspace(0, 1, len(real) + 1)
    if along.stretched:
        edges, half = along.edges(PARTS), 0.0
        if (numbers == np.rint(numbers)).all():  # or some bins would hold no whole number
            edges, half = np.unique(np.append(np.floor(edges[:-1]), ends[1] + 1)) - 0.5, 0.5
        words = comparison.view.ranges[axis] or number_range
        labels = tuple(words(low + half, high - half) for low, high in pairwise(edges.tolist()))
        inside = [np.clip(one, edges[0], edges[-1]) for one in (numbers, drawn)]
        real, synthetic = (
            np.histogram(one, edges)[0] / len(every) for one, every in zip(inside, both, strict=True)
        )
        lies = along.places(edges)
    picture = histogram(name, labels, lies, real, synthetic, to_scale=not along.stretched)
    return {"picture": picture, "stretched": along.stretched}


def _rows(labels: Sequence[str], real: Floats, synthetic: Floats) -> list[dict[str, Any]]:
    """Each value with both shares, and how long their bars are."""
    longest = max(float(real.max()), float(synthetic.max()), 1e-12)
    return [
        {
            "label": label,
            "real": ours,
            "synthetic": theirs,
            "real_bar": percent_of(longest, ours),
            "synthetic_bar": percent_of(longest, theirs),
        }
        for label, ours, theirs in zip(labels, real.tolist(), synthetic.tolist(), strict=True)
    ]


def _in_levels(level: Levels, share: Floats) -> Floats:
    joined = np.zeros(len(level.labels))
    np.add.at(joined, level.of_code, share)
    return joined


def _mapped(scores: Scores) -> list[int]:
    """The columns that the map of pairs shows, in the order of the table."""
    looked_at = ~np.isnan(scores.pairs.error)
    mean = np.where(looked_at, scores.pairs.error, 0).sum(axis=0) / np.maximum(looked_at.sum(axis=0), 1)
    return sorted(np.argsort(-mean, kind="stable")[:MOST_MAPPED].tolist())


def _largest(scores: Scores, mapped: list[int]) -> float:
    """The largest error of a pair in the map: the end of its colour scale."""
    return max(float(np.nanmax(scores.pairs.error[np.ix_(mapped, mapped)], initial=0.0)), 1e-9)


def _cells(scores: Scores, mapped: list[int]) -> list[dict[str, Any]]:
    """The cells of the map, below the diagonal; `shade` is between 0 and 1."""
    error, largest = scores.pairs.error, _largest(scores, mapped)
    return [
        {
            "row": row,
            "column": column,
            "error": float(error[a, b]),
            "shade": float(error[a, b]) / largest,
            "title": f"{scores.columns[a]} × {scores.columns[b]}: {percent(error[a, b])} off",
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
        "columns": [
            {
                "name": scores.columns[axis],
                "levels": levels[axis].labels,
                "ordered": comparison.view.domain.ordered[axis] > 0,
            }
            for axis in mapped
        ],
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
