"""How many rows the persons have, from released counts, and the bounds on a person's rows that follow."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import sqrt

import numpy as np

from privsyn.marginals.domain import Floats, Ints

CLEAR = 4.5  # standard deviations by which the last classes stand out of the noise: false in 1 of 1,000 runs
JOINED = 2.0  # the same of joined classes before them
WINDOW = 8  # most classes that are summed to find the last
CELLS = 36  # of a table that stand out of the noise, assumed
FOR_TABLES = 0.75  # share of the budget for tables of two columns, assumed
ALIKE = 0.2  # probability that two rows of a person are in the same cell of a table, assumed
MOST = 16  # largest bound: a person's squares then take 256 rows
GROUPS = 6  # of persons by their number of rows


@dataclass(frozen=True, eq=False)
class RowsPerPerson:
    """Estimated numbers of persons by their number of rows.

    Parameters
    ----------
    begins : integer array of shape (classes,)
        The first number of rows of each class.
    persons : array of shape (classes,)
        Estimated number of persons in each, at least 0.
    """

    begins: Ints
    persons: Floats

    @classmethod
    def of(cls, begins: Ints, noisy: Ints, variance: float) -> RowsPerPerson:
        """Return the estimate from noisy counts of the classes.

        In the tail few persons have many rows each, so noise there would change the number of rows most. The
        last class with persons is the last at which a sum of neighbouring classes stands out of the noise.
        From there on, classes are joined until their sum stands out. The persons of joined classes are spread
        evenly over them.

        Examples
        --------
        >>> begins = np.array([1, 2, 3, 4, 5, 7, 9])
        >>> rows = RowsPerPerson.of(begins, np.array([900, 400, 25, 45, 9, -12, 11]), 10.0**2)
        >>> rows.persons.tolist()
        [900.0, 400.0, 25.0, 45.0, 0.0, 0.0, 0.0]
        """
        counts, sigma = noisy.astype(np.float64), sqrt(variance)
        persons, end = np.zeros(len(counts)), _end(counts, sigma)
        while end:
            sums = np.cumsum(counts[:end][::-1])
            clear = sums > JOINED * sigma * np.sqrt(np.arange(1, end + 1))
            length = int(np.argmax(clear)) + 1 if clear.any() else end
            persons[end - length : end] = max(float(sums[length - 1]), 0.0) / length
            end -= length
        return cls(begins, persons)

    @property
    def rows(self) -> Floats:
        """The mean number of rows of a person in each class."""
        ends = np.append(self.begins[1:], self.begins[-1] + 1)
        return np.sqrt(self.begins * (ends - 1.0))  # persons with fewer rows are more frequent

    @property
    def most(self) -> int:
        """The largest number of rows of the last class with persons, at least 1.

        >>> RowsPerPerson(np.array([1, 2, 4, 6]), np.array([9.0, 0.0, 2.0, 0.0])).most
        5
        """
        ends = [*(self.begins[1:] - 1).tolist(), int(self.begins[-1])]
        return ends[int(np.flatnonzero(self.persons > 0).max(initial=0))]

    @property
    def total(self) -> float:
        """The number of rows of all persons."""
        return float(self.persons @ self.rows)

    @cached_property
    def groups(self) -> Ints:
        """The places of at most `GROUPS` classes at which groups with about equally many rows begin.

        >>> RowsPerPerson(np.array([1, 2, 3, 4, 5]), np.array([600.0, 50.0, 50.0, 25.0, 0.0])).groups.tolist()
        [0, 1, 3]
        """
        of_classes = self.persons * self.rows
        middles = (np.cumsum(of_classes) - of_classes / 2) / max(float(of_classes.sum()), 1.0)
        groups = np.minimum((GROUPS * middles).astype(np.int64), GROUPS - 1)
        groups[of_classes <= 0] = -1
        begins = [int(np.flatnonzero(groups == group)[0]) for group in np.unique(groups[groups >= 0])] or [0]
        begins[0] = 0
        return np.array(begins)

    def in_groups(self, kept: Floats) -> Floats:
        """Return the number of rows in each group, given how many are kept of a person of each class."""
        return np.add.reduceat(self.persons * kept, self.groups)

    def kept(self, most: int) -> Floats:
        """Return of each class how many rows of a person are kept if these are at most `most`."""
        return np.minimum(self.rows, most)

    def kept_within(self, most: int, alike: float | None = None) -> Floats:
        """Return the same if rows are kept while the squared counts of a person sum to ``most**2``.

        Parameters
        ----------
        most : int
        alike : float, optional
            Probability that two rows of a person are in the same cell. Then j rows have a sum of about
            ``j + j (j - 1) alike``. Default: `ALIKE`.

        Examples
        --------
        >>> rows = RowsPerPerson(np.array([1, 2, 20]), np.array([1.0, 0.0, 9.0]))
        >>> [rows.kept_within(4, alike).round(1).tolist() for alike in (0.0, 0.2, 1.0)]
        [[1.0, 6.2, 16.0], [1.0, 6.2, 7.2], [1.0, 4.0, 4.0]]
        """
        left, alike = float(most**2), ALIKE if alike is None else alike
        if alike > 0:
            left = (sqrt((1 - alike) ** 2 + 4 * alike * most**2) - (1 - alike)) / (2 * alike)
        return np.minimum(self.rows, left)


def _end(counts: Floats, sigma: float) -> int:
    """Return how many classes there are up to the last that stands out of the noise, alone or with others."""
    for end in range(len(counts), 0, -1):
        lengths = np.arange(1, min(WINDOW, end) + 1)
        sums = np.cumsum(counts[end - len(lengths) : end][::-1]) / (sigma * np.sqrt(lengths))
        if (sums > CLEAR).any():
            after = sums[: int(np.argmax(sums > CLEAR))]  # sums of the last classes of the window
            return end - int(np.max(np.flatnonzero(after <= JOINED) + 1, initial=0))
    return 0


def best_bound(rows: RowsPerPerson, rho: float, pairs: int, most: int | None = None) -> int:
    """Return the bound on the root of a person's summed squares with the smallest expected error of a table.

    The noise of a cell is in proportion to the bound. A small bound leaves out rows: the others are a random
    sample, and those of persons with many rows are too few. Where a column depends on the number of rows,
    each group of persons is weighted with all rows over kept rows (see `reweighted`), and so are its noise
    and its sampling error. Elsewhere all rows over kept rows count, of all groups together. The geometric
    mean of both is taken.

    Parameters
    ----------
    rows : RowsPerPerson
    rho : float
        Budget of a person for all questions.
    pairs : int
        Number of tables of two columns, at least 1.
    most : int, optional
        The largest bound. Default: `MOST`.

    Examples
    --------
    >>> begins = np.array([1, 2, 40])
    >>> few, many = (RowsPerPerson(begins, np.array(persons)) for persons in ([1e4, 1e4, 0], [1e4, 0, 1e4]))
    >>> best_bound(few, 0.01, 15), best_bound(many, 0.01, 15)
    (2, 10)
    """
    noise, whole = FOR_TABLES * rho / pairs, rows.in_groups(rows.rows)

    def error(bound: int) -> float:
        kept = np.maximum(rows.in_groups(rows.kept_within(bound)), 1.0)
        together, apart = whole.sum() / kept.sum(), sqrt(float(np.mean((whole / kept) ** 2)))
        sampling = float(np.sum(whole * np.maximum(whole / kept - 1, 0.0))) / CELLS
        return bound**2 / (2 * noise) * together * apart + sampling

    largest = int(rows.begins[np.flatnonzero(rows.persons > 0).max(initial=0)])
    return min(range(1, min(MOST, largest, most or MOST) + 1), key=error)
