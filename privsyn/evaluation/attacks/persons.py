"""Persons as attackers see them: what all rows of each say together, and what all but one say of that one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from privsyn.errors import InputError
from privsyn.evaluation.encoding import Coded, code_by_name
from privsyn.evaluation.link_metrics import different, summaries
from privsyn.evaluation.linked_comparison import compared_tables
from privsyn.evaluation.linked_rows import LinkedRows, as_one, link, read_tables
from privsyn.marginals.domain import Domain, Floats, Ints, Records
from privsyn.table.database.database import Database
from privsyn.table.database.synthetic import places_above
from privsyn.table.io.identifiers import identities
from privsyn.table.schema.schema import Schema

MOST_ROWS = 50_000
"""Synthetic rows among which the attacker looks for the one most like a missing row, drawn at random."""

NUMBER = "number of"

EMPTY = pd.DataFrame()
"""The table from which such rows come: none."""


@dataclass(frozen=True, eq=False)
class Missing:
    """Rows, each with what the other rows of its person say: the attacker knows these and guesses the row.

    Parameters
    ----------
    tables : mapping of str to Coded
        For the real, the synthetic and the control tables: columns that are known, then those of the row.
    known_columns : tuple of str
        The columns that are known.
    secret : tuple of str
        The columns of the row itself, by the names of `Attacked.named`.
    """

    tables: Mapping[str, Coded]
    known_columns: tuple[str, ...]
    secret: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Attacked:
    """The real, the synthetic and the control tables as they are linked, each table in the same codes.

    Parameters
    ----------
    database : Database
    links : mapping of "real", "synthetic" and "control" to LinkedRows
    coded : mapping of str to mapping of str to Coded
        For each table with columns, those three.
    dates : mapping of str to set of str
        The columns of dates of each such table.
    left_out : tuple of str
        Columns that are not compared, because their names look like identifiers.
    """

    database: Database
    links: Mapping[str, LinkedRows]
    coded: Mapping[str, Mapping[str, Coded]]
    dates: Mapping[str, frozenset[str]]
    left_out: tuple[str, ...]

    @classmethod
    def of(
        cls, tables: Mapping[str, Any], schema: Schema | Database | None, unit: str | None, order: str | None
    ) -> Attacked:
        """Read and encode the tables.

        Raises
        ------
        InputError
            If a table lacks the identifiers, or a person of the real tables is in the control tables, too.
        """
        database = as_one(schema, unit, order)
        frames = {which: read_tables(which, table, database) for which, table in tables.items()}
        links = {which: link(which, tables_of_side, database)[0] for which, tables_of_side in frames.items()}
        root, key = database.root, database.tables[database.root].key
        if key is not None:
            sides = (identities(frames[which][root], key) for which in ("real", "control"))
            persons, held_out = map(set, sides)
            if persons & held_out:
                raise InputError(
                    "the control table has persons of the real one: hold out all rows of a person"
                )
        coded: dict[str, dict[str, Coded]] = {}
        dates: dict[str, frozenset[str]] = {}
        left_out: list[str] = []
        for name in compared_tables(database, frames["real"]):
            table = database.tables[name]
            cells = {side: tables[name].drop(columns=[*table.keys]) for side, tables in frames.items()}
            view, coded[name] = code_by_name(cells, table.schema, most_values=None)
            kinds = zip(view.domain, view.kinds, strict=True)
            dates[name] = frozenset(column for column, kind in kinds if kind == "date")
            left_out += [database.shown_column(name, column) for column in view.left_out]
        return cls(database, links, coded, dates, tuple(left_out))

    @property
    def tables_below(self) -> tuple[str, ...]:
        """The tables of which a row may be missing: those below the persons that have columns."""
        return tuple(name for name in self.database.names[1:] if name in self.coded)

    @property
    def columns_below(self) -> tuple[str, ...]:
        """The columns of these tables."""
        return tuple(
            self.named(name, column)
            for name in self.tables_below
            for column in self.coded[name]["real"].records.domain
        )

    def one_row_each(self, which: str) -> Coded:
        """Return a row for each person: its own columns, and what its rows say in each child table.

        That is their number and, for numbers and dates, the first, the last and the sum, for others the
        first, the last and the number of different values.
        """
        links, root, columns = self.links[which], self.database.root, _Columns()
        owners = len(links.rows[root])
        for name in self.database.names:
            rows, owner = links.rows[name], links.roots(self.database, name)
            if name == root:
                for column, cells in self._cells(which, name, rows):
                    columns.add(self.named(name, column), cells)
                continue
            columns.add(f"{NUMBER} {name}", np.bincount(owner, minlength=owners).astype(np.float64))
            for column, cells in self._cells(which, name, rows):
                label, is_number = self.named(name, column), cells.dtype == np.float64
                row_summaries = summaries(cells.astype(np.float64), owner, owners)
                for how in ("first", "last"):
                    numbers = row_summaries[how]
                    if not is_number:  # codes, -1 for no row
                        numbers = np.where(np.isnan(numbers), -1, numbers).astype(np.int64)
                    columns.add(f"{how} of {label}", numbers)
                if not is_number:
                    size = self.coded[name][which].records.domain.size_of[column]
                    number = different(cells.astype(np.int64), owner, size, owners)
                    columns.add(f"different {label}", number.astype(np.float64))
                elif column not in self.dates[name]:
                    columns.add(f"sum of {label}", row_summaries["sum"])
        return columns.coded()

    def missing_rows(self, name: str, limit: int, rng: np.random.Generator) -> Missing:
        """Return rows of persons that have others in a table, with what is known of them.

        Known is what the rows above the row have, the rows before and after it of the same person, how many
        rows the person has, and how many rows belong to the row. Of real and control persons one random row
        is missing, so that the attacks are independent; every synthetic row is tried as the missing one.
        """
        rows = {
            which: self._missing_rows(which, name, MOST_ROWS if which == "synthetic" else limit, rng)
            for which in self.links
        }
        secret = tuple(self.named(name, column) for column in self.coded[name]["real"].records.domain)
        names = rows["real"].records.domain.names
        return Missing(rows, names[: len(names) - len(secret)], secret)

    def _missing_rows(self, which: str, name: str, limit: int, rng: np.random.Generator) -> Coded:
        links, columns, database = self.links[which], _Columns(), self.database
        rows, owner = links.rows[name], links.roots(database, name)
        number = np.bincount(owner, minlength=1)[owner]
        chosen = rng.permutation(np.flatnonzero(number > 1))
        if which != "synthetic":  # one of each person
            chosen = chosen[np.unique(owner[chosen], return_index=True)[1]]
            chosen = rng.permutation(chosen)
        chosen = chosen[:limit]
        columns.add(f"{NUMBER} {name}", number[chosen].astype(np.float64))
        for child in database.children(name):
            below = np.bincount(links.parent[child], minlength=len(rows))
            columns.add(f"{NUMBER} {child} below", below[chosen].astype(np.float64))
        for above, rows_above in places_above(database, name, links.parent, chosen):
            for column, cells in self._cells(which, above, links.rows[above][rows_above]):
                columns.add(self.named(above, column), cells)
        for word, step in (("before", -1), ("after", 1)):
            beside = np.clip(chosen + step, 0, len(rows) - 1)
            alone = (owner[beside] != owner[chosen]) | (beside == chosen)
            for column, cells in self._cells(which, name, rows[beside]):
                nothing = np.nan if cells.dtype == np.float64 else -1
                columns.add(f"{self.named(name, column)} {word}", np.where(alone, nothing, cells))
        for column, cells in self._cells(which, name, rows[chosen]):
            columns.add(self.named(name, column), cells)
        return columns.coded()

    def _cells(self, which: str, name: str, rows: Ints) -> Iterator[tuple[str, Floats | Ints]]:
        """Yield each column of a table with its cells in these rows: numbers, or codes as integers."""
        if name not in self.coded:
            return
        table = self.coded[name][which]
        for axis, column in enumerate(table.records.domain):
            if column in table.numbers:
                yield column, table.numbers[column][rows]
            else:
                yield column, table.records.codes[rows, axis].astype(np.int64)

    def named(self, name: str, column: str) -> str:
        """Return the name of a column among those of all tables."""
        return self.database.shown_column(name, column)


class _Columns:
    """Collects columns of numbers, and of codes, of which -1 is nothing."""

    def __init__(self) -> None:
        self._codes: dict[str, Ints] = {}
        self._numbers: dict[str, Floats] = {}

    def add(self, name: str, cells: Floats | Ints) -> None:
        if cells.dtype == np.float64:
            self._numbers[name] = cells.astype(np.float64)
            cells = np.full(len(cells), -1)
        self._codes[name] = cells.astype(np.int64) + 1

    def coded(self) -> Coded:
        """Return the table. Its domain has as many codes as its rows need: attacks ask what is equal."""
        table = np.column_stack([*self._codes.values()]).astype(np.int32)
        domain = Domain(tuple(self._codes), tuple((table.max(axis=0, initial=0) + 1).tolist()))
        return Coded(Records(domain, table), self._numbers, EMPTY)
