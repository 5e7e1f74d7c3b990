"""The report: a comparison as one web page without network access. It shows real counts: NOT PRIVATE.

A page of linked tables also has their scores, pictures of which row follows which, which count real rows, and
some persons. Of single persons only synthetic ones are shown, never a real one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from itertools import pairwise
from math import isnan
from os import PathLike
from typing import Any

import numpy as np

from privsyn.evaluation.comparison import LEARNERS, SEED, Comparison
from privsyn.evaluation.encoding import Classes, Levels, coarsen, recode
from privsyn.evaluation.link_metrics import SCORES
from privsyn.evaluation.linked_comparison import LinkedComparison
from privsyn.evaluation.marginals import shares
from privsyn.evaluation.metric import Score
from privsyn.evaluation.numbers import METHODS
from privsyn.evaluation.registry import METRICS
from privsyn.evaluation.scores import Origin, Scores, shown
from privsyn.files import atomic_path
from privsyn.marginals.domain import Floats, Ints
from privsyn.pages.picture import Axis, Bins, dots, heat_maps, histogram, percent_of, strip
from privsyn.pages.sections import Section, percent, render
from privsyn.table.encoding.words import MISSING, number_range
from privsyn.table.io.csv_table import PLAIN
from privsyn.table.io.formats import plain, text_of
from privsyn.table.schema.about import About

MOST_MAPPED = 40
"""Largest number of columns in the map of pairs; of wider tables those with the largest errors."""

FEW_VALUES, PARTS = 12, 40
"""An ordered column of more than 12 bins is a histogram. A stretched axis has 40 bins."""

PER_SHARE = 10_000
"""Unit of the shares in the page's data: a hundredth of a percent."""

PICTURES, MOST_CLASSES = 3, 8
"""Most columns of a table whose neighbours are drawn, and most classes of each; rarer values are one."""

PERSONS_SHOWN, ROWS_SHOWN, ROWS_BELOW = 4, 8, 3
"""Most synthetic persons that are shown, most rows of each in a table, and most rows below each of these."""


def write_report(
    path: str | PathLike[str],
    compared: Comparison | LinkedComparison,
    scores: Scores,
    *,
    ledger: Mapping[str, Any] | None = None,
    origins: Sequence[Origin] = (),
    about: About | None = None,
) -> None:
    """Write the page to a file atomically.

    Parameters
    ----------
    ledger : mapping, optional
        The ledger as plain data.
    origins : sequence of Origin
        The sources of the error of pairs, if known.
    about : About, optional
        The publisher's words on the tables.
    """
    linked: LinkedComparison | None = None
    if isinstance(compared, LinkedComparison):
        linked, comparison = compared, next(iter(compared.comparisons.values()))  # the first with columns
    else:
        comparison = compared
    mapped = _mapped(scores)
    pairs = _cells(scores, mapped)
    levels = coarsen(comparison.view.labels, comparison.real.records)
    values = {
        "about": about,
        "scores": scores,
        "groups": _groups(scores),
        "linked": []
        if scores.linked is None
        else [
            {
                "about": scores.linked.about(table),
                "lines": [_line(scores.linked.label(table, kind), score) for kind, score in kinds.items()],
            }
            for table, kinds in scores.linked.alike.items()
        ],
        "persons": _persons(scores) if scores.persons else {},
        "next": [] if linked is None else neighbours(linked),
        "timelines": [] if linked is None else timelines(linked),
        "columns": [] if scores.tables else _columns(comparison, scores, levels),
        "worst": scores.worst,
        "classes": scores.classes,
        "names": [scores.columns[axis] for axis in mapped],
        "pairs": pairs,
        "largest": _largest(scores, mapped),
        "data": _data(comparison, scores, mapped, levels, pairs),
        "methods": METHODS,
        "models": {name: label for name, label in LEARNERS.items() if name in comparison.learning.models},
        "ledger": ledger,
        "origins": origins,
        "version": version("privsyn"),
    }
    sections = (
        Section("linked", "Linked tables"),
        Section("scores", "Scores"),
        Section("persons", "Rows that belong together"),
        Section("next", "What follows what"),
        Section("timelines", "Some synthetic persons"),
        Section("classes", f"Classes of {scores.target}"),
        Section("pairs", "Pairs of columns"),
        Section("columns", "Columns"),
        Section("worst", "Where it is worst"),
        Section("origins", "Where the error comes from"),
        Section("ledger", "What it cost"),
    )
    page = render("comparison.html", values, sections)
    with atomic_path(path) as file:
        file.write_text(page, encoding="utf-8")


