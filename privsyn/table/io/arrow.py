"""Arrow tables as data frames. No row decides a name, a dtype or whether the table can be read."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from privsyn.errors import InputError, replace_errors
from privsyn.marginals.domain import Integers
from privsyn.table.encoding.dtypes import INDEX, TEXTS, dictionary_type, is_binary, plain_type
from privsyn.table.schema.schema import check_column_names

_DTYPES = {
    pa.int8(): pd.Int8Dtype(),
    pa.int16(): pd.Int16Dtype(),
    pa.int32(): pd.Int32Dtype(),
    pa.int64(): pd.Int64Dtype(),
    pa.uint8(): pd.UInt8Dtype(),
    pa.uint16(): pd.UInt16Dtype(),
    pa.uint32(): pd.UInt32Dtype(),
    pa.uint64(): pd.UInt64Dtype(),
    pa.bool_(): pd.BooleanDtype(),
    pa.date32(): pd.ArrowDtype(pa.date32()),  # Python dates would end in the year 9999
    pa.date64(): pd.ArrowDtype(pa.date64()),
    pa.null(): pd.ArrowDtype(pa.null()),
}


def plain_cells(cells: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the cells in their `plain_type`; unchanged if it is not supported.

    >>> runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), [7, None])
    >>> plain_cells(runs).to_pylist()
    [7, 7, None]
    """
    kind = plain_type(cells.type)
    chunked = cells if isinstance(cells, pa.ChunkedArray) else pa.chunked_array([cells])
    if pa.types.is_dictionary(cells.type):
        chunked = pa.chunked_array([_with_sound_indices(chunk) for chunk in chunked.chunks], cells.type)
    if kind is None or kind == cells.type:
        return chunked
    return pa.chunked_array([_plain_chunk(chunk) for chunk in chunked.chunks], kind)


def _plain_chunk(cells: pa.Array) -> pa.Array:
    kind = cells.type
    if pa.types.is_run_end_encoded(kind):  # Arrow decodes few types of values itself
        positions = np.arange(cells.offset, cells.offset + len(cells))
        runs = np.searchsorted(cells.run_ends.to_numpy(), positions, side="right")
        return _taken(_plain_chunk(cells.values), pa.array(runs))
    if isinstance(kind, pa.BaseExtensionType):
        stored = _plain_chunk(cells.storage)
        return pc.not_equal(stored, 0) if kind.extension_name == "arrow.bool8" else stored
    if not pa.types.is_dictionary(kind):
        return cells
    cells = _with_sound_indices(cells)
    if plain_type(kind) == dictionary_type(kind):
        return pa.DictionaryArray.from_arrays(
            cells.indices.cast(INDEX), cells.dictionary, ordered=kind.ordered
        )
    return _taken(_plain_chunk(cells.dictionary), cells.indices)


def _with_sound_indices(cells: pa.DictionaryArray) -> pa.DictionaryArray:
    """Return a dictionary's cells, with null for each whose index is outside: Arrow would refuse them all."""
    indices = cells.indices
    wide = pa.uint64() if pa.types.is_unsigned_integer(indices.type) else pa.int64()
    outside = pc.greater_equal(indices.cast(wide), pa.scalar(len(cells.dictionary), wide))
    if wide == pa.int64():
        outside = pc.or_(outside, pc.less(indices, 0))
    if not pc.any(outside).as_py():
        return cells
    inside = pc.if_else(outside, pa.scalar(None, indices.type), indices)
    return pa.DictionaryArray.from_arrays(inside, cells.dictionary, ordered=cells.type.ordered)


def _taken(values: pa.Array, indices: pa.Array) -> pa.Array:
    """Return the value at each place."""
    kind = values.type
    if str(kind) not in ("string_view", "binary_view"):
        return values.take(indices)
    wide = pa.large_binary() if is_binary(kind) else pa.large_string()  # Arrow cannot take from views
    return values.cast(wide).take(indices).cast(kind)


def check_type(name: object, kind: pa.DataType, subject: str = "") -> None:
    """Refuse a column of a type that is not supported. `subject` begins the message."""
    if plain_type(kind) is None:
        shown = getattr(kind, "extension_name", str(kind).partition("<")[0])  # the rest may reveal cells
        inside = ", or one inside it," if pa.types.is_nested(kind) or pa.types.is_dictionary(kind) else ""
        raise InputError(
            f"{subject}column {name!r}: the Arrow type {shown}{inside} is not supported:"
            " cast it to numbers, text, dates or durations, or leave the column out"
        )


