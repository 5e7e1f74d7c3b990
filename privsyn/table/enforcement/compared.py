"""Columns that may not pass a column of a row above: the rule, and which codes each row may have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from privsyn.marginals.domain import Floats, Integers, Ints, Mask
from privsyn.table.enforcement.increasing import IncreasingRule
from privsyn.table.schema.columns import Coded
from privsyn.table.schema.draws import Cells, DrawnRows, Grid

WITHIN = 1e-3
"""Of a step: numbers of a grid that are this near to a limit are the limit itself."""


@dataclass(frozen=True, eq=False)
class ComparedRule(IncreasingRule):
    """Requires the number of a row not to pass one that is known of the row above it.

    Parameters
    ----------
    own : str
        The one of the two `columns` that is drawn; the other one is known.
    beside : tuple of ComparedRule
        The other rules on the same column: a claim lies between the start and the end of its policy.
    """

    drawn_column: str
    beside: tuple[ComparedRule, ...] = ()
    may_be_broken: ClassVar[bool] = True

    @property
    def above(self) -> str:
        """The column that is known."""
        return next(name for name in self.columns if name != self.drawn_column)

    @property
    def is_floor(self) -> bool:
        """Whether the own number may not be below the other one."""
        return self.columns[1] == self.drawn_column

    def limit(self, above: Floats) -> Floats:
        """Return the numbers above in the unit of the own column."""
        low, high = self.scales.values()
        return above * (low / high if self.is_floor else high / low)

    def allowed(self, cells: Cells, above: Floats) -> tuple[Ints, Mask]:
        """Return a kind for each row, and which merged codes the rows of each kind may have.

        A code is possible if one of its numbers keeps the rule.

        Parameters
        ----------
        cells : Cells
            Of the own column.
        above : array of shape (rows,)
            NaN where the cell above is missing: any code is possible.

        Returns
        -------
        kinds : of shape (rows,)
        possible : of shape (merged codes, kinds)
        """
        lows, highs = cells.reach
        sign, end = (1.0, highs) if self.is_floor else (-1.0, lows)
        ends = np.unique(sign * end[~np.isnan(end)])
        kinds = np.searchsorted(ends, sign * self.limit(above), side="right" if self.strict else "left")
        kinds[np.isnan(above)] = 0
        lowest = np.append(ends, np.inf)
        return kinds, np.isnan(end)[:, np.newaxis] | (sign * end[:, np.newaxis] >= lowest)

    def ends(self, rows: DrawnRows, at: Integers) -> tuple[Floats, Floats]:
        """Return the least and largest own number of each row `at` that keeps this rule and those beside."""
        low, high = np.full(len(at), -np.inf), np.full(len(at), np.inf)
        step = _beyond(rows.cells[self.drawn_column].grid)
        for rule in (self, *self.beside):
            limit = rule.limit(rows.numbers[rule.above][at])
            if rule.is_floor:
                low = np.fmax(low, limit + step * rule.strict)
            else:
                high = np.fmin(high, limit - step * rule.strict)
        return low, high

    def repair(self, rows: DrawnRows, at: Integers, rng: np.random.Generator) -> None:
        """Draw a number again within its group or, if none there keeps the rules, in the nearest cell.

        If no number keeps them, it is the nearest one: no day may lie between two times.
        """
        if not rows.is_free(self.drawn_column):
            return
        cells, numbers = rows.cells[self.drawn_column], rows.numbers[self.drawn_column][at]
        low, high = self.ends(rows, at)
        up = 0.0 if cells.grid is None else cells.grid.step - _beyond(cells.grid)  # the next number's cell
        near, present = cells.find(np.where(numbers < low, low + up, high)), ~np.isnan(cells.lows)
        range_of_cells = (
            np.full(len(at), cells.lows[present].min()),
            np.full(len(at), cells.highs[present].max()),
        )
        repaired = np.full(len(at), np.nan)
        for first, last in (
            rows.room(self.drawn_column, at),
            (cells.lows[near], cells.highs[near]),
            range_of_cells,
        ):
            drawn = cells.draw(np.maximum(first, low), np.minimum(last, high), rng)
            repaired = np.where(np.isnan(repaired), drawn, repaired)
        nearest = np.clip(numbers, low, high)
        if cells.grid is not None and cells.grid.decimals is not None:  # a real may lie beside the grid
            half = cells.grid.step / 2
            nearest = cells.draw(nearest - half, nearest + half, rng)
        repaired = np.where(np.isnan(repaired), nearest, repaired)
        rows.numbers[self.drawn_column][at] = np.where(np.isnan(repaired), numbers, repaired)


def _beyond(grid: Grid | None) -> float:
    """Return how far beyond a limit numbers may begin: the next real, or the next number of the grid."""
    return 0.0 if grid is None else grid.step * (1.0 if grid.decimals is None else WITHIN)


@dataclass(frozen=True, eq=False)
class KnownAbove:
    """What rows may not pass: rules, and the numbers of the rows above.

    Parameters
    ----------
    rules : tuple of ComparedRule
    numbers : mapping of a column above to the number for each row
    columns : mapping of the same columns to their kinds
    """

    rules: tuple[ComparedRule, ...] = ()
    numbers: Mapping[str, Floats] = field(default_factory=dict)
    columns: Mapping[str, Coded] = field(default_factory=dict)

    def allowed(self, cells: Mapping[str, Cells]) -> Iterator[tuple[str, Ints, Mask]]:
        """Yield the own column of each rule, and what `ComparedRule.allowed` returns."""
        for rule in self.rules:
            yield rule.drawn_column, *rule.allowed(cells[rule.drawn_column], self.numbers[rule.above])

    @classmethod
    def of(
        cls, rules: Sequence[ComparedRule], numbers: Mapping[str, Floats], columns: Mapping[str, Coded]
    ) -> KnownAbove:
        """Return the rules, each with those beside it."""
        beside = {
            rule: tuple(
                rule_beside
                for rule_beside in rules
                if rule.drawn_column == rule_beside.drawn_column and rule_beside is not rule
            )
            for rule in rules
        }
        return cls(
            tuple(replace(rule, beside=rules_beside) for rule, rules_beside in beside.items()),
            numbers,
            columns,
        )


NOTHING_ABOVE = KnownAbove()
