"""Tables in and out: data frames, Arrow tables, and files by their ending."""

from __future__ import annotations

import csv
import gzip
import io
import os
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Literal

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from privsyn.errors import InputError
from privsyn.table.checks import check_names
from privsyn.table.csv_file import read_csv
from privsyn.table.dtypes import family
from privsyn.table.schema import Schema

ENDINGS = (".csv", ".csv.gz", ".parquet")

_NULLABLE = {
    pa.int8(): pd.Int8Dtype(),
    pa.int16(): pd.Int16Dtype(),
    pa.int32(): pd.Int32Dtype(),
    pa.int64(): pd.Int64Dtype(),
    pa.uint8(): pd.UInt8Dtype(),
    pa.uint16(): pd.UInt16Dtype(),
    pa.uint32(): pd.UInt32Dtype(),
    pa.uint64(): pd.UInt64Dtype(),
    pa.bool_(): pd.BooleanDtype(),
}


@dataclass(frozen=True, eq=False)
class Source:
    """A table that was read.

    Parameters
    ----------
    frame : pandas.DataFrame
    public_inputs : tuple of str
        Facts that neither schema nor dtypes gave and that were read off the rows: one sentence each, for
        the ledger.
    """

    frame: pd.DataFrame
    public_inputs: tuple[str, ...] = ()


def read_table(source: object, schema: Schema | None = None) -> Source:
    """A table from wherever it is.

    Parameters
    ----------
    source : pandas.DataFrame, polars.DataFrame, pyarrow.Table, str or path
        A path ends in one of `ENDINGS`.
    schema : Schema, optional
        Says what the cells of a CSV file are. Without it their types are read off the file.

    Examples
    --------
    >>> read_table(pa.table({"a": [1, None]})).frame.dtypes["a"]
    Int64Dtype()
    """
    if isinstance(source, pd.DataFrame):
        return Source(source)
    if isinstance(source, str | PathLike):
        return _read_file(Path(source), schema)
    if hasattr(source, "to_arrow"):  # polars, in types that every pyarrow knows
        source = source.to_arrow()
    if hasattr(source, "__arrow_c_stream__"):  # whatever else speaks Arrow's protocol
        return Source(_from_arrow(pa.table(source), "the table"))
    raise InputError(
        f"a table is a pandas or polars DataFrame, a pyarrow Table or a path, not a {type(source).__name__}"
    )


def write_table(frame: pd.DataFrame, path: str | PathLike[str]) -> None:
    """Write a table to a file, all of it or nothing.

    A missing cell of a CSV file is written as an empty cell. The same table gives the same bytes.

    Parameters
    ----------
    frame : pandas.DataFrame
        Its index is left out.
    path : str or path
        Ends in one of `ENDINGS`.
    """
    ending = ending_of(path)
    with atomic_path(path) as part:
        if ending == ".parquet":
            _write_parquet(frame, part, Path(path))
        else:
            _write_csv(frame, part, packed=ending == ".csv.gz")


def ending_of(path: str | PathLike[str]) -> str:
    """Which of `ENDINGS` a path has; an `InputError` if none.

    >>> ending_of("a.b/table.CSV.gz")
    '.csv.gz'
    """
    name = Path(path).name.lower()
    for ending in ENDINGS:
        if name.endswith(ending):
            return ending
    raise InputError(f"{path}: the ending is none of {', '.join(ENDINGS)}")


@contextmanager
def atomic_path(path: str | PathLike[str]) -> Iterator[Path]:
    """A place to write a file that gets its name only when all is well, and else vanishes.

    Yields
    ------
    Path
        A new name in the same folder, with the same ending.
    """
    target = Path(os.path.realpath(path))
    part = target.with_name(f".{secrets.token_hex(4)}-{target.name[-64:]}")
    try:
        if target.is_dir():
            raise InputError(f"{path}: is a folder: give a file name in it")
        if not target.parent.is_dir():
            raise InputError(f"{path}: there is no folder {target.parent}: create it first")
        yield part
        part.replace(target)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or 'the disk failed'})") from None
    finally:
        with suppress(OSError):
            part.unlink()


def _read_file(path: Path, schema: Schema | None) -> Source:
    ending = ending_of(path)
    try:
        if not path.exists():
            raise InputError(f"{path}: there is no such file")
        if not path.is_file():
            raise InputError(f"{path}: is a folder or device, not a file")
        with path.open("rb") as file:
            file.read(1)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    if ending == ".parquet":
        return Source(_read_parquet(path))
    return Source(*read_csv(path, schema))


def _read_parquet(path: Path) -> pd.DataFrame:
    try:
        with pq.ParquetFile(path) as file:
            table = file.read()
    except (pa.ArrowException, OSError, ValueError):
        raise InputError(f"{path}: not a Parquet file, or a damaged one") from None
    return _from_arrow(table, str(path))


def _from_arrow(table: pa.Table, what: str) -> pd.DataFrame:
    """An Arrow table as a data frame whose dtypes follow from its types alone.

    pandas by itself would make integers floats where a cell is missing, so that one row decides a dtype.
    A table that pandas wrote says which dtypes it had.
    """
    check_names(table.column_names, f"{what}: ")
    dtypes = {} if table.schema.pandas_metadata else _NULLABLE
    try:
        frame = table.to_pandas(types_mapper={**dtypes, pa.date32(): pd.ArrowDtype(pa.date32())}.get)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        raise InputError(f"{what}: has a column of a type that pandas does not know") from None
    return frame.reset_index(drop=True)


def _write_parquet(frame: pd.DataFrame, part: Path, path: Path) -> None:
    try:
        frame.to_parquet(part, engine="pyarrow", index=False)
    except (pa.ArrowException, ValueError, TypeError):
        raise InputError(f"{path}: some column mixes types, which Parquet cannot hold: write .csv") from None


def _write_csv(frame: pd.DataFrame, part: Path, *, packed: bool) -> None:
    with part.open("wb") as raw, ExitStack() as stack:
        # No name and no time in the header, so that the same table gives the same bytes.
        gz = gzip.GzipFile("", "wb", fileobj=raw, compresslevel=6, mtime=0) if packed else None
        binary = raw if gz is None else stack.enter_context(gz)
        text = stack.enter_context(io.TextIOWrapper(binary, encoding="utf-8", newline=""))
        frame.to_csv(text, index=False, lineterminator="\n", quoting=_quoting(frame))


def _quoting(frame: pd.DataFrame) -> Literal[0, 2]:
    """Python's csv leaves a lone carriage return bare, which readers take for the end of a row: quote all."""
    texts = [name for name, dtype in frame.dtypes.items() if family(dtype) in ("text", "object", "category")]
    cells = chain(frame.columns, *(frame[name].unique() for name in texts))
    return csv.QUOTE_NONNUMERIC if any("\r" in str(cell) for cell in cells) else csv.QUOTE_MINIMAL
