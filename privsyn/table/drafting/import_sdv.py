"""Schemas of other programs: SDV's metadata in JSON, and domains in YAML as dpsynth writes them.

What cannot be said here (relationships, keys of several columns) is left behind; kinds, bounds, lists and
formats are kept. Nothing but the file is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from privsyn.errors import InputError, safe_repr
from privsyn.table.schema.columns import Categorical, Column, Identifier, Numerical, Text
from privsyn.table.schema.schema import Schema
from privsyn.table.schema.time_columns import Datetime
from privsyn.table.schema.yaml_file import parse

_DIGITS = re.compile(r"([^\\\[\](){}|*+?.^$]*)(?:\[0-9\]|\\d)\{([0-9]{1,2})\}([^\\\[\](){}|*+?.^$]*)")
"""A regular expression for text around a number of so many digits."""

_OF_TIMES = ("%H", "%I", "%X", "%c", "%T")
_ISO = (None, "%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S")
"""Formats of times, and formats that need not be said."""


EXPECTED = (
    "neither SDV's metadata of one table, {columns: {age: {sdtype: numerical}}},"
    " nor a domain, {age: {min_value: 0, max_value: 99}}"
)


def import_schema(path: str | PathLike[str]) -> Schema:
    """The schema that a file of another program speaks for.

    Parameters
    ----------
    path : str or path
        SDV metadata of one table (``SINGLE_TABLE_V1``, or ``V1`` with one table), or a mapping of names to
        attributes with ``possible_values``, or ``min_value`` and ``max_value``.

    Raises
    ------
    InputError
        If it is neither.
    """
    try:
        plain = parse(Path(path).read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError:
        raise InputError(f"{path}: not a text file in UTF-8") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    try:
        return from_other(plain)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def from_other(plain: object) -> Schema:
    """The schema of another program's plain data.

    >>> from_other({"age": {"min_value": 0, "max_value": 99, "dtype": "int"}}).columns["age"].high
    99
    >>> from_other({"columns": {"id": {"sdtype": "id", "regex_format": "U_[0-9]{3}"}}}).columns["id"]
    Identifier(format='U_{:03d}')
    """
    if not isinstance(plain, Mapping) or not plain:
        raise InputError(EXPECTED)
    if "tables" in plain:
        tables = plain["tables"]
        if not isinstance(tables, Mapping) or len(tables) != 1:
            raise InputError("holds several tables: take one of them out, with its columns")
        (plain,) = tables.values()
        if not isinstance(plain, Mapping) or "columns" not in plain:
            raise InputError("its table has no columns")
    if "columns" in plain:
        key = plain.get("primary_key")
        return _columns(plain["columns"], lambda name, said: _of_sdv(said, is_key=name == key))
    return _columns(plain, lambda name, said: _of_domain(said))


def _columns(plain: object, make: Callable[[str, Mapping[str, Any]], Column]) -> Schema:
    if not isinstance(plain, Mapping):
        raise InputError("its columns are no mapping of names")
    columns = {}
    for name, said in plain.items():
        if not isinstance(name, str) or not isinstance(said, Mapping):
            raise InputError(f"{EXPECTED}: nothing is said of a column {safe_repr(name)}")
        try:
            columns[name] = make(name, said)
        except InputError as error:
            raise InputError(f"column {name!r}: {error}") from None
    return Schema(columns)


def _of_sdv(said: Mapping[str, Any], *, is_key: bool) -> Column:
    """A column of SDV's; what it calls personal, or does not know, is free text or names a person."""
    kind = said.get("sdtype")
    if kind == "id" or is_key:
        return Identifier(_format(said.get("regex_format")))
    match kind:
        case "numerical":
            whole = "int" in str(said.get("computer_representation", "")).lower()
            return Numerical(integer=True if whole else None)
        case "categorical":
            return Categorical()
        case "boolean":
            return Categorical([False, True])
        case "datetime":
            pattern = said.get("datetime_format")
            unit: Literal["D", "s"] = "s" if any(part in str(pattern) for part in _OF_TIMES) else "D"
            return Datetime(unit=unit, format=None if pattern in _ISO else pattern)
        case None:
            raise InputError("has no sdtype")
        case _:
            return Text()


def _format(regex: object) -> str | None:
    """Text around a running number for a regular expression that says so much; None for another."""
    found = _DIGITS.fullmatch(regex) if isinstance(regex, str) else None
    return f"{found[1]}{{:0{found[2]}d}}{found[3]}" if found else None


def _of_domain(said: Mapping[str, Any]) -> Column:
    """An attribute of a domain. Values that it does not list have a place in its list."""
    kind = said.get("type")
    if kind == "CategoricalAttribute" or "possible_values" in said:
        values, place = said.get("possible_values"), said.get("out_of_domain_index", 0)
        listed = Categorical(values, nullable=False).values  # checks them
        if not isinstance(place, int) or listed is None or not 0 <= place < len(listed):
            raise InputError("out_of_domain_index is a place in possible_values")
        return Categorical(listed, other=listed[place], nullable=False)
    if kind == "NumericalAttribute" or "min_value" in said:
        low, high = said.get("min_value"), said.get("max_value")
        clipped = said.get("clip_to_range", True) is True
        if said.get("dtype") != "int":
            return Numerical(low, high, integer=False, nullable=not clipped)
        return Numerical(_whole(low), _whole(high), integer=True, nullable=not clipped)
    if kind == "FreeFormTextAttribute" or "max_tokens" in said:
        return Text()
    if kind in (None, "OpenSetCategoricalAttribute"):
        return Categorical(other=said.get("default_value"), nullable=False)
    raise InputError(f"the type {safe_repr(kind)} is none of CategoricalAttribute and the like")


def _whole(bound: Any) -> Any:
    """A bound of whole numbers, which that program writes as 99.0; it is checked later."""
    return int(bound) if isinstance(bound, float) and bound.is_integer() else bound
