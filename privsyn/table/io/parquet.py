"""Parquet files, read and written, and folders of these as one table."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from privsyn.errors import InputError, replace_errors, unless_own
from privsyn.files import UnpackedLimit, check_file
from privsyn.table.encoding.dtypes import TEXTS
from privsyn.table.io.arrow import check_types, public_columns, public_schema, with_text_for_null

if TYPE_CHECKING:
    from pyarrow.parquet import FileMetaData, ParquetFile

LIMIT = UnpackedLimit(2**30, 200)
"""A file of a real table unpacks to 1 to 30 times its size."""

UNPACKED = LIMIT.fact
"""What the ledger says about every Parquet file."""


def is_folder(path: Path) -> bool:
    """Return whether there is such a folder. A text that cannot be a path is none."""
    with suppress(OSError, ValueError):
        return path.is_dir()
    return False


def parts_of(path: Path) -> tuple[Path, ...]:
    """Return the files of a table: the file itself, or all Parquet files in a folder, by name."""
    if not is_folder(path):
        return (path,)
    files = sorted(file for file in _files(path) if file.suffix == ".parquet")
    if not files:
        raise InputError(
            f"{path}: is a folder without a file that ends in .parquet: of one table give the file; of linked"
            " tables give a schema too, which `privsyn schema` drafts from the folder"
        )
    if any("=" in name for file in files for name in file.relative_to(path).parts[:-1]):
        raise InputError(
            f"{path}: its folders name values of a column:"
            " give pyarrow.dataset.dataset(path, partitioning='hive')"
        )
    return tuple(files)


def left_out(path: Path) -> tuple[Path, ...]:
    """Return the files in a folder that are not read, by name, without hidden ones."""
    return (
        tuple(sorted(file for file in _files(path) if file.suffix != ".parquet")) if is_folder(path) else ()
    )


def _files(folder: Path) -> Iterator[Path]:
    """Yield all files in a folder and its subfolders, but those that begin with a dot or an underscore.

    A folder that cannot be read is refused. Without it, part of a table would pass for the whole.
    """

    def refuse(error: OSError) -> None:
        raise InputError(f"{error.filename}: cannot be read ({error.strerror})") from None

    for inside, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if name[0] not in "._"]
        files = (Path(inside, name) for name in names if name[0] not in "._")
        yield from (file for file in files if file.is_file())


def parquet_schema(files: Sequence[Path]) -> pa.Schema:
    """Return the schema of the first file of a table; refuse files of other columns or types.

    Files may differ in what depends on their rows: metadata, an index, the width of a dictionary's indices.
    """
    schemas = [_schema_of(file) for file in files]
    check_types(schemas[0], str(files[0]))
    columns = public_schema(schemas[0])
    for file, schema in zip(files, schemas, strict=True):
        if not public_schema(schema).equals(columns):
            raise InputError(f"{file}: other columns or types than {files[0].name}: write all files alike")
    return schemas[0]


def _schema_of(path: Path) -> pa.Schema:
    check_file(path)
    with replace_errors(unless_own(_damaged(path))), _open(path) as file:
        LIMIT.check(path, _unpacked(file.metadata))
        return file.schema_arrow


def _unpacked(metadata: FileMetaData) -> int:
    """Return to how many bytes a file unpacks, by its own account: at least one for each cell."""
    groups = (metadata.row_group(index) for index in range(metadata.num_row_groups))
    columns = [group.column(index) for group in groups for index in range(group.num_columns)]
    return sum(max(column.total_uncompressed_size, column.num_values) for column in columns)


def read_parquet(files: Sequence[Path]) -> pa.Table:
    """Return the rows of Parquet files of one schema."""
    parquet_schema(files)  # refuses files that differ
    return pa.concat_tables([_read(file) for file in files])


def _read(path: Path) -> pa.Table:
    with replace_errors(_damaged(path)), _open_coded(path) as file:
        return public_columns(_ordered(file.read(), _schema_of(path)))


def walk_parquet(
    files: Sequence[Path], rows: int, texts: Sequence[str] = (), columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of Parquet files in batches of at most `rows`, the columns `texts` as dictionaries.

    With `columns` only these are read, and those whose names begin with one of these and a point.
    """
    for path in files:
        with replace_errors(_damaged(path)), _open_coded(path, texts, buffer_size=2**20) as file:
            schema = _schema_of(path)
            for batch in file.iter_batches(rows, columns=columns):
                yield from _ordered(pa.Table.from_batches([batch]), schema).to_batches()


def _open(path: Path, **options: Any) -> ParquetFile:
    from pyarrow.parquet import ParquetFile  # not needed for a table in CSV

    return ParquetFile(path, **options)


def _open_coded(path: Path, texts: Sequence[str] = (), **options: Any) -> ParquetFile:
    """Open a file with the columns `texts` as dictionaries, and those that were dictionaries of text.

    Arrow would read the latter as text and cast it, which fails at the whole file if some text is not UTF-8.
    Those of `texts` that the file does not have are columns derived from other tables.
    """
    schema = _schema_of(path)
    coded = [
        field.name
        for field in schema
        if pa.types.is_dictionary(field.type) and str(field.type.value_type) in TEXTS
    ]
    texts = [name for name in texts if name in schema.names]
    return _open(path, read_dictionary=[*texts, *coded], **options)


def _ordered(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the table with an order in the dictionaries that have one in the schema: reading loses it."""
    for index, name in enumerate(table.column_names):
        if getattr(schema.field(name).type, "ordered", False):
            kind_of_table = table[name].type
            kind = pa.dictionary(kind_of_table.index_type, kind_of_table.value_type, ordered=True)
            parts = [
                pa.DictionaryArray.from_arrays(part.indices, part.dictionary, ordered=True)
                for part in table[name].chunks
            ]
            table = table.set_column(index, name, pa.chunked_array(parts, kind))
    return table


def _damaged(path: Path) -> str:
    return f"{path}: not a Parquet file, or a damaged one"


def write_parquet(tables: Iterator[pa.Table], part: Path) -> None:
    """Write blocks of rows in the types of the first, and missing cells alone as text."""
    from pyarrow.parquet import ParquetWriter  # not needed for a table in CSV

    types = None
    with ExitStack() as stack:
        for table in tables:
            if types is None:
                types = with_text_for_null(table.schema)
                writer = stack.enter_context(ParquetWriter(part, types))
            writer.write_table(table.cast(types))
