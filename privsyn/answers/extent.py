"""Extent: between which cells of a ruler the noisy counts say that there is anything."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Extent = tuple[int, int] | None
"""First and last cell, both included; None where nothing stands out."""

STANDS_OUT = 4.5
"""Standard deviations. By noise alone some cell or block exceeds it in one ruler of dates in 110, in one of
numbers in 500; then the bounds are too wide, which costs accuracy and no more."""

CONTINUES = 2.5
"""Standard deviations by which a block goes on from its neighbour. To be wrong here makes the bounds too wide
by a block; to miss one clips some rows."""


def extent(noisy: Integers, blocks: Integers, sigma: float) -> Extent:
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


def _edge(noisy: Integers, cells: npt.NDArray[np.intp], sigma: float) -> int:
    """The first of these cells with which those passed amount to something, or that does so alone."""
    sums = np.cumsum(noisy[cells]) > CONTINUES * sigma * np.sqrt(np.arange(1, len(cells) + 1))
    return int(cells[np.argmax(sums | (noisy[cells] > CONTINUES * sigma))])
