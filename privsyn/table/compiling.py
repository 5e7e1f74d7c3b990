"""What constraints make public of a schema's columns, what contradicts them, and the rules they come to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np

from privsyn.errors import InputError, shown
from privsyn.table.constraints import (
    Allowed,
    Constraint,
    Determined,
    Forbidden,
    Increasing,
    MissingWhen,
    Total,
    computed_by,
)
from privsyn.table.kinds import SECONDS, Duration, Identifier, Text, Time
from privsyn.table.rulebook import LookUp, Rulebook, SumOf, TooManyError
from privsyn.table.rules import Listing, Outlaw, Rise, Rule
from privsyn.table.schema import Categorical, Coded, Column, Datetime, Numerical
from privsyn.table.spans import Floats, Span, bounds_of, number_of


def settle_columns(
    columns: Mapping[str, Column], constraints: Sequence[Constraint]
) -> tuple[dict[str, Column], tuple[Constraint, ...]]:
    """The columns with what the constraints make public of them; an `InputError` where they contradict.

    A list of values, or bounds, that is left out is public if a constraint lists all that may occur, or if
    it follows from those of parts.
    """
    if isinstance(constraints, Mapping | str) or not isinstance(constraints, Sequence):
        raise InputError('constraints are a list, as in [Increasing(["start", "end"])]')
    for place, constraint in enumerate(constraints, 1):
        if not isinstance(constraint, Constraint):
            raise InputError(
                f"constraint {place}: {shown(constraint)} is not one, such as Forbidden or Total"
            )
        for name in constraint.columns:
            if name not in columns:
                raise InputError(f"constraint {place}: the schema has no column {shown(name)}")
            if isinstance(columns[name], Identifier | Text):
                raise InputError(f"constraint {place}: {name!r} is never counted: leave it out")
    settled: dict[str, Coded] = {name: c for name, c in columns.items() if isinstance(c, Coded)}
    makers = computed_by(constraints)
    for place, constraint in enumerate(constraints, 1):
        with _said_of(place):
            _complete(settled, constraint)
    for name in _in_order(makers):
        maker = makers[name]
        if isinstance(maker, Total):
            with _said_of(constraints.index(maker) + 1):
                settled[name] = _with_bounds(settled, maker)
    _check(settled, tuple(constraints))
    return {**columns, **settled}, tuple(constraints)


def rulebook_of(columns: Mapping[str, Coded], constraints: Sequence[Constraint]) -> Rulebook:
    """The rules that the constraints come to; all values and bounds are known."""
    makers = computed_by(constraints)
    return Rulebook(
        columns,
        tuple(rule for constraint in constraints for rule in _rules(columns, constraint)),
        tuple(_maker(columns, makers[name]) for name in _in_order(makers)),
    )


def fit_found(
    columns: Mapping[str, Column], found: Sequence[str], constraints: Sequence[Constraint]
) -> dict[str, Column]:
    """Columns of which lists and bounds were found, made to hold what constraints say publicly of them.

    Values that a constraint names are added; columns that increase get bounds that leave room for it.
    """
    fitted = dict(columns)
    for constraint in constraints:
        when = constraint.when if isinstance(constraint, Forbidden | MissingWhen) else {}
        for name, said in when.items():
            column = fitted[name]
            if name in found and isinstance(column, Categorical) and not isinstance(said, Mapping):
                named = said if isinstance(said, tuple) else (said,)
                values = dict.fromkeys([*(column.values or ()), *(v for v in named if v is not None)])
                fitted[name] = replace(column, values=tuple(values))
        if isinstance(constraint, Increasing):
            both: Any = [fitted[name] for name in constraint.columns]
            low, high = min(column.low for column in both), max(column.high for column in both)
            for name in set(found) & set(constraint.columns):
                fitted[name] = replace(fitted[name], low=low, high=high)
    return fitted


class _said_of:  # noqa: N801  # a context manager, read as a phrase
    """Begins an `InputError` with the place of the constraint it is about."""

    def __init__(self, place: int) -> None:
        self.place = place

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if isinstance(error, InputError) and not str(error).startswith("constraint "):
            raise InputError(f"constraint {self.place}: {error}") from None


def _check(columns: Mapping[str, Coded], constraints: tuple[Constraint, ...]) -> None:
    """Refuse constraints that name what a column does not have, or that no row can keep."""
    known = {name: column for name, column in columns.items() if column.is_public}
    for place, constraint in enumerate(constraints, 1):
        if set(constraint.columns) <= set(known):
            with _said_of(place):
                _rules(known, constraint)
                if isinstance(constraint, Determined):
                    _check_mapping(known, constraint)
                if isinstance(constraint, Increasing):
                    _check_bounds(known, constraint)
        elif isinstance(constraint, Increasing):
            with _said_of(place):
                _check_kinds(columns, constraint)
    decided = tuple(c for c in constraints if set(c.columns) <= set(known))
    book = rulebook_of(known, decided)
    for names, _ in book.parts:
        with suppress(TooManyError):
            if book.example(names, {}, {}) is None:
                raise InputError(
                    f"the constraints on {', '.join(names)} contradict each other: no row can keep them all"
                )


def _complete(columns: dict[str, Coded], constraint: Constraint) -> None:
    """Fill in the lists and bounds that a list of combinations makes public."""
    if isinstance(constraint, Allowed | Determined):
        for j, name in enumerate(constraint.columns):
            values: list[Any] = [row[j] for row in constraint.rows]
            column: Any = columns[name]
            if column.is_public:
                continue
            if isinstance(column, Categorical):
                columns[name] = replace(column, values=tuple(dict.fromkeys(values)))
            else:
                with suppress(TypeError):
                    columns[name] = replace(column, low=min(values), high=max(values))
    for name in constraint.columns:
        if isinstance(constraint, MissingWhen) and name == constraint.column and not columns[name].nullable:
            raise InputError(f"column {name!r} is to be missing, and the schema says nullable=False")


def _with_bounds(columns: Mapping[str, Coded], total: Total) -> Coded:
    """The column of a total with the bounds that follow from its parts."""
    column: Any = columns[total.column]
    parts: dict[str, Any] = {name: columns[name] for name in total.of}
    for name, part in {total.column: column, **parts}.items():
        if not isinstance(part, Numerical):
            raise InputError(f"column {name!r} is not numerical: a total and its parts are")
    if not all(part.is_public for part in parts.values()):
        if column.is_public:
            raise InputError(f"leave out the bounds of {total.column!r}, or give those of all its parts")
        return column
    ends: list[list[Any]] = [
        sorted((n * parts[name].low, n * parts[name].high))
        for name, n in total.of.items()  # type: ignore[union-attr]
    ]
    low: float
    high: float
    low, high = sum(end[0] for end in ends), sum(end[1] for end in ends)
    decimals = _decimals(columns, total)
    whole = decimals == 0
    if decimals is not None:
        low, high = round(low, decimals), round(high, decimals)
    low, high = (int(low), int(high)) if whole else (float(low), float(high))
    if not column.is_public:
        return replace(column, low=low, high=high)
    if column.integer and not whole:
        raise InputError(f"{total.column!r} is whole, and not all its parts are: say integer or decimals")
    if low < column.low or high > column.high:
        raise InputError(
            f"by its parts {total.column!r} goes from {low} to {high}, beyond its bounds {column.low} to "
            f"{column.high}: widen them, or leave them out"
        )
    return column


def _decimals(columns: Mapping[str, Coded], total: Total) -> int | None:
    """How many decimals the sum has; None if it is real."""
    found = 0
    for name, n in total.of.items():  # type: ignore[union-attr]
        part: Any = columns[name]
        if float(n) != round(n) or not (part.is_whole or part.decimals is not None):
            return None
        found = max(found, part.decimals or 0)
    return found


def _rules(columns: Mapping[str, Coded], constraint: Constraint) -> list[Rule]:
    match constraint:
        case Forbidden():
            return [Outlaw(_spans(columns, constraint.when))]
        case MissingWhen():
            spans, name = _spans(columns, constraint.when), constraint.column
            there = Span(np.array([-np.inf]), np.array([np.inf]), missing=False)
            rules: list[Rule] = [Outlaw({**spans, name: there}, lost=name)]
            lost = Span(np.empty(0), np.empty(0), missing=True)
            if constraint.only:
                rules += [Outlaw({other: _rest(span), name: lost}) for other, span in spans.items()]
            return rules
        case Allowed():
            return [
                Listing(tuple(constraint.columns), _numbers(columns, constraint.columns, constraint.rows))
            ]
        case Determined():
            if len(constraint.by) == 1:
                return []
            keys = tuple(dict.fromkeys(row[:-1] for row in constraint.rows))
            return [Listing(tuple(constraint.by), _numbers(columns, constraint.by, keys))]
        case Increasing():
            _check_kinds(columns, constraint)
            scales = [float(SECONDS[getattr(columns[n], "unit", None) or "s"]) for n in constraint.columns]
            return [Rise(tuple(constraint.columns), constraint.strict, tuple(scales))]
        case Total():
            return []


def _maker(columns: Mapping[str, Coded], constraint: Determined | Total) -> LookUp | SumOf:
    if isinstance(constraint, Total):
        parts: Mapping[str, float] = constraint.of  # type: ignore[assignment]
        return SumOf(constraint.column, tuple(parts), tuple(parts.values()), _decimals(columns, constraint))
    rows = _numbers(columns, constraint.columns, constraint.rows)
    return LookUp(constraint.column, tuple(constraint.by), rows[:, :-1], rows[:, -1])


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
                raise InputError(f"column {name!r}: {shown(value)} lies outside its bounds")
        found[:, j] = [places[row[j]] for row in rows]
    return found


def _in_order(makers: Mapping[str, Determined | Total]) -> list[str]:
    """The computed columns, each after those it is computed from."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(makers)
    for name, maker in makers.items():
        graph.add_edges_from((other, name) for other in maker.columns[:-1])
    try:
        return [name for name in nx.topological_sort(graph) if name in makers]
    except nx.NetworkXUnfeasible:
        raise InputError("columns are computed from each other in a circle: drop a constraint") from None