def check_types(schema: pa.Schema, subject: str) -> None:
    """Refuse a table with a column of a type that is not supported; no row decides this.

    pandas would choose a dtype for it, in some types by the cells.
    """
    for field in public_schema(schema):
        check_type(field.name, field.type, f"{subject}: ")


def public_schema(schema: pa.Schema) -> pa.Schema:
    """Return the columns of a table: name, type and nullability of each, which its ledger declares public.

    Three properties follow from the rows and are left out or fixed:

    - Metadata, of the schema and of its fields. pandas notes the number of rows there.
    - The columns in which pandas stored an index. Whether it stores one depends on which rows were dropped.
    - The width of a dictionary's indices, which depends on the number of its values (see `plain_type`).

    Examples
    --------
    >>> narrow = pa.schema([pa.field("job", pa.dictionary(pa.int8(), pa.string()), metadata={"rows": "7"})])
    >>> print(public_schema(narrow))
    job: dictionary<values=string, indices=int32, ordered=0>
    """
    index = _index_of(schema)
    fields = [field for field in schema if field.name not in index]
    return pa.schema(
        [pa.field(field.name, plain_type(field.type) or field.type, field.nullable) for field in fields]
    )


def public_columns(table: pa.Table) -> pa.Table:
    """Return the columns of `public_schema`, in its types, with the metadata of the table.

    No value changes: a wider index type holds all indices of a narrower one.
    """
    schema = public_schema(table.schema)
    columns = [plain_cells(table[name]) for name in schema.names]
    return pa.Table.from_arrays(columns, schema=schema.with_metadata(table.schema.metadata))


def empty_table(schema: pa.Schema, subject: str) -> pa.Table:
    """Return a table without rows of the columns of `public_schema`; refuse types that are not supported.

    Arrow makes no empty array of some encodings.
    """
    check_types(schema, subject)
    return public_schema(schema).with_metadata(schema.metadata).empty_table()


def frame_of(table: pa.Table, subject: str) -> pd.DataFrame:
    """Return an Arrow table as a data frame whose dtypes follow from the Arrow types alone.

    By default pandas turns integers into floats where a cell is missing, so one row would decide a dtype.
    If pandas wrote the table, its metadata names dtypes, and an index, which is dropped.

    Parameters
    ----------
    table : pyarrow.Table
    subject : str
        Names the table in error messages.
    """
    check_column_names(table.column_names, f"{subject}: ")
    check_types(table.schema, subject)
    with replace_errors(f"{subject}: has a column of a type that pandas does not know"):
        table = public_columns(table)
        columns = [_readable(cells) for cells in table.columns]
        sound = pa.Table.from_arrays(columns, names=table.column_names)
        frame = sound.replace_schema_metadata(_pandas_metadata(table.schema)).to_pandas(types_mapper=_dtype)
        return frame.reset_index(drop=True)


def readable(frame: pd.DataFrame) -> pd.DataFrame:
    """Replace Arrow cells that pandas cannot read. Names and dtypes stay, except for encoded Arrow types.

    `pandas.read_parquet` accepts text that is not UTF-8. pandas fails at the whole column later and quotes
    the cell. Columns without such cells are not copied. An Arrow dictionary gets the dtype that `frame_of`
    gives it, because the width of its indices follows from the rows. Other types become their `plain_type`.

    >>> frame = pd.DataFrame({"name": pd.array(["Ann", None], "string[pyarrow]")})
    >>> readable(frame) is frame
    True
    """
    replaced = {}
    for index, dtype in enumerate(frame.dtypes):
        if isinstance(dtype, pd.ArrowDtype) or getattr(dtype, "storage", "") == "pyarrow":
            cells = pa.chunked_array(pa.array(frame.iloc[:, index].array))
            check_type(frame.columns[index], cells.type)
            plain = plain_cells(cells)
            sound = _readable(plain)
            if pa.types.is_dictionary(plain.type):  # of a column without a table pandas may read the dtype
                replaced[index] = pa.table([sound], ["a"]).to_pandas(types_mapper=_dtype)["a"].array
            elif sound is not cells:
                readable: Any = dtype if plain.type == cells.type else pd.ArrowDtype(plain.type)
                replaced[index] = readable.__from_arrow__(sound.cast(plain.type))
    if replaced:
        frame = frame.copy(deep=False)
    for index, cells in replaced.items():
        frame.isetitem(index, cells)
    return frame


def _index_of(schema: pa.Schema) -> set[str]:
    """Return the names of the columns in which pandas stored an index."""
    with suppress(Exception):  # metadata can hold anything
        index = (schema.pandas_metadata or {}).get("index_columns", ())
        return {name for name in index if isinstance(name, str)}  # a RangeIndex is no column
    return set()


