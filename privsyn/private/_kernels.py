"""The compiled loop that counts the rows of persons within a bound; a test compares it with a slow twin."""

from __future__ import annotations

import numpy as np
from numba import njit

from privsyn.marginals.domain import Integers, Ints


@njit(cache=True, nogil=True)
def add_within_squares(
    codes: Integers, before: Integers, firsts: Ints, offsets: Ints, places: Ints, most: int, counts: Ints
) -> None:
    """Count rows in one table, and add to `counts` in place.

    The rows of a person are counted in their order until one would lift the sum of the squared counts of
    this person over ``most**2``. This row and all later ones of the person are left out.

    Parameters
    ----------
    codes : of shape (attributes, rows)
        The rows of a person stand together.
    before : of shape (rows,)
        Number of rows of the same person before each row.
    firsts : of shape (attributes,)
        Code c of attribute q moves a row's cell by ``offsets[firsts[q] + c]``.
    offsets : flat array
    places, most : array of shape (``most**2``,), which is overwritten, and the root of the largest sum
    counts : of shape (cells,)
    """
    times = np.zeros(most * most, np.int64)  # rows of this person in each cell of `places`
    cells, left = 0, most * most
    for row in range(codes.shape[1]):
        if before[row] == 0:
            cells, left = 0, most * most
        if left <= 0:
            continue
        cell = 0
        for q in range(len(firsts)):
            cell += offsets[firsts[q] + np.int64(codes[q, row])]
        at = 0
        while at < cells and places[at] != cell:
            at += 1
        if at == cells:
            added = 1
        else:
            added = 2 * times[at] + 1  # (t + 1)^2 - t^2
        if added > left:
            left = 0
            continue
        if at == cells:
            places[at], times[at] = cell, 0
            cells += 1
        times[at] += 1
        left -= added
        counts[cell] += 1
