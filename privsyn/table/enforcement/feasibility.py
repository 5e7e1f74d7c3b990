"""Refuse constraints that contradict the columns or each other, and find the rows that break one."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from privsyn.errors import InputError
from privsyn.marginals.types import Mask
from privsyn.table.enforcement.repair import Repair, TooManyError
from privsyn.table.enforcement.rules import Numbers
from privsyn.table.schema.constraint import Columns, Constraint, about_constraint


def check_constraints(columns: Columns, constraints: Sequence[Constraint]) -> None:
    """Refuse constraints that name a value outside its column, or that no row can keep."""
    known = {name: column for name, column in columns.items() if column.is_public}
    decided = [constraint for constraint in constraints if set(constraint.columns) <= set(known)]
    for constraint in decided:
        with about_constraint(constraints.index(constraint) + 1):
            constraint.rules(known)
            constraint.check(known)
    repair = Repair.of(known, decided)
    for names, _ in repair.parts:
        with suppress(TooManyError):
            if repair.example(names, {}, {}) is None:
                about = [
                    str(place)
                    for place, one in enumerate(constraints, 1)
                    if one in decided and not {*names}.isdisjoint(one.columns)
                ]
                which, what = ("s", "one of them") if len(about) > 1 else ("", "it")
                raise InputError(
                    f"no row can keep constraint{which} {', '.join(about)} on {', '.join(names)}:"
                    f" correct or delete {what}"
                )


def rows_that_keep(columns: Columns, constraint: Constraint, numbers: Numbers) -> Mask:
    """Return which rows keep a constraint.

    A row keeps a computed column if the given or the computed number is missing, or if they differ by at most
    the tolerance. Private.
    """
    kept = np.ones(len(numbers[constraint.columns[0]]), np.bool_)
    for rule in constraint.rules(columns):
        kept &= rule.holds(numbers)
    if (name := constraint.computes) is not None:
        computation = constraint.computation(columns)
        error = np.abs(computation.make(numbers) - numbers[name])
        kept &= ~(error > computation.tolerance(columns[name], numbers))  # NaN breaks no constraint
    return kept
