"""SDV's metadata of one table as a schema. No table is read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from privsyn.errors import InputError, about, replace_errors, safe_repr
from privsyn.files import check_file
from privsyn.table.schema.columns import Categorical, Column, Identifier, Numerical, Text
from privsyn.table.schema.schema import Schema
from privsyn.table.schema.time_columns import Datetime
from privsyn.table.schema.yaml_file import parse

_NUMBERED = re.compile(r"([^\\\[\](){}|*+?.^$]*)(?:\[0-9\]|\\d)\{([0-9]{1,2})\}([^\\\[\](){}|*+?.^$]*)")
"""A regular expression for text around a number with a fixed count of digits."""

_ISO = (None, "%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S")


def import_schema(path: str | PathLike[str]) -> Schema:
    """Return the schema that a file of SDV's metadata describes, in version ``SINGLE_TABLE_V1`` or ``V1``.

    Raises
    ------
    InputError
        If the file cannot be read, is no metadata, or describes several tables.
    """
    check_file(Path(path))
    with replace_errors(f"{path}: not a text file in UTF-8", UnicodeDecodeError):
        text = Path(path).read_text(encoding="utf-8-sig")
    with about(f"{path}"):
        return from_sdv(parse(text))


def from_sdv(plain: Any) -> Schema:
    """Return the schema of metadata that was parsed.

    >>> from_sdv({"columns": {"id": {"sdtype": "id", "regex_format": "U_[0-9]{3}"}}}).columns["id"]
    Identifier(format='U_{:03d}')
    """
    tables = plain.get("tables") if isinstance(plain, Mapping) else None
    if isinstance(tables, Mapping) and tables:
        if len(tables) > 1:
            raise InputError("holds several tables: keep the one that you need")
        (plain,) = tables.values()
    columns = plain.get("columns") if isinstance(plain, Mapping) else None
    if not isinstance(columns, Mapping):
        raise InputError("not SDV's metadata of one table, {columns: {age: {sdtype: numerical}}}")
    key, imported = plain.get("primary_key"), {}
    for name, settings in columns.items():
        if not isinstance(name, str) or not isinstance(settings, Mapping) or "sdtype" not in settings:
            raise InputError(f"column {safe_repr(name)}: needs an sdtype")
        imported[name] = _column(name, settings, is_key=name == key)
    return Schema(imported)


def _column(name: str, settings: Mapping[str, Any], *, is_key: bool) -> Column:
    """Return the column for an sdtype. Unknown and personal ones (address, email) become free text."""
    with about(f"column {name!r}"):
        match "id" if is_key else settings["sdtype"]:
            case "id":
                found = _NUMBERED.fullmatch(str(settings.get("regex_format")))
                return Identifier(f"{found[1]}{{:0{found[2]}d}}{found[3]}" if found else None)
            case "numerical":
                is_whole = "int" in str(settings.get("computer_representation")).lower()
                return Numerical(integer=True if is_whole else None)
            case "categorical":
                return Categorical()
            case "boolean":
                return Categorical([False, True])
            case "datetime":
                pattern = settings.get("datetime_format")
                has_time = any(part in str(pattern) for part in ("%H", "%I", "%X", "%c", "%T"))
                return Datetime(unit="s" if has_time else "D", format=None if pattern in _ISO else pattern)
        return Text()
