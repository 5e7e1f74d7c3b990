"""InDif, the dependence of two attributes as the published method measures it, and its sensitivity."""

from __future__ import annotations

import numpy as np

from privsyn.marginals.domain import Ints

GRID = 16  # steps per record: InDif is released on this grid, because noise is added to integers only
INDIF_SENSITIVITY = 4 * GRID + 1  # of `indif_on_grid`, in steps; its docstring has the proof

MOST_RECORDS = 2**31
"""Records from which the intermediate numbers of `indif_on_grid`, up to 2 n^2, may exceed 64 bits."""


def indif_on_grid(counts: Ints) -> int:
    r"""Return InDif of a table of two attributes, in steps of 1 / `GRID` records, rounded down.

    .. math:: \mathrm{InDif}_{a,b} = \lVert M_{a,b} - M_a \times M_b / n \rVert_1

    Parameters
    ----------
    counts : integer array of shape (size_a, size_b)
        Exact counts. Private: the caller adds noise.

    Notes
    -----
    Sensitivity. Add record (i, j) to a table of n records; p and q are its one-way shares. The product
    :math:`E = n\, p \otimes q` changes by
    :math:`[n(-p \otimes q + p \otimes e_j + e_i \otimes q) + e_i \otimes e_j]/(n+1)`. The L1 norm of this
    change is at most (3n + 1)/(n + 1) < 3, and M changes by 1 in one cell. So InDif changes by less than 4.
    (The change 4n/(n+1) is attained: n copies of one pair of values and one record with both values
    different.) Rounding down to the grid, :math:`|\lfloor Gx \rfloor - \lfloor Gy \rfloor| \le G|x - y| + 1`:
    at most 4 G + 1 steps. The table that attains it moves all pairs at once, so the joint L2 sensitivity of m
    pairs is sqrt(m) times that.

    References
    ----------
    Zhang et al., "PrivSyn", USENIX Security 2021, Section 4.1, Lemma 4.

    Examples
    --------
    Two coins that always agree, ten throws: InDif is 10 records.

    >>> indif_on_grid(np.array([[5, 0], [0, 5]])) / GRID
    10.0
    >>> indif_on_grid(np.array([[4, 4], [1, 1]])) / GRID
    0.0
    """
    n = int(counts.sum())
    if n == 0:
        return 0
    # n times InDif is an integer of at most 2 n^2. In 64 bits a larger table would wrap around, and one
    # record could then move the answer by any amount. Such a table is counted in Python's integers.
    exact = counts if n < MOST_RECORDS else counts.astype(object)
    product = np.multiply.outer(exact.sum(axis=1), exact.sum(axis=0))
    quotient, rest = divmod(int(np.abs(n * exact - product).sum()), n)
    return quotient * GRID + rest * GRID // n
