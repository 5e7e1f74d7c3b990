"""An Arrow table as a data frame, whatever its cells hold."""

from __future__ import annotations

from contextlib import suppress

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from privsyn.errors import InputError
from privsyn.table.io.arrow_schema import public_columns
from privsyn.table.schema.validation import check_names

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
    pa.date32(): pd.ArrowDtype(pa.date32()),  # as Python's dates they would end in the year 9999
    pa.date64(): pd.ArrowDtype(pa.date64()),
    pa.null(): pd.ArrowDtype(pa.null()),
}


def frame_of(table: pa.Table, what: str) -> pd.DataFrame:
    """An Arrow table as a data frame whose dtypes follow from its types alone.

    pandas by itself would make integers floats where a cell is missing, so that one row decides a dtype.
    Where pandas wrote the table, its metadata names dtypes too, and an index, which is dropped.
    """
    check_names(table.column_names, f"{what}: ")
    frame = None
    with suppress(Exception):  # its text may quote a cell
        table = public_columns(table)
        columns = [_readable(cells) for cells in table.columns]
        readable = pa.Table.from_arrays(columns, names=table.column_names).replace_schema_metadata(
            table.schema.metadata
        )
        frame = readable.to_pandas(types_mapper=_dtype)
    if frame is None:
        raise InputError(f"{what}: has a column of a type that pandas does not know")
    return frame.reset_index(drop=True)


def readable(frame: pd.DataFrame) -> pd.DataFrame:
    """A data frame without cells of Arrow's that pandas fails at; it has the dtypes of the one that is given.

    `pandas.read_parquet` takes text as it comes; where that is not UTF-8, pandas fails at the whole column
    later, and quotes the cell. Sound columns are looked over once, and not copied. Only the dtype of an Arrow
    dictionary changes, to what `frame_of` makes of it: the width of its indices follows from the rows.

    >>> frame = pd.DataFrame({"name": pd.array(["Ann", None], "string[pyarrow]")})
    >>> readable(frame) is frame
    True
    """
    mended = {}
    for place, dtype in enumerate(frame.dtypes):
        if _is_arrow(dtype):
            cells = pa.chunked_array(pa.array(frame.iloc[:, place].array))
            sound = _readable(cells)
            if pa.types.is_dictionary(cells.type):
                mended[place] = sound.to_pandas(types_mapper=_dtype).array
            elif sound is not cells:
                mended[place] = dtype.__from_arrow__(sound.cast(cells.type))
    if mended:
        frame = frame.copy(deep=False)
    for place, its in mended.items():
        frame.isetitem(place, its)
    return frame


def _is_arrow(dtype: object) -> bool:
    """Whether the cells lie in Arrow's memory."""
    return isinstance(dtype, pd.ArrowDtype) or getattr(dtype, "storage", "") == "pyarrow"


def _dtype(kind: pa.DataType) -> pd.api.extensions.ExtensionDtype | None:
    """The dtype of an Arrow type, where pandas' own choice would lose it or depend on the cells."""
    if pa.types.is_decimal(kind) or pa.types.is_time(kind):
        return pd.ArrowDtype(kind)
    return _DTYPES.get(kind)


def _readable(cells: pa.ChunkedArray) -> pa.ChunkedArray:
    """Cells at which pandas does not fail, each made from itself: text that is not UTF-8 gets substitutes."""
    if pa.types.is_dictionary(cells.type):
        if not _makes_categories(cells.type.value_type):
            return _readable(_decoded(cells))
        if all(_is_list(chunk.dictionary) for chunk in cells.chunks):
            return cells
        values = _readable(cells.cast(cells.type.value_type)).combine_chunks().dictionary_encode()
        return pa.chunked_array(
            [pa.DictionaryArray.from_arrays(values.indices, values.dictionary, ordered=cells.type.ordered)]
        )
    if _is_sound(cells):
        return cells
    if str(cells.type) not in ("string", "large_string", "string_view"):
        return pa.chunked_array(_without_unsound(cells), cells.type)
    texts = cells.cast(pa.large_binary()).to_pylist()
    read = [None if text is None else text.decode("utf-8", "replace") for text in texts]
    return pa.chunked_array([pa.array(read, pa.large_string())])


def _without_unsound(cells: pa.ChunkedArray) -> list[pa.Array]:
    """The cells in their own type, with null for each that is none of it, as for a date64 within a day.

    Halved until a part is sound: what becomes of a cell, and of the column's type, no other cell decides.
    """
    if _is_sound(cells):
        return cells.chunks
    if len(cells) <= 1:
        return [pa.nulls(len(cells), cells.type)]
    half = len(cells) // 2
    return _without_unsound(cells.slice(0, half)) + _without_unsound(cells.slice(half))


def _makes_categories(kind: pa.DataType) -> bool:
    """Whether categories of pandas can be of this type whatever the cells are.

    Of other types one cell would decide that they cannot: NaN, -0.0, a date after the year 9999.
    """
    return bool(
        str(kind) in ("string", "large_string", "string_view")
        or pa.types.is_boolean(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
    )


def _decoded(cells: pa.ChunkedArray) -> pa.ChunkedArray:
    """A dictionary's cells in the type of its values."""
    kind = cells.type.value_type
    return pa.chunked_array([chunk.dictionary.take(chunk.indices) for chunk in cells.chunks], kind)


def _is_list(values: pa.Array) -> bool:
    """Whether these can be the categories of a column: no two alike, none missing."""
    return values.null_count == 0 and _is_sound(values) and len(pc.unique(values)) == len(values)


def _is_sound(cells: pa.Array | pa.ChunkedArray) -> bool:
    with suppress(Exception):
        cells.validate(full=True)
        if pa.types.is_nested(cells.type):
            cells.to_pandas()  # makes Python's dates of those within, which end in the year 9999
        return True
    return False
