"""Condition: which rows are meant, from a mapping of columns to values or from text such as ``"age >= 65"``.

A condition is a union of boxes. A box has values for some columns: one, a tuple of them, or a range, where
None is a missing cell. As numbers the values of a column are a `Span`. A listed value is its place in the
list, a date is in days or seconds since 1970, and a missing cell is NaN.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain, islice, pairwise
from typing import Any, Self

import numpy as np

from privsyn.errors import InputError, about, did_you_mean, safe_repr
from privsyn.marginals.domain import Mask, Numbers
from privsyn.table.kinds.column_settings import plain_value
from privsyn.table.kinds.ordinal import ends_of
from privsyn.table.schema.box import PRESENT, Box, Span, Values, in_all, spans_of
from privsyn.table.schema.columns import Coded
from privsyn.table.schema.constraint import Columns

DEEPEST = 50
"""Levels of the syntax tree of a text."""

MOST_BOXES = 100
"""Boxes that a text may join to."""

LONGEST_TEXT = 10_000
"""Characters of a text: the time to find what is quoted grows with their square."""

LARGEST = 1e300

LITERAL = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")
QUOTED = re.compile(rf"{LITERAL.pattern}|`([^`]*)`")

ASSIGNED = re.compile(r"(?<![=<>!])=(?!=)")
"""One sign of equality, where Python has two."""


SIGNS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.In: "in",
    ast.NotIn: "not in",
    ast.Is: "is",
    ast.IsNot: "is not",
}
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
OPPOSITE = {"==": "!=", "<": ">=", "<=": ">", "in": "not in"}
OPPOSITE |= {opposite: sign for sign, opposite in OPPOSITE.items()}


NO_COLUMN = "the schema has no column {} that is counted"
"""Of a condition or a rule that names something else."""

IN_BACKTICKS = "a name such as {0} stands in backticks: `{0}`"


@dataclass(frozen=True, eq=False)
class Condition:
    """A condition on the rows of a table.

    Parameters
    ----------
    columns : frozenset of str
        The columns that it names.
    boxes : tuple of mappings of a column to a Span
        A row meets the condition if it lies in one of them.
    uncounted : bool
        Whether the condition names a number beyond the bounds, to which numbers are clipped.
    unlisted : tuple of (column, value)
        The values that no row can have, because their columns do not list them.
    replaced : tuple of (column, value)
        The values that `other` may have replaced: the boxes take no row to have them.
    extremes : tuple of Condition
        If there are any: the condition if no row with `other`, and if each, makes these comparisons true.
    """

    columns: frozenset[str]
    boxes: tuple[Mapping[str, Span], ...]
    uncounted: bool = False
    unlisted: tuple[tuple[str, Any], ...] = ()
    replaced: tuple[tuple[str, Any], ...] = ()
    extremes: tuple[Condition, ...] = ()

    @classmethod
    def read(cls, text: str, columns: Columns) -> Self:
        """Return the condition that a text means, about columns whose values or bounds are known.

        A value that is not in a list is that of no row.

        >>> from privsyn import Categorical, Numerical
        >>> columns = {"age": Numerical(0, 99, integer=True), "sex": Categorical(["F", "M"])}
        >>> condition = Condition.read("age >= 65 and not sex == 'F'", columns)
        >>> condition.holds({"age": np.array([70.0, 70.0]), "sex": np.array([1.0, np.nan])}).tolist()
        [True, False]
        """
        with about(f"{safe_repr(text)} is no condition"):
            reader = Reader(columns, strict=False)
            condition = cls._of(reader, text)
            ends = (Reader(columns, strict=False, meets=meets) for meets in (False, True))
            extremes = tuple(cls._of(end, text) for end in ends) if condition.replaced else ()
            return replace(condition, extremes=extremes)

    @classmethod
    def _of(cls, reader: Reader, text: str) -> Self:
        boxes = reader.boxes(text)
        return cls(
            frozenset(reader.named),
            tuple(spans_of(reader.columns, box) for box in boxes if () not in box.values()),
            reader.uncounted,
            tuple(reader.unlisted),
            tuple(reader.replaced),
        )

    def renamed(self, names: Mapping[str, str]) -> Condition:
        """Return the condition on columns of other names; those that `names` lacks keep theirs."""
        boxes = tuple({names.get(name, name): span for name, span in box.items()} for box in self.boxes)
        unlisted, replaced = (
            tuple((names.get(name, name), value) for name, value in values)
            for values in (self.unlisted, self.replaced)
        )
        return Condition(
            frozenset(names.get(name, name) for name in self.columns),
            boxes,
            self.uncounted,
            unlisted,
            replaced,
            tuple(extreme.renamed(names) for extreme in self.extremes),
        )

    def holds(self, numbers: Numbers) -> Mask:
        """Return which rows meet the condition."""
        none = np.zeros(len(next(iter(numbers.values()))), np.bool_)
        return reduce(np.logical_or, (in_all(box, numbers) for box in self.boxes), none)


NO_CONDITION = Condition(frozenset(), ())
"""Stands for no condition: all rows meet it."""


class Reader:
    """Reads text about the columns of one schema: comparisons of columns with values, as boxes.

    Parameters
    ----------
    columns : mapping of a name to a column
    strict : bool
        Whether values that a column does not list are refused; else they are those of no row.
    meets : bool, optional
        Whether all rows, or no row, with `other` meet a comparison with a value that it may have replaced.
        Default: they do not have the value.
    """

    forms = (
        "write comparisons of columns with values, such as age >= 65 and sex == 'Female', joined by and, or,"
        " not"
    )
    two_columns = "; to compare two columns, take the mean over the tables of draws(20)"

    def __init__(self, columns: Columns, *, strict: bool = True, meets: bool | None = None) -> None:
        self.columns, self.strict, self.meets = columns, strict, meets
        self.quoted: dict[str, str] = {}
        self.named: set[str] = set()
        self.uncounted, self.unlisted, self.replaced = False, list[tuple[str, Any]](), list[tuple[str, Any]]()

    def boxes(self, text: str) -> list[Box]:
        """Return the boxes that a text means."""
        return self.cases(self.parse(self.unquoted(text)), True)

    def unquoted(self, text: object) -> str:
        """Return text in which each name in backticks is replaced by one that Python can read."""
        if not isinstance(text, str):
            raise InputError(f"it is no text: {self.forms}")
        if len(text) > LONGEST_TEXT:
            raise InputError(f"it is longer than {LONGEST_TEXT:,} characters")
        return QUOTED.sub(self._name_for, text)

    def _name_for(self, match: re.Match[str]) -> str:
        if match[1] is None:
            return match[0]
        name = f"quoted_{len(self.quoted)}_"
        while name in self.columns:
            name += "_"
        self.quoted[name] = match[1]
        return name

    def parse(self, text: str) -> ast.expr:
        """Return the syntax tree; nothing in it is ever run."""
        try:
            tree = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            raise InputError(f"it cannot be read: {self._hint(text) or self.forms}") from None
        level: list[ast.AST] = [tree]
        for _ in range(DEEPEST):
            level = [child for node in level for child in ast.iter_child_nodes(node)]
        if level:
            raise InputError("it is nested too deeply")
        return tree

    def _hint(self, text: str) -> str:
        """Return what to write in place of a usual mistake; "" if there is none."""
        if ASSIGNED.search(LITERAL.sub("", text)):
            return "write == for 'is equal to'"
        unreadable = [name for name in self.columns if not name.isidentifier() and name in text]
        name = max(unreadable, key=len, default="")
        return name and IN_BACKTICKS.format(name)

    def cases(self, node: ast.expr, truth: bool) -> list[Box]:
        """Return the boxes in which a condition is true, or false.

        A missing cell makes a comparison neither, unless it is with `missing`.
        """
        match node:
            case ast.BoolOp(op, values):
                boxes = [self.cases(value, truth) for value in values]
                together = isinstance(op, ast.And) is truth
            case ast.BinOp(lhs, ast.BitAnd() | ast.BitOr() as either, rhs):  # as pandas writes them
                boxes = [self.cases(lhs, truth), self.cases(rhs, truth)]
                together = isinstance(either, ast.BitAnd) is truth
            case ast.UnaryOp(ast.Not() | ast.Invert(), operand):
                return self.cases(operand, not truth)
            case ast.Compare(lhs, ops, comparators):
                pairs = zip(pairwise([lhs, *comparators]), ops, strict=True)
                boxes = [self.pair(a, SIGNS[type(op)], b, truth) for (a, b), op in pairs]
                together = truth
            case ast.Name() if words := _words_of_truth(self.columns[self.column(node)]):
                return [{self.column(node): words[truth]}]
            case ast.Name():
                name = self.column(node)
                raise InputError(
                    f"{name!r} alone is no comparison, for it is not true or false: {self.forms}"
                )
            case _:
                raise InputError(f"it is no comparison: {self.forms}")
        return reduce(self.joined, boxes) if together else _few(chain.from_iterable(boxes))

    def pair(self, lhs: ast.expr, sign: str, rhs: ast.expr, truth: bool) -> list[Box]:
        """Return the boxes in which one comparison is true, or false."""
        if not names_column(lhs) and sign in MIRRORED:
            lhs, sign, rhs = rhs, MIRRORED[sign], lhs
        name = self.column(lhs)
        if sign in ("is", "is not"):
            if not (isinstance(rhs, ast.Name) and rhs.id == "missing"):
                raise InputError("after 'is' stands 'missing' or 'not missing'; write == for values")
            return [{name: None if (sign == "is") is truth else PRESENT}]
        if names_column(rhs):
            if isinstance(rhs, ast.Name) and self.quoted.get(rhs.id, rhs.id) not in self.columns:
                raise InputError(f"text stands in quotes: {name} {sign} {rhs.id!r}")
            raise InputError(
                f"a condition compares a column with values, not with another: {self.forms}{self.two_columns}"
            )
        column, sign = self.columns[name], sign if truth else OPPOSITE[sign]
        values = self._constants(rhs) if sign in ("in", "not in") else (self.constant(rhs),)
        values = tuple(map(column.constant_of, values))
        with about(f"column {name!r}"):
            if not self.strict:
                self.uncounted |= _are_uncounted(column, values)
                if column.lists_values and sign in ("==", "!=", "in", "not in"):
                    missed = [(name, value) for value in values if value not in column.listed]
                    (self.unlisted if column.other is None else self.replaced).extend(missed)
                    values = tuple(value for value in values if value in column.listed)
                    has_other = self.meets is (sign in ("==", "in"))  # `other` joins the values compared
                    if missed and has_other and column.other in column.listed:
                        sign, values = ("in" if sign in ("==", "in") else "not in"), (*values, column.other)
            return [{name: matching} for matching in column.compared(sign, values)]

    def joined(self, first: list[Box], second: list[Box]) -> list[Box]:
        """Return each box of the first list together with each box of the second, where they agree."""
        return _few(self._joined(first, second))

    def _joined(self, first: list[Box], second: list[Box]) -> Iterator[Box]:
        for box in first:
            for other_box in second:
                shared = {
                    name: _shared(self.columns[name], box[name], other_box[name])
                    for name in box.keys() & other_box
                }
                if () not in shared.values():
                    yield {**box, **other_box, **shared}

    def column(self, node: ast.expr) -> str:
        """Return the column that a side of a comparison names."""
        if isinstance(node, ast.Attribute):
            if (name := ast.unparse(node)) in self.columns:
                raise InputError(IN_BACKTICKS.format(name))
            raise InputError("it names a table: give it to Table(..., constraints=[...]), not to the schema")
        if not isinstance(node, ast.Name):
            raise InputError(f"one side of each comparison is a column alone: {self.forms}")
        name = self.quoted.get(node.id, node.id)
        if name not in self.columns:
            meant = did_you_mean(name, self.columns) or "; text stands in quotes"
            raise InputError(f"{NO_COLUMN.format(repr(name))}{meant}")
        self.named.add(name)
        return name

    def constant(self, node: ast.expr) -> Any:
        """Return a number, text or boolean."""
        match node:
            case ast.Constant(bool() | str() as value):
                return value
            case ast.Constant(int() | float() as number) if number <= LARGEST:
                return number
            case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as number)) if number <= LARGEST:
                return -number
        raise InputError(f"a value is a number, a text in quotes, True or False: {self.forms}")

    def _constants(self, node: ast.expr) -> tuple[Any, ...]:
        if not isinstance(node, ast.List | ast.Tuple) or not node.elts:
            raise InputError("after 'in' stands a list of values, such as ['a', 'b']")
        return tuple(map(self.constant, node.elts))


def _words_of_truth(column: Coded) -> dict[bool, tuple[Any, ...]]:
    """Return the listed values that mean False and True, also as text; empty if one is not listed.

    >>> from privsyn import Categorical
    >>> _words_of_truth(Categorical(["no", "yes"])), _words_of_truth(Categorical(["FALSE", "TRUE"]))
    ({}, {False: ('FALSE',), True: ('TRUE',)})
    """
    if any(isinstance(value, bool) for value in column.listed):
        return {False: (False,), True: (True,)}
    words = {
        truth: tuple(value for value in column.listed if str(value).casefold() == str(truth).casefold())
        for truth in (False, True)
    }
    return words if all(words.values()) else {}


def names_column(node: ast.expr) -> bool:
    """Return whether a part of an expression names a column."""
    return any(isinstance(part, ast.Name) and part.id != "missing" for part in ast.walk(node))


def _are_uncounted(column: Coded, values: tuple[Any, ...]) -> bool:
    """Return whether a number is beyond the bounds.

    >>> from privsyn import Numerical
    >>> [_are_uncounted(Numerical(0, 99), (number,)) for number in (99, 100)]
    [False, True]
    """
    if column.lists_values:
        return False
    low, high = column.bounds
    return any(not low <= column.number_of(value) <= high for value in values)


def _few(boxes: Iterable[Box]) -> list[Box]:
    """Return the boxes as a list; refuse too many before they are made."""
    few = list(islice(boxes, MOST_BOXES + 1))
    if len(few) > MOST_BOXES:
        raise InputError(f"it has more than {MOST_BOXES} combinations of values: split it into several")
    return few


def _shared(column: Coded, first: Values, second: Values) -> Values:
    """Return what two sets of values share; an empty tuple if they share nothing.

    >>> from privsyn import Numerical
    >>> _shared(Numerical(0, 99), {"low": 3}, {"low": 5, "high": 9})
    {'low': 5, 'high': 9}
    >>> _shared(Numerical(0, 99), {"low": 3}, (1, 4)), _shared(Numerical(0, 99), None, PRESENT)
    ((4,), ())
    """
    if first is None or second is None:
        return None if first is second else ()
    if first is PRESENT or second is PRESENT:
        return second if first is PRESENT else first
    if isinstance(first, tuple) or isinstance(second, tuple):
        listed, rest = (first, second) if isinstance(first, tuple) else (second, first)
        if isinstance(rest, tuple):
            return tuple(value for value in listed if value in rest)
        span = Span.of(column, rest)
        return tuple(value for value in listed if span.holds(np.array([column.number_of(value)]))[0])
    lows = [ends["low"] for ends in (first, second) if "low" in ends]
    highs = [ends["high"] for ends in (first, second) if "high" in ends]
    low = max(lows, key=column.number_of, default=None)
    high = min(highs, key=column.number_of, default=None)
    crossed = None not in (low, high) and column.number_of(low) > column.number_of(high)
    return () if crossed else ends_of(low, high)


def conditions_on_values(column: str, kind: Coded) -> list[str]:
    """Return a condition for each listed value of a column."""
    return [f"{quoted(column)} == {plain_value(column, value)!r}" for value in kind.listed]


def quoted(column: str) -> str:
    """Return the name of a column as a condition has it.

    >>> quoted("age"), quoted("years at school")
    ('age', '`years at school`')
    """
    return column if column.isidentifier() else f"`{column}`"


def bare_name(text: str) -> str:
    """Return the name of a column that stands in backticks or not; of a longer text all.

    >>> bare_name("`years at school`"), bare_name("age"), bare_name("`a` == 1 or 2 == `b`")
    ('years at school', 'age', '`a` == 1 or 2 == `b`')
    """
    match = QUOTED.fullmatch(text)
    return text if match is None or match[1] is None else match[1]
