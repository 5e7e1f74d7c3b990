"""Predicates that single out: conditions on a few columns that hold for exactly one row of a table.

A condition asks for a value, a lower bound or an upper bound. A predicate that singles out in the synthetic
table may do so in the private one by chance, because any rare kind of row may occur once. It is a leak if
this happens more often than among held-out rows (Cohen and Nissim 2020).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from privsyn.evaluation.attacks.gower import MISSING_COORDINATE, Points
from privsyn.marginals.types import Floats, Integers


@dataclass(frozen=True)
class Predicate:
    """Rows whose coordinate in each of these columns lies in an interval, both ends included."""

    axes: tuple[int, ...]
    lows: tuple[float, ...]
    highs: tuple[float, ...]

    def count(self, cells: Floats) -> int:
        """Return the number of rows for which it holds."""
        rows: Integers | slice = slice(None)
        for axis, low, high in zip(self.axes, self.lows, self.highs, strict=True):
            column = cells[rows, axis]
            fits = np.flatnonzero((column >= low) & (column <= high))
            rows = fits if isinstance(rows, slice) else rows[fits]
        return len(fits)


def of_rare_values(synthetic: Points, rng: np.random.Generator) -> Iterator[Predicate]:
    """Yield predicates of one column in random order: values that occur once, and extremes."""
    predicates = []
    for axis, is_number in enumerate(synthetic.numbers):
        values, counts = np.unique(synthetic.cells[:, axis], return_counts=True)
        predicates += [Predicate((axis,), (value,), (value,)) for value in values[counts == 1].tolist()]
        present = values[values > MISSING_COORDINATE]
        if is_number and len(present):
            low, high = float(present[0]), float(present[-1])
            predicates += [Predicate((axis,), (0.0,), (low,)), Predicate((axis,), (high,), (1.0,))]
    for place in rng.permutation(len(predicates)):
        yield predicates[place]


def of_rows(
    synthetic: Points, columns: int, tries: int, rng: np.random.Generator, *, mixed: bool = False
) -> Iterator[Predicate]:
    """Yield distinct predicates that hold for a random row: its categories, and numbers at least as extreme.

    Parameters
    ----------
    synthetic : Points
    columns : int
        Number of columns in each predicate.
    tries : int
        Number of random rows.
    rng : numpy.random.Generator
    mixed : bool
        Take each cell from another row: such predicates know columns, but no row.
    """
    n, d = synthetic.cells.shape
    middles = np.median(synthetic.cells, axis=0)
    seen = set()
    for _ in range(tries):
        axes = np.sort(rng.choice(d, columns, replace=False))
        rows = rng.integers(n, size=columns) if mixed else np.full(columns, rng.integers(n))
        predicate = _at_least_as_extreme(synthetic, axes, rows, middles[axes])
        if predicate not in seen:
            seen.add(predicate)
            yield predicate


def _at_least_as_extreme(synthetic: Points, axes: Integers, rows: Integers, middles: Floats) -> Predicate:
    lows, highs = [], []
    for axis, value, middle in zip(axes, synthetic.cells[rows, axes], middles, strict=True):
        exact = not synthetic.numbers[axis] or value == MISSING_COORDINATE
        lows.append(float(value) if exact or value > middle else 0.0)
        highs.append(float(value) if exact or value <= middle else 1.0)
    return Predicate(tuple(axes.tolist()), tuple(lows), tuple(highs))
