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
from types import MappingProxyType
from typing import Any, Final, Self

import numpy as np

from privsyn.errors import InputError, about, did_you_mean, safe_repr
from privsyn.marginals.domain import Floats, Mask, Numbers, keep
from privsyn.table.kinds.column_settings import plain_value
from privsyn.table.kinds.ordinal import ends_of
from privsyn.table.schema.columns import Coded
from privsyn.table.schema.constraint import Columns, check_names, python_value

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

PRESENT: Final = "any value that is not missing"

Values = Any
"""Listed values, a range ``{"low": a, "high": b}`` with one end or both, `PRESENT`, or None for missing."""

Box = Mapping[str, Values]
"""Values of some columns that occur together."""

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

SINGLE = 1.5  # steps between the limits of a condition that leave a single point

NO_COLUMN = "the schema has no column {} that is counted"
"""Of a condition or a rule that names something else."""


@dataclass(frozen=True, eq=False)
class Span:
    """Disjoint closed intervals in increasing order, with or without missing cells.

    Examples
    --------
    >>> span = Span(np.array([0.0, 5.0]), np.array([2.0, 5.0]), missing=True)
    >>> span.holds(np.array([1.0, 3.0, 5.0, np.nan])).tolist()
    [True, False, True, True]
    """

    lows: Floats
    highs: Floats
    missing: bool

    def __post_init__(self) -> None:
        keep(self, "lows", "highs", dtype=np.float64)
        if self.lows.ndim != 1 or self.lows.shape != self.highs.shape:
            raise ValueError(f"{self.lows.shape} low ends, {self.highs.shape} high ones")

    @classmethod
    def of(cls, column: Coded, values: Values) -> Self:
        """Return the numbers of the values of a box."""
        if values is PRESENT:
            return cls(np.array([-np.inf]), np.array([np.inf]), missing=False)
        if isinstance(values, Mapping):
            return cls(*column.intervals_of(values), missing=False)
        values = values if isinstance(values, tuple) else (values,)
        numbers = np.unique([column.number_of(value) for value in values if value is not None])
        return cls(numbers, numbers, missing=None in values)

    @property
    def is_about_missing(self) -> bool:
        """Whether the span holds all missing cells and no others, or all others and none that is missing."""
        present = self.lows.tolist() == [-np.inf] and self.highs.tolist() == [np.inf]
        return present is not self.missing and (present or not len(self.lows))

    def holds(self, numbers: Floats) -> Mask:
        """Return which of the numbers are in the span."""
        return np.where(np.isnan(numbers), self.missing, self.covers(numbers, numbers))

    def covers(self, lows: Floats, highs: Floats) -> Mask:
        """Return which intervals lie completely within the span; NaN does if missing cells do."""
        if not len(self.lows):
            return np.isnan(lows) & self.missing
        last = np.searchsorted(self.lows, lows, side="right") - 1
        inside = (last >= 0) & (highs <= self.highs[last])
        return np.where(np.isnan(lows), self.missing, inside)

    def intersection(self, span: Self) -> Self:
        """Return the numbers, and missing cells, that are in both spans.

        >>> ages = Span([0.0, 50.0], [40.0, 60.0], missing=True)
        >>> ages = ages.intersection(Span([30.0], [55.0], missing=False))
        >>> ages.lows.tolist(), ages.highs.tolist(), ages.missing
        ([30.0, 50.0], [40.0, 55.0], False)
        """
        lows = np.maximum.outer(self.lows, span.lows).ravel()
        highs = np.minimum.outer(self.highs, span.highs).ravel()
        is_some, missing = lows <= highs, self.missing and span.missing
        return type(self)(lows[is_some], highs[is_some], missing=missing)

    def touches(self, lows: Floats, highs: Floats) -> Mask:
        """Return which intervals share a number with the span; NaN does if missing cells are in it.

        >>> span = Span(np.array([0.0, 5.0]), np.array([2.0, 5.0]), missing=False)
        >>> span.touches(np.array([2.0, 3.0, 4.0, np.nan]), np.array([3.0, 4.0, 9.0, np.nan])).tolist()
        [True, False, True, False]
        """
        if not len(self.lows):
            return np.isnan(lows) & self.missing
        first = np.searchsorted(self.highs, lows)
        shared = (first < len(self.highs)) & (self.lows[np.minimum(first, len(self.lows) - 1)] <= highs)
        return np.where(np.isnan(lows), self.missing, shared)

    def picks(self, lows: Floats, highs: Floats, step: float) -> Mask:
        """Return in which intervals the span holds a single point, a range inside, or all but these.

        >>> span = Span(np.array([5.0]), np.array([7.0]), missing=False)
        >>> lows, highs = np.array([0.0, 0, 6, 7, 5]), np.array([9.0, 6, 9, 9, 7])
        >>> span.picks(lows, highs, 1.0).tolist()
        [True, False, False, True, False]
        """
        starts = (self.lows > lows[:, np.newaxis]) & (self.lows <= highs[:, np.newaxis])
        stops = (self.highs >= lows[:, np.newaxis]) & (self.highs < highs[:, np.newaxis])
        below = np.hstack([self.lows - lows[:, np.newaxis], step + self.highs - lows[:, np.newaxis]])
        above = np.hstack([step + highs[:, np.newaxis] - self.lows, highs[:, np.newaxis] - self.highs])
        limits = np.hstack([starts, stops])
        single = (limits & (np.minimum(below, above) < SINGLE * step)).any(axis=1)
        return np.asarray(single | (limits.sum(axis=1) > 1))

    @property
    def outside(self) -> Self:
        """All numbers outside the span, without missing: a missing cell keeps a constraint."""
        lows = np.append(-np.inf, np.nextafter(self.highs, np.inf))
        highs = np.append(np.nextafter(self.lows, -np.inf), np.inf)
        return type(self)(lows, highs, missing=False)


ALL = Span(np.array([-np.inf]), np.array([np.inf]), missing=True)
"""All values."""


def spans_of(columns: Columns, box: Box) -> dict[str, Span]:
    """Return the numbers of each column of a box."""
    spans = {}
    for name, values in box.items():
        with about(f"column {name!r}"):
            spans[name] = Span.of(columns[name], values)
    return spans


def in_all(spans: Mapping[str, Span], numbers: Numbers) -> Mask:
    """Return which rows lie in the span of every column."""
    return reduce(np.logical_and, (span.holds(numbers[name]) for name, span in spans.items()))


def check_box(subject: str, box: object) -> Box:
    """Return a box that a person wrote in normal form, read-only; `subject` names the setting in errors."""
    if not isinstance(box, Mapping) or not box:
        raise InputError(f'{subject}: give a mapping of columns to values, such as {{"married": "no"}}')
    check_names(subject, tuple(box))
    normal_form = {}
    for name, values in box.items():
        with about(f"{subject}: {name!r}"):
            normal_form[name] = check_values(values)
            if isinstance(
                normal_form[name], Mapping
            ):  # ends as they are written, so that they are equal when read
                normal_form[name] = plain_value(subject, normal_form[name])
    return MappingProxyType(normal_form)


def check_values(values: object) -> Values:
    """Return the values of one column of a box in normal form."""
    if isinstance(values, Mapping):
        ends = {end: python_value(value) for end, value in values.items() if value is not None}
        if not ends or set(values) - {"low", "high"}:
            raise InputError("a range has low, high or both")
        return ends
    if isinstance(values, list | set | frozenset | tuple):
        return tuple(python_value(value) for value in values)
    return python_value(values)


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
        return name and f"a name such as {name} stands in backticks: `{name}`"

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
