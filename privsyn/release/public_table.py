"""A public table beside a release: its rows in the codes of the release, and which of them fit no column."""

from __future__ import annotations

import zipfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from privsyn.account.budget_file import name_of
from privsyn.errors import InputError, plural, replace_errors, safe_repr, short, spelled
from privsyn.marginals.domain import Attributes, Records
from privsyn.release.saved.file_format import TEXT
from privsyn.table.codec.codec import Codec
from privsyn.table.encoding.encoders import missing_cells
from privsyn.table.io.read_in_memory import digest, read_in_memory
from privsyn.table.schema.schema import Schema

TITLE = "the public table"
"""How the ledger begins what became of a public table."""

NOTHING_COMMON = "it has no column of the private table"
MOST_ROWS = 0.5  # share of the rows whose cells do not fit: then the column is left out, and not the rows


@dataclass(frozen=True, eq=False)
class PublicTable:
    """A table that its user says is public, such as last year's, or rows drawn from earlier releases.

    Parameters
    ----------
    title : str
        What the ledger calls it, with its SHA-256.
    rows : pandas.DataFrame
    """

    title: str
    rows: pd.DataFrame

    @classmethod
    def read(
        cls, table: Any, schema: Schema | None, unit: tuple[str, ...] = (), name: str = ""
    ) -> PublicTable:
        """Read a table, or the path of one; refuse a release, whose promise adds up.

        Parameters
        ----------
        table : pandas, polars or pyarrow table, or path
        schema : Schema, optional
            How the cells of a CSV file are read.
        unit : tuple of str, optional
            Columns of identifiers.
        name : str, optional
            Of the table, if it is one of several.
        """
        shown = name_of(Path(table)) if isinstance(table, str | PathLike) else name
        name = f" {shown!r}" if shown else ""
        refuse_release(table, name)
        rows = read_in_memory(table, schema, unit=unit).frame.reset_index(drop=True)
        return cls(f"{TITLE}{name} of {plural(len(rows), 'row')} ({digest(rows)})", rows)

    def encoded(self, codec: Codec) -> tuple[Records, str]:
        """Return the codes of the rows, of attributes whose columns they have; and what does not fit.

        A column that does not fit in most rows, such as the year, is left out as if the table lacked it. Of
        the others, rows that do not fit are left out.

        Raises
        ------
        InputError
            If no column is one of the codec's, or a column has cells of another type.
        """
        cells, misfits = self.cells(codec, {name: name for name in codec.schema.coded})
        names = attributes_behind(codec, self.rows.columns)
        if not names:
            raise InputError(f"{short(self.title)}: {NOTHING_COMMON}")
        foreign = foreign_columns(misfits)
        if foreign and attributes_behind(codec, self.rows.columns.difference(foreign)):
            records, left_out = self.without(foreign).encoded(codec)
            return records, about_foreign(foreign) + left_out
        rows = cells.reindex(columns=list(codec.names))[~misfits.any(axis=1)]
        return codec.encode(rows).project(names), about_misfits(misfits)

    def without(self, columns: Sequence[str]) -> PublicTable:
        """Return the table as if it lacked some columns. The title keeps the SHA-256 of the whole table."""
        return replace(self, rows=self.rows.drop(columns=list(columns)))

    def cells(self, codec: Codec, columns: Mapping[str, str]) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return columns in the codec's dtypes, and which cells of this table have no value of the codec.

        Parameters
        ----------
        codec : Codec
        columns : mapping of a column of the codec to the column of this table
            A column that this table lacks gets a value that says nothing.

        Raises
        ------
        InputError
            If a column has cells of another type.
        """
        specimen = codec.specimen(np.random.default_rng(0))
        misfits, cells = pd.DataFrame(index=self.rows.index), dict[str, pd.Series]()
        for name, column in columns.items():
            if name not in specimen:
                continue
            if column not in self.rows:
                cells[name] = specimen[name].iloc[[0] * len(self.rows)].reset_index(drop=True)
                continue
            complaint = f"{short(self.title)}: column {safe_repr(column)} has cells of another type"
            with replace_errors(complaint, (TypeError, ValueError)):
                cells[name] = self.rows[column].astype(specimen[name].dtype)
            lost = missing_cells(cells[name]) & ~missing_cells(self.rows[column])
            misfits[column] = ~codec.fits(name, cells[name]) | lost
        return pd.DataFrame(cells, index=self.rows.index), misfits


def foreign_columns(misfits: pd.DataFrame) -> list[str]:
    """Return the columns that have other values than the schema in most rows.

    >>> foreign_columns(pd.DataFrame({"year": [True, True, False], "age": [False, True, False]}))
    ['year']
    """
    return misfits.columns[(misfits.mean() > MOST_ROWS).to_numpy(bool)].tolist()


def about_foreign(columns: Sequence[str]) -> str:
    """Return what the ledger says of columns that are left out because of their values."""
    names = ", ".join(map(safe_repr, columns))
    return f"; left out are columns with other values than the schema in most rows: {names}"


def about_misfits(misfits: pd.DataFrame) -> str:
    """Return what the ledger says of public rows that do not fit: how many, and in which column most.

    Parameters
    ----------
    misfits : pandas.DataFrame of bool
        Which cells of each column have a value that the schema does not have.

    Examples
    --------
    >>> about_misfits(pd.DataFrame({"year": [True, True, False], "age": [False, True, False]}))
    "; 2 rows with values that the schema does not have, most in 'year', are left out"
    >>> about_misfits(pd.DataFrame({"year": [False], "age": [True]}))
    "; 1 row with values that the schema does not have, in 'age', is left out"
    """
    rows = int(misfits.any(axis=1).sum())
    if not rows:
        return ""
    numbers = misfits.sum()
    where = f"{'most ' if (numbers > 0).sum() > 1 else ''}in {safe_repr(numbers.idxmax())}"
    verb = "is" if rows == 1 else "are"
    return f"; {plural(rows, 'row')} with values that the schema does not have, {where}, {verb} left out"


def attributes_behind(codec: Codec, columns: Collection[str]) -> Attributes:
    """Return the attributes of a codec whose codes follow from these columns."""
    return tuple(name for name in codec.domain if codec.columns_behind(name).issubset(columns))


def is_release(table: object) -> bool:
    """Return whether this is a release or a fitted model, and no rows."""
    return hasattr(table, "ledger_") and hasattr(table, "sample")


def refuse_release(table: object, name: str = "") -> None:
    """Refuse a release, or the path of a saved one, in place of a public table."""
    if is_release(table) or (isinstance(table, str | PathLike) and _is_model(Path(table))):
        raise InputError(
            f"{spelled('public')}{name}: is a release, whose promise adds up: give it as {spelled('since')}"
        )


def _is_model(file: Path) -> bool:
    """Return whether a file is a saved release."""
    return file.is_file() and zipfile.is_zipfile(file) and TEXT in zipfile.ZipFile(file).namelist()
