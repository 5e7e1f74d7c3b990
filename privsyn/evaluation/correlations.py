"""Metrics of correlations: Spearman's and Pearson's, of exact numbers, over the rows that have both cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from math import comb, nan

import numpy as np

from privsyn.evaluation.coded import Coded
from privsyn.evaluation.comparison import SEED, Comparison
from privsyn.marginals.domain import Attributes
from privsyn.marginals.types import Floats, Integers, Mask, keep

MOST_COLUMNS = 200
"""Of more ordered columns a fixed sample is compared."""

WORK, FEWEST_ROWS = 10**8, 10_000
"""Rows times pairs: of larger tables a fixed sample of rows is used, at least 10,000."""


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
        gaps = np.abs(getattr(self, method) - getattr(self, f"real_{method}"))
        above = gaps[np.triu_indices(len(gaps), 1)]
        return above[~np.isnan(above)]

    def worst(self, names: Attributes, most: int) -> dict[str, tuple[tuple[Attributes, float, float], ...]]:
        """Return the pairs with the largest errors: columns, real and synthetic correlation, by method."""
        found: dict[str, tuple[tuple[Attributes, float, float], ...]] = {}
        for method in METHODS:
            real, other = getattr(self, f"real_{method}"), getattr(self, method)
            gaps = np.triu(np.nan_to_num(np.abs(other - real), nan=-1.0) + 1, 1) - 1
            order = np.argsort(-gaps, axis=None, kind="stable")[:most]
            places = zip(*np.unravel_index(order, gaps.shape), strict=True)
            found[method] = tuple(
                ((names[a], names[b]), float(real[a, b]), float(other[a, b]))
                for a, b in places
                if gaps[a, b] >= 0
            )
        return found


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
    places = [np.unique(column, return_inverse=True)[1] for column in columns]
    every = np.ones(columns.shape[1], np.bool_)
    ranks = np.array([_ranks(place, every) for place in places]).reshape(columns.shape)
    found = {"spearman": _matrix(ranks), "pearson": _matrix(np.where(present, columns, 0.0))}
    for a, b in combinations(range(len(columns)), 2):
        both = present[a] & present[b]
        if both.all():
            continue
        pairs = {
            "spearman": [_ranks(place, both) for place in (places[a], places[b])],
            "pearson": [columns[a][both], columns[b][both]],
        }
        for method, (x, y) in pairs.items():
            found[method][[a, b], [b, a]] = float(_unit(x) @ _unit(y)) if len(x) > 1 else 0.0
    return found


def _ranks(places: Integers, rows: Mask) -> Floats:
    """Return the middle rank of each selected row, given the place of its number among the distinct ones."""
    chosen = places[rows]
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
    most = max(WORK // max(pairs, 1), FEWEST_ROWS)
    if len(table) <= most:
        return table
    rows = np.random.default_rng(SEED).choice(len(table), most, replace=False)
    return table.take(np.sort(rows))


def ordered_columns(table: Coded) -> list[str]:
    """Return the columns of numbers and times that are compared."""
    names = [*table.numbers]
    if len(names) > MOST_COLUMNS:
        chosen = np.random.default_rng(SEED).choice(len(names), MOST_COLUMNS, replace=False)
        names = [names[place] for place in sorted(chosen)]
    return names


def _compare(real: Coded, others: Mapping[str, Coded]) -> dict[str, Correlations]:
    names, every = ordered_columns(real), real.records.domain.names
    axes = [every.index(name) for name in names]

    def over_all(table: Coded) -> dict[str, Floats]:
        some = sample_rows(table, comb(len(names), 2))
        cells = np.array([some.numbers[name] for name in names]).reshape(len(names), len(some))
        found = {}
        for method, matrix in correlations(cells).items():
            np.fill_diagonal(matrix, nan)
            found[method] = np.full((len(every), len(every)), nan)
            found[method][np.ix_(axes, axes)] = matrix
        return found

    truth = {f"real_{method}": matrix for method, matrix in over_all(real).items()}
    return {name: Correlations(**over_all(table), **truth) for name, table in others.items()}


def correlations_of(comparison: Comparison) -> dict[str, Correlations]:
    """Return the correlations of each table beside those of the real one."""
    return comparison.compare(_compare)
