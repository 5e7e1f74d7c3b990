"""Increasing: columns whose values increase from each to the next.

One column is counted, and of each other column either the column or its gap; see `privsyn.table.codec.gaps`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from privsyn.errors import InputError
from privsyn.marginals.domain import Integers, Mask, Numbers
from privsyn.table.kinds.column_settings import flag
from privsyn.table.kinds.ordinal import ordinal_of
from privsyn.table.schema.constraint import Columns, Constraint, Order, check_names
from privsyn.table.schema.draws import Cells, DrawnRows
from privsyn.table.schema.rules import Rule


@dataclass(frozen=True)
class Increasing(Constraint):
    """Requires columns of numbers, or of dates, to increase from each to the next in every row.

    The release counts one column without missing cells, by default the first. Of each other column it counts
    the gap, from which the column is computed, or the column itself, whichever spreads less.

    Parameters
    ----------
    columns : list of str
    strict : bool
        Whether equal values are forbidden.

    Examples
    --------
    >>> Increasing(["ordered", "sent", "delivered"]).strict
    False
    """

    columns: Sequence[str]
    strict: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", check_names("columns", self.columns))
        if len(self.columns) < 2:
            raise InputError("increasing needs at least two columns")
        object.__setattr__(self, "strict", flag("strict", self.strict))

    def derive(self, columns: Columns) -> Columns:
        """Refuse columns that cannot be compared."""
        ordered = [columns[name] for name in self.columns]
        if ordered[0].lists_values or len({type(column) for column in ordered}) > 1:
            raise InputError("columns that increase are all numerical, or all dates")
        return {}

    def add_declared(self, columns: Columns, names: Collection[str]) -> Columns:
        """Widen the bounds that were found under privacy to those of all the columns.

        If no two may be equal, there are as many numbers between the bounds as columns.
        """
        ordered = {name: ordinal_of(columns[name]) for name in self.columns if columns[name].is_public}
        if not any(name in names for name in ordered):
            return {}
        low = min(column.bounds[0] * column.scale for column in ordered.values())
        high = max(column.bounds[1] * column.scale for column in ordered.values())
        if self.strict:
            step = max(column.resolution * column.scale for column in ordered.values())
            high = max(high, low + (len(ordered) - 1) * step)
        return {
            name: column.covering(low / column.scale, high / column.scale)
            for name, column in ordered.items()
            if name in names
        }

    def check(self, columns: Columns) -> None:
        """Refuse a column that begins above the end of a later one."""
        for name, later in combinations(self.columns, 2):
            low = columns[name].bounds[0] * ordinal_of(columns[name]).scale
            high = columns[later].bounds[1] * ordinal_of(columns[later]).scale
            if low > high or (self.strict and low == high):
                raise InputError(
                    f"{name!r} begins above the end of {later!r}, so no row can keep it:"
                    " exchange the columns or change their bounds"
                )

    def explain(self) -> str:
        """Return what the constraint does, in plain English."""
        sign = " < " if self.strict else " <= "
        return f"{sign.join(self.columns)}. Columns or their gaps are counted, whichever spread less."

    def orders(self, complete: Collection[str] = ()) -> list[Order]:
        """Return the pairs without a complete column between them: their order implies that of all."""
        return [
            (low, high, self.strict)
            for j, high in enumerate(self.columns)
            for i, low in enumerate(self.columns[:j])
            if not {*self.columns[i + 1 : j]} & {*complete}
        ]

    def rules(self, columns: Columns) -> list[Rule]:
        """Return the one rule that keeps the order."""
        return [IncreasingRule({name: ordinal_of(columns[name]).scale for name in self.columns}, self.strict)]


@dataclass(frozen=True, eq=False)
class IncreasingRule(Rule):
    """Requires numbers to increase from each column to the next, where not all are encoded as gaps.

    Parameters
    ----------
    scales : mapping of a column to a float
        The number of common units, such as seconds, in one unit of the column; the columns in their order.
    strict : bool
        Whether equal numbers break the rule.
    """

    scales: Mapping[str, float]
    strict: bool

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns from the least number to the largest."""
        return tuple(self.scales)

    def _step(self, rows: DrawnRows, name: str, scale: float) -> float:
        """Return the smallest allowed difference to the number before."""
        if not self.strict or name not in rows.cells:
            return 0.0
        return rows.cells[name].grid.step * scale  # type: ignore[union-attr]  # only ordered columns increase

    def holds(self, numbers: Numbers) -> Mask:
        """Return where the numbers increase; missing numbers are skipped."""
        increasing, before = np.array(True), np.array(-np.inf)
        for name, scale in self.scales.items():
            number = numbers[name] * scale
            increasing = increasing & ~(number <= before if self.strict else number < before)
            before = np.fmax(before, number)
        return np.asarray(increasing)

    def possible(self, cells: list[Cells]) -> Mask:
        """Return where each group's largest number is not below the smallest of any earlier group."""
        increasing, before = np.array(True), np.array(-np.inf)
        for axis, (c, scale) in enumerate(zip(cells, self.scales.values(), strict=True)):
            shape = [-1 if axis == axis_of_cells else 1 for axis_of_cells in range(len(cells))]
            low, high = (end.reshape(shape) * scale for end in c.reach)
            increasing = increasing & ~(high <= before if self.strict else high < before)
            before = np.fmax(before, low)
        return np.broadcast_to(increasing, [c.merged for c in cells])

    def repair(self, rows: DrawnRows, at: Integers, rng: np.random.Generator) -> None:
        """Put the numbers of a row in order if they stay in their groups, else draw within the groups."""
        scales = np.array([*self.scales.values()])[:, np.newaxis]
        room = [rows.room(name, at) for name in self.columns]
        lows, highs = (np.stack([side[k] for side in room]) * scales for k in (0, 1))
        steps = [self._step(rows, name, scale) for name, scale in self.scales.items()]
        tops, above = highs.copy(), np.full(len(at), np.inf)
        for j in range(len(tops) - 1, -1, -1):
            tops[j] = np.minimum(tops[j], above)  # NaN stays NaN
            above = np.fmin(above, tops[j] - (steps[j - 1] if j else 0.0))
        ordered = np.sort(np.stack([rows.numbers[name][at] for name in self.columns]) * scales, axis=0)
        fits = ((ordered >= lows) & (ordered <= highs)).all(axis=0)
        for j, (name, scale) in enumerate(self.scales.items()):
            if name in rows.cells:  # a real number is none of a column of whole numbers
                fits &= ~np.isnan(rows.cells[name].snap(ordered[j] / scale))
        if self.strict:
            fits &= (np.diff(ordered, axis=0) > 0).all(axis=0)
        floor = np.full(len(at), -np.inf)
        for j, (name, scale) in enumerate(self.scales.items()):
            number = rows.numbers[name][at]
            if rows.is_free(name):
                lowest = np.fmax(lows[j], floor + steps[j]) / scale
                new = rows.cells[name].draw(lowest, tops[j] / scale, rng)
                new = np.where(fits, ordered[j] / scale, new)
                number = rows.numbers[name][at] = np.where(np.isnan(new), number, new)
            floor = np.fmax(floor, number * scale)
