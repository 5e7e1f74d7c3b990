"""The settings of a column: checks that return the one form of a value, and their form in YAML and JSON."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import fields
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd

from privsyn.arguments import check_finite
from privsyn.errors import InputError, did_you_mean, replace_errors, safe_repr
from privsyn.table.encoding.parsing import is_missing
from privsyn.table.encoding.time_format import read_time, spell_time

LONGEST = timedelta(days=100_000)
"""The longest length of time that every dtype can hold."""

MAX_BINS = 2**20


def flag(name: str, value: object) -> bool:
    """Return true or false."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name} is true or false, not {safe_repr(value)}")
    return bool(value)


def whole_number(name: str, value: object, low: int, high: int) -> int:
    """Return a whole number from `low` to `high`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not low <= value <= high:
        raise InputError(f"{name} is a whole number from {low} to {high}, not {safe_repr(value)}")
    return int(value)


def probability(name: str, value: object) -> float:
    """Return a number above 0 and below 1, with at most 15 decimals."""
    number = check_finite(name, value)
    if not 0 < number < 1 or round(number, 15) != number:
        raise InputError(f"{name} is a probability above 0 and below 1, such as 0.75, not {safe_repr(value)}")
    return number


def one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """Refuse a value that is not one of `allowed`."""
    if not isinstance(value, str) or value not in allowed:
        meant = did_you_mean(value, allowed)
        raise InputError(f"{name} {safe_repr(value)} is none of {', '.join(allowed)}{meant}")


def normalise(column: object, **settings: object) -> None:
    """Set settings of a frozen column, in its `__post_init__`."""
    for name, value in settings.items():
        object.__setattr__(column, name, value)


def normalise_shared(column: Any) -> None:
    """Check the settings that all counted kinds have, and `bins` if the kind has it."""
    normalise(column, nullable=flag("nullable", column.nullable), missing=marks(column.missing))
    if hasattr(column, "bins"):
        normalise(column, bins=whole_number("bins", column.bins, 1, MAX_BINS))


def marks(missing: object) -> tuple[str, ...]:
    """Return the texts that mean a missing cell, given as one text or a list."""
    texts = (missing,) if isinstance(missing, str) else missing
    if not isinstance(texts, list | tuple):
        raise InputError(f"missing is a text or a list of texts, not {safe_repr(missing)}")
    if strangers := [text for text in texts if not isinstance(text, str)]:
        quoted = safe_repr(str(strangers[0]) if isinstance(strangers[0], int | float) else "?")
        raise InputError(f"missing lists texts, in quotes such as {quoted}; got {safe_repr(strangers[0])}")
    return tuple(texts)


def distinct_values(values: object) -> tuple[Any, ...]:
    """Return values in a fixed order: hashable, not missing, and distinct."""
    if isinstance(values, str | bytes | Mapping | set | frozenset) or not isinstance(values, Iterable):
        raise InputError(f"values are a list in a fixed order, not a {type(values).__name__}")
    listed = tuple(value.item() if isinstance(value, np.generic) else value for value in values)
    if not listed:
        raise InputError("the list of values is empty: list them, or leave the list out")
    positions: dict[Any, int] = {}
    for position, value in enumerate(listed, 1):  # named by place: the list may have been made from the data
        if not _is_hashable(value):
            raise InputError(f"value {position} of the list is not hashable: it is a {type(value).__name__}")
        if is_missing(value):
            raise InputError("a missing value is not listed: say nullable=True")
        if value in positions:
            raise InputError(
                f"values {positions[value]} and {position} are alike (1, 1.0 and True are one value):"
                " drop one"
            )
        positions[value] = position
    return listed


def both_or_neither(low: Any, high: Any) -> tuple[Any, Any]:
    """Return two bounds, or two of None."""
    if (low is None) != (high is None):
        raise InputError("give both bounds, low and high, or neither")
    return low, high


def number_bounds(low: object, high: object) -> tuple[float, float]:
    """Return two finite numbers in order, a finite distance apart."""
    first, last = _number(low), _number(high)
    if first > last:
        raise InputError(f"low {safe_repr(first)} is above high {safe_repr(last)}")
    if not math.isfinite(float(last) - float(first)):
        raise InputError(f"the bounds {safe_repr(first)} and {safe_repr(last)} lie too far apart")
    return first, last


def time_bounds(low: object, high: object) -> tuple[datetime, datetime]:
    """Return two times in order, in whole seconds and without a zone."""
    first, last = _moment(low), _moment(high)
    if first > last:
        raise InputError(f"low {first} is above high {last}")
    return first, last


def clock_time(at: object) -> time:
    """Return a time of day in whole seconds and without a zone.

    >>> clock_time("8:30"), clock_time("08:30:15")
    (datetime.time(8, 30), datetime.time(8, 30, 15))
    """
    read = at
    if isinstance(at, str):
        with suppress(ValueError):
            read = time.fromisoformat(f"0{at}" if at[1:2] == ":" else at)
    if not isinstance(read, time) or read.tzinfo is not None or read.microsecond:
        raise InputError(f"a bound is a time of day such as 08:30 or 08:30:15, not {safe_repr(at)}")
    return read


def length_of_time(length: object) -> timedelta:
    """Return a length of time in whole seconds.

    >>> length_of_time("1 day 02:00"), length_of_time(np.timedelta64(90, "m"))
    (datetime.timedelta(days=1, seconds=7200), datetime.timedelta(seconds=5400))
    """
    read: object = None
    if isinstance(length, str | timedelta | np.timedelta64):
        text = (
            re.sub(r"(?<![:0-9])([0-9]+:[0-9]{2})$", r"\1:00", length) if isinstance(length, str) else length
        )
        with suppress(ValueError, OverflowError):
            read = pd.Timedelta(text).to_pytimedelta()
    if not isinstance(read, timedelta) or pd.isna(read) or read.microseconds:
        raise InputError(f"a bound is a length of time such as '2 days 03:00:00', not {safe_repr(length)}")
    if abs(read) > LONGEST:
        raise InputError(f"a length of time is of at most {LONGEST.days} days, not {safe_repr(length)}")
    return read


def date_format(text: object) -> str:
    """Return a format from which the date can be read back; see `privsyn.table.encoding.time_format`.

    >>> date_format("%d.%m.%Y")
    '%d.%m.%Y'
    """
    example = datetime(2001, 2, 3, tzinfo=UTC)
    with suppress(Exception):  # a strange directive raises what it likes
        if isinstance(text, str) and read_time(spell_time(example, text), text).date() == example.date():
            return text
    raise InputError(f"format {safe_repr(text)} tells no day, month and year: write it such as '%d.%m.%Y'")


def clock_format(text: object) -> str:
    """Return a format from which the hour of a time of day can be read back.

    >>> clock_format("%-I:%M %p")
    '%-I:%M %p'
    """
    example = datetime(1900, 1, 1, 15)
    with suppress(Exception):
        if isinstance(text, str) and read_time(spell_time(example, text), text) == example:
            return text
    raise InputError(f"format {safe_repr(text)} shows no hour of the day: write it such as '%H:%M'")


def check_decimals(low: float, high: float, decimals: int) -> None:
    """Refuse bounds that have more decimals than the column."""
    noun = "whole numbers" if decimals == 0 else f"numbers of {decimals} decimals"
    for bound in (low, high):
        if round(bound, decimals) != bound:
            raise InputError(f"the bounds of {noun} are {noun}, not {safe_repr(bound)}")


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except Exception:  # an object may raise what it likes
        return False
    return True


def _number(bound: object) -> float:
    if isinstance(bound, np.generic):
        bound = bound.item()
    if isinstance(bound, bool) or not isinstance(bound, int | float):
        raise InputError(f"a bound is a number, not {safe_repr(bound)}")
    try:
        finite = math.isfinite(float(bound))
    except OverflowError:
        finite = False
    if not finite:
        raise InputError(f"a bound is a finite number, not {safe_repr(bound)}")
    return bound


def _moment(bound: object) -> datetime:
    if isinstance(bound, np.datetime64):
        bound = bound.astype("datetime64[us]").item()
    if isinstance(bound, str):
        with replace_errors(f"a bound is a date such as 2015-01-31, not {safe_repr(bound)}", ValueError):
            bound = datetime.fromisoformat(bound)
    if isinstance(bound, date) and not isinstance(bound, datetime):
        bound = datetime.combine(bound, time())
    if not isinstance(bound, datetime) or pd.isna(bound):
        raise InputError(f"a bound is a date, not {safe_repr(bound)}")
    if bound.tzinfo is not None or bound.microsecond:
        raise InputError(f"the bound {bound.isoformat()} needs whole seconds and no time zone")
    return datetime(*bound.timetuple()[:6])


PLAIN = (str, bool, int, float)
"""The types that YAML and JSON have themselves."""


def plain_value(subject: str, value: object) -> Any:
    """The value as a column or a constraint reads it again; `subject` begins the complaint if it cannot be.

    >>> plain_value("when", {"at": (time(8, 30), None), "for": {"high": timedelta(hours=-1)}})
    {'at': ['08:30:00', None], 'for': {'high': '-1 days +23:00:00'}}
    """
    if isinstance(value, Mapping):
        return {plain_value(subject, key): plain_value(subject, element) for key, element in value.items()}
    if isinstance(value, tuple):
        return [plain_value(subject, element) for element in value]
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
    raise InputError(f"{subject}: {safe_repr(value)} cannot be written: use text, numbers or booleans")


def typed_value(subject: str, value: object) -> Any:
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
    raise InputError(f"{subject}: {safe_repr(value)} cannot be written: use text, numbers, booleans or dates")


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
            meant = did_you_mean(key, allowed)
            raise InputError(f"{safe_repr(key)} is not known here: allowed are {', '.join(allowed)}{meant}")
    for key in needed:
        if key not in settings:
            raise InputError(f"{key!r} is missing")


def changed_settings(subject: str, settings: Any) -> dict[str, Any]:
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
                plain[field.name] = [typed_value(subject, listed) for listed in value]
            case "other":
                plain[field.name] = typed_value(subject, value)
            case _:
                plain[field.name] = plain_value(subject, value)
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
        lambda value: [typed_value("tuple", element) for element in value],
        lambda parts: tuple(map(read_typed, parts)),
    ),
}
"""For each type that is named in a file: the type, how it is written, and how it is read."""
