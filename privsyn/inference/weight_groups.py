"""In which groups of codes the weights of rows are counted together with another column.

A weighted count is a sum over groups of the mean weight in a group times a noisy count. More groups add
noise; fewer hide how the weight depends on the other column inside them. The groups follow from released
counts of single columns, and from the public layout of their cells.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Self

import numpy as np

from privsyn.inference.measured_columns import MeasuredColumns, PublicFacts
from privsyn.marginals.domain import Codes, Floats
from privsyn.marginals.marginal import Grouping, Marginal
from privsyn.marginals.tolerances import TINY_COUNT

DEPENDENCE = 0.35
"""By how many standard deviations the mean inside a group may depend on the other column: in between the
limits that intervals allow for, `LEAST_TILT` and `TILT`. Half or twice as much makes weighted shares less
certain."""


@dataclass(frozen=True, eq=False)
class WeightedPairs:
    """How pairs of the weights of rows and another attribute are counted.

    Parameters
    ----------
    weight : str
        The attribute of the weights.
    middles : mapping of an attribute to an array of shape (codes,)
        For the attributes of numbers: the middle of each code, in grid points, before codes are merged.
    """

    weight: str
    middles: Mapping[str, Floats]

    @classmethod
    def of(cls, facts: PublicFacts) -> Self | None:
        """Return how these pairs are counted; None if rows have no weights."""
        if facts.weight is None:
            return None
        one_part = {name: axis.widths for name, axis in facts.axes.items() if not axis.second}
        return cls(facts.weight, {name: np.cumsum(widths) - widths / 2 for name, widths in one_part.items()})

    def grouping(
        self, default: Grouping, table: Marginal, measured_columns: MeasuredColumns, sigma: float
    ) -> Grouping:
        """Return the groups in which a weighted count of a pair is expected to err least.

        Parameters
        ----------
        default : Grouping
            Attributes without an order keep it.
        table : Marginal
            The expected counts of the pair, whose margins are released.
        measured_columns : MeasuredColumns
        sigma : float
            Standard deviation of the noise in each count.
        """
        groups = dict(zip(table.attributes, default.of_codes(table.domain.shape), strict=True))
        (partner,) = set(table.attributes) - {self.weight}
        noise = sigma
        for name in (self.weight, partner):
            if name in self.middles:
                numbers, rows = self._cells(name, table, measured_columns)
                codes = least_error_groups(numbers, rows, noise)
                nominal = codes[-1] + 1 + np.arange(table.domain.size_of[name] - len(codes))
                groups[name] = np.concatenate([codes, nominal]).astype(np.int32)
                noise = sigma * _spread(codes, numbers, rows)
        return Grouping(tuple(groups[name] for name in table.attributes))

    def _cells(self, name: str, table: Marginal, measured_columns: MeasuredColumns) -> tuple[Floats, Floats]:
        """Return the middle of each merged code of an attribute that has an order, and its released rows."""
        merging, middles = measured_columns.merging, self.middles[name]
        ordered, cells = table.domain.ordered_of[name], slice(len(middles))
        merged, share = merging.group_of[name][cells], merging.share_of[name][cells]
        sums, shares = np.bincount(merged, share * middles, ordered), np.bincount(merged, share, ordered)
        rows = np.maximum(table.project((name,)).counts[:ordered], 0.0) + TINY_COUNT
        return sums / np.maximum(shares, TINY_COUNT), rows


def _spread(groups: Codes, numbers: Floats, rows: Floats) -> float:
    """Return the factor of the noise that a group of the other attribute has with these groups of weights.

    Its weighted count has the noise of each of them. What it hides is that of one count, as if all its rows
    had one weight.
    """
    in_group = np.bincount(groups, rows)
    away = np.bincount(groups, rows * numbers) / in_group - float(rows @ numbers) / float(rows.sum())
    hidden = float(away**2 @ in_group) / float(rows.sum())
    return sqrt(float(away @ away) / hidden) if hidden > 0 else 1.0


def least_error_groups(weights: Floats, rows: Floats, sigma: float) -> Codes:
    r"""Return groups of increasing weights with which a weighted count is expected to err least.

    Let :math:`\sigma` be the standard deviation of the noise in the count of each group, and :math:`n_g` the
    rows in it, of mean weight :math:`w_g` and standard deviation :math:`s_g`. The squared error is

    .. math:: \sum_g \sigma^2 (w_g - \bar w)^2 + (d\, n_g s_g)^2

    because the number of all rows is known far better, and d is `DEPENDENCE`. The least sum over all
    divisions into runs of codes is found from the first code on.

    Parameters
    ----------
    weights, rows : arrays of shape (codes,)
    sigma : float

    Examples
    --------
    >>> weights, rows = np.array([1.0, 1.1, 2, 2.1, 8]), np.array([90.0, 90, 90, 90, 9])
    >>> least_error_groups(weights, rows, 1.0).tolist(), least_error_groups(weights, rows, 50.0).tolist()
    ([0, 1, 2, 3, 4], [0, 0, 1, 2, 2])
    """
    sums = [np.append(0.0, np.cumsum(rows * weights**power)) for power in (0, 1, 2)]
    number, first, second = (end[np.newaxis, :] - end[:, np.newaxis] for end in sums)  # from code to code
    mean = float(rows @ weights) / float(rows.sum())
    with np.errstate(divide="ignore", invalid="ignore"):
        noise = (sigma * (first / number - mean)) ** 2
    inside = DEPENDENCE**2 * np.maximum(number * second - first**2, 0.0)  # number^2 times the variance
    best, begins = np.zeros(len(rows) + 1), np.zeros(len(rows) + 1, np.int64)
    for end in range(1, len(best)):
        errors = best[:end] + noise[:end, end] + inside[:end, end]
        begins[end] = int(np.argmin(errors))
        best[end] = errors[begins[end]]
    starts = np.zeros(len(rows), np.int32)
    end = len(rows)
    while end:
        starts[begins[end]] = 1
        end = int(begins[end])
    return np.asarray(np.cumsum(starts) - 1, np.int32)
