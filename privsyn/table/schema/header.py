"""The header of a table, its names and dtypes, against the schema; and the names that identifiers have."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pandas as pd

from privsyn.errors import InputError
from privsyn.table.encoding.dtypes import Dtype, family, shown_dtype
from privsyn.table.kinds.generated import Identifier
from privsyn.table.schema.schema import Schema

_NAMES = (
    r"id|uuid|guid|ssn|iban|e?mail|phone|telephone|passport|mrn|imei|isbn",  # a word of the name
    r"(?:account|customer|patient|person|member|employee|invoice|order|serial|record) ?(?:no|nr|number|code)",
)
_NAMING = re.compile(rf"(?:^| )(?:{'|'.join(_NAMES)})(?:$| )")


def check_column_names(names: Iterable[object], where: str = "") -> None:
    """Refuse names of a table's columns that are not text or not distinct; `where` begins the error.

    The error names them by place: without a header, the first row stands in its place.
    """
    places: dict[str, int] = {}
    for place, name in enumerate(names, 1):
        if not isinstance(name, str):
            raise InputError(f"{where}the name of column {place} is not text: rename it")
        if name in places:
            raise InputError(f"{where}columns {places[name]} and {place} have the same name: rename one")
        places[name] = place


def dtypes_of(schema: Schema, table: pd.DataFrame) -> tuple[str, ...]:
    """Return the dtype of each column as text; refuse a table that does not fit."""
    match_names(tuple(table.columns), schema)
    texts = []
    for name, dtype in table.dtypes.items():
        column = schema.columns[str(name)]
        text = column.kept_dtype(dtype)
        if text is None:
            its = shown_dtype(dtype)
            raise InputError(f"column {name!r}: its dtype is {its}: convert it to a common one")
        texts.append(text)
    return tuple(texts)


def match_names(names: tuple[object, ...], schema: Schema) -> None:
    """Refuse a table whose columns are not those of the schema.

    Names in the schema are public. Messages give only the place of the table's own names: in a file without
    a header, the first row is read as names.
    """
    check_column_names(names)
    strange = [place for place, name in enumerate(names, 1) if name not in schema.columns]
    absent = [name for name in schema.columns if name not in names]
    complaints = []
    if absent:
        complaints.append(f"the table has no {_some(absent)}")
    if strange:
        complaints.append(f"the schema does not know {_some(strange)} of the table")
    if complaints:
        raise InputError(f"{' and '.join(complaints)}: change the schema or the table's header")


def _some(names: Sequence[str | int]) -> str:
    listed = ", ".join(map(repr, names[:5]))
    rest = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"column{'s' if len(names) > 1 else ''} {listed}{rest}"


def names_rows(name: str) -> bool:
    """Return whether the name of a column looks like that of an identifier.

    >>> [names_rows(name) for name in ("customer_id", "PatientNumber", "e-mail", "Id", "paid", "width")]
    [True, True, True, True, False, False]
    """
    words = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name)
    return _NAMING.search(re.sub(r"[\W_]+", " ", words.replace("e-mail", "email")).lower()) is not None


def can_name(dtype: Dtype) -> bool:
    """Return whether a dtype can hold identifiers."""
    return family(dtype) in ("text", "object", "integer", "real", "binary")


def with_identifiers(schema: Schema, dtypes: Mapping[str, Dtype]) -> Schema:
    """Return an inferred schema in which columns with names of identifiers are identifiers.

    This uses only names and dtypes, which are public, and no cell.
    """
    columns = {
        name: Identifier() if name in dtypes and names_rows(name) and can_name(dtypes[name]) else column
        for name, column in schema.columns.items()
    }
    return replace(schema, columns=columns)


def called_identifiers(schema: Schema) -> tuple[str, ...]:
    """Return the columns with generated identifiers whose names look like identifiers."""
    return tuple(
        name for name, column in schema.columns.items() if isinstance(column, Identifier) and names_rows(name)
    )
