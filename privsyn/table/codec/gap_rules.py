"""Rules in terms of gaps: what a gap must be for its column to fit the others, and the rules of a schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from graphlib import TopologicalSorter

import numpy as np

from privsyn.marginals.domain import Floats, Integers, Mask, Numbers
from privsyn.table.codec.gaps import Gap, Side
from privsyn.table.enforcement.forbidden import ForbiddenRule
from privsyn.table.enforcement.repair import Repair
from privsyn.table.schema.draws import Cells, DrawnRows
from privsyn.table.schema.rules import Rule
from privsyn.table.schema.schema import Schema


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
        numbers_made = dict(numbers)
        for gap in self.chain[:-1]:
            numbers_made[gap.column] = gap.make(numbers_made)
        gaps, (first, last) = numbers[self.gap.name], self._ends(numbers_made)
        steps = np.rint(gaps * self.gap.encoder.grid.scale)
        return np.isnan(gaps) | ((first <= steps) & (steps <= last))

    def _ends(self, numbers: Numbers) -> tuple[Floats, Floats]:
        """Return the least and the largest gap of each row in steps; the first is larger if none fits."""
        encoder, sign = self.gap.encoder, self.gap.side.sign
        points, near = encoder.column_encoder.grid.points, self.gap.nearest(numbers)
        far = np.nan_to_num(self.gap.limit.nearest(encoder.column_encoder.grid, numbers), nan=sign * np.inf)
        low, high = (0.0, np.minimum(far, points - 1)) if sign > 0 else (np.maximum(far, 0), points - 1.0)
        first = np.maximum(low - near if sign > 0 else near - high, 0)
        last = np.minimum(high - near if sign > 0 else near - low, encoder.distances - 1)
        alone, distances = np.isnan(near), encoder.distances
        return np.where(alone, distances + low, first), np.where(alone, distances + high, last)

    def possible(self, cells: list[Cells]) -> Mask:
        """Return the cells in which some numbers fit, for a rule without a limit.

        A limit gives no zeros: through the wide cells of a third column they would be loose and in tables of
        three attributes, and fitting these moves the counts of all.
        """
        if self.gap.limit.columns:
            return np.ones([c.merged for c in cells], np.bool_)
        chain, shape_of_cells = {gap.name: gap for gap in self.chain}, tuple(c.merged for c in cells)
        ends: dict[str, tuple[Floats, Floats]] = {}  # of each column, NaN where it is missing
        fitting = np.array(True)
        for axis, (name, c) in enumerate(zip(self.columns, cells, strict=True)):
            shape = [1] * axis + [-1] + [1] * (len(cells) - 1 - axis)
            low, high = (np.broadcast_to(end.reshape(shape), shape_of_cells) for end in c.reach)
            gap = chain.get(name)
            if gap is None:
                ends[name] = low, high
                continue
            encoder, grid, sign = gap.encoder, gap.encoder.column_encoder.grid, gap.side.sign
            lows, highs = ({column: end[k] for column, end in ends.items()} for k in (0, 1))
            near, far = (lows, highs) if sign > 0 else (highs, lows)
            start = gap.nearest(near)
            point = start + sign * np.rint(low * encoder.grid.scale)
            inside = point < grid.points if sign > 0 else point >= 0
            fits = np.where(np.isnan(start), high > encoder.farthest, (low < encoder.farthest) & inside)
            fitting = fitting & (fits | (np.arange(c.merged).reshape(shape) == c.missing))
            made = gap.make({**near, gap.name: low})
            farthest = gap.make({**far, gap.name: np.minimum(high, encoder.farthest)})
            free = np.isnan(start) & ~np.isnan(low)  # the column's own value: any
            low_end, high_end = (made, farthest)[::sign]
            ends[gap.column] = np.where(free, grid.low, low_end), np.where(free, grid.high, high_end)
        return np.asarray(fitting)

    def repair(self, rows: DrawnRows, at: Integers, rng: np.random.Generator) -> None:
        """Draw a gap again within its group, or move it as little as possible; it never becomes missing."""
        gap, name = self.gap, self.gap.name
        if not rows.is_free(name):
            return
        encoder, numbers = gap.encoder, {column: number[at] for column, number in rows.numbers.items()}
        near, (first, last) = gap.nearest(numbers), self._ends(numbers)
        scale, distances = encoder.grid.scale, encoder.distances
        steps, alone = np.rint(numbers[name] * scale), np.isnan(near)
        wanted = np.where(~alone & (steps >= distances), gap.side.sign * (steps - distances - near), steps)
        wanted = np.where(alone & (steps < distances), self._alone(rows, len(at), rng), wanted)
        moved = np.where(first <= last, np.clip(wanted, first, last), steps) / scale
        lows, highs = rows.room(name, at)
        drawn = rows.cells[name].draw(np.maximum(lows, first / scale), np.minimum(highs, last / scale), rng)
        rows.numbers[name][at] = np.where(np.isnan(drawn), moved, drawn)

    def _alone(self, rows: DrawnRows, n: int, rng: np.random.Generator) -> Floats:
        """Return the steps of `n` rows without a distance: as in such rows, or uniform if there are none."""
        encoder, gaps = self.gap.encoder, rows.numbers[self.gap.name]
        gaps_alone = gaps[np.isnan(self.gap.nearest(rows.numbers)) & (gaps > encoder.farthest)]
        if len(gaps_alone):
            return np.rint(rng.choice(gaps_alone, n) * encoder.grid.scale)
        return encoder.distances + rng.integers(encoder.column_encoder.grid.points, size=n).astype(np.float64)


def rules_with_gaps(
    repair: Repair, schema: Schema, gaps: Mapping[str, Gap], nullable: Mapping[str, bool]
) -> Repair:
    """Return the rules and computations in terms of the gaps.

    A rule about whether a column is missing becomes one about its gap. A constraint needs no rule if the gaps
    keep the order of all its columns.
    """
    if not gaps:
        return repair
    order_kept = {
        pair: strict
        for gap in gaps.values()
        for side in (gap.side, gap.limit)
        for column, (_, strict) in side.neighbours.items()
        for pair in [(column, gap.column)[:: side.sign]]
    }
    complete = {name for name, may_be_missing in nullable.items() if not may_be_missing}
    rules: list[Rule] = []
    for constraint in schema.constraints:
        pairs = constraint.orders(complete)
        coded = bool(pairs) and all(order_kept.get((low, high), -1) >= strict for low, high, strict in pairs)
        for rule in () if coded else constraint.rules(schema.coded):
            if isinstance(rule, ForbiddenRule):  # it may say of columns only whether they are missing
                names = {
                    n: gaps[n].name for n, span in rule.spans.items() if n in gaps and span.is_about_missing
                }
                spans = {names.get(name, name): span for name, span in rule.spans.items()}
                rule = replace(rule, spans=spans, lost=names.get(rule.lost or "", rule.lost))
            rules.append(rule)
    rules += [rule for gap in gaps.values() for rule in _gap_rules(gaps, gap)]
    computing = {c.column: c for c in (*repair.computations, *gaps.values())}
    order = TopologicalSorter({name: set(c.by) for name, c in computing.items()}).static_order()
    columns = {gap.name: gap.pseudo_column(nullable=nullable[gap.column]) for gap in gaps.values()}
    computations = tuple(computing[name] for name in order if name in computing)
    return Repair({**repair.columns, **columns}, tuple(rules), computations)


def _gap_rules(gaps: Mapping[str, Gap], gap: Gap) -> list[GapRule]:
    """Return the rule of a gap without its limit, and that with it, each with all that its columns need."""
    free = replace(gap, limit=Side({}, gap.limit.sign))
    rules = []
    for gap_with_limit in (free, gap) if gap.limit.columns else (gap,):
        needed, new = {gap.column}, {*gap_with_limit.side.columns, *gap_with_limit.limit.columns}
        while new:
            needed |= new
            new = {column for name in new if name in gaps for column in gaps[name].side.columns} - needed
        chain = [gap_before for name, gap_before in gaps.items() if name in needed - {gap.column}]
        counted = sorted(needed - set(gaps), key=str)  # a chain is in the order of computation
        columns = (*counted, *(gap_before.name for gap_before in chain), gap.name)
        rules.append(GapRule(gap_with_limit, columns, (*chain, gap_with_limit)))
    return rules