def _line(title: str, score: Score, *, origin: float = 0.0, hint: str = "") -> dict[str, Any]:
    """Return a line of a table of scores: its title, its numbers, and a small plot of them from `origin`."""
    picture = strip(score.by_table(), low=origin)
    return {"title": title, "hint": hint, "numbers": shown(score), "strip": picture}


def _groups(scores: Scores, table: str = "") -> dict[str, list[dict[str, Any]]]:
    """Return the lines of each group of metrics: label, hint, numbers and a small plot of them."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for name, (label, score) in scores.table().items():
        metric = METRICS[name]
        line = _line(label, score, origin=metric.origin, hint=metric.hint)
        groups.setdefault(f"{table}{metric.group}", []).append(line)
    for name, table_scores in scores.tables.items():
        groups |= _groups(table_scores, f"{name}: ")
    return groups


def _persons(scores: Scores) -> dict[str, Any]:
    """Return a histogram of the number of rows for each child table, and what is worst in each score."""
    pictures = {}
    for table, (real, synthetic) in scores.numbers_of_rows.items():
        linked = scores.linked
        name = "rows of a person" if linked is None else f"{table} of each row of {linked.parents[table]}"
        last = max(number for number, share in enumerate(zip(real, synthetic, strict=True)) if any(share)) + 1
        labels = [*map(str, range(len(real) - 1)), f"{len(real) - 1} or more"][:last]
        bins = Bins(labels, np.linspace(0, 1, last + 1), to_scale=True)
        pictures[name] = histogram(name, bins, np.array(real[:last]), np.array(synthetic[:last]))
    worst = {SCORES[kind][0]: (kind, parts) for kind, parts in scores.worst_of_persons.items()}
    return {"pictures": pictures, "worst": worst}


def _columns(comparison: Comparison, scores: Scores, levels: Sequence[Levels]) -> list[dict[str, Any]]:
    """Return each column with its plot: a histogram, or bars of its values."""
    view, result = comparison.view, []
    tables = [comparison.real.records, comparison.synthetic.records]
    for axis, name in enumerate(view.domain):
        both = shares(tables, (name,))
        bins = view.domain.ordered[axis]
        plot: dict[str, Any] = {"picture": None, "stretched": False, "rows": []}
        if bins > FEW_VALUES:
            plot |= _histogram(comparison, axis, *(share[:bins] for share in both))
        elif bins:
            plot["rows"] = _rows(view.labels[axis], *both)
        else:
            words, of_code = levels[axis].labels, levels[axis].of_code
            joined = (np.bincount(of_code, share, len(words)).astype(np.float64) for share in both)
            plot["rows"] = _rows(words, *joined)
        plot["quantile_rows"] = _quantiles(comparison, scores, axis)
        facts = scores.column_errors[name]
        result.append({"name": name, "kind": view.kinds[axis], **plot, **facts})
    return result


def _quantiles(comparison: Comparison, scores: Scores, axis: int) -> list[tuple[str, ...]]:
    """Return each quantile of an ordered column: its name, and its real and synthetic value as text."""
    words = comparison.view.ranges[axis] or number_range
    quantiles = scores.quantiles.get(scores.columns[axis], {})
    return [
        (f"{float(share):.0%}", *("" if isnan(value) else words(value, value) for value in values))
        for share, values in quantiles.items()
    ]


def _histogram(comparison: Comparison, axis: int, real: Floats, synthetic: Floats) -> dict[str, Any]:
    """Return a histogram of both tables, with the bins of the comparison or of a stretched axis."""
    name, labels = comparison.view.domain.names[axis], comparison.view.labels[axis][: len(real)]
    both = [table.numbers[name] for table in (comparison.real, comparison.synthetic)]
    numbers, synthetic_numbers = (column[~np.isnan(column)] for column in both)
    ends = (float(numbers.min()), float(numbers.max())) if len(numbers) else (0.0, 0.0)
    along = Axis.of(*ends, numbers, np.ones(len(numbers)))
    positions = np.linspace(0, 1, len(real) + 1)
    if along.stretched:
        edges, half = along.edges(PARTS), 0.0
        if (numbers == np.rint(numbers)).all():  # otherwise some bins would contain no integer
            edges, half = np.unique(np.append(np.floor(edges[:-1]), ends[1] + 1)) - 0.5, 0.5
        words = comparison.view.ranges[axis] or number_range
        labels = tuple(words(low + half, high - half) for low, high in pairwise(edges.tolist()))
        inside = [np.clip(column, edges[0], edges[-1]) for column in (numbers, synthetic_numbers)]
        real, synthetic = (
            np.histogram(column, edges)[0] / len(every) for column, every in zip(inside, both, strict=True)
        )
        positions = along.positions(edges)
    picture = histogram(name, Bins(labels, positions, not along.stretched), real, synthetic)
    return {"picture": picture, "stretched": along.stretched}


def _rows(labels: Sequence[str], real: Floats, synthetic: Floats) -> list[dict[str, Any]]:
    """Return each value with both shares, and the lengths of their bars."""
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


def _mapped(scores: Scores) -> list[int]:
    """Return the columns in the map of pairs, in the order of the table."""
    sampled = ~np.isnan(scores.pairs.error)
    mean = np.where(sampled, scores.pairs.error, 0).sum(axis=0) / np.maximum(sampled.sum(axis=0), 1)
    return sorted(np.argsort(-mean, kind="stable")[:MOST_MAPPED].tolist())


def _largest(scores: Scores, mapped: list[int]) -> float:
    """Return the largest error of a pair in the map: the end of its colour scale."""
    return max(float(np.nanmax(scores.pairs.error[np.ix_(mapped, mapped)], initial=0.0)), 1e-9)


def _cells(scores: Scores, mapped: list[int]) -> list[dict[str, Any]]:
    """Return the cells of the map, below the diagonal; `shade` is between 0 and 1."""
    error, largest = scores.pairs.error, _largest(scores, mapped)
    return [
        {
            "row": row,
            "column": column,
            "shade": float(error[a, b]) / largest,
            "title": f"{scores.columns[a]} × {scores.columns[b]}: {percent(error[a, b])} off",
        }
        for row, a in enumerate(mapped)
        for column, b in enumerate(mapped[:row])
        if not isnan(error[a, b])
    ]


def _data(
    comparison: Comparison,
    scores: Scores,
    mapped: list[int],
    levels: tuple[Levels, ...],
    cells: list[dict[str, Any]],
) -> dict[str, Any]:
    """Return the data of the page's script: levels of the columns, and both tables of each pair."""
    coarse = [recode(table.records, levels) for table in (comparison.real, comparison.synthetic)]
    names, ordered = [scores.columns[axis] for axis in mapped], comparison.view.domain.ordered
    return {
        "columns": [
            {"name": scores.columns[axis], "levels": levels[axis].labels, "ordered": ordered[axis] > 0}
            for axis in mapped
        ],
        "pairs": {
            f"{a}-{b}": [
                np.rint(share * PER_SHARE).astype(np.int64).tolist()
                for share in shares(coarse, (names[a], names[b]))
            ]
            for cell in cells
            for a, b in [(cell["row"], cell["column"])]
        },
        "matrices": {
            "error": _rounded(scores.pairs.error, mapped),
            "real V": _rounded(scores.pairs.real_cramers_v, mapped),
            "synthetic V": _rounded(scores.pairs.cramers_v, mapped),
        },
        "per_share": PER_SHARE,
    }


