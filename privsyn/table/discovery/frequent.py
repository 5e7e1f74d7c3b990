"""Find single numbers that many rows share, such as a price of 12.99, from one noisy count a column."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil, floor

import numpy as np

from privsyn.marginals.domain import Floats, Ints, Numbers, keep
from privsyn.table.discovery.lattices import LatticeQuestion
from privsyn.table.discovery.tally import RowCells, Tally
from privsyn.table.encoding.dtypes import real_type
from privsyn.table.encoding.encoders import NumericalEncoder, OrderedEncoder
from privsyn.table.encoding.steps import MAX_DECIMALS, ON_GRID, Lattice

MOST_POINTS, MOST_OF_TABLE = 2**18, 2**20
"""Numbers that are counted: of a column, such as 2,600 dollars in cents, and of all columns together, 8 MB in
each part of the table. Where more lie between the bounds, only rounder numbers are counted."""

FALSE_DISCOVERY_RATE = 0.01
"""Expected share of the numbers found that are no more frequent than their neighbours. It is also the
probability that any is found in a table without frequent numbers (Benjamini and Hochberg, JRSS B 1995)."""

MOST_FOUND = 64
"""Numbers found in a column. Each has a cell of its own, besides the `FINE` cells."""

BESIDE = 100
"""Points on each side of a number. Their mean count says how many rows it would have by chance."""

DENSER = 2.0
"""A frequent number has this many times the rows that it would have by chance."""


@dataclass(frozen=True, eq=False)
class Frequent:
    """The frequent numbers of a column.

    Parameters
    ----------
    numbers, rows, variances : arrays of shape (found,)
        Each number, the noisy count of its rows, and the variance of its error.
    """

    numbers: Floats
    rows: Floats
    variances: Floats

    def __post_init__(self) -> None:
        keep(self, "numbers", "rows", "variances", dtype=np.float64)

    def scaled(self, factor: float) -> Frequent:
        """Return the counts of `factor` random rows of each person, on average, of whom one was counted.

        The further rows are about Poisson distributed: of r rows, ``(factor - 1) r`` on average.
        """
        by_chance = factor * (factor - 1) * np.maximum(self.rows, 0.0)
        return Frequent(self.numbers, factor * self.rows, factor**2 * self.variances + by_chance)


@dataclass(frozen=True)
class Points:
    """Consecutive multiples of a step, without zero.

    Zero and both bounds, to which other numbers are clipped, have cells of their own anyway.

    Parameters
    ----------
    step : float
    first : int
        The first multiple, in steps.
    size : int
        How many there are, with zero.
    """

    step: float
    first: int
    size: int

    @classmethod
    def between(cls, low: float, high: float, step: float) -> Points:
        """Return the multiples of a step between two bounds, which are left out.

        >>> cents = Points.between(0.0, 0.31, 0.05)
        >>> cents.numbers(np.arange(cents.size)).tolist()
        [0.05, 0.1, 0.15, 0.2, 0.25, 0.3]
        """
        first, last = floor(low / step + ON_GRID) + 1, ceil(high / step - ON_GRID) - 1
        return cls(step, first, max(last - first + 1, 0))

    def numbers(self, indices: Ints) -> Floats:
        """Return the numbers of the points at some `indices`."""
        return np.round((self.first + indices) * self.step, MAX_DECIMALS)

    def positions(self, numbers: Floats, dtype: np.dtype) -> Floats:
        """Return the place of each number among the points; NaN where it is none of them."""
        lies_on = Lattice(self.step).holds(numbers, dtype) & (numbers != 0)
        positions = np.where(lies_on, np.rint(numbers / self.step) - self.first, np.nan)
        return np.where((positions >= 0) & (positions < self.size), positions, np.nan)


@dataclass(frozen=True, eq=False)
class PointCells(RowCells):
    """The point that the number of a row is; none for other numbers."""

    column: str
    encoder: OrderedEncoder
    points: Points

    @property
    def encoders(self) -> dict[str, OrderedEncoder]:
        """The encoder of the column."""
        return {self.column: self.encoder}

    @property
    def size(self) -> int:
        """Number of points."""
        return self.points.size

    def positions(self, numbers: Numbers) -> Floats:
        """Return the place of each row's point."""
        return self.points.positions(numbers[self.column], real_type(self.encoder.dtype))


