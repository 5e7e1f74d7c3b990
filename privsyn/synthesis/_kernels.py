"""Compiled loops over rows and cells; their callers explain the algorithms.

Each has a slow twin in tests/reference.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from numba import njit

from privsyn.marginals.types import Floats, Ints

if TYPE_CHECKING:
    from privsyn.synthesis.layout import Move


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
def resample(
    codes: npt.NDArray[np.unsignedinteger],
    move: Move,
    costs: npt.NDArray[np.float32],
    steps: npt.NDArray[np.float32],
    counts: Ints,
    heat: float,
    noise: npt.NDArray[np.float32],
    rng: np.random.Generator,
) -> None:
    """Draw the move's attributes of each row again, each value in proportion to exp(-cost / heat).

    Parameters
    ----------
    codes : of shape (n, d), row by row, of an unsigned type: an index that cannot be negative is faster
    move : `privsyn.synthesis.layout.Move`
    costs, steps : of shape (cells,), in the order of `move.cells`
        By how much one row more raises the misfit, and by how much this grows with each row.
    counts : of shape (cells,)
    heat : if 0, the value of the least cost is taken
    noise : Gumbel variates, more than values; each draw starts at a random place
    """
    a, b, size = move.moved[0], move.moved[1], np.uint32(len(move.values))
    found, part = np.empty(size, np.float32), np.empty(move.widths.max(), np.float32)
    rows_of_cells = np.empty(len(move.starts), np.uint32)
    warmth = np.float32(heat)
    for row in range(codes.shape[0]):
        old = move.places[codes[row, a] * move.strides[0] + codes[row, b] * move.strides[1]]
        if old == size:
            continue
        # The least cost - heat * noise is a draw from the distribution (Gumbel's method).
        drawn = np.uint32(rng.random() * (len(noise) - size)) if heat > 0 else np.uint32(0)
        for v in range(size):
            found[v] = -warmth * noise[drawn + np.uint32(v)]
        for g in range(len(move.widths)):
            width, leaves = move.widths[g], np.float32(0)
            part[:width] = 0
            for t in range(move.tables[g], move.tables[g + 1]):
                first = move.starts[t]
                for k in range(move.others[t], move.others[t + 1]):
                    first += move.offsets[move.blocks[k] + codes[row, move.axes[k]]]
                rows_of_cells[t] = first
                for c in range(width):
                    part[c] += costs[first + np.uint32(c)]
                leaves += steps[first + move.groups[g, old]]
            part[move.groups[g, old]] -= leaves  # the row leaves its cells first
            for v in range(size):
                found[v] += part[move.groups[g, v]]
        new, least = np.uint32(0), found[0]
        for v in range(1, size):
            if found[v] < least:
                new, least = np.uint32(v), found[v]
        if new == old:
            continue
        codes[row, a], codes[row, b] = move.values[new, 0], move.values[new, 1]
        for g in range(len(move.widths)):
            for t in range(move.tables[g], move.tables[g + 1]):
                left, entered = rows_of_cells[t] + move.groups[g, old], rows_of_cells[t] + move.groups[g, new]
                costs[left] -= steps[left]
                costs[entered] += steps[entered]
                counts[left] -= 1
                counts[entered] += 1
