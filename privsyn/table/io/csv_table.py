"""A CSV file as a table: every cell is text, converted as the schema says. `csv_output` writes one.

A CSV has no dtypes. To guess them from the rows would let one odd cell change a whole column. So each cell
is converted alone, and one that cannot be read is missing. Only without a schema are types guessed from the
file. They then become public inputs, which the ledger lists.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from codecs import BOM_UTF8
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from privsyn.errors import InputError, replace_errors
from privsyn.files import UnpackedLimit, check_no_other
from privsyn.table.io.formats import CSV, DeclaredColumns, Formats, Location
from privsyn.table.io.guessed_columns import ANY_TEXT, guess_columns, guessed_facts
from privsyn.table.io.missing_marks import ALL_MARKS, MARKS, without_marks
from privsyn.table.io.output_type import PANDAS, OutputType
from privsyn.table.kinds.csv_format import DELIMITERS, CsvFormat
from privsyn.table.schema.columns import Categorical, Column, Datetime, Numerical
from privsyn.table.schema.schema import Schema, check_column_names

LONGEST_LINE = 2**20
"""Bytes, enough for 50,000 names. To read a file without line ends byte by byte would take long."""

DAMAGED = (csv.Error, OSError, EOFError, zlib.error)
"""Errors of a file that cannot be read as CSV."""

_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,18}")

_NUMBER = re.compile(r"\s*[-+]?([0-9]+[.,]?[0-9]*|[.,][0-9]+)([eE][-+]?[0-9]+)?\s*")

PLAIN = CsvFormat()
"""The dialect that programs write by default."""

NAMED = "that its first line has the names of the columns, though some may be numbers, as its owner says"
"""What is taken as public where the format says `header`."""


def read_header(location: Location, dialect: CsvFormat) -> list[str]:
    """Return the names of the columns of a CSV file, or another file of text, without reading a row.

    Raises
    ------
    InputError
        If they cannot be read, or a table cannot have such names.
    """
    names: list[str] = location.format.door.header(location, dialect)
    if not names:
        raise InputError(f"{location}: is empty: its first line must hold the names of the columns")
    if len({*names}) < len(names):
        _check_no_row(location, names, dialect)
    with replace_errors(lambda error: f"{error}, or add a header if the first line is a row", InputError):
        check_column_names(names, f"{location}: ")
    return names


def header(location: Location, dialect: CsvFormat) -> list[str]:
    """Return the names in the first line of a CSV file, without blanks that follow delimiters."""
    names = _first_row(location.file, dialect)
    return [name.lstrip(" ") for name in names] if _has_blanks(names, dialect) else names


def _has_blanks(names: Sequence[str], dialect: CsvFormat) -> bool:
    """Return whether a blank follows each delimiter: the schema says so, or the header, which is public."""
    return dialect.blank or (len(names) > 1 and all(name.startswith(" ") for name in names[1:]))


def follows_delimiters(location: Location, dialect: CsvFormat) -> bool:
    """Return whether the header says that a blank follows each delimiter."""
    return _has_blanks(_first_row(location.file, dialect), dialect)


def _first_row(path: Path, dialect: CsvFormat) -> list[str]:
    """Return the names in the first line of a CSV file, as they are written."""
    encoding = "utf-8-sig" if dialect.encoding == "utf-8" else dialect.encoding
    with (
        replace_errors(partial(unreadable, path), DAMAGED),
        replace_errors(not_text(path, dialect), UnicodeDecodeError),
    ):
        line = first_line(path)
        check_no_other(path, line)
        text = line.decode(encoding)
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=dialect.delimiter)
        names = next((row for row in rows if row), [])
    if "\0" in text:
        raise InputError(
            f"{path}: its header has a NUL byte, so it is no CSV, or one in UTF-16: save it as CSV in UTF-8"
        )
    if any("\n" in name or "\r" in name for name in names):  # usually rows, after a quote left open
        raise InputError(
            f"{path}: its header does not end with its line: close its quotes, or rename a column"
        )
    return names


def declared(location: Location, dialect: CsvFormat) -> DeclaredColumns:
    """Return no column, for a CSV has no types, and what is taken as public about every CSV."""
    facts = (well_formed(dialect), *((UNPACKED,) if is_gzip(location.file) else ()))
    return DeclaredColumns(public_inputs=facts)


def check_header(
    location: Location,
    names: Sequence[str],
    declared_names: Collection[str] = (),
    dialect: CsvFormat = PLAIN,
) -> None:
    """Refuse a first line that looks like a row, or that has another delimiter.

    The names of columns are public: they are printed and stand in the synthetic table. A refused line may be
    somebody's row, so the message quotes nothing of it.

    Parameters
    ----------
    location : Location
    names : sequence of str
    declared_names : names that are declared, in a schema or as the column of identifiers
    dialect : CsvFormat
        It may say that the first line has the names.

    Examples
    --------
    >>> check_header(Location.of("people.csv"), ["age", "sex"])
    >>> check_header(Location.of("years.csv"), ["2019", "2020"], declared_names=["2019", "2020"])
    """
    unknown = [name for name in names if name not in declared_names]
    if len(names) == 1 and unknown and (sign_found := next((s for s in DELIMITERS if s in names[0]), None)):
        sign, spelled = shown(sign_found), shown(sign_found, '"')
        raise InputError(
            f"{location}: the header looks like it is separated by {sign}: use --delimiter {sign},"
            f" or write csv: {{delimiter: {spelled}}} in the schema"
        )
    _check_no_row(location, unknown, dialect)
    if any(not name.strip() for name in unknown):
        raise InputError(
            f"{location}: its first line leaves a column without a name, or is a row: add the name, or a"
            " header (pandas leaves out its index by to_csv(..., index=False))"
        )


def _check_no_row(location: Location, names: Sequence[str], dialect: CsvFormat) -> None:
    """Refuse names that are numbers, as the cells of a row are. A name beside four years may be somebody."""
    if not dialect.header and any(_NUMBER.fullmatch(name) for name in names):
        raise InputError(
            f"{location}: its first line looks like a row, not like the names of columns: add a header; or,"
            " if these are names, such as years, give --header, or csv: {header: true} in a schema"
        )


def first_line(path: Path) -> bytes:
    """Return the bytes of a file up to the end of its first line that is not blank.

    A gzip file is unpacked byte by byte too.

    Raises
    ------
    OSError, EOFError, zlib.error
        If the file cannot be read.
    """
    line = bytearray()
    with path.open("rb", buffering=0) as file:
        for byte in _unpacked(file) if is_gzip(path) else _bytes(file):
            line += byte
            if byte in (b"\n", b"\r") and line.removeprefix(BOM_UTF8).strip(b"\r\n"):
                break
            if len(line) > LONGEST_LINE:
                raise InputError(f"{path}: its first line is longer than 1 MB: is it a CSV file?")
    return bytes(line)


def is_gzip(path: Path) -> bool:
    """Return whether a file is compressed, by its name."""
    return path.name.lower().endswith(".gz")


def not_text(path: Path, dialect: CsvFormat) -> str:
    """Return the message for a file in another encoding."""
    encoding = "cp1252" if dialect.encoding == "utf-8" else "utf-8"
    return (
        f"{path}: not text in {dialect.encoding.upper()}: use --encoding, such as --encoding {encoding}"
        f" (in the schema, csv: {{encoding: {encoding}}}), or save it in {dialect.encoding.upper()}"
    )


def shown(delimiter: str, quote: str = "'") -> str:
    r"""Return a delimiter as it is typed in a shell, or in double quotes as in YAML.

    >>> print(shown(";"), shown("\t"))
    ';' '\t'
    """
    return quote + delimiter.replace("\t", r"\t") + quote


def unreadable(path: Path, error: Exception) -> str:
    """Return the message for a file that cannot be read, without the error's text, which may quote a row."""
    return f"{path}: cannot be read as CSV ({getattr(error, 'strerror', None) or 'it is damaged or no text'})"


