"""Predicates that single out: few words that fit one row of a table and no other.

A predicate asks each of some columns for a value, or for one at least or at most so large. That one which
singles out in the synthetic table does so in the private one is no wonder by itself: any rare kind of row may
occur once. It is a leak if it happens more often there than among rows held out (Cohen and Nissim 2020).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from privsyn.evaluation.attacks.gower import MISSING_PLACE, Places
from privsyn.marginals.types import Floats, Integers


@dataclass(frozen=True)
class Predicate:
    """Rows whose place in each of some columns lies between two ends, both included."""

    axes: tuple[int, ...]
    lows: tuple[float, ...]
    highs: tuple[float, ...]

    def count(self, cells: Floats) -> int:
        """How many rows it fits."""
        rows: Integers | slice = slice(None)
        for axis, low, high in zip(self.axes, self.lows, self.highs, strict=True):
            column = cells[rows, axis]
            fits = np.flatnonzero((column >= low) & (column <= high))
            rows = fits if isinstance(rows, slice) else rows[fits]
        return len(fits)


def of_rare_values(synthetic: Places, rng: np.random.Generator) -> Iterator[Predicate]:
    """Predicates of one column that may single out, in any order: values that occur once, and extremes."""
    found = []
    for axis, is_number in enumerate(synthetic.numbers):
        values, counts = np.unique(synthetic.cells[:, axis], return_counts=True)
        found += [Predicate((axis,), (value,), (value,)) for value in values[counts == 1].tolist()]
        present = values[values > MISSING_PLACE]
        if is_number and len(present):
            low, high = float(present[0]), float(present[-1])
            found += [Predicate((axis,), (0.0,), (low,)), Predicate((axis,), (high,), (1.0,))]
    for place in rng.permutation(len(found)):
        yield found[place]


def of_rows(
    synthetic: Places, columns: int, tries: int, rng: np.random.Generator, *, mixed: bool = False
) -> Iterator[Predicate]:
    """Predicates that fit some row: its categories, and numbers as far out as its own.

    Parameters
    ----------
    synthetic : Places
    columns : int
        How many columns a predicate asks.
    tries : int
    rng : numpy.random.Generator
    mixed : bool
        Each cell from a row of its own: they know columns and no row.
    """
    n, d = synthetic.cells.shape
    middles = np.median(synthetic.cells, axis=0)
    seen = set()
    for _ in range(tries):
        axes = np.sort(rng.choice(d, columns, replace=False))
        rows = rng.integers(n, size=columns) if mixed else np.full(columns, rng.integers(n))
        predicate = _as_far_out(synthetic, axes, rows, middles[axes])
        if predicate not in seen:
            seen.add(predicate)
            yield predicate


def _as_far_out(synthetic: Places, axes: Integers, rows: Integers, middles: Floats) -> Predicate:
    lows, highs = [], []
    for axis, value, middle in zip(axes, synthetic.cells[rows, axes], middles, strict=True):
        exact = not synthetic.numbers[axis] or value == MISSING_PLACE
        lows.append(float(value) if exact or value > middle else 0.0)
        highs.append(float(value) if exact or value <= middle else 1.0)
    return Predicate(tuple(axes.tolist()), tuple(lows), tuple(highs))
