"""Metrics of ordered columns: correlations, quantiles, standard deviations, and means within groups.

Correlations are of exact numbers, over the rows that have both cells.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from math import comb, nan

import numpy as np

from privsyn.evaluation.comparison import SEED, Comparison
from privsyn.evaluation.encoding import Coded, Levels, View, coarsen
from privsyn.evaluation.marginals import each_once
from privsyn.marginals.domain import Attributes, Floats, Integers, Mask, keep
from privsyn.table.encoding.words import MISSING

MOST_COLUMNS = 200
"""Of more ordered columns a fixed sample is compared."""

WORK, FEWEST_ROWS = 10**8, 10_000
"""Rows times pairs: of larger tables a fixed sample of rows is used, at least 10,000."""

SHARES = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
"""The quantiles that are compared; the last is the tail."""

FEW_VALUES = 20
"""Group means are compared within the values of categories with at most 20."""

MOST_RANGED = 20
"""Means are compared within the ranges of at most this number of columns."""

PAIRS = 1000
"""Quantiles are read from as many rows as correlations of this number of pairs."""


@dataclass(frozen=True, eq=False)
class Correlations:
    """Correlations of all pairs of columns in two tables.

    All are symmetric matrices over all columns, NaN for pairs that have no correlation. Dates and times count
    as numbers. A constant column has correlation 0.

    Parameters
    ----------
    spearman, real_spearman : array of shape (d, d)
    pearson, real_pearson : array of shape (d, d)
    """

    spearman: Floats
    real_spearman: Floats
    pearson: Floats
    real_pearson: Floats

    def __post_init__(self) -> None:
        keep(self, "spearman", "real_spearman", "pearson", "real_pearson")

    def errors(self, method: str) -> Floats:
        """Return the absolute error of each pair that has a correlation."""
        return each_once(np.abs(getattr(self, method) - getattr(self, f"real_{method}")))

    def worst(self, names: Attributes, limit: int) -> dict[str, tuple[tuple[Attributes, float, float], ...]]:
        """Return the pairs with the largest errors: columns, real and synthetic correlation, by method."""
        pairs: dict[str, tuple[tuple[Attributes, float, float], ...]] = {}
        for method in METHODS:
            real, compared = getattr(self, f"real_{method}"), getattr(self, method)
            gaps = np.triu(np.nan_to_num(np.abs(compared - real), nan=-1.0) + 1, 1) - 1
            order = np.argsort(-gaps, axis=None, kind="stable")[:limit]
            cells = zip(*np.unravel_index(order, gaps.shape), strict=True)
            pairs[method] = tuple(
                ((names[a], names[b]), float(real[a, b]), float(compared[a, b]))
                for a, b in cells
                if gaps[a, b] >= 0
            )
        return pairs


METHODS = {"spearman": "Spearman's correlation", "pearson": "Pearson's correlation"}


def correlations(columns: Floats) -> dict[str, Floats]:
    """Return Spearman's and Pearson's matrices of numbers.

    Parameters
    ----------
    columns : array of shape (columns, rows)
        NaN for a missing cell: rows are left out pair by pair.

    Examples
    --------
    >>> found = correlations(np.array([[1.0, 2, 3, 4, np.nan], [1, 4, 9, 100, 0]]))
    >>> {name: float(matrix[0, 1].round(2)) for name, matrix in found.items()}
    {'spearman': 1.0, 'pearson': 0.82}
    """
    present = ~np.isnan(columns)
    values = [np.unique(column, return_inverse=True)[1] for column in columns]
    every = np.ones(columns.shape[1], np.bool_)
    ranks = np.array([_ranks(codes, every) for codes in values]).reshape(columns.shape)
    matrices = {"spearman": _matrix(ranks), "pearson": _matrix(np.where(present, columns, 0.0))}
    for a, b in combinations(range(len(columns)), 2):
        both = present[a] & present[b]
        if both.all():
            continue
        pairs = {
            "spearman": [_ranks(codes, both) for codes in (values[a], values[b])],
            "pearson": [columns[a][both], columns[b][both]],
        }
        for method, (x, y) in pairs.items():
            matrices[method][[a, b], [b, a]] = float(_unit(x) @ _unit(y)) if len(x) > 1 else 0.0
    return matrices


def _ranks(values: Integers, rows: Mask) -> Floats:
    """Return the middle rank of each selected row, given the place of its number among the distinct ones."""
    chosen = values[rows]
    counts = np.bincount(chosen)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[chosen], np.float64)


def _matrix(columns: Floats) -> Floats:
    units = np.array([_unit(column) for column in columns]).reshape(columns.shape)
    return np.asarray(units @ units.T)


def _unit(numbers: Floats) -> Floats:
    """Return the numbers centred and of length 1; zeros if they are constant."""
    largest = np.abs(numbers).max(initial=0.0)
    if not len(numbers) or numbers.min() == numbers.max():
        return np.zeros(len(numbers))
    scaled = numbers / largest  # squares of large numbers overflow
    scaled = scaled - scaled.mean()
    return np.asarray(scaled / np.sqrt(scaled @ scaled))


def sample_rows(table: Coded, pairs: int) -> Coded:
    """Return a fixed sample of the rows if the table is too large for so many pairs."""  # style: allow
    limit = max(WORK // max(pairs, 1), FEWEST_ROWS)
    if len(table) <= limit:
        return table
    rows = np.random.default_rng(SEED).choice(len(table), limit, replace=False)
    return table.take(np.sort(rows))


def ordered_columns(table: Coded) -> list[str]:
    """Return the columns of numbers and times that are compared."""
    names = [*table.numbers]
    if len(names) > MOST_COLUMNS:
        chosen = np.random.default_rng(SEED).choice(len(names), MOST_COLUMNS, replace=False)
        names = [names[axis] for axis in sorted(chosen)]
    return names


def _compare_correlations(real: Coded, references: Mapping[str, Coded]) -> dict[str, Correlations]:
    names, every = ordered_columns(real), real.records.domain.names
    axes = [every.index(name) for name in names]

    def over_all(table: Coded) -> dict[str, Floats]:
        some = sample_rows(table, comb(len(names), 2))
        cells = np.array([some.numbers[name] for name in names]).reshape(len(names), len(some))
        matrices = {}
        for method, matrix in correlations(cells).items():
            np.fill_diagonal(matrix, nan)
            matrices[method] = np.full((len(every), len(every)), nan)
            matrices[method][np.ix_(axes, axes)] = matrix
        return matrices

    truth = {f"real_{method}": matrix for method, matrix in over_all(real).items()}
    return {name: Correlations(**over_all(table), **truth) for name, table in references.items()}


def correlations_of(comparison: Comparison) -> dict[str, Correlations]:
    """Return the correlations of each table beside those of the real one."""
    return comparison.compare(_compare_correlations)


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
        undefined, undefined_real = np.isnan(self.quantiles), np.isnan(self.real_quantiles)
        return np.where(
            undefined | undefined_real,
            undefined ^ undefined_real,
            np.abs(self.quantiles - self.real_quantiles) / scale,
        )

    @property
    def mean_distances(self) -> Floats:
        """Return the mean distance over the quantiles of each column."""
        return np.asarray(self.distances.mean(axis=1))

    @property
    def tails(self) -> Floats:
        """Return the distance of the last quantile of each column."""
        return self.distances[:, -1]

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


def _compare_shapes(real: Coded, references: Mapping[str, Coded]) -> dict[str, Shapes]:
    def shape(table: Coded) -> tuple[Floats, Floats]:
        some = sample_rows(table, PAIRS)
        of_columns = np.array([quantiles(cells) for cells in some.numbers.values()]).reshape(-1, len(SHARES))
        return of_columns, np.array([_deviation(cells) for cells in table.numbers.values()])

    truth_quantiles, truth_deviations = shape(real)
    shapes = {}
    for name, table in references.items():
        table_quantiles, table_deviations = shape(table)
        shapes[name] = Shapes(table_quantiles, truth_quantiles, table_deviations, truth_deviations)
    return shapes


def shapes_of(comparison: Comparison) -> dict[str, Shapes]:
    """Return quantiles and standard deviations of each table, in the order of the real table's `numbers`."""
    return comparison.compare(_compare_shapes)


