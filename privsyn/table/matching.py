"""Whether a table has the columns of a schema: names and dtypes, no row."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from privsyn.errors import InputError
from privsyn.table.checks import check_names
from privsyn.table.dtypes import dtype_text
from privsyn.table.kinds import Text
from privsyn.table.schema import Schema


def dtypes_of(schema: Schema, table: pd.DataFrame) -> tuple[str, ...]:
    """The dtype of each column as text; a table that does not fit is refused."""
    match_names(tuple(table.columns), schema)
    texts = []
    for name, dtype in table.dtypes.items():
        text = "object" if isinstance(schema.columns[str(name)], Text) else dtype_text(dtype)
        if text is None:
            raise InputError(f"column {name!r}: its dtype is {dtype}: convert it to a common one")
        texts.append(text)
    return tuple(texts)


def match_names(names: tuple[object, ...], schema: Schema) -> None:
    """Refuse a table whose columns are not those of the schema.

    What the schema knows is public and named; of the table's own names, which may be a row where the header
    is missing, only the place is said.
    """
    check_names(names)
    strange = [place for place, name in enumerate(names, 1) if name not in schema.columns]
    absent = [name for name in schema.columns if name not in names]
    complaints = []
    if absent:
        complaints.append(f"the table has no {_some(absent)}")
    if strange:
        complaints.append(f"the schema does not know {_some(strange)} of the table")
    if complaints:
        raise InputError(f"{' and '.join(complaints)}: mend the schema or the table's header")


def _some(names: Sequence[str | int]) -> str:
    listed = ", ".join(map(repr, names[:5]))
    rest = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"column{'s' if len(names) > 1 else ''} {listed}{rest}"
