"""The formats of tables in files: one row each, which says how a file is named, read and written.

The modules of several formats share what is below: names in SQL, public facts, and cells as text.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from importlib import import_module
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from privsyn.errors import InputError, did_you_mean, replace_errors
from privsyn.files import check_file, is_url
from privsyn.table.encoding.number_format import NumberFormat
from privsyn.table.encoding.parsing import alone, number
from privsyn.table.encoding.time_format import spell_time
from privsyn.table.io.parquet import is_folder, parquet_schema, parts_of
from privsyn.table.kinds.column import Column
from privsyn.table.kinds.csv_format import CsvFormat

SEPARATOR = "::"
"""Between a file and the name of a table within it."""

MODEL = ".privsyn"
"""The ending of the file of a model, which is no table."""

BLOCK = 65_536
"""Rows that are converted at a time."""

LONGEST_NAME = 200
"""Characters: a longer text is hardly a path, and may be the table itself."""

RESULT = (
    "without an error, the names and types of its columns, and that what is protected is a row of its result,"
    " not of the tables that it reads"
)

Formats = Mapping[str, str | NumberFormat]
"""How dates and numbers are spelled as text, by the name of the column."""

Labels = Mapping[str, tuple[tuple[float, str], ...]]
"""The codes of a column, each with its label, by the name of the column."""


@dataclass(frozen=True)
class Format:
    """A format of files.

    Parameters
    ----------
    endings : tuple of str
    name : str
    typed : bool
        Whether the file says of which type each column is. If not, each cell is read as text and converted
        alone, as the schema says.
    module : str
        What reads and writes it, in this folder. A typed one has `open_typed`, another one `header`,
        `declared` and `texts`; both have `write`. `write.py` writes CSV and Parquet.
    library, extra : str
        The package that it needs, and the extra of privsyn that installs it.
    inside : str
        What has a name within the file, if anything has.
    arrow : bool
        Whether Arrow tables are written, not data frames.
    media : str
        The media type, for the metadata of a published table.
    """

    endings: tuple[str, ...]
    name: str
    typed: bool = False
    module: str = ""
    library: str = ""
    extra: str = ""
    inside: str = ""
    arrow: bool = False
    media: str = "application/octet-stream"

    @property
    def door(self) -> ModuleType:
        """What reads and writes the format; an `InputError` if its library is missing."""
        self.require()
        return import_module(f"privsyn.table.io.{self.module}")

    def require(self) -> None:
        """Refuse a format whose library is missing."""
        missing = f"{self.name} needs {self.library}: run pip install {self.library} (extra [{self.extra}])"
        with replace_errors(missing, ImportError):
            if self.library:
                import_module(self.library)


CSV = Format((".csv", ".csv.gz"), "CSV", module="csv_table", media="text/csv")
PARQUET = Format((".parquet",), "Parquet", typed=True, media="application/vnd.apache.parquet")
FORMATS = (
    CSV,
    PARQUET,
    Format(
        (".xlsx",),
        "Excel",
        module="excel",
        library="openpyxl",
        extra="excel",
        inside="sheet",
        media="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ),
    Format((".dta",), "Stata", True, "labelled", "pyreadstat", "stata"),
    Format((".sav",), "SPSS", True, "labelled", "pyreadstat", "spss"),
    Format((".duckdb",), "DuckDB", True, "duckdb_table", "duckdb", "duckdb", "table", arrow=True),
    Format((".sqlite", ".sqlite3", ".db"), "SQLite", module="sqlite_table", inside="table"),
)

SHEETS = "Linked tables are files of one folder: save each sheet as a CSV file there"
"""What to do with a workbook whose sheets are linked tables."""

ENDINGS = tuple(ending for form in FORMATS for ending in form.endings)


@dataclass(frozen=True)
class Location:
    """Where a table is: a file, and in some formats the name of a table or a query within it.

    Examples
    --------
    >>> place = Location.of("shop.duckdb::orders")
    >>> place.file.name, place.inside, place.format.name
    ('shop.duckdb', 'orders', 'DuckDB')
    """

    file: Path
    inside: str
    format: Format

    @classmethod
    def of(cls, path: str | PathLike[str]) -> Location:
        """Return the place that a path or text names; an `InputError` if its ending is of no format."""
        text = str(path)
        if is_folder(Path(path)):
            return cls(Path(path), "", PARQUET)
        is_table = len(text.splitlines()) > 1 or len(text) > LONGEST_NAME  # then no cell may be shown
        if is_url(path) and not is_table:
            raise InputError(
                "tables are files here, and no URLs: fit takes pyarrow.dataset.dataset(URL), or of a database"
                " ibis.connect(URL).table(NAME). What sample returns has methods that write to a URL, such as"
                " to_parquet(URL)"
            )
        before, separator, inside = text.partition(SEPARATOR)
        for form in FORMATS:
            if text.lower().endswith(form.endings) and not (form.inside and separator):
                return cls(Path(path), "", form)
            if separator and form.inside and before.lower().endswith(form.endings):
                return cls(Path(before), inside.strip(), form)
        if text.lower().endswith(MODEL) and not is_table:
            raise InputError(
                f"{text}: is a model, not a table: `privsyn sample {text} rows.csv` makes rows of it"
            )
        raise InputError(f"{'' if is_table else f'{text}: '}the ending is none of {', '.join(ENDINGS)}")

    def __str__(self) -> str:
        return f"{self.file}{SEPARATOR}{self.inside}" if self.inside else str(self.file)

    def choose(self, names: list[str]) -> str:
        """Return which of the tables or sheets in the file is meant: the one named, or the only one."""
        noun, listed = self.format.inside, ", ".join(map(repr, names[:10]))
        if not names:
            raise InputError(f"{self.file}: has no {noun}")
        if self.inside in names:
            return self.inside
        if self.inside:
            meant = did_you_mean(self.inside, names)
            raise InputError(f"{self.file}: has no {noun} {self.inside!r}, but {listed}{meant}")
        if len(names) > 1:
            drafted = ", or declare all of them in a schema (`privsyn schema` drafts it)"
            linked = drafted if noun == "table" else f". {SHEETS}"
            raise InputError(
                f"{self.file}: has {len(names)} {noun}s, {listed}: name one, as"
                f" '{self.file.name}::{names[0]}'{linked}"
            )
        return names[0]

    def copy_to(self, part: Path) -> str:
        """Copy a database to `part`, if there is one, and return the name of its new table in SQL."""
        if self.file.exists():
            shutil.copyfile(self.file, part)
        return quoted(self.table)

    @property
    def table(self) -> str:
        """The name of the table that is written into a database."""
        return self.inside or "synthetic"

    @property
    def unwritable(self) -> str:
        """What to say if a table cannot be written into a database."""
        return (
            f"{self}: the table cannot be written: is this a {self.format.name} database, without a view of"
            " that name or another table that refers to it?"
        )

    @property
    def query(self) -> str:
        """The SQL query that is given instead of the name of a table, or ""."""
        first = self.inside.split(maxsplit=1)
        return self.inside if len(first) == 2 and first[0].lower() in ("select", "with", "from") else ""


@dataclass(frozen=True)
class TypedFile:
    """A file that says of which type each column is.

    Parameters
    ----------
    schema : pyarrow.Schema
        The types, without a look at the rows.
    batches : callable
        Returns the rows, in the same order each time.
    labels : mapping, optional
        The value labels of columns: metadata of the file.
    public_inputs : tuple of str
        What is taken as public about the rows.
    """

    schema: pa.Schema
    batches: Callable[[], Iterator[pa.RecordBatch]]
    labels: Labels = field(default_factory=dict)
    public_inputs: tuple[str, ...] = ()


@dataclass(frozen=True)
class DeclaredColumns:
    """What a file without a type for every cell says of its columns.

    Parameters
    ----------
    columns : mapping of a name to its Column
        Those whose declared type says how their cells are read.
    types : mapping of a name to its declared type in SQL
    public_inputs : tuple of str
        What is taken as public about the rows.
    """

    columns: Mapping[str, Column] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)
    public_inputs: tuple[str, ...] = ()


@dataclass(frozen=True)
class DeclaredTable:
    """What a database says of one of its tables.

    Parameters
    ----------
    key : tuple of str
        The columns of its primary key.
    links : mapping of columns to the name of a table and the columns of its key
        The foreign keys.
    comments : mapping of a column to text
        That of the table itself is named "".
    never_missing : collection of str
        The columns that are NOT NULL, besides the key. Only stated of tables that are written.
    types : mapping of a column to its type in SQL
        Those of a table of SQLite. Only stated of tables that are written.
    """

    key: tuple[str, ...] = ()
    links: Mapping[tuple[str, ...], tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    comments: Mapping[str, str] = field(default_factory=dict)
    never_missing: Collection[str] = ()
    types: Mapping[str, str] = field(default_factory=dict)

    @property
    def not_null(self) -> frozenset[str]:
        """The columns that are NOT NULL, with the key."""
        return frozenset((*self.never_missing, *self.key))

    @property
    def sql(self) -> list[str]:
        """The keys as lines of CREATE TABLE."""
        keys = [f"PRIMARY KEY ({listed(self.key)})"] if self.key else []
        return keys + [
            f"FOREIGN KEY ({listed(columns)}) REFERENCES {quoted(table)} ({listed(key)})"
            for columns, (table, key) in self.links.items()
        ]


NOTHING = DeclaredTable()


def ending_of(path: str | PathLike[str]) -> str:
    """Return which of `ENDINGS` a path has, ``.parquet`` for a folder; an `InputError` if none.

    >>> ending_of("a.b/table.CSV.gz"), ending_of("book.xlsx::Sheet2")
    ('.csv.gz', '.xlsx')
    """
    location = Location.of(path)
    location.format.require()
    name = location.file.name.lower()
    return next((ending for ending in location.format.endings[::-1] if name.endswith(ending)), ".parquet")


def is_csv(path: str | PathLike[str]) -> bool:
    """Return whether a path is that of a CSV file.

    >>> is_csv("a.CSV"), is_csv("a.csv.gz"), is_csv("a.parquet")
    (True, True, False)
    """
    return str(path).lower().endswith(CSV.endings)


def holds_tables(path: str | PathLike[str]) -> bool:
    """Return whether a path is that of a database, which holds several tables.

    >>> holds_tables("shop.duckdb"), holds_tables("shop")
    (True, False)
    """
    return any(form.inside == "table" and str(path).lower().endswith(form.endings) for form in FORMATS)


def tables_in(path: str | PathLike[str], names: Iterable[str], may_lack: str | None = None) -> dict[str, str]:
    """Return where each table is that is in a database or a folder, whose files have the names of tables.

    Parameters
    ----------
    path : str or PathLike
    names : iterable of str
    may_lack : str, optional
        A table that a database need not have: it is left out if no table or view has its name. Where one has
        it in other letters, as `User`, it stays, and is refused when it is opened. Of a folder, tables
        without a file are left out anyway, but not where a file has this name in other letters.

    Raises
    ------
    InputError
        If it is neither, or a folder has two files of one name, or one of `may_lack` in other letters.
    """
    if holds_tables(path):
        location = Location.of(path)
        lacking = None
        if may_lack is not None and location.file.exists():
            present = {name.casefold() for name in location.format.door.tables_and_views(location)}
            lacking = None if may_lack.casefold() in present else may_lack
        return {name: f"{path}{SEPARATOR}{name}" for name in names if name != lacking}
    folder, paths = Path(path), {}
    if not folder.exists():
        raise InputError(f"{path}: there is no such folder or file")
    if not folder.is_dir():
        if _has_sheets(folder):
            raise InputError(f"{path}: is a workbook, and several tables are declared. {SHEETS}")
        raise InputError(f"{path}: is one table, and several are declared: give a folder or a database")
    for name in names:
        files = [file for file in (folder / f"{name}{ending}" for ending in ENDINGS) if file.exists()]
        files += [folder / name] if is_folder(folder / name) else []
        if len(files) > 1:
            raise InputError(f"{path}: {files[0].name} and {files[1].name} are both the table {name!r}")
        if files:
            paths[name] = str(files[0])
    if may_lack is not None and may_lack not in paths:
        for file in sorted(folder.iterdir()):
            if file.name.partition(".")[0].casefold() == may_lack.casefold():
                raise InputError(f"{file}: the name of the table is {may_lack!r}: rename the file")
    return paths


def sheets_in(path: Path) -> list[str]:
    """Return the sheets of a workbook; none of another file."""
    if not _has_sheets(path):
        return []
    location = Location.of(path)
    names: list[str] = location.format.door.sheets(location)
    return names


def _has_sheets(path: Path) -> bool:
    return any(form.inside == "sheet" and str(path).lower().endswith(form.endings) for form in FORMATS)


def every_table(path: Path) -> dict[str, tuple[str, DeclaredTable]]:
    """Return where each table of a folder or database is, by name, and what the database says of it.

    It is empty if the path names one table: a file or query, a database that has one, or a folder of Parquet
    files that have the same columns, and maybe other files. No row is read.
    """
    if holds_tables(path):
        location = Location.of(path)
        check_file(location.file)
        declared_tables: dict[str, DeclaredTable] = location.format.door.catalogue(location)
        return {
            name: (f"{path}{SEPARATOR}{name}", declared)
            for name, declared in declared_tables.items()
            if len(declared_tables) > 1
        }
    check_present(path)
    if not is_folder(path):
        return {}
    listed = [file for file in sorted(path.iterdir()) if file.name[0] not in "._"]
    files = {file: next((e for e in ENDINGS[::-1] if file.name.lower().endswith(e)), "") for file in listed}
    parts = [file for file in listed if is_folder(file) and any(file.rglob("*.parquet"))]
    tables = [file for file, ending in files.items() if ending and not is_folder(file)] + parts
    columnar = [file for file in tables if file in parts or files[file] == ".parquet"]
    if (len(columnar) > 1 or columnar == tables) and _alike(columnar):
        return {}
    names = {file: file.name[: len(file.name) - len(files[file])] for file in tables}
    return {name: (location, DeclaredTable()) for name, location in tables_in(path, names.values()).items()}


def check_present(path: Path) -> None:
    """Refuse a path that has no ending, as folders have none, if nothing is there."""
    if not path.suffix and len(str(path)) <= LONGEST_NAME and not path.exists():
        raise InputError(f"{path}: there is no such folder or file")


def _alike(files: list[Path]) -> bool:
    """Return whether Parquet files have the same columns, as the parts of one table have."""
    headers = [tuple(parquet_schema(parts_of(file)).names) for file in files]
    return len(set(headers)) < 2


def file_of(path: Path) -> Path:
    """Return the file in which a table is; a path that names no table is returned as it is."""
    before, separator, _ = str(path).partition(SEPARATOR)
    return Path(before) if separator and before.lower().endswith(ENDINGS) else path


def is_typed(table: Any) -> bool:
    """Return whether a table has types of its own: it is no path, or leads to a file that has them."""
    return not isinstance(table, str | PathLike) or Location.of(table).format.typed


def quoted(name: str) -> str:
    """Return the name of a table or column as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def listed(names: Iterable[str]) -> str:
    """Return names as SQL lists them."""
    return ", ".join(map(quoted, names))


