"""Codebook: what a public description says of tables, whatever its format. No row is read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from privsyn.errors import InputError, did_you_mean, safe_repr
from privsyn.table.codebooks.plain import as_number
from privsyn.table.kinds.csv_format import CsvFormat

Type = Literal["", "text", "integer", "number", "boolean", "date", "datetime", "time", "duration", "object"]
"""What the cells are. "" if the codebook does not say, "object" for lists, records, files and shapes."""

Columns = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class CodebookColumn:
    """What a codebook says of one column.

    Parameters
    ----------
    name : str
    type : str
        One of `Type`.
    label : str
        What the column is, in words.
    values : tuple of (value, label)
        All values that may occur, or those that have a label. The label is "" if there is none.
    ordered : bool
        Whether the order of the values is an order.
    low, high : number or text in ISO form, optional
        The bounds, both included.
    missing : tuple of str
        Texts that stand for a missing cell.
    required : bool
        Whether no cell is missing.
    unique : bool
        Whether all cells differ.
    pattern : str, optional
        A regular expression that whole texts match.
    format : str, optional
        How dates and times are written, in the terms of ``strftime``.
    decimals : int, optional
    step : number, optional
        All numbers are multiples of it.
    role : "", "identifier" or "prose"
        Whether the codebook says that the cells name rows or persons, or are free text.
    remarks : tuple of str
        What the codebook says and a schema cannot.

    Raises
    ------
    InputError
        If a listed value is a list or an object, or if a bound or a value of numbers is none.
    """

    name: str
    type: Type = ""
    label: str = ""
    values: tuple[tuple[Any, str], ...] = ()
    ordered: bool = False
    low: Any = None
    high: Any = None
    missing: Columns = ()
    required: bool = False
    unique: bool = False
    pattern: str | None = None
    format: str | None = None
    decimals: int | None = None
    step: float | None = None
    role: Literal["", "identifier", "prose"] = ""
    remarks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        values = self.values
        if self.type in ("integer", "number"):
            for end in ("low", "high"):
                if (bound := getattr(self, end)) is not None:
                    object.__setattr__(self, end, as_number(f"the {end} bound", bound))
            values = tuple(
                (value if str(value) in self.missing else as_number("a listed value", value), label)
                for value, label in values
            )
        if wrong := [value for value, _ in values if not isinstance(value, str | int | float)]:
            raise InputError(
                f"a listed value must be text, a number, true or false, not {safe_repr(wrong[0])}"
            )
        object.__setattr__(self, "values", values)


@dataclass(frozen=True)
class ForeignKey:
    """Columns of a table that have the key of a row of a table, which may be the same one.

    Parameters
    ----------
    columns : tuple of str
    table : str
    key : tuple of str
        The columns of that table. Empty for its primary key.
    """

    columns: Columns
    table: str
    key: Columns = ()


@dataclass(frozen=True, kw_only=True)
class CodebookTable:
    """What a codebook says of one table.

    Parameters
    ----------
    name : str
    columns : tuple of CodebookColumn
    label : str
    key : tuple of str
        The primary key.
    links : tuple of ForeignKey
    missing : tuple of str
        Texts that stand for a missing cell in every column.
    constraints : tuple of str
        What holds in every row, in the words of a schema.
    csv : CsvFormat
    file : str
        The file of the rows, if the codebook names it.
    remarks : tuple of str
        What the codebook says and a schema cannot.
    """

    name: str
    columns: tuple[CodebookColumn, ...]
    label: str = ""
    key: Columns = ()
    links: tuple[ForeignKey, ...] = ()
    missing: Columns = ()
    constraints: Columns = ()
    csv: CsvFormat = field(default_factory=CsvFormat)
    file: str = ""
    remarks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = [column.name for column in self.columns]
        if not names:
            raise InputError(f"table {self.name!r}: the codebook names no column")
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise InputError(f"table {self.name!r}: the codebook has two columns {safe_repr(twice)}")

    @property
    def by_name(self) -> dict[str, CodebookColumn]:
        """The columns by name."""
        return {column.name: column for column in self.columns}


@dataclass(frozen=True, kw_only=True)
class Codebook:
    """What a codebook says of one table or several.

    Parameters
    ----------
    kind : str
        The format in words, such as "DDI-Codebook".
    tables : mapping of a name to a CodebookTable
    title, publisher, licence, contact : str
        Of the data, if the codebook names them.
    """

    kind: str
    tables: Mapping[str, CodebookTable]
    title: str = ""
    publisher: str = ""
    licence: str = ""
    contact: str = ""

    @classmethod
    def of(cls, kind: str, tables: Sequence[CodebookTable], **about: str) -> Codebook:
        """Return the codebook of some tables, which have different names."""
        by_name = {table.name: table for table in tables}
        if not tables:
            raise InputError("the codebook describes no table")
        if len(by_name) < len(tables):
            raise InputError("the codebook has two tables of one name")
        return cls(kind=kind, tables=by_name, **about)

    def table(self, name: str | None) -> CodebookTable:
        """Return the table of a name, or the only one; refuse a name that is none."""
        if name is None and len(self.tables) == 1:
            return next(iter(self.tables.values()))
        if name in self.tables:
            return self.tables[name or ""]
        listed = ", ".join(self.tables)
        meant = "" if name is None else did_you_mean(name, self.tables)
        wrong = "name one of its tables" if name is None else f"it has no table {safe_repr(name)}{meant}"
        raise InputError(f"{wrong}, after ::, which are {listed}")


def table_name(text: str) -> str:
    """Return a name that a table of a schema may have, from the name or path of a file.

    >>> table_name("data/people.csv"), table_name("public.people"), table_name("a (b)")
    ('people', 'people', 'a _b_')
    """
    base = re.sub(
        r"\.(csv|tsv|txt|tab|gz|json|xlsx?|parquet|sav|dta|dat|NSDstat)\b",
        "",
        text.rstrip("/").split("/")[-1],
    )
    return re.sub(r"[/\\:\n()]", "_", base.split(".")[-1]) or "table"


def in_one_line(text: object) -> str:
    r"""Return a text of a codebook with single blanks; "" if it is none.

    >>> in_one_line(" Age in\n years "), in_one_line(None)
    ('Age in years', '')
    """
    return " ".join(text.split()) if isinstance(text, str) else ""
