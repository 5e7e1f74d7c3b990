"""Increasing: columns whose values increase from each to the next.

One column and the gaps of the others are counted, so all rules are expressed in terms of gaps.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING, cast

import numpy as np

from privsyn.errors import InputError
from privsyn.marginals.domain import Floats, Integers, Mask, Numbers
from privsyn.table.enforcement.draws import Cells, DrawnRows
from privsyn.table.enforcement.forbidden import ForbiddenRule
from privsyn.table.enforcement.repair import Repair
from privsyn.table.enforcement.rules import Rule
from privsyn.table.kinds.column_settings import flag
from privsyn.table.schema.columns import Ordinal
from privsyn.table.schema.constraint import Columns, Constraint, Order, check_names
from privsyn.table.schema.schema import Schema

if TYPE_CHECKING:
    from privsyn.table.codec.gaps import Gap


@dataclass(frozen=True)
class Increasing(Constraint):
    """Requires columns of numbers, or of dates, to increase from each to the next in every row.

    The release counts one column without missing cells, by default the first, and the gaps of the others. The
    other columns are computed; see `privsyn.table.codec.gaps`.

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
        ordered = {name: cast(Ordinal, columns[name]) for name in self.columns if columns[name].is_public}
        if not any(name in found for name in ordered):
            return {}
        low = min(column.bounds[0] * column.scale for column in ordered.values())
        high = max(column.bounds[1] * column.scale for column in ordered.values())
        return {
            name: column.covering(low / column.scale, high / column.scale)
            for name, column in ordered.items()
            if name in found
        }

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
        return f"{sign.join(self.columns)}. One column and the gaps of the others are counted."

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
    """Requires a gap to fit the other columns of the order.

    It is a distance where a column is given from which it is measured. The column lies within its bounds, and
    does not pass the columns on the other side.

    Parameters
    ----------
    gap : Gap
    columns : tuple of str
        The attributes of the other columns, and last the gap.
    chain : tuple of Gap
        The gaps among the other columns, and last this one.
    """

    gap: Gap
    columns: tuple[str, ...]
    chain: tuple[Gap, ...]

    def holds(self, numbers: Numbers) -> Mask:
        """Return where the gap is missing, or fits."""
        known = dict(numbers)
        for gap in self.chain[:-1]:
            known[gap.column] = gap.make(known)
        gaps, (first, last) = numbers[self.gap.name], self._ends(known)
        steps = np.rint(gaps * self.gap.encoder.grid.scale)
        return np.isnan(gaps) | ((first <= steps) & (steps <= last))

    def _ends(self, numbers: Numbers) -> tuple[Floats, Floats]:
        """Return the least and the largest gap of each row in steps; the first is larger if none fits."""
        encoder, sign = self.gap.encoder, self.gap.side.sign
        points, near = encoder.of.grid.points, self.gap.nearest(numbers)
        far = np.nan_to_num(self.gap.limit.nearest(encoder.of.grid, numbers), nan=sign * np.inf)
        low, high = (0.0, np.minimum(far, points - 1)) if sign > 0 else (np.maximum(far, 0), points - 1.0)
        first = np.maximum(low - near if sign > 0 else near - high, 0)
        last = np.minimum(high - near if sign > 0 else near - low, encoder.distances - 1)
        alone = np.isnan(near)
        return np.where(alone, encoder.distances + low, first), np.where(
            alone, encoder.distances + high, last
        )

    def possible(self, cells: list[Cells]) -> Mask:
        """Return the cells in which some numbers fit, for a rule without a limit.

        A limit gives no zeros: through the wide cells of a third column they would be loose and in tables of
        three attributes, and fitting these moves the counts of all.
        """
        if self.gap.limit.columns:
            return np.ones([c.merged for c in cells], np.bool_)
        chain, whole = {gap.name: gap for gap in self.chain}, tuple(c.merged for c in cells)
        ends: dict[str, tuple[Floats, Floats]] = {}  # of each column, NaN where it is missing
        kept = np.array(True)
        for axis, (name, c) in enumerate(zip(self.columns, cells, strict=True)):
            shape = [-1 if axis == other else 1 for other in range(len(cells))]
            low, high = (np.broadcast_to(end.reshape(shape), whole) for end in c.reach)
            gap = chain.get(name)
            if gap is None:
                ends[name] = low, high
                continue
            encoder, grid, sign = gap.encoder, gap.encoder.of.grid, gap.side.sign
            lows, highs = ({of: end[k] for of, end in ends.items()} for k in (0, 1))
            near, far = (lows, highs) if sign > 0 else (highs, lows)
            start = gap.nearest(near)
            point = start + sign * np.rint(low * encoder.grid.scale)
            inside = point < grid.points if sign > 0 else point >= 0
            fits = np.where(np.isnan(start), high > encoder.farthest, (low < encoder.farthest) & inside)
            kept = kept & (fits | (np.arange(c.merged).reshape(shape) == c.missing))
            made = [
                gap.make({**near, gap.name: low}),
                gap.make({**far, gap.name: np.minimum(high, encoder.farthest)}),
            ]
            free = np.isnan(start) & ~np.isnan(low)  # the column's own value: any
            low_end, high_end = made[::sign]
            ends[gap.column] = np.where(free, grid.low, low_end), np.where(free, grid.high, high_end)
        return np.asarray(kept)

    def repair(self, rows: DrawnRows, at: Integers, rng: np.random.Generator) -> None:
        """Draw a gap again within its group, or move it as little as possible; it never becomes missing."""
        gap, name = self.gap, self.gap.name
        if not rows.is_free(name):
            return
        encoder, numbers = gap.encoder, {of: number[at] for of, number in rows.numbers.items()}
        near, (first, last) = gap.nearest(numbers), self._ends(numbers)
        scale, distances = encoder.grid.scale, encoder.distances
        steps, alone = np.rint(numbers[name] * scale), np.isnan(near)
        own = np.where(~alone & (steps >= distances), gap.side.sign * (steps - distances - near), steps)
        own = np.where(alone & (steps < distances), self._alone(rows, len(at), rng), own)
        moved = np.where(first <= last, np.clip(own, first, last), steps) / scale
        lows, highs = rows.room(name, at)
        drawn = rows.cells[name].draw(np.maximum(lows, first / scale), np.minimum(highs, last / scale), rng)
        rows.numbers[name][at] = np.where(np.isnan(drawn), moved, drawn)

    def _alone(self, rows: DrawnRows, n: int, rng: np.random.Generator) -> Floats:
        """Return the steps of `n` rows without a distance: as in such rows, or uniform if there are none."""
        encoder, gaps = self.gap.encoder, rows.numbers[self.gap.name]
        known = gaps[np.isnan(self.gap.nearest(rows.numbers)) & (gaps > encoder.farthest)]
        if len(known):
            return np.rint(rng.choice(known, n) * encoder.grid.scale)
        return encoder.distances + rng.integers(encoder.of.grid.points, size=n).astype(np.float64)


