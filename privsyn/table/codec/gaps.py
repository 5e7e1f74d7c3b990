"""Gaps: columns that increase are encoded as their distance from the column before.

Of ``Increasing(["start", "end"])`` the release counts `start` and the gap `end - start`. `end` is computed
from the two, so every row keeps the constraint, and hardly any row is repaired.

Privacy: the code of a gap is a function of the cells of its own row and of public facts. A row that breaks
the constraint has a gap below 0, which becomes 0. So adding or removing a row adds or removes one code of
each attribute, as without gaps, and all sensitivities stay the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from typing import cast

import numpy as np

from privsyn.marginals.domain import Floats, Ints, Numbers
from privsyn.table.encoding.encoders import STRAY, Encoder, OrderedEncoder
from privsyn.table.encoding.grid import FINE, ROUNDING, Grid
from privsyn.table.enforcement.allowed import Allowed
from privsyn.table.enforcement.determined import Determined
from privsyn.table.enforcement.increasing import Increasing
from privsyn.table.enforcement.rules import Computation
from privsyn.table.schema.columns import Coded, Numerical, Ordinal
from privsyn.table.schema.constraint import computed_by
from privsyn.table.schema.schema import Schema

ALONE = 8
"""Bins of a column in rows where all columns before it are missing."""

REAL_ROUNDING = 0.01
"""As `ROUNDING`, for reals: their grid has up to 2^40 points, and doubles are exact to 2^-12 of a step."""


@dataclass(frozen=True, eq=False)
class GapEncoder(OrderedEncoder):
    """Encodes the distance of a column from the last column before it that is not missing.

    Distances are whole steps of the column's own grid, from the smallest value that keeps the constraint.
    Their bins are fine near 0. If all columns before are missing, there is no distance: codes after those of
    the distances, which have no order, then hold the column's own value.

    Parameters
    ----------
    grid : Grid
        The distances, and after them the values of the column if the columns before may be missing.
    dtype : as in the column
    of : OrderedEncoder
        Encodes the column itself.
    distances : int
        Number of points of the grid that are distances.
    before : tuple of str
        The columns before.
    """

    of: OrderedEncoder
    distances: int
    before: tuple[str, ...]

    @classmethod
    def between(
        cls, before: tuple[str, ...], of: OrderedEncoder, most: int, bins: int, *, alone: bool
    ) -> GapEncoder:
        """Return the encoder of distances up to `most` steps, in about `bins` bins."""
        own, points = of.grid, most + 1
        whole = points + alone * own.points
        distances = replace(own, low=0.0, high=most / own.scale, points=points, cuts=(), heaps=()).fine(bins)
        ends = [points + own.points * k // ALONE for k in range(1, ALONE + 1)] if alone else []
        cuts = tuple(dict.fromkeys([*distances.edges.tolist(), *ends]))
        high = (whole - 1) / own.scale
        return cls(
            replace(distances, high=high, points=whole, bins=len(cuts) - 1, cuts=cuts),
            of.dtype,
            of,
            points,
            before,
        )

    @property
    def ordered(self) -> int:
        """Number of bins of distances."""
        return int(np.searchsorted(self.grid.edges, self.distances))

    @property
    def farthest(self) -> float:
        """The largest distance; larger numbers are values of the column itself."""
        return (self.distances - 0.5) / self.grid.scale

    def read(self, cells: object) -> Floats:
        """Not used: a gap has no cells of its own."""
        raise NotImplementedError("a gap is computed from the cells of several columns")

    decode = read  # type: ignore[assignment]

    def range_words(self, low: float, high: float) -> str:
        """Return a range of distances or, where no column before is given, of the column itself, as text."""
        if low > self.farthest:
            start = self.of.grid.low - self.distances / self.grid.scale
            return f"no {self.before[-1]}: {self.of.range_words(start + low, start + high)}"
        return self.of.distance_words(low, high)


@dataclass(frozen=True, eq=False)
class Gap(Computation):
    """Computes a column from the columns before it and the gap to them.

    Parameters
    ----------
    column : str
    name : str
        The name of the gap among the attributes.
    before : tuple of str
        The columns before, in order.
    scales : tuple of float
        The number of units of `column` in one unit of each column before.
    strict : bool
    encoder : GapEncoder
    """

    column: str
    name: str
    before: tuple[str, ...]
    scales: tuple[float, ...]
    strict: bool
    encoder: GapEncoder = field(repr=False)

    @property
    def by(self) -> tuple[str, ...]:  # type: ignore[override]
        """The columns before, and the gap."""
        return (*self.before, self.name)

    @property
    def decimals(self) -> int | None:  # type: ignore[override]
        """Number of decimals; None for reals."""
        return self.encoder.of.grid.decimals

    def last(self, numbers: Numbers) -> Floats:
        """Return the number of the last column before that is not missing, in units of the column."""
        found = np.full(np.shape(numbers[self.before[0]]), np.nan)
        with np.errstate(over="ignore"):  # a warning would reveal a cell
            for name, scale in zip(self.before, self.scales, strict=True):
                found = np.where(np.isnan(numbers[name]), found, numbers[name] * scale)
        return found

    def least(self, last: Floats) -> Floats:
        """Return the first point of the column's grid that keeps the constraint; NaN where `last` is NaN."""
        grid = self.encoder.of.grid
        slack = ROUNDING if grid.decimals is not None else REAL_ROUNDING
        with np.errstate(over="ignore"):  # a warning would reveal a cell
            place = (last - grid.low) * grid.scale
        return np.floor(place + slack) + 1 if self.strict else np.ceil(place - slack)

    def distance(self, numbers: Numbers) -> Floats:
        """Return the steps from the least number that keeps the constraint; below 0 if a row breaks it."""
        with np.errstate(invalid="ignore"):  # of two infinite numbers, which have no distance
            return point_of(self.encoder.of.grid, numbers[self.column]) - self.least(self.last(numbers))

    def gap_of(self, numbers: Numbers) -> Floats:
        """Return the number of the gap of each row, NaN where the column is missing. Private: row by row."""
        encoder, own = self.encoder, point_of(self.encoder.of.grid, numbers[self.column])
        distance = np.clip(self.distance(numbers), 0, encoder.distances - 1)
        alone = np.clip(encoder.distances + own, 0, encoder.grid.points - 1)
        return np.where(np.isnan(distance), alone, distance) / encoder.grid.scale

    def codes(self, numbers: Numbers) -> Ints:
        """Return the code of each row, `STRAY` where the column is missing. Private: row by row."""
        gap = self.gap_of(numbers)
        return np.where(np.isnan(gap), STRAY, self.encoder.grid.encode(gap))

    def make(self, numbers: Numbers) -> Floats:
        """Return the column, clipped to its bounds; NaN where the gap is missing."""
        encoder, grid = self.encoder, self.encoder.of.grid
        gap, last = numbers[self.name], self.last(numbers)
        steps = np.rint(gap * grid.scale)
        alone = np.isnan(last) | (gap > encoder.farthest)
        point = np.where(alone, np.maximum(steps - encoder.distances, 0), self.least(last) + steps)
        point = np.clip(point, 0, grid.points - 1)
        made = np.where(np.isnan(point), np.nan, number_of(grid, point))
        if (
            grid.decimals is None and not self.strict
        ):  # doubles round: a value may lie just below the one before
            made = np.where(alone, made, np.minimum(np.maximum(made, last), grid.high))
        return made

    def pseudo_column(self, *, nullable: bool) -> Coded:
        """Return a column of numbers with the bounds of the gap."""
        grid = self.encoder.grid
        if grid.decimals == 0:
            return Numerical(0, round(grid.high), integer=True, nullable=nullable)
        return Numerical(0.0, grid.high, decimals=grid.decimals, nullable=nullable)