def _check_mapping(columns: Mapping[str, Coded], constraint: Determined) -> None:
    """A single column that determines another is in the mapping with all its values."""
    first, column = constraint.by[0], columns[constraint.by[0]]
    if len(constraint.by) == 1:
        listed = column.values if isinstance(column, Categorical) else None
        left = [value for value in listed or () if value not in {row[0] for row in constraint.rows}]
        if listed is None:
            raise InputError(f"{first!r} has no list of values: let the mapping be from a categorical column")
        if left:
            raise InputError(
                f"the mapping does not say what {constraint.column!r} is where {first!r} is {shown(left[0])}"
            )
    for name in constraint.by:
        if columns[name].nullable and not columns[constraint.column].nullable:
            raise InputError(
                f"{name!r} may be missing, and {constraint.column!r} with it: say nullable alike of both"
            )


def _check_kinds(columns: Mapping[str, Coded], constraint: Increasing) -> None:
    kinds = {type(columns[name]) for name in constraint.columns}
    if kinds not in ({Numerical}, {Datetime}, {Time}, {Duration}):
        raise InputError("columns that increase are all numerical, or all dates")


def _check_bounds(columns: Mapping[str, Coded], constraint: Increasing) -> None:
    """No column begins above the end of a later one."""
    scales = [float(SECONDS[getattr(columns[n], "unit", None) or "s"]) for n in constraint.columns]
    ends = [bounds_of(columns[n]) for n in constraint.columns]
    for j, name in enumerate(constraint.columns):
        for k in range(j + 1, len(ends)):
            low, high = ends[j][0] * scales[j], ends[k][1] * scales[k]
            if low > high or (constraint.strict and low == high):
                raise InputError(
                    f"{name!r} begins above the end of {constraint.columns[k]!r}: mend the bounds"
                )
