"""Compiled loops over rows and cells: arrays in, arrays out; the algorithms are told in their callers.

Each has a slow and obvious twin in tests/reference.py. Codes are int32 of shape (n, d): stored column by
column, but for `anneal`, which reads whole rows. `columns` and `strides` say which attributes make up a table
and where its cells lie: cell = sum of codes[:, columns[t]] * strides[t].
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
    """Round each value up or down so that the sum is floor(sum + offset); unbiased for a uniform offset."""
    rounded = np.empty(len(values), np.int64)
    total, before = offset, 0
    for v in range(len(values)):
        total += values[v]
        # Where the running total is rounded over a whole number, a value must not gain a row too many:
        # no cell can give up more rows than it has.
        rounded[v] = min(int(np.floor(total)) - before, int(np.ceil(values[v])))
        before += rounded[v]
    return rounded


@njit(cache=True, nogil=True)
def anneal(
    codes: npt.NDArray[np.signedinteger],
    layout: Layout,
    gaps: Floats,
    weights: Floats,
    sweeps: int,
    temperature: float,
    rng: np.random.Generator,
) -> None:
    """Move values, one or two of a row, while the weighted squared gaps of all tables fall, in place.

    Parameters
    ----------
    codes : of shape (n, d), row by row, of a signed type: the smaller, the faster
    layout : `privsyn.synthesis.layout.Layout`, of the tables and of the moves
    gaps, weights : of shape (cells of all tables,); count less target, and 1 / (target + 1)
    sweeps : each proposes every move once to every row
    temperature : of the first proposals; falls evenly to 0
    """
    n = codes.shape[0]
    cells, there = np.empty((2, len(layout.starts)), np.int64)
    states = np.empty((len(gaps), 2))  # gap and weight of a cell side by side: one look into memory for both
    states[:, 0], states[:, 1] = gaps, weights
    for turn in range(sweeps * n):
        row = turn % n
        heat = temperature * (1 - turn / (sweeps * n))
        for t in range(len(cells)):
            cells[t] = layout.starts[t]
            for q in range(layout.widths[t]):
                cells[t] += codes[row, layout.columns[t, q]] * layout.strides[t, q]
        for m in range(len(layout.moved)):
            donor = int(rng.random() * n)
            a, b = layout.moved[m]
            step_a, step_b = codes[donor, a] - codes[row, a], codes[donor, b] - codes[row, b]
            first, end = layout.firsts[m], layout.firsts[m + 1]
            if (step_a == 0 and step_b == 0) or first == end:
                continue
            change = 0.0
            for s in range(first, end):
                old = cells[layout.held[s]]
                new = old + step_a * layout.steps[s, 0] + step_b * layout.steps[s, 1]
                there[layout.held[s]] = new
                if old != new:
                    left, entered = states[old], states[new]
                    change += left[1] * (1 - 2 * left[0]) + entered[1] * (1 + 2 * entered[0])
            if change > 0 and (heat <= 0 or rng.random() >= np.exp(-change / heat)):
                continue
            for t in layout.held[first:end]:
                states[cells[t], 0] -= 1
                states[there[t], 0] += 1
                cells[t] = there[t]
            codes[row, a], codes[row, b] = codes[donor, a], codes[donor, b]
    gaps[:] = states[:, 0]
