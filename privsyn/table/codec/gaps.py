"""Gaps: a column of an order is encoded as its distance from the other columns of the order.

Of ``Increasing(["start", "end"])`` the release counts `start` and the gap `end - start`. `end` is computed
from the two, so every row keeps the constraint, and hardly any row is repaired.

Columns without missing cells come first: a column that may be missing is measured from them, forward or
backward, and never the reverse. So a constraint leaves the counts of a complete column alone.

A column that spreads less than its gap is counted without a gap: the bins of a wide gap are wide, so the
difference of two amounts would have no shape of its own. Its order is then kept by structural zeros, and by
the numbers that are drawn within one cell. It has a gap nevertheless if it equals the other one in many rows.
Released counts decide which; see `privsyn.table.discovery.spreads`.

Privacy: the code of a gap is a function of the cells of its own row and of public facts. A column of the
order that is computed is computed here too: no cell of it is read. A row that breaks the constraint has a
gap below 0, which becomes 0. So adding or removing a row adds or removes one code of each attribute, as
without gaps, and all sensitivities stay the same. Which columns come first follows from the schema and the
dtypes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from graphlib import TopologicalSorter

import numpy as np

from privsyn.marginals.domain import Floats, Ints, Numbers
from privsyn.table.codec.orders import Sides, complete_first, is_possible, orders_of, rank
from privsyn.table.encoding.encoders import STRAY, Encoder, OrderedEncoder, has_grid
from privsyn.table.encoding.grid import FINE, ROUNDING, Grid
from privsyn.table.schema.columns import Coded, Datetime, Numerical
from privsyn.table.schema.constraint import computed_by
from privsyn.table.schema.rules import Computation
from privsyn.table.schema.schema import Schema

REAL_ROUNDING = 0.01
"""As `ROUNDING`, for reals: their grid has up to 2^40 points, and doubles are exact to 2^-12 of a step."""


@dataclass(frozen=True, eq=False)
class GapEncoder(OrderedEncoder):
    """Encodes the distance of a column from the last column before it that is not missing.

    Distances are whole steps of the column's own grid, from the smallest value that keeps the constraint.
    Their bins are fine near 0. If all columns before are missing, there is no distance: codes after those of
    the distances, the bins of the column itself, then hold its own value.

    Parameters
    ----------
    grid : Grid
        The distances, and after them the values of the column if the columns before may be missing.
    dtype : as in the column
    column_encoder : OrderedEncoder
        Encodes the column itself.
    distances : int
        Number of points of the grid that are distances.
    before : tuple of str
        The columns before.
    """

    column_encoder: OrderedEncoder
    distances: int
    before: tuple[str, ...]

    @classmethod
    def between(
        cls, before: tuple[str, ...], encoder: OrderedEncoder, longest: int, bins: int, *, alone: bool
    ) -> GapEncoder:
        """Return the encoder of distances up to `longest` steps, in about `bins` bins."""
        grid, points = encoder.grid, longest + 1
        size = points + alone * grid.points
        distances = replace(grid, low=0.0, high=longest / grid.scale, points=points, cuts=(), heaps=()).fine(
            bins
        )
        ends = (points + grid.edges[1:]).tolist() if alone else []
        cuts = tuple(dict.fromkeys([*distances.edges.tolist(), *ends]))
        high = (size - 1) / grid.scale
        return cls(
            replace(distances, high=high, points=size, bins=len(cuts) - 1, cuts=cuts),
            encoder.dtype,
            encoder,
            points,
            before,
        )

    @property
    def second(self) -> int:
        """The first code of a value of the column itself; 0 if there are none."""
        return int(np.searchsorted(self.grid.edges, self.distances)) % self.size

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
            start = self.column_encoder.grid.low - self.distances / self.grid.scale
            return f"no {self.before[-1]}: {self.column_encoder.range_words(start + low, start + high)}"
        if high > self.farthest:
            ends = (self.distances - 1) / self.grid.scale, self.distances / self.grid.scale
            return f"{self.range_words(low, ends[0])}, or {self.range_words(ends[1], high)}"
        return self.column_encoder.distance_words(low, high)


@dataclass(frozen=True)
class Side:
    """The columns on one side of a column, and how near it may come to them.

    Parameters
    ----------
    neighbours : mapping of each column on the side to (scale, strict)
        The number of units of the column in one unit of the neighbour, and whether the two may not be equal.
    sign : int
        1 if the column lies above them, -1 if below.
    """

    neighbours: Mapping[str, tuple[float, bool]]
    sign: int

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns on the side."""
        return tuple(self.neighbours)

    def nearest(self, grid: Grid, numbers: Numbers) -> Floats:
        """Return the nearest point of a grid that keeps the order; NaN where all columns are missing."""
        slack = ROUNDING if grid.decimals is not None else REAL_ROUNDING
        points = np.array(np.nan)
        for name, (scale, strict) in self.neighbours.items():
            with np.errstate(over="ignore"):  # a warning would reveal a cell
                position = self.sign * (numbers[name] * scale - grid.low) * grid.scale
            points = np.fmax(points, np.floor(position + slack) + 1 if strict else np.ceil(position - slack))
        return self.sign * points

    def end(self, numbers: Numbers) -> Floats:
        """Return the nearest number of the columns themselves; NaN where all are missing."""
        ends = np.array(np.nan)
        for name, (scale, _) in self.neighbours.items():
            ends = np.fmax(ends, self.sign * numbers[name] * scale)
        return self.sign * ends


