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

from privsyn.answers.arrays import Codes, Floats, Ints

if TYPE_CHECKING:
    from privsyn.answers.layout import Layout


LEAST_FITTED = 1e-12  # share of a cell: classes that rule it out altogether do not divide by 0
BISECTIONS = 50  # halvings of [0, 1] for the share that over-full cells give up: beyond double precision


@njit(cache=True)
def cell_of_rows(codes: Codes, columns: Ints, strides: Ints) -> Codes:
    """The cell of each row in one table: int32 of shape (n,)."""
    cells = np.zeros(codes.shape[0], np.int32)
    for t in range(len(columns)):
        column = codes[:, columns[t]]
        for i in range(len(cells)):
            cells[i] += column[i] * strides[t]
    return cells


@njit(cache=True)
def count_cells(cells: Codes, size: int) -> Ints:
    """How many rows lie in each cell: int64 of shape (size,)."""
    counts = np.zeros(size, np.int64)
    for cell in cells:
        counts[cell] += 1
    return counts


@njit(cache=True)
def rows_by_cell(cells: Codes, counts: Ints) -> tuple[Ints, Codes]:
    """Counting sort: (starts, rows); the rows of cell v are rows[starts[v]:starts[v + 1]]."""
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
    """How many rows each cell should gain and lose in one gradual update: two arrays with one sum.

    An under-full cell grows by at most `alpha` times its rows (an empty one to `alpha` of its target);
    over-full cells lose at most their excess and at most the share `beta` of their rows that balances.
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


@njit(cache=True)
def shuffle_front(rows: Codes, front: int, rng: np.random.Generator) -> None:
    """Bring a uniform sample of `front` entries, in random order, to the front of `rows`, in place."""
    for i in range(front):
        j = i + int(rng.random() * (len(rows) - i))
        rows[i], rows[j] = rows[j], rows[i]


@njit(cache=True, nogil=True)
def update_table(
    codes: Codes,
    columns: Ints,
    strides: Ints,
    target: Floats,
    alpha: float,
    duplicated: float,
    rng: np.random.Generator,
) -> None:
    """One gradual update of the rows towards the target of one table, in place.

    Rows leave over-full cells at random. Empty cells are filled by overwriting the table's attributes;
    of what an under-full cell gains, the share `duplicated` are copies of whole rows of that cell, the
    rest is overwritten too.
    """
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
    for v in range(len(target)):
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
    layout : `privsyn.answers.layout.Layout`, of the tables and of the moves
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


@njit(cache=True, fastmath=True)  # sums over classes in any order, so that they are done several at once
def add_class_evidence(
    values: Floats, classes: Floats, observed: Floats, row: int, column: int, evidence: Floats
) -> None:
    """Add to `evidence` how much of each value one pair's table puts down to each class.

    Parameters
    ----------
    values, evidence : of shape (values of all attributes, classes)
        The pair's attributes begin at `row` and `column`.
    classes : of shape (classes,), their shares
    observed : of the pair's shape, shares of the table
    """
    part = np.empty(len(classes))
    for i in range(observed.shape[0]):
        for j in range(observed.shape[1]):
            if observed[i, j] <= 0:
                continue
            fitted = 0.0
            for k in range(len(classes)):
                part[k] = classes[k] * values[row + i, k] * values[column + j, k]
                fitted += part[k]
            ratio = observed[i, j] / max(fitted, LEAST_FITTED)
            for k in range(len(classes)):
                evidence[row + i, k] += ratio * part[k]
                evidence[column + j, k] += ratio * part[k]


@njit(cache=True)
def slopes(variances: Floats, ends: Ints, rhos: Floats) -> Floats:
    """How fast each table's expected error falls at each budget: float64 of shape (tables, budgets).

    Parameters
    ----------
    variances : prior variances of the cells of all tables, one table after the other
    ends : of shape (tables,), where each table's cells end
    rhos : of shape (budgets,)
    """
    falls = np.zeros((len(ends), len(rhos)))
    start = 0
    for t in range(len(ends)):
        for c in range(start, ends[t]):
            for r in range(len(rhos)):
                left = variances[c] / (1 + 2 * rhos[r] * variances[c])
                falls[t, r] += left * np.sqrt(left)
        start = ends[t]
    return np.sqrt(2 / np.pi) * falls
