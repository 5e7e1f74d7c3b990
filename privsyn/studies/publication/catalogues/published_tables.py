"""PublishedTables: what catalogues say of synthetic files. No private row is needed, and none is read."""

from __future__ import annotations

import csv
import gzip
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from hashlib import file_digest
from pathlib import Path
from typing import Any

from privsyn.errors import InputError, about
from privsyn.pages.sections import percent
from privsyn.private.run_ledger import RunLedger, over_time_lines
from privsyn.release.release import Release
from privsyn.studies.publication.relationships import in_plain_words
from privsyn.table.database.synthetic import declared_table, schema_of
from privsyn.table.encoding.dtypes import family, parse_dtype
from privsyn.table.encoding.number_format import NumberFormat
from privsyn.table.io.formats import CSV, Location, holds_tables, tables_in
from privsyn.table.io.read_in_batches import read_in_batches
from privsyn.table.kinds.csv_format import CsvFormat
from privsyn.table.schema.about import About
from privsyn.table.schema.columns import Column

KEY_TYPES: Mapping[str | None, str] = {"integer": "Integer", "real": "Float", "boolean": "Boolean"}
"""The type of a key by the family of its dtype, in the words of schema.org; others are Text."""

TIMES = {"Date": "%Y-%m-%d", "DateTime": "%Y-%m-%dT%H:%M:%S"}
"""How ISO 8601 writes them."""

SPACED = "%Y-%m-%d %H:%M:%S"


@dataclass(frozen=True)
class PublishedColumn:
    """A column of a synthetic table.

    Parameters
    ----------
    name : str
    kind : Column or None
        What the released schema says; None of a key.
    type : str
        In the words of schema.org: Text, Integer, Float, Boolean, Date or DateTime.
    never_missing : bool
    time_format : str, optional
        The format of its dates in a CSV file, for ``strptime``.
    description : str
        Its values in a few words.
    """

    name: str
    kind: Column | None
    type: str
    never_missing: bool = False
    time_format: str | None = None
    description: str = ""

    @property
    def values(self) -> tuple[Any, ...]:
        """The values that may occur, if they are listed."""
        if self.kind is None or not self.kind.listed:
            return ()
        pooled = self.kind.other
        return (*self.kind.listed, *(() if pooled in (None, *self.kind.listed) else (pooled,)))

    @property
    def bounds(self) -> tuple[Any, Any] | None:
        """The bounds of numbers and of times; None if there are none."""
        if self.kind is None:
            return None
        if self.type in TIMES:
            low, high = getattr(self.kind, "low", None), getattr(self.kind, "high", None)
            return None if low is None else (low, high)
        return self.kind.number_range if self.type in ("Integer", "Float") else None


@dataclass(frozen=True)
class PublishedTable:
    """A synthetic table in a file.

    Parameters
    ----------
    name : str
        Of linked tables the name in the schema, and of one table that of its file.
    columns : tuple of PublishedColumn
    about : About or None
        The publisher's words on this one of several tables.
    key : tuple of str
    links : mapping of columns to the name of a table and the columns of its key
    location : Location
    csv : CsvFormat
    rows : int
        Rows of the file.
    """

    name: str
    columns: tuple[PublishedColumn, ...]
    about: About | None
    key: tuple[str, ...]
    links: Mapping[tuple[str, ...], tuple[str, tuple[str, ...]]]
    location: Location
    csv: CsvFormat = field(default=CsvFormat())
    rows: int = 0

    @property
    def file(self) -> str:
        """The name of the file."""
        return self.location.file.name

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self.location.file.stat().st_size

    @property
    def is_packed(self) -> bool:
        """Whether the file is compressed."""
        return self.location.file.suffix == ".gz"

    @property
    def media(self) -> str:
        """The media type of the file."""
        return "application/gzip" if self.is_packed else self.location.format.media

    @property
    def codes(self) -> dict[str, str]:
        """The dtypes, for pandas, of texts in a CSV file that it would read as numbers: 0101 is not 101."""
        if self.location.format is not CSV:
            return {}
        texts = (column for column in self.columns if column.type == "Text")
        return {column.name: "str" for column in texts if any(map(_is_number, column.values))}

    @cached_property
    def sha256(self) -> str:
        """The checksum of the file, in hexadecimal."""
        with self.location.file.open("rb") as file:
            return file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True)
