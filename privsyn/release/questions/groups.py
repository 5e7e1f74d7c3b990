"""Groups of rows by one column, as conditions in words: each value, or the quarters of its numbers."""

from __future__ import annotations

from itertools import pairwise
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from privsyn.errors import InputError, plural, safe_repr
from privsyn.table.schema.condition import conditions_on_values, quoted

if TYPE_CHECKING:
    from privsyn.release.table_model import TableModel

MOST_GROUPS = 1_000
"""Listed values of a column by which rows are divided; of more, a group is asked with `among`."""

QUARTERS = (0.25, 0.5, 0.75)
"""Shares of the rows at which numbers and times are divided, by the released counts."""


def conditions_by(model: TableModel, column: str) -> list[str]:
    """Return a condition for each group of rows that a column makes, in the words of a question.

    Raises
    ------
    InputError
        If the column has too many values, or no counts of its own.
    """
    kind = model.codec.schema.coded.get(column)
    if kind is None:
        raise InputError(f"column {safe_repr(column)} is not counted: name one from which it follows")
    name = quoted(column)
    missing = [f"{name} is missing"] if kind.nullable else []
    if kind.lists_values:
        if len(kind.listed) > MOST_GROUPS:
            number = plural(len(kind.listed), "value")
            raise InputError(f"column {safe_repr(column)} has {number}: ask for a group with among")
        return conditions_on_values(column, kind) + missing
    quantiles = model.accuracy_.quantiles
    is_quarter = (quantiles["column"] == column) & quantiles["share"].isin(QUARTERS) & quantiles["covered"]
    cuts = quantiles.loc[is_quarter, "estimate"].tolist()
    if getattr(kind, "integer", False):
        cuts = [ceil(cut) for cut in cuts if ceil(cut) > kind.bounds[0]]
    ends = list(dict.fromkeys(map(_in_words, cuts)))
    if not ends:
        raise InputError(f"column {safe_repr(column)} has no released counts to divide it")
    between = [f"{name} >= {low} and {name} < {high}" for low, high in pairwise(ends)]
    return [f"{name} < {ends[0]}", *between, f"{name} >= {ends[-1]}", *missing]


def _in_words(cut: object) -> str:
    """Return a number or a time as a condition has it.

    >>> _in_words(12345), _in_words(2.53456), _in_words(1234567.8)
    ('12345', '2.535', '1235000')
    """
    if isinstance(cut, int):
        return str(cut)
    if isinstance(cut, float):
        return np.format_float_positional(cut, 4, fractional=False, trim="-")
    return repr(str(cut).removesuffix(" 00:00:00"))
