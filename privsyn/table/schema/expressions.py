"""Read constraints as people write them, such as ``"end >= start"``, as the kinds of constraint there are."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from privsyn.errors import InputError, about
from privsyn.table.schema.box import PRESENT, Box
from privsyn.table.schema.columns import Coded
from privsyn.table.schema.condition import LITERAL, SIGNS, Reader, names_column
from privsyn.table.schema.constraint import CONSTRAINTS, Constraint

LONGEST = 1000
"""Characters of an expression."""

KINDS: Mapping[str, Any] = CONSTRAINTS

LINK = re.compile(rf"{LITERAL.pattern}|\b(implies|iff)\b")


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
        return ExpressionReader(columns).constraints(text)


class ExpressionReader(Reader):
    """Reads expressions, each as the constraints that it means."""

    forms = (
        "write columns in order (start <= end), a sum (total == a + b), the time between dates"
        " (age == years(seen - born)), a copy (paid == billed), or comparisons of columns with values, joined"
        " by and, or, not, implies, iff (age < 15 implies job is missing); rules on the rows of one person"
        " (year rises) stand in a Table, or in the file that you give as the schema"
    )
    two_columns = ""

    def constraints(self, text: str) -> list[Constraint]:
        """Return the constraints of an expression, with or without one implication."""
        text = self.unquoted(text)
        link = next((match for match in LINK.finditer(text) if match[1]), None)
        if link is None:
            return list(self._facts(self.parse(text)))
        lhs, rhs = self.parse(text[: link.start()]), self.parse(text[link.end() :])
        forbidden = self.joined(self.cases(lhs, True), self.cases(rhs, False))
        if link[1] == "iff":
            forbidden += self.joined(self.cases(lhs, False), self.cases(rhs, True))
        return self._forbid(forbidden)

    def _facts(self, node: ast.expr) -> Iterator[Constraint]:
        """Yield the constraints of an expression that holds in every row."""
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
            for part in node.values:
                yield from self._facts(part)
        elif isinstance(node, ast.Compare) and any(
            names_column(a) and names_column(b) for a, b in pairwise([node.left, *node.comparators])
        ):
            yield from self._chain(node)
        else:
            yield from self._forbid(self.cases(node, False))

    def _chain(self, node: ast.Compare) -> Iterator[Constraint]:
        """Yield the constraints of ``a <= b <= c``, of a sum, or of a copy."""
        increasing: list[str] = []
        strict = ""
        for (lhs, rhs), op in zip(pairwise([node.left, *node.comparators]), node.ops, strict=True):
            sign = SIGNS[type(op)]
            if not (names_column(lhs) and names_column(rhs)):
                yield from self._forbid(self.pair(lhs, sign, rhs, False))
            elif sign == "==":
                yield self.computed(lhs, rhs)
            elif sign in ("<", "<=", ">", ">="):
                pair = [self.column(lhs), self.column(rhs)]
                if increasing[-1:] == pair[:1] and strict == sign:
                    increasing.append(pair[1])
                    continue
                if increasing:
                    yield _increasing(increasing, strict)
                increasing, strict = pair, sign
            else:
                raise InputError(f"no kind of constraint compares two columns by {sign}: {self.forms}")
        if increasing:
            yield _increasing(increasing, strict)

    def computed(self, lhs: ast.expr, rhs: ast.expr) -> Constraint:
        """Return the constraint that computes the column that stands alone on one side."""
        if not isinstance(lhs, ast.Name | ast.Attribute):
            lhs, rhs = rhs, lhs
        total = self.column(lhs)
        match rhs:
            case ast.Call(ast.Name(unit), [ast.BinOp(end, ast.Sub(), start)], []):
                return KINDS["elapsed"](
                    column=total, start=self.column(start), end=self.column(end), unit=unit
                )
        factors, constant = self.weighted_sum(rhs)
        if list(factors.values()) == [1] and not constant:
            return KINDS["equal"](columns=(*factors, total))
        return KINDS["total"](column=total, of=factors, constant=constant)

    def weighted_sum(self, node: ast.expr) -> tuple[dict[str, float], float]:
        """Return the factor of each column in a weighted sum, and its constant."""
        match node:
            case ast.BinOp(lhs, ast.Add() | ast.Sub() as op, rhs):
                sign = 1 if isinstance(op, ast.Add) else -1
                factors, constant = self.weighted_sum(lhs)
                added, constant_added = self.weighted_sum(rhs)
                for name, factor in added.items():
                    factors[name] = factors.get(name, 0) + sign * factor
                return factors, constant + sign * constant_added
            case ast.BinOp(lhs, ast.Mult(), rhs):
                number, rest = (lhs, rhs) if not names_column(lhs) else (rhs, lhs)
                factor = self.constant(number)
                factors, constant = self.weighted_sum(rest)
                return {name: factor * weight for name, weight in factors.items()}, factor * constant
            case ast.UnaryOp(ast.USub(), operand):
                factors, constant = self.weighted_sum(operand)
                return {name: -factor for name, factor in factors.items()}, -constant
            case ast.Name() | ast.Attribute():
                return {self.column(node): 1}, 0
            case ast.Constant(int() | float() as number) if not isinstance(number, bool):
                return {}, self.constant(node)
        raise InputError(f"a sum has columns, factors and numbers: {self.forms}")

    def _forbid(self, combinations: list[Box]) -> list[Constraint]:
        """Return the constraints by which no row has one of the combinations."""
        if not combinations:
            raise InputError("it is true of every row: leave it out")
        return [self._forbidden(combination) for combination in combinations]

    def _forbidden(self, combination: Box) -> Constraint:
        present = [name for name, values in combination.items() if values is PRESENT]
        if not present:
            return KINDS["forbidden"](when=dict(combination))
        *filled, column = present
        when = {name: values for name, values in combination.items() if name != column}
        if not when:
            raise InputError(f"{column!r} would be missing in every row: leave the column out")
        for name in filled:
            if not self.columns[name].is_public:
                hint = self.columns[name].public_hint
                raise InputError(f"{name!r}: {hint}, or say when only one column is missing")
            when[name] = self.columns[name].all_values
        return KINDS["missing"](column=column, when=when)


def _increasing(names: list[str], sign: str) -> Constraint:
    columns = names if sign[0] == "<" else names[::-1]
    return KINDS["increasing"](columns=columns, strict=len(sign) == 1)
