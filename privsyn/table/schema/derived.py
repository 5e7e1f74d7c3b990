"""What constraints make public about columns."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from graphlib import CycleError, TopologicalSorter

from privsyn.errors import InputError, did_you_mean, replace_errors, safe_repr
from privsyn.table.schema.columns import Coded, Column, Generated, Text
from privsyn.table.schema.constraint import Constraint
from privsyn.table.schema.expressions.parse import parse_expression


def derive_columns(
    columns: Mapping[str, Column], constraints: Sequence[Constraint | str]
) -> tuple[dict[str, Column], tuple[Constraint, ...]]:
    """Return the columns with all values and bounds that the constraints make public.

    An expression is replaced by the constraints that it means. Missing values or bounds are public if a
    constraint lists all that may occur, or if they follow from the parts of a total.

    Raises
    ------
    InputError
        If a constraint contradicts a column, or two constraints compute the same column.
    """
    if isinstance(constraints, Mapping | str) or not isinstance(constraints, Sequence):
        raise InputError('constraints are a list, as in [Increasing(["start", "end"])]')
    constraints, places = _read_expressions(columns, constraints)
    for constraint, place in zip(constraints, places, strict=True):
        if not isinstance(constraint, Constraint):
            raise InputError(
                f"constraint {place}: {safe_repr(constraint)} is not a constraint such as Forbidden or Total"
            )
        for name in constraint.columns:
            if name not in columns:
                meant = did_you_mean(name, columns)
                raise InputError(f"constraint {place}: the schema has no column {safe_repr(name)}{meant}")
            if isinstance(columns[name], Generated | Text):
                raise InputError(f"constraint {place}: {name!r} is never counted: leave it out")
            if getattr(columns[name], "keep", None) is not None:
                raise InputError(
                    f"constraint {place}: {name!r} is randomised, so its cells keep no rule:"
                    " leave out keep, or the constraint"
                )
    derived: dict[str, Coded] = {name: c for name, c in columns.items() if isinstance(c, Coded)}
    computing = computed_by(constraints)
    first = [constraint for constraint in constraints if not constraint.derives_last]
    last = [computing[name] for name in in_order(computing) if computing[name].derives_last]
    for constraint in [*first, *last]:
        with about_constraint(places[constraints.index(constraint)]):
            derived |= constraint.derive(derived)
    return {**columns, **derived}, constraints


def _read_expressions(
    columns: Mapping[str, Column], constraints: Sequence[Constraint | str]
) -> tuple[tuple[Constraint, ...], list[int]]:
    """Return the constraints, expressions parsed, and for each its place in the given list, from 1."""
    coded = {name: column for name, column in columns.items() if isinstance(column, Coded)}
    read: list[Constraint] = []
    places: list[int] = []
    for place, constraint in enumerate(constraints, 1):
        with about_constraint(place):
            read += parse_expression(constraint, coded) if isinstance(constraint, str) else [constraint]
        places += [place] * (len(read) - len(places))
    return tuple(read), places


def add_declared(
    columns: Mapping[str, Column], found: Collection[str], constraints: Sequence[Constraint]
) -> dict[str, Column]:
    """Return the columns, with the values and bounds that constraints need in the columns `found`.

    The values or bounds of these were found under privacy. Values that a constraint names are added. Columns
    that increase get common bounds.
    """
    declared = dict(columns)
    for constraint in constraints:
        declared |= constraint.add_declared(declared, found)  # type: ignore[arg-type]  # only coded columns
    return declared


def computed_by(constraints: Sequence[Constraint]) -> dict[str, Constraint]:
    """Return the columns that are computed, each with its constraint; refuse a column that two compute."""
    computing: dict[str, Constraint] = {}
    for constraint in constraints:
        if (name := constraint.computes) is not None:
            if name in computing:
                raise InputError(f"column {name!r} is computed by two constraints: drop one")
            computing[name] = constraint
    return computing


def in_order(computing: Mapping[str, Constraint]) -> list[str]:
    """Return the computed columns, each after the columns that it is computed from."""
    graph = {
        name: [other for other in constraint.columns if other != name]
        for name, constraint in computing.items()
    }
    with replace_errors("columns are computed from each other in a circle: drop a constraint", CycleError):
        return [name for name in TopologicalSorter(graph).static_order() if name in computing]


@contextmanager
def about_constraint(place: int) -> Iterator[None]:
    """Begin the message of an `InputError` with the place of its constraint in the list."""
    message = ""
    try:
        yield
    except InputError as error:
        message = str(error)
    if message:
        about = "" if message.startswith("constraint ") else f"constraint {place}: "
        raise InputError(f"{about}{message}")
