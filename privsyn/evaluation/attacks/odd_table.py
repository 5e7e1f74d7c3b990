"""Which of three tables is unlike the other two: the synthetic one, unless the files are swapped."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import numpy as np
from scipy.special import xlogy
from scipy.stats import chi2

from privsyn.evaluation.encoding import Coded
from privsyn.marginals.domain import Integers, Ints

GROUPS = 10
"""Groups of the codes of a column, of about equally many rows."""

EXPECTED = 20
"""The fewest rows that are expected in a group of each table, if both are of one population."""

FALSE_ALARM = 1e-6
"""Probability that real and held-out rows of one population are said to differ."""

DECIDED = FALSE_ALARM / 4
"""What a chi-squared distribution says of a false alarm: of few rows it is up to 2.1 times as probable."""

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
    statistics = {
        pair: [_statistic(a, b) for a, b in _by_column(counts, pair)] for pair in combinations(tables, 2)
    }
    rows = {name: len(table) for name, table in tables.items()}
    of_real = statistics["real", "control"]
    chances = [float(chi2.sf(statistic, degrees)) for statistic, degrees in of_real if degrees]
    if not chances or min(chances) * len(chances) >= DECIDED:
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


def _by_column(counts: Mapping[str, list[Ints]], pair: tuple[str, str]) -> list[tuple[Ints, Ints]]:
    """Return the counts of two tables, column by column."""
    return list(zip(counts[pair[0]], counts[pair[1]], strict=True))


def _statistic(first: Ints, second: Ints) -> tuple[float, int]:
    """Return the statistic of homogeneity of two counts, and its degrees of freedom.

    It is the deviance: of few expected rows, far above what is expected is less probable than a chi-squared
    distribution says, while a sum of squares of them is more probable.

    >>> _statistic(np.array([50, 50]), np.array([50, 50])), _statistic(np.array([90, 9]), np.array([900, 90]))
    ((0.0, 1), (0.0, 0))
    """
    both = _joined(np.stack([first, second])).astype(np.float64)
    expected = np.outer(both.sum(axis=1), both.sum(axis=0)) / both.sum()
    return float(max(2 * (xlogy(both, both) - xlogy(both, expected)).sum(), 0.0)), both.shape[1] - 1


def _joined(counts: Ints) -> Ints:
    """Return counts of two tables with the rarest groups joined, so that enough rows are expected in each.

    >>> _joined(np.array([[20, 300, 4, 7], [40, 600, 9, 1]])).tolist()
    [[31, 300], [50, 600]]
    >>> _joined(np.array([[2, 300, 4], [4, 600, 1]])).tolist()  # the rest joins the last that is large enough
    [[306], [605]]
    """
    both = counts.sum(axis=0)
    order = np.argsort(both, kind="stable")
    rare = counts.sum(axis=1).min() / both.sum()
    groups, joined, expected = np.zeros(len(both), np.int64), 0, 0.0
    for index in order:
        groups[index], expected = joined, expected + rare * both[index]
        if expected >= EXPECTED:
            joined, expected = joined + 1, 0.0
    groups = np.minimum(groups, max(joined - 1, 0))
    return np.stack([np.bincount(groups, row).astype(np.int64) for row in counts])