def _bytes(file: IO[bytes]) -> Iterator[bytes]:
    while byte := file.read(1):
        yield byte


def _unpacked(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the bytes in a gzip file, which may be several joined into one."""
    unzip, is_complete = zlib.decompressobj(wbits=31), True
    for packed in _bytes(file):
        if is_complete:
            unzip = zlib.decompressobj(wbits=31)
        unpacked = unzip.decompress(packed)
        yield from (unpacked[location : location + 1] for location in range(len(unpacked)))
        is_complete = unzip.eof
    if not is_complete:
        raise EOFError


LONGEST_ROW = 2**26
"""Bytes of UTF-8: the reader's block. That no row is longer is a public input (`csv_table.well_formed`).

A row of up to this length is always read. A longer one is refused, unless it ends in the second block.
"""


NO_FORMATS: Formats = {}


def read_text(location: Location, dialect: CsvFormat = PLAIN, formats: Formats = NO_FORMATS) -> pa.Table:
    """Return every cell of a file as text, an empty one as empty text. A blank line is no row."""
    empty = pa.table({name: pa.array([], pa.string()) for name in check_text(location, dialect)})
    return pa.concat_tables([empty, *walk_text(location, dialect, formats)])


def check_text(location: Location, dialect: CsvFormat) -> list[str]:
    """Return the names in the header of a file; refuse a CSV with an open quote."""
    names = read_header(location, dialect)
    if location.format is CSV:
        path, quotes, size = location.file, 0, 0
        # The message says nothing of what follows the quote. `LIMIT` refuses a file that has no end.
        with replace_errors(partial(unreadable, path), DAMAGED), _open(path) as file:
            while block := file.read(2**20):
                quotes += block.count(b'"')
                size += len(block)
                if is_gzip(path):
                    LIMIT.check(path, size)
        if quotes % 2:  # a quoted cell has two, and each quote within it is doubled
            raise InputError(
                f"{path}: some quote is not closed: put the cell in quotes and double each quote within it"
            )
    return names


LIMIT = UnpackedLimit(2**30, 200)
"""Of a compressed CSV. It is read in batches: what grows with its length is time alone."""

UNPACKED = LIMIT.fact
"""What the ledger says about every compressed CSV file."""


def walk_text(
    location: Location, dialect: CsvFormat, formats: Formats = NO_FORMATS, only: Collection[str] | None = None
) -> Iterator[pa.Table]:
    """Yield the cells of a file as text, a block of rows at a time.

    Dates and numbers of a sheet are spelled in the `formats` of their columns, so that they read as in a CSV.
    Columns that are not among `only` may be left out.
    """
    yield from location.format.door.texts(location, dialect, formats, only)


def texts(
    location: Location, dialect: CsvFormat, _: Formats, _only: Collection[str] | None = None
) -> Iterator[pa.Table]:
    """Yield the cells of a CSV file."""
    read_header(location, dialect)
    path, names = location.file, _first_row(location.file, dialect)
    blanks = _has_blanks(names, dialect)
    with replace_errors(partial(_message, path, dialect)), ExitStack() as stack:
        batches: Iterable[pa.RecordBatch] = ()
        if _has_rows(path):
            compression = "gzip" if is_gzip(path) else None
            stream = stack.enter_context(pa.input_stream(str(path), compression=compression))
            batches = stack.enter_context(
                arrow_csv.open_csv(
                    stream,
                    read_options=arrow_csv.ReadOptions(block_size=LONGEST_ROW, encoding=dialect.encoding),
                    parse_options=arrow_csv.ParseOptions(
                        newlines_in_values=True, delimiter=dialect.delimiter
                    ),
                    convert_options=arrow_csv.ConvertOptions(
                        column_types={name: pa.string() for name in names}, strings_can_be_null=False
                    ),
                )
            )
        for batch in batches:
            if batch.schema.names != names:
                raise InputError(
                    f"{path}: its header cannot be read: write one name for each column, separated by"
                    f" {shown(dialect.delimiter)}"
                )
            table = pa.Table.from_batches([batch])
            yield _without_blanks(table) if blanks else table


def _without_blanks(table: pa.Table) -> pa.Table:
    """Return the cells and names without the blanks before them, and without the quotes after these blanks.

    A quote that follows a blank is text to the reader, so that a delimiter between such quotes is one too.
    """
    columns = []
    for cells in table.columns:
        text = pc.utf8_ltrim(cells, characters=" ")
        quoted = pc.match_substring_regex(cells, r'(?s)^ +".*"$')
        inside = pc.replace_substring(pc.utf8_slice_codeunits(text, 1, -1), '""', '"')
        columns.append(pc.if_else(quoted, inside, text))
    return pa.table(columns, names=[name.lstrip(" ") for name in table.column_names])


def _message(path: Path, dialect: CsvFormat, error: Exception) -> str:
    """Return the message for a file that Arrow cannot read; Arrow's own quotes the row."""
    if isinstance(error, InputError):
        return str(error)
    if isinstance(error, UnicodeDecodeError) or "UTF8" in str(error):
        return not_text(path, dialect)
    if "straddling" in str(error):  # a row does not end in the block after the one in which it begins
        return (
            f"{path}: some row is longer than {LONGEST_ROW >> 20} MiB, the longest that is read:"
            " leave out the column of long texts"
        )
    no_table = f"{path}: not a table with --delimiter {shown(dialect.delimiter)}"
    if line := _line_of_uneven_row(path, dialect):
        return f"{no_table}: the row in line {line:,} is longer or shorter than the header"
    return f"{no_table}: some row is longer or shorter than the header, or the file is damaged"


def _line_of_uneven_row(path: Path, dialect: CsvFormat) -> int:
    """Return the number of the line in which the first row begins that has other cells than the header, or 0.

    The message for the owner of the file has it, and no value of the row.
    """
    with suppress(UnicodeDecodeError, csv.Error, *DAMAGED), _open(path) as file:
        rows = csv.reader(
            io.TextIOWrapper(file, encoding=dialect.encoding, newline=""), delimiter=dialect.delimiter
        )
        cells, line = 0, 1
        for row in rows:
            cells = cells or len(row)
            if len(row) not in (0, cells):  # a blank line is no row
                return line
            line = rows.line_num + 1
    return 0


def _has_rows(path: Path) -> bool:
    """Return whether anything but blank lines follows the header."""
    with _open(path) as file:
        file.read(len(first_line(path)))
        return any(block.strip(b"\r\n") for block in iter(partial(file.read, 2**20), b""))


def _open(path: Path) -> io.BufferedReader | gzip.GzipFile:
    return gzip.open(path) if is_gzip(path) else path.open("rb")


def well_formed(dialect: CsvFormat) -> str:
    """Return what the ledger says about every CSV file."""
    return (
        f"that the file is well-formed CSV in {dialect.encoding.upper()}: quotes closed, every row as long as"
        f" the header, none of more than {LONGEST_ROW >> 20} MiB"
    )


@dataclass(frozen=True)
class CsvTable:
    """How the cells of a CSV file are read.

    Parameters
    ----------
    location : Location
    columns : mapping of each name in the header to its Column
    missing : mapping of each name to the texts that stand for a missing cell
    public_inputs : tuple of str
        A sentence for each fact about the rows that is taken as public.
    units : tuple of str
        The columns of identifiers. They stay text, so that those that are written in different ways differ.
    dialect : CsvFormat
    integers : collection of str
        Those that the file declares to hold whole numbers.
    form : OutputType
        The types that the file declares.
    """

    location: Location
    columns: Mapping[str, Column]
    missing: Mapping[str, Sequence[str]]
    public_inputs: tuple[str, ...]
    units: tuple[str, ...]
    dialect: CsvFormat
    integers: Collection[str] = ()
    form: OutputType = PANDAS

    @classmethod
    def open(cls, location: Location, schema: Schema | None, units: tuple[str, ...] = ()) -> CsvTable:
        """Read the header and, for columns that the schema does not declare, the cells."""
        dialect = PLAIN if schema is None else schema.csv
        names = check_text(location, dialect)
        columns_known: dict[str, Column] = {}
        marks: Sequence[str] = ()
        missing: dict[str, Sequence[str]] = {}
        if schema is not None:
            columns_known = {name: column for name, column in schema.columns.items() if name in names}
            marks = schema.missing
            missing = {name: schema.markers(name) for name in columns_known}
        columns_known |= {unit: ANY_TEXT for unit in units if unit in names}
        declared_columns: DeclaredColumns = location.format.door.declared(location, dialect)
        columns_known = {**declared_columns.columns, **columns_known}
        check_header(location, names, columns_known, dialect)
        unknown = {name: (*ALL_MARKS, *marks) for name in names if name not in columns_known}
        guessed = guess_columns(walk_text(location, dialect) if unknown else (), unknown, dialect)
        columns = {name: columns_known[name] if name in columns_known else guessed[name] for name in names}
        in_text, in_other = (*MARKS, *marks), (*ALL_MARKS, *marks)
        missing = {
            name: in_text if column == ANY_TEXT else in_other for name, column in columns.items()
        } | missing
        integers = {
            name for name, column in declared_columns.columns.items() if getattr(column, "integer", False)
        }
        # Codes and keys whose values are found stay whole numbers, too: no text stands for the others then.
        columns_to_find = {
            name for name, column in columns.items() if column.lists_values and not column.listed
        }
        integer_columns = integers & {*units, *columns_to_find}
        named = (NAMED,) if dialect.header else ()
        facts = (*declared_columns.public_inputs, *named, *guessed_facts(guessed, dialect))
        form = OutputType(declared=declared_columns.types)
        return cls(location, columns, missing, facts, units, dialect, integer_columns, form)

    @property
    def formats(self) -> Formats:
        """How dates and numbers are spelled in the columns where the schema says so."""
        dates = {name: column.format for name, column in self.columns.items() if isinstance(column, Datetime)}
        numbers = {
            name: column.form for name, column in self.columns.items() if isinstance(column, Numerical)
        }
        return {name: form for name, form in {**dates, **numbers}.items() if form is not None}

    @property
    def schema(self) -> Schema | None:
        """Return the columns without those of identifiers, or None if there is no other."""
        kinds = {name: column for name, column in self.columns.items() if name not in self.units}
        return Schema(kinds, csv=self.dialect) if kinds else None

    def frame(self, text: pa.Table) -> pd.DataFrame:
        """Return rows of text as a data frame, each cell converted alone."""
        cells = {name: without_marks(text[name], self.missing[name]) for name in self.columns}
        typed = {
            name: whole_numbers(cells[name])
            if name in self.integers
            else column.read_cells(cells[name], self.dialect)
            for name, column in self.columns.items()
        }
        return pd.DataFrame(typed, copy=False)


def whole_numbers(cells: pa.ChunkedArray) -> pd.Series:
    """Return identifiers that are declared to be whole numbers, each from its own cell; another is missing.

    They must stay distinct: a number of floating point holds no key above 2^53, and 007 is not written as
    such a number is.

    >>> whole_numbers(pa.chunked_array([["9007199254740993", "007", "7.0", "99999999999999999999"]])).tolist()
    [9007199254740993, <NA>, <NA>, <NA>]
    """
    numbers = [
        int(text) if text is not None and _WHOLE.fullmatch(text) else None for text in cells.to_pylist()
    ]
    lowest, highest = -(2**63), 2**63 - 1
    return pd.Series(
        [key if key is None or lowest <= key <= highest else None for key in numbers], dtype="Int64"
    )


def read_csv(
    location: Location, schema: Schema | None, units: tuple[str, ...] = ()
) -> tuple[pd.DataFrame, tuple[str, ...], Schema | None, OutputType]:
    """Return the table in a file of text, its `public_inputs`, its columns and their declared types."""
    table = CsvTable.open(location, schema, units)
    frame = table.frame(read_text(location, table.dialect, table.formats))
    return frame, table.public_inputs, table.schema, table.form


def no_rows(names: Iterable[str], schema: Schema | None) -> pd.DataFrame:
    """Return a table without rows, in the dtypes of the schema; other columns are text."""
    columns = {} if schema is None else schema.columns
    empty = pa.chunked_array([pa.array([], pa.string())])
    return pd.DataFrame({name: columns.get(name, Categorical()).read_cells(empty, PLAIN) for name in names})


def marks_in(location: Location, dialect: CsvFormat = PLAIN) -> dict[str, tuple[str, ...]]:
    """Return which of `ALL_MARKS` each column of the file has, without the empty cell. It reads the rows."""
    text = read_text(location, dialect)
    marks = pa.array(ALL_MARKS[1:], pa.string())
    return {
        name: tuple(
            mark
            for mark, used in zip(
                marks.to_pylist(), pc.is_in(marks, pc.unique(text[name])).to_pylist(), strict=True
            )
            if used
        )
        for name in text.column_names
    }
