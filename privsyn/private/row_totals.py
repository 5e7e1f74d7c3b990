"""RowTotals, how many rows each set of owners has: counts without a lost owner are scaled to all rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from privsyn.marginals.marginal import Marginal, Measurement


@dataclass(eq=False)
class RowTotals:
    """Estimates of the number of rows from released tables, by how many owners had been lost before.

    Tables before and after a loss would contradict each other in their totals, and inference would share the
    difference out among cells. So later ones are scaled to the first total, as if the rows of a lost owner
    were like those of the others. All of it follows from released answers: it is post-processing.

    Parameters
    ----------
    lost : callable
        Returns how many owners have no part in the last answer.
    """

    lost: Callable[[], int]
    _sums: dict[int, tuple[float, float]] = field(default_factory=dict)  # of weights, and of weighted totals

    @property
    def factor(self) -> float:
        """The rows of all owners, over those in the last answer; at least 1, and 1 if either is unknown.

        >>> rows = RowTotals(lambda: 1, {0: (2.0, 200.0), 1: (0.1, 8.0)})
        >>> rows.factor
        1.25
        """
        first, last = (self._sums.get(lost, (0.0, 0.0)) for lost in (min(self._sums, default=0), self.lost()))
        if min(*first, *last) <= 0:
            return 1.0
        return max(1.0, first[1] / first[0] * last[0] / last[1])

    def scaled(self, measured: Measurement) -> Measurement:
        """Return a table that was just counted, for the rows of all owners. Its noise is scaled too."""
        weight, weighted = self._sums.get(self.lost(), (0.0, 0.0))
        precision = 1 / float(measured.variance.sum())
        total = measured.marginal.total
        self._sums[self.lost()] = weight + precision, weighted + precision * total
        return multiplied(self.factor, measured)


def multiplied(factor: float, measured: Measurement) -> Measurement:
    """Return a measurement whose counts and noise are multiplied by a number."""
    if factor == 1:
        return measured
    counts = Marginal(measured.marginal.domain, factor * measured.marginal.counts)
    return Measurement(counts, factor**2 * measured.variance, measured.grouping)
