"""The table of counts that a criterion is about: its cells, and which of them meet the conditions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce
from math import prod
from typing import NamedTuple

import numpy as np

from privsyn.errors import InputError, about, spelled
from privsyn.inference.fitted import Fitted
from privsyn.marginals.domain import Codes, Domain, Floats, Integers, Ints, Mask, Numbers
from privsyn.marginals.marginal import Grouping, groups_at
from privsyn.marginals.recoding import Merging
from privsyn.private.noise_laws import Law
from privsyn.release.acceptance.criteria import Criteria, Criterion, Margin, Mean, spans
from privsyn.table.codec.codec import Codec
from privsyn.table.encoding.encoders import has_grid
from privsyn.table.schema.box import Span
from privsyn.table.schema.draws import Cells

MOST_CELLS = 2**22
"""Largest table that is compared."""

MOST_CONDITIONS = 20
"""Largest number of conditions of a criterion."""

LEAST_COST = 1e-14  # of a test, in rho for one row: with less, its noise exceeds `LARGEST_SIGMA` units

OUTSIDE, CUT, SURE = range(3)


def _bins(codec: Codec, name: str) -> int:
    """Return the number of bins of a column of numbers or times; 0 for listed values, compared one by one."""
    encoder = codec.encoder_of[name]
    return encoder.ordered if has_grid(encoder) else 0


def problem(codec: Codec, criterion: Criterion) -> str:
    """Return why a criterion cannot be tested on tables of this codec; empty if it can."""
    if not set(criterion.columns) <= set(codec.domain):
        return "a column is counted in parts, or computed from others"
    if isinstance(criterion, Margin):
        axes = codec.domain.axes(criterion.columns)
        ordered = [_bins(codec, name) for name in criterion.columns]
        missing = [codec.domain.sizes[axis] - many for axis, many in zip(axes, ordered, strict=True)]
        cells = [few + min(many, criterion.groups) for few, many in zip(missing, ordered, strict=True)]
        return "its table has too many cells" if prod(cells) > MOST_CELLS else ""
    cells_of_columns, where = codec.cells(), spans(criterion.conditions, codec.schema)
    summed = Summed.of(criterion, codec)
    states = [len(np.unique(_states(span, cells_of_columns[name]))) for name, span in where.items()]
    if len(states) > MOST_CONDITIONS:
        return "it has too many conditions"
    if prod(states) * prod(len(variable.lows) for variable in summed) > MOST_CELLS:
        return "its table has too many cells: narrow the bounds, give a step or leave out a condition"
    if isinstance(criterion, Mean):
        (variable,) = summed
        widest = float(np.nanmax(variable.highs - variable.lows)) if (~np.isnan(variable.lows)).any() else 0.0
        if widest >= criterion.within:
            return (
                f"{criterion.mean!r} is counted in cells of up to {widest:g}, and within is"
                f" {criterion.within:g}: narrow the bounds, give a step or raise within"
            )
    return ""


def check_testable(codec: Codec, criteria: Criteria) -> None:
    """Refuse criteria that cannot be tested, before any question is asked."""
    for number, criterion in enumerate(criteria.criteria, 1):
        if reason := problem(codec, criterion):
            with about(f"criterion {number}"):
                raise InputError(reason)


def check_affordable(criteria: Criteria, law: Law, cost: float, largest: int) -> None:
    """Refuse a share of the budget too small for the noise of a test; `cost` is that of a person.

    How many rows of a person are compared is found during the run: the share must suffice for the `largest`.
    """
    cost_of_test = law.of_row(criteria.share * cost, largest) / len(criteria.criteria)
    if law.rho(cost_of_test) < LEAST_COST:
        accept, epsilon = spelled("accept"), spelled("epsilon")
        raise InputError(f"{accept}: the noise of each test exceeds every count: raise share or {epsilon}")


@dataclass(frozen=True, eq=False)
class Summed:
    """A variable that is summed over rows: the numbers of a column, or 1 where it meets a condition, else 0.

    Parameters
    ----------
    name : str
        The column.
    lows, highs : float arrays of shape (codes,)
        Smallest and largest number of each code; NaN if its rows do not count, as they are missing.
    span : Span, optional
        The values that meet the condition. Rows with a missing cell count only if it names these.
    """

    name: str
    lows: Floats
    highs: Floats
    span: Span | None = None

    @classmethod
    def of(cls, criterion: Criterion, codec: Codec) -> tuple[Summed, ...]:
        """Return the variables of a criterion."""
        cells, variables = codec.cells(), []
        for variable in criterion.variables:
            if isinstance(variable, str):
                variables.append(cls(variable, cells[variable].lows, cells[variable].highs))
                continue
            ((name, span),) = spans(variable, codec.schema).items()
            states = _states(span, cells[name])
            left_out = np.isnan(cells[name].lows) & (not span.missing)
            lows, highs = (np.where(left_out, np.nan, states >= state) for state in (SURE, CUT))
            variables.append(cls(name, lows, highs, span))
        return tuple(variables)

    @property
    def origin(self) -> float:
        """A number in the middle: sums of products of what exceeds it are hardly rounded."""
        return float(np.nanmin(self.lows) / 2 + np.nanmax(self.highs) / 2)

    def read(self, numbers: Numbers) -> Floats:
        """Return the number of each row; NaN if it does not count."""
        column = numbers[self.name]
        if self.span is None:
            return column
        return np.where(np.isnan(column) & (not self.span.missing), np.nan, self.span.holds(column))


class Axis(NamedTuple):
    """One attribute of the table of a criterion.

    Parameters
    ----------
    name : str
    cells : Cells
        Its codes as numbers.
    groups : integer array
        The group of each code.
    states : integer array
        Whether the rows of each group lie outside the condition, may meet it, or surely do. Some may if the
        end of a range cuts a cell of numbers.
    """

    name: str
    cells: Cells
    groups: Codes
    states: Integers


@dataclass(frozen=True, eq=False)
class Layout:
    """The table of counts of a criterion.

    Parameters
    ----------
    domain : Domain
        The attributes of the release.
    criterion : Margin, Mean, Proportion or Slope
    summed : tuple of Summed
        The variables, if there are any. Their columns are the first axes, in single codes.
    axes : tuple of Axis
    where : mapping of a column to the values that meet its condition
    """

    domain: Domain
    criterion: Criterion
    summed: tuple[Summed, ...]
    axes: tuple[Axis, ...]
    where: Mapping[str, Span]

    @classmethod
    def of(cls, codec: Codec, fitted: Fitted, criterion: Criterion) -> Layout:
        """Return the layout."""
        cells_of_columns, domain = codec.cells(), codec.domain
        where, summed = spans(criterion.conditions, codec.schema), Summed.of(criterion, codec)
        single, axes = {variable.name for variable in summed}, []
        for name in criterion.columns:
            axis, cells = domain.names.index(name), cells_of_columns[name]
            groups: Integers = np.arange(len(cells.lows))
            states = _states(where[name], cells) if name in where else np.full(len(cells.lows), SURE)
            if name in where and name not in single:
                states, groups = np.unique(states, return_inverse=True)
            elif isinstance(criterion, Margin) and _bins(codec, name):
                groups = groups_at(fitted.one_ways[axis], criterion.groups)[fitted.merging.groups[axis]]
                states = np.full(int(groups.max()) + 1, SURE)
            axes.append(Axis(name, cells, groups.astype(np.int32), states))
        return cls(domain, criterion, summed, tuple(axes), where)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the table."""
        return tuple(len(axis.states) for axis in self.axes)

    @property
    def merging(self) -> Merging:
        """The merging that joins the codes of the attributes of this table, and keeps all other codes."""
        single = [np.arange(size, dtype=np.int32) for size in self.domain.sizes]
        groups = dict(zip(self.domain.names, single, strict=True)) | {a.name: a.groups for a in self.axes}
        both = tuple(groups.values())
        shares = tuple(1 / np.bincount(group)[group] for group in both)
        return Merging(self.domain, Grouping(both).domain(replace(self.domain, ordered=())), both, shares)

    def met(self, state: int) -> Mask:
        """Return in which cells of the table all conditions may be met (`CUT`) or surely are (`SURE`)."""
        masks = (axis.states >= state for axis in self.axes)
        return np.asarray(reduce(np.logical_and.outer, masks, np.array(True)))

    def count(self, numbers: Numbers) -> Ints:
        """Count synthetic rows, given the numbers of each column."""
        codes = [axis.groups[axis.cells.find(numbers[axis.name])] for axis in self.axes]
        cells = np.ravel_multi_index(codes, self.shape)
        return np.bincount(cells, minlength=prod(self.shape)).reshape(self.shape).astype(np.int64)

    @np.errstate(over="ignore", invalid="ignore")
    def products(self, numbers: Numbers) -> Floats:
        """Return the sums of products of 1 and all variables less their origins, over some synthetic rows.

        The rows are those that meet the conditions and have no missing variable. So the first number is how
        many there are. Sums that exceed doubles are infinite or NaN.
        """
        met = np.ones(len(next(iter(numbers.values()))), bool)
        for name, span in self.where.items():
            met &= span.holds(numbers[name])
        columns = [variable.read(numbers) - variable.origin for variable in self.summed]
        for column in columns:
            met &= ~np.isnan(column)
        table = np.column_stack([np.ones(len(met)), *columns])[met]
        return table.T @ table


def _states(span: Span, cells: Cells) -> Integers:
    """Return whether the numbers of each cell lie outside a span, may lie in it, or surely do."""
    inside = span.covers(cells.lows, cells.highs)
    return np.where(inside, SURE, np.where(span.touches(cells.lows, cells.highs), CUT, OUTSIDE))
