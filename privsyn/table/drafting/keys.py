"""Keys of tables, and columns whose cells name keys of other tables: candidates, from names and cells.

Not private: whether a column is a key, and leads to another table, was read from the rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from privsyn.marginals.domain import Ints
from privsyn.table.drafting.candidates import RARE_BY_CHANCE
from privsyn.table.encoding.dtypes import family
from privsyn.table.io.formats import DeclaredTable
from privsyn.table.io.identifiers import identifiers, identities
from privsyn.table.kinds.keys import Key, columns_of
from privsyn.table.schema.schema import names_rows

JOIN = b"\x1f"
"""Between the identifiers of a key of several columns: the character that separates units, in no cell."""

NAMING = {"code", "fk", "guid", "id", "ident", "identifier", "key", "no", "nr", "num", "number", "pk", "ref"}
"""Words in the name of a column that say that it names rows."""

IRREGULAR = {"people": "person", "children": "child", "men": "man", "women": "woman"}

NAMED = 2
"""Least closeness of two names by which a column leads to a key; see `closeness`."""

OWN, NEARLY_ALL = 2, 0.99
"""Few rows may share a key by mistake. So a column is still the key if its name says so this well, see
`names_own_rows`, and at least this share of its cells differs."""

PREFIXES = {"dim", "fact", "table", "tbl"}
"""Words before the names of tables."""

STRAYS = 0.1
"""Largest share of the different values that may be no keys, if the name leads to the key: the parent's row
may be gone, and -1 stand for none."""

MOSTLY_KEYS = 0.5
"""Least share of the different values that are keys, if the name is that of the key, and they are not so by
chance."""

LEAST_VALUES = 3
"""Different values that a column needs to lead to a key that its name does not mention."""

MOSTLY_USED, MANY_KEYS = 0.5, 100
"""Share of the keys that numbers without gaps must use, and how many keys there must be, so that a column by
another name may lead there: its numbers would be as small by accident."""


def words(name: str) -> tuple[str, ...]:
    """Return the words of a name, in small letters and the singular.

    >>> words("schoolZone_ids"), words("purchases"), words("CITIES"), words("address")
    (('school', 'zone', 'id'), ('purchase',), ('city',), ('address',))
    """
    parted = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name)
    singular = []
    for word in re.sub(r"[\W_]+", " ", parted).lower().split():
        if word in IRREGULAR:
            singular.append(IRREGULAR[word])
        elif len(word) > 4 and word.endswith("ies"):
            singular.append(f"{word[:-3]}y")
        elif len(word) > 4 and word.endswith(("ches", "shes", "sses", "xes")):
            singular.append(word[:-2])
        elif len(word) > 2 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
            singular.append(word[:-1])
        else:
            singular.append(word)
    return tuple(singular) or (name,)


def _of_table(name: str) -> tuple[str, ...]:
    """Return the words of the name of a table, without those before it as in tbl_visits."""
    first, *rest = words(name)
    return tuple(rest) if rest and first in PREFIXES else (first, *rest)


def stem_of(parts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words without those at the end that say that a column names rows.

    >>> stem_of(words("customer_id")), stem_of(words("childid")), stem_of(words("id"))
    (('customer',), ('child',), ('id',))
    """
    while len(parts) > 1 and parts[-1] in NAMING:
        parts = parts[:-1]
    joined = re.fullmatch(r"(.{3,})(?:id|key|code|nr|no)", parts[-1]) if len(parts) == 1 else None
    return (joined[1],) if joined else parts