@dataclass(frozen=True)
class FrequentQuestion(Tally):
    """The columns in which frequent numbers are looked for, and the numbers that are counted in each.

    It is made from public facts and released answers.

    Parameters
    ----------
    columns : mapping of a column to the encoder that reads its numbers, and the numbers that are counted
    """

    columns: Mapping[str, tuple[OrderedEncoder, Points]]

    @classmethod
    def of(cls, lattices: LatticeQuestion) -> FrequentQuestion:
        """Return the question about the columns of numbers on a grid with more points than fine cells."""
        numeric = {
            name: (encoder, listed)
            for name, (encoder, listed) in lattices.columns.items()
            if isinstance(encoder, NumericalEncoder) and encoder.grid.decimals is not None
        }
        limit = min(MOST_POINTS, MOST_OF_TABLE // max(len(numeric), 1))
        columns = {}
        for name, (encoder, listed) in numeric.items():
            grid = encoder.grid
            for step in sorted([grid.step, *(lattice.step for lattice in listed if not lattice.offset)]):
                points = Points.between(grid.low, grid.high, step)
                if 0 < points.size <= limit:
                    columns[name] = encoder, points
                    break
        return cls(columns)

    @property
    def cells(self) -> dict[str, PointCells]:
        """The points of each column."""
        return {name: PointCells(name, *column) for name, column in self.columns.items()}

    def frequent_numbers(
        self, seen: Mapping[str, Ints], sigma: float, deviations: Callable[[Floats], Floats]
    ) -> dict[str, Frequent]:
        """Return the frequent numbers of each column that has some, from released counts.

        Parameters
        ----------
        seen : mapping of a column to its noisy counts
        sigma : float
            Standard deviation of the noise in each.
        deviations : function of probabilities
            Return how many standard deviations the noise exceeds with each.
        """
        counts = {name: noisy.astype(np.float64) for name, noisy in seen.items()}
        frequent = find_frequent(counts, sigma, deviations)
        return {
            name: Frequent(
                self.columns[name][1].numbers(indices), counts[name][indices], np.full(len(indices), sigma**2)
            )
            for name, indices in frequent.items()
        }


def find_frequent(
    seen: Mapping[str, Floats], sigma: float, deviations: Callable[[Floats], Floats]
) -> dict[str, Ints]:
    """Return the places of the frequent numbers of each column that has some.

    All columns decide together, by the rule of Benjamini and Hochberg: the more numbers stand out, the less
    each of them needs.

    Parameters
    ----------
    seen : mapping of a column to an array of shape (points,)
        Noisy counts.
    sigma, deviations
        As for `FrequentQuestion.found`.

    Examples
    --------
    >>> counts = np.zeros(1000)
    >>> counts[[200, 700, 900]] = 90.0, 53.0, 30.0
    >>> normal = lambda risk: np.sqrt(-2 * np.log(2 * risk))
    >>> find_frequent({"price": counts}, 10.0, normal)
    {'price': array([200, 700])}
    """
    size = sum(counts.size for counts in seen.values())
    candidates: dict[str, tuple[Ints, Floats]] = {}
    for name, counts in seen.items():
        # By chance a number has as many rows as the mean of those beside it, at least 0.
        below, index = np.concatenate([[0.0], np.cumsum(counts)]), np.arange(len(counts))
        first, end = np.maximum(index - BESIDE, 0), np.minimum(index + BESIDE + 1, len(counts))
        by_chance = np.maximum((below[end] - below[first]) / (end - first), 0.0)
        excess = np.where(counts >= DENSER * by_chance, counts - by_chance, 0.0)
        indices = np.sort(np.argsort(-excess, kind="stable")[:MOST_FOUND])
        candidates[name] = indices, excess[indices]
    ranked = -np.sort(-np.concatenate([excess for _, excess in candidates.values()]))
    needed = sigma * deviations(FALSE_DISCOVERY_RATE * np.arange(1, len(ranked) + 1) / size)
    passed = np.flatnonzero(ranked >= needed)
    if not passed.size:
        return {}
    threshold = needed[passed[-1]]
    frequent = {name: indices[excess >= threshold] for name, (indices, excess) in candidates.items()}
    return {name: indices for name, indices in frequent.items() if indices.size}
