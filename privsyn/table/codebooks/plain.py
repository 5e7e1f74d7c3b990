"""Plain data of a codebook: JSON that may come from anybody, each part checked where it is read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from math import ceil, floor, isinf
from pathlib import Path
from typing import Any, Literal

from privsyn.errors import InputError, safe_repr
from privsyn.files import read_text
from privsyn.table.kinds.csv_format import CsvFormat


def read_json(path: Path) -> Any:
    """Return the plain data in a JSON file; an `InputError` says in which line it is none."""
    text = read_text(path)
    try:
        return json.loads(text.removeprefix("\ufeff"))
    except json.JSONDecodeError as error:
        raise InputError(f"not JSON (line {error.lineno}): {error.msg}") from None
    except RecursionError:
        raise InputError("not JSON that can be read") from None


def as_list(subject: str, plain: Any) -> list[Any]:
    """Return plain data that must be a list."""
    if not isinstance(plain, list):
        raise InputError(f"{subject} must be a list, not {safe_repr(plain)}")
    return plain


def as_mapping(subject: str, plain: Any) -> Mapping[str, Any]:
    """Return plain data that must be a mapping."""
    if not isinstance(plain, Mapping):
        raise InputError(f"{subject} must be an object, not {safe_repr(plain)}")
    return plain


def number_or_none(value: Any) -> float | None:
    """Return a number that may be written as text, a whole one as an int; None if it is none.

    >>> number_or_none("3"), number_or_none(" 2.50"), number_or_none("7.0"), number_or_none("n/a")
    (3, 2.5, 7, None)
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    with suppress(ValueError, OverflowError):
        number = float(value)
        return int(number) if number.is_integer() else number if number == number else None
    return None


def as_number(subject: str, plain: Any) -> float:
    """Return plain data that must be a finite number, which may be written as text."""
    number = number_or_none(plain)
    if number is None or isinf(number):
        raise InputError(f"{subject} must be a number, not {safe_repr(plain)}")
    return number


def included_bound(end: Literal["low", "high"], bound: Any, kind: str) -> tuple[Any, list[str]]:
    """Return the bound of a range that contains its ends, from one that excludes an end; else a remark.

    >>> included_bound("low", 4.5, "integer"), included_bound("high", 9, "integer")
    ((5, []), (8, []))
    >>> included_bound("high", 9, "number")
    (9, ['The codebook excludes the high bound 9.'])
    """
    if kind != "integer":
        return bound, [f"The codebook excludes the {end} bound {bound}."]
    number = as_number(f"the {end} bound", bound)
    return (floor(number) + 1 if end == "low" else ceil(number) - 1), []


def csv_format(**settings: Any) -> CsvFormat:
    """Return the format of a CSV file that a codebook names, without what cannot be read here.

    >>> csv_format(delimiter=";", encoding="utf-16").delimiter
    ';'
    """
    form = CsvFormat()
    for name, setting in settings.items():
        if isinstance(setting, str):
            with suppress(InputError):
                form = CsvFormat(**{**vars(form), name: setting})
    return form
