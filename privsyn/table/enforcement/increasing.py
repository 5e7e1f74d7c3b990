"""Increasing: columns whose values increase from each to the next.

The first column and the gap to each next one are counted, so all rules are expressed in terms of gaps.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from privsyn.errors import InputError
from privsyn.marginals.domain import Floats, Integers, Mask, Numbers
from privsyn.table.enforcement.draws import Cells, DrawnRows
from privsyn.table.enforcement.forbidden import ForbiddenRule
from privsyn.table.enforcement.repair import Repair
from privsyn.table.enforcement.rules import Rule
from privsyn.table.kinds.column_settings import flag
from privsyn.table.schema.columns import Ordinal
from privsyn.table.schema.constraint import Columns, Constraint, check_names
from privsyn.table.schema.schema import Schema

if TYPE_CHECKING:
    from privsyn.table.codec.gaps import Gap


@dataclass(frozen=True)
class Increasing(Constraint):
    """Requires columns of numbers, or of dates, to increase from each to the next in every row.

    The release counts the first column, and the gap from each column to the next. The other columns are
    computed; see `privsyn.table.codec.gaps`.

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

    def add_declared(self, columns: Columns, found: Collection[str]) -> Columns:
        """Widen the bounds that were found under privacy to those of all the columns."""
        widened: dict[str, Any] = {name: columns[name] for name in self.columns if name in found}
        if not widened:
            return {}
        public: list[Any] = [columns[name] for name in self.columns if columns[name].is_public]
        low, high = min(column.low for column in public), max(column.high for column in public)
        return {name: replace(column, low=low, high=high) for name, column in widened.items()}

    def check(self, columns: Columns) -> None:
        """Refuse a column that begins above the end of a later one."""
        scales = _scales(columns, self.columns)
        ends = [columns[name].bounds for name in self.columns]
        for j, name in enumerate(self.columns):
            for k in range(j + 1, len(ends)):
                low, high = ends[j][0] * scales[j], ends[k][1] * scales[k]
                if low > high or (self.strict and low == high):
                    raise InputError(
                        f"{name!r} begins above the end of {self.columns[k]!r}, so no row can keep it:"
                        " exchange the columns or change their bounds"
                    )

    def explain(self) -> str:
        """Return what the constraint does, in plain English."""
        sign = " < " if self.strict else " <= "
        return f"{sign.join(self.columns)}. The first column and the gaps are counted, the others computed."

    def rules(self, columns: Columns) -> list[Rule]:
        """Return the one rule that keeps the order."""
        return [IncreasingRule(tuple(self.columns), self.strict, _scales(columns, self.columns))]


def _scales(columns: Columns, names: Sequence[str]) -> tuple[float, ...]:
    """Return the number of common units in one unit of each column."""
    return tuple(cast(Ordinal, columns[name]).scale for name in names)


