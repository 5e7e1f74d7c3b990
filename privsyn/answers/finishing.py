"""Stage 4, the end: single values moved until the records fit all tables at once.

A start along a tree fits the pairs on the tree only, and GUM leaves duplicates and rounding behind. Here
a random row is offered, for one
attribute, the value of another random row. Taken if the tables fit better by it, or sometimes though
they fit a little worse, ever more rarely (simulated annealing: Kirkpatrick et al., Science 1983). The
offer keeps rare values rare, and a look-up of two cells a table decides it.
"""

from __future__ import annotations

import numpy as np

from privsyn.answers import _kernels
from privsyn.answers.domain import Domain, Records
from privsyn.answers.marginal import Marginal

SWEEPS = 20
TEMPERATURE = 0.3  # in units of the objective; most of the fit is found far below it


def finish(start: Records, tables: tuple[Marginal, ...], rng: np.random.Generator) -> Records:
    """Records with the smallest sum over cells of (count - target)^2 / (target + 1) that annealing finds.

    Never a larger one than at the start: where tables form a tree, the start may be exact.

    Parameters
    ----------
    start : Records
        Where to begin; its number of rows is kept.
    tables : tuple of Marginal
        Non-negative, agreeing counts with a positive total; scaled to the number of rows. Attributes
        that are in no table stay as they are.

    Examples
    --------
    Two independent coins become two coins that agree:

    >>> domain = Domain(("left", "right"), (2, 2))
    >>> start = Records(domain, np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 50))
    >>> same = Marginal(domain, np.array([[100.0, 0.0], [0.0, 100.0]]))
    >>> records = finish(start, (same,), np.random.default_rng(0))
    >>> bool((records.codes[:, 0] == records.codes[:, 1]).all())
    True
    """
    if not tables or not len(start):
        return start
    codes = np.array(start.codes, order="C")  # row by row: a proposal reads one row
    layout = _Layout(start.domain, tables)
    targets = np.concatenate([table.counts.ravel() * (len(start) / table.total) for table in tables])
    gaps, weights = layout.count(codes) - targets, 1 / (targets + 1)
    misfit = float(weights @ gaps**2)
    _kernels.anneal(
        codes,
        layout.holders,
        layout.steps,
        layout.starts,
        layout.columns,
        layout.strides,
        gaps,
        weights,
        SWEEPS,
        TEMPERATURE,
        rng,
    )
    return Records(start.domain, codes) if weights @ gaps**2 < misfit else start


class _Layout:
    """Where the cells of all tables lie when they are laid end to end; the arrays of `_kernels.anneal`."""

    def __init__(self, domain: Domain, tables: tuple[Marginal, ...]) -> None:
        self.sizes = [table.domain.cells for table in tables]
        self.starts = np.cumsum([0, *self.sizes[:-1]])
        self.columns = np.zeros((len(tables), max(len(table.domain) for table in tables)), np.int64)
        self.strides = np.zeros_like(self.columns)
        held: list[list[tuple[int, int]]] = [[] for _ in domain.names]
        for place, table in enumerate(tables):
            axes, strides = domain.axes(table.attributes), table.domain.strides
            self.columns[place, : len(axes)], self.strides[place, : len(axes)] = axes, strides
            for axis, stride in zip(axes, strides, strict=True):
                held[axis].append((place, stride))
        self.holders = np.full((len(domain), max(map(len, held))), -1, np.int64)
        self.steps = np.zeros_like(self.holders)
        for axis, pairs in enumerate(held):
            for slot, (place, stride) in enumerate(pairs):
                self.holders[axis, slot], self.steps[axis, slot] = place, stride

    def count(self, codes: _kernels.Codes) -> _kernels.Floats:
        """How many rows lie in each cell of each table."""
        cells = (
            codes[:, columns] @ strides for columns, strides in zip(self.columns, self.strides, strict=True)
        )
        return np.concatenate(
            [np.bincount(cell, minlength=size) for cell, size in zip(cells, self.sizes, strict=True)]
        ).astype(np.float64)
