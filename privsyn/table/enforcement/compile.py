"""The rules that constraints come to, once all values and bounds are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from privsyn.errors import InputError, safe_repr
from privsyn.marginals.types import Floats
from privsyn.table.enforcement.ranges import Span, bounds_of, number_of
from privsyn.table.enforcement.repair import LookUp, Repair, SumOf
from privsyn.table.enforcement.rules import AllowedRule, ForbiddenRule, IncreasingRule, Rule
from privsyn.table.schema.columns import Coded
from privsyn.table.schema.constraints import (
    Allowed,
    Constraint,
    Determined,
    Forbidden,
    Increasing,
    MissingWhen,
    Total,
    computed_by,
)
from privsyn.table.schema.derived import decimals_of_total, in_order
from privsyn.table.schema.time_columns import SECONDS


def rulebook_of(columns: Mapping[str, Coded], constraints: Sequence[Constraint]) -> Repair:
    """The rules that the constraints come to; all values and bounds are known."""
    makers = computed_by(constraints)
    return Repair(
        columns,
        tuple(rule for constraint in constraints for rule in rules_of(columns, constraint)),
        tuple(maker_of(columns, makers[name]) for name in in_order(makers)),
    )


def rules_of(columns: Mapping[str, Coded], constraint: Constraint) -> list[Rule]:
    """The rules of one constraint; none where it only computes a column."""
    match constraint:
        case Forbidden():
            return [ForbiddenRule(_spans(columns, constraint.when))]
        case MissingWhen():
            spans, name = _spans(columns, constraint.when), constraint.column
            there = Span(np.array([-np.inf]), np.array([np.inf]), missing=False)
            rules: list[Rule] = [ForbiddenRule({**spans, name: there}, lost=name)]
            lost = Span(np.empty(0), np.empty(0), missing=True)
            if constraint.only:
                rules += [ForbiddenRule({other: _rest(span), name: lost}) for other, span in spans.items()]
            return rules
        case Allowed():
            return [
                AllowedRule(tuple(constraint.columns), _numbers(columns, constraint.columns, constraint.rows))
            ]
        case Determined():
            if len(constraint.by) == 1:
                return []
            keys = tuple(dict.fromkeys(row[:-1] for row in constraint.rows))
            return [AllowedRule(tuple(constraint.by), _numbers(columns, constraint.by, keys))]
        case Increasing():
            names = tuple(constraint.columns)
            return [IncreasingRule(names, constraint.strict, scales_of(columns, names))]
        case Total():
            return []


def maker_of(columns: Mapping[str, Coded], constraint: Determined | Total) -> LookUp | SumOf:
    """Return what computes the column of a constraint from the others."""
    if isinstance(constraint, Total):
        parts: Mapping[str, float] = constraint.of  # type: ignore[assignment]
        return SumOf(
            constraint.column, tuple(parts), tuple(parts.values()), decimals_of_total(columns, constraint)
        )
    rows = _numbers(columns, constraint.columns, constraint.rows)
    return LookUp(constraint.column, tuple(constraint.by), rows[:, :-1], rows[:, -1])


def scales_of(columns: Mapping[str, Coded], names: Sequence[str]) -> tuple[float, ...]:
    """What a step of each column is in the unit that they are compared in: seconds, of times."""
    return tuple(float(SECONDS[getattr(columns[name], "unit", None) or "s"]) for name in names)


def _spans(columns: Mapping[str, Coded], when: Mapping[str, Any]) -> dict[str, Span]:
    spans = {}
    for name, said in when.items():
        try:
            spans[name] = Span.of(columns[name], said)
        except InputError as error:
            raise InputError(f"column {name!r}: {error}") from None
    return spans


def _rest(span: Span) -> Span:
    """All numbers that are not in a span; missing cells are not, for they say nothing."""
    lows = np.append(-np.inf, np.nextafter(span.highs, np.inf))
    highs = np.append(np.nextafter(span.lows, -np.inf), np.inf)
    return Span(lows, highs, missing=False)


def _numbers(columns: Mapping[str, Coded], names: Sequence[str], rows: Sequence[Sequence[Any]]) -> Floats:
    found = np.empty((len(rows), len(names)))
    for j, name in enumerate(names):
        try:
            places = {value: number_of(columns[name], value) for value in {row[j] for row in rows}}
        except InputError as error:
            raise InputError(f"column {name!r}: {error}") from None
        low, high = bounds_of(columns[name])
        for value, number in places.items():
            if not low <= number <= high:
                raise InputError(f"column {name!r}: {safe_repr(value)} lies outside its bounds")
        found[:, j] = [places[row[j]] for row in rows]
    return found
