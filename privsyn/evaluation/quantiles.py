"""Metrics of ordered columns: quantiles, tails, standard deviations, and means within groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from privsyn.evaluation.coded import Coded
from privsyn.evaluation.correlations import ordered_columns, sample_rows
from privsyn.evaluation.encoding import View
from privsyn.evaluation.metric import mean_and_max
from privsyn.evaluation.report.levels import Levels, coarsen
from privsyn.marginals.types import Floats, keep
from privsyn.table.encoding.words import MISSING

if TYPE_CHECKING:
    from privsyn.evaluation.comparison import Comparison

SHARES = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
"""The quantiles that are compared; the last is the tail."""

FEW_VALUES = 20
"""Group means are compared within the values of categories with at most 20."""

MOST_RANGED = 20
"""Means are compared within the ranges of at most this number of columns."""

PAIRS = 1000
"""Quantiles are read from as many rows as correlations of this number of pairs."""


@dataclass(frozen=True, eq=False)
class Shapes:
    """Quantiles and standard deviations of the ordered columns of two tables.

    Parameters
    ----------
    quantiles, real_quantiles : array of shape (columns, quantiles)
        NaN for a column without numbers.
    deviations, real_deviations : array of shape (columns,)
    """

    quantiles: Floats
    real_quantiles: Floats
    deviations: Floats
    real_deviations: Floats

    def __post_init__(self) -> None:
        keep(self, "quantiles", "real_quantiles", "deviations", "real_deviations")

    @property
    def distances(self) -> Floats:
        """Return the distance of each quantile, in standard deviations of the real column.

        As for Wasserstein distances: 0 if both columns have no number, 1 if one has none.
        """
        scale = np.where(self.real_deviations > 0, self.real_deviations, 1.0)[:, np.newaxis]
        one, other = np.isnan(self.quantiles), np.isnan(self.real_quantiles)
        return np.where(one | other, one ^ other, np.abs(self.quantiles - self.real_quantiles) / scale)

    @property
    def spreads(self) -> Floats:
        """Return 1 - smaller / larger standard deviation of each column: 0 if they are equal, at most 1."""
        both = np.nan_to_num([self.deviations, self.real_deviations])
        larger = both.max(axis=0)
        return 1 - np.divide(both.min(axis=0), larger, out=np.ones(len(larger)), where=larger > 0)


def quantiles(numbers: Floats) -> Floats:
    """Return the quantiles at `SHARES` of the numbers that are given; NaN if there is none."""
    present = numbers[~np.isnan(numbers)]
    if not len(present):
        return np.full(len(SHARES), np.nan)
    return np.asarray(np.quantile(present, SHARES, method="inverted_cdf"))


def _deviation(numbers: Floats) -> float:
    present = numbers[~np.isnan(numbers)]
    return float(present.std()) if len(present) and present.min() < present.max() else 0.0


def _shapes(real: Coded, others: Mapping[str, Coded]) -> dict[str, Shapes]:
    def found(table: Coded) -> tuple[Floats, Floats]:
        some = sample_rows(table, PAIRS)
        of_columns = np.array([quantiles(cells) for cells in some.numbers.values()]).reshape(-1, len(SHARES))
        return of_columns, np.array([_deviation(cells) for cells in table.numbers.values()])

    truth = found(real)
    result = {}
    for name, table in others.items():
        ours = found(table)
        result[name] = Shapes(ours[0], truth[0], ours[1], truth[1])
    return result


def shapes_of(comparison: Comparison) -> dict[str, Shapes]:
    """Return quantiles and standard deviations of each table, in the order of the real table's `numbers`."""
    return comparison.compare(_shapes)


def group_means(view: View, real: Coded, other: Coded) -> Floats:
    """Return the error of the means of each number within the values of each category with few values."""
    few = {
        name: Levels(view.labels[axis], np.arange(view.domain.sizes[axis]))
        for axis, (name, kind) in enumerate(zip(view.domain.names, view.kinds, strict=True))
        if kind == "category" and view.domain.sizes[axis] - (view.missing[axis] >= 0) <= FEW_VALUES
    }
    return _means_within(few, real, other)


def range_means(view: View, real: Coded, other: Coded) -> Floats:
    """Return the error of the means of each number within ranges of each other number or time.

    Up to ten bins are ranges of their own. More are joined to ranges with similar shares of the real rows.
    """
    levels = dict(zip(view.domain.names, coarsen(view, real.records), strict=True))
    return _means_within({name: levels[name] for name in ordered_columns(real)[:MOST_RANGED]}, real, other)


def _means_within(groups: Mapping[str, Levels], real: Coded, other: Coded) -> Floats:
    """Return the error of the means of each number within the levels of each other column.

    The error of a pair is the mean over the real rows of the distance of their group's means, in standard
    deviations of the number. A group that has no number in the other table counts as 1. Missing cells are
    left out.
    """
    names, every = ordered_columns(real), real.records.domain.names
    tables = [sample_rows(table, len(names) * len(groups)) for table in (real, other)]
    errors = []
    for name in names:
        present = [~np.isnan(table.numbers[name]) for table in tables]
        cells = [table.numbers[name][rows] for table, rows in zip(tables, present, strict=True)]
        deviation = _deviation(cells[0]) or 1.0
        for column, levels in groups.items():
            if column == name:
                continue
            axis, size = every.index(column), len(levels.labels)
            values = size - (levels.labels[-1] == MISSING)
            codes = [
                levels.of_code[table.records.codes[rows, axis]]
                for table, rows in zip(tables, present, strict=True)
            ]
            sizes, sums = (
                np.array(
                    [
                        np.bincount(code, weight, minlength=size)[:values]
                        for code, weight in zip(codes, weights, strict=True)
                    ]
                )
                for weights in ((None, None), cells)
            )
            occupied = sizes[0] > 0
            if occupied.any():
                means = np.divide(sums, sizes, out=np.full(sums.shape, np.nan), where=sizes > 0)
                away = np.nan_to_num(np.abs(means[1] - means[0]) / deviation, nan=1.0)
                errors.append(float((away * sizes[0])[occupied].sum() / sizes[0].sum()))
    return np.array(errors)


def _of_shapes(errors: Callable[[Shapes], Floats]) -> Callable[[Comparison], dict[str, Floats]]:
    return lambda comparison: {name: errors(shapes) for name, shapes in comparison.once(shapes_of).items()}


def _of_groups(comparison: Comparison) -> dict[str, Floats]:
    return comparison.compare_each(partial(group_means, comparison.view))


def _of_ranges(comparison: Comparison) -> dict[str, Floats]:
    return comparison.compare_each(partial(range_means, comparison.view))


GROUP, DEVIATIONS = "Numbers and associations", "standard deviations"

QUANTILES = {
    **mean_and_max(
        "quantiles", "quantiles", _of_shapes(lambda s: s.distances.mean(axis=1)), group=GROUP, unit=DEVIATIONS
    ),
    **mean_and_max(
        "tail", "99 % quantile", _of_shapes(lambda s: s.distances[:, -1]), group=GROUP, unit=DEVIATIONS
    ),
    **mean_and_max(
        "spread",
        "standard deviation",
        _of_shapes(lambda s: s.spreads),
        group=GROUP,
        unit="1 - smaller / larger",
    ),
    **mean_and_max("group_means", "group means", _of_groups, group=GROUP, unit=DEVIATIONS),
    **mean_and_max("range_means", "means by range", _of_ranges, group=GROUP, unit=DEVIATIONS),
}
