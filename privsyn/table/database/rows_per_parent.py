"""Rules about the rows of one parent: which one has a value, and how many there are.

They are public.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from privsyn.errors import InputError, did_you_mean, safe_repr
from privsyn.synthesis.limits import RowsWithCode
from privsyn.table.schema.columns import Coded
from privsyn.table.schema.schema import Schema


@dataclass(frozen=True)
class OnlyOne:
    """Requires exactly one of the rows of each parent that has rows to have a value.

    Parameters
    ----------
    column : str
    value : text, number or boolean
    first : bool
        Whether it is the first row, in the order of the table.

    Examples
    --------
    >>> OnlyOne.read("relation == 'head'").value, str(OnlyOne.read("first(relation) == head"))
    ('head', "first(relation) == 'head'")
    """

    column: str
    value: Any
    first: bool = False

    def __str__(self) -> str:
        return f"{f'first({self.column})' if self.first else self.column} == {self.value!r}"

    @classmethod
    def read(cls, rule: object) -> OnlyOne:
        """Return the rule that a text means."""
        if isinstance(rule, cls):
            return rule
        match = ONLY_ONE.fullmatch(rule.strip()) if isinstance(rule, str) else None
        if match is None:
            raise InputError(f"one is a column and a value, as in relation == 'head', not {safe_repr(rule)}")
        value: Any = match["value"]
        with suppress(ValueError, SyntaxError):  # text without quotes
            value = ast.literal_eval(value)
        return cls((match["first"] or match["column"]).strip(" `"), value, match["first"] is not None)

    def in_codes(self, columns: Mapping[str, Coded]) -> RowsWithCode:
        """Return the rule in codes that are not merged."""
        code = int(columns[self.column].number_of(self.value))
        return RowsWithCode(self.column, code, exactly=True, first=self.first)

    def check(self, column: Coded | None) -> None:
        """Refuse a value that the column does not list; None is an unknown column."""
        if column is not None and self.value not in column.listed:
            meant = did_you_mean(self.value, column.listed)
            raise InputError(
                f"one: the schema lists no value {safe_repr(self.value)} of {self.column!r}{meant}"
            )


ONLY_ONE = re.compile(r"(?:first\((?P<first>[^()]+)\)|(?P<column>[^()=]+)) *== *(?P<value>.+)")


def read_children(children: object) -> tuple[int, int | None]:
    """Return the least and the largest number of child rows of each row of the parent.

    >>> read_children("1.."), read_children("1..4"), read_children(2), read_children((0, 3))
    ((1, None), (1, 4), (2, 2), (0, 3))
    """
    ends: Any = children if isinstance(children, list | tuple) else (children, children)
    if isinstance(children, str):
        first, dots, last = (part.strip() for part in children.partition(".."))
        ends = [int(end) if end.isdecimal() else end or None for end in (first, last if dots else first)]
    if len(ends) == 2:
        low, high = 0 if ends[0] is None else ends[0], ends[1]
        if type(low) is int and low >= 0 and (high is None or (type(high) is int and high >= max(low, 1))):
            return low, high
    raise InputError(f"children is a number or a range such as 1.. or 1..4, not {safe_repr(children)}")


def check_only_ones(rules: Sequence[OnlyOne], order: str | None, schema: Schema | None) -> None:
    """Refuse values that no single row of a parent could have, or not for certain the first.

    `order` is the column by which the rows of a parent are in order.
    """
    if len({rule.column for rule in rules}) < len(rules):
        raise InputError("one: a column can have one value that one row of each parent has")
    firsts = [rule for rule in rules if rule.first]
    if firsts and order is None:
        raise InputError(f"one {str(firsts[0])!r}: the rows of the table have no order, so none is the first")
    if firsts and schema is not None and schema.constraints and order in schema.columns:
        raise InputError("one: constraints move rows in the order, so none stays first: leave out first()")
