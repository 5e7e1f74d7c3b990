"""Persons who have no table of their own: only a column of other tables names them, as `user_id` of ratings.

Not private: it follows from names and cells of the tables.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import chain, count

import pandas as pd

from privsyn.errors import InputError, did_you_mean
from privsyn.table.drafting.keys import NAMING, KeyedTable, links_between, stem_of, words
from privsyn.table.encoding.dtypes import family
from privsyn.table.schema.subjects import personality_by_names

FEWEST_PERSONS = 10
"""Different cells of a column that names persons: fewer are rather classes, as of `user`: yes or no."""

GATHERED = "NO TABLE HAS THE PERSONS"
"""How the remark begins on persons whose keys are the cells of columns."""

UNLISTED = "PERSONS WITHOUT A TABLE?"
"""How the question begins at a column that may name persons whom no table has."""

PERSONS = "persons"
"""The name of the table of persons whose column says no more than `id`."""


def columns_of_persons(tables: Mapping[str, KeyedTable]) -> dict[tuple[str, str], int]:
    """Return the columns that name persons who have no table, and how likely these are; the likeliest first.

    The name of such a column says so, it leads to no table, and several rows share a cell.

    >>> ratings = pd.DataFrame({"user_id": [*range(10, 30)] * 2, "movie": [7, 8] * 20})
    >>> movies = pd.DataFrame({"movie": [7, 8, 9], "title": ["A", "B", "C"]})
    >>> tables = {"ratings": ratings, "movies": movies}
    >>> columns_of_persons({name: KeyedTable(name, frame) for name, frame in tables.items()})
    {('ratings', 'user_id'): 2}
    """
    ranks = {
        (name, column): (_personality(column), len(table.frame))
        for name, table in tables.items()
        for column in table.cells
        if _names_persons(table, column)
    }
    if not ranks:
        return {}
    leading = links_between(tables)
    unlinked = [column for column in ranks if column not in leading]
    unlinked.sort(key=ranks.__getitem__, reverse=True)
    return {column: ranks[column][0] for column in unlinked}


def persons_of_column(
    tables: Mapping[str, KeyedTable],
    named: str,
    public: Collection[str] = (),
    taken: Collection[str] = (),
) -> KeyedTable:
    """Return the table of the persons whom a column names, as ``ratings.user_id``: a row for each person.

    The cells of columns of the same name in other tables that are not public name persons, too. The table
    gets a name that is neither one of `tables` nor `taken`.

    Raises
    ------
    InputError
        If there is no such column, a table has its keys, or its cells cannot be identifiers.

    >>> ratings = pd.DataFrame({"user_id": [10, 11, 10], "stars": [1, 5, 4]})
    >>> users = persons_of_column({"ratings": KeyedTable("ratings", ratings)}, "ratings.user_id")
    >>> users.name, users.frame["user_id"].tolist(), users.gathered
    ('user', [10, 11], ('ratings.user_id',))
    """
    name, column = named.split(".", 1)
    table = tables[name]
    if column not in table.frame:
        raise InputError(
            f"--persons {named!r}: {name} has no column {column!r}{did_you_mean(column, table.frame)}"
        )
    if column not in table.cells or not table.cells[column].as_written:
        raise InputError(
            f"--persons {named!r}: identifiers are texts, or whole numbers without a point; its cells are not"
        )
    links = links_between(tables)
    holder = (
        name if column in table.keys else links[name, column][0].parent if (name, column) in links else ""
    )
    if holder:
        raise InputError(f"--persons {named!r}: its cells are keys of {holder}: give --persons {holder}")
    alike = {
        table_alike.name: table_alike.cells[column]
        for table_alike in tables.values()
        if table_alike.name not in public
        and column in table_alike.cells
        and table_alike.cells[column].as_written
    }
    are_numbers = all(family(cells.cells.dtype) == "integer" for cells in alike.values())
    keys = dict.fromkeys(key for cells in alike.values() for key in cells.coded[1].to_pylist())
    texts = [key.decode("utf-8", "surrogatepass") for key in keys]
    frame = pd.DataFrame({column: pd.Series([*map(int, texts)] if are_numbers else texts)})
    gathered = tuple(f"{name_alike}.{column}" for name_alike in alike)
    return KeyedTable(_name_of(column, {*tables, *taken}), frame, is_csv=table.is_csv, gathered=gathered)


def _names_persons(table: KeyedTable, column: str) -> bool:
    """Return whether the name of a column says that it names persons, and several rows share a person."""
    cells = table.cells[column]
    return (
        _personality(column) > 0
        and (family(cells.cells.dtype) != "real" or cells.all_identify)
        and len(cells.coded[1]) >= FEWEST_PERSONS
        and cells.different < 1
    )


def _personality(column: str) -> int:
    """Return how likely a column names persons: its name ends in `id` or the like, or is that of one person.

    >>> [_personality(name) for name in ("user_id", "nurseNo", "customer", "idPatient")]
    [2, 1, 2, 2]
    >>> [_personality(name) for name in ("customer_type", "children", "no_children", "patient_age")]
    [0, 0, 0, 0]
    """
    parts = words(column)
    stem = stem_of(parts[1:] if parts[0] == "id" and len(parts) > 1 else parts)
    is_name = stem != parts or parts == (column.lower(),)
    return personality_by_names("_".join(stem), ["_".join(stem)], ()) if is_name else 0


def _name_of(column: str, taken: Collection[str]) -> str:
    """Return a name that is not taken, for the table of the persons whom a column names."""
    stem = "_".join(stem_of(words(column)))
    first = PERSONS if stem in NAMING else stem
    return next(name for name in chain([first], (f"{first}_{n}" for n in count(2))) if name not in taken)
