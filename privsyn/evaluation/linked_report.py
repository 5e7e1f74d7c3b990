"""What the report shows of rows that belong together: which row follows which, and some synthetic persons.

Pictures of neighbours count real rows. Of single persons only synthetic ones are shown, never a real one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from privsyn.evaluation.comparison import SEED
from privsyn.evaluation.linked_comparison import LinkedComparison, Side
from privsyn.evaluation.linked_scores import LinkedScores
from privsyn.evaluation.scores import shown_number
from privsyn.marginals.domain import Floats, Ints
from privsyn.pages.picture import dots, heat_maps, strip
from privsyn.table.encoding.words import MISSING
from privsyn.table.io.csv_table import PLAIN
from privsyn.table.io.formats import plain, text_of

PICTURES, MOST_CLASSES = 3, 8
"""Most columns of a table whose neighbours are drawn, and most classes of each; rarer values are one."""

PERSONS_SHOWN, ROWS_SHOWN, ROWS_BELOW = 4, 8, 3
"""Most synthetic persons that are shown, most rows of each in a table, and most rows below each of these."""


def scores_of(linked: LinkedScores) -> list[dict[str, Any]]:
    """Return each table with its scores: label, numbers and a small plot of them."""
    return [
        {
            "about": linked.about(name),
            "lines": [
                {
                    "title": linked.label(name, kind),
                    "numbers": {
                        label: "" if np.isnan(number) else shown_number(number)
                        for label, number in score.by_table().items()
                        if label != "held out"
                    },
                    "strip": strip(score.by_table(), low=0.0),
                }
                for kind, score in kinds.items()
            ],
        }
        for name, kinds in linked.alike.items()
    ]


def neighbours(linked: LinkedComparison) -> list[dict[str, Any]]:
    """Return for each child table pictures of columns, each with itself one row later.

    Taken are the columns that depend most on their own next cell, in the real rows.
    """
    tables_shown = []
    for table in linked.children:
        pictures = sorted(_pictures(linked, table), key=lambda picture: -picture["dependence"])[:PICTURES]
        has_order = linked.database.tables[table].order is not None
        if pictures:
            tables_shown.append({"table": table, "has_order": has_order, "pictures": pictures})
    return tables_shown


def _pictures(linked: LinkedComparison, table: str) -> Iterator[dict[str, Any]]:
    for name, classes in linked.classes.get(table, {}).items():
        if name == linked.database.tables[table].order:
            continue  # it rises in any table
        sides = linked.truth, linked.sides["synthetic"]
        real, synthetic = (_pairs(side, table, name, len(classes.words)) for side in sides)
        if not real.any():
            continue
        words, group = _groups(classes.words, real, synthetic, ordered=len(classes.cuts) > 0)
        counts = [_joined(matrix, group, len(words)) for matrix in (real, synthetic)]
        after = [matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1) for matrix in counts]
        both = counts[0] / counts[0].sum()
        independent = np.outer(both.sum(axis=1), both.sum(axis=0))
        # where few rows have the first value, its share of what follows is chance
        off = np.abs(after[0] - after[1]) * counts[0].sum(axis=1, keepdims=True)
        first, then = np.unravel_index(int(off.argmax()), off.shape)
        yield {
            "name": name,
            "dependence": float(np.abs(both - independent).sum() / 2),
            "picture": heat_maps(name, words, *after),
            "largest": (words[first], words[then], *(float(matrix[first, then]) for matrix in after)),
        }


def _pairs(side: Side, table: str, name: str, size: int) -> Ints:
    """Return how often each class of a column is followed by each, in rows of one parent."""
    parent, codes = side.linked.parent[table], side.codes[table][name]
    here = np.flatnonzero(parent[1:] == parent[:-1])
    pairs = np.bincount(codes[here] * size + codes[here + 1], minlength=size * size)
    return pairs.reshape(size, size)


def _groups(words: tuple[str, ...], real: Ints, synthetic: Ints, *, ordered: bool) -> tuple[list[str], Ints]:
    """Return the labels of at most `MOST_CLASSES` groups of classes, and the group of each class."""
    used = sum(matrix.sum(axis=axis) for matrix in (real, synthetic) for axis in (0, 1))
    present = np.flatnonzero(used)
    if not ordered and len(present) > MOST_CLASSES:
        often = present[np.argsort(-(real.sum(axis=0) + real.sum(axis=1))[present], kind="stable")]
        present = np.sort(often[: MOST_CLASSES - 1])
    labels, group = [words[index] for index in present], np.full(len(words), len(present))
    group[present] = np.arange(len(present))
    return [*labels, *(["others"] if used[group == len(present)].any() else [])], group


def _joined(counts: Ints, group: Ints, groups: int) -> Floats:
    sums = np.zeros((groups + 1, groups + 1))  # a last one for classes that no row has
    np.add.at(sums, (group[:, None], group[None, :]), counts)
    return sums[:groups, :groups]


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
    ends = {name: _ends(side, name, linked) for name in children}
    return [
        {
            "cells": _cells(linked, database.root, int(person)),
            "tables": [_rows(linked, name, int(person), ends[name]) for name in children],
        }
        for person in np.sort(chosen)
    ]


def _ends(side: Side, table: str, linked: LinkedComparison) -> tuple[float, float] | None:
    """Return the first and the last time of a table; None if its order is no column of data."""
    order = linked.database.tables[table].order
    if order is None or order not in side.numbers[table]:
        return None
    times = side.numbers[table][order]
    times = times[~np.isnan(times)]
    return (float(times.min()), float(times.max())) if len(times) else None


def _rows(
    linked: LinkedComparison,
    table: str,
    parent: int,
    ends: tuple[float, float] | None = None,
    limit: int = ROWS_SHOWN,
) -> dict[str, Any]:
    """Return the rows of a synthetic row in a child table, each with its own rows below."""
    side, database = linked.sides["synthetic"], linked.database
    first, last = np.searchsorted(side.linked.parent[table], [parent, parent + 1]).tolist()
    picture = None
    if ends is not None and last > first:
        times = side.numbers[table][database.tables[table].order or ""][first:last]
        present, width = times[~np.isnan(times)], (ends[1] - ends[0]) or 1.0
        picture = dots((present - ends[0]) / width)
    rows = [
        {
            "cells": _cells(linked, table, row),
            "below": [_rows(linked, child, row, limit=ROWS_BELOW) for child in database.children(table)],
        }
        for row in range(first, min(last, first + limit))
    ]
    return {"name": table, "rows": rows, "number": last - first, "picture": picture}


def _cells(linked: LinkedComparison, table: str, index: int) -> list[tuple[str, str]]:
    """Return the compared columns of one synthetic row, and its cells as text."""
    if table not in linked.comparisons:
        return []
    comparison, row = linked.comparisons[table], int(linked.sides["synthetic"].linked.rows[table][index])
    source = comparison.synthetic.source
    cells = [(name, plain(source[name].iloc[row])) for name in comparison.view.domain]
    return [(name, MISSING if cell is None else text_of(cell, PLAIN)) for name, cell in cells]
