"""What in constraints contradicts the columns or each other, and is refused when a codec is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from privsyn.errors import InputError, safe_repr
from privsyn.table.enforcement.compile import rulebook_of, rules_of, scales_of
from privsyn.table.enforcement.ranges import bounds_of
from privsyn.table.enforcement.repair import TooManyError
from privsyn.table.schema.columns import Categorical, Coded
from privsyn.table.schema.constraints import Constraint, Determined, Increasing
from privsyn.table.schema.derived import about_constraint


def check_constraints(columns: Mapping[str, Coded], constraints: Sequence[Constraint]) -> None:
    """Refuse constraints that name what a column does not have, or that no row can keep."""
    known = {name: column for name, column in columns.items() if column.is_public}
    for place, constraint in enumerate(constraints, 1):
        if set(constraint.columns) <= set(known):
            with about_constraint(place):
                rules_of(known, constraint)
                if isinstance(constraint, Determined):
                    _check_mapping(known, constraint)
                if isinstance(constraint, Increasing):
                    _check_bounds(known, constraint)
    decided = tuple(c for c in constraints if set(c.columns) <= set(known))
    book = rulebook_of(known, decided)
    for names, _ in book.parts:
        with suppress(TooManyError):
            if book.example(names, {}, {}) is None:
                raise InputError(
                    f"the constraints on {', '.join(names)} contradict each other: no row can keep them all"
                )


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
                f"the mapping does not say what {constraint.column!r} is where {first!r} is "
                f"{safe_repr(left[0])}"
            )
    for name in constraint.by:
        if columns[name].nullable and not columns[constraint.column].nullable:
            raise InputError(
                f"{name!r} may be missing, and {constraint.column!r} with it: say nullable alike of both"
            )


def _check_bounds(columns: Mapping[str, Coded], constraint: Increasing) -> None:
    """No column begins above the end of a later one."""
    scales = scales_of(columns, constraint.columns)
    ends = [bounds_of(columns[n]) for n in constraint.columns]
    for j, name in enumerate(constraint.columns):
        for k in range(j + 1, len(ends)):
            low, high = ends[j][0] * scales[j], ends[k][1] * scales[k]
            if low > high or (constraint.strict and low == high):
                raise InputError(
                    f"{name!r} begins above the end of {constraint.columns[k]!r}: mend the bounds"
                )
