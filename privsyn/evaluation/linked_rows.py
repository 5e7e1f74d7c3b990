"""Persons: which rows of which table belong together, by their keys, and in which order.

A table whose rows belong to persons is a database of two tables: a root without columns, and the rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from operator import add
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd

from privsyn.abilities import LINKED, NOBODY, check_abilities, refused
from privsyn.errors import InputError, about, did_you_mean
from privsyn.evaluation.comparison import SEED
from privsyn.marginals.domain import Floats, Ints
from privsyn.table.database.database import Database
from privsyn.table.database.declared import Table
from privsyn.table.database.lookups import with_lookups
from privsyn.table.database.synthetic import places_above
from privsyn.table.database.yaml_form import as_database, persons_and_rows
from privsyn.table.encoding.dtypes import TEXT, family
from privsyn.table.inferred.columns import infer_schema
from privsyn.table.io.formats import tables_in
from privsyn.table.io.identifiers import identifiers, identities, persons_of
from privsyn.table.io.read_in_memory import read_in_memory
from privsyn.table.schema.columns import Ordinal
from privsyn.table.schema.schema import declared


def as_one(schema: object, unit: str | None, order: str | None) -> Database:
    """Return the database; for one table whose rows belong to persons that of a root, and of the rows."""
    database = as_database(schema)
    if database.single is None:
        check_abilities([LINKED], {"unit": unit, "order": order})
        return with_lookups(database)
    if unit is None:
        check_abilities([NOBODY], {"rules": database.about_persons})
        raise refused(NOBODY, "order")
    return persons_and_rows(unit, database, order)


Frames = Mapping[str, pd.DataFrame]
"""The tables of a database, by their names."""


def read_tables(which: str, source: Any, database: Database) -> Frames:
    """Read the tables of a database.

    Parameters
    ----------
    which : str
        "real", "synthetic" and so on, for messages.
    source : mapping of str to table, or path of a folder or database; or the table that is given alone
        A root without columns may be left out: then every link of its children is a person.
    """
    tables = database.by_name(source)
    if isinstance(tables, str | PathLike):
        tables = tables_in(tables, database.names, database.may_lack)
    if not isinstance(tables, Mapping):
        raise InputError(f"{which}: give a mapping of the names of the tables to tables, as to `fit`")
    frames: dict[str, pd.DataFrame] = {}
    for name, table in database.private.items():
        if name in tables:
            no_data = (*table.keys, *database.copied_keys(name))
            frames[name] = read_in_memory(tables[name], table.schema, unit=no_data).frame
            subject = f"the {which} table" + (f" {name!r}" if database.shown_name(name) else "")
            columns = frames[name].columns
            for key in dict.fromkeys((*table.keys, *table.key_columns)):
                if key not in columns:
                    meant = did_you_mean(key, columns) or ": keep the identifiers"
                    raise InputError(
                        f"{subject} has no column {key!r}, which says which rows belong together{meant}"
                    )
                if key in table.keys:
                    persons_of(frames[name].iloc[:0], key)  # refuses a dtype that cannot hold identifiers
            if table.order is not None and table.order not in columns:
                meant = did_you_mean(table.order, columns)
                raise InputError(
                    f"{subject} has no column {table.order!r}, by which its rows are in order{meant}"
                )
        elif name != database.may_lack:
            raise InputError(f"the {which} tables lack {name!r}, which is in the database")
    if (root := database.root) not in frames:
        children = [
            frames[child][database.tables[child].link_columns[0]] for child in database.children(root)
        ]
        names = dict.fromkeys(key for cells in children for key in identifiers(cells).to_pylist())
        keys = [name.decode("utf-8", "surrogatepass") for name in names if name is not None]
        frames[root] = pd.DataFrame({database.tables[root].key_columns[0]: pd.Series(keys, dtype=TEXT)})
    return frames


@dataclass(frozen=True)
class BrokenKeys:
    """What keys and order of a database should not have.

    Parameters
    ----------
    duplicate_keys : int
        Rows whose key an earlier row has.
    orphans : int
        Rows whose link is missing, or the key of no row; and those of the root without a key.
    out_of_order : int
        Parents whose rows do not stand in their order.
    """

    duplicate_keys: int = 0
    orphans: int = 0
    out_of_order: int = 0

    def __add__(self, broken: BrokenKeys) -> BrokenKeys:
        return BrokenKeys(*map(add, vars(self).values(), vars(broken).values()))


@dataclass(frozen=True, eq=False)
class LinkedRows:
    """How the rows of several tables are linked.

    Parameters
    ----------
    rows : mapping of str to integer array
        For each table the positions of the rows that belong to somebody, sorted by parent and by order.
    parent : mapping of str to integer array
        For each of these rows the place of its parent in `rows` of the parent's table; zeros for the root.
    order : mapping of str to float array
        For each of these rows what puts it in order.
    dealt : mapping of (table, column) to integer array
        For each of these rows the position of the row that a dealt column names, -1 for none.
    targets : mapping of str to integer array
        The positions of the rows that dealt columns may name: those that belong to somebody, each once.
    """

    rows: Mapping[str, Ints]
    parent: Mapping[str, Ints]
    order: Mapping[str, Floats]
    dealt: Mapping[tuple[str, str], Ints] = field(default_factory=dict)
    targets: Mapping[str, Ints] = field(default_factory=dict)

    @classmethod
    def of(cls, frames: Mapping[str, pd.DataFrame], database: Database) -> tuple[LinkedRows, BrokenKeys]:
        """Return the links of rows by their keys, and what is broken. Of equal keys the first one counts."""
        links, broken = cls({}, {}, {}), BrokenKeys()
        rows_of_keys: dict[str, dict[Any, int]] = {}
        for name in database.names:
            table, frame = database.tables[name], frames[name]
            keys = None if table.key is None else identities(frame, table.key)
            if table.parent is not None:
                parents = rows_of_keys[table.parent]
                links_in = identities(frame, table.link)
                up = np.array([parents.get(link, -1) for link in links_in], np.int64)
            else:  # of the root, whose rows without a key are nobody
                up = np.array([-1 if key is None else 0 for key in keys or [b""] * len(frame)], np.int64)
            rows, order = np.flatnonzero(up >= 0), _order(frame, table)
            broken += BrokenKeys(orphans=len(frame) - len(rows))
            if keys is not None:
                first = {keys[row]: row for row in reversed(rows.tolist())}
                is_first = [keys[row] is None or first[keys[row]] == row for row in rows.tolist()]
                broken += BrokenKeys(duplicate_keys=len(is_first) - sum(is_first))
                rows = rows[is_first]
            if table.order is not None:
                by_parent = rows[np.argsort(up[rows], kind="stable")]
                back = (np.diff(up[by_parent]) == 0) & (np.diff(order[by_parent]) < 0)
                broken += BrokenKeys(out_of_order=len(np.unique(up[by_parent][1:][back])))
            rows = rows[np.lexsort((order[rows], up[rows]))]  # stable: ties keep the order of the file
            if keys is not None:
                rows_of_keys[name] = {keys[row]: index for index, row in enumerate(rows.tolist())}
                rows_of_keys[name].pop(None, None)  # a missing link is no link to a missing key
            links = links._with_table(name, rows, up[rows], order[rows])
        dealt: dict[tuple[str, str], Ints] = {}
        for name, table in database.private.items():
            for column, target in table.dealt.items():
                named = identities(frames[name].iloc[links.rows[name]], column)
                indices = np.array([rows_of_keys[target].get(key, -1) for key in named], np.int64)
                dealt[name, column] = np.append(links.rows[target], -1)[indices]
        every_target = {target for table in database.private.values() for target in table.dealt.values()}
        targets = {target: links.rows[target] for target in database.names if target in every_target}
        return replace(links, dealt=dealt, targets=targets), broken

    def _with_table(self, name: str, rows: Ints, parent: Ints, order: Floats) -> LinkedRows:
        """Return the links with those of one more table."""
        return replace(
            self,
            rows={**self.rows, name: rows},
            parent={**self.parent, name: parent},
            order={**self.order, name: order},
        )

    def resample(
        self, database: Database, persons: Mapping[str, int], rng: np.random.Generator
    ) -> LinkedRows:
        """Return some number of persons of each table without a parent, drawn with replacement.

        Each has all rows that belong to it. A dealt column names the row that it named.
        """
        drawn = {root: rng.integers(len(self.rows[root]), size=persons[root]) for root in database.roots}
        links = LinkedRows({}, {}, {}, targets=self.targets)
        for name in database.names:
            parent = np.zeros(len(drawn.get(name, ())), np.int64)
            if (up := database.tables[name].parent) is not None:
                number = np.bincount(self.parent[name], minlength=len(self.rows[up]))
                chosen = number[drawn[up]]
                parent = np.repeat(np.arange(len(chosen)), chosen)
                first = np.repeat((np.cumsum(number) - number)[drawn[up]], chosen)
                drawn[name] = first + np.arange(len(parent)) - np.repeat(np.cumsum(chosen) - chosen, chosen)
            taken = drawn[name]
            links = links._with_table(name, self.rows[name][taken], parent, self.order[name][taken])
        dealt = {(name, column): named[drawn[name]] for (name, column), named in self.dealt.items()}
        return replace(links, dealt=dealt)

    def deal(self, database: Database, rng: np.random.Generator) -> LinkedRows:
        """Return the rows of each table dealt to the parents at random; each parent keeps its number.

        An order that is no column of data, such as 1, 2, 3, is dealt too, apart from the cells. Dealt columns
        change places among the rows.
        """
        links = LinkedRows({}, {}, {}, targets=self.targets)
        positions: dict[str, Ints] = {}
        for name in database.names:
            parent, times = self.parent[name], self.order[name]
            if database.tables[name].only_order is not None:
                times = rng.permutation(times)
            if (up := database.tables[name].parent) is not None:
                parent = rng.permutation(positions[up][parent])
            order = np.lexsort((times, parent))
            positions[name] = np.argsort(order)  # where each row is now
            links = links._with_table(name, self.rows[name][order], parent[order], times[order])
        return replace(links, dealt={link: rng.permutation(named) for link, named in self.dealt.items()})

    def roots(self, database: Database, name: str) -> Ints:
        """Return the place of the person to whom each row of a table belongs, among the rows of its root."""
        rows = np.arange(len(self.rows[name]))
        return [rows, *(rows for _, rows in places_above(database, name, self.parent, rows))][-1]

    def persons(self, database: Database, name: str, size: int) -> Ints:
        """Return the root row of each of the `size` rows of a table; -1 for a row that belongs to nobody."""
        roots = np.full(size, -1)
        roots[self.rows[name]] = self.roots(database, name)
        return roots


def _order(frame: pd.DataFrame, table: Table) -> Floats:
    """Return a number for each row by which the rows of one parent are in order; NaN, so last, if missing.

    Rows without an order are put in a random one: that of a file may be an order that nobody asked for.
    """
    if table.parent is None:
        return np.zeros(len(frame))
    if table.order is None:
        return np.random.default_rng(SEED).random(len(frame))
    cells = frame[table.order]
    with about(f"column {table.order!r}"):
        column = (declared(table.schema) or infer_schema(cells.to_frame())).columns.get(table.order)
        if isinstance(column, Ordinal):
            return column.measured(cells)
    if family(cells.dtype) in ("integer", "real"):
        return cells.to_numpy(np.float64, na_value=np.nan)
    if (numbers := pd.to_numeric(cells, errors="coerce")).notna().equals(cells.notna()):
        return numbers.to_numpy(np.float64, na_value=np.nan)
    ranks = pd.factorize(cells, sort=True)[0]
    return np.where(ranks < 0, np.nan, ranks)


def link(which: str, frames: Frames, database: Database) -> tuple[LinkedRows, BrokenKeys]:
    """Return the links of tables, and what is broken; refuse tables in which nobody has an identifier."""
    links, broken = LinkedRows.of(frames, database)
    for root in database.roots:
        if not len(links.rows[root]):
            table = f"table {root!r}" if database.shown_name(root) else "table"
            raise InputError(f"the {which} {table} has nobody: no row has an identifier")
    return links, broken
