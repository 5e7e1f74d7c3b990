"""Parse the option --given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from privsyn.errors import InputError, did_you_mean, replace_errors, safe_repr
from privsyn.table.schema.columns import Coded
from privsyn.table.schema.schema import Schema

RANGE = ".."
"""Separates the ends of a range."""


def parse_given(schema: Schema, texts: Sequence[str]) -> dict[str, Any]:
    """Parse texts such as ``column=value`` or ``column=low..high``, with values of the column's type.

    Either end of a range may be left out. A listed value that contains dots is a value, not a range. No value
    means a missing cell, as in a CSV, unless the empty text is a listed value.

    >>> from privsyn import Categorical, Numerical
    >>> schema = Schema({"zip": Categorical(["01", "02"]), "age": Numerical(0, 9)})
    >>> parse_given(schema, ["zip=01", "age=7"])
    {'zip': '01', 'age': 7}
    >>> parse_given(schema, ["age=3.."])
    {'age': (3, None)}
    >>> parse_given(schema, ["zip="])
    {'zip': None}
    """
    given: dict[str, Any] = {}
    for text in texts:
        name, equals, said = text.partition("=")
        if not equals:
            raise InputError(f"--given needs a column and a value, as in sex=Female; got {safe_repr(text)}")
        if name not in schema.coded:
            meant = did_you_mean(name, schema.coded)
            raise InputError(
                f"--given {safe_repr(name)}: there is no such column among those to be synthesised{meant}"
            )
        if name in given:
            raise InputError(
                f"--given {safe_repr(name)}: is given twice, and a row has one value: give it once"
            )
        low, dots, high = said.partition(RANGE)
        column = schema.coded[name]
        is_listed = said in map(str, column.listed)
        if not said and not is_listed:
            given[name] = None
        elif dots and not is_listed:
            given[name] = tuple(_value(name, column, end) if end else None for end in (low, high))
        else:
            given[name] = _value(name, column, said)
    return given


def _value(name: str, column: Coded, said: str) -> Any:
    """Return a value of the column's type."""
    with replace_errors(f"--given {name}: {safe_repr(said)} is not a number", ValueError):
        return column.value_of(said)