def _rounded(matrix: Floats, mapped: list[int]) -> list[list[float | None]]:
    return [[None if isnan(matrix[a, b]) else round(matrix[a, b], 4) for b in mapped] for a in mapped]


def neighbours(linked: LinkedComparison) -> list[dict[str, Any]]:
    """Return for each child table pictures of columns, each with itself one row later.

    Taken are the columns that depend most on their own next cell, in the real rows.
    """
    tables_shown = []
    for table in linked.children:
        order = linked.database.tables[table].order
        drawn = [
            _neighbours_of(linked, table, column)
            for column in linked.classes.get(table, {})
            if column != order  # it rises in any table
        ]
        pictures = sorted(filter(None, drawn), key=lambda picture: -picture["dependence"])[:PICTURES]
        if pictures:
            tables_shown.append({"table": table, "has_order": order is not None, "pictures": pictures})
    return tables_shown


def _neighbours_of(linked: LinkedComparison, table: str, column: str) -> dict[str, Any] | None:
    """Return a picture of which class of a column follows which in rows of one parent; None without rows."""
    classes, counts = linked.classes[table][column], []
    size = len(classes.words)
    for side in (linked.truth, linked.sides["synthetic"]):
        parent, codes = side.linked.parent[table], side.codes[table][column]
        here = np.flatnonzero(parent[1:] == parent[:-1])
        pairs = np.bincount(codes[here] * size + codes[here + 1], minlength=size * size)
        counts.append(pairs.reshape(size, size))
    if not counts[0].any():
        return None
    words, group = _groups_of_classes(classes, counts)
    joined = []
    for matrix in counts:
        sums = np.zeros((len(words) + 1, len(words) + 1))  # a last one for classes that no row has
        np.add.at(sums, (group[:, None], group[None, :]), matrix)
        joined.append(sums[:-1, :-1])
    after = [matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1) for matrix in joined]
    both = joined[0] / joined[0].sum()
    independent = np.outer(both.sum(axis=1), both.sum(axis=0))
    # where few rows have the first value, its share of what follows is chance
    off = np.abs(after[0] - after[1]) * joined[0].sum(axis=1, keepdims=True)
    first, then = np.unravel_index(int(off.argmax()), off.shape)
    return {
        "name": column,
        "dependence": float(np.abs(both - independent).sum() / 2),
        "picture": heat_maps(column, words, *after),
        "largest": (words[first], words[then], *(float(matrix[first, then]) for matrix in after)),
    }


