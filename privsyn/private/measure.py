"""The questions that may be put to the private table. Each answer leaves with noise and a ledger line.

Neighbouring tables differ by adding or removing one record. A record lies in exactly one cell of a
table of counts, so adding it changes that cell by 1 and no other: a table of counts has L2 sensitivity
1, and k tables asked together have sqrt(k).
"""

from __future__ import annotations

from itertools import combinations
from math import sqrt

import numpy as np
import numpy.typing as npt

from privsyn.answers.counting import count
from privsyn.answers.domain import Attributes, Domain, Records
from privsyn.answers.marginal import Marginal, Measurement
from privsyn.answers.merging import Merging
from privsyn.private.accounting import sigma_for
from privsyn.private.dependence import GRID, INDIF_SENSITIVITY, indif_on_grid
from privsyn.private.ledger import Spend
from privsyn.private.noise import Noise, release


class PrivateTable:
    """The rows, which answer only with noise, and the list of what has been asked.

    Parameters
    ----------
    records : Records
        The private table in codes. Nothing about it is public but its domain.
    noise : Noise
        Where noise comes from.
    """

    def __init__(self, records: Records, noise: Noise) -> None:
        self._records = records
        self._noise = noise
        self._spends: list[Spend] = []

    @property
    def domain(self) -> Domain:
        """Names and sizes of the attributes: public."""
        return self._records.domain

    @property
    def spends(self) -> tuple[Spend, ...]:
        """What has been asked so far and what it cost."""
        return tuple(self._spends)

    def merge(self, merging: Merging) -> None:
        """Recode the rows by released counts; each row by itself, so neighbours stay neighbours."""
        self._records = merging.merge(self._records)

    def one_ways(self, rho: float) -> tuple[Measurement, ...]:
        """Question 1: the counts of every attribute's values."""
        tables: list[Attributes] = [(name,) for name in self.domain.names]
        sigma = sigma_for(rho, sqrt(len(tables)))
        return self._counts(tables, sigma, "one-way counts of every attribute")

    def indifs(self, rho: float) -> dict[Attributes, float]:
        """Question 2: InDif of every pair, in records; may be negative by noise."""
        pairs = list(combinations(self.domain.names, 2))
        if not pairs:
            return {}
        exact = np.array([indif_on_grid(count(self._records, pair)) for pair in pairs], np.int64)
        sensitivity = sqrt(len(pairs)) * INDIF_SENSITIVITY  # argued at `indif_on_grid`
        sigma = sigma_for(rho, sensitivity)
        noisy = release(exact, sigma, self._noise)
        what = f"dependence (InDif) of every pair, in 1/{GRID} records"
        self._spends.append(Spend(what, len(pairs), sensitivity, sigma))
        return dict(zip(pairs, (noisy / GRID).tolist(), strict=True))

    def departures(self, expected: tuple[Marginal, ...], rho: float) -> tuple[npt.NDArray[np.float64], float]:
        """Question 2 anew: how far each table of counts lies from what released answers let one expect.

        The expected counts, rounded, are fixed before the rows are looked at. A record more changes one
        cell of a table by 1, and so its L1 distance from them by at most 1: sensitivity 1 a table and
        sqrt(m) for m, a quarter of InDif's.

        Returns
        -------
        departures : array of shape (m,), in records
        sigma : float, standard deviation of the noise in each
        """
        exact = [
            int(np.abs(count(self._records, e.attributes) - np.rint(e.counts).astype(np.int64)).sum())
            for e in expected
        ]
        sensitivity = sqrt(len(expected))
        sigma = sigma_for(rho, sensitivity)
        noisy = release(np.array(exact, np.int64), sigma, self._noise)
        self._spends.append(
            Spend("distance of tables from their expected counts", len(exact), sensitivity, sigma)
        )
        return noisy.astype(np.float64), sigma

    def marginals(
        self, tables: tuple[Attributes, ...], rhos: npt.NDArray[np.float64]
    ) -> tuple[Measurement, ...]:
        """Question 3: the counts over each set of attributes, with its own part of the budget."""
        measured: list[Measurement] = []
        for attributes, rho in zip(tables, rhos.tolist(), strict=True):
            what = f"counts over {', '.join(attributes)}"
            measured += self._counts([attributes], sigma_for(rho, 1.0), what)
        return tuple(measured)

    def _counts(self, tables: list[Attributes], sigma: float, what: str) -> tuple[Measurement, ...]:
        """Tables of counts with noise of one sigma: L2 sensitivity sqrt(number of tables)."""
        exact = [count(self._records, attributes) for attributes in tables]
        noisy = [release(table, sigma, self._noise) for table in exact]
        cells = sum(table.size for table in exact)
        self._spends.append(Spend(what, cells, sqrt(len(tables)), sigma))
        return tuple(
            Measurement(
                Marginal(self.domain.project(attributes), table.astype(np.float64)), np.array(sigma**2)
            )
            for attributes, table in zip(tables, noisy, strict=True)
        )
