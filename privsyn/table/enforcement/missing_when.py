"""MissingWhen: a column that must be missing in some rows."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np

from privsyn.errors import InputError
from privsyn.table.enforcement.forbidden import (
    Condition,
    ForbiddenRule,
    add_named_values,
    check_condition,
    spans_of,
)
from privsyn.table.enforcement.rules import Rule, Span
from privsyn.table.kinds.column_settings import flag
from privsyn.table.schema.constraint import Columns, Constraint, check_names, condition


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
    when: Condition
    only: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "when", check_condition(self.when))
        object.__setattr__(self, "only", flag("only", self.only))
        check_names("column and when", self.columns)

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        """The columns of the condition, and last the column that must be missing."""
        return (*self.when, self.column)

    def derive(self, columns: Columns) -> Columns:
        """Refuse a column that may not be missing."""
        if not columns[self.column].nullable:
            raise InputError(f"column {self.column!r} has nullable=False and so cannot be missing")
        return {}

    def add_declared(self, columns: Columns, found: Collection[str]) -> Columns:
        """Add the values that the condition names."""
        return add_named_values(columns, found, self.when)

    def explain(self) -> str:
        """Return what the constraint does, in plain English."""
        only = ", and in no other row" if self.only else ""
        return f"{self.column} is missing where {condition(self.when)}{only}."

    def rules(self, columns: Columns) -> list[Rule]:
        """Forbid a present cell where the condition holds and, with `only`, a missing one elsewhere."""
        spans, name = spans_of(columns, self.when), self.column
        present = Span(np.array([-np.inf]), np.array([np.inf]), missing=False)
        rules: list[Rule] = [ForbiddenRule({**spans, name: present}, lost=name)]
        if self.only:
            missing = Span(np.empty(0), np.empty(0), missing=True)
            rules += [ForbiddenRule({other: _rest(span), name: missing}) for other, span in spans.items()]
        return rules


def _rest(span: Span) -> Span:
    """Return all numbers outside a span, without missing: a missing cell keeps the constraint."""
    lows = np.append(-np.inf, np.nextafter(span.highs, np.inf))
    highs = np.append(np.nextafter(span.lows, -np.inf), np.inf)
    return Span(lows, highs, missing=False)