def closeness(column: str, table: str, key: str) -> int:
    """Return how well the name of a column says that it leads to the key of another table.

    It is 4 for the name of the key and of the table, 3 for one of both, 2 if it ends in one of both, else 0.

    >>> [closeness(name, "people", "person_id") for name in ("person_id", "person", "age")]
    [4, 3, 0]
    >>> closeness("school_zone_id", "zones", "zone_id")
    2
    >>> closeness("persons", "persons", "id")  # rather a number of them
    0
    """
    column_words, key_words, table_words = words(column), words(key), _of_table(table)
    generic = all(word in NAMING for word in key_words)
    if column.lower() == table.lower() and column_words != tuple(column.lower().split("_")):
        return 0  # the plural, as in `persons`, is rather a number of rows
    same = not generic and column_words == key_words
    stem = stem_of(column_words)
    named = stem == table_words and not (column_words == key_words and generic)
    if same or named:
        return 3 + (same and named)
    ends = (table_words,) if generic else (key_words, stem_of(key_words), table_words)
    is_end = any(
        len(column_words) > len(end) and end in (column_words[-len(end) :], stem[-len(end) :]) for end in ends
    )
    return NAMED if is_end else 0


def names_own_rows(column: str, table: str) -> int:
    """Return how well the name of a column says that it is the key of its table.

    >>> [names_own_rows(name, "visits") for name in ("visit_id", "id", "patient_id", "ward")]
    [3, 2, 1, 0]
    """
    parts = words(column)
    if all(part in NAMING for part in parts):
        return 2
    if stem_of(parts) == _of_table(table):
        return 3
    return 1 if names_rows(column) or parts[-1] in NAMING else 0


@dataclass(frozen=True, eq=False)
class KeyCells:
    """The cells of a column as identifiers: as `fit` compares keys.

    Parameters
    ----------
    cells : pandas.Series
    as_written : bool
        Whether `fit` reads them as they are here. In a text file 412.0 is another key than 412.
    """

    cells: pd.Series
    as_written: bool = True

    @cached_property
    def coded(self) -> tuple[Ints, pa.Array]:
        """The place of each cell among the different identifiers, -1 where it is none; and these."""
        both = identifiers(self.cells).dictionary_encode()
        codes = both.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        return codes, both.dictionary

    @cached_property
    def numbers(self) -> tuple[int, int] | None:
        """The least and the largest, if all are numbers."""
        if family(self.cells.dtype) not in ("integer", "real") or not len(self.coded[1]):
            return None
        values = [int(value) for value in self.coded[1].to_pylist()]
        return min(values), max(values)

    @property
    def all_identify(self) -> bool:
        """Whether each cell that is not missing is an identifier: numbers are whole.

        >>> KeyCells(pd.Series([7.0, None])).all_identify, KeyCells(pd.Series([7.5, None])).all_identify
        (True, False)
        """
        return int((self.coded[0] >= 0).sum()) == int(self.cells.notna().sum())

    @property
    def different(self) -> float:
        """The share of the rows that have an identifier of their own."""
        return len(self.coded[1]) / max(len(self.cells), 1)

    def places_in(self, key: KeyCells) -> Ints:
        """Return the row with each key, -1 where there is none."""
        codes, values = self.coded
        rows, keys = key.coded
        of_key = np.full(len(keys) + 1, -1)  # the last is that of rows without a key, whose code is -1
        of_key[rows] = np.arange(len(rows))
        indices = pc.index_in(values, value_set=keys).fill_null(len(keys)).to_numpy(zero_copy_only=False)
        of_key[-1] = -1
        return np.append(of_key[indices], -1)[codes]

    def share_in(self, key: KeyCells) -> float:
        """Return the share of the different values that are keys."""
        values = self.coded[1]
        inside: int = pc.sum(pc.is_in(values, value_set=key.coded[1])).as_py() or 0
        return inside / max(len(values), 1)

    def by_chance(self, key: KeyCells) -> bool:
        """Return whether the values may be among the keys by chance: few of them, or numbers without gaps."""
        values, keys = len(self.coded[1]), len(key.coded[1])
        if values < LEAST_VALUES:
            return True
        if self.numbers is None or key.numbers is None:
            return (self.numbers is None) != (key.numbers is None)
        between = key.numbers[1] - key.numbers[0] + 1
        return bool((keys / between) ** values > RARE_BY_CHANCE)


