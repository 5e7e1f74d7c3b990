"""Which of three tables is unlike the other two: the synthetic one, unless the files are swapped."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import numpy as np
from scipy.stats import chi2

from privsyn.evaluation.encoding import Coded
from privsyn.marginals.domain import Integers, Ints

GROUPS = 10
"""Groups of the codes of a column, of about equally many rows."""

FALSE_ALARM = 1e-6
"""Probability that real and held-out rows of one population are said to differ."""

ALIKE = 1 / 4
"""A pair of tables is alike if its distance is at most this part of that of real and held-out rows."""


def remark_on_tables(tables: Mapping[str, Coded]) -> str:
    """Return what is wrong with three tables, if real and held-out rows differ by more than chance; else "".

    Real and held-out rows are of one population, so their columns differ by chance alone: the statistic of
    homogeneity has a chi-squared distribution in each column. If they differ, and the table in the place of
    the synthetic one is like one of them, the files may be swapped. No remark is made on a synthetic table
    that is as near to real rows as these are to each other.
    """
    counts = _grouped_counts(tables)
    statistics = {pair: [_statistic(a, b) for a, b in _of(counts, pair)] for pair in combinations(tables, 2)}
    rows = {name: len(table) for name, table in tables.items()}
    of_real = statistics["real", "control"]
    chances = [float(chi2.sf(statistic, degrees)) for statistic, degrees in of_real if degrees]
    if not chances or min(chances) * len(chances) >= FALSE_ALARM:
        return ""
    distances = {
        pair: sum(statistic - degrees for statistic, degrees in statistics[pair])
        * (1 / rows[pair[0]] + 1 / rows[pair[1]])
        for pair in statistics
    }
    limit = ALIKE * distances["real", "control"]
    words = "real and held-out rows differ by more than chance"
    if distances["synthetic", "control"] <= min(limit, distances["real", "synthetic"]):
        return (
            f"CHECK THE FILES: {words}, and the synthetic rows are like the held-out ones: the real table may"
            " stand in the place of the synthetic one"
        )
    if distances["real", "synthetic"] <= limit:
        return (
            f"CHECK THE FILES: {words}, and the synthetic rows are like the real ones: the held-out table may"
            " stand in the place of the synthetic one, or is of another population"
        )
    return (
        f"CHECK THE FILES: {words}, and so may what attacks find: give held-out rows of the same population"
    )


def _grouped_counts(tables: Mapping[str, Coded]) -> dict[str, list[Ints]]:
    """Return the counts of each table, for each column over groups of codes."""
    counts: dict[str, list[Ints]] = {name: [] for name in tables}
    for axis in range(next(iter(tables.values())).records.codes.shape[1]):
        codes = {name: table.records.codes[:, axis] for name, table in tables.items()}
        groups = _groups(np.concatenate([*codes.values()]))
        for name, column in codes.items():
            counts[name].append(np.bincount(groups[column], minlength=int(groups.max()) + 1))
    return counts


def _groups(codes: Integers) -> Integers:
    """Return the group of each code, by the places of its rows among all.

    >>> _groups(np.array([0] * 5 + [1] * 5 + [3])).tolist()
    [0, 4, 9, 9]
    """
    counts = np.bincount(codes)
    before = np.concatenate([[0], np.cumsum(counts)[:-1]])
    return np.minimum(before * GROUPS // max(len(codes), 1), GROUPS - 1)


def _of(counts: Mapping[str, list[Ints]], pair: tuple[str, str]) -> list[tuple[Ints, Ints]]:
    """Return the counts of two tables, column by column."""
    return list(zip(counts[pair[0]], counts[pair[1]], strict=True))


def _statistic(first: Ints, second: Ints) -> tuple[float, int]:
    """Return the statistic of homogeneity of two counts, and its degrees of freedom.

    >>> _statistic(np.array([50, 50]), np.array([50, 50])), _statistic(np.array([100, 0]), np.array([0, 100]))
    ((0.0, 1), (200.0, 1))
    """
    both = np.stack([first, second])[:, first + second > 0].astype(np.float64)
    expected = np.outer(both.sum(axis=1), both.sum(axis=0)) / both.sum()
    return float(((both - expected) ** 2 / np.maximum(expected, 1e-300)).sum()), both.shape[1] - 1
