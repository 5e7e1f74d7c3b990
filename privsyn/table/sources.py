"""Tables in and out: data frames, Arrow tables, and files by their ending."""

from __future__ import annotations

import csv
import gzip
import io
import os
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from privsyn.errors import InputError
from privsyn.table.checks import check_names
from privsyn.table.csv_file import PLAIN, no_rows, read_csv, read_header
from privsyn.table.dtypes import family
from privsyn.table.form import Form
from privsyn.table.schema import Schema
from privsyn.table.spelling import spelt

ENDINGS = (".csv", ".csv.gz", ".parquet")

PANDAS = Form()

LONGEST_NAME = 200
"""Characters: a longer text is hardly a path, and may be the table itself."""

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


def _dtype(kind: pa.DataType) -> pd.api.extensions.ExtensionDtype | None:
    """The dtype of an Arrow type, where pandas' own choice would lose it or depend on the cells."""
    if pa.types.is_decimal(kind) or pa.types.is_time(kind):
        return pd.ArrowDtype(kind)
    return _DTYPES.get(kind)


@dataclass(frozen=True, eq=False)
class Source:
    """A table that was read.

    Parameters
    ----------
    frame : pandas.DataFrame
    public_inputs : tuple of str
        Facts about the rows that neither schema nor dtypes give and that are taken as public: one sentence
        each, for the ledger.
    schema : Schema, optional
        What a file without dtypes was taken to hold: the schema's columns, or kinds read off the file.
    form : Form
        Which kind of table it was.
    """

    frame: pd.DataFrame
    public_inputs: tuple[str, ...] = ()
    schema: Schema | None = None
    form: Form = PANDAS


def read_table(source: object, schema: Schema | None = None, *, unit: str | None = None) -> Source:
    """A table from wherever it is.

    Parameters
    ----------
    source : pandas.DataFrame, polars.DataFrame, pyarrow.Table, str or path
        A path ends in one of `ENDINGS`.
    schema : Schema, optional
        Says what the cells of a CSV file are. Without it their types are read off the file.
    unit : str, optional
        The column of identifiers, of which no type is guessed.

    Notes
    -----
    Arrow and Parquet have one type for integers, whether a cell is missing or not, and so have the columns
    here: ``Int64`` for int64, ``boolean`` for bool. pandas' own choice would depend on the cells.

    Examples
    --------
    >>> read_table(pa.table({"a": [1, None]})).frame.dtypes["a"]
    Int64Dtype()
    """
    if isinstance(source, pd.DataFrame):
        return Source(source)
    if isinstance(source, str | PathLike):
        return _read_file(Path(source), schema, unit)
    table = _arrow_of(source)
    polars = source if hasattr(source, "to_arrow") else None
    return Source(frame_of(table, "the table"), form=Form.of(table, polars))


def _arrow_of(source: Any) -> pa.Table:
    """The table of polars, in types that every pyarrow knows, or of whatever else speaks Arrow's protocol."""
    if hasattr(source, "to_arrow"):
        return source.to_arrow()
    if hasattr(source, "__arrow_c_stream__"):
        return pa.table(source)
    raise InputError(
        f"a table is a pandas or polars DataFrame, a pyarrow Table or a path, not a {type(source).__name__}"
    )


def read_columns(source: object, schema: Schema | None = None) -> pd.DataFrame:
    """A table of no rows with the columns of `source`: their names and dtypes, as far as they are public.

    Of a Parquet file only its schema is read, of a CSV only its header, the types being the schema's; a
    schema alone is enough.
    """
    if isinstance(source, Schema):
        return no_rows(source.columns, source)
    if isinstance(source, pd.DataFrame):
        return source.iloc[:0]
    if not isinstance(source, str | PathLike):
        return frame_of(_arrow_of(source).schema.empty_table(), "the table")
    path = Path(source)
    ending = ending_of(path)
    check_file(path)
    if ending != ".parquet":
        return no_rows(read_header(path, PLAIN if schema is None else schema.csv), schema)
    columns = None
    with suppress(Exception):
        columns = pq.read_schema(path)
    if columns is None:
        raise InputError(f"{path}: not a Parquet file, or a damaged one")
    return frame_of(columns.empty_table(), str(path))