@dataclass(frozen=True, eq=False)
class Gap(Computation):
    """Computes a column from the columns on one side of it and the gap to the nearest of them.

    Parameters
    ----------
    column : str
    name : str
        The name of the gap among the attributes.
    side : Side
        The columns from which the gap is measured.
    limit : Side
        The columns on the other side, which the column may not pass.
    encoder : GapEncoder
    """

    column: str
    name: str
    side: Side
    limit: Side
    encoder: GapEncoder = field(repr=False)

    @property
    def by(self) -> tuple[str, ...]:
        """The columns from which the gap is measured, and the gap."""
        return (*self.side.columns, self.name)

    @property
    def decimals(self) -> int | None:  # type: ignore[override]
        """Number of decimals; None for reals."""
        return self.encoder.column_encoder.grid.decimals

    @property
    def is_strict(self) -> bool:
        """Whether the column may not equal one from which the gap is measured."""
        return any(strict for _, strict in self.side.neighbours.values())

    def nearest(self, numbers: Numbers) -> Floats:
        """Return the point of the column's grid at gap 0; NaN where no column gives one.

        It is at least the first point if the column lies above the others, and at most the last if below: a
        birth long before the first visit that there may be does not lengthen the gap.
        """
        grid, sign = self.encoder.column_encoder.grid, self.side.sign
        points = self.side.nearest(grid, numbers)
        return np.maximum(points, 0.0) if sign > 0 else np.minimum(points, grid.points - 1.0)

    def distance(self, numbers: Numbers) -> Floats:
        """Return the steps from the nearest number that keeps the order; below 0 if a row breaks it."""
        with np.errstate(invalid="ignore"):  # of two infinite numbers, which have no distance
            steps = point_of(self.encoder.column_encoder.grid, numbers[self.column]) - self.nearest(numbers)
        return self.side.sign * steps

    def gap_of(self, numbers: Numbers) -> Floats:
        """Return the number of the gap of each row, NaN where the column is missing. Private: row by row."""
        encoder, points = self.encoder, point_of(self.encoder.column_encoder.grid, numbers[self.column])
        distance = np.clip(self.distance(numbers), 0, encoder.distances - 1)
        alone = np.clip(encoder.distances + points, 0, encoder.grid.points - 1)
        return np.where(np.isnan(distance), alone, distance) / encoder.grid.scale

    def codes(self, numbers: Numbers) -> Ints:
        """Return the code of each row, `STRAY` where the column is missing. Private: row by row."""
        gap = self.gap_of(numbers)
        return np.where(np.isnan(gap), STRAY, self.encoder.grid.encode(gap))

    def make(self, numbers: Numbers) -> Floats:
        """Return the column, clipped to its bounds; NaN where the gap is missing."""
        encoder, grid = self.encoder, self.encoder.column_encoder.grid
        gap, near = numbers[self.name], self.nearest(numbers)
        steps = np.rint(gap * grid.scale)
        alone = np.isnan(near) | (gap > encoder.farthest)
        point = np.where(alone, np.maximum(steps - encoder.distances, 0), near + self.side.sign * steps)
        point = np.clip(point, 0, grid.points - 1)
        made = np.where(np.isnan(point), np.nan, number_of(grid, point))
        if grid.decimals is None:  # doubles round: a value may lie just beyond the number it is measured from
            sign = self.side.sign
            end = self.side.end(numbers)
            bounded = lower(made, end, -sign)
            if not self.is_strict:  # what is equal stays equal to the last bit
                bounded = np.where(steps == 0, end, bounded)
            made = np.where(alone, made, np.clip(bounded, grid.low, grid.high))
        return made

    def pseudo_column(self, *, nullable: bool) -> Coded:
        """Return a column of numbers with the bounds of the gap."""
        grid = self.encoder.grid
        if grid.decimals == 0:
            return Numerical(0, round(grid.high), integer=True, nullable=nullable)
        return Numerical(0.0, grid.high, decimals=grid.decimals, nullable=nullable)


def lower(numbers: Floats, limits: Floats, sign: int) -> Floats:
    """Return the lower one of each pair of numbers; the higher one if `sign` is -1."""
    return sign * np.minimum(sign * numbers, sign * limits)


def point_of(grid: Grid, numbers: Floats) -> Floats:
    """Return the place of each number, clipped to the bounds, among the points of its grid."""
    return np.rint((np.clip(numbers, grid.low, grid.high) - grid.low) * grid.scale)


def number_of(grid: Grid, points: Floats) -> Floats:
    """Return the number of each point."""
    numbers = grid.low + points / grid.scale
    return numbers if grid.decimals is None else np.round(numbers, grid.decimals)


