"""Bound the contribution of each person: keep at most k of their rows, chosen before anything is counted.

If a person may have many rows, neighbouring tables differ by all rows of one person. No noise covers an
unbounded number of rows. So at most k rows of each person are kept, and k is public.
"""

from __future__ import annotations

import numpy as np

from privsyn.marginals.domain import Ints, Mask
from privsyn.private.sampler import Bits

NOBODY = -1
"""The code of a row whose person is unknown."""


def kept_rows(persons: Ints, rows_per_unit: int, bits: Bits) -> Mask:
    """Return which rows are kept: `rows_per_unit` random rows of each person, or all if there are fewer.

    Parameters
    ----------
    persons : integer array of shape (n,)
        Rows with the same code belong to one person. Rows of `NOBODY` are not kept.
    rows_per_unit : int
        The most rows kept per person, at least 1. Public.
    bits : Bits
        One random word per row. The rows with the lowest words of a person are kept.

    Notes
    -----
    Privacy. The words are independent, so which rows of a person are kept depends only on the words of that
    person's rows. Remove a person: for any words of the others, their rows are kept or dropped as before, and
    the kept rows lose at most k. So for every outcome of the words, the promise holds for tables that differ
    in k rows. It also holds for the mixture, because the words have the same distribution on both sides. The
    words must be unpredictable. In the known stream of a generator, a person who joins or leaves would shift
    the words of all later rows. Hence the operating system's entropy, as for noise.

    Rows are chosen at random, and not the first k, because tables are often sorted and their first rows
    differ from later ones.

    Rows of nobody are dropped. Counting them as one more person would be unsafe. A row whose identifier was
    lost may belong to anybody. If that person leaves, then besides their k rows the choice among nobody's
    rows changes too. Counting each as a separate person would let one person contribute any number of rows.

    Examples
    --------
    >>> words = np.array([5, 1, 3, 2, 9], dtype=np.uint64)
    >>> kept_rows(np.array([0, 0, 0, 1, -1]), 2, lambda size: words)
    array([False,  True,  True,  True, False])
    """
    rows = len(persons)
    order = np.lexsort((bits(rows), persons))  # by person, and the rows of each person by their words
    begins = np.flatnonzero(np.diff(persons[order], prepend=NOBODY - 1))
    rank = np.arange(rows) - np.repeat(begins, np.diff(begins, append=rows))
    kept = np.empty(rows, dtype=bool)
    kept[order] = rank < rows_per_unit
    return kept & (persons != NOBODY)
