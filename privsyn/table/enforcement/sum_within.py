"""SumWithin: a weighted sum of columns lies within the bounds of the column that is computed from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privsyn.marginals.domain import Floats, Integers, Mask, Numbers
from privsyn.table.schema.draws import Cells, DrawnRows
from privsyn.table.schema.rules import ROUNDING, Rule


@dataclass(frozen=True, eq=False)
class SumWithin(Rule):
    """Requires a weighted sum of columns to lie within the bounds of the column that is computed as this sum.

    Parameters
    ----------
    factors : mapping of a column to its factor
    low, high : float
    """

    factors: Mapping[str, float]
    low: float
    high: float

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the sum."""
        return tuple(self.factors)

    def reach(self, ends: Sequence[tuple[Any, Any]]) -> tuple[Any, Any]:
        """Return the smallest and the largest sum of numbers between these ends, by column."""
        scaled = [
            (factor * low, factor * high)
            for factor, (low, high) in zip(self.factors.values(), ends, strict=True)
        ]
        return sum(np.minimum(*pair) for pair in scaled), sum(np.maximum(*pair) for pair in scaled)

    def _misses(self, lowest: Floats, highest: Floats) -> Mask:
        """Return where no sum between these two lies within the bounds; never where a part is missing."""
        slack = ROUNDING * max(abs(self.low), abs(self.high))
        return np.asarray((highest < self.low - slack) | (lowest > self.high + slack))

    def holds(self, numbers: Numbers) -> Mask:
        """Return which rows have a sum within the bounds."""
        return ~self._misses(*self.reach([(numbers[name], numbers[name]) for name in self.columns]))

    def possible(self, cells: list[Cells]) -> Mask:
        """Return where some numbers of the groups have a sum within the bounds."""
        lows, highs = (np.ix_(*(c.reach[end] for c in cells)) for end in (0, 1))
        return ~self._misses(*self.reach([*zip(lows, highs, strict=True)]))

    def repair(self, rows: DrawnRows, at: Integers, rng: np.random.Generator) -> None:
        """Draw the numbers of each row again within their groups, each as the others leave room."""
        ends = [
            np.sort([factor * end for end in rows.room(name, at)], axis=0)
            for name, factor in self.factors.items()
        ]
        before = np.zeros(len(at))
        for j, (name, factor) in enumerate(self.factors.items()):
            later = ends[j + 1 :]
            lowest, highest = (sum(side[k] for side in later) for k in (0, 1))
            first = np.maximum(ends[j][0], self.low - before - highest)
            last = np.minimum(ends[j][1], self.high - before - lowest)
            if rows.is_free(name) and factor:
                bounds = np.sort([first / factor, last / factor], axis=0)
                drawn = rows.cells[name].draw(bounds[0], bounds[1], rng)
                fits = ~np.isnan(drawn) & (first <= last)
                rows.numbers[name][at] = np.where(fits, drawn, rows.numbers[name][at])
            before = before + factor * rows.numbers[name][at]
