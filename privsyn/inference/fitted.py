"""Fitted: all that the answers say of a table, ready to make records from."""

from __future__ import annotations

from dataclasses import dataclass

from privsyn.inference.error_bars import Certainty
from privsyn.marginals.marginal import Marginal
from privsyn.marginals.recoding import Merging


@dataclass(frozen=True, eq=False)
class Fitted:
    """What is left of the private table when all questions have been answered.

    Parameters
    ----------
    merging : Merging
        Which values were pooled, and how to share them out again.
    one_ways : tuple of Marginal, one an attribute, in merged codes
    marginals : tuple of Marginal
        Counts over several attributes each. Where they overlap they agree: to rounding in the published
        method; in the default as far as proportional fitting got, a few per cent of the rows at worst.
    total : float
        Estimated number of rows, at least 1.
    certainties : tuple of Certainty
        How well each of the one-ways and then of the marginals is known.
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