def point_of(grid: Grid, numbers: Floats) -> Floats:
    """Return the place of each number, clipped to the bounds, among the points of its grid."""
    return np.rint((np.clip(numbers, grid.low, grid.high) - grid.low) * grid.scale)


def number_of(grid: Grid, points: Floats) -> Floats:
    """Return the number of each point."""
    return (
        grid.low + points / grid.scale
        if grid.decimals is None
        else np.round(grid.low + points / grid.scale, grid.decimals)
    )


def choose_gaps(
    schema: Schema, encoders: Mapping[str, Encoder], nullable: Mapping[str, bool], *, fine: bool
) -> dict[str, Gap]:
    """Return the columns that are encoded as gaps, in the order in which they are computed.

    A column stays as it is if another constraint lists its values or computes it, if it already has a gap by
    another constraint, or if columns would be computed from each other in a circle.
    """
    gaps: dict[str, Gap] = {}
    computing = computed_by(schema.constraints)
    needs = {name: set(c.columns) - {name} for name, c in computing.items()}
    listed = {n for c in schema.constraints if isinstance(c, Allowed | Determined) for n in c.columns}
    for constraint in schema.constraints:
        if not isinstance(constraint, Increasing):
            continue
        for place, name in enumerate(constraint.columns[1:], 1):
            before = tuple(constraint.columns[:place])
            ordered = all(encoders[of].ordered for of in (*before, name))
            wanted = {**needs, name: set(before)}
            if name in needs or name in listed or not ordered or not _is_possible(wanted):
                continue
            needs = wanted
            gaps[name] = _gap(schema, encoders, nullable, constraint, place, fine=fine)
    return {name: gaps[name] for name in TopologicalSorter(needs).static_order() if name in gaps}


def _is_possible(needs: Mapping[str, set[str]]) -> bool:
    try:
        TopologicalSorter(needs).prepare()
    except CycleError:
        return False
    return True


def _gap(
    schema: Schema,
    encoders: Mapping[str, Encoder],
    nullable: Mapping[str, bool],
    constraint: Increasing,
    place: int,
    *,
    fine: bool,
) -> Gap:
    """Return the gap of one column of a constraint; its columns are all encoded on grids."""
    before, name = tuple(constraint.columns[:place]), constraint.columns[place]
    columns, ordered = (
        cast(Mapping[str, Ordinal], schema.columns),
        cast(Mapping[str, OrderedEncoder], encoders),
    )
    column, of = columns[name], ordered[name]
    scales = tuple(columns[other].scale / column.scale for other in before)
    free = f"{name} - {before[-1]}"
    while free in schema.columns:
        free += "'"
    bins = max(FINE, column.bins) if fine else column.bins
    alone = all(nullable[other] for other in before)
    most = of.grid.points - 1
    widest = GapEncoder.between(before, of, most, bins, alone=alone)
    whole = Gap(name, free, before, scales, constraint.strict, widest)
    first = min(ordered[other].grid.low * scale for other, scale in zip(before, scales, strict=True))
    most = max(0, most - int(np.clip(whole.least(np.array(first)), 0, most)))
    return replace(whole, encoder=GapEncoder.between(before, of, most, bins, alone=alone))
