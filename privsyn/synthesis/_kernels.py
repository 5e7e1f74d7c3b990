"""Compiled loops over rows and cells; their callers explain the algorithms.

Each has a slow twin in tests/reference.py. Codes have shape (n, d), and are row by row for `anneal`. `Layout`
gives the cell of a row in each table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from numba import njit

from privsyn.marginals.types import Floats, Integers, Ints

if TYPE_CHECKING:
    from privsyn.synthesis.layout import Layout

RUN = 64
"""Consecutive rows that are offered the values of as many consecutive donors, so that these are cached."""

MOST_KEPT = 2**24
"""Most cells of rows that are kept from sweep to sweep, 64 MB; in wide tables they are found each time."""

HOPELESS = 16
"""A worse fit by this multiple of the heat is accepted with probability 1e-7: no random number is drawn."""


@njit(cache=True)
def round_with_offset(values: Floats, offset: float) -> Ints:
    """Round values up or down so that they sum to floor(sum + offset); unbiased for a uniform offset."""
    rounded = np.empty(len(values), np.int64)
    total, before = offset, 0
    for v in range(len(values)):
        total += values[v]
        # If the running total rounds over an integer, a value must not gain an extra row: a cell cannot give
        # up more rows than it has.
        rounded[v] = min(int(np.floor(total)) - before, int(np.ceil(values[v])))
        before += rounded[v]
    return rounded


@njit(cache=True, nogil=True, error_model="numpy")
def anneal(
    codes: npt.NDArray[np.unsignedinteger],
    layout: Layout,
    gaps: Floats,
    weights: Floats,
    sweeps: int,
    temperature: float,
    rng: np.random.Generator,
) -> None:
    """Move one or two values of a row at a time to reduce the weighted squared gaps of all tables, in place.

    Parameters
    ----------
    codes : of shape (n, d), row by row, of an unsigned type: an index that cannot be negative is faster
    layout : `privsyn.synthesis.layout.Layout`, of the tables and of the moves
    gaps, weights : of shape (cells of all tables,); count minus target, and 1 / (target + 1)
    sweeps : number of times that every move is proposed to every row
    temperature : of the first proposals; falls linearly to 0
    """
    n, (_, moved, offered, firsts, held, offsets, blocks) = codes.shape[0], layout
    kept = n * len(layout.starts) <= MOST_KEPT
    of_rows = np.empty((n if kept else 1, len(layout.starts)), np.uint32)
    there = np.empty(len(layout.starts), np.uint32)
    costs, steps = weights * (1 + 2 * gaps), 2 * weights  # cost of one row more; by how much the next adds
    saved, donors = np.empty(len(there)), np.empty(len(moved), np.int64)
    for turn in range(sweeps * n):
        row = turn % n
        heat = temperature * (1 - turn / (sweeps * n))
        if row % RUN == 0:
            for m in offered:
                donors[m] = int(rng.random() * n)
        cells = of_rows[row if kept else 0]
        if turn < n or not kept:
            find_cells(codes, row, layout, cells)
        for t in range(len(cells)):
            saved[t] = costs[cells[t]] - steps[cells[t]]  # if the row left the cell
        for m in offered:
            donor = donors[m]
            donors[m] = donor + 1 if donor + 1 < n else 0
            a, b = moved[m]
            new_a, new_b, old_a, old_b = codes[donor, a], codes[donor, b], codes[row, a], codes[row, b]
            first, width = firsts[m], firsts[m + 1] - firsts[m]
            if (new_a == old_a and new_b == old_b) or width == 0:
                continue
            into_a = blocks[m, 0] + np.uint32(new_a) * width
            from_a = blocks[m, 0] + np.uint32(old_a) * width
            into_b = blocks[m, 1] + np.uint32(new_b) * width
            from_b = blocks[m, 1] + np.uint32(old_b) * width
            change = 0.0
            for k in range(width):
                t = held[first + k]
                cell = cells[t] + (offsets[into_a + k] - offsets[from_a + k])
                if a != b:
                    cell += offsets[into_b + k] - offsets[from_b + k]
                cost = costs[cell] - saved[t]  # read in any case: a branch here is mispredicted often
                change += cost if cell != cells[t] else 0.0
                there[k] = cell
            if change > 0 and (change >= HOPELESS * heat or rng.random() >= np.exp(-change / heat)):
                continue
            for k in range(width):
                t = held[first + k]
                costs[cells[t]] -= steps[cells[t]]
                cells[t] = there[k]
                saved[t] = costs[cells[t]]
                costs[cells[t]] += steps[cells[t]]
            codes[row, a], codes[row, b] = new_a, new_b
    gaps[:] = (costs / weights - 1) / 2


@njit(cache=True, nogil=True)
def find_cells(codes: Integers, row: int, layout: Layout, cells: npt.NDArray[np.uint32]) -> None:
    """Write the row's cell in each table to `cells`."""
    for t in range(len(cells)):  # several times as fast as cells[:] = layout.starts
        cells[t] = layout.starts[t]
    for axis in range(codes.shape[1]):
        first, width = layout.firsts[axis], layout.firsts[axis + 1] - layout.firsts[axis]
        block = layout.blocks[axis, 0] + np.uint32(codes[row, axis]) * width
        for k in range(width):
            cells[layout.held[first + k]] += layout.offsets[block + k]


@njit(cache=True, nogil=True)
def count_layout(codes: Integers, layout: Layout, counts: Ints) -> None:
    """Count every row of `codes`, of shape (n, d), in every table of the layout; add to `counts`."""
    cells = np.empty(len(layout.starts), np.uint32)
    for row in range(codes.shape[0]):
        find_cells(codes, row, layout, cells)
        for cell in cells:
            counts[cell] += 1