@dataclass(frozen=True, eq=False)
class IncreasingRule(Rule):
    """Requires numbers to increase from each column to the next, where not all are encoded as gaps.

    Parameters
    ----------
    columns : tuple of str
    strict : bool
        Whether equal numbers break the rule.
    scales : tuple of float
        The number of common units, such as seconds, in one unit of each column.
    """

    columns: tuple[str, ...]
    strict: bool
    scales: tuple[float, ...]

    def _step(self, rows: DrawnRows, name: str, scale: float) -> float:
        """Return the smallest allowed difference to the number before."""
        if not self.strict or name not in rows.cells:
            return 0.0
        return rows.cells[name].grid.step * scale  # type: ignore[union-attr]  # only ordered columns increase

    def holds(self, numbers: Numbers) -> Mask:
        """Return where the numbers increase; missing numbers are skipped."""
        kept, before = np.array(True), np.array(-np.inf)
        for name, scale in zip(self.columns, self.scales, strict=True):
            number = numbers[name] * scale
            kept = kept & ~(number <= before if self.strict else number < before)
            before = np.fmax(before, number)
        return np.asarray(kept)

    def possible(self, cells: list[Cells]) -> Mask:
        """Return where each group's largest number is not below the smallest of any earlier group."""
        kept, before = np.array(True), np.array(-np.inf)
        for axis, (c, scale) in enumerate(zip(cells, self.scales, strict=True)):
            shape = [-1 if axis == other else 1 for other in range(len(cells))]
            low, high = (end.reshape(shape) * scale for end in c.reach)
            kept = kept & ~(high <= before if self.strict else high < before)
            before = np.fmax(before, low)
        return np.broadcast_to(kept, [c.merged for c in cells])

    def repair(self, rows: DrawnRows, at: Integers, rng: np.random.Generator) -> None:
        """Put the numbers of a row in order if they stay in their groups, else draw within the groups."""
        scales = np.array(self.scales)[:, np.newaxis]
        room = [rows.room(name, at) for name in self.columns]
        lows, highs = (np.stack([side[k] for side in room]) * scales for k in (0, 1))
        steps = [self._step(rows, name, scale) for name, scale in zip(self.columns, self.scales, strict=True)]
        tops, above = highs.copy(), np.full(len(at), np.inf)
        for j in range(len(tops) - 1, -1, -1):
            tops[j] = np.minimum(tops[j], above)  # NaN stays NaN
            above = np.fmin(above, tops[j] - (steps[j - 1] if j else 0.0))
        ordered = np.sort(np.stack([rows.numbers[name][at] for name in self.columns]) * scales, axis=0)
        fits = ((ordered >= lows) & (ordered <= highs)).all(axis=0)
        if self.strict:
            fits &= (np.diff(ordered, axis=0) > 0).all(axis=0)
        floor = np.full(len(at), -np.inf)
        for j, name in enumerate(self.columns):
            number = rows.numbers[name][at]
            if rows.is_free(name):
                lowest = np.fmax(lows[j], floor + steps[j]) / self.scales[j]
                new = rows.cells[name].draw(lowest, tops[j] / self.scales[j], rng)
                new = np.where(fits, ordered[j] / self.scales[j], new)
                number = rows.numbers[name][at] = np.where(np.isnan(new), number, new)
            floor = np.fmax(floor, number * self.scales[j])


@dataclass(frozen=True, eq=False)
class GapRule(Rule):
    """Requires a gap to fit the columns before it: a distance where one is given, within the column's bounds.

    Parameters
    ----------
    gap : Gap
    columns : tuple of str
        The attributes of the columns before, and last the gap.
    chain : tuple of Gap
        The gaps among the columns before, and last this one.
    """

    gap: Gap
    columns: tuple[str, ...]
    chain: tuple[Gap, ...]

    def holds(self, numbers: Numbers) -> Mask:
        """Return where the gap is missing, or fits."""
        known = dict(numbers)
        for gap in self.chain[:-1]:
            known[gap.column] = gap.make(known)
        encoder, last, gaps = self.gap.encoder, self.gap.last(known), numbers[self.gap.name]
        point = self.gap.least(last) + np.rint(gaps * encoder.grid.scale)
        inside = (point >= 0) & (point < encoder.of.grid.points)
        fits = np.where(np.isnan(last), gaps > encoder.farthest, (gaps < encoder.farthest) & inside)
        return np.isnan(gaps) | fits

    def possible(self, cells: list[Cells]) -> Mask:
        """Return the cells in which some numbers fit."""
        chain = {gap.name: gap for gap in self.chain}
        lows: dict[str, Floats] = {}  # the least number of each column, NaN where it is missing
        kept = np.array(True)
        for axis, (name, c) in enumerate(zip(self.columns, cells, strict=True)):
            shape = [-1 if axis == other else 1 for other in range(len(cells))]
            low, high = (end.reshape(shape) for end in c.reach)
            gap = chain.get(name)
            if gap is None:
                lows[name] = low
                continue
            shaped = {of: np.broadcast_to(lows[of], self._shape(cells)) for of in gap.before}
            last, points = gap.last(shaped), gap.encoder.of.grid.points
            distance, alone = low < gap.encoder.farthest, high > gap.encoder.farthest
            inside = gap.least(last) + np.rint(low * gap.encoder.grid.scale) < points
            missing = np.arange(c.merged).reshape(shape) == c.missing
            kept = kept & (missing | np.where(np.isnan(last), alone, distance & inside))
            made = gap.make({**shaped, gap.name: np.broadcast_to(low, self._shape(cells))})
            lows[gap.column] = np.where(np.isnan(low), np.nan, made)
        return np.asarray(kept)

    def _shape(self, cells: list[Cells]) -> tuple[int, ...]:
        return tuple(c.merged for c in cells)

    def repair(self, rows: DrawnRows, at: Integers, rng: np.random.Generator) -> None:
        """Draw a distance again within its group, or clip it, so that the column lies within its bounds."""
        gap, name = self.gap, self.gap.name
        if not rows.is_free(name):
            return
        least = gap.least(gap.last({of: rows.numbers[of][at] for of in gap.before}))
        grid, numbers = gap.encoder.of.grid, rows.numbers[name][at]
        first = np.maximum(-least, 0) / grid.scale
        last = np.minimum(grid.points - 1 - least, gap.encoder.distances - 1) / grid.scale
        lows, highs = rows.room(name, at)
        drawn = rows.cells[name].draw(np.maximum(lows, first), np.minimum(highs, last), rng)
        clipped = np.where(
            (first <= last) & (numbers < gap.encoder.farthest), np.clip(numbers, first, last), numbers
        )
        rows.numbers[name][at] = np.where(np.isnan(drawn), clipped, drawn)