def write_table(
    table: Any, path: str | PathLike[str], schema: Schema | None = None, form: Form = PANDAS
) -> None:
    """Write a table to a file, all of it or nothing; see `write_blocks`."""
    write_blocks(iter([table]), path, schema, form)


def write_blocks(
    blocks: Iterator[Any],
    path: str | PathLike[str],
    schema: Schema | None = None,
    form: Form = PANDAS,
    *,
    within: Path | None = None,
) -> tuple[int, int]:
    """Write a table that comes in blocks of rows, each as it comes, to a file: all of it or nothing.

    A missing cell of a CSV file is written as an empty cell. The same table gives the same bytes.

    Parameters
    ----------
    blocks : iterator of pandas, polars or pyarrow tables
        At least one, all of the same columns and types. The index of a data frame is left out.
    path : str or path
        Ends in one of `ENDINGS`.
    schema : Schema, optional
        Says how a CSV is written: dates, decimals, separators.
    form : Form, optional
        Says the types of a Parquet file.
    within : path, optional
        The folder in which the file is until it is whole, on the same disk; by default that of `path`.

    Returns
    -------
    The numbers of rows and of columns.
    """
    ending = ending_of(path)
    rows, columns = 0, 0

    def read() -> Iterator[Source]:
        nonlocal rows, columns
        for block in blocks:
            source = read_table(block)
            rows, columns = rows + len(source.frame), len(source.frame.columns)
            yield source if form is PANDAS else replace(source, form=form)

    with atomic_path(path, within) as part:
        if ending == ".parquet":
            _write_parquet(read(), part, Path(path), schema)
        else:
            _write_csv(read(), part, Path(path), schema, packed=ending == ".csv.gz")
    return rows, columns


def stacked(blocks: Iterator[pd.DataFrame]) -> pd.DataFrame:
    """Blocks of rows as one table."""
    first, *rest = blocks
    return pd.concat([first, *rest], ignore_index=True) if rest else first


def ending_of(path: str | PathLike[str]) -> str:
    """Which of `ENDINGS` a path has; an `InputError` if none.

    >>> ending_of("a.b/table.CSV.gz")
    '.csv.gz'
    """
    text = str(path)
    for ending in ENDINGS:
        if text.lower().endswith(ending):
            return ending
    where = "" if "\n" in text or len(text) > LONGEST_NAME else f"{text}: "  # else a table, not its path
    raise InputError(f"{where}the ending is none of {', '.join(ENDINGS)}")


@contextmanager
def atomic_path(path: str | PathLike[str], within: Path | None = None) -> Iterator[Path]:
    """A place to write a file that gets its name only when all is well, and else vanishes.

    Yields
    ------
    Path
        A new name with the same ending, in the same folder or `within` another one of the same disk.
    """
    target = Path(os.path.realpath(path))
    part = (within or target.parent) / f".{secrets.token_hex(4)}-{target.name[-64:]}"
    try:
        if target.is_dir():
            raise InputError(f"{path}: is a folder: give a file name in it")
        if target.exists() and not target.is_file():  # a rename would put a file in a device's place
            raise InputError(f"{path}: is not a file: give the name of one")
        if not target.parent.is_dir():
            raise InputError(f"{path}: there is no folder {target.parent}: create it first")
        yield part
        part.replace(target)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else "the disk failed"  # in no library's words
        raise InputError(f"{path}: cannot be written ({reason})") from None
    finally:
        with suppress(OSError):
            part.unlink()


def check_file(path: Path) -> None:
    """Refuse a path that leads to no file, or to one that cannot be read."""
    complaint = ""
    try:
        if not path.exists():
            complaint = "there is no such file"
        elif not path.is_file():
            complaint = "is a folder or device, not a file"
        else:
            with path.open("rb") as file:
                file.read(1)
    except OSError as error:
        complaint = f"cannot be read ({error.strerror})"
    if complaint:
        raise InputError(f"{path}: {complaint}")


def _read_file(path: Path, schema: Schema | None, unit: str | None) -> Source:
    ending = ending_of(path)
    check_file(path)
    if ending == ".parquet":
        table = _read_parquet(path)
        form = replace(Form.of(table), kind="pandas")
        return Source(frame_of(table, str(path)), form=form)
    return Source(*read_csv(path, schema, unit))


