"""What constraints make public of the columns they speak of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import networkx as nx

from privsyn.errors import InputError, safe_repr
from privsyn.table.schema.columns import Categorical, Coded, Column, Identifier, Numerical, Text
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
from privsyn.table.schema.time_columns import Datetime, Duration, Time


def derive_columns(
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
                f"constraint {place}: {safe_repr(constraint)} is not one, such as Forbidden or Total"
            )
        for name in constraint.columns:
            if name not in columns:
                raise InputError(f"constraint {place}: the schema has no column {safe_repr(name)}")
            if isinstance(columns[name], Identifier | Text):
                raise InputError(f"constraint {place}: {name!r} is never counted: leave it out")
    settled: dict[str, Coded] = {name: c for name, c in columns.items() if isinstance(c, Coded)}
    makers = computed_by(constraints)
    for place, constraint in enumerate(constraints, 1):
        with about_constraint(place):
            if isinstance(constraint, Increasing):
                _check_comparable(settled, constraint)
            _complete(settled, constraint)
    for name in in_order(makers):
        maker = makers[name]
        if isinstance(maker, Total):
            with about_constraint(constraints.index(maker) + 1):
                settled[name] = _with_bounds(settled, maker)
    return {**columns, **settled}, tuple(constraints)


def add_declared(
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
        if isinstance(constraint, Increasing) and (open_ones := set(found) & set(constraint.columns)):
            both: Any = [fitted[name] for name in constraint.columns if fitted[name].is_public]
            low, high = min(column.low for column in both), max(column.high for column in both)
            for name in open_ones:
                fitted[name] = replace(fitted[name], low=low, high=high)
    return fitted


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


def _check_comparable(columns: Mapping[str, Coded], constraint: Increasing) -> None:
    """Refuse columns that cannot be compared."""
    kinds = {type(columns[name]) for name in constraint.columns}
    if kinds not in ({Numerical}, {Datetime}, {Time}, {Duration}):
        raise InputError("columns that increase are all numerical, or all dates")


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
    decimals = decimals_of_total(columns, total)
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


@contextmanager
def about_constraint(place: int) -> Iterator[None]:
    """Begins an `InputError` with the place of the constraint it is about."""
    complaint = ""
    try:
        yield
    except InputError as error:
        complaint = str(error)
    if complaint:
        about = "" if complaint.startswith("constraint ") else f"constraint {place}: "
        raise InputError(f"{about}{complaint}")


def decimals_of_total(columns: Mapping[str, Coded], total: Total) -> int | None:
    """How many decimals the sum has; None if it is real."""
    found = 0
    for name, n in total.of.items():  # type: ignore[union-attr]
        part: Any = columns[name]
        if float(n) != round(n) or not (part.is_whole or part.decimals is not None):
            return None
        found = max(found, part.decimals or 0)
    return found


def in_order(makers: Mapping[str, Determined | Total]) -> list[str]:
    """The computed columns, each after those it is computed from."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(makers)
    for name, maker in makers.items():
        graph.add_edges_from((other, name) for other in maker.columns[:-1])
    try:
        return [name for name in nx.topological_sort(graph) if name in makers]
    except nx.NetworkXUnfeasible:
        raise InputError("columns are computed from each other in a circle: drop a constraint") from None
