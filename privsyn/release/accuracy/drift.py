r"""Drift: whether new rows may come from the population of which the private table was a sample.

Released answers and the new rows alone are compared. For a cell of a measured table let y be the noisy count
with noise variance :math:`\sigma^2`, T the estimated number of private rows with the variance
:math:`\sigma_T^2`, x the count in n new rows, and p the share of the population. Without drift
:math:`d = x / n - y / T` has mean 0 and the variance of the noise in y and in T, and of both samples:

.. math:: v = (\sigma^2 + p^2 \sigma_T^2) / T^2 + p (1 - p) (1 / n + 1 / T)

The share p is estimated by (x + y) / (n + T). Sums of independent variables that are bounded, or normal, are
*sub-gamma* (Boucheron, Lugosi and Massart, "Concentration Inequalities", 2013, Section 2.4). One row adds at
most 1 / n or 1 / T to d. With a third of the larger of these as c,

.. math:: P(|d| \ge t) \le 2 \exp(-t^2 / (v + c t + \sqrt{v^2 + 2 v c t}))

Laplace noise of scale s is sub-gamma with c = s / T. The larger c counts; with this noise the bound is many
times too large. Of columns with an order, the shares up to each value are compared too: a shift of all
numbers changes each cell little, and these shares much.

A p-value is this bound times the number of comparisons (Bonferroni). Half of it is for columns, and half for
sets of columns. It holds however the answers depend on each other. It neglects the error of the estimate
of p.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from privsyn.inference.fitted import ROUNDING, Certainty, Fitted
from privsyn.marginals.domain import Attributes, Floats, Ints


class Difference(NamedTuple):
    """The largest difference between new rows and the private table in a column or a set of columns.

    Parameters
    ----------
    columns : tuple of str
    p_value : float
        NaN if they are not compared.
    where : str
        Which rows the shares are of, or why there are none.
    rows, release : float
        Shares of the new rows; noisy shares of the private table.
    """

    columns: tuple[str, ...]
    p_value: float
    where: str
    rows: float
    release: float


@dataclass(frozen=True, eq=False)
class Shares:
    """Shares of new rows and of the private table: of cells, or of all rows up to each value of a column.

    Parameters
    ----------
    attributes : tuple of str
    up_to : bool
        Whether each share is of all rows up to a value.
    rows, release : arrays of shape (comparisons,)
        Shares of the new rows; noisy shares of the private table.
    variance : array of shape (comparisons,)
        Of the noise in the shares of the private table.
    """

    attributes: Attributes
    up_to: bool
    rows: Floats
    release: Floats
    variance: Floats

    @classmethod
    def of(cls, certainty: Certainty, counts: Ints, fitted: Fitted) -> Iterator[Shares]:
        """Yield the shares of the cells of a table, and of the rows up to each value of an ordered column.

        Parameters
        ----------
        certainty : Certainty
            Of the table.
        counts : array of its shape
            Of the new rows.
        fitted : Fitted
        """
        measured, names, total = certainty.measured, certainty.attributes, fitted.total
        shares = measured.grouping.join(counts).ravel() / max(int(counts.sum()), 1)
        noisy, variance = measured.marginal.counts.ravel() / total, measured.variance.ravel() + ROUNDING
        yield cls(names, False, shares, noisy, variance / total**2)
        ordered = fitted.merging.merged.ordered_of.get(names[0], 0)
        if len(names) == 1 and ordered > 1 and not measured.grouping:
            # The noise of a sum is at most that of independent cells: measurements in groups make it smaller.
            shares, noisy, variance = (np.cumsum(cells[: ordered - 1]) for cells in (shares, noisy, variance))
            yield cls(names, True, shares, noisy, variance / total**2)

    def bounds(self, rows: int, fitted: Fitted, *, laplace: bool) -> Floats:
        """Return a bound on the probability of each difference or a larger one, without drift.

        Parameters
        ----------
        rows : int
            Number of new rows.
        fitted : Fitted
        laplace : bool
            Whether the noise is discrete Laplace; else it is Gaussian.

        Returns
        -------
        array of shape (comparisons,)
            Above 1 if nothing is bounded.
        """
        total = fitted.total
        share = np.clip((rows * self.rows + total * self.release) / (rows + total), 0, 1)
        variance = self.variance + (share * fitted.noise_of_total / total) ** 2
        variance += share * (1 - share) * (1 / rows + 1 / total)
        scale = np.full_like(share, max(1 / rows, 1 / total) / 3)  # c
        if laplace:
            scale = np.maximum(scale, np.sqrt(self.variance / 2))
        gap = np.abs(self.rows - self.release)
        denominator = variance + scale * gap + np.sqrt(variance**2 + 2 * variance * scale * gap)
        return 2 * np.exp(-(gap**2) / denominator)
