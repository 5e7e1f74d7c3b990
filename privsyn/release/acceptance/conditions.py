"""Conditions on rows, as a publisher writes them: a value, a list of values or a range of each column."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from privsyn.errors import InputError, about
from privsyn.table.enforcement.ranges import Span
from privsyn.table.schema.schema import Schema


def spans(where: Mapping[str, Any], schema: Schema) -> dict[str, Span]:
    """Return the values that each condition names; refuse what the schema does not list as public."""
    found = {}
    for name, said in where.items():
        column = schema.coded[name]
        with about(f"column {name!r}"):
            if not column.is_public:
                raise InputError(f"a condition needs public values or bounds: {column.public_hint}")
            if isinstance(said, Mapping):
                if not said or set(said) - {"low", "high"} or column.lists_values:
                    raise InputError("a range is {low: ..., high: ...}, of a column of numbers or times")
                said = {end: value for end, value in said.items() if value is not None}
            found[name] = Span.of(column, tuple(said) if isinstance(said, list) else said)
            if not found[name].missing and not found[name].touches(*map(np.atleast_1d, column.bounds)).any():
                raise InputError("no value within its bounds meets the condition: correct one of them")
    return found


def in_words(where: Mapping[str, Any]) -> str:
    """Return conditions as text.

    >>> in_words({"sex": "F", "age": {"low": 65}, "job": ["a", "b"]})
    'sex = F, age from 65, job = a or b'
    """
    words = []
    for name, said in where.items():
        if isinstance(said, Mapping):
            ends = [f"{word} {said[end]}" for end, word in (("low", "from"), ("high", "to")) if end in said]
            words.append(f"{name} {' '.join(ends)}")
        else:
            words.append(f"{name} = {' or '.join(map(str, said if isinstance(said, list) else [said]))}")
    return ", ".join(words)


def among(where: Mapping[str, Any]) -> str:
    """Return the rows that meet conditions as the end of a sentence; nothing if there is no condition.

    >>> among({"sex": "F"}), among({})
    (' where sex = F', '')
    """
    return f" where {in_words(where)}" if where else ""


def check_where(where: object) -> None:
    """Refuse conditions that are no mapping."""
    if not isinstance(where, Mapping):
        raise InputError("conditions are a mapping such as {sex: Female, age: {low: 30, high: 40}}")
