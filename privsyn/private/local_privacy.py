"""Randomised response, drawn exactly, given random bits.

A cell is kept with probability p = a / b. Otherwise it becomes one of the k values, each with probability
1/k. Both draws are whole numbers below b and below k, uniform by rejection. No floating-point number decides.

For two cells c and c', and any value v, P(v | c) is p + (1 - p)/k if v = c, and (1 - p)/k if not. So
P(v | c) / P(v | c') is at most 1 + p k / (1 - p), the exponential of epsilon (Warner, JASA 1965; Kairouz, Oh
and Viswanath, JMLR 2016). The cells of a respondent are randomised independently. The ratios multiply, and
so the epsilons of columns add up.

A table whose columns were all randomised is private already: every function of it is at most as revealing, so
its counts get no noise.
This holds for the cells of a respondent. That a respondent has a record was never hidden, and so the number
of records is public.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import fsum, inf, nextafter
from typing import Any

import numpy as np
from mpmath import libmp

from privsyn.errors import InputError, safe_repr
from privsyn.marginals.domain import Attributes, Integers, Ints
from privsyn.marginals.marginal import Marginal, Measurement
from privsyn.private.randomness import Bits, os_entropy
from privsyn.private.rows import Rows

LARGEST = 2**62
"""Largest denominator of a keep-probability: draws below it reject less than every fourth word."""

DIGITS = 120
"""Binary digits of a logarithm before it is rounded up to a double."""


def keep_probability(keep: float) -> Fraction:
    """Return the decimal number that `keep` is written as: 0.9 is nine tenths, and not the nearest double.

    >>> keep_probability(0.9)
    Fraction(9, 10)
    """
    exact = Fraction(repr(float(keep)))
    if not 0 < exact < 1 or exact.denominator > LARGEST:
        raise InputError(
            f"keep must be a probability above 0 and below 1, such as 0.75; got {safe_repr(keep)}"
        )
    return exact


@dataclass(frozen=True)
class LocalPromise:
    """What randomised response promises about one column of a respondent.

    Parameters
    ----------
    column : str
    keep : float
        Probability that a cell is kept.
    values : int
        Number of values, counting missing if cells may be missing.

    Examples
    --------
    >>> f"{LocalPromise('smokes', keep=0.5, values=2).epsilon:.4f}"  # ln 3
    '1.0986'
    """

    column: str
    keep: float
    values: int

    def __post_init__(self) -> None:
        # Fewer values would make epsilon smaller than it is, or negative: it would be subtracted from others.
        if type(self.values) is not int or self.values < 1:
            raise ValueError(
                f"{self.column!r}: values must be a whole number, at least 1; got {self.values!r}"
            )

    @property
    def ratio(self) -> Fraction:
        """The largest ratio of the probabilities of a value, given two cells."""
        keep = keep_probability(self.keep)
        return 1 + keep * self.values / (1 - keep)

    @property
    def epsilon(self) -> float:
        """The logarithm of the ratio, rounded up."""
        ratio = libmp.from_rational(self.ratio.numerator, self.ratio.denominator, DIGITS, "u")
        return nextafter(float(libmp.to_float(libmp.mpf_log(ratio, DIGITS, "u"))), inf)

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> LocalPromise:
        """Return the promise of these fields. Its epsilon is computed again."""
        return cls(str(plain["column"]), float(plain["keep"]), plain["values"])

    def __str__(self) -> str:
        return (
            f"randomised by the respondents: {self.column!r}, keep {self.keep!r}, {self.values} values:"
            f" epsilon {self.epsilon:.4f}"
        )


@dataclass(frozen=True)
class Unchanged:
    """A column of a randomised table that nobody randomised. Its cells are in it, exact."""

    column: str


def local_epsilon(promises: Iterable[LocalPromise]) -> float:
    """Return the epsilon of all columns of a respondent together, rounded up."""
    return nextafter(fsum(promise.epsilon for promise in promises), inf)


def randomised(codes: Integers, size: int, keep: float, bits: Bits = os_entropy) -> Ints:
    """Return the codes after randomised response over `size` codes.

    How many words are drawn does not depend on the codes.

    Examples
    --------
    Words 2 and 3 keep the first cell with probability 3/4 and not the second; the others replace:

    >>> words = iter([np.array([2, 3], np.uint64), np.array([4, 1], np.uint64)])
    >>> randomised(np.array([0, 0]), 3, 0.75, lambda size: next(words))
    array([0, 1])
    """
    probability = keep_probability(keep)
    mask = uniform_below(probability.denominator, len(codes), bits) < probability.numerator
    return np.where(mask, codes, uniform_below(size, len(codes), bits))


def uniform_below(bound: int, size: int, bits: Bits) -> Ints:
    """Return whole numbers from 0 to below `bound`, each with the same probability.

    A word at or above the largest multiple of `bound` below 2^64 is drawn again.
    """
    words = np.array(bits(size))
    last = np.uint64(2**64 // bound * bound - 1)
    rejected = np.flatnonzero(words > last)
    while rejected.size:
        words[rejected] = bits(rejected.size)
        rejected = rejected[words[rejected] > last]
    return (words % np.uint64(bound)).astype(np.int64)


def randomised_counts(
    rows: Rows, tables: tuple[Attributes, ...], randomised: Collection[str]
) -> tuple[Measurement, ...]:
    """Return the counts over each set of attributes, without noise, of a table that is all randomised.

    Parameters
    ----------
    rows : Rows
    tables : tuple of attributes
    randomised : collection of str
        The columns that the schema declares randomised. A table with any other column is refused: its exact
        counts would reveal it.
    """
    if exact_columns := set(rows.domain.names).difference(randomised):
        raise ValueError(f"exact counts of columns that are not randomised: {sorted(exact_columns)}")
    return tuple(
        Measurement(Marginal(rows.domain.project(attributes), counts.astype(np.float64)), np.array(0.0))
        for attributes, counts in zip(tables, rows.count(tables), strict=True)
    )
