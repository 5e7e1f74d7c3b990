"""Rules about gaps, and all other rules in terms of gaps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING

import numpy as np

from privsyn.marginals.types import Floats, Integers, Mask
from privsyn.table.enforcement.draws import Cells, DrawnRows
from privsyn.table.enforcement.forbidden import ForbiddenRule
from privsyn.table.enforcement.increasing import Increasing
from privsyn.table.enforcement.repair import Repair
from privsyn.table.enforcement.rules import Numbers, Rule
from privsyn.table.schema.schema import Schema

if TYPE_CHECKING:
    from privsyn.table.codec.gaps import Gap


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