def _pandas_metadata(schema: pa.Schema) -> dict[bytes, bytes] | None:
    """Return pandas' metadata of the columns, without dtypes of other types than the columns have.

    A program may have replaced a column since. pandas would convert its cells to the dtype of before, and
    fail if one of them does not fit. It cannot read back some dtypes either, such as of lists.
    """
    with suppress(Exception):  # metadata can hold anything
        metadata = json.loads(schema.metadata[b"pandas"])
        for column in metadata["columns"]:
            if not _is_dtype_of(column, schema):
                column["numpy_type"] = "object"
        return {b"pandas": json.dumps(metadata).encode()}
    return None


def _is_dtype_of(column: dict[str, Any], schema: pa.Schema) -> bool:
    """Return whether the dtype that pandas noted for a column holds its Arrow type as it is."""
    with suppress(Exception):
        dtype: Any = pd.api.types.pandas_dtype(column["numpy_type"])
        if not hasattr(dtype, "__from_arrow__"):  # pandas reads others from the Arrow type
            return True
        noted, kind = pa.array(pd.array([], dtype=dtype)).type, schema.field(column["field_name"]).type
        return noted == kind or {str(noted), str(kind)}.issubset(TEXTS)
    return False


def _dtype(kind: pa.DataType) -> pd.api.extensions.ExtensionDtype | None:
    """Return the dtype of an Arrow type where pandas' own choice would lose it or depend on the cells."""
    if pa.types.is_decimal(kind) or pa.types.is_time(kind) or is_binary(kind) or pa.types.is_nested(kind):
        return pd.ArrowDtype(kind)  # of lists and records, which are refused unless they are left out
    return _DTYPES.get(kind)


def _readable(cells: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return cells that pandas can read, each computed from itself alone.

    Text that is not UTF-8 gets replacement characters. Another cell that its type does not allow is missing.
    """
    if pa.types.is_dictionary(cells.type):
        # All values of these types can be categories of pandas. Of other types one cell would decide that
        # they cannot: NaN, -0.0, a date after the year 9999. Arrow has no dictionary encoding for string
        # views, so a missing entry in a dictionary of these would decide it too.
        kind = cells.type.value_type
        is_text = str(kind) in ("string", "large_string")
        if not (is_text or pa.types.is_boolean(kind) or pa.types.is_integer(kind)):
            return _readable(_decoded(cells))
        listed = [chunk.dictionary for chunk in cells.chunks]
        if all(v.null_count == 0 and _is_valid(v) and len(pc.unique(v)) == len(v) for v in listed):
            return cells
        values = _readable(cells.cast(kind)).combine_chunks().dictionary_encode()
        return pa.chunked_array(
            [pa.DictionaryArray.from_arrays(values.indices, values.dictionary, ordered=cells.type.ordered)]
        )
    if _is_valid(cells):
        return cells
    if str(cells.type) not in TEXTS:
        return pa.chunked_array(_without_invalid(cells, np.arange(len(cells))), cells.type)
    texts = cells.cast(pa.large_binary()).to_pylist()
    decoded = [None if text is None else text.decode("utf-8", "replace") for text in texts]
    return pa.chunked_array([pa.array(decoded, pa.large_string())])


def _without_invalid(cells: pa.ChunkedArray, rows: Integers) -> list[pa.Array]:
    """Return the cells of these rows in their own type, with null for each that it does not allow.

    An example is a date64 within a day. The rows are halved until all of a part are valid. So no other cell
    decides what becomes of a cell. A part is copied: a slice of lists or records keeps the values inside all
    of them, and Arrow checks them all.
    """
    part = cells.take(pa.array(rows))
    if _is_valid(part):
        return part.chunks
    if len(rows) <= 1:
        return [pa.nulls(len(rows), cells.type)]
    return [array for half in np.array_split(rows, 2) for array in _without_invalid(cells, half)]


def _decoded(cells: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a dictionary's cells in the type of its values."""
    kind = cells.type.value_type
    return pa.chunked_array([_taken(chunk.dictionary, chunk.indices) for chunk in cells.chunks], kind)


def _is_valid(cells: pa.Array | pa.ChunkedArray) -> bool:
    with suppress(Exception):
        cells.validate(full=True)
        if pa.types.is_nested(cells.type):
            cells.to_pandas()  # converts nested dates to Python's, which end in the year 9999
        return True
    return False


def with_text_for_null(types: pa.Schema) -> pa.Schema:
    """Return the types with text for null: a column of objects may be all missing in the first block only."""
    for index, field in enumerate(types):
        if pa.types.is_null(field.type):
            types = types.set(index, field.with_type(pa.string()))
    return types
