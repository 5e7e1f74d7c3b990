"""The layout of the tables of a codebook: whose rows are the persons, and which tables are below them.

It follows from keys and names, which are public. A person checks it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from privsyn.errors import InputError, did_you_mean, safe_repr
from privsyn.table.codebooks.codebook import Codebook, CodebookColumn, CodebookTable, ForeignKey
from privsyn.table.codebooks.declare import LEFT_OPEN, Declared
from privsyn.table.kinds.keys import key_in_words, plain_key
from privsyn.table.schema.columns import Categorical, Coded
from privsyn.table.schema.subjects import personality_by_names


@dataclass(frozen=True)
class PlacedTable:
    """One table of a codebook, and how it is linked to others.

    Parameters
    ----------
    table : CodebookTable
    links : mapping
        Key, parent, link, lookups and dealt, as in a schema file.
    no_data : frozenset of str
        The columns of keys and links, which the schema does not have.
    columns : mapping of a column to a Declared
        Those with keys of tables that are not here: their common values are found.
    rules : tuple of str
        Copies from tables above.
    remarks : tuple of str
    """

    table: CodebookTable
    links: Mapping[str, Any]
    no_data: frozenset[str] = frozenset()
    columns: Mapping[str, Declared] = field(default_factory=dict)
    rules: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class CodebookLayout:
    """Which tables of a codebook are private, and below which parent each one is.

    Parameters
    ----------
    codebook : Codebook
    persons : str
        The table whose rows are the persons.
    also : tuple of str
        Further tables whose rows are persons.
    public : tuple of str
        The tables that everybody may know.
    chosen : bool
        Whether names and keys decided on the persons.
    parents : mapping of a table to the link to its parent
    """

    codebook: Codebook
    persons: str
    also: tuple[str, ...] = ()
    public: tuple[str, ...] = ()
    chosen: bool = True
    parents: Mapping[str, ForeignKey] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        codebook: Codebook,
        persons: str | None = None,
        public: Collection[str] = (),
        also: Collection[str] = (),
    ) -> CodebookLayout:
        """Return the layout of several tables.

        Raises
        ------
        InputError
            If an option names no table, or no key links two tables.
        """
        named = [("--persons", persons), *(("--public", name) for name in public)]
        for option, name in (*named, *(("--also", name) for name in also)):
            if name is not None and name not in codebook.tables:
                meant = did_you_mean(name, codebook.tables)
                raise InputError(f"{option}: the codebook has no table {safe_repr(name)}{meant}")
        candidates = [name for name in codebook.tables if name not in (*public, *also)]
        if persons is not None and persons not in candidates:
            raise InputError(f"--persons {persons!r}: it is named by --public or --also too")
        linked = {name: _links_of(codebook, codebook.tables[name], candidates) for name in candidates}
        root = persons or _likeliest(codebook, linked)
        return cls(
            codebook, root, tuple(also), tuple(public), persons is None, _parents(linked, (root, *also))
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The private tables, each after its parent."""
        return (self.persons, *self.also, *self.parents)

    def key_of(self, name: str) -> tuple[str, ...]:
        """Return the key of a table: the columns that links of tables below name, else its primary key."""
        keys = [link.key for link in self.parents.values() if link.table == name and link.key]
        return keys[0] if keys else self.codebook.tables[name].key

    def depth(self, name: str) -> int:
        """Return the number of tables above a table."""
        return 1 + self.depth(self.parents[name].table) if name in self.parents else 0

    def placed(self, name: str, columns: Mapping[str, Declared]) -> PlacedTable:
        """Return how a private table is linked, given its columns as declared."""
        table, links, remarks, rules = self.codebook.tables[name], dict[str, Any](), list[str](), list[str]()
        codes: dict[str, Declared] = {}
        parent, dealt, lookups = self.parents.get(name), dict[str, str](), dict[str, str]()
        link = () if parent is None else parent.columns
        for foreign in table.links:
            if foreign is parent:
                continue
            words = key_in_words(foreign.columns)
            if foreign.table in self.public and len(foreign.columns) == 1:
                lookups[foreign.columns[0]] = foreign.table
            elif self._is_above(name, foreign) and parent is not None:
                above = self.parents[parent.table]
                pairs = zip(foreign.columns, above.columns, strict=True)
                rules += [f"{column} == {parent.table}.{key}" for column, key in pairs if column not in link]
            elif foreign.table in self.names and len(foreign.columns) == 1 == len(self.key_of(foreign.table)):
                dealt[foreign.columns[0]] = foreign.table
                remarks.append(f"{words} leads to {foreign.table}: it gets the key of a random row there.")
            else:
                for column in set(foreign.columns).difference(link):
                    codes[column] = self._code_of(foreign, table.by_name[column], columns[column])
        key = self._own_key(name, link, columns, {*dealt, *lookups})
        if table.key and not key and set(table.key) - set(link):
            words = key_in_words(tuple(table.key))
            remarks.append(f"The key {words} is not declared: synthetic rows may share one.")
        if parent is not None and len(table.links) > 1:
            remarks.append(f"CHOSEN: its rows belong to {parent.table}, by {key_in_words(link)}.")
        links |= {"key": plain_key(key)} if key else {}
        links |= {"parent": parent.table, "link": plain_key(link)} if parent is not None else {}
        named = {column: target for column, target in lookups.items() if (column,) != self.key_of(target)}
        links |= {"lookups": named} if named else {}
        links |= {"dealt": dealt} if dealt else {}
        data_of_key = {
            column for column in key if len(key) > 1 and column in columns and _is_data(columns[column])
        }
        copied = {rule.partition(" == ")[0] for rule in rules}
        no_data = {*key, *link, *dealt, *lookups, *copied} - (data_of_key - {*link, *dealt})
        return PlacedTable(table, links, frozenset(no_data), codes, tuple(rules), tuple(remarks))

    def _code_of(self, link: ForeignKey, described: CodebookColumn, declared: Declared) -> Declared:
        """Return a column of keys of a table that is not here: codes, not numbers."""
        if declared.column.is_public and isinstance(declared.column, Categorical):
            return declared
        remark = f"Leads to {link.table}."
        if link.table in self.codebook.tables and len(link.columns) == 1:
            remark += f" If everybody may know that table: --public {link.table}."
        notes = (
            *(note for note in declared.notes if not note.startswith(LEFT_OPEN)),
            f"{LEFT_OPEN}: its codes are found under privacy. {remark}",
        )
        return Declared(Categorical(nullable=not described.required, missing=described.missing), notes)

    def _is_above(self, name: str, link: ForeignKey) -> bool:
        """Return whether a link leads to the table above the parent, as the link of the parent does."""
        parent = self.parents.get(name)
        above = None if parent is None else self.parents.get(parent.table)
        return above is not None and above.table == link.table and len(above.columns) == len(link.columns)

    def _own_key(
        self, name: str, link: tuple[str, ...], columns: Mapping[str, Declared], elsewhere: Collection[str]
    ) -> tuple[str, ...]:
        """Return the key; none if no table below needs it, and synthetic rows could not have it."""
        key = self.key_of(name)
        if len(key) <= 1 or self.is_parent(name):
            return key
        rest = [column for column in key if column not in link]
        new = [column for column in rest if column not in columns or not _is_data(columns[column])]
        fits = len(new) <= 1 and bool(new or {*link} <= {*key}) and not {*rest} & {*elsewhere}
        return key if fits else ()

    def is_parent(self, name: str) -> bool:
        """Return whether rows of another table belong to rows of this one."""
        return any(link.table == name for link in self.parents.values())

    @property
    def outside(self) -> dict[str, str]:
        """The tables that are neither private nor public here, and why."""
        named = (*self.names, *self.public)
        why = f"No key leads from it to {self.persons}."
        return {name: why for name in self.codebook.tables if name not in named}


