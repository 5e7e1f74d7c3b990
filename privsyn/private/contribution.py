"""How much one person may contribute: at most k rows each, chosen before anything is counted.

Where a person may have many rows, neighbouring tables differ by all rows of one person. No noise covers that
unless their number is bounded; so of each person at most k rows are kept, k being public.
"""

from __future__ import annotations

import numpy as np

from privsyn.marginals.types import Ints, Mask
from privsyn.private.sampler import Bits

NOBODY = -1
"""The code of a row whose person is not known."""


def kept_rows(persons: Ints, rows_per_unit: int, bits: Bits) -> Mask:
    """Which rows are kept: of each person `rows_per_unit`, drawn by lot, or all where there are no more.

    Parameters
    ----------
    persons : integer array of shape (n,)
        Rows with the same code are one person's. Rows of `NOBODY` are not kept.
    rows_per_unit : int
        The most rows kept of one person, at least 1. Public.
    bits : Bits
        One word a row: its lot. The lowest of a person are kept.

    Notes
    -----
    Privacy. The lots are independent of each other, so which rows of a person are kept depends on lots of
    that person's rows alone. Take a person away: whatever lots the others drew, their rows are kept or not as
    before, and what is kept has lost at most k rows. So for every outcome of the lots the promise holds for
    tables that differ in k rows, and it holds for the mixture, the lots being drawn alike on both sides. This
    needs lots that nobody can foresee: of a generator's known stream, a person who comes or goes would shift
    the part that the rows after theirs are given. Hence the operating system's entropy, as for noise.

    By lot, and not the first k: a table is often sorted, and first rows are not like later ones.

    Rows of nobody are dropped, each by itself. Counted as one more person they would be unsafe: a row whose
    identifier got lost may belong to anybody, whose leaving would then, beside k rows of their own, change
    which of nobody's rows are kept. Counted as a person each, they would let somebody contribute any number.

    Examples
    --------
    >>> lots = np.array([5, 1, 3, 2, 9], dtype=np.uint64)
    >>> kept_rows(np.array([0, 0, 0, 1, -1]), 2, lambda size: lots)
    array([False,  True,  True,  True, False])
    """
    rows = len(persons)
    order = np.lexsort((bits(rows), persons))  # by person, and each one's rows by lot
    begins = np.flatnonzero(np.diff(persons[order], prepend=NOBODY - 1))
    rank = np.arange(rows) - np.repeat(begins, np.diff(begins, append=rows))
    kept = np.empty(rows, dtype=bool)
    kept[order] = rank < rows_per_unit
    return kept & (persons != NOBODY)