def query_fact(location: Location, view: str = "") -> tuple[str, ...]:
    """Return what a query or a view takes as public. Of a view the text is not: it is part of the file."""
    if location.query:
        return (f"the query, that it runs {RESULT}: {location.query}",)
    return (f"that the view {view!r} runs {RESULT}",) if view else ()


def label_facts(labels: Labels) -> tuple[str, ...]:
    """Return what value labels take as public."""
    named = ", ".join(map(repr, labels))
    fact = "the value labels in the file, which no program may have made from the rows, as lists of values"
    return (f"{fact}: {named}",) if labels else ()


def text_of(cell: Any, dialect: CsvFormat, form: str | NumberFormat | None = None) -> str:
    """Return a cell as it would be in a CSV of this format, and of this form of dates or numbers.

    >>> [text_of(cell, CsvFormat()) for cell in (None, 3.0, 2.5, True, datetime(2020, 1, 2), "a")]
    ['', '3', '2.5', 'true', '2020-01-02', 'a']
    >>> text_of(2500.5, CsvFormat(), NumberFormat("1.234,50 EUR"))
    '2.500,50 EUR'

    A cell that cannot be written is missing: none may end a run.
    """
    return alone(partial(_text_of, dialect=dialect, form=form), cell, "")


def _text_of(cell: Any, dialect: CsvFormat, form: str | NumberFormat | None) -> str:
    match cell:
        case None:
            return ""
        case bool():
            return str(cell).lower()
        case int() | float() if isinstance(form, NumberFormat) and math.isfinite(number(cell)):
            return form.spell(number(cell), None)
        case int():
            return dialect.spell(str(cell))
        case float():
            is_integer = cell.is_integer() and abs(cell) < 2**53
            return dialect.spell(str(int(cell) if is_integer else cell)) if math.isfinite(cell) else ""
        case date() if isinstance(form, str):
            return spell_time(cell, form)
        case datetime() if cell.time() == time():
            return cell.date().isoformat()
        case datetime():
            return cell.isoformat(" ")  # an identifier may be a time with fractions of a second
        case timedelta():
            return str(pd.Timedelta(cell))  # those of sheets may be too long for pandas
        case bytes():
            return cell.decode("utf-8", "replace").encode("utf-8", "replace").decode()
        case _:
            return str(cell).encode("utf-8", "replace").decode()  # halves of surrogate pairs are no text


def plain(value: Any) -> Any:
    """Return a cell of pandas as a number, text, date, or None if it is missing."""
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    if isinstance(value, pd.Timestamp):
        if value.tzinfo is not None:
            return value.isoformat()
        return value.date() if value == value.normalize() else value.to_pydatetime(warn=False)
    if isinstance(value, pd.Timedelta):
        return value.to_pytimedelta()
    if isinstance(value, bool | str | datetime | date | time | timedelta):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real | Decimal):
        return None if math.isnan(value) else float(value)
    return bool(value) if isinstance(value, np.bool_) else str(value)
