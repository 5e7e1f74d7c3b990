"""CountsTable: a table of exact public counts as its user gives it: some columns, and one of counts."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from privsyn.errors import InputError, about, plural, replace_errors, safe_repr
from privsyn.files import check_file
from privsyn.marginals.domain import Ints
from privsyn.table.io.csv_table import PLAIN, read_text
from privsyn.table.io.formats import ENDINGS, Location
from privsyn.table.io.read_in_memory import digest, read_in_memory
from privsyn.table.kinds.csv_format import CsvFormat
from privsyn.table.schema.schema import check_column_names

COUNT = "count"
"""The column of counts, if several columns of the table are none of the private table."""


@dataclass(frozen=True, eq=False)
class CountsTable:
    """A table of exact counts that its user says are public.

    Parameters
    ----------
    title : str
        What messages call it, such as ``totals 1 (region x sex)``.
    cells : pandas.DataFrame of shape (rows, columns)
        The cell that each row counts. A cell that no row lists has the count 0.
    counts : integer array of shape (rows,)
    fact : str
        The title, the size and the SHA-256 of the table, for the ledger.
    """

    title: str
    cells: pd.DataFrame
    counts: Ints
    fact: str

    @classmethod
    def read(
        cls, source: Any, name: str, columns: Collection[str], dialect: CsvFormat = PLAIN
    ) -> CountsTable:
        """Return a table of counts.

        Parameters
        ----------
        source : pandas, polars or pyarrow table, or path of a file
        name : str
            What messages call it before its columns are known.
        columns : collection of str
            The columns of the private table, without any of which a column has counts.
        dialect : CsvFormat
            Of a CSV file.

        Raises
        ------
        InputError
            If no column, or several, may have the counts; if a column of the private table is called
            otherwise; if a count is no whole number of at least 0.
        """
        with about(name):
            frame = _frame(source, dialect)
            count = _column_of_counts(frame, columns)
            cells = frame.drop(columns=[count])
            check_column_names(cells.columns)
            title = f"{name} ({' x '.join(cells.columns)})"
        with about(title):
            counts = _whole_counts(frame[count], str(count))
        rows = f"{plural(len(counts), 'cell')} of {plural(counts.sum(), 'row')}"
        return cls(title, cells, counts, f"{title} of {rows} ({digest(frame)})")

    def values(self, name: str) -> list[Any]:
        """Return the distinct cells of a column, None if missing, in the order of the rows."""
        return self._distinct[name][0]

    def values_of_rows(self, name: str) -> Ints:
        """Return for each row which of the distinct `values` of a column it has."""
        return self._distinct[name][1]

    @cached_property
    def _distinct(self) -> dict[str, tuple[list[Any], Ints]]:
        distinct = {}
        for name in self.cells.columns:
            cells = [None if is_missing(cell) else cell for cell in self.cells[name].tolist()]
            with replace_errors(
                f"{self.title}: column {safe_repr(name)} has cells that are no values", TypeError
            ):
                index_of = {cell: index for index, cell in enumerate(dict.fromkeys(cells))}
            distinct[str(name)] = [*index_of], np.array([index_of[cell] for cell in cells], np.int64)
        return distinct


def read_all(totals: object, columns: Collection[str], dialect: CsvFormat = PLAIN) -> tuple[CountsTable, ...]:
    """Return the tables of counts that a user gives: one, a list, a mapping of names to tables, or a folder.

    Raises
    ------
    InputError
        If there is no table, or one is none of counts.
    """
    listed = [*_named(totals)]
    if not listed:
        raise InputError("totals: there is no table of counts")
    return tuple(CountsTable.read(source, name, columns, dialect) for name, source in listed)


def _named(totals: object) -> Iterator[tuple[str, Any]]:
    """Yield what messages call each table, and the table."""
    if isinstance(totals, Mapping):
        yield from ((f"totals {str(name)!r}", source) for name, source in totals.items())
        return
    listed = totals if isinstance(totals, list | tuple) else [totals]
    for number, source in enumerate(listed, 1):
        if not isinstance(source, str | PathLike):
            yield f"totals {number}", source
        else:
            yield from ((f"totals {Path(path).name!r}", path) for path in files_of(source))


def files_of(source: str | PathLike[str]) -> list[str | PathLike[str]]:
    """Return the files of tables in a folder; of another path, itself."""
    if not Path(source).is_dir():
        return [source]
    files = sorted(path for path in Path(source).iterdir() if path.name.lower().endswith(ENDINGS))
    if not files:
        raise InputError(f"totals: the folder {str(source)!r} has no file with a table")
    return [*files]


def _frame(source: Any, dialect: CsvFormat) -> pd.DataFrame:
    """Return a table; every cell of a file without types is text."""
    if isinstance(source, pd.DataFrame):
        return source.reset_index(drop=True)
    if isinstance(source, str | PathLike) and not (location := Location.of(source)).format.typed:
        check_file(location.file)
        return read_text(location, dialect).to_pandas()
    return read_in_memory(source).frame.reset_index(drop=True)


def _column_of_counts(frame: pd.DataFrame, columns: Collection[str]) -> Any:
    """Return the name of the column that has the counts."""
    unknown = [name for name in frame.columns if name not in columns]
    if not unknown:
        raise InputError(
            "no column has counts, for the private table has all of these: call that of the counts otherwise"
        )
    count = COUNT if len(unknown) > 1 and COUNT in unknown else unknown[0]
    if strange := [name for name in unknown if name != count]:
        if count == COUNT:
            # No name of the private table is shown: without a header, its first row is read as names.
            raise InputError(f"the private table has no column {safe_repr(strange[0])}: correct or remove it")
        listed = ", ".join(map(safe_repr, unknown))
        raise InputError(
            f"the private table has none of the columns {listed}: call that of the counts {COUNT!r}"
        )
    if len(frame.columns) == 1:
        raise InputError("it has counts alone: add the columns whose values are counted")
    return count


def _whole_counts(cells: pd.Series, name: str) -> Ints:
    """Return the counts; refuse one that is no whole number of at least 0."""
    numbers = pd.to_numeric(cells.astype("str").where(~cells.isna()), errors="coerce").to_numpy(np.float64)
    wrong = ~((numbers >= 0) & (numbers == np.floor(numbers)) & (numbers < 2.0**53))
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        cell = cells.iloc[row]
        shown = "a missing cell" if is_missing(cell) else safe_repr(cell)
        raise InputError(
            f"column {name!r}, row {row + 1}: {shown} is no whole number of at least 0: give exact counts"
        )
    return numbers.astype(np.int64)


def is_missing(cell: Any, marks: Collection[str] = ()) -> bool:
    """Return whether a cell is missing, or a text that means so."""
    if isinstance(cell, str):
        return cell in marks
    return cell is None or cell is pd.NA or cell is pd.NaT or (isinstance(cell, float) and cell != cell)
