"""A draft of rows with what a codebook says: the codebook comes first, and rows are read for what it lacks.

Not private: what the codebook lacks is read from the rows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from os import PathLike

from privsyn.errors import InputError, about, plural, safe_repr
from privsyn.table.codebooks.codebook import Codebook, CodebookTable, table_name
from privsyn.table.codebooks.declare import LEFT_OPEN, Declared
from privsyn.table.codebooks.readers import read_file
from privsyn.table.codebooks.schema_text import about_lines, columns_of, located, schema_of_columns
from privsyn.table.discovery.broken_constraints import OTHER_COLUMNS, Misfit
from privsyn.table.drafting.draft import check_schema, draft_schema
from privsyn.table.drafting.noted_draft import Draft
from privsyn.table.io.csv_table import PLAIN
from privsyn.table.io.formats import DeclaredTable, Location
from privsyn.table.kinds.csv_format import CsvFormat
from privsyn.table.schema.columns import Coded, Column, Text
from privsyn.table.schema.schema import Schema

MOST_NAMED = 20
"""Columns that a remark names."""

LABELLED = ("Stata", "SPSS")
"""Formats whose listed values are read as labels, not as codes."""


@dataclass(frozen=True)
class DescribedTable:
    """One table of a codebook, for the file that has its rows.

    Parameters
    ----------
    source : str
        The codebook, as comments name it.
    table : CodebookTable
    columns : mapping of a column to a Declared
    about : str
        The lines of `about:` in a schema file.
    """

    source: str
    table: CodebookTable
    columns: Mapping[str, Declared]
    about: str = ""

    @classmethod
    def of(cls, location: str | PathLike[str], data: str | PathLike[str]) -> DescribedTable:
        """Return the table of a codebook that describes a file: the only one, or that of its name."""
        path, name = located(location)
        codebook, file = read_file(path), Location.of(data)
        with about(str(path)):
            if name is None and len(codebook.tables) > 1:
                names = (table_name(part) for part in (file.inside, file.file.name) if part)
                name = next((part for part in names if part in codebook.tables), None)
            return cls.from_codebook(codebook, path.name, codebook.table(name), data)

    @classmethod
    def from_codebook(
        cls, codebook: Codebook, file: str, table: CodebookTable, data: str | PathLike[str]
    ) -> DescribedTable:
        """Return a table of a codebook for a file, whose format says whether it has labels or codes."""
        labelled = Location.of(data).format.name in LABELLED
        return cls(
            f"{file} ({codebook.kind})", table, columns_of(table, labelled=labelled), about_lines(codebook)
        )

    @property
    def schema(self) -> Schema:
        """The schema of the codebook alone."""
        return schema_of_columns(self.table, self.columns)

    def csv_of(self, stated: CsvFormat) -> CsvFormat:
        """Return how the file is written: as options say, or else the codebook."""
        return self.table.csv if stated == PLAIN else stated

    def absent(self, names: Collection[str]) -> list[str]:
        """Return the columns of the codebook that a table with these columns lacks."""
        return [name for name in self.columns if name not in names]

    def described(self, draft: Draft, *, read: bool = True) -> Draft:
        """Return a draft with the columns of the codebook; the rest stays if rows were `read`."""
        columns, notes = dict(draft.schema.columns), dict(draft.notes)
        for name, drafted in draft.schema.columns.items():
            remarks = notes.get(name, ())
            if (declared := self.columns.get(name)) is None:
                notes[name] = (f"NOT IN THE CODEBOOK {self.source}.", *remarks)
            elif declared.is_open and read:
                facts = (note for note in declared.notes if not note.startswith(LEFT_OPEN))
                notes[name] = (*facts, *remarks)
                columns[name] = _with_marks(declared, drafted)
            else:
                columns[name], notes[name] = declared.column, declared.notes
        listed = {str(value) for column in columns.values() for value in column.listed}
        marks = [
            mark for mark in dict.fromkeys((*self.table.missing, *draft.schema.missing)) if mark not in listed
        ]
        return replace(draft, schema=Schema(columns, missing=marks, csv=draft.schema.csv), notes=notes)

    def remarks(self, names: Collection[str]) -> list[str]:
        """Return remarks on the codebook, given the columns of the file."""
        remarks = [
            f"The columns that {self.source} describes are from there, and public. READ is what it lacks."
        ]
        if absent := self.absent(names):
            remarks.append(f"NOT IN THE FILE: {_named(absent)} of the codebook.")
        return [*remarks, *self.table.remarks]


def _with_marks(declared: Declared, read: Column) -> Column:
    """Return a drafted column with the marks for missing of the codebook."""
    if not (isinstance(declared.column, Coded) and isinstance(read, Coded) and declared.column.missing):
        return read
    values = {*map(str, read.listed)}
    marks = (mark for mark in dict.fromkeys((*declared.column.missing, *read.missing)) if mark not in values)
    return replace(read, missing=tuple(marks))


def _named(columns: Collection[str]) -> str:
    """Return columns in words.

    >>> _named(["a", "b"])
    'columns a, b'
    """
    first = ", ".join([*columns][:MOST_NAMED])
    more = f" and {len(columns) - MOST_NAMED} more" if len(columns) > MOST_NAMED else ""
    return f"{'column' if len(columns) == 1 else 'columns'} {first}{more}"


def declared_by(
    codebook: Codebook, tables: Mapping[str, tuple[str, DeclaredTable]]
) -> dict[str, tuple[str, DeclaredTable]]:
    """Return the tables of a folder or database with the keys and links of a codebook if they have none."""
    with_keys = dict(tables)
    for name, (location, declared) in tables.items():
        if (table := codebook.tables.get(name)) is None:
            continue
        links = {
            link.columns: (link.table, link.key or codebook.tables[link.table].key)
            for link in table.links
            if link.table in tables and link.table in codebook.tables
        }
        with_keys[name] = (
            location,
            replace(declared, key=declared.key or table.key, links=dict(declared.links) or links),
        )
    return with_keys


def described_tables(
    location: str | PathLike[str], tables: Mapping[str, tuple[str, DeclaredTable]]
) -> tuple[dict[str, tuple[str, DeclaredTable]], dict[str, DescribedTable]]:
    """Return several tables with the keys of a codebook, and what it says of each.

    Raises
    ------
    InputError
        If it describes none of them.
    """
    path, name = located(location)
    if name is not None:
        raise InputError(f"--from {location}: there are several tables: leave out ::{name}")
    codebook = read_file(path)
    described = {
        table: DescribedTable.from_codebook(codebook, path.name, codebook.tables[table], where)
        for table, (where, _) in tables.items()
        if table in codebook.tables
    }
    if not described:
        raise InputError(
            f"{path}: describes none of the tables {', '.join(tables)}: name tables and files alike"
        )
    return declared_by(codebook, tables), described


def check_codebook(
    table: str | PathLike[str], codebook: DescribedTable, *, unit: str | None = None, csv: CsvFormat = PLAIN
) -> list[str]:
    """Return what does not fit between a table and its codebook: columns, and cells; see `check_schema`.

    NOT PRIVATE: each line about cells counts private rows, and is for the owner only.
    """
    csv = codebook.csv_of(csv)
    names = list(draft_schema(table, unit=unit, read=False, csv=csv).columns)
    lines: list[str] = []
    if absent := codebook.absent(names):
        lines.append(Misfit(f"the table lacks {_named(absent)} of the codebook", OTHER_COLUMNS))
    if strange := [name for name in names if name not in codebook.columns]:
        shown = plural(len(strange), "column")
        names_shown = ", ".join(map(safe_repr, strange[:MOST_NAMED]))
        lines.append(f"the codebook does not describe {shown} of the table: {names_shown}")
    public = codebook.schema
    shared = [name for name in names if name in public.columns]
    if not any(name in public.coded for name in shared):
        return [*lines, "nothing to check in the cells: no column of the codebook is in the table"]
    constraints = [rule for rule in public.constraints if {*rule.columns} <= {*shared}]
    columns = {name: public.columns.get(name, Text()) for name in names}
    schema = Schema(columns, missing=public.missing, csv=csv, constraints=constraints)
    cells = check_schema(table, schema, unit=unit)
    about_strange = {f"column {name!r}: free text, left out of the synthetic table" for name in columns}
    return [*lines, *(line for line in cells if line not in about_strange)]
