"""Exact counts of a table whose columns were all randomised by the respondents.

Such a table is private already: every function of it is at most as revealing, so its counts get no noise.
This holds for the cells of a respondent. That a respondent has a record was never hidden, and so the number
of records is public.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from privsyn.marginals.domain import Attributes, Domain
from privsyn.marginals.marginal import Marginal, Measurement
from privsyn.marginals.recoding import Merging
from privsyn.private.rows import Rows


class RandomisedTable:
    """The encoded rows of a table in which every column is randomised. It answers without noise.

    Parameters
    ----------
    rows : Rows
    randomised : collection of str
        The columns that the schema declares randomised. A table with any other column is refused: its exact
        counts would reveal it.
    """

    def __init__(self, rows: Rows, randomised: Collection[str]) -> None:
        if others := set(rows.domain.names).difference(randomised):
            raise ValueError(f"exact counts of columns that are not randomised: {sorted(others)}")
        self._rows = rows
        self._randomised = randomised

    @property
    def domain(self) -> Domain:
        """Names and sizes of the attributes: public."""
        return self._rows.domain

    def merge(self, merging: Merging) -> RandomisedTable:
        """Return the table with its codes merged."""
        return RandomisedTable(self._rows.merge(merging), self._randomised)

    def count(self, tables: tuple[Attributes, ...]) -> tuple[Measurement, ...]:
        """Return the exact counts over each set of attributes."""
        return tuple(
            Measurement(Marginal(self.domain.project(attributes), counts.astype(np.float64)), np.array(0.0))
            for attributes, counts in zip(tables, self._rows.count(tables), strict=True)
        )
