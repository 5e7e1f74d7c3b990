"""The schema that names and dtypes of columns imply, where none is declared."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from privsyn.table.encoding.dtypes import Dtype
from privsyn.table.schema.columns import column_of
from privsyn.table.schema.schema import Schema, check_column_names, with_identifiers


def declared_or_by_names(schema: Schema | None, table: pd.DataFrame, kinds: Schema | None = None) -> Schema:
    """Return the schema given. If it declares no column, return that of `by_names` for the same files."""
    if schema is None or schema.columns:
        return schema or by_names(table, kinds)
    return replace(by_names(table, kinds), csv=schema.csv, missing=schema.missing, about=schema.about)


def by_names(table: pd.DataFrame, kinds: Schema | None = None) -> Schema:
    """Return the schema that names and dtypes imply; `kinds` replaces the dtypes of a file without any."""
    dtypes = dtypes_by_name(table)
    columns = {name: column_of(dtype) for name, dtype in dtypes.items()}
    return with_identifiers(kinds or Schema(columns), dtypes)


def dtypes_by_name(table: pd.DataFrame) -> dict[str, Dtype]:
    """Return the dtype of each column; refuse names that no column can have."""
    check_column_names(table.columns)
    return {str(name): dtype for name, dtype in table.dtypes.items()}
