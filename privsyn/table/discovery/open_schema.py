"""OpenSchema: which values and bounds a schema leaves out, their private counts, and the completed schema."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import isnan
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from privsyn.errors import InputError, replace_errors
from privsyn.marginals.domain import Integers, Ints
from privsyn.table.codec.codec import Codec
from privsyn.table.codec.gaps import counted_by_default
from privsyn.table.discovery.beyond import Beyond, beyond_bounds
from privsyn.table.discovery.find_bounds import (
    BoundsQuestion,
    GridCells,
    RequiredBounds,
    cluster,
    crowd,
    divided_extent,
    extent,
    extent_of_dates,
    usual,
)
from privsyn.table.discovery.lattices import LatticeQuestion, Released
from privsyn.table.discovery.spreads import SpreadQuestion, quartile_cells
from privsyn.table.discovery.tally import by_type, distinct_cells
from privsyn.table.encoding.bounds_cells import SMALL, BoundsGrid
from privsyn.table.encoding.dtypes import OBJECT, TEXT, Dtype, family
from privsyn.table.encoding.parsing import number
from privsyn.table.encoding.steps import Crowd
from privsyn.table.enforcement.elapsed import Elapsed
from privsyn.table.enforcement.repair import check_constraints
from privsyn.table.enforcement.total import Total, solved_for_widest
from privsyn.table.kinds.ordinal import ordinal_of
from privsyn.table.schema.columns import Column, Datetime, Identifier, Numerical
from privsyn.table.schema.constraint import Constraint, add_declared, computed_by
from privsyn.table.schema.implied import declared_or_by_names, dtypes_by_name
from privsyn.table.schema.schema import Schema

CLOSE_CELLS = 3
"""Cells of the first grid. Numbers in at most this many cells are close together and far from zero (years,
degrees, codes), so a second grid narrows their bounds."""

FAR_RATIO, FEW_FAR_ROWS = 2.0**30, 0.1
"""Of bounds this many times as far apart as the ends of a crowd, the grid has some 1,000 points in the crowd.
If less than this share of the rows lie outside the crowd, the bounds are those of the crowd then."""


@dataclass(frozen=True)
class OpenSchema:
    """A schema that leaves out lists of values or bounds, for a table of given dtypes.

    It is made from public facts alone. Misfits are refused when it is made, before any budget is spent. Only
    `distinct_values` reads rows.

    Parameters
    ----------
    schema : Schema
    dtypes : mapping of each column of the table to its dtype
    required_bounds : mapping of a column to RequiredBounds
        Released: what bounds that are found must contain, because a rule compares the column with rows above.
    differences : mapping of a column to a collection of columns
        Sums without bounds that subtract a part: bounds are found for the sum as for its parts. If one of
        these columns spreads more than the sum, it is computed in place of the sum.
    compared : tuple of str
        The columns that rules across tables name.
    counted_directly : tuple of str
        The columns that are counted themselves, neither as a gap nor computed in place of a sum: the target,
        and the columns of important sets and of criteria.
    """

    schema: Schema
    dtypes: Mapping[str, Dtype]
    required_bounds: Mapping[str, RequiredBounds] = field(default_factory=dict)
    differences: Mapping[str, Collection[str]] = field(default_factory=dict)
    compared: tuple[str, ...] = ()
    counted_directly: tuple[str, ...] = ()

    @classmethod
    def of(cls, schema: Schema | None, table: pd.DataFrame) -> OpenSchema:
        """Return the open schema of a table. Without a schema, only names and dtypes are public.

        Examples
        --------
        >>> table = pd.DataFrame({"age": [17, 44], "sex": ["M", "F"], "adult": [False, True]})
        >>> open_schema = OpenSchema.of(None, table)
        >>> open_schema.values, open_schema.bounds, open_schema.schema.columns["adult"].values
        (('sex',), ('age',), (False, True))
        """
        dtypes = dtypes_by_name(table)
        schema = declared_or_by_names(schema, table)
        columns: dict[str, Column] = {}
        for name, column in schema.columns.items():
            dtype = dtypes.get(name, OBJECT)
            is_empty = family(dtype) == "nothing"  # all cells are missing, and no values are to be found
            columns[name] = Identifier() if is_empty else column.known_by_dtype(dtype)
        open_schema = cls(replace(schema, columns=columns), dtypes)
        filled = open_schema.fill({}, {})
        Codec.for_table(filled, table)  # raises if something does not fit
        open_schema._check_constraints(filled)
        return open_schema

    def _check_constraints(self, filled: Schema) -> None:
        """Refuse constraints that no row can keep, where the dtypes decide which cells may be missing."""
        columns = {
            name: replace(column, nullable=column.may_be_missing(self._dtype(name)))
            for name, column in filled.coded.items()
        }
        check_constraints(columns, filled.constraints)

    def with_widest_computed(self) -> OpenSchema:
        """Return the schema with each sum solved for its widest column, if no other rule names its columns.

        A sum without bounds is solved when they are found, if it subtracts a part from another.
        """
        number_of_rules = Counter(name for rule in self.schema.constraints for name in rule.columns)
        sums = [
            rule
            for rule in self.schema.constraints
            if isinstance(rule, Total) and all(number_of_rules[name] == 1 for name in rule.columns)
        ]
        candidates = {rule.column: rule.computable.difference(self.counted_directly) for rule in sums}
        differences = {
            rule.column: candidates[rule.column]
            for rule in sums
            if min(rule.factors.values()) < 0 and not self.schema.coded[rule.column].is_public
        }
        columns = {name: self.schema.ordinal(name) for rule in sums for name in rule.columns}
        widths = {name: c.bounds[1] - c.bounds[0] for name, c in columns.items() if c.is_public}
        schema = replace(self.schema, constraints=self._solved(candidates, widths))
        return replace(self, schema=schema, differences=differences)

    def _solved(
        self, candidates: Mapping[str, Collection[str]], widths: Mapping[str, float]
    ) -> list[Constraint]:
        """Return the constraints, each sum solved for its widest column; see `solved_for_widest`."""
        columns = self.schema.coded
        can_hold = {name: c.may_be_missing(self._dtype(name)) for name, c in columns.items()}
        return [
            solved_for_widest(rule, columns, can_hold, widths, candidates[rule.column])
            if isinstance(rule, Total) and rule.column in candidates and widths.keys() >= {*rule.columns}
            else rule
            for rule in self.schema.constraints
        ]

    def interquartile_ranges(self, cells: Released) -> dict[str, float]:
        """Return the distance between the quartiles of each column, from released counts of first grids."""
        distances, grids = {}, self._grids_of(cells)
        for name, (first, last) in self._extents(cells).items():
            quartiles = (first + cell for cell in quartile_cells(cells[name][0][first : last + 1]))
            low, high = (sum(grids[name].span(cell, cell)) / 2 for cell in quartiles)
            distances[name] = high - low
        return distances

    @property
    def values(self) -> tuple[str, ...]:
        """The columns whose values are not listed."""
        return tuple(name for name in self.open if name not in self.grids)

    @property
    def bounds(self) -> tuple[str, ...]:
        """The columns without bounds."""
        return tuple(self.grids)

    @property
    def objects(self) -> tuple[str, ...]:
        """The columns of `values` with dtype object; none if text has dtype object in this pandas."""
        return tuple(name for name in self.values if self.dtypes.get(name) == OBJECT != TEXT)

    @property
    def unordered(self) -> tuple[str, ...]:
        """The columns of `values` with ordered categories. Their order is not released.

        Categories and their order often come from the rows, as in `astype("category")` or in the order of
        frequencies, so one row could decide the order of others. And a value for all that are not found has
        no place in an order.
        """
        return tuple(name for name in self.values if getattr(self.dtypes.get(name), "ordered", None))

    @property
    def open(self) -> list[str]:
        """The columns whose values or bounds are to be found."""
        computed = {*self.schema.computed}.difference(self.differences)
        return [name for name, c in self.schema.coded.items() if not c.is_public and name not in computed]

    def distinct_values(self, table: pd.DataFrame) -> dict[tuple[str, str], tuple[Sequence[Any], Integers]]:
        """Return the distinct values, by column and type, and the place of each row's value. Private.

        The value of a row depends on its own cell alone. The place is -1 if a cell is missing, or is not a
        string, number or boolean.
        """
        with replace_errors("the values could not be counted: please report this, unless memory ran out"):
            return {
                (name, kind): column
                for name in self.values
                for kind, column in by_type(*distinct_cells(table[name], self.marks(name))).items()
            }

    def marks(self, name: str) -> set[str]:
        """Return the texts that are no value of a column; the empty text only if the schema says so."""
        return {*self.schema.missing, *self.schema.coded[name].missing}

    @cached_property
    def grids(self) -> dict[str, BoundsGrid]:
        """The first grid of each column of `bounds`."""
        columns = self.schema.coded
        grids = {name: columns[name].bounds_cells(self._dtype(name)) for name in self.open}
        return {name: grid for name, grid in grids.items() if grid is not None}

    def by_year(self, counts: Mapping[str, Ints]) -> dict[str, Ints]:
        """Return the counts of the first grids, of dates by year. Private: a row is still in one cell."""
        starts = {name: self.grids[name].coarser for name in counts}
        return {
            name: np.add.reduceat(cells, starts[name]) if starts[name].size else cells
            for name, cells in counts.items()
        }

    def _grids_of(self, cells: Released) -> dict[str, BoundsGrid]:
        """Return the first grids, those of dates by year if they were counted so."""
        grids = {name: self.grids[name] for name in cells}
        return {
            name: grid if len(grid.lows) == len(cells[name][0]) else grid.by_year()
            for name, grid in grids.items()
        }

    def closer(self, cells: Released) -> dict[str, BoundsGrid]:
        """Return the second grids, from the released counts of the first, for columns that need them."""
        closer, grids = {}, self._grids_of(cells)
        for name, (first, last) in self._extents(cells).items():
            grid, decimals = grids[name], self.schema.coded[name].exact_decimals(self._dtype(name))
            low, high = grid.span(first, last)
            farthest = first if -low > high else last
            if decimals == 0 and grid.around_zero and max(-low, high) < SMALL:
                continue  # nearly each number has its own cell, and a rare next one would be lost
            if grid.around_zero and grid.is_wide[farthest]:
                closer[name] = grid.divided(first, last)
            elif not grid.around_zero and grid.is_wide[[first, last]].any():
                closer[name] = grid.between(first, last, step=1.0)
            elif last - first < CLOSE_CELLS and low * high > 0 and low < high:  # one number: perhaps a flag
                step = None if decimals is None else 10.0**-decimals
                closer[name] = grid.between(first, last, step=step)
        return closer

    def bounds_of(
        self,
        cells: Released,
        closer: Mapping[str, BoundsGrid],
        seen: Released,
        integers: Collection[str] = (),
    ) -> dict[str, tuple[float, float]]:
        """Return bounds from the released counts of both grids, if any cell of the column is significant.

        Those of columns of `integers` numbers have a margin, where noise can hide numbers.
        """
        grids, bounds = self._grids_of(cells), {}
        for name, ends in self._extents(cells).items():
            grid = grids[name]
            margin = grid.widened(*ends, *cells[name]) if name in integers else ends
            is_whole = name in integers and not grid.has_points  # of reals
            bounds[name] = (grid.whole_bounds_of if is_whole else grid.bounds_of)(*margin)
        for name, (noisy, sigma) in seen.items():
            grid = closer[name]
            narrow = divided_extent(noisy, sigma, grid.zero) if grid.around_zero else cluster(noisy, sigma)
            if narrow:
                is_whole = name in integers and not grids[name].has_points
                bounds[name] = (grid.whole_bounds_of if is_whole else grid.span)(*narrow)
        return bounds

    def looks_whole(self, cells: Released) -> tuple[str, ...]:
        """Return the columns of reals whose released counts look like those of whole numbers."""
        grids = self._grids_of(cells)
        return tuple(
            name
            for name, counts in cells.items()
            if grids[name].around_zero and not grids[name].has_points and grids[name].looks_whole(*counts)
        )

    def beyond(
        self,
        cells: Released,
        closer: Mapping[str, BoundsGrid],
        seen: Released,
        integers: Collection[str] = (),
    ) -> dict[str, tuple[Beyond, Beyond]]:
        """Return what the released counts of both grids show beyond the bounds of `bounds_of`."""
        grids, outside = self._grids_of(cells), {}
        for name, bounds in self.bounds_of(cells, closer, seen, integers).items():
            counted = [(closer[name], *seen[name])] if name in seen else []
            counted.append((grids[name], *cells[name]))
            outside[name] = beyond_bounds(bounds, counted, is_whole=name in integers)
        return outside

    def crowds(self, cells: Released) -> dict[str, Crowd]:
        """Return the crowd of each column that has one, from released counts."""
        grids = self._grids_of(cells)
        return {name: Crowd(*grids[name].span(*ends)) for name, ends in self._crowds(cells).items()}

    def settled(self, cells: Released) -> Released:
        """Return released counts without noise in rare cells, and with few very far numbers in the crowd.

        No grid of doubles tells the numbers of the crowd apart if its bounds hold the far ones, too. These
        are clipped to the bounds of the crowd.
        """
        grids = self._grids_of(cells)
        cells = {
            name: (usual(noisy, sigma, grids[name].is_rare), sigma) for name, (noisy, sigma) in cells.items()
        }
        extents, moved = self._extents(cells), dict(cells)
        for name, (first, last) in self._crowds(cells).items():
            noisy, sigma = cells[name]
            (low, high), (lowest, highest) = grids[name].span(first, last), grids[name].span(*extents[name])
            inside = noisy[first : last + 1].copy()
            outside = float(noisy.sum() - inside.sum())
            if (highest - lowest) / FAR_RATIO > high - low and outside < FEW_FAR_ROWS * float(noisy.sum()):
                inside[0] += noisy[:first].sum()
                inside[-1] += noisy[last + 1 :].sum()
                moved[name] = np.pad(inside, (first, len(noisy) - last - 1)), sigma
        return moved

    def _crowds(self, cells: Released) -> dict[str, tuple[int, int]]:
        """Return the first and the last cell of the crowd of each column that has one."""
        grids, crowds = self._grids_of(cells), {}
        for name, (first, last) in self._extents(cells).items():
            noisy, sigma = cells[name]
            inside = slice(first, last + 1)
            ends = crowd(noisy[inside], sigma, grids[name].lows[inside], grids[name].highs[inside])
            if ends is not None:
                crowds[name] = ends[0] + first, ends[1] + first
        return crowds

    def not_found(self, values: Mapping[str, Sequence[Any]], cells: Released) -> tuple[str, ...]:
        """Return the open columns of which no value and no cell is above the noise, from released counts."""
        bounds = self._extents(cells)
        return tuple(
            name
            for name in self.open
            if name not in bounds and name not in self.differences and not values.get(name)
        )

    def integer_columns(self, filled: Schema) -> tuple[str, ...]:
        """Return the open columns of whole numbers, by the dtype or by a grid that was found."""
        coded = filled.coded
        numeric = [name for name in self.bounds if coded[name].has_numbers]
        return tuple(name for name in numeric if coded[name].exact_decimals(self._dtype(name)) == 0)

    def lattices(self, filled: Schema) -> LatticeQuestion:
        """Return the question on lattices about the completed schema, in which dates may have times."""
        columns, coded = self.schema.coded, filled.coded
        finest = {name: columns[name].finest(coded[name], self._dtype(name)) for name in self.bounds}
        return LatticeQuestion.of(filled, self.dtypes, finest)

    def spreads(self, filled: Schema) -> SpreadQuestion:
        """Return the question on columns of orders and their gaps about the completed schema."""
        return SpreadQuestion.of(filled, self.dtypes, self.compared, self.counted_directly)

    def without_gaps_by_default(self, filled: Schema) -> tuple[str, ...]:
        """Return the columns of orders that are counted without gaps where no released count decides."""
        return counted_by_default(filled, self.compared, self.counted_directly)

    def bounds_question(self, grids: Mapping[str, BoundsGrid]) -> BoundsQuestion:
        """Return the question on how many rows lie in each cell of each grid."""
        encoders = {}
        for name in grids:
            dtype = self._dtype(name)
            encoders[name] = self.schema.ordinal(name).widest(dtype).encoder(dtype)
        return BoundsQuestion({name: GridCells(name, encoders[name], grid) for name, grid in grids.items()})

    def fill(
        self,
        values: Mapping[str, tuple[Any, ...]],
        bounds: Mapping[str, tuple[float, float]],
        interquartile_ranges: Mapping[str, float] = MappingProxyType({}),
    ) -> Schema:
        """Return the schema with the values and bounds found; by default those that the dtype allows.

        Parameters
        ----------
        values : mapping of a column to its released values, the most frequent first
        bounds : mapping of a column to its released bounds, in numbers, days or seconds
        interquartile_ranges : mapping of a column to the distance between its quartiles
            Released. A sum of `differences` is solved for its widest column if all its columns have one.
        """
        columns = self._filled(values, bounds)
        with suppress(InputError):
            declared = self._declared(columns)
            solved = self._solved(self.differences, interquartile_ranges)
            filled = replace(self.schema, columns=self._without_sums(declared, solved), constraints=solved)
            filled = self._within_dtypes(filled)
            self._check_constraints(filled)
            return filled
        # No row within the found bounds keeps the constraints, which need not hold in the private table.
        # `of` has checked that the bounds of an empty table leave one.
        narrowest = self._filled({}, {})
        for name in self.bounds:
            column, inner = ordinal_of(columns[name]), ordinal_of(narrowest[name])
            columns[name] = replace(column, low=min(column.low, inner.low), high=max(column.high, inner.high))
        for filled_columns in (columns, narrowest):
            declared = self._without_sums(self._declared(filled_columns), self.schema.constraints)
            filled = replace(self.schema, columns=declared)
            with suppress(InputError):
                return self._within_dtypes(filled)
        return filled

    def _within_dtypes(self, filled: Schema) -> Schema:
        """Return the schema in which sums of columns with found bounds stay within their dtypes.

        Rows then keep a rule: bounds that are found end at round numbers, the sum of which may be too large.

        Raises
        ------
        InputError
            If what is computed from found bounds lies beyond the dtype.
        """
        for name, constraint in computed_by(filled.constraints).items():
            column, dtype = filled.coded[name], self._dtype(name)
            if not {*constraint.columns}.intersection(self.bounds) or not column.is_public:
                continue
            if isinstance(constraint, Total | Elapsed) and isinstance(column, Numerical):
                (low, high), (smallest, largest) = column.bounds, column.limits_of(dtype)
                if low < smallest or high > largest:
                    integers = column.exact_decimals(dtype) == 0
                    column = column.with_bounds((max(low, smallest), min(high, largest)), integers=integers)
                    filled = replace(filled, columns={**filled.columns, name: column})
            column.encoder(dtype)
        return filled

    def _without_sums(
        self, columns: Mapping[str, Column], constraints: Sequence[Constraint]
    ) -> dict[str, Column]:
        """Return the columns without found bounds of computed sums: theirs follow from the parts."""
        computed = computed_by(constraints).keys() & self.differences.keys()
        return {**columns, **{name: self.schema.columns[name] for name in computed}}

    def _declared(self, columns: dict[str, Column]) -> dict[str, Column]:
        """Return the columns with what constraints need of them, unless the dtype cannot hold it.

        Nothing may be raised that depends on what was found.
        """
        declared = add_declared(columns, self.open, self.schema.constraints)
        for name in self.bounds:
            if name in self.required_bounds:
                declared[name] = self.required_bounds[name].within(ordinal_of(declared[name]))
            try:
                ordinal_of(declared[name]).encoder(self._dtype(name))
            except InputError:
                declared[name] = columns[name]
        return declared

    def _filled(
        self, values: Mapping[str, tuple[Any, ...]], bounds: Mapping[str, tuple[float, float]]
    ) -> dict[str, Column]:
        answers: dict[str, Any] = {**values, **bounds}
        columns = dict(self.schema.columns)
        for name in self.open:
            marks = self.schema.markers(name)
            columns[name] = self.schema.coded[name].answered(answers.get(name), self._dtype(name), marks)
        return columns

    def _extents(self, cells: Released) -> dict[str, tuple[int, int]]:
        """Return the first and the last cell of each column with a significant cell."""
        extents = {}
        for name, grid in self._grids_of(cells).items():
            noisy, sigma = cells[name]
            ends = extent(noisy, sigma, zero=grid.zero if grid.around_zero else None)
            if ends is not None and not grid.around_zero:
                months = np.flatnonzero(~grid.is_rare)  # cells of equal width
                if ends[0] >= months[0] and ends[1] <= months[-1]:
                    within = extent_of_dates(noisy[months], sigma)
                    ends = ends if within is None else (int(months[within[0]]), int(months[within[1]]))
            if ends is not None:
                extents[name] = ends
        return extents

    def _dtype(self, name: str) -> Dtype:
        return self.dtypes.get(name, OBJECT)


def marks_of_numbers(schema: Schema, head: pd.DataFrame) -> list[str]:
    """Return the columns of numbers for which the schema has a text that is a number as mark.

    Dates that are written as digits are left out: their marks are read as dates.

    >>> from privsyn import Numerical
    >>> schema = Schema({"since": Numerical(1900, 2030, missing=["-9"]), "n": Numerical(0, 9)}, missing="?")
    >>> marks_of_numbers(schema, pd.DataFrame({"since": [-9, 2001], "n": 3}))
    ['since']
    """
    return [
        name
        for name in schema.coded
        if family(head[name].dtype) in ("integer", "real")
        and not isinstance(schema.coded[name], Datetime)
        and not all(map(isnan, map(number, schema.markers(name))))
    ]
