"""Values that at most one row of a person has, such as the row in which a life ends.

Bounds leave out most rows of persons with many, and the more rows a person has, the less often such a row is
counted. It is also a smaller share of the rows of that person.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from privsyn.marginals.domain import Codes, Floats, Mask
from privsyn.marginals.tolerances import TINY_COUNT

UNLIKE = 2.0
"""Standard deviation of the number of counted rows with such a value in a class of persons, over the number
that is expected if persons with many rows have it as often as others. Noise above it leaves the latter."""


@dataclass(frozen=True, eq=False)
class SingleCodes:
    """Codes of a column that at most one row of a person has.

    Parameters
    ----------
    mask : boolean array of shape (codes,)
        Which codes these are.
    persons : array of shape (codes,)
        How many persons have a row with the code, where another answer says it; else NaN.
    """

    mask: Mask
    persons: Floats

    @classmethod
    def of(cls, mask: Mask) -> SingleCodes:
        """Return codes of which nothing else is known."""
        return cls(mask, np.full(len(mask), np.nan))

    def scaled(self, rows: Floats) -> Floats:
        """Return the rows with each code in each class, of shape (classes, codes), with their known sums."""
        factors = self.persons / np.maximum(rows.sum(axis=0), TINY_COUNT)
        return rows * np.where(np.isnan(factors), 1.0, factors)


@dataclass(frozen=True, eq=False)
class SingleRows:
    """Persons of groups, and how many of them have a row counted that is a random one of theirs.

    Parameters
    ----------
    persons, counted : arrays of shape (groups,)
    codes : mapping of an attribute to SingleCodes, optional
        The codes that at most one row of a person has. Default: none.
    """

    persons: Floats
    counted: Floats
    codes: Mapping[str, SingleCodes] = field(default_factory=dict)

    def joined(self, to_groups: Floats) -> SingleRows:
        """Return the same of groups of groups, given an array of shape (new groups, groups) of 0 and 1."""
        return SingleRows(to_groups @ self.persons, to_groups @ self.counted, self.codes)


@dataclass(frozen=True, eq=False)
class SingleCounts:
    """Counts of codes that at most one row of a person has, in classes of persons.

    Parameters
    ----------
    counts, variance : arrays of shape (groups of codes, groups of classes)
    groups : integer array of shape (codes,)
    joined : integer array of shape (classes,)
    unlike : float
        See `UNLIKE`. If it is infinite, the counts alone decide.
    """

    counts: Floats
    variance: Floats
    groups: Codes
    joined: Codes
    unlike: float = UNLIKE

    def update(self, code: int, expected: Floats) -> Floats:
        r"""Return the kept rows with a code in each class, given what is expected of it.

        Let m and y be the expected and the measured number in each group of classes, with the variances
        :math:`(\mathtt{UNLIKE}\, m)^2` and v. Their precision-weighted mean is moved in proportion to its
        variance until it sums to the rows with the code. Where the code was counted with others, y is not
        known.
        """
        group = self.groups[code]
        if np.count_nonzero(self.groups == group) > 1:
            return expected
        means = np.maximum(np.bincount(self.joined, expected), TINY_COUNT)
        precision, noise = (self.unlike * means) ** -2, 1 / self.variance[group]
        variance = 1 / (precision + noise)
        updated = variance * (precision * means + noise * self.counts[group])
        updated += variance * ((expected.sum() - updated.sum()) / variance.sum())
        factors = np.maximum(updated, 0.0) / means
        return np.asarray(expected * factors[self.joined])


def shares_with_single_codes(
    shares: Floats, rows_kept: Floats, mask: Mask, single: Floats, counts: SingleCounts | None = None
) -> Floats:
    r"""Return the shares of the codes in each class, if some codes come once among the rows of a person.

    An estimate of few counts is drawn to equal shares of the kept rows in all classes. But if at most one row
    of a person has a code, persons with many rows have it in a smaller share of their rows: we expect it of
    persons with many rows as often as of others. So the kept rows with the code are in proportion to the
    persons :math:`s_g` of each class of whom a random row is kept. With equal shares, the code would be taken
    to be as frequent among the rows of persons with many, of which bounds leave out most.

    Parameters
    ----------
    shares : array of shape (codes, classes)
    rows_kept : array of shape (classes,)
    mask : boolean array of shape (codes,)
        The codes that at most one row of a person has.
    single : array of shape (classes,)
        The persons of each class of whom a random row is kept.
    counts : SingleCounts, optional
        The measured counts. Default: the column was counted without the classes.

    Examples
    --------
    Of 100 persons with one row and 100 with ten, of whom two rows are kept, a tenth of 300 rows has the first
    code. It is in the two rows of a fifth of those who have it:

    >>> shares = np.array([[0.1, 0.1], [0.9, 0.9]])
    >>> rows, single = np.array([100.0, 200.0]), np.array([100.0, 20.0])
    >>> shares_with_single_codes(shares, rows, np.array([True, False]), single).round(3).tolist()
    [[0.25, 0.025], [0.75, 0.975]]
    """
    numbers = np.where(mask[:, np.newaxis], shares * rows_kept, 0.0)
    parts = single / max(float(single.sum()), TINY_COUNT)
    for code in np.flatnonzero(mask).tolist():
        expected = numbers[code].sum() * parts
        numbers[code] = expected if counts is None else counts.update(code, expected)
    of_codes = numbers / np.maximum(rows_kept, TINY_COUNT)
    of_codes /= np.maximum(of_codes.sum(axis=0), 1.0)
    further = np.where(mask[:, np.newaxis], 0.0, shares)
    remainder = (1 - of_codes.sum(axis=0)) / np.maximum(further.sum(axis=0), TINY_COUNT)
    return np.asarray(of_codes + further * remainder)
