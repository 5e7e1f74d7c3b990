"""Forbidden: a combination of values that no row has."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import reduce
from types import MappingProxyType
from typing import Any

import numpy as np

from privsyn.errors import InputError, about
from privsyn.marginals.domain import Integers, Mask
from privsyn.table.enforcement.draws import Cells, DrawnRows
from privsyn.table.enforcement.rules import Numbers, Rule, Span
from privsyn.table.schema.constraint import Columns, Constraint, check_names, condition, python_value

Condition = Mapping[str, Any]
"""One value, a list of values, or a range ``{"low": a, "high": b}`` for each column; None is missing."""


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

    when: Condition

    def __post_init__(self) -> None:
        object.__setattr__(self, "when", check_condition(self.when))

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        """The columns of the combination."""
        return tuple(self.when)

    def add_declared(self, columns: Columns, found: Collection[str]) -> Columns:
        """Add the values that the condition names."""
        return add_named_values(columns, found, self.when)

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
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        """The columns of the combination."""
        return tuple(self.spans)

    @property
    def named_numbers(self) -> list[tuple[str, list[float]]]:
        """The ends of the spans, by column."""
        return [(name, span.ends) for name, span in self.spans.items()]

    def holds(self, numbers: Numbers) -> Mask:
        """Return where at least one value lies outside its span."""
        return ~reduce(np.logical_and, (span.holds(numbers[name]) for name, span in self.spans.items()))

    def possible(self, cells: list[Cells]) -> Mask:
        """Return all cells except those that lie completely inside the combination."""
        inside = [
            _all(c, span.covers(c.lows, c.highs)) for c, span in zip(cells, self.spans.values(), strict=True)
        ]
        return ~reduce(np.logical_and.outer, inside)

    def repair(self, rows: DrawnRows, at: Integers, rng: np.random.Generator) -> None:
        """Make the column `lost` missing, or draw a number below or above its span."""
        if self.lost is not None and rows.is_free(self.lost):
            rows.numbers[self.lost][at] = np.nan
            return
        for name, span in self.spans.items():
            if rows.is_free(name) and rows.cells[name].grid is not None and len(span.lows) == 1:
                lows, highs = rows.room(name, at)
                step = rows.cells[name].grid.step  # type: ignore[union-attr]
                below, above = np.fmin(highs, span.lows[0] - step), np.fmax(lows, span.highs[0] + step)
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


def spans_of(columns: Columns, when: Condition) -> dict[str, Span]:
    """Return the condition as one span of numbers for each column."""
    spans = {}
    for name, values in when.items():
        with about(f"column {name!r}"):
            spans[name] = Span.of(columns[name], values)
    return spans


def add_named_values(columns: Columns, found: Collection[str], when: Condition) -> Columns:
    """Add the values that a condition names to the lists that were found under privacy."""
    declared = {}
    for name, values in when.items():
        column = columns[name]
        if name in found and column.lists_values and not isinstance(values, Mapping):
            named = values if isinstance(values, tuple) else (values,)
            declared[name] = column.with_listed([*column.listed, *(v for v in named if v is not None)])
    return declared


def check_condition(when: object) -> Condition:
    """Return a condition in normal form, read-only."""
    if not isinstance(when, Mapping) or not when:
        raise InputError('when: give a mapping of columns to values, such as {"married": "no"}')
    check_names("when", tuple(when))
    return MappingProxyType({name: _check_values(name, values) for name, values in when.items()})


def _check_values(name: str, values: object) -> object:
    if isinstance(values, Mapping):
        ends = {end: python_value(value) for end, value in values.items() if value is not None}
        if not ends or set(values) - {"low", "high"}:
            raise InputError(f"when: {name!r}: a range has low, high or both")
        return ends
    if isinstance(values, list | set | frozenset | tuple):
        return tuple(python_value(value) for value in values)
    return python_value(values)