def rules_with_gaps(
    repair: Repair, schema: Schema, gaps: Mapping[str, Gap], nullable: Mapping[str, bool]
) -> Repair:
    """Return the rules and computations in terms of the gaps.

    A rule about whether a column is missing becomes one about its gap. A constraint needs no rule if the gaps
    keep the order of all its columns.
    """
    if not gaps:
        return repair
    kept = {
        pair: strict
        for gap in gaps.values()
        for side in (gap.side, gap.limit)
        for other, strict in zip(side.columns, side.strict, strict=True)
        for pair in [(other, gap.column)[:: side.sign]]
    }
    complete = {name for name, may_be_missing in nullable.items() if not may_be_missing}
    rules: list[Rule] = []
    for constraint in schema.constraints:
        pairs = constraint.orders(complete)
        coded = bool(pairs) and all(kept.get((low, high), -1) >= strict for low, high, strict in pairs)
        rules += [] if coded else map(partial(_renamed, gaps), constraint.rules(schema.coded))
    rules += [rule for gap in gaps.values() for rule in _gap_rules(gaps, gap)]
    computing = {c.column: c for c in (*repair.computations, *gaps.values())}
    order = TopologicalSorter({name: set(c.by) for name, c in computing.items()}).static_order()
    columns = {gap.name: gap.pseudo_column(nullable=nullable[gap.column]) for gap in gaps.values()}
    computations = tuple(computing[name] for name in order if name in computing)
    return Repair({**repair.columns, **columns}, tuple(rules), computations)


def _gap_rules(gaps: Mapping[str, Gap], gap: Gap) -> list[GapRule]:
    """Return the rule of a gap without its limit, and that with it, each with all that its columns need."""
    free = replace(gap, limit=replace(gap.limit, columns=(), scales=(), strict=()))
    rules = []
    for each in (free, gap) if gap.limit.columns else (gap,):
        needed, new = {gap.column}, {*each.side.columns, *each.limit.columns}
        while new:
            needed |= new
            new = {of for name in new if name in gaps for of in gaps[name].side.columns} - needed
        chain = [other for name, other in gaps.items() if name in needed - {gap.column}]
        counted = sorted(needed - set(gaps), key=str)  # a chain is in the order of computation
        rules.append(GapRule(each, (*counted, *(of.name for of in chain), gap.name), (*chain, each)))
    return rules


def _renamed(gaps: Mapping[str, Gap], rule: Rule) -> Rule:
    """Return the rule about the gaps of columns of which it only says whether they are missing."""
    if not isinstance(rule, ForbiddenRule):
        return rule
    names = {n: gaps[n].name for n, span in rule.spans.items() if n in gaps and span.is_about_missing}
    spans = {names.get(name, name): span for name, span in rule.spans.items()}
    return replace(rule, spans=spans, lost=names.get(rule.lost or "", rule.lost))
