"""Forbidden: a combination of values that no row has. MissingWhen: a column that some rows lack."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import reduce

import numpy as np

from privsyn.errors import InputError
from privsyn.marginals.domain import Floats, Integers, Mask, Numbers
from privsyn.table.kinds.column_settings import flag
from privsyn.table.schema.box import PRESENT, Box, Span, check_box, in_all, spans_of
from privsyn.table.schema.constraint import Columns, Constraint, check_names, condition
from privsyn.table.schema.draws import Cells, DrawnRows
from privsyn.table.schema.rules import Rule


@dataclass(frozen=True)
class MissingWhen(Constraint):
    """Requires a column to be missing where a condition holds.

    Parameters
    ----------
    column : str
    when : mapping of other columns to values, as for `Forbidden`
        The rows in which the column is missing.
    only : bool
        Whether the column is missing in these rows only.

    Examples
    --------
    >>> MissingWhen("spouse_age", {"married": "no"}).columns
    ('married', 'spouse_age')
    """

    column: str
    when: Box
    only: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "when", check_box(self.when))
        object.__setattr__(self, "only", flag("only", self.only))
        check_names("column and when", self.columns)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the condition, and last the column that must be missing."""
        return (*self.when, self.column)

    def derive(self, columns: Columns) -> Columns:
        """Refuse a column that may not be missing."""
        if not columns[self.column].nullable:
            raise InputError(f"column {self.column!r} has nullable=False and so cannot be missing")
        return {}

    def add_declared(self, columns: Columns, names: Collection[str]) -> Columns:
        """Add the values that the condition names."""
        return _add_named_values(columns, names, self.when)

    def explain(self) -> str:
        """Return what the constraint does, in plain English."""
        only = ", and in no other row" if self.only else ""
        return f"{self.column} is missing where {condition(self.when)}{only}."

    def rules(self, columns: Columns) -> list[Rule]:
        """Forbid a present cell where the condition holds and, with `only`, a missing one elsewhere."""
        spans, name = spans_of(columns, self.when), self.column
        present, missing = (Span.of(columns[name], values) for values in (PRESENT, None))
        rules: list[Rule] = [ForbiddenRule({**spans, name: present}, lost=name)]
        if self.only:
            rules += [ForbiddenRule({column: span.outside, name: missing}) for column, span in spans.items()]
        return rules


@dataclass(frozen=True)
class Forbidden(Constraint):
    """Forbids a combination of values: a structural zero.

    Parameters
    ----------
    when : mapping of a column to values
        One value, a list of values, or ``{"low": a, "high": b}`` with one end or both; None is missing.

    Examples
    --------
    >>> Forbidden({"age": {"high": 15}, "married": "yes"}).columns
    ('age', 'married')
    """

    when: Box

    def __post_init__(self) -> None:
        object.__setattr__(self, "when", check_box(self.when))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the combination."""
        return tuple(self.when)

    def add_declared(self, columns: Columns, names: Collection[str]) -> Columns:
        """Add the values that the condition names."""
        return _add_named_values(columns, names, self.when)

    def explain(self) -> str:
        """Return what the constraint does, in plain English."""
        return f"no row where {condition(self.when)}."

    def rules(self, columns: Columns) -> list[Rule]:
        """Return the one rule that forbids the combination."""
        return [ForbiddenRule(spans_of(columns, self.when))]


@dataclass(frozen=True, eq=False)
class ForbiddenRule(Rule):
    """Forbids a combination of values.

    Parameters
    ----------
    spans : mapping of a column to the values that may not occur together
    lost : str, optional
        The column that repair makes missing where they do.
    """

    spans: Mapping[str, Span]
    lost: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the combination."""
        return tuple(self.spans)

    @property
    def intervals(self) -> list[tuple[str, Floats, Floats]]:
        """The spans."""
        return [(name, span.lows, span.highs) for name, span in self.spans.items()]

    def holds(self, numbers: Numbers) -> Mask:
        """Return where at least one value lies outside its span."""
        return ~in_all(self.spans, numbers)

    def possible(self, cells: list[Cells]) -> Mask:
        """Return all cells except those that lie completely inside the combination.

        A point of a grid of reals stands for all that are nearer to it than to its neighbours.
        """
        inside = []
        for c, span in zip(cells, self.spans.values(), strict=True):
            if c.grid is not None and c.grid.decimals is None:
                covered = span.covers_points(c.lows, c.highs, c.grid.step)
            else:
                covered = span.covers(c.lows, c.highs)
            inside.append(_all(c, covered))
        return ~reduce(np.logical_and.outer, inside)

    def repair(self, rows: DrawnRows, at: Integers, rng: np.random.Generator) -> None:
        """Make the column `lost` missing, or draw a number below or above its span."""
        if self.lost is not None and rows.is_free(self.lost):
            rows.numbers[self.lost][at] = np.nan
            return
        for name, span in self.spans.items():
            if rows.is_free(name) and (grid := rows.cells[name].grid) is not None and len(span.lows) == 1:
                lows, highs = rows.room(name, at)
                low, high = span.ends_outside(grid.step)
                below, above = np.fmin(highs, low), np.fmax(lows, high)
                under = rows.cells[name].draw(lows, below, rng)
                over = rows.cells[name].draw(above, highs, rng)
                go_under = rng.random(len(at)) * (below - lows + highs - above) < below - lows
                new = np.where(go_under, under, over)
                new = np.where(np.isnan(new), np.where(np.isnan(under), over, under), new)
                rows.numbers[name][at] = np.where(np.isnan(new), rows.numbers[name][at], new)
                at = at[np.isnan(new)]


def _all(cells: Cells, of_codes: Mask) -> Mask:
    """Return the merged codes for which `of_codes` is true for all codes that are made."""
    return np.bincount(cells.groups, ~of_codes & (cells.shares > 0), minlength=cells.merged) == 0


def _add_named_values(columns: Columns, names: Collection[str], when: Box) -> Columns:
    """Add the values that a condition names to the lists that were found under privacy."""
    declared = {}
    for name, values in when.items():
        column = columns[name]
        if name in names and column.lists_values and not isinstance(values, Mapping):
            named = values if isinstance(values, tuple) else (values,)
            declared[name] = column.with_listed([*column.listed, *(v for v in named if v is not None)])
    return declared
