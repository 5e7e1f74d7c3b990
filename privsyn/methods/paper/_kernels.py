"""Compiled loops of GUM. Each has a slow twin in tests/reference.py."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from privsyn.marginals.domain import Codes, Floats, Ints
from privsyn.synthesis._kernels import round_with_offset

BISECTIONS = 50  # halvings of [0, 1] in the search for beta: beyond double precision


class Target(NamedTuple):
    """A table to which rows are moved.

    Parameters
    ----------
    columns, strides : of shape (attributes,)
        A row's cell is the sum of its codes times their strides.
    counts : of shape (cells,), in rows
    """

    columns: Ints
    strides: Ints
    counts: Floats


@njit(cache=True)
def cell_of_rows(codes: Codes, columns: Ints, strides: Ints) -> Codes:
    """Return the cell of each row in one table: int32 of shape (n,)."""
    cells = np.zeros(codes.shape[0], np.int32)
    for t in range(len(columns)):
        column = codes[:, columns[t]]
        for i in range(len(cells)):
            cells[i] += column[i] * strides[t]
    return cells


@njit(cache=True)
def count_cells(cells: Codes, size: int) -> Ints:
    """Return the number of rows in each cell: int64 of shape (size,)."""
    counts = np.zeros(size, np.int64)
    for cell in cells:
        counts[cell] += 1
    return counts


@njit(cache=True)
def rows_by_cell(cells: Codes, counts: Ints) -> tuple[Ints, Codes]:
    """Sort rows by cell and return (starts, rows): cell v has rows[starts[v]:starts[v + 1]]."""
    starts = np.zeros(len(counts) + 1, np.int64)
    starts[1:] = np.cumsum(counts)
    filled = starts[:-1].copy()
    rows = np.empty(len(cells), np.int32)
    for i in range(len(cells)):
        rows[filled[cells[i]]] = i
        filled[cells[i]] += 1
    return starts, rows


@njit(cache=True)
def plan_moves(counts: Ints, target: Floats, alpha: float) -> tuple[Floats, Floats]:
    """Return how many rows each cell gains and loses in one gradual update: two arrays with the same sum.

    A cell with too few rows grows by at most `alpha` times its rows (an empty cell to `alpha` of its target).
    A cell with too many rows loses at most its excess, and at most a share `beta` of its rows. `beta`
    balances both sums.
    """
    gain = np.zeros(len(counts))
    for v in range(len(counts)):
        gap = target[v] - counts[v]
        if gap > 0:
            gain[v] = min(gap, alpha * counts[v]) if counts[v] > 0 else min(1.0, alpha) * gap
    wanted = gain.sum()
    low, high = 0.0, 1.0
    for _ in range(BISECTIONS):
        beta = (low + high) / 2
        lost = 0.0
        for v in range(len(counts)):
            lost += max(min(counts[v] - target[v], beta * counts[v]), 0.0)
        if lost < wanted:
            low = beta
        else:
            high = beta
    loss = np.maximum(np.minimum(counts - target, high * counts), 0.0)
    lost = loss.sum()
    if lost > wanted and lost > 0:
        loss *= wanted / lost
    elif wanted > 0:
        gain *= lost / wanted
    return gain, loss


@njit(cache=True)
def shuffle_front(rows: Codes, front: int, rng: np.random.Generator) -> None:
    """Move a uniform sample of `front` entries, in random order, to the front of `rows`, in place."""
    for i in range(front):
        j = i + int(rng.random() * (len(rows) - i))
        rows[i], rows[j] = rows[j], rows[i]


@njit(cache=True, nogil=True)
def update_table(
    codes: Codes, table: Target, alpha: float, duplicated: float, rng: np.random.Generator
) -> None:
    """Update the rows once towards the target of one table, in place.

    Random rows leave cells with too many rows. Empty cells are filled first, by overwriting the attributes of
    the table. Of the rows that another cell gains, a share `duplicated` are copies of whole rows of that
    cell, and the others are overwritten too.
    """
    columns, strides, target = table
    cells = cell_of_rows(codes, columns, strides)
    counts = count_cells(cells, len(target))
    starts, rows = rows_by_cell(cells, counts)
    gain, loss = plan_moves(counts, target, alpha)
    offset = rng.random()
    gains, losses = round_with_offset(gain, offset), round_with_offset(loss, offset)
    moved = np.empty(losses.sum(), np.int32)
    end = 0
    for v in range(len(target)):
        if losses[v] > 0:
            leaving = rows[starts[v] : starts[v + 1]]
            shuffle_front(leaving, losses[v], rng)
            moved[end : end + losses[v]] = leaving[: losses[v]]
            end += losses[v]
    shuffle_front(moved, end, rng)

    begin = 0
    for v in np.argsort(counts > 0, kind="mergesort"):  # the empty cells first
        arriving = min(gains[v], end - begin)
        if arriving <= 0:
            continue
        donors = rows[starts[v] : starts[v + 1]]
        copies = int(arriving * duplicated + rng.random()) if len(donors) > 0 else 0
        shuffle_front(donors, min(copies, len(donors)), rng)
        for k in range(arriving):
            row = moved[begin + k]
            if k < copies:
                donor = donors[k % len(donors)]
                for j in range(codes.shape[1]):
                    codes[row, j] = codes[donor, j]
            else:
                cell = v
                for t in range(len(columns)):
                    codes[row, columns[t]] = cell // strides[t]
                    cell %= strides[t]
        begin += arriving
