"""What a schema says, as plain data: mappings, lists, text and numbers, which YAML and JSON can say."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import fields
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pandas as pd

from privsyn.errors import InputError, replace_errors, safe_repr

PLAIN = (str, bool, int, float)
"""The types that YAML and JSON have themselves."""


def plain_value(what: str, value: object) -> Any:
    """The value as a column or a constraint reads it again; `what` begins the complaint if it cannot be.

    >>> plain_value("when", {"at": (time(8, 30), None), "for": {"high": timedelta(hours=-1)}})
    {'at': ['08:30:00', None], 'for': {'high': '-1 days +23:00:00'}}
    """
    if isinstance(value, Mapping):
        return {plain_value(what, key): plain_value(what, each) for key, each in value.items()}
    if isinstance(value, tuple):
        return [plain_value(what, each) for each in value]
    if isinstance(value, time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return str(pd.Timedelta(value))  # Python's own text of a negative one is read otherwise
    if isinstance(value, datetime):
        return value.isoformat(sep=" ").removesuffix(" 00:00:00")
    if isinstance(value, date):
        return value.isoformat()
    if value is None or type(value) in PLAIN:
        return value
    raise InputError(f"{what}: {safe_repr(value)} cannot be written: use text, numbers or booleans")


def typed_value(what: str, value: object) -> Any:
    """Return a listed value as plain data from which `read_typed` makes an equal value of the same type.

    A list of values has no kind that would say what a text means. So a date is written as
    ``{"date": "2020-01-31"}``, and text, numbers and booleans as they are.

    >>> typed_value("values", date(2020, 1, 31)), typed_value("values", ("a", Decimal("1.50")))
    ({'date': '2020-01-31'}, {'tuple': ['a', {'decimal': '1.50'}]})
    """
    if value is None or type(value) in PLAIN:
        return value
    for name, (kind, write, read) in _TYPES.items():
        if type(value) is kind:
            plain = write(value)
            if repr(read(plain)) == repr(value):  # a named time zone, for one, is lost
                return {name: plain}
    raise InputError(f"{what}: {safe_repr(value)} cannot be written: use text, numbers, booleans or dates")


def read_typed(plain: object) -> Any:
    """Return the value that `typed_value` wrote; anything else is returned as it is.

    >>> read_typed({"date": "2020-01-31"}), read_typed("2020-01-31")
    (datetime.date(2020, 1, 31), '2020-01-31')
    """
    if not isinstance(plain, Mapping) or len(plain) != 1:
        return plain
    ((name, written),) = plain.items()
    if name not in _TYPES:
        return plain
    with replace_errors(f"{safe_repr(written)} is not a {name}"):
        return _TYPES[name][2](written)


def check_keys(settings: Collection[object], allowed: Collection[str], needed: Collection[str] = ()) -> None:
    """Refuse settings whose names are not allowed, and settings without those that are needed."""
    for key in settings:
        if key not in allowed:
            raise InputError(f"{safe_repr(key)} is not known here: allowed are {', '.join(allowed)}")
    for key in needed:
        if key not in settings:
            raise InputError(f"{key!r} is missing")


def changed_settings(what: str, settings: Any) -> dict[str, Any]:
    """Return the fields of a dataclass that differ from their defaults, as plain data.

    Listed values are written with their type: `values`, and the one that replaces all others, `other`.
    """
    plain: dict[str, Any] = {}
    for field in fields(settings):
        value = getattr(settings, field.name)
        if value == field.default:
            continue
        match field.name:
            case "values":
                plain[field.name] = [typed_value(what, listed) for listed in value]
            case "other":
                plain[field.name] = typed_value(what, value)
            case _:
                plain[field.name] = plain_value(what, value)
    return plain


_TYPES: dict[object, tuple[type, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "date": (date, date.isoformat, date.fromisoformat),
    "datetime": (datetime, datetime.isoformat, datetime.fromisoformat),
    "time": (time, time.isoformat, time.fromisoformat),
    "duration": (
        timedelta,
        lambda value: [value.days, value.seconds, value.microseconds],
        lambda parts: timedelta(*parts),
    ),
    "timestamp": (
        pd.Timestamp,
        lambda value: [str(value), value.unit],
        lambda parts: pd.Timestamp(parts[0]).as_unit(parts[1]),
    ),
    "timedelta": (
        pd.Timedelta,
        lambda value: [str(value), value.unit],
        lambda parts: pd.Timedelta(parts[0]).as_unit(parts[1]),
    ),
    "decimal": (Decimal, str, Decimal),
    "bytes": (bytes, bytes.hex, bytes.fromhex),
    "uuid": (UUID, str, UUID),
    "tuple": (
        tuple,
        lambda value: [typed_value("tuple", each) for each in value],
        lambda parts: tuple(map(read_typed, parts)),
    ),
}
"""For each type that is named in a file: the type, how it is written, and how it is read."""