def group_means(view: View, real: Coded, compared: Coded) -> Floats:
    """Return the error of the means of each number within the values of each category with few values."""
    few = {
        name: Levels(view.labels[axis], np.arange(view.domain.sizes[axis]))
        for axis, (name, kind) in enumerate(zip(view.domain.names, view.kinds, strict=True))
        if kind == "category" and view.domain.sizes[axis] - (view.missing[axis] >= 0) <= FEW_VALUES
    }
    return _means_within(few, real, compared)


def range_means(view: View, real: Coded, compared: Coded) -> Floats:
    """Return the error of the means of each number within ranges of each other number or time.

    Up to ten bins are ranges of their own. More are joined to ranges with similar shares of the real rows.
    """
    levels = dict(zip(view.domain.names, coarsen(view.labels, real.records), strict=True))
    return _means_within({name: levels[name] for name in ordered_columns(real)[:MOST_RANGED]}, real, compared)


def _means_within(groups: Mapping[str, Levels], real: Coded, compared: Coded) -> Floats:
    """Return the error of the means of each number within the levels of each other column.

    The error of a pair is the mean over the real rows of the distance of their group's means, in standard
    deviations of the number. A group that has no number in the other table counts as 1. Missing cells are
    left out.
    """
    names, every = ordered_columns(real), real.records.domain.names
    tables = [sample_rows(table, len(names) * len(groups)) for table in (real, compared)]
    errors = []
    for name in names:
        present = [table.take(np.flatnonzero(~np.isnan(table.numbers[name]))) for table in tables]
        cells = [table.numbers[name] for table in present]
        deviation = _deviation(cells[0]) or 1.0
        for column, levels in groups.items():
            if column == name:
                continue
            axis, size = every.index(column), len(levels.labels)
            values = size - (levels.labels[-1] == MISSING)
            codes = [levels.of_code[table.records.codes[:, axis]] for table in present]
            sizes = np.array([np.bincount(code, minlength=size)[:values] for code in codes])
            weighed = (
                np.bincount(code, numbers, minlength=size) for code, numbers in zip(codes, cells, strict=True)
            )
            sums = np.array([sums_of_column[:values] for sums_of_column in weighed])
            occupied = sizes[0] > 0
            if occupied.any():
                means = np.divide(sums, sizes, out=np.full(sums.shape, np.nan), where=sizes > 0)
                away = np.nan_to_num(np.abs(means[1] - means[0]) / deviation, nan=1.0)
                errors.append(float((away * sizes[0])[occupied].sum() / sizes[0].sum()))
    return np.array(errors)
