"""Compiled loops over rows and cells; their callers explain the algorithms.

Each has a slow twin in tests/reference.py. Codes have shape (n, d), and are row by row for `anneal`. `Layout`
gives the cell of a row in each table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from numba import njit

from privsyn.marginals.types import Floats, Ints

if TYPE_CHECKING:
    from privsyn.synthesis.layout import Layout


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


@njit(cache=True, nogil=True)
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
    n, places = codes.shape[0], layout.places
    cells, there = np.empty((2, len(layout.starts)), np.uint32)
    states = np.empty((len(gaps), 2))  # cost of one row more, and by how much the next one costs more
    states[:, 0], states[:, 1] = weights * (1 + 2 * gaps), 2 * weights
    for turn in range(sweeps * n):
        row = turn % n
        heat = temperature * (1 - turn / (sweeps * n))
        for t in range(len(cells)):
            cells[t] = layout.starts[t]
            for q in range(layout.widths[t]):
                cells[t] += places[layout.bases[t, q] + codes[row, layout.columns[t, q]]]
        for m in range(len(layout.moved)):
            donor = int(rng.random() * n)
            a, b = layout.moved[m]
            new_a, new_b, old_a, old_b = codes[donor, a], codes[donor, b], codes[row, a], codes[row, b]
            first, end = layout.firsts[m], layout.firsts[m + 1]
            if (new_a == old_a and new_b == old_b) or first == end:
                continue
            change = 0.0
            for s in range(first, end):
                t, base_a, base_b = layout.held[s], layout.steps[s, 0], layout.steps[s, 1]
                there[t] = cells[t] + places[base_a + new_a] - places[base_a + old_a]
                if a != b:
                    there[t] += places[base_b + new_b] - places[base_b + old_b]
                if there[t] != cells[t]:
                    left, entered = states[cells[t]], states[there[t]]
                    change += entered[0] - left[0] + left[1]
            if change > 0 and (heat <= 0 or rng.random() >= np.exp(-change / heat)):
                continue
            for t in layout.held[first:end]:
                states[cells[t], 0] -= states[cells[t], 1]
                states[there[t], 0] += states[there[t], 1]
                cells[t] = there[t]
            codes[row, a], codes[row, b] = new_a, new_b
    gaps[:] = (states[:, 0] / weights - 1) / 2


@njit(cache=True, nogil=True)
def count_layout(codes: npt.NDArray[np.signedinteger], layout: Layout, counts: Ints) -> None:
    """Count every row of `codes`, of shape (n, d), in every table of the layout; add to `counts`."""
    for t in range(len(layout.starts)):
        for row in range(codes.shape[0]):
            cell = layout.starts[t]
            for q in range(layout.widths[t]):
                cell += layout.places[layout.bases[t, q] + codes[row, layout.columns[t, q]]]
            counts[cell] += 1