@dataclass(frozen=True, eq=False)
class KeyedTable:
    """A table as the search for keys and links needs it.

    Parameters
    ----------
    name : str
    frame : pandas.DataFrame
    declared : DeclaredTable
        What a database says of it.
    is_csv : bool
        Whether keys are compared as texts.
    pair : tuple of str, optional
        Two columns that are the key if no single one is.
    gathered : tuple of str, optional
        The columns, as ``ratings.user_id``, whose cells are the keys of persons that no table has.
    """

    name: str
    frame: pd.DataFrame
    declared: DeclaredTable = field(default_factory=DeclaredTable)
    is_csv: bool = False
    pair: tuple[str, ...] = ()
    gathered: tuple[str, ...] = ()
    _joined: dict[tuple[str, ...], KeyCells] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def cells(self) -> dict[str, KeyCells]:
        """The columns that can have identifiers."""
        kinds = ("text", "object", "integer", "real", "category")
        return {
            str(name): KeyCells(cells, not (self.is_csv and family(cells.dtype) == "real"))
            for name, cells in self.frame.items()
            if family(cells.dtype) in kinds
        }

    def cells_of(self, key: Key) -> KeyCells:
        """Return the cells of a key; those of several columns as one text for each row."""
        if isinstance(key, str):
            return self.cells[key]
        if key not in self._joined:
            rows = identities(self.frame, key)
            texts = [None if row is None else JOIN.join(row).decode("utf-8", "replace") for row in rows]
            as_written = all(column not in self.cells or self.cells[column].as_written for column in key)
            self._joined[key] = KeyCells(pd.Series(texts, dtype=object), as_written)
        return self._joined[key]

    def has(self, key: Key) -> bool:
        """Return whether the table has the columns of a key, and they can identify rows."""
        return key in self.cells if isinstance(key, str) else {*key} <= {*map(str, self.frame)}

    def is_unique(self, key: Key) -> bool:
        """Return whether no cell of a key is missing and no two rows share it.

        >>> table = KeyedTable("marks", pd.DataFrame({"student": [1, 1, 2], "course": [1, 2, 1]}))
        >>> table.is_unique(("student", "course")), table.is_unique("student")
        (True, False)
        """
        return len(self.frame) > 1 and self.cells_of(key).different == 1

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        """The columns that may be the key, the likeliest first. A key that is declared is the only one."""
        if self.gathered:
            return (str(self.frame.columns[0]),)
        if self.declared.key:
            return (self.declared.key[0] if len(self.declared.key) == 1 else self.declared.key,)
        if len(self.frame) < 2:
            return ()
        closeness_of, keys = {}, []
        for name, cells in self.cells.items():
            if family(cells.cells.dtype) != "real":
                closeness_of[name] = names_own_rows(name, self.name)
                if cells.different >= (NEARLY_ALL if closeness_of[name] >= OWN else 1):  # a few typed twice
                    keys.append(name)
        named = sorted(filter(closeness_of.__getitem__, keys), key=lambda name: -closeness_of[name])
        single = tuple(named) or tuple(name for name in keys if name == self.frame.columns[0])
        return single or ((self.pair,) if self.pair else ())


@dataclass(frozen=True)
class Link:
    """A column that leads to the key of another table, or of its own; or several columns that do so together.

    Parameters
    ----------
    table : str
    column : str or tuple of str
    parent : str
    key : str or tuple of str
    declared : bool
        Whether the database says so.
    close : int
        See `closeness`.
    strays : int
        Cells that name no key.
    as_written : bool
        Whether `fit` finds the keys, too.
    """

    table: str
    column: Key
    parent: str
    key: Key
    declared: bool
    close: int
    strays: int = 0
    as_written: bool = True


ANOTHER_ROW = re.compile(
    r"(?i)(?:manager|boss|superior|supervisor|report|parent|mother|father|spouse|partner|mentor|referr|previous|"
    r"predecessor|successor|replace|head|chief|lead|vorgesetzt|vorg(?:ä|ae)nger|belongs?)"
    r"(?:er|ed|en|s|al|d)?(?:_?(?:by|to))?[_ -]?(?:id|nr|no|num|number|key|code|person|employee|row)?$"
)
"""Names of columns that lead to another row of their table: `spouse_id` does, `spouse_age` does not."""


