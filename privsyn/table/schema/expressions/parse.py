"""Read one expression, and return the constraints that it means."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import reduce
from itertools import chain, pairwise
from typing import Any

from privsyn.errors import InputError, about, did_you_mean
from privsyn.table.schema.columns import Coded
from privsyn.table.schema.constraint import CONSTRAINTS, Constraint
from privsyn.table.schema.expressions.values import OPPOSITE, PRESENT, Values, all_values, both, compared

LONGEST, DEEPEST = 1000, 50
"""Characters of an expression, and levels of its syntax tree."""

MOST = 100
"""Combinations of values that one expression may forbid."""

LARGEST = 1e300

LITERAL = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")
QUOTED = re.compile(rf"{LITERAL.pattern}|`([^`]*)`")
LINK = re.compile(rf"{LITERAL.pattern}|\b(implies|iff)\b")

FORMS = (
    "write columns in order (start <= end), a sum (total == a + b), a copy (paid == billed), or comparisons"
    " of columns with values, joined by and, or, not, implies, iff (age < 15 implies job is missing)"
)

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

Combination = Mapping[str, Values]
"""Values of some columns that occur together."""


def parse_expression(text: str, columns: Mapping[str, Coded]) -> list[Constraint]:
    """Return the constraints that an expression means.

    Parameters
    ----------
    text : str
        Python's comparisons, `and`, `or`, `not`, `is missing`, `implies` and `iff`. Names that are no Python
        names stand in backticks.
    columns : mapping of a name to a column

    Raises
    ------
    InputError
        If it is none of these, or no kind of constraint can keep it.

    Examples
    --------
    >>> from privsyn import Categorical, Numerical
    >>> columns = {"age": Numerical(0, 99, integer=True), "job": Categorical(["a", "b"])}
    >>> parse_expression("age < 15 implies job is missing", columns)
    [MissingWhen(column='job', when=mappingproxy({'age': {'high': 14}}), only=False)]
    """
    with about(repr(text[:100])):
        if len(text) > LONGEST:
            raise InputError(f"an expression has at most {LONGEST} characters")
        return _Reader(columns).constraints(text)


class _Reader:
    """Reads expressions about the columns of one schema."""

    def __init__(self, columns: Mapping[str, Coded]) -> None:
        self.columns = columns
        self.quoted: dict[str, str] = {}

    def constraints(self, text: str) -> list[Constraint]:
        """Return the constraints of an expression, with or without one implication."""
        text = QUOTED.sub(self._unquoted, text)
        link = next((found for found in LINK.finditer(text) if found[1]), None)
        if link is None:
            return list(self._facts(_parse(text)))
        left, right = _parse(text[: link.start()]), _parse(text[link.end() :])
        forbidden = self._joined(self._cases(left, True), self._cases(right, False))
        if link[1] == "iff":
            forbidden += self._joined(self._cases(left, False), self._cases(right, True))
        return self._forbid(forbidden)

    def _unquoted(self, found: re.Match[str]) -> str:
        """Replace a name in backticks by one that Python can read."""
        if found[1] is None:
            return found[0]
        name = f"quoted_{len(self.quoted)}_"
        while name in self.columns:
            name += "_"
        self.quoted[name] = found[1]
        return name

    def _facts(self, node: ast.expr) -> Iterator[Constraint]:
        """Yield the constraints of an expression that holds in every row."""
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
            for part in node.values:
                yield from self._facts(part)
        elif isinstance(node, ast.Compare) and any(
            self._names(a) and self._names(b) for a, b in pairwise([node.left, *node.comparators])
        ):
            yield from self._chain(node)
        else:
            yield from self._forbid(self._cases(node, False))

    def _chain(self, node: ast.Compare) -> Iterator[Constraint]:
        """Yield the constraints of ``a <= b <= c``, of a sum, or of a copy."""
        increasing: list[str] = []
        strict = ""
        for (left, right), op in zip(pairwise([node.left, *node.comparators]), node.ops, strict=True):
            sign = SIGNS[type(op)]
            if not (self._names(left) and self._names(right)):
                yield from self._forbid(self._pair(left, sign, right, False))
            elif sign == "==":
                yield self._computed(left, right)
            elif sign in ("<", "<=", ">", ">="):
                pair = [self._column(left), self._column(right)]
                if increasing[-1:] == pair[:1] and strict == sign:
                    increasing.append(pair[1])
                    continue
                if increasing:
                    yield _increasing(increasing, strict)
                increasing, strict = pair, sign
            else:
                raise InputError(f"no kind of constraint compares two columns by {sign}: {FORMS}")
        if increasing:
            yield _increasing(increasing, strict)

    def _computed(self, left: ast.expr, right: ast.expr) -> Constraint:
        """Return the constraint that computes the column that stands alone on one side."""
        if not isinstance(left, ast.Name):
            left, right = right, left
        total, factors = self._column(left), self._sum(right)
        if list(factors.values()) == [1]:
            return CONSTRAINTS["equal"](columns=(*factors, total))  # type: ignore[call-arg]
        return CONSTRAINTS["total"](column=total, of=factors)  # type: ignore[call-arg]

    def _sum(self, node: ast.expr) -> dict[str, float]:
        """Return the factor of each column in a weighted sum."""
        match node:
            case ast.BinOp(left, ast.Add() | ast.Sub() as op, right):
                sign = 1 if isinstance(op, ast.Add) else -1
                factors = self._sum(left)
                for name, factor in self._sum(right).items():
                    factors[name] = factors.get(name, 0) + sign * factor
                return factors
            case ast.BinOp(left, ast.Mult(), right):
                number, rest = (left, right) if not self._names(left) else (right, left)
                factor = _constant(number)
                return {name: factor * each for name, each in self._sum(rest).items()}
            case ast.UnaryOp(ast.USub(), operand):
                return {name: -factor for name, factor in self._sum(operand).items()}
            case ast.Name():
                return {self._column(node): 1}
        raise InputError(f"a sum has columns, and numbers as factors: {FORMS}")

    def _cases(self, node: ast.expr, truth: bool) -> list[Combination]:
        """Return the combinations of values for which a condition is true, or false.

        A missing cell makes a comparison neither, unless it is with `missing`.
        """
        match node:
            case ast.BoolOp(op, values):
                cases = [self._cases(value, truth) for value in values]
                together = isinstance(op, ast.And) is truth
            case ast.UnaryOp(ast.Not(), operand):
                return self._cases(operand, not truth)
            case ast.Compare(left, ops, comparators):
                pairs = zip(pairwise([left, *comparators]), ops, strict=True)
                cases = [self._pair(a, SIGNS[type(op)], b, truth) for (a, b), op in pairs]
                together = truth
            case _:
                raise InputError(f"it is no comparison: {FORMS}")
        return reduce(self._joined, cases) if together else list(chain.from_iterable(cases))

    def _pair(self, left: ast.expr, sign: str, right: ast.expr, truth: bool) -> list[Combination]:
        """Return the values of a column for which one comparison is true, or false."""
        if not self._names(left) and sign in MIRRORED:
            left, sign, right = right, MIRRORED[sign], left
        name = self._column(left)
        if sign in ("is", "is not"):
            if not (isinstance(right, ast.Name) and right.id == "missing"):
                raise InputError("after 'is' stands 'missing' or 'not missing'; write == for values")
            return [{name: None if (sign == "is") is truth else PRESENT}]
        if self._names(right):
            raise InputError(f"no kind of constraint compares columns under a condition: {FORMS}")
        value = _constants(right) if sign in ("in", "not in") else _constant(right)
        with about(f"column {name!r}"):
            found = compared(self.columns[name], sign if truth else OPPOSITE[sign], value)
        return [{name: values} for values in found]

    def _joined(self, some: list[Combination], others: list[Combination]) -> list[Combination]:
        """Return each combination of `some` together with each of `others`, where they agree."""
        joined: list[Combination] = []
        for one in some:
            for other in others:
                shared = {
                    name: both(self.columns[name], one[name], other[name]) for name in one.keys() & other
                }
                if () not in shared.values():
                    joined.append({**one, **other, **shared})
        if len(joined) > MOST:
            raise InputError(f"it has more than {MOST} combinations of values: split it into several")
        return joined

    def _forbid(self, combinations: list[Combination]) -> list[Constraint]:
        """Return the constraints by which no row has one of the combinations."""
        if not combinations:
            raise InputError("it is true of every row: leave it out")
        return [self._forbidden(combination) for combination in combinations]

    def _forbidden(self, combination: Combination) -> Constraint:
        present = [name for name, values in combination.items() if values is PRESENT]
        if not present:
            return CONSTRAINTS["forbidden"](when=dict(combination))  # type: ignore[call-arg]
        *filled, column = present
        when = {name: values for name, values in combination.items() if name != column}
        if not when:
            raise InputError(f"{column!r} would be missing in every row: leave the column out")
        when |= {name: all_values(name, self.columns[name]) for name in filled}
        return CONSTRAINTS["missing"](column=column, when=when)  # type: ignore[call-arg]

    def _names(self, node: ast.expr) -> bool:
        """Return whether a column is named."""
        return any(isinstance(each, ast.Name) and each.id != "missing" for each in ast.walk(node))

    def _column(self, node: ast.expr) -> str:
        """Return the column that a side of a comparison names."""
        if not isinstance(node, ast.Name):
            raise InputError(f"one side of each comparison is a column alone: {FORMS}")
        name = self.quoted.get(node.id, node.id)
        if name not in self.columns:
            meant = did_you_mean(name, self.columns) or "; text stands in quotes"
            raise InputError(f"the schema has no column {name!r} that is counted{meant}")
        return name


def _increasing(names: list[str], sign: str) -> Constraint:
    columns = names if sign[0] == "<" else names[::-1]
    return CONSTRAINTS["increasing"](columns=columns, strict=len(sign) == 1)  # type: ignore[call-arg]


def _parse(text: str) -> ast.expr:
    """Return the syntax tree; nothing in it is ever run."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise InputError(f"it cannot be read: {FORMS}") from None
    level: list[ast.AST] = [tree]
    for _ in range(DEEPEST):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    if level:
        raise InputError("it is nested too deeply")
    return tree


def _constant(node: ast.expr) -> Any:
    """Return a number, text or boolean."""
    match node:
        case ast.Constant(bool() | str() as value):
            return value
        case ast.Constant(int() | float() as number) if number <= LARGEST:
            return number
        case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as number)) if number <= LARGEST:
            return -number
    raise InputError(f"a value is a number, a text in quotes, True or False: {FORMS}")


def _constants(node: ast.expr) -> tuple[Any, ...]:
    if not isinstance(node, ast.List | ast.Tuple) or not node.elts:
        raise InputError("after 'in' stands a list of values, such as ['a', 'b']")
    return tuple(map(_constant, node.elts))
