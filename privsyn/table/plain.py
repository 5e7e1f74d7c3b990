"""What a schema says, as plain data: mappings, lists, text and numbers, which YAML and JSON can say."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from typing import Any

import pandas as pd

from privsyn.errors import InputError, shown


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
    if value is None or type(value) in (str, bool, int, float):
        return value
    raise InputError(f"{what}: {shown(value)} cannot be written: use text, numbers or booleans")