def leads_to_own_rows(frame: pd.DataFrame) -> dict[str, str]:
    """Return the columns of one table whose cells are cells of its key, and the key.

    >>> staff = pd.DataFrame({"nr": range(8), "boss": [None, 0, 0, 1, 1, 2, 2, 2], "grade": [1, 2] * 4})
    >>> leads_to_own_rows(staff)
    {'boss': 'nr'}
    """
    table = KeyedTable("", frame)
    keys = {}
    single = [key for key in table.keys if isinstance(key, str)]
    for key, column in ((key, column) for key in single for column in table.cells if column != key):
        cells = table.cells[column]
        if len(cells.coded[1]) < LEAST_VALUES or cells.different == 1 or column in keys:
            continue
        named = ANOTHER_ROW.search(column) is not None
        if cells.share_in(table.cells[key]) == 1 and (named or not cells.by_chance(table.cells[key])):
            keys[column] = key
    return keys


def links_between(tables: Mapping[str, KeyedTable]) -> dict[tuple[str, Key], list[Link]]:
    """Return where each column of each table may lead to, the likeliest first; also several columns together.

    Examples
    --------
    >>> patients = pd.DataFrame({"patient": range(500, 900, 4), "age": 40})
    >>> visits = pd.DataFrame({"visit_id": range(60), "patient": [500, 504, 508] * 20, "stay": range(60)})
    >>> tables = {"patients": patients, "visits": visits}
    >>> found = links_between({name: KeyedTable(name, frame) for name, frame in tables.items()})
    >>> [(table, column, links[0].parent) for (table, column), links in found.items()]
    [('visits', 'patient', 'patients')]
    """
    links_of: dict[tuple[str, Key], list[Link]] = {}
    for name, table in tables.items():
        for column in _may_lead(table, tables):
            links = [*_links_of(table, column, tables)]
            links.sort(key=lambda link: (-link.declared, not link.as_written, -link.close))
            if links:
                links_of[name, column] = links

    def rank(name: str, key: Key) -> tuple[int, int, int]:
        named = max(names_own_rows(column, name) for column in columns_of(key))
        return named, len(tables[name].frame), [*tables].index(name)

    # Of two keys that lead to each other, the parent's leads nowhere. A declared link decides which that is;
    # else the name of the key, then the number of rows. Of equal tables, the later one is the parent.
    of_parents = set()
    for column_of_table, (link, *_) in links_of.items():
        back = links_of.get((link.parent, link.key), [link])[0]
        mutual = (back.parent, back.key) == column_of_table and not link.declared
        if mutual and (back.declared or rank(*column_of_table) > rank(link.parent, link.key)):
            of_parents.add(column_of_table)
    return {column: links for column, links in links_of.items() if column not in of_parents}


def with_pairs(tables: Mapping[str, KeyedTable]) -> dict[str, KeyedTable]:
    """Return the tables; one without a key has two columns that differ together in every row, if it has such.

    One of them leads to another table, and the other one does so too, or its name says that it names rows.

    >>> marks = pd.DataFrame({"student": [10, 10, 20, 30] * 3, "course_no": [*"abaacdcdefee"], "mark": 1})
    >>> students = pd.DataFrame({"student": [10, 20, 30, 40]})
    >>> tables = {"students": KeyedTable("students", students), "marks": KeyedTable("marks", marks)}
    >>> with_pairs(tables)["marks"].keys
    (('student', 'course_no'),)
    """
    if all(table.keys for table in tables.values()):
        return dict(tables)
    links, paired = links_between(tables), dict(tables)
    for name, table in tables.items():
        if not table.keys:
            linked = [column for column in table.cells if (name, column) in links]
            named = [column for column in table.cells if column in linked or names_own_rows(column, name)]
            pairs = (pair for pair in combinations(named, 2) if {*pair} & {*linked})
            if pair := next(filter(table.is_unique, pairs), None):
                paired[name] = replace(table, pair=pair)
    return paired


