"""The questions that may be put to the private table. Each answer leaves with noise and a ledger line.

Neighbouring tables differ by adding or removing one record. A record lies in exactly one cell of a
table of counts, so adding it changes that cell by 1 and no other: a table of counts has L2 sensitivity
1, and m tables asked together have sqrt(m).

Where a person may have up to k records, neighbouring tables differ by all of one person's. They are k single
additions, one after another, and each moves an answer by its sensitivity at most; so together they move it by
k times that at most (the triangle inequality), and counts just so if the k records are alike. In noise that
is k^2 times the budget: an answer that costs rho for a record costs k^2 rho for a person.
"""

from __future__ import annotations

from collections import Counter
from copy import copy
from itertools import combinations
from math import sqrt

import numpy as np

from privsyn.marginals.coarse import join, joined_domain
from privsyn.marginals.domain import Attributes, Domain, Records
from privsyn.marginals.marginal import Marginal, Measurement
from privsyn.marginals.recoding import Merging
from privsyn.marginals.types import Codes, Floats, Ints
from privsyn.private.accounting import sigma_for
from privsyn.private.dependence import GRID, INDIF_SENSITIVITY, indif_on_grid
from privsyn.private.noise import Noise, release
from privsyn.private.rows import Rows
from privsyn.private.spend import ONE_WAYS, Spend

LARGEST = 2.0**53
"""Of an expected count: up to here doubles hold every whole number, and sums of distances stay in 64 bits."""


