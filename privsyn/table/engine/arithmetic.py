"""Write arithmetic in SQL by running NumPy's own code on expressions in place of arrays.

A function such as `RowCells.positions` computes with arrays of doubles. `Traced` stands for such an array:
each operator and function of NumPy returns the expression of the same operation. All engines compute doubles
as IEEE 754 says, so the numbers are the same to the last bit. NaN is NULL.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np

from privsyn.table.engine.expressions import case
from privsyn.table.engine.sqlglot_later import exp

RINT = "PRIVSYN_RINT"
"""The function of SQLite that rounds; see `rint`."""

HALF_EVEN = {"postgres": "ROUND", "spark": "RINT", "sqlite": RINT}
"""Functions that round doubles to whole numbers, half to even. `ROUND` of others rounds half away from 0."""

LONG = 1000
"""Parts of an expression from which on it becomes a column of its own. SQLite nests some ten subqueries."""

WHOLE = 2.0**52
"""From here on every double is a whole number. Added and taken away again, it rounds smaller ones."""


class Traced(np.lib.mixins.NDArrayOperatorsMixin):
    """A column of doubles, or of truth values, as an expression.

    Parameters
    ----------
    sql : sqlglot expression
    dialect : str
    keep : callable, optional
        Returns a column that a subquery computes, in place of a long expression: others copy it.

    Examples
    --------
    >>> from sqlglot import column
    >>> np.rint(Traced(column("x"), "spark") / 10).sql.sql("spark")
    "RINT((x / CAST('10.0' AS DOUBLE)))"
    """

    def __init__(
        self, sql: exp.Expr, dialect: str, keep: Callable[[exp.Expr], exp.Expr] | None = None
    ) -> None:
        is_long = keep is not None and sum(1 for _ in islice(sql.walk(), LONG)) == LONG
        self.sql = keep(sql) if keep is not None and is_long else sql
        self.dialect, self.keep = dialect, keep

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """Return the expression of an operator."""
        if method != "__call__" or options or ufunc not in UFUNCS:
            return NotImplemented
        return Traced(UFUNCS[ufunc](self, *map(self._sql, inputs)), self.dialect, self.keep)

    def __array_function__(
        self, function: Callable[..., Any], _types: Any, inputs: Any, options: dict[str, Any]
    ) -> Any:
        """Return the expression of a function."""
        if options or function not in FUNCTIONS:
            return NotImplemented
        return Traced(FUNCTIONS[function](self, *map(self._sql, inputs)), self.dialect, self.keep)

    def _sql(self, value: Any) -> exp.Expr:
        """Return an operand: an expression, a truth value or a number."""
        if isinstance(value, Traced):
            return value.sql.copy()
        if isinstance(value, bool | np.bool_):
            return exp.true() if value else exp.false()
        return literal(float(value))

    def rint(self, sql: exp.Expr) -> exp.Expr:
        """Return a number rounded to a whole one, half to even."""
        if name := HALF_EVEN.get(self.dialect):
            return exp.Anonymous(this=name, expressions=[sql])
        if self.dialect == "duckdb":  # a cast rounds half to even, three times as fast as ROUND_EVEN
            integer = exp.TryCast(this=sql.copy(), to=exp.DataType(this=exp.DType.BIGINT))
            # From 2^63 on all are whole
            return exp.Coalesce(this=exp.cast(integer, "double"), expressions=[sql])
        limit, zero = literal(WHOLE), literal(0.0)
        above = exp.paren(exp.Add(this=sql.copy(), expression=limit.copy()))
        below = exp.paren(exp.Sub(this=sql.copy(), expression=limit.copy()))
        is_whole = exp.GTE(this=exp.Abs(this=sql.copy()), expression=limit.copy())
        is_positive = exp.GTE(this=sql.copy(), expression=zero)
        rounded = exp.Sub(this=above, expression=limit.copy())
        return case([(is_whole, sql), (is_positive, rounded)], exp.Add(this=below, expression=limit))


def rint(number: float | None) -> float | None:
    """Return a number rounded to a whole one, half to even, for SQLite.

    >>> [rint(2.5), rint(-0.5), rint(1e300), rint(None)]
    [2.0, -0.0, 1e+300, None]
    """
    return None if number is None else float(np.rint(number))


def literal(number: float) -> exp.Expr:
    """Return a double in SQL; NULL for NaN.

    >>> literal(0.1).sql(), literal(np.nan).sql()
    ("CAST('0.1' AS DOUBLE)", 'NULL')
    """
    return exp.null() if np.isnan(number) else exp.cast(exp.Literal.string(repr(number)), "double")


def _compared(name: str, first: exp.Expr, second: exp.Expr) -> exp.Expr:
    """Return a comparison of two expressions, which are copied."""
    return getattr(exp, name)(this=first.copy(), expression=second.copy())


def _operator(name: str) -> Callable[[Traced, exp.Expr, exp.Expr], exp.Expr]:
    return lambda _, first, second: exp.paren(getattr(exp, name)(this=first, expression=second))


def _either(is_first: str, is_second: str) -> Callable[[Traced, exp.Expr, exp.Expr], exp.Expr]:
    """Return how the operand is chosen for which a comparison holds; NULL if one is NULL."""
    return lambda _, first, second: case(
        [(_compared(is_first, first, second), first), (_compared(is_second, first, second), second)],
        exp.null(),
    )


_larger, _smaller = _either("GTE", "LT"), _either("LTE", "GT")


def _larger_known(traced: Traced, first: exp.Expr, second: exp.Expr) -> exp.Expr:
    if isinstance(first, exp.Null):
        return second
    first_missing, second_missing = (operand.copy().is_(exp.null()) for operand in (first, second))
    return case(
        [(first_missing, second.copy()), (second_missing, first.copy())], _larger(traced, first, second)
    )


def _next_whole(is_beyond: str, operator: str) -> Callable[[Traced, exp.Expr], exp.Expr]:
    """Return how a number is rounded down or up: to the nearest whole number, moved by 1 if it is beyond."""

    def write(traced: Traced, sql: exp.Expr) -> exp.Expr:
        rounded = traced.rint(sql)
        moved = getattr(exp, operator)(this=exp.paren(rounded.copy()), expression=literal(1.0))
        return case([(_compared(is_beyond, rounded, sql), moved)], rounded)

    return write


def _where(_: Traced, condition: exp.Expr, then: exp.Expr, default: exp.Expr) -> exp.Expr:
    """Return a choice; one of several branches, if the other one is a choice: SQLite nests few."""
    if isinstance(default, exp.Case):
        branches = [(branch.this, branch.args["true"]) for branch in default.args["ifs"]]
        return case([(condition, then), *branches], default.args["default"])
    return case([(condition, then)], default)


def _round(traced: Traced, sql: exp.Expr, decimals: exp.Expr) -> exp.Expr:
    """Return what NumPy computes: multiply, round to a whole number, divide."""
    power = literal(10.0 ** float(decimals.this.name))
    rounded = traced.rint(exp.Mul(this=sql, expression=power.copy()))
    return exp.paren(exp.Div(this=rounded, expression=power, typed=False, safe=False))


UFUNCS: dict[np.ufunc, Callable[..., exp.Expr]] = {
    np.add: _operator("Add"),
    np.subtract: _operator("Sub"),
    np.multiply: _operator("Mul"),
    np.true_divide: _operator("Div"),
    np.less: _operator("LT"),
    np.less_equal: _operator("LTE"),
    np.greater: _operator("GT"),
    np.greater_equal: _operator("GTE"),
    np.equal: _operator("EQ"),
    np.not_equal: _operator("NEQ"),
    np.bitwise_and: _operator("And"),
    np.bitwise_or: _operator("Or"),
    np.negative: lambda _, sql: exp.paren(exp.Neg(this=exp.paren(sql))),
    np.absolute: lambda _, sql: exp.Abs(this=sql),
    np.isnan: lambda _, sql: exp.paren(sql.is_(exp.null())),
    np.rint: Traced.rint,
    np.floor: _next_whole("GT", "Sub"),
    np.ceil: _next_whole("LT", "Add"),
    np.maximum: _larger,
    np.minimum: _smaller,
    np.fmax: _larger_known,
}
"""How each operator of NumPy is written."""

FUNCTIONS: dict[Callable[..., Any], Callable[..., exp.Expr]] = {
    np.where: _where,
    np.clip: lambda _, sql, low, high: case(
        [(_compared("LT", sql, low), low), (_compared("GT", sql, high), high)], sql
    ),
    np.round: _round,
}
"""How each function of NumPy is written."""