def _may_lead(table: KeyedTable, tables: Mapping[str, KeyedTable]) -> list[Key]:
    """Return the columns that may lead to a key, and several together that have the names of one."""
    wide = {key for parent in tables.values() for key in parent.keys if not isinstance(key, str)}
    wide |= {columns for columns in table.declared.links if len(columns) > 1}
    return [*table.cells, *sorted(key for key in wide if table.has(key))]


def _links_of(table: KeyedTable, column: Key, tables: Mapping[str, KeyedTable]) -> Iterator[Link]:
    """Yield where one column, or several together, may lead to."""
    if (columns := columns_of(column)) in table.declared.links:
        parent, there = table.declared.links[columns]
        key: Key = there[0] if len(there) == 1 else there
        if parent in tables and tables[parent].has(key):
            strays = _strays(table.cells_of(column), tables[parent].cells_of(key))
            close = closeness(columns[0], parent, there[0])
            yield Link(table.name, column, parent, key, True, close, strays)
        return
    if not isinstance(column, str):
        yield from _links_of_several(table, column, tables)
        return
    cells = table.cells[column]
    if not len(cells.coded[1]) or cells.cells.dtype.kind == "b":
        return
    for parent, parent_table in tables.items():
        for key in parent_table.keys:
            if (parent, key) == (table.name, column) or key not in parent_table.cells:
                continue
            if not isinstance(key, str):
                continue
            if parent == table.name and column in table.keys:
                continue
            close, share = closeness(column, parent, key), cells.share_in(parent_table.cells[key])
            if column == key and column not in table.keys:  # `id` of several rows is the parent's
                close = max(close, NAMED)
            stems = stem_of(words(column)), stem_of(words(key))
            if parent == table.name and (close > NAMED or stems[0] == stems[1]):  # line_no beside line_id
                continue
            named = close >= NAMED and share >= 1 - STRAYS
            by_both = close > NAMED and share >= MOSTLY_KEYS  # many rows of the parent may be gone
            by_cells = key == parent_table.keys[0] and parent != table.name and share == 1
            if named or ((by_cells or by_both) and not cells.by_chance(parent_table.cells[key])):
                as_written = cells.as_written and parent_table.cells[key].as_written
                strays = _strays(cells, parent_table.cells[key])
                yield Link(table.name, column, parent, key, False, close, strays, as_written)


def _links_of_several(
    table: KeyedTable, columns: tuple[str, ...], tables: Mapping[str, KeyedTable]
) -> Iterator[Link]:
    """Yield the tables with a key of these names, whose rows the cells name."""
    for parent, parent_table in tables.items():
        if parent != table.name and columns in parent_table.keys:
            cells, key = table.cells_of(columns), parent_table.cells_of(columns)
            if len(cells.coded[1]) and cells.share_in(key) >= 1 - STRAYS:
                strays, as_written = _strays(cells, key), cells.as_written and key.as_written
                yield Link(table.name, columns, parent, columns, False, NAMED, strays, as_written)


def _strays(cells: KeyCells, key: KeyCells) -> int:
    """Return how many cells name no key."""
    return int(((cells.places_in(key) < 0) & (cells.coded[0] >= 0)).sum())


def may_be_looked_up(cells: KeyCells, key: KeyCells) -> bool:
    """Return whether a column has numbers of a look-up table, whose keys may be numbers without gaps.

    >>> zones, ages = np.arange(1, 1001), np.arange(1000) % 90 + 1
    >>> key = KeyCells(pd.Series(zones))
    >>> [may_be_looked_up(KeyCells(pd.Series(cells)), key) for cells in (zones[:700], ages)]
    [True, False]
    """
    keys = len(key.coded[1])
    used = len(cells.coded[1]) / max(keys, 1)
    both = cells.numbers is not None and key.numbers is not None
    return both and keys >= MANY_KEYS and used >= MOSTLY_USED and cells.share_in(key) == 1