class PublishedTables:
    """All synthetic tables of a release, each in a file, with the publisher's words and the promise.

    Parameters
    ----------
    release : Release
    tables : tuple of PublishedTable
    """

    release: Release[Any]
    tables: tuple[PublishedTable, ...]

    @classmethod
    def of(cls, release: Release[Any], data: Path) -> PublishedTables:
        """Read how many rows the synthetic files have, and how their dates are written.

        Parameters
        ----------
        release : Release
        data : path
            The file of the only table, or the folder of several files.

        Raises
        ------
        InputError
            If a file lacks a column of the release, has another one, or is a database.
        """
        database = release.database
        if holds_tables(data):
            raise InputError(f"{data}: catalogues describe files: write the tables as CSV or Parquet files")
        if database.single is not None:
            model = release.tables[database.single]
            name = data.name.partition(".")[0]
            return cls(release, (_table(release, database.single, name, data, model.codec.schema.csv),))
        paths = tables_in(data, database.tables)
        if missing := [name for name in database.tables if name not in paths]:
            raise InputError(f"{data}: the table {missing[0]!r} is missing: give the folder of all tables")
        tables = []
        for name, path in paths.items():
            dialect = release.tables[name].codec.schema.csv if name in release.tables else CsvFormat()
            with about(f"table {name!r}"):
                tables.append(_table(release, name, name, Path(path), dialect))
        return cls(release, tuple(tables))

    @property
    def about(self) -> About:
        """The publisher's words; empty if there are none."""
        return self.release.about or About()

    @property
    def title(self) -> str:
        """The title of all tables together."""
        names = ", ".join(table.name for table in self.tables)
        return self.about.title or f"Synthetic {'tables' if len(self.tables) > 1 else 'table'}: {names}"

    @property
    def description(self) -> str:
        """The publisher's description, and what the rows are."""
        return " ".join(filter(None, [self.about.description, made_of(self.release.ledger)]))

    @property
    def identifier(self) -> str:
        """The publisher's identifier; else the digest of the model."""
        return self.about.identifier or f"sha256:{self.release.digest}"

    @property
    def privacy(self) -> dict[str, Any]:
        """The promise, as plain data."""
        ledger = self.release.ledger
        plain: dict[str, Any] = {"statement": made_of(ledger)}
        if ledger.private and ledger.elsewhere is None:
            plain |= {"epsilon": ledger.promised_epsilon, "delta": ledger.promised_delta}
            plain |= {"unit": ledger.protects, "neighbours": ledger.neighbours}
        return plain


def made_of(ledger: RunLedger) -> str:
    """Return in a few sentences how the rows were made, and the promise: only what the ledger says."""
    if ledger.elsewhere is not None:
        return f"Synthetic rows from counts that were measured elsewhere: {ledger.elsewhere}."
    if ledger.warning is not None:
        return ledger.warning
    promise = f"epsilon {ledger.promised_epsilon:g}, delta {ledger.promised_delta:g}"
    promise = ", ".join([promise, *over_time_lines(ledger)])
    text = f"Synthetic version of a private table with {promise}; neighbouring tables: {ledger.neighbours}."
    if (odds := in_plain_words(ledger)) is not None and not odds["local"]:
        text += (
            f" Somebody who guesses whether a {odds['who']} is in the private table, where half of those"
            f" asked about are, is right with probability at most {percent(odds['guess'])}{odds['together']}."
        )
    return text


def columns_of(release: Release[Any], name: str) -> dict[str, Column | None]:
    """Return the columns of a synthetic table; None for those of keys."""
    if (model := release.single) is not None and not release.is_linked:
        dropped, columns = model.codec.dropped, model.codec.schema.columns
        return {column: columns[column] for column in model.codec.names if column not in dropped}
    if (public := release.database.tables[name].public) is not None:
        return dict.fromkeys(map(str, public.frame.columns))
    codecs = {table: model.codec for table, model in release.tables.items()}
    computed_above = release.tables[name].computed_above
    columns = schema_of(name, release.database, codecs, computed_above).columns
    return {column: columns.get(column) for column in release.tables[name].columns}