def _is_data(declared: Declared) -> bool:
    return isinstance(declared.column, Coded) and declared.column.is_public


def _links_of(codebook: Codebook, table: CodebookTable, candidates: Collection[str]) -> list[ForeignKey]:
    """Return the links of a table to the keys of other candidates."""
    links = []
    for link in table.links:
        if link.table in candidates and link.table != table.name:
            key = link.key or codebook.tables[link.table].key
            if len(key) == len(link.columns):
                links.append(link)
    return links


def _likeliest(codebook: Codebook, linked: Mapping[str, list[ForeignKey]]) -> str:
    """Return the table whose rows are most likely the persons: by its name, and how many are below it."""
    below = {name: len(_parents(linked, (name,))) for name in linked}
    tops = [name for name in linked if below[name]]
    if not tops:
        raise InputError(
            f"no key links its tables {', '.join(codebook.tables)}: name one, after ::, as in"
            f" FILE::{next(iter(codebook.tables))}"
        )

    def likely(name: str) -> tuple[int, bool, int]:
        table = codebook.tables[name]
        return (
            personality_by_names(name, [name, *table.key[:1]], table.by_name),
            not linked[name],
            below[name],
        )

    return max(tops, key=likely)


def _parents(linked: Mapping[str, list[ForeignKey]], roots: tuple[str, ...]) -> dict[str, ForeignKey]:
    """Return the parent of each table below the roots, each after it: the lowest to which a link leads."""
    levels = dict.fromkeys(roots, 0)
    parents: dict[str, ForeignKey] = {}
    for _ in linked:  # a table waits for the tables to which it leads, unless all that are left wait
        waiting = [
            name for name in linked if name not in levels and any(k.table in levels for k in linked[name])
        ]
        if not waiting:
            break
        reachable = _below(linked, roots)
        ready = [
            name
            for name in waiting
            if all(k.table in levels or k.table not in reachable for k in linked[name])
        ]
        name = (ready or waiting)[0]
        parents[name] = max(
            (link for link in linked[name] if link.table in levels), key=lambda link: levels[link.table]
        )
        levels[name] = levels[parents[name].table] + 1
    return parents


def _below(linked: Mapping[str, list[ForeignKey]], roots: tuple[str, ...]) -> set[str]:
    """Return the tables from which links lead to the roots, and the roots."""
    reached = set(roots)
    for _ in linked:
        reached |= {name for name, links in linked.items() if any(link.table in reached for link in links)}
    return reached