def _read_parquet(path: Path) -> pa.Table:
    table = None
    with suppress(Exception), pq.ParquetFile(path) as file:
        table = file.read()
    if table is None:
        raise InputError(f"{path}: not a Parquet file, or a damaged one")
    return table


def frame_of(table: pa.Table, what: str) -> pd.DataFrame:
    """An Arrow table as a data frame whose dtypes follow from its types alone.

    pandas by itself would make integers floats where a cell is missing, so that one row decides a dtype.
    Where pandas wrote the table, what it noted of its own dtypes and of its index holds beside that.
    """
    check_names(table.column_names, f"{what}: ")
    frame = None
    with suppress(Exception):  # its text may quote a cell
        columns = [_readable(cells) for cells in table.columns]
        readable = pa.Table.from_arrays(columns, names=table.column_names).replace_schema_metadata(
            table.schema.metadata
        )
        frame = readable.to_pandas(types_mapper=_dtype)
    if frame is None:
        raise InputError(f"{what}: has a column of a type that pandas does not know")
    return frame.reset_index(drop=True)


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
    if len(cells) == 1:
        return [pa.nulls(1, cells.type)]
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
    try:
        cells.validate(full=True)
    except pa.ArrowException:
        return False
    return True


def _write_parquet(blocks: Iterator[Source], part: Path, path: Path, schema: Schema | None) -> None:
    mixed, types = False, None
    with ExitStack() as stack:
        for block in blocks:
            try:
                if schema is None or block.form.types is None:
                    table = pa.Table.from_pandas(block.frame, types, preserve_index=False)
                else:
                    table = block.form.arrow(block.frame, schema)
            except (pa.ArrowException, ValueError, TypeError):
                mixed = True
                break
            if types is None:
                types = _without_nulls(table.schema)
                writer = stack.enter_context(pq.ParquetWriter(part, types))
            writer.write_table(table.cast(types))
    if mixed:
        raise InputError(f"{path}: some column mixes types, which Parquet cannot hold: write .csv")


def _without_nulls(types: pa.Schema) -> pa.Schema:
    """The types of a first block; a column of objects that is all missing there may hold text in the next."""
    for place, field in enumerate(types):
        if pa.types.is_null(field.type):
            types = types.set(place, field.with_type(pa.string()))
    return types


def _write_csv(
    blocks: Iterator[Source], part: Path, path: Path, schema: Schema | None, *, packed: bool
) -> None:
    spelling = PLAIN if schema is None else schema.csv
    unwritable = False
    with part.open("wb") as raw, ExitStack() as stack:
        # No name and no time in the header, so that the same table gives the same bytes.
        gz = gzip.GzipFile("", "wb", fileobj=raw, compresslevel=6, mtime=0) if packed else None
        binary = raw if gz is None else stack.enter_context(gz)
        text = stack.enter_context(io.TextIOWrapper(binary, encoding=spelling.encoding, newline=""))
        try:
            for place, block in enumerate(blocks):
                frame = block.frame if schema is None else spelt(block.frame, schema)
                frame.to_csv(
                    text,
                    index=False,
                    header=place == 0,
                    sep=spelling.delimiter,
                    lineterminator="\n",
                    quoting=csv.QUOTE_NONNUMERIC if spelling.quoting == "all" else _quoting(frame),
                )
            text.flush()
        except UnicodeEncodeError:  # its text quotes the cell
            unwritable = True
    if unwritable:
        raise InputError(f"{path}: some text cannot be written in {spelling.encoding}: choose utf-8")


def _quoting(frame: pd.DataFrame) -> Literal[0, 2]:
    """Python's csv leaves a lone carriage return bare, which readers take for the end of a row: quote all."""
    texts = [name for name, dtype in frame.dtypes.items() if family(dtype) in ("text", "object", "category")]
    cells = chain(frame.columns, *(frame[name].unique() for name in texts))
    return csv.QUOTE_NONNUMERIC if any("\r" in str(cell) for cell in cells) else csv.QUOTE_MINIMAL
