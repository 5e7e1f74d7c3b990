"""Norm-sub: the nearest table of non-negative counts with a given total."""

from __future__ import annotations

import numpy as np

from privsyn.answers.arrays import Counts


def norm_sub(counts: Counts, total: float) -> Counts:
    r"""Euclidean projection of `counts` to :math:`\{x \ge 0, \sum x = total\}`.

    All cells lose the same amount and those that would fall below zero stay at zero, so that
    cutting the negatives off does not add records that nobody counted.

    Parameters
    ----------
    counts : array of any shape
        Noisy counts, in records.
    total : float
        Number of records the result sums to, at least 0.

    References
    ----------
    Zhang et al., "PrivSyn", USENIX Security 2021, Section 4.3. By sorting, and so exact: Duchi et al.,
    "Efficient projections onto the l1-ball for learning in high dimensions", ICML 2008, Figure 1.

    Examples
    --------
    >>> norm_sub(np.array([5.0, 2.0, -3.0]), 5.0).tolist()
    [4.0, 1.0, 0.0]
    >>> norm_sub(np.array([-7.0, -9.0]), 4.0).tolist()
    [3.0, 1.0]
    """
    if not total >= 0:
        raise ValueError(f"total {total}: a table cannot hold fewer than 0 records")
    # Moving all cells by one amount does not move the result; with the largest at 0, sums stay small.
    counts = counts - counts.max()
    descending = np.sort(counts, axis=None)[::-1]
    surplus = np.cumsum(descending) - total
    kept = np.arange(1, len(descending) + 1)
    # The cells that stay positive are the largest ones: those above what each would have to give up.
    last = np.flatnonzero(descending * kept > surplus)
    if not len(last):  # the total is 0
        return np.zeros(counts.shape)
    return np.maximum(counts - surplus[last[-1]] / kept[last[-1]], 0.0)