class PrivateTable:
    """The rows, which answer only with noise, and the list of what has been asked.

    Parameters
    ----------
    rows : Rows or Records
        The private table in codes. Nothing about it is public but its domain.
    noise : Noise
        Where noise comes from.
    rows_per_unit : int
        The most records that one person has: the caller has seen to it. Each budget below is that of one
        record; the ledger is told that of a person, this many times squared.
    """

    def __init__(self, rows: Rows | Records, noise: Noise, rows_per_unit: int = 1) -> None:
        self._rows = Rows.held(rows) if isinstance(rows, Records) else rows
        self._noise = noise
        self._rows_per_unit = rows_per_unit
        self._spends: list[Spend] = []
        self._asked: Counter[str] = Counter()

    @property
    def domain(self) -> Domain:
        """Names and sizes of the attributes: public."""
        return self._rows.domain

    @property
    def spends(self) -> tuple[Spend, ...]:
        """What has been asked so far and what it cost."""
        return tuple(self._spends)

    def merge(self, merging: Merging) -> PrivateTable:
        """The rows recoded by released counts; each row by itself, so neighbours stay neighbours.

        What is asked of either table stands in one list: they hold the same people.
        """
        merged = copy(self)  # what has been asked is not copied, but shared
        merged._rows = self._rows.merge(merging)
        return merged

    def one_ways(self, rho: float) -> tuple[Measurement, ...]:
        """Question 1: the counts of every attribute's values.

        Each of the d tables has sensitivity 1, and a record more moves all of them: sqrt(d) together.

        Parameters
        ----------
        rho : float
            Budget of all of them, in zCDP.
        """
        tables: tuple[Attributes, ...] = tuple((name,) for name in self.domain.names)
        exact = list(self._rows.count(tables))
        noisy, sigma = self._answer(ONE_WAYS, np.concatenate(exact), sqrt(len(tables)), rho)
        parts = np.split(noisy, np.cumsum(self.domain.sizes)[:-1])
        return tuple(
            self._measurement(attributes, part, sigma) for attributes, part in zip(tables, parts, strict=True)
        )

    def indifs(self, rho: float) -> dict[Attributes, float]:
        """Question 2: InDif of every pair, in records; may be negative by noise.

        The sensitivity of one is argued at `indif_on_grid`; the table that attains it moves all m pairs
        at once: sqrt(m) times that together.

        Parameters
        ----------
        rho : float
            Budget of all of them, in zCDP.
        """
        pairs = list(combinations(self.domain.names, 2))
        if not pairs:
            return {}
        exact = np.array([indif_on_grid(counts) for counts in self._rows.count(pairs)], np.int64)
        what = f"dependence (InDif) of every pair, in 1/{GRID} records"
        noisy, _ = self._answer(what, exact, sqrt(len(pairs)) * INDIF_SENSITIVITY, rho)
        return dict(zip(pairs, (noisy / GRID).tolist(), strict=True))

    def departures(
        self, expected: tuple[Marginal, ...], rho: float, blocks: Merging | None = None
    ) -> tuple[Floats, float]:
        """Question 2 anew: how far each table of counts lies from what released answers let one expect.

        The expected counts, rounded, are fixed before the rows are looked at. A record more changes one
        cell of a table by 1, and so its L1 distance from them by at most 1: sensitivity 1 a table and
        sqrt(m) for m, a quarter of InDif's. So it is in blocks: a record lies in one block of each table.

        Parameters
        ----------
        expected : tuple of Marginal
            Made of released answers alone.
        rho : float
            Budget of all of them, in zCDP.
        blocks : Merging, optional
            Made of released answers alone: the codes in which `expected` is, if not the table's own.

        Returns
        -------
        departures : array of shape (m,), in records
        sigma : float, standard deviation of the noise in each
        """
        domain = self.domain if blocks is None else blocks.merged
        fixed = [_whole(table, domain) for table in expected]  # before any row is looked at
        sets = [table.attributes for table in expected]
        distances = []
        for table, whole, counts in zip(expected, fixed, self._rows.count(sets), strict=True):
            joined = counts if blocks is None else blocks.join(table.attributes, counts)
            distances.append(np.abs(joined - whole).sum())
        what = "distance of tables from their expected counts"
        noisy, sigma = self._answer(what, np.array(distances, np.int64), sqrt(len(expected)), rho)
        return noisy.astype(np.float64), sigma

    def marginals(
        self,
        tables: tuple[Attributes, ...],
        rhos: Floats,
        groups: tuple[tuple[Codes, ...] | None, ...] | None = None,
    ) -> tuple[Measurement, ...]:
        """Question 3: the counts over each set of attributes, of sensitivity 1.

        So it is in groups of codes: a record lies in one cell, and a cell in one group of cells.

        Parameters
        ----------
        tables : tuple of attributes
        rhos : array of shape (number of tables,)
            The budget of each, in zCDP.
        groups : tuple, optional
            For each table, for each of its attributes, the group of each code. Made of released answers
            alone.
        """
        measured = []
        of_tables = (None,) * len(tables) if groups is None else groups
        for attributes, rho, exact, joined in zip(
            tables, rhos.tolist(), self._rows.count(tables), of_tables, strict=True
        ):
            counts = exact if joined is None else join(exact, joined)
            shape = "" if joined is None else f", {' x '.join(map(str, counts.shape))} groups"
            noisy, sigma = self._answer(f"counts over {', '.join(attributes)}{shape}", counts, 1.0, rho)
            domain = self.domain.project(attributes)
            domain = domain if joined is None else joined_domain(domain, joined)
            noisy_table = Marginal(domain, noisy.astype(np.float64))
            measured.append(Measurement(noisy_table, np.array(sigma**2), joined))
        return tuple(measured)

    def _answer(self, what: str, exact: Ints, sensitivity: float, rho: float) -> tuple[Ints, float]:
        """The exact answer with its noise, and sigma. Written in the ledger before any noise is drawn."""
        # Up to k records of one person: k times the sensitivity, and k^2 times the cost.
        sensitivity *= self._rows_per_unit
        sigma = sigma_for(rho * self._rows_per_unit**2, sensitivity)
        self._asked[what] += 1
        look = f"{what} (look {self._asked[what]})" if self._asked[what] > 1 else what
        self._spends.append(Spend(look, exact.size, sensitivity, sigma))
        return release(exact, sigma, self._noise), sigma

    def _measurement(self, attributes: Attributes, noisy: Ints, sigma: float) -> Measurement:
        table = Marginal(self.domain.project(attributes), noisy.astype(np.float64))
        return Measurement(table, np.array(sigma**2))


def _whole(expected: Marginal, domain: Domain) -> Ints:
    """Expected counts as integers; refused where a distance from them would not have its sensitivity.

    So it is of counts that have no integers, for one that wraps is far from where it was, and of a table of
    other cells, along which one record could count many times.
    """
    if expected.domain.shape != domain.project(expected.attributes).shape:
        raise ValueError(f"expected counts {expected.domain.shape} over a domain of {domain.shape}")
    if not (np.abs(expected.counts).sum() <= LARGEST):  # nor is NaN
        raise ValueError("expected counts are finite, and at most 2^53 together")
    return np.rint(expected.counts).astype(np.int64)