def choose_gaps(
    schema: Schema,
    encoders: Mapping[str, Encoder],
    nullable: Mapping[str, bool],
    compared: Collection[str] = (),
    without_gaps: Collection[str] = (),
    *,
    fine: bool,
) -> dict[str, Gap]:
    """Return the columns that are encoded as gaps, in the order in which they are computed.

    No column of `without_gaps` is among them, and a column that rules across tables name as `compared` only
    if it must be. A column has no gap if another constraint lists its values or computes it, or if columns
    would be computed from each other in a circle.
    """
    needs = {name: set(c.columns) - {name} for name, c in computed_by(schema.constraints).items()}
    listed = {n for c in schema.constraints if c.lists_values for n in c.columns}
    orders = orders_of(schema, encoders, nullable)
    ordered = {name: encoder for name in orders if has_grid(encoder := encoders[name])}
    builder = _Gaps(schema, ordered, nullable, orders, fine=fine)
    settled = {name for name in orders if name in needs or name in listed or name in without_gaps}
    gaps: dict[str, Gap] = {}
    ranks = {name: rank(schema.ordinal(name), compared=name in compared) for name in orders}
    for name in complete_first(orders, nullable, ranks, compared):
        if name in settled:
            continue
        usable = {neighbour for neighbour in settled if nullable[name] or not nullable[neighbour]}
        below, above = (
            {neighbour: strict for neighbour, strict in side.items() if neighbour in usable}
            for side in orders[name]
        )
        settled.add(name)
        if (needing := {*below, *above}) and is_possible({**needs, name: needing}):
            needs[name] = needing
            gaps[name] = builder.gap(name, (below, above))
    return {name: gaps[name] for name in TopologicalSorter(needs).static_order() if name in gaps}


def counted_by_default(
    schema: Schema, compared: Collection[str] = (), counted_directly: Collection[str] = ()
) -> tuple[str, ...]:
    """Return the columns of orders that are counted without gaps where no released count decides.

    These are the amounts: a difference of two amounts spreads as widely as they do. Dates have gaps: the time
    between two dates is mostly short beside the years over which they spread. A date of `counted_directly`,
    such as the target, has none. If rules across tables name a column of an order as `compared`, all have
    gaps.
    """
    ordered = {name for constraint in schema.constraints for pair in constraint.orders() for name in pair[:2]}
    if ordered.intersection(compared):
        return ()
    return tuple(
        name
        for name, column in schema.coded.items()
        if name in ordered and (name in counted_directly or not isinstance(column, Datetime))
    )


@dataclass(frozen=True)
class _Gaps:
    """Makes the gaps of the columns of all orders.

    Parameters
    ----------
    schema : Schema
    encoders : mapping of each column of an order to its encoder
    nullable : mapping of each column to whether it may be missing
    orders : mapping of each column of an order to the columns on both of its sides
    fine : bool
        Whether the cells of the columns are fine.
    """

    schema: Schema
    encoders: Mapping[str, OrderedEncoder]
    nullable: Mapping[str, bool]
    orders: Mapping[str, Sides]
    fine: bool

    def gap(self, name: str, sides: Sides) -> Gap:
        """Return the gap of a column from one side: from that of a complete column, or else from below."""
        complete = [any(not self.nullable[neighbour] for neighbour in side) for side in sides]
        upward = complete[0] or bool(sides[0] and not complete[1])
        below = self._side(name, sides[0], 1)
        above = self._side(name, dict(reversed(sides[1].items())), -1)
        side, limit = (below, above) if upward else (above, below)
        bins = self.schema.ordinal(name).bins
        nearest = side.columns[-1]
        if {*side.columns} - {nearest, *self.orders[nearest][0 if side.sign > 0 else 1]}:  # of no one order
            nearest = f"{'max' if side.sign > 0 else 'min'}({', '.join(side.columns)})"
        free_name = " - ".join((name, nearest)[:: side.sign])
        while free_name in self.schema.columns:
            free_name += "'"
        encoder = GapEncoder.between(
            side.columns,
            self.encoders[name],
            self._most(name, side),
            max(FINE, bins) if self.fine else bins,
            alone=all(self.nullable[neighbour] for neighbour in side.columns),
        )
        return Gap(name, free_name, side, limit, encoder)

    def _side(self, name: str, strict: Mapping[str, bool], sign: int) -> Side:
        scale = {column: self.schema.ordinal(column).scale for column in (name, *strict)}
        return Side({column: (scale[column] / scale[name], strict[column]) for column in strict}, sign)

    def _most(self, name: str, side: Side) -> int:
        """Return the most steps between a column and the farthest bound of the columns on a side."""
        grid, starts = self.encoders[name].grid, []
        for column, neighbour in side.neighbours.items():
            ends = self.encoders[column].grid.low, self.encoders[column].grid.high
            bound = {column: np.array(ends[0 if side.sign > 0 else 1])}
            starts.append(side.sign * Side({column: neighbour}, side.sign).nearest(grid, bound))
        first = np.clip(side.sign * min(starts), 0, grid.points - 1)
        return int(grid.points - 1 - first if side.sign > 0 else first)