def _groups_of_classes(classes: Classes, counts: Sequence[Ints]) -> tuple[list[str], Ints]:
    """Return the labels of at most `MOST_CLASSES` groups of classes, and the group of each class.

    Numbers and dates have few classes. Of a category the most frequent ones in the real rows are groups of
    one, and the others are one group.
    """
    used = sum(matrix.sum(axis=axis) for matrix in counts for axis in (0, 1))
    present = np.flatnonzero(used)
    if not len(classes.cuts) and len(present) > MOST_CLASSES:
        rows = counts[0].sum(axis=0) + counts[0].sum(axis=1)
        present = np.sort(present[np.argsort(-rows[present], kind="stable")][: MOST_CLASSES - 1])
    labels = [classes.words[index] for index in present]
    group = np.full(len(classes.words), len(present))
    group[present] = np.arange(len(present))
    return [*labels, *(["others"] if used[group == len(present)].any() else [])], group


def timelines(linked: LinkedComparison) -> list[dict[str, Any]]:
    """Return some synthetic persons: their own cells, and their rows in each child table, in order.

    Nothing here depends on a real row: which persons are shown follows from a seed and the synthetic tables.
    """
    side, database = linked.sides["synthetic"], linked.database
    children = database.children(database.root)
    if not children:
        return []
    number = np.bincount(side.linked.parent[children[0]], minlength=side.size(database.root))
    several = np.flatnonzero(number > 1)
    chosen = np.random.default_rng(SEED).permutation(several)[:PERSONS_SHOWN]
    return [
        {
            "cells": _synthetic_cells(linked, database.root, int(person)),
            "tables": [_rows_below(linked, name, int(person), ROWS_SHOWN) for name in children],
        }
        for person in np.sort(chosen)
    ]


def _rows_below(linked: LinkedComparison, table: str, parent: int, limit: int) -> dict[str, Any]:
    """Return the rows of a synthetic row in a child table, each with its own rows below.

    The times of the rows of a person are drawn between the first and the last one of the table.
    """
    side, database, picture = linked.sides["synthetic"], linked.database, None
    first, last = np.searchsorted(side.linked.parent[table], [parent, parent + 1]).tolist()
    times = side.numbers[table].get(database.tables[table].order or "")  # None: the order is no data
    if times is not None and last > first and database.tables[table].parent == database.root:
        times, present = times[first:last], times[~np.isnan(times)]
        if len(present):
            begin, width = float(present.min()), float(np.ptp(present)) or 1.0
            picture = dots((times[~np.isnan(times)] - begin) / width)
    rows = [
        {
            "cells": _synthetic_cells(linked, table, row),
            "below": [_rows_below(linked, child, row, ROWS_BELOW) for child in database.children(table)],
        }
        for row in range(first, min(last, first + limit))
    ]
    return {"name": table, "rows": rows, "number": last - first, "picture": picture}


def _synthetic_cells(linked: LinkedComparison, table: str, index: int) -> list[tuple[str, str]]:
    """Return the compared columns of one synthetic row, and its cells as text."""
    if table not in linked.comparisons:
        return []
    comparison, row = linked.comparisons[table], int(linked.sides["synthetic"].linked.rows[table][index])
    source = comparison.synthetic.source
    cells = [(name, plain(source[name].iloc[row])) for name in comparison.view.domain]
    return [(name, MISSING if cell is None else text_of(cell, PLAIN)) for name, cell in cells]
