"""A schema in plain English, a sentence or two for each column and each constraint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from privsyn.notebook import html, html_table
from privsyn.table.schema.columns import (
    Categorical,
    Coded,
    Column,
    Faker,
    Identifier,
    Numerical,
    Ordinal,
    Text,
)
from privsyn.table.schema.time_columns import Datetime, Duration, Time

if TYPE_CHECKING:
    from privsyn.table.schema.schema import Schema

MOST = 10
"""Values that are named one by one."""

UNITS = {"s": "whole seconds", "m": "whole minutes", "h": "whole hours", "D": "whole days"}


def explain(schema: Schema) -> str:
    """Return what each column and each constraint of a schema does."""
    columns = [f"{name}: {sentence_on(schema, name)}" for name in schema.columns]
    rules = [f"Constraint {place}: {each.explain()}" for place, each in enumerate(schema.constraints, 1)]
    return "\n".join([*_marks(schema), *columns, *rules])


def to_html(schema: Schema) -> str:
    """Return the same as tables, for a notebook."""
    columns = [(name, sentence_on(schema, name)) for name in schema.columns]
    constraints = [(place, each.explain()) for place, each in enumerate(schema.constraints, 1)]
    tables = [html_table(("column", "what is public about it"), columns)]
    tables += [html_table(("constraint", "what holds in every row"), constraints)] if constraints else []
    return html("Schema", _marks(schema), *tables)


def _marks(schema: Schema) -> list[str]:
    line = f"In every column of a file, the empty cell and {listed(schema.missing)} mean a missing cell."
    return [line] if schema.missing else []


def sentence_on(schema: Schema, name: str) -> str:
    """Return what one column does."""
    computed = " Not counted: it is computed, at no cost." if name in schema.computed else ""
    return f"{_column(schema.columns[name])}{computed}"


def _column(column: Column) -> str:
    match column:
        case Faker(provider=provider, locale=locale):
            return f"never read; synthetic rows get stand-ins of Faker: {provider} ({locale})."
        case Identifier(pattern=pattern) if pattern is not None:
            return f"names the row. Its cells are never read; synthetic rows get texts like {pattern}."
        case Identifier(format=None):
            return "names the row. Its cells are never read; synthetic rows get generated ones."
        case Identifier(format=form):
            return f"names the row. Its cells are never read; synthetic rows get {form!r}, numbered from 1."
        case Text():
            return "free text. It is never read, and the synthetic table lacks it."
        case Coded():
            return f"{_values(column)} {_missing(column)}"
    return f"a {type(column).__name__}."


def _values(column: Coded) -> str:
    match column:
        case Categorical(values=None, other=other):
            rest = "other" if other is None else other
            return f"values that enough rows share are found under privacy; the rest becomes {rest!r}."
        case Categorical(values=values, keep=keep):
            text = f"one of {len(values or ())} public values: {listed(values or ())}."
            return text if keep is None else f"{text} The respondents randomised it (keep {keep:g})."
        case Numerical():
            return f"{_numbers(column)} {_bounds(column)}"
        case Datetime(step=step, unit=unit):
            kind = "dates" if unit in ("D", None) else "dates with a time of day"
            return f"{kind}{_multiples(step)} {_bounds(column)}"
        case Time(step=step, unit=unit):
            return f"times of day in {UNITS[unit]}{_multiples(step)} {_bounds(column)}"
        case Duration(step=step, unit=unit):
            return f"lengths of time in {UNITS[unit]}{_multiples(step)} {_bounds(column)}"
    return f"a {type(column).__name__}."


def _numbers(column: Numerical) -> str:
    if column.integer:
        kind = "whole numbers"
    elif column.decimals is not None:
        kind = f"numbers with {column.decimals} decimals"
    else:
        kind = "numbers"
    return kind + _multiples(None if column.step is None else f"{column.step:g}")


def _multiples(step: Any) -> str:
    return "" if step is None else f" in steps of {step}"


def _bounds(column: Ordinal) -> str:
    if not column.is_public:
        return "between bounds that are found under privacy."
    low, high = map(_end, (column.low, column.high))
    return f"from {low} to {high}; others are clipped."


def _end(bound: Any) -> str:
    """Return a bound without an exponent and without midnight.

    >>> _end(1e-05), _end(90.0), _end(7)
    ('0.00001', '90.0', '7')
    """
    text = str(bound).removesuffix(" 00:00:00")
    return np.format_float_positional(bound, trim="-") if isinstance(bound, float) and "e" in text else text


def _missing(column: Coded) -> str:
    if not column.nullable:
        return "No cell is missing."
    also = f"; {listed(column.missing)} mean that in a file" if column.missing else ""
    return f"A cell may be missing{also}."


def listed(values: Sequence[Any]) -> str:
    """Return values as text, and the number of those that are left out.

    >>> listed(["a", "b"]), listed(range(13))
    ("'a', 'b'", '0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 3 more')
    """
    named = ", ".join(map(repr, values[:MOST]))
    return f"{named} and {len(values) - MOST} more" if len(values) > MOST else named


def condition(when: Any) -> str:
    """Return a condition of `Forbidden` in words.

    >>> condition({"age": {"high": 14}, "job": ("a", None)})
    "age is at most 14, and job is 'a' or missing"
    """
    return ", and ".join(f"{name} is {_one(values)}" for name, values in when.items())


def _one(values: Any) -> str:
    if isinstance(values, tuple):
        return " or ".join("missing" if value is None else _text(value) for value in values)
    if values is None or not hasattr(values, "items"):
        return "missing" if values is None else _text(values)
    words = {"low": "at least", "high": "at most"}
    return " and ".join(f"{words[end]} {_text(value)}" for end, value in values.items())


def _text(value: Any) -> str:
    return repr(value) if isinstance(value, str) else str(value)
