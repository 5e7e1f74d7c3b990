"""Lookup: columns that follow from others through a public table."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privsyn.errors import InputError, did_you_mean, replace_errors, safe_repr
from privsyn.files import read_text
from privsyn.table.enforcement.determined import Determined
from privsyn.table.schema.constraint import Columns, Constraint, check_names
from privsyn.table.schema.rules import Rule


@dataclass(frozen=True, eq=False)
class Lookup(Constraint):
    """Computes columns from others through a public table, without a query of the private table.

    A schema reads the table once, and has a `Determined` for each column that it gives.

    Parameters
    ----------
    table : path of a CSV file with a header and commas, in UTF-8; or pandas.DataFrame
        Public. Other columns than those in `by` and `gives` are ignored.
    by : str or list of str
        The columns that are looked up. Combinations that the table does not have never occur.
    gives : str or list of str
        The columns that follow.

    Examples
    --------
    >>> import pandas as pd
    >>> towns = pd.DataFrame({"city": ["Oslo", "Rome"], "country": ["Norway", "Italy"]})
    >>> Lookup(towns, by="city", gives="country").columns
    ('city', 'country')
    """

    table: Any
    by: str | Sequence[str]
    gives: str | Sequence[str]

    def __post_init__(self) -> None:
        for name in ("by", "gives"):
            names = getattr(self, name)
            object.__setattr__(self, name, check_names(name, (names,) if isinstance(names, str) else names))
        check_names("by and gives", self.columns)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns in `by`, and those that follow."""
        return (*self.by, *self.gives)

    def rules(self, columns: Columns) -> list[Rule]:
        """Return no rule: a schema has what `meant` returns instead."""
        return []

    def meant(self, columns: Columns) -> list[Constraint]:
        """Return a `Determined` for each column that the table gives."""
        cells = public_cells(self.table, self.columns, columns)
        keys = list(zip(*(cells[name] for name in self.by), strict=True))
        source = Path(self.table).name if isinstance(self.table, str | Path) else ""
        return [
            Determined(
                name, self.by, [(*key, value) for key, value in zip(keys, cells[name], strict=True)], source
            )
            for name in self.gives
        ]


def public_cells(table: Any, names: Sequence[str], columns: Columns) -> dict[str, list[Any]]:
    """Return the cells of a public table by column, as values of the schema's columns.

    Parameters
    ----------
    table : path of a CSV file with a header and commas, in UTF-8; or pandas.DataFrame
    names : sequence of str
        The columns to read; others are ignored.
    columns : mapping of a column to its kind
    """
    if hasattr(table, "columns") and hasattr(table, "itertuples"):
        _require(list(table.columns), names, "the data frame")
        return {name: table[name].tolist() for name in names}
    if not isinstance(table, str | Path):
        raise InputError("table: give the path of a CSV file, or a data frame")
    if not Path(table).exists():
        raise InputError(f"there is no file {str(table)!r}: give a path from the folder of the schema file")
    text = read_text(Path(table))
    with replace_errors(f"the file {str(table)!r} cannot be read as CSV", csv.Error):
        header, *rows = list(csv.reader(io.StringIO(text, newline=""))) or [[]]
    _require(header, names, f"the public table {str(table)!r}")
    if any(len(row) != len(header) for row in rows):
        raise InputError(f"a line of {str(table)!r} has more or fewer cells than its header")
    return {name: [_value(columns, name, row[header.index(name)]) for row in rows] for name in names}


def _require(header: list[Any], names: Sequence[str], subject: str) -> None:
    for name in names:
        if header.count(name) != 1:
            meant = did_you_mean(name, map(str, header))
            raise InputError(f"{subject} has no column {name!r}, or several: correct its header{meant}")


def _value(columns: Columns, name: str, text: str) -> Any:
    """Return the value that a text means; an empty cell is missing, which constraints refuse."""
    if not text or name not in columns:
        return text or None
    with replace_errors(f"{safe_repr(text)} in column {name!r} of the table is no number", ValueError):
        return columns[name].value_of(text)
