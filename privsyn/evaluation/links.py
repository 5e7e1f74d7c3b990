"""Persons: which rows of which table belong together, by their keys, and in which order.

A table whose rows belong to persons is a database of two tables: a root without columns, and the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd

from privsyn.abilities import LINKED, NOBODY, check_abilities, refused
from privsyn.errors import InputError, about, did_you_mean, plural
from privsyn.evaluation.comparison import SEED, Comparison
from privsyn.evaluation.encoding import Classes
from privsyn.evaluation.integrity import Broken, broken_rules, has_rules
from privsyn.marginals.domain import Floats, Ints
from privsyn.table.database.declared import ROWS, Database, Table
from privsyn.table.database.lookups import with_lookups
from privsyn.table.database.synthetic import places_above
from privsyn.table.database.yaml_form import persons_and_rows
from privsyn.table.discovery.broken_constraints import Broken as LineOfBroken
from privsyn.table.encoding.dtypes import TEXT, family
from privsyn.table.inferred.columns import infer_schema
from privsyn.table.io.formats import tables_in
from privsyn.table.io.identifiers import identifiers, persons_of
from privsyn.table.io.read_in_memory import read_in_memory
from privsyn.table.schema.columns import Ordinal
from privsyn.table.schema.schema import Schema, declared


def as_one(schema: Schema | Database | None, unit: str | None, order: str | None) -> Database:
    """Return the database; for one table whose rows belong to persons that of a root, and of the rows."""
    if isinstance(schema, Database):
        check_abilities([LINKED], {"unit": unit, "order": order})
        return with_lookups(schema)
    if unit is None:
        raise refused(NOBODY, "order")
    return persons_and_rows(unit, schema, order)


Frames = Mapping[str, pd.DataFrame]
"""The tables of a database, by their names."""


def read_tables(which: str, given: Any, database: Database, *, unit: str | None) -> Frames:
    """Read the tables of a database; with `unit` it is the one of `as_one`, and one table is given.

    Parameters
    ----------
    which : str
        "real", "synthetic" and so on, for messages.
    given : mapping of str to table, path of a folder or database, or with `unit` a table
        A root without columns may be left out: then every link of its children is a person.
    """
    tables = given if unit is None else {ROWS: given}
    if isinstance(tables, str | PathLike):
        tables = tables_in(tables, database.names)
    if not isinstance(tables, Mapping):
        raise InputError(f"{which}: give a mapping of the names of the tables to tables, as to `fit`")
    frames: dict[str, pd.DataFrame] = {}
    for name, table in database.private.items():
        if name in tables:
            no_data = (*table.keys, *database.copied_keys(name))
            frames[name] = read_in_memory(tables[name], table.schema, unit=no_data).frame
            _check_keys(f"the {which} table" + (f" {name!r}" if unit is None else ""), frames[name], table)
        elif name != database.root or table.has_data:
            raise InputError(f"the {which} tables lack {name!r}, which is in the database")
    if (root := database.root) not in frames:
        children = [frames[child][database.tables[child].link] for child in database.children(root)]
        names = dict.fromkeys(key for cells in children for key in identifiers(cells).to_pylist())
        keys = [name.decode("utf-8", "surrogatepass") for name in names if name is not None]
        frames[root] = pd.DataFrame({database.tables[root].key: pd.Series(keys, dtype=TEXT)})
    return frames


def _check_keys(what: str, frame: pd.DataFrame, table: Table) -> None:
    for name in table.keys:
        if name not in frame.columns:
            meant = did_you_mean(name, frame.columns) or ": keep the identifiers"
            raise InputError(f"{what} has no column {name!r}, which says which rows belong together{meant}")
        persons_of(frame.iloc[:0], name)  # refuses a dtype that cannot hold identifiers
    if table.order is not None and table.order not in frame.columns:
        meant = did_you_mean(table.order, frame.columns)
        raise InputError(f"{what} has no column {table.order!r}, by which its rows are in order{meant}")


@dataclass(frozen=True, eq=False)
class Links:
    """How the rows of several tables are linked.

    Parameters
    ----------
    rows : mapping of str to integer array
        For each table the positions of the rows that belong to somebody, sorted by parent and by order.
    parent : mapping of str to integer array
        For each of these rows the place of its parent in `rows` of the parent's table; zeros for the root.
    order : mapping of str to float array
        For each of these rows what puts it in order.
    """

    rows: Mapping[str, Ints]
    parent: Mapping[str, Ints]
    order: Mapping[str, Floats]

    @classmethod
    def of(cls, frames: Mapping[str, pd.DataFrame], database: Database) -> tuple[Links, Broken]:
        """Return the links of rows by their keys, and what is broken. Of equal keys the first one counts."""
        links, broken = cls({}, {}, {}), Broken()
        places: dict[str, dict[bytes | None, int]] = {}
        for name in database.names:
            table, frame = database.tables[name], frames[name]
            keys = None if table.key is None else identifiers(frame[table.key]).to_pylist()
            if table.parent is not None:
                known = places[table.parent]
                links_in = identifiers(frame[table.link]).to_pylist()
                up = np.array([known.get(link, -1) for link in links_in], np.int64)
            else:  # of the root, whose rows without a key are nobody
                up = np.array([-1 if key is None else 0 for key in keys or [b""] * len(frame)], np.int64)
            rows, order = np.flatnonzero(up >= 0), _order(frame, table)
            broken += Broken(orphans=len(frame) - len(rows))
            if keys is not None:
                first = {keys[row]: row for row in reversed(rows.tolist())}
                kept = [keys[row] is None or first[keys[row]] == row for row in rows.tolist()]
                broken += Broken(duplicate_keys=len(kept) - sum(kept))
                rows = rows[kept]
            if table.order is not None:
                by_parent = rows[np.argsort(up[rows], kind="stable")]
                back = (np.diff(up[by_parent]) == 0) & (np.diff(order[by_parent]) < 0)
                broken += Broken(out_of_order=len(np.unique(up[by_parent][1:][back])))
            rows = rows[np.lexsort((order[rows], up[rows]))]  # stable: ties keep the order of the file
            if keys is not None:
                places[name] = {keys[row]: place for place, row in enumerate(rows.tolist())}
                places[name].pop(None, None)  # a missing link is no link to a missing key
            links = links._with(name, rows, up[rows], order[rows])
        return links, broken

    def _with(self, name: str, rows: Ints, parent: Ints, order: Floats) -> Links:
        """Return the links with those of one more table."""
        return Links({**self.rows, name: rows}, {**self.parent, name: parent}, {**self.order, name: order})

    def resample(self, database: Database, roots: int, rng: np.random.Generator) -> Links:
        """Return `roots` root rows, drawn with replacement, each with all rows that belong to it."""
        drawn = {database.root: rng.integers(len(self.rows[database.root]), size=roots)}
        links = Links({}, {}, {})
        for name in database.names:
            parent = np.zeros(roots, np.int64)
            if (up := database.tables[name].parent) is not None:
                number = np.bincount(self.parent[name], minlength=len(self.rows[up]))
                chosen = number[drawn[up]]
                parent = np.repeat(np.arange(len(chosen)), chosen)
                first = np.repeat((np.cumsum(number) - number)[drawn[up]], chosen)
                drawn[name] = first + np.arange(len(parent)) - np.repeat(np.cumsum(chosen) - chosen, chosen)
            taken = drawn[name]
            links = links._with(name, self.rows[name][taken], parent, self.order[name][taken])
        return links

    def deal(self, database: Database, rng: np.random.Generator) -> Links:
        """Return the rows of each table dealt to the parents at random; each parent keeps its number.

        An order that is no column of data, such as 1, 2, 3, is dealt too, apart from the cells.
        """
        links = Links({}, {}, {})
        place: dict[str, Ints] = {}
        for name in database.names:
            parent, times = self.parent[name], self.order[name]
            if database.tables[name].only_order is not None:
                times = rng.permutation(times)
            if (up := database.tables[name].parent) is not None:
                parent = rng.permutation(place[up][parent])
            order = np.lexsort((times, parent))
            place[name] = np.argsort(order)  # where each row is now
            links = links._with(name, self.rows[name][order], parent[order], times[order])
        return links

    def roots(self, database: Database, name: str) -> Ints:
        """Return the place of the root row to which each row of a table belongs."""
        places = np.arange(len(self.rows[name]))
        return dict(places_above(database, name, self.parent, places)).get(database.root, places)

    def persons(self, database: Database, name: str, size: int) -> Ints:
        """Return the root row of each of the `size` rows of a table; -1 for a row that belongs to nobody."""
        found = np.full(size, -1)
        found[self.rows[name]] = self.roots(database, name)
        return found


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
    places = pd.factorize(cells, sort=True)[0]
    return np.where(places < 0, np.nan, places)


@dataclass(frozen=True, eq=False)
class Side:
    """The rows of all tables that belong to somebody, as they are linked: sorted by parent, and in order.

    Parameters
    ----------
    links : Links
    codes : mapping of str to mapping of str to integer array
        For each table and column the class of each row.
    numbers : mapping of str to mapping of str to float array
        For each table and column of numbers or dates the cells; NaN where a cell is missing.
    """

    links: Links
    codes: Mapping[str, Mapping[str, Ints]]
    numbers: Mapping[str, Mapping[str, Floats]]

    def size(self, table: str) -> int:
        """Return the number of rows."""
        return len(self.links.rows[table])


@dataclass(frozen=True, eq=False)
class Persons:
    """The tables of a database, real and otherwise, as they are linked.

    Parameters
    ----------
    database : Database
    classes : mapping of str to mapping of str to Classes
        For each table and column.
    truth : Side
        The real rows.
    others : mapping of str to Side
        "synthetic"; "real": as many real roots drawn again, with all their rows; "independent": the real rows
        of each table, dealt to the parents at random.
    broken : mapping of str to Broken
        For the real and the synthetic tables.
    frames : mapping of str to mapping of str to DataFrame
        The same tables as they were read.
    """

    database: Database
    classes: Mapping[str, Mapping[str, Classes]]
    truth: Side
    others: Mapping[str, Side]
    broken: Mapping[str, Broken]
    frames: Mapping[str, Frames]

    @classmethod
    def of(
        cls,
        database: Database,
        links: Mapping[str, tuple[Links, Broken]],
        comparisons: Mapping[str, Comparison],
        frames: Mapping[str, Frames],
    ) -> Persons:
        """Return the comparison of linked tables, given the links of both sides and each table compared."""
        rng = np.random.default_rng(SEED)
        classes = {
            table: {name: Classes.of(of.view, of.real, name) for name in of.view.domain}
            for table, of in comparisons.items()
        }

        def side(linked: Links, which: str) -> Side:
            codes: dict[str, dict[str, Ints]] = {table: {} for table in database.names}
            numbers: dict[str, dict[str, Floats]] = {table: {} for table in database.names}
            for table, comparison in comparisons.items():
                cells, rows = getattr(comparison, which), linked.rows[table]
                numbers[table] = {name: column[rows] for name, column in cells.numbers.items()}
                for axis, (name, of) in enumerate(classes[table].items()):
                    codes[table][name] = of.code(cells.records.codes[rows, axis], numbers[table].get(name))
            return Side(linked, codes, numbers)

        real, synthetic = links["real"][0], links["synthetic"][0]
        others = {
            "synthetic": side(synthetic, "synthetic"),
            "real": side(real.resample(database, len(synthetic.rows[database.root]), rng), "real"),
            "independent": side(real.deal(database, rng), "real"),
        }
        broken = {which: found[1] for which, found in links.items()}
        return cls(database, classes, side(real, "real"), others, broken, frames)

    @property
    def children(self) -> tuple[str, ...]:
        """The tables whose rows belong to rows of another one."""
        return self.database.names[1:]

    def sizes(self, table: str) -> dict[str, int]:
        """Return the number of classes of each column."""
        return {name: len(of.words) for name, of in self.classes.get(table, {}).items()}

    def label(self, table: str, text: str) -> str:
        """Return a text with the table that it is about, if there are several."""
        return text if len(self.children) == 1 else f"{table}: {text}"


def compare_linked(
    frames: Mapping[str, Frames],
    database: Database,
    *,
    target: str | None,
    models: bool | Sequence[str],
    leave_out: Sequence[str],
) -> tuple[Comparison, dict[str, Comparison]]:
    """Compare linked tables; see `evaluate`.

    Returns
    -------
    whole : Comparison
        Of the first table with columns, and of all rows that belong together.
    tables : dict
        The comparison of each table with columns, if there are several.
    """
    links = {which: link(which, frames[which], database) for which in ("real", "synthetic")}
    compared = compared_columns(database, frames["real"])
    if not compared:
        raise InputError("no column can be compared: all tables have keys, identifiers or free text only")
    if len(compared) > 1:
        check_abilities([LINKED], {"target": target, "test": frames.get("test")})
    tables: dict[str, Comparison] = {}
    for name in compared:
        table = database.tables[name]
        cells = {which: of[name].drop(columns=[*table.keys]) for which, of in frames.items()}
        tables[name] = Comparison.of(
            cells["real"],
            cells["synthetic"],
            table.schema,
            test=cells.get("test"),
            target=target,
            models=models,
            leave_out=leave_out,
            owners=links["real"][0].persons(database, name, len(cells["real"])),
        )
    persons = Persons.of(database, links, tables, frames)
    for name, comparison in tables.items():
        rows = persons.others["real"].links.rows[name]
        tables[name] = replace(comparison, resampled=comparison.real.take(rows)) if len(rows) else comparison
    whole = replace(next(iter(tables.values())), persons=persons)
    return whole, tables if len(tables) > 1 else {}


def link(which: str, frames: Frames, database: Database) -> tuple[Links, Broken]:
    """Return the links of tables, and what is broken; refuse tables in which nobody has an identifier."""
    links, broken = Links.of(frames, database)
    if not len(links.rows[database.root]):
        raise InputError(f"the {which} table has nobody: no row has an identifier")
    return links, broken


def check_rules(given: Any, database: Database) -> list[str]:
    """Return how often the private rows break each rule about several rows that a database declares.

    NOT PRIVATE: each line counts private rows, and is for the owner only. `check_tables` counts all else.
    """
    if not has_rules(database, within=False):  # no row is read
        return []
    database = with_lookups(database)
    frames = read_tables("private", given, database, unit=None)
    rules = broken_rules(frames, Links.of(frames, database)[0], database, within=False)
    return [
        LineOfBroken(f"table {name!r}:{rule}: broken {plural(times, 'time')}, and by no synthetic row")
        for (name, _, rule), times in ((words.partition(":"), times) for words, times in rules.items())
        if times
    ] or ["every row keeps every rule about several rows"]


def compared_columns(database: Database, frames: Frames) -> list[str]:
    """Return the tables that have columns to compare."""
    return [name for name in database.names if _has_columns(database.tables[name], frames[name])]


def _has_columns(table: Table, frame: pd.DataFrame) -> bool:
    """Return whether a table has columns to compare: not if its schema is empty or leaves all of them out."""
    schema = table.schema
    has_none = schema is not None and (schema.says_nothing or bool(schema.columns and not schema.coded))
    return not has_none and len(frame.columns) > len(table.keys)
