"""Compiled loop that counts rows; `counting` calls it. Its slow twin is in tests/reference.py."""

from __future__ import annotations

import numpy as np
from numba import njit

from privsyn.marginals.types import Integers, Ints

STRETCH = 8192
"""Rows counted in one table before the next: two columns of them stay in the first-level cache."""


@njit(cache=True, nogil=True)
def add_counts(
    codes: Integers,
    firsts: Ints,
    columns: Ints,
    strides: Ints,
    starts: Ints,
    counts: Ints,
) -> None:
    """Count every row in every table in one pass over the rows, and add to `counts` in place.

    Parameters
    ----------
    codes : of shape (d, n), column by column
    firsts : of shape (tables + 1,)
        Table t is over the attributes ``columns[firsts[t]:firsts[t + 1]]``.
    columns, strides : of shape (attributes of all tables,)
    starts : of shape (tables,)
        First cell of each table. A row's cell is the start plus the sum of its codes times their strides.
    counts : of shape (cells of all tables,)
    """
    n = codes.shape[1]
    cells = np.empty(STRETCH, np.int64)
    for begin in range(0, n, STRETCH):
        end = min(begin + STRETCH, n)
        for t in range(len(starts)):
            start, first, last = starts[t], firsts[t], firsts[t + 1]
            if last - first == 2:  # the most frequent case: one expression, no buffer
                a, b, step_a, step_b = (
                    codes[columns[first]],
                    codes[columns[first + 1]],
                    strides[first],
                    strides[first + 1],
                )
                for i in range(begin, end):
                    counts[start + np.int64(a[i]) * step_a + np.int64(b[i]) * step_b] += 1
                continue
            cells[: end - begin] = start
            for q in range(first, last):
                column, step = codes[columns[q]], strides[q]
                for i in range(begin, end):
                    cells[i - begin] += np.int64(column[i]) * step
            for i in range(end - begin):
                counts[cells[i]] += 1
