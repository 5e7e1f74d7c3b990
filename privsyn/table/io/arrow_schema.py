"""Arrow schemas, reduced to what is public of them: no row decides a name, a type or a width."""

from __future__ import annotations

from contextlib import suppress

import pyarrow as pa

INDEX = pa.int32()
"""Type of a dictionary's indices. Programs choose a width that fits the number of values in the rows."""


def public_schema(schema: pa.Schema) -> pa.Schema:
    """Return the columns of a table: name, type and nullability of each, which its ledger declares public.

    Three properties follow from the rows and are left out or fixed:

    - Metadata, of the schema and of its fields. pandas notes the number of rows there.
    - The columns in which pandas stored an index. Whether it stores one depends on which rows were dropped.
    - The width of a dictionary's indices, which depends on the number of its values.

    Examples
    --------
    >>> narrow = pa.schema([pa.field("job", pa.dictionary(pa.int8(), pa.string()), metadata={"rows": "7"})])
    >>> print(public_schema(narrow))
    job: dictionary<values=string, indices=int32, ordered=0>
    """
    index = _index_of(schema)
    fields = [field for field in schema if field.name not in index]
    return pa.schema([pa.field(field.name, _fixed_width(field.type), field.nullable) for field in fields])


def public_columns(table: pa.Table) -> pa.Table:
    """Return the columns of `public_schema`, in its types; the metadata stays.

    No cell changes: a wider index type holds all indices of a narrower one.
    """
    schema = public_schema(table.schema)
    columns = [_widened(table[name]) for name in schema.names]
    return pa.Table.from_arrays(columns, schema=schema.with_metadata(table.schema.metadata))


def _widened(cells: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pa.types.is_dictionary(cells.type):
        return cells
    kind = _fixed_width(cells.type)
    chunks = [
        pa.DictionaryArray.from_arrays(chunk.indices.cast(INDEX), chunk.dictionary, ordered=kind.ordered)
        for chunk in cells.chunks
    ]
    return pa.chunked_array(chunks, kind)


def _index_of(schema: pa.Schema) -> set[str]:
    """The names of the columns that pandas noted as an index."""
    with suppress(Exception):  # anything can stand in metadata
        noted = (schema.pandas_metadata or {}).get("index_columns", ())
        return {name for name in noted if isinstance(name, str)}  # a RangeIndex is no column
    return set()


def _fixed_width(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return pa.dictionary(INDEX, kind.value_type, kind.ordered)
    return kind
