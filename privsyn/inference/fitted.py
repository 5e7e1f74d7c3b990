"""Fitted: the estimated tables, ready for synthesis."""

from __future__ import annotations

from dataclasses import dataclass

from privsyn.inference.error_bars import Certainty
from privsyn.marginals.marginal import Marginal
from privsyn.marginals.recoding import Merging


@dataclass(frozen=True, eq=False)
class Fitted:
    """Estimates from all noisy answers; the private table is not needed any more.

    Parameters
    ----------
    merging : Merging
        How values were pooled, and how to restore them.
    one_ways : tuple of Marginal, one per attribute, in merged codes
    marginals : tuple of Marginal
        Counts over several attributes each. Overlapping tables agree: to rounding in the published method;
        in the default as far as proportional fitting converged, within a few per cent of the rows at worst.
    total : float
        Estimated number of rows, at least 1.
    certainties : tuple of Certainty
        Errors of the one-ways, then of the marginals.
    """

    merging: Merging
    one_ways: tuple[Marginal, ...]
    marginals: tuple[Marginal, ...]
    total: float
    certainties: tuple[Certainty, ...]

    def __post_init__(self) -> None:
        names = tuple(name for one_way in self.one_ways for name in one_way.attributes)
        if names != self.merging.merged.names:
            raise ValueError(f"one-way tables of {names} over a domain of {self.merging.merged.names}")
        tables = [table.attributes for table in (*self.one_ways, *self.marginals)]
        if [certainty.attributes for certainty in self.certainties] != tables:
            raise ValueError(f"certainties of other tables than {tables}")
        if not 1 <= self.total < float("inf"):
            raise ValueError(f"total {self.total}: at least one row is estimated")