def rules_with_gaps(
    repair: Repair, schema: Schema, gaps: Mapping[str, Gap], nullable: Mapping[str, bool]
) -> Repair:
    """Return the rules and computations in terms of the gaps.

    A rule about whether a column is missing becomes one about its gap. A constraint whose columns are all
    encoded as gaps needs no rule.
    """
    if not gaps:
        return repair
    rules: list[Rule] = []
    for constraint in schema.constraints:
        coded = isinstance(constraint, Increasing) and all(
            name in gaps and gaps[name].before == tuple(constraint.columns[:place])
            for place, name in enumerate(constraint.columns[1:], 1)
        )
        rules += [] if coded else map(partial(_renamed, gaps), constraint.rules(schema.coded))
    rules += [_gap_rule(gaps, gap) for gap in gaps.values()]
    computing = {c.column: c for c in (*repair.computations, *gaps.values())}
    order = TopologicalSorter({name: set(c.by) for name, c in computing.items()}).static_order()
    columns = {gap.name: gap.pseudo_column(nullable=nullable[gap.column]) for gap in gaps.values()}
    computations = tuple(computing[name] for name in order if name in computing)
    return Repair({**repair.columns, **columns}, tuple(rules), computations)


def _gap_rule(gaps: Mapping[str, Gap], gap: Gap) -> GapRule:
    """Return the rule of a gap, with all that the columns before it are computed from."""
    needed, left = {gap.column}, [gap.column]
    while left:
        new = {of for name in left if name in gaps for of in gaps[name].before} - needed
        needed |= new
        left = list(new)
    chain = tuple(each for name, each in gaps.items() if name in needed)  # in the order of computation
    counted = sorted(needed - set(gaps), key=str)
    return GapRule(gap, (*counted, *(each.name for each in chain)), chain)


def _renamed(gaps: Mapping[str, Gap], rule: Rule) -> Rule:
    """Return the rule about the gaps of columns of which it only says whether they are missing."""
    if not isinstance(rule, ForbiddenRule):
        return rule
    names = {n: gaps[n].name for n, span in rule.spans.items() if n in gaps and span.is_about_missing}
    spans = {names.get(name, name): span for name, span in rule.spans.items()}
    return replace(rule, spans=spans, lost=names.get(rule.lost or "", rule.lost))