def _table(release: Release[Any], name: str, shown: str, path: Path, dialect: CsvFormat) -> PublishedTable:
    """Return what is known of a table and its file."""
    database, location, kinds = release.database, Location.of(path), columns_of(release, name)
    rows, samples = _counted(location, dialect, tuple(kinds))
    written = declared_table(name, database, kinds)
    links = {names: link for names, link in written.links.items() if database.single is None}
    model = release.tables.get(name)
    schema = None if model is None else model.codec.schema
    columns = []
    for column, kind in kinds.items():
        type_ = _type_of_key(release, name, column) if kind is None else kind.data_type
        if (written_as := getattr(kind, "form", None)) is not None:
            plain = isinstance(written_as, NumberFormat) and location.format is CSV
            type_ = _type_of_format(written_as.example, dialect) if plain else "Text"
        form = None
        if location.format is CSV and type_ in TIMES:
            form = _format_of(samples.get(column, ""), type_, getattr(kind, "format", None))
            type_ = "Text" if form is None and samples.get(column) else type_
        elif type_ in TIMES and getattr(kind, "format", None) is not None:
            type_ = "Text"  # it is written as text here too
        never = column in written.not_null or not getattr(kind, "nullable", True)
        words = "a key" if kind is None else kind.values_in_words
        columns.append(PublishedColumn(column, kind, type_, never, form, words))
    words_of_table = None if database.single is not None or schema is None else schema.about
    return PublishedTable(shown, tuple(columns), words_of_table, written.key, links, location, dialect, rows)


def _type_of_format(example: str, dialect: CsvFormat) -> str:
    """Return the type of numbers in a CSV file that are written as 1234.5 is in an example.

    Those with a unit or with their own thousands separator are texts for a reader. Whole numbers with a
    decimal sign are no integers for it.

    >>> [_type_of_format(text, CsvFormat()) for text in ("1234.0", "1234", "1234 km", "1.234,5")]
    ['Float', 'Integer', 'Text', 'Text']
    """
    digits, point, fraction = example.partition(dialect.point)
    if digits != "1234" or (point and not fraction.isdecimal()):
        return "Text"
    return "Float" if point else "Integer"


def _type_of_key(release: Release[Any], name: str, column: str) -> str:
    """Return the type of a column of keys, or of a public table."""
    public = release.database.tables[name].public
    if public is not None:
        return KEY_TYPES.get(family(public.frame[column].dtype), "Text")
    dtype = release.tables[name].columns.get(column)
    return KEY_TYPES.get(family(parse_dtype(dtype)), "Text") if dtype else "Text"


def _counted(location: Location, dialect: CsvFormat, names: Sequence[str]) -> tuple[int, dict[str, str]]:
    """Return the number of rows of a file and, of a CSV file, the first text in each column."""
    if location.format is not CSV:
        opened = read_in_batches(location.file)
        _check_names([*map(str, opened.head.columns)], names)
        return opened.ask(lambda frames: sum(map(len, frames)), operator.add), {}
    rows, samples = 0, dict[str, str]()
    lines = _lines(location.file, dialect)
    header = next(lines, [])
    _check_names(header, names)
    for cells in lines:
        rows += 1
        if len(samples) < len(header):
            samples |= {
                name: cell for name, cell in zip(header, cells, strict=False) if cell and name not in samples
            }
    return rows, samples


def _lines(path: Path, dialect: CsvFormat) -> Iterator[list[str]]:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding=dialect.encoding, newline="") as file:
        reader = csv.reader(file, delimiter=dialect.delimiter, skipinitialspace=dialect.blank)
        yield from (cells for cells in reader if cells)


def _check_names(header: Sequence[str], names: Sequence[str]) -> None:
    """Refuse a file that is not a synthetic table of the model."""
    absent = [name for name in names if name not in header]
    if absent or len(header) != len(names):
        problem = f"has no column {absent[0]!r}" if absent else "has other columns"
        raise InputError(
            f"the file {problem}: give the synthetic table that was drawn from this model, never the private"
            " one"
        )


def _is_number(value: object) -> bool:
    """Return whether a reader of CSV takes a cell for a number."""
    try:
        float(str(value))
    except ValueError:
        return False
    return True


def _format_of(text: str, type_: str, declared: str | None) -> str | None:
    """Return how dates are written, for ``strptime``; None if not known."""
    for form in filter(None, (declared, TIMES[type_], SPACED)):
        try:
            datetime.strptime(text, form)
        except ValueError:
            continue
        return form
    return None
