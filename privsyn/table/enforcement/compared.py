"""Columns that may not pass a column of a row above: the rule, and which codes each row may have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import numpy as np

from privsyn.marginals.domain import Floats, Integers, Ints, Mask
from privsyn.table.enforcement.draws import Cells, DrawnRows
from privsyn.table.enforcement.increasing import IncreasingRule
from privsyn.table.schema.columns import Coded, Ordinal

if TYPE_CHECKING:
    from privsyn.table.schema.across import Comparison


@dataclass(frozen=True, eq=False)
class ComparedRule(IncreasingRule):
    """Requires the number of a row not to pass one that is known of the row above it.

    Parameters
    ----------
    own : str
        The one of the two `columns` that is drawn; the other one is known.
    """

    own: str

    @classmethod
    def of(cls, comparison: Comparison, own: Coded, above: Coded) -> ComparedRule:
        """Return the rule of a comparison, given both columns."""
        names, scales = (
            (comparison.column, comparison.name),
            (cast(Ordinal, own).scale, cast(Ordinal, above).scale),
        )
        order = -1 if comparison.sign[0] == ">" else 1
        return cls(names[::order], comparison.strict, scales[::order], comparison.column)

    @property
    def above(self) -> str:
        """The column that is known."""
        return next(name for name in self.columns if name != self.own)

    @property
    def is_floor(self) -> bool:
        """Whether the own number may not be below the other one."""
        return self.columns[1] == self.own

    def limit(self, above: Floats) -> Floats:
        """Return the numbers above in the unit of the own column."""
        low, high = self.scales
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
        least = np.append(ends, np.inf)
        return kinds, np.isnan(end)[:, np.newaxis] | (sign * end[:, np.newaxis] >= least)

    def repair(self, rows: DrawnRows, at: Integers, rng: np.random.Generator) -> None:
        """Draw a number again within its group or, if none there keeps the rule, in the nearest one."""
        super().repair(rows, at, rng)
        at = at[~self.holds({name: rows.numbers[name][at] for name in self.columns})]
        if not (len(at) and rows.is_free(self.own)):
            return
        cells, known = rows.cells[self.own], ~np.isnan(rows.cells[self.own].lows)
        step = cells.grid.step if self.strict and cells.grid is not None else 0.0
        end = self.limit(rows.numbers[self.above][at]) + (step if self.is_floor else -step)
        near = (cells.highs if self.is_floor else cells.lows)[cells.find(end)]
        far = np.full(len(at), cells.highs[known].max() if self.is_floor else cells.lows[known].min())
        nearest, any_other = (
            cells.draw(np.minimum(end, other), np.maximum(end, other), rng) for other in (near, far)
        )
        drawn = np.where(np.isnan(nearest), any_other, nearest)
        rows.numbers[self.own][at] = np.where(np.isnan(drawn), rows.numbers[self.own][at], drawn)


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
            yield rule.own, *rule.allowed(cells[rule.own], self.numbers[rule.above])


NOTHING_ABOVE = KnownAbove()
