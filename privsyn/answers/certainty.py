r"""What the release knows of its own errors: the noise in each table, and how far off it is expected to be.

Two things are told apart. An *interval* for a count comes from what was heard of that table itself, whose
noise is known; it holds whatever the table is like. The *expected error* is that of the estimate, for which
much else was used (the one-ways, the other pairs, the latent classes); it is as good as the model is.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from privsyn.answers.arrays import Floats
from privsyn.answers.consistency import EXACT
from privsyn.answers.dispersion import MEAN_OF_ABSOLUTE
from privsyn.answers.domain import Attributes
from privsyn.answers.intervals import count_intervals
from privsyn.answers.marginal import Marginal, Measurement, lift


@dataclass(frozen=True, eq=False)
class Certainty:
    """How well one released table of counts is known.

    Parameters
    ----------
    heard : Measurement
        All that was measured of this very table, averaged by precision.
    error : float
        Expected total variation between the released counts and the true ones: the share of records that
        would have to move.
    """

    heard: Measurement
    error: float

    def __post_init__(self) -> None:
        if not 0 <= self.error < float("inf"):
            raise ValueError(f"error {self.error}: expected is a number of at least 0")
        if not np.isfinite(self.heard.marginal.counts).all():
            raise ValueError("what was heard is not all finite")

    @property
    def attributes(self) -> Attributes:
        """Of the table."""
        return self.heard.attributes

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise in a cell, in records: the root of the mean variance."""
        return float(np.sqrt(self.heard.variance.mean()))

    def intervals(self) -> tuple[Floats, Floats]:
        """Ends of a 95 % interval for the true count of each cell."""
        return count_intervals(self.heard.marginal.counts, self.heard.variance)


def one_way_certainty(heard: Measurement) -> Certainty:
    """Of a one-way table made of all that was heard of it; its total is known better from all the others."""
    return Certainty(heard, _expected_variation(_centred(heard.variance), heard.marginal.total))


def table_certainty(
    measured: Measurement, left: Floats, table: Marginal, one_ways: tuple[Measurement, ...]
) -> Certainty:
    """Of a table that was measured and then given the margins of the one-ways.

    Parameters
    ----------
    measured : Measurement
    left : array of the table's shape
        Variance that the measurement left in each cell.
    table : Marginal
        What is released of it.
    one_ways : tuple of Measurement
        All that was heard of each attribute: what their noise does to the table comes on top.
    """
    variance = _centred(left)
    variance = variance * _misfit(measured, variance, table)
    for one_way in one_ways:
        if one_way.attributes[0] in table.attributes:
            margin = lift(table.project(one_way.attributes), table.domain)
            share = np.divide(table.counts, margin, out=np.zeros(table.counts.shape), where=margin > 0)
            noise = lift(Marginal(one_way.marginal.domain, one_way.variance), table.domain)
            variance = variance + noise * share**2
    return Certainty(measured, _expected_variation(variance, table.total))


def _misfit(measured: Measurement, variance: Floats, table: Marginal) -> float:
    """By how much what was heard contradicts the variance that the model expects of its errors; at least 1.

    Were the model right, what was heard would lie about the estimate with the noise's variance less that of
    the estimate. What is beyond, and beyond chance (one standard deviation), is the model's own error.
    """
    energy = np.sum((measured.marginal.counts - table.counts) ** 2)
    excess = energy - np.sum(measured.variance - variance) - np.sqrt(2 * np.sum(measured.variance**2))
    return 1.0 + max(float(excess), 0.0) / max(float(variance.sum()), EXACT)


def _centred(variance: Floats) -> Floats:
    """What is left in a cell when the margins are taken off: the share of prod(1 - 1/size)."""
    return variance * prod(1 - 1 / size for size in variance.shape)


def _expected_variation(variance: Floats, total: float) -> float:
    """Expected total variation, of normal errors; no two distributions lie further apart than 1."""
    return min(
        MEAN_OF_ABSOLUTE * float(np.sqrt(np.maximum(variance, EXACT)).sum()) / (2 * max(total, 1.0)), 1.0
    )
