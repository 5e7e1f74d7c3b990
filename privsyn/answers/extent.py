"""Extent: between which cells of a ruler the noisy counts say that there is anything."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from privsyn.answers.arrays import Ints

Extent = tuple[int, int] | None
"""First and last cell, both included; None where nothing stands out."""

STANDS_OUT = 4.5
"""Standard deviations. By noise alone some cell or block exceeds it in one ruler of dates in 110, in one of
numbers in 500; then the bounds are too wide, which costs accuracy and no more."""

CONTINUES = 2.5
"""Standard deviations by which a block goes on from its neighbour. To be wrong here makes the bounds too wide
by a block; to miss one clips some rows."""

CLEAR = 4.0
"""Standard deviations by which a cell shows that rows lie in it."""

GOES_ON = 1.5
"""Standard deviations of a cell next to those: it is taken for one of them."""

LEFT_OUT = 1.5
"""Standard deviations: with more rows outside these cells the bounds stay as they are. So they do by noise
alone in one column of 15, and in the others a tail of so many rows may be clipped."""

NARROW = 1 / 2
"""Of the cells: bounds are drawn closer where the rows lie in fewer. Else little is to be gained, and a thin
tail to be lost."""


def extent(noisy: Ints, blocks: Ints, sigma: float) -> Extent:
    """First and last cell that matter.

    The rows end with the outermost block that stands out, by all its cells together or by one of them, or
    with those that continue it; within the last the outermost cells are left out as long as they do not
    amount to anything together. So a few rows far from all others do not count: what is beyond is clipped.

    Parameters
    ----------
    noisy : integer array of shape (cells,)
    blocks : integer array of shape (cells,)
        The block of each cell, rising.
    sigma : float
        Standard deviation of the noise in each cell.

    Examples
    --------
    >>> extent(np.array([9, 3, 80, 900, 70, 2, -8, 60]), np.array([0, 0, 1, 1, 1, 1, 2, 2]), 10.0)
    (2, 7)
    >>> extent(np.array([9, 3, 80, 900, 70, 2, -8, 30]), np.array([0, 0, 1, 1, 1, 1, 2, 2]), 10.0)
    (2, 4)
    """
    _, block, sizes = np.unique(blocks, return_inverse=True, return_counts=True)
    height = np.bincount(block, noisy) / (sigma * np.sqrt(sizes))
    stands_out = height > STANDS_OUT
    stands_out[block[noisy > STANDS_OUT * sigma]] = True
    found = np.flatnonzero(stands_out)
    if not found.size:
        return None
    low, high = int(found[0]), int(found[-1])
    while low > 0 and height[low - 1] > CONTINUES:
        low -= 1
    while high < len(height) - 1 and height[high + 1] > CONTINUES:
        high += 1
    first, last = np.flatnonzero(block == low), np.flatnonzero(block == high)[::-1]
    return _edge(noisy, first, sigma), _edge(noisy, last, sigma)


def _edge(noisy: Ints, cells: npt.NDArray[np.intp], sigma: float) -> int:
    """The first of these cells with which those passed amount to something, or that does so alone."""
    sums = np.cumsum(noisy[cells]) > CONTINUES * sigma * np.sqrt(np.arange(1, len(cells) + 1))
    return int(cells[np.argmax(sums | (noisy[cells] > CONTINUES * sigma))])


def cluster(noisy: Ints, sigma: float) -> Extent:
    """First and last cell of a few that hold all rows, and one more on either side; None if they are many.

    Examples
    --------
    >>> noisy = np.array([5, -9, 8, 3, -4, 14, 90, 60, 2, 11, -3, 1, 4, 0, -6, 7] + 16 * [0, -1])
    >>> cluster(noisy, 10.0)
    (5, 8)
    >>> cluster(np.array([90, 60, 2, 14, 30, 60]), 10.0) is None
    True
    """
    clear = np.flatnonzero(noisy > CLEAR * sigma)
    if not clear.size:
        return None
    low, high, last = int(clear[0]), int(clear[-1]), len(noisy) - 1
    while low > 0 and noisy[low - 1] > GOES_ON * sigma:
        low -= 1
    while high < last and noisy[high + 1] > GOES_ON * sigma:
        high += 1
    low, high = max(low - 1, 0), min(high + 1, last)
    outside = len(noisy) - (high - low + 1)
    left_out = noisy.sum() - noisy[low : high + 1].sum()
    if high - low >= NARROW * len(noisy) or left_out > LEFT_OUT * sigma * np.sqrt(outside):
        return None
    return low, high
