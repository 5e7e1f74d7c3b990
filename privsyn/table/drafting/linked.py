"""Draft a schema of several tables for a person to review, or count what does not fit one. Not private."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from textwrap import indent
from typing import Any

import numpy as np
import pandas as pd

from privsyn.errors import InputError, about, plural
from privsyn.marginals.domain import Ints
from privsyn.table.database.database import Database
from privsyn.table.database.linked_table import LinkedTable
from privsyn.table.database.lookups import with_lookups
from privsyn.table.database.opened import named_tables, open_tables
from privsyn.table.discovery.broken_constraints import NO_ORDER, NO_PARENT, SHARED_KEY, Misfit
from privsyn.table.drafting.candidates import Proposal
from privsyn.table.drafting.computed_relations import computed_with_above
from privsyn.table.drafting.cross_table_relations import (
    DependentColumns,
    copies_from_above,
    orders_with_above,
    sums_of_rows,
)
from privsyn.table.drafting.draft import check_schema, draft_of_rows
from privsyn.table.drafting.drafted_table import DraftedTable
from privsyn.table.drafting.keys import KeyedTable, with_pairs
from privsyn.table.drafting.layout import Layout, lay_out
from privsyn.table.drafting.life_rules import rules_of_lives
from privsyn.table.drafting.review import MARKS_READ, READ, Draft, review, wrapped
from privsyn.table.io.csv_table import PLAIN
from privsyn.table.io.formats import CSV, SEPARATOR, DeclaredTable, Location
from privsyn.table.io.identifiers import NOBODY, codes_of
from privsyn.table.io.read_in_memory import LoadedTable, read_in_memory
from privsyn.table.io.source import RawTable
from privsyn.table.kinds.csv_format import CsvFormat
from privsyn.table.kinds.keys import Key, columns_of, key_in_words, plain_key
from privsyn.table.schema.columns import Categorical, Column, Identifier, Text
from privsyn.table.schema.schema import Schema
from privsyn.table.schema.yaml_file import dump, to_yaml

LINKED = """\
# Keys, links and orders are those that the database declares; others were READ from the rows. Check them all:
# each row of the table without a parent is a person, who is protected with all rows that belong to it.
# A line that begins with #children, #derive, #lookups, #- or #NAME: {public: ...} is a proposal. Without
# its # it holds. Those under constraints are rules. Every row keeps them, unless it says how many break them.
# The rows beside each could break it. A column that lasts seldom changes, and may.
"""

Remark = tuple[str, str, str]
"""A table, one of its columns or "", and what is remarked on it."""


def of_parent(drafted: Mapping[str, DraftedTable]) -> Iterator[Remark]:
    """Yield the columns that never differ among the rows of one parent."""
    for name, table in drafted.items():
        for column in table.belonging_to_parent():
            always = f"write constant: [{column}] below link. Else synthetic rows may differ."
            same = f"READ: never differs among the rows of one row of {table.parent}."
            yield name, column, f"{same} If that is always so, {always}"


REMARKS: list[Callable[[Mapping[str, DraftedTable]], Iterator[Remark]]] = [of_parent]
"""What is remarked on in the tables of a draft."""


def draft_tables(
    locations: Mapping[str, tuple[str, DeclaredTable]],
    *,
    stem: str | None = None,
    folder: Path | None = None,
    csv: CsvFormat = PLAIN,
    persons: str | None = None,
    public: Collection[str] = (),
    also: Collection[str] = (),
) -> tuple[str, dict[str, str]]:
    """Return the text of a draft of several tables, and the text of each file of a look-up by its name.

    It reads the rows, so it is not private before a person reviews it. A table without rows is named.

    Parameters
    ----------
    locations, csv, persons, public, also
        As for `LinkedDraft.read`.
    stem : str, optional
        How the names of files of look-ups begin; without one, none is written.
    folder : Path, optional
        Where the draft will be: paths in it begin there. Default: the working folder.
    """
    return LinkedDraft.read(locations, csv, persons, public, also).text(stem, folder or Path())


@dataclass(frozen=True)
class ProposedTable:
    """What a person reviews of one private table of a draft. NOT PRIVATE: for the owner's eyes only.

    Parameters
    ----------
    name : str
    links : mapping
        Key, parent, link and order, as in a schema file.
    children : str
        How many rows a row of the parent may have, as ``1..4``. "" if the rows show nothing.
    remarks : tuple of str
        On its rows, its key, its link and its order.
    summaries : mapping of a name to an expression
        Of rows below, which it could have.
    lookups : mapping of a column to a table
        That could be public.
    draft : Draft, optional
        Its columns and constraints. None if it has keys alone.
    """

    name: str
    links: Mapping[str, Any]
    children: str
    remarks: tuple[str, ...]
    summaries: Mapping[str, str]
    lookups: Mapping[str, str]
    draft: Draft | None

    def text(self, csv: CsvFormat, stem: str | None) -> tuple[str, dict[str, str]]:
        """Return the lines of a schema file, and the text of each file of a look-up by its name."""
        lines = "".join(map(_comment, self.remarks))
        for name, value in self.links.items():
            lines += f"{name}: {dump(value, flow=None)}".removesuffix("...\n")
        if self.children:
            lines += "# READ: the rows of each row above. Remove the # if that is so of all that may come:\n"
            lines += f"#children: {self.children}\n"
        if self.summaries:
            lines += (
                "# What analysts join for is kept best as a summary, which costs budget as a column does:\n"
            )
            lines += _behind_sign("derive", self.summaries)
        if self.lookups:
            lines += "# With the public tables at the end:\n" + _behind_sign("lookups", self.lookups)
        body, files = "columns: {}\n", dict[str, str]()
        if csv != PLAIN:
            body = to_yaml(Schema({}, csv=csv)) + body
        if self.draft is not None:
            body, files = self.draft.text("constraints:\n", stem)
        title = dump({self.name: None}, flow=False).replace(" null", "")
        return title + indent(lines + body, "  "), files


@dataclass(frozen=True)
class ProposedLookup:
    """A table of a draft that could be public, if everybody may know it and no row of it is a person.

    Parameters
    ----------
    name, location : str
    key : str or tuple of str
    by : list of str
        The columns that lead to it, as ``visits.drug``.
    is_declared : bool
        Whether somebody said that it is public.
    lookups : mapping of a column to a table
        To which other public tables its columns lead.
    """

    name: str
    location: str
    key: Key
    by: list[str]
    is_declared: bool = False
    lookups: Mapping[str, str] = field(default_factory=dict)

    def text(self, folder: Path) -> str:
        """Return the lines of a schema file; the path in them begins at `folder`."""
        plain = plain_public(self.location, self.key, folder)
        if self.is_declared:
            plain |= {"lookups": dict(self.lookups)} if self.lookups else {}
            line = _behind_sign(self.name, plain).removeprefix("#")
            return _comment(f"{self.name} is public, as --public says: it is published as it is.") + line
        note = (
            f"READ: {', '.join(self.by)} lead{'s' if len(self.by) == 1 else ''} to {self.name}. If everybody"
            " may know that table and no row of it is a person, remove the # below, and that of each line of"
            " lookups. It is published as it is."
        )
        return _comment(note) + _behind_sign(self.name, plain)


def plain_public(location: str, key: Key, folder: Path) -> dict[str, Any]:
    """Return what a schema file in `folder` declares of a public table.

    >>> plain_public("shop/drugs.csv", "drug", Path("shop"))
    {'public': 'drugs.csv', 'key': 'drug'}
    """
    where = Location.of(location)
    file = Path(os.path.relpath(where.file, folder))
    return {
        "public": f"{file}{SEPARATOR}{where.inside}" if where.inside else str(file),
        "key": plain_key(key),
    }


@dataclass(frozen=True, eq=False)
class LinkedDraft:
    """The tables of a draft, and how they hang together. NOT PRIVATE: for the owner's eyes only.

    Parameters
    ----------
    locations : mapping of a table to where it is, and what a database says of it
    csv : CsvFormat
    keyed : mapping of a table to a KeyedTable
    layout : Layout
    tables : mapping of a private table to a DraftedTable
        Each after its parent.
    """

    locations: Mapping[str, tuple[str, DeclaredTable]]
    csv: CsvFormat
    keyed: Mapping[str, KeyedTable]
    layout: Layout
    tables: Mapping[str, DraftedTable]

    @cached_property
    def dependent(self) -> DependentColumns:
        """The columns that follow from another table: copies, sums of its rows, and computed ones."""
        copies = copies_from_above(self.tables, self.keyed, self.layout)
        sums = sums_of_rows(self.tables, copies)
        dependent = {name: {**sums[name], **copies_of_table} for name, copies_of_table in copies.items()}
        computed = computed_with_above(self.tables, dependent)
        return {name: {**computed[name], **columns} for name, columns in dependent.items()}

    @cached_property
    def ordered(self) -> Mapping[str, list[tuple[str, Proposal]]]:
        """The dates of each table on one side of a date above, its rules of lives, and the rules."""
        ordered = orders_with_above(self.tables, self.dependent)
        return {
            name: [*ordered[name], *rules_of_lives(table, self.keyed[name], self.dependent[name])]
            for name, table in self.tables.items()
        }

    @classmethod
    def read(
        cls,
        locations: Mapping[str, tuple[str, DeclaredTable]],
        csv: CsvFormat = PLAIN,
        persons: str | None = None,
        public: Collection[str] = (),
        also: Collection[str] = (),
    ) -> LinkedDraft:
        """Read all tables, and draft the private ones; one without rows is outside.

        Parameters
        ----------
        locations : mapping of a table to where it is, and what a database says of it
            As `every_table` returns it.
        csv : CsvFormat
            How CSV files are written.
        persons : str, optional
            The table whose rows are the persons. Default: names and links say which.
        public : collection of str
            The tables that everybody may know. Default: none; some are proposed.
        also : collection of str
            Further tables whose rows are persons. Default: none; the columns that lead there are left out.
        """
        options = [("--persons", persons), *(("--public", name) for name in public)]
        for option, name in (*options, *(("--also", name) for name in also)):
            if name is not None and name not in locations:
                raise InputError(f"{option} {name!r} is none of the tables {', '.join(locations)}")
        if persons in public:
            raise InputError(f"--public {persons!r}: its rows are the persons, so it is not public")
        if twice := sorted({*also} & {persons, *public}):
            raise InputError(f"--also {twice[0]!r}: it is named by --persons or --public too")
        form = None if csv == PLAIN else Schema({}, csv=csv)
        loaded: dict[str, LoadedTable] = {}
        for name, (location, _) in locations.items():
            with about(f"table {name!r}"):
                loaded[name] = read_in_memory(location, form)
        empty = [name for name, table in loaded.items() if not len(table.frame)]
        if len(empty) == len(locations) or persons in empty:
            raise InputError(f"{persons or 'no table'}: no rows to draft from")
        keyed = with_pairs(
            {
                name: KeyedTable(name, loaded[name].frame, declared, Location.of(location).format is CSV)
                for name, (location, declared) in locations.items()
                if name not in empty
            }
        )
        named = ([name for name in names if name in keyed] for names in (public, also))
        layout, drafted = lay_out(keyed, persons, *named), {}
        without_rows = dict.fromkeys(empty, "READ: it has no rows. Draft again once it has some.")
        layout = replace(layout, outside={**layout.outside, **without_rows})
        for name in layout.names:
            with about(f"table {name!r}"):
                drafted[name] = _draft_table(name, locations[name][0], loaded[name], layout, keyed, csv)
        return cls(locations, csv, keyed, layout, drafted)

    @cached_property
    def private(self) -> dict[str, ProposedTable]:
        """What is proposed of each private table, each after its parent."""
        remarks = [remark_on_column for remark in REMARKS for remark_on_column in remark(self.tables)]
        return {name: self._proposed(name, remarks) for name in self.layout.names}

    @property
    def public(self) -> list[ProposedLookup]:
        """The tables that could be public."""
        links = self.layout.lookups.items()
        return [
            ProposedLookup(
                name,
                self.locations[name][0],
                key,
                sorted(f"{table}.{column}" for (table, column), link in links if link.parent == name),
                name in self.layout.declared_public,
                self.layout.lookups_of_public(name),
            )
            for name, key in self.layout.public.items()
        ]

    def text(self, stem: str | None, folder: Path) -> tuple[str, dict[str, str]]:
        """Return the draft as a schema file, and the text of each file of a look-up; see `draft_tables`."""
        sections, files = [], dict[str, str]()
        for name, proposed in self.private.items():
            section, look_ups = proposed.text(self.csv, None if stem is None else f"{stem}.{name}")
            sections.append(section)
            files |= look_ups
        sections += [lookup.text(folder) for lookup in self.public]
        sections += [
            _comment(f"NOT DRAFTED: the table {name}. {why} `synth` makes no such table.")
            for name, why in self.layout.outside.items()
        ]
        marks = MARKS_READ if any(table.schema.missing for table in self.tables.values()) else ""
        return READ + LINKED + marks + "tables:\n" + indent("".join(sections), "  "), files

    def _proposed(self, name: str, remarks: list[Remark]) -> ProposedTable:
        """Return what is proposed of a private table."""
        table, dependent = self.tables[name], self.dependent[name]
        remarks_of = self._remarks_on_columns(
            table, [remark for remark in remarks if remark[1] not in dependent]
        )
        summaries: dict[str, str] = {}
        for child in self.tables.values():
            if child.parent == name:
                summaries |= child.summaries(self.dependent[child.name])
        lookups = {
            column: lookup
            for column, lookup in self.layout.lookups_of(name).items()
            if column != self.layout.public[lookup]
        }
        links: dict[str, Any] = dict(table.links)
        to_declared = {column for column, at in lookups.items() if at in self.layout.declared_public}
        if to_declared:
            links["lookups"] = {column: lookups.pop(column) for column in sorted(to_declared)}
        remarks_on_table = (*self._remarks_on_table(table), *remarks_of.pop("", ()))
        draft = None
        if table.schema.columns:
            draft = review(table.schema, table.frame, table.unread, dependent, self.ordered[name])
            keys, notes = self.layout.second_keys(name), dict[str, tuple[str, ...]]()
            for column, lines in draft.notes.items():  # keys were found, not persons
                shown = (note for note in lines if column not in keys and "--unit" not in note)
                notes[column] = (*shown, *remarks_of.get(column, ()))
            draft = replace(draft, notes=notes)
        children = "" if table.parent is None else table.children(len(self.keyed[table.parent].frame))
        return ProposedTable(name, links, children, remarks_on_table, summaries, lookups, draft)

    def _remarks_on_columns(self, table: DraftedTable, remarks: list[Remark]) -> dict[str, list[str]]:
        """Return the remarks on the columns of a table, those on the table itself by the name ""."""
        comments = self.locations[table.name][1].comments
        texts = {column: [f"In the database: {text}"] for column, text in comments.items()}
        for column, kind in table.schema.columns.items():
            column_of_table, mine = (table.name, column), texts.setdefault(column, [])
            if why := self.layout.left_out.get(column_of_table):
                mine.append(why)
            elif link := self.layout.lookups.get(column_of_table):
                target = (
                    "" if link.close or link.declared else " All its numbers are keys there. Or numerical?"
                )
                strays = f" {plural(link.strays, 'cell')} are no such key." if link.strays else ""
                values = (
                    ""
                    if link.parent in self.layout.declared_public
                    else " Common values are found under privacy."
                )
                mine.append(f"READ: leads to {link.parent}.{target}{strays}{values}")
            elif isinstance(kind, Identifier):
                mine.append("READ: nearly all cells differ. New ones are generated.")
            elif column in table.numbering:
                mine.append("READ: numbers the rows of one parent, as their order does: it is left out.")
        for remark_table, column, text in remarks:
            if remark_table == table.name:
                texts.setdefault(column, []).append(text)
        return texts

    def _remarks_on_table(self, table: DraftedTable) -> Iterator[str]:
        """Yield the remarks on a table: its rows, its key, its link and its order."""
        keyed, key = self.keyed[table.name], self.layout.keys[table.name]
        if table.parent is None:
            rows = plural(len(keyed.frame), "row")
            yield f"READ: {rows}, each a person, who is protected with all rows that belong to it."
            if table.name in self.layout.also:
                yield (
                    "Persons of their own, as --also says: the promise is for them too. They share the budget"
                    f" with {self.layout.root}. Columns that lead here are dealt at random."
                )
        else:
            how = "declared" if self.layout.parents[table.name].declared else "found"
            yield f"READ: {table.counts(len(self.keyed[table.parent].frame))}. The link was {how}."
        if key is not None and (repeated := len(keyed.frame) - len(keyed.cells_of(key).coded[1])):
            rows = plural(repeated, "row")
            yield f"READ: {rows} without a {key_in_words(key)} of its own: --check says what becomes of it."
        yield from self.layout.remarks.get(table.name, ())
        if key is not None and not isinstance(key, str):
            together, how = " and ".join(key), "are the key" if keyed.declared.key else "differ in every row"
            remark = "" if "key" in table.links else " Synthetic rows may repeat such a pair."
            yield f"READ: LINK TABLE, {together} together {how}.{remark}"
        if table.remark:
            yield table.remark


def _draft_table(
    name: str,
    location: str,
    loaded: LoadedTable,
    layout: Layout,
    tables: Mapping[str, KeyedTable],
    csv: CsvFormat,
) -> DraftedTable:
    """Return the draft of a private table: its links, its columns of data, and their order."""
    link, key = layout.parents.get(name), layout.keys[name]
    kinds_of_keys: dict[str, Column] = {column: Text() for table, column in layout.left_out if table == name}
    kinds_of_keys |= {column: Categorical() for column in layout.lookups_of(name)}
    linked = () if link is None else columns_of(link.column)
    no_data = (*(columns_of(key) if isinstance(key, str) else ()), *linked)
    dealt = {column: target for (table, column), target in layout.dealt.items() if table == name}
    frame = loaded.frame.drop(columns=list(dict.fromkeys((*no_data, *dealt))))
    schema, frame, unread = draft_of_rows(location, loaded, frame, csv, kinds_of_keys)
    links: dict[str, Any] = {} if key is None else {"key": plain_key(key)}
    parents = np.full(len(frame), -1)
    if link is not None:
        links |= {"parent": link.parent, "link": plain_key(link.column)}
        parents = tables[name].cells_of(link.column).places_in(tables[link.parent].cells_of(link.key))
    links |= {"dealt": dealt} if dealt else {}
    drafted = DraftedTable(name, schema, frame, unread, links, parents).in_order(kinds_of_keys)
    if key is not None and not isinstance(key, str):
        drafted = _with_key(drafted, key, linked)
    return drafted if drafted.schema.columns else replace(drafted, schema=Schema({}))


def _with_key(table: DraftedTable, key: tuple[str, ...], link: tuple[str, ...]) -> DraftedTable:
    """Return a table with a key of several columns, or without one if no synthetic row could have it.

    Of its columns that are no link, those that are data stay so, and at most one is no data: it numbers rows.
    """
    rest = [column for column in key if column not in link]
    new = [column for column in rest if column not in table.schema.coded]
    columns, frame = dict(table.schema.columns), table.frame
    identifiers = [column for column in rest if isinstance(columns.get(column), Identifier)]
    if not new and len(identifiers) == 1:
        new = identifiers
    numbers = [column for column in new if column in identifiers or column not in columns]
    covers = {*link} <= {*key} and bool(link)
    if {*rest} & {*table.links.get("dealt", ())}:
        numbers = []
    if numbers != new or len(new) > 1 or not (new or covers):
        return replace(table, links={name: its for name, its in table.links.items() if name != "key"})
    for column in new:
        columns.pop(column, None)
        frame = frame.drop(columns=[column], errors="ignore")
    return replace(table, schema=replace(table.schema, columns=columns), frame=frame)


def _comment(remark: str) -> str:
    return "".join(f"# {line}\n" for line in wrapped(remark))


def _behind_sign(name: str, value: object) -> str:
    """Return plain data in one line, which stays one whatever its length, behind a #."""
    return f"#{name}: {' '.join(dump(value, flow=True).split())}\n"


def check_tables(data: str | os.PathLike[str], database: Database) -> list[str]:
    """Return what does not fit the schema of several tables: rows without a parent, repeated keys, and cells.

    NOT PRIVATE: each line counts private rows, and is for the owner only. The lines about cells are those of
    `check_schema`. A line about a table of which no row has a parent or an order, or about keys that two
    persons share, is a `Misfit`.
    """
    database, locations = with_lookups(database), named_tables(database, data)
    opened = open_tables(database, locations, lambda persons: np.argsort(persons, kind="stable"))
    lines: list[str] = []
    for name in database.names:
        table = database.tables[name]
        table_lines = [*_of_keys(name, opened[name], database), *_of_parents(name, opened, database)]
        schema = None if table.schema is None else table.schema.without(table.copied)
        if schema is not None and schema.coded:
            keys = tuple(key for key in (*table.keys, table.only_order, *table.copied) if key is not None)
            with about(f"table {name!r}"):
                table_lines += check_schema(locations[name], schema, no_data=keys)
        for line in table_lines:
            named = f"table {name!r}: {line}"
            lines.append(Misfit(named, line.advice) if isinstance(line, Misfit) else named)
    return lines


def _of_keys(name: str, linked: LinkedTable, database: Database) -> Iterator[str]:
    """Yield how many rows there are, and how many have no key of their own."""
    table = database.tables[name]
    yield plural(len(linked.persons), "row")
    columns, words = table.key_columns, key_in_words(table.key)
    if not columns or not {*columns} <= {*linked.source.head}:
        return
    names = {*columns} if database.children(name) else {*columns} - {*table.data_of_key}
    codes = _codes_of_key(linked.source, columns, names)
    missing = int((codes == NOBODY).sum())
    if repeated := len(codes) - missing - len(np.unique(codes[codes != NOBODY])):
        fate = "of each key one row is kept" if table.parent is None else "rows below belong to one of them"
        yield f"the key {words!r} of {plural(repeated, 'row')} is that of another row: {fate}"
    # If one of two persons with the same key leaves, the rows below are the other's.
    valid = (codes != NOBODY) & (linked.persons != NOBODY)
    pairs = np.unique(np.stack([codes[valid], linked.persons[valid]]), axis=1)
    if (times := int((np.bincount(pairs[0]) > 1).sum())) and database.children(name):
        line = f"the key {words!r} is the same in rows of two persons, {plural(times, 'time')}:"
        yield Misfit(f"{line} the promise does not hold for them", SHARED_KEY)
    if missing:
        fate = "left out" if table.parent is None else "without rows below them"
        yield f"{plural(missing, 'row')} without the key {words!r}: {fate}"


def _codes_of_key(source: RawTable, columns: Sequence[str], identifiers: Collection[str]) -> Ints:
    """Return the same code for rows with the same key, `NOBODY` where a cell of it is missing.

    Columns that are no `identifiers` are compared as data.
    """
    codes = [
        codes_of(np.concatenate(source.fingerprints(column)))
        if column in identifiers
        else pd.factorize(source.column(column))[0]
        for column in columns
    ]
    rows = np.stack(codes, axis=1)
    both = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)
    return np.where((rows < 0).any(axis=1), NOBODY, both)


def _of_parents(name: str, opened: Mapping[str, LinkedTable], database: Database) -> Iterator[str]:
    """Yield how many rows have no parent, how many rows a parent has, and how many have no order."""
    table, linked = database.tables[name], opened[name]
    if table.parent is None:
        return
    missing = codes_of(np.concatenate(linked.prints)) == NOBODY
    orphans = (linked.parents < 0) & ~missing
    rows, above = len(linked.parents), opened[table.parent]
    for text, where in (
        (f"name no row of {table.parent!r} in {key_in_words(table.link)!r}", orphans),
        (f"have no {key_in_words(table.link)!r}", missing),
        (
            f"belong to a row of {table.parent!r} that is left out",
            (linked.persons == NOBODY) & (linked.parents >= 0),
        ),
    ):
        if count := int(where.sum()):
            line = f"{count:,} of {plural(rows, 'row')} {text}: they are left out"
            yield Misfit(line, NO_PARENT) if count == rows else line
    counts = np.bincount(linked.parents[linked.parents >= 0], minlength=len(above.parents))
    if len(counts):
        yield (
            f"rows per row of {table.parent!r}: mean {counts.mean():.2f}, median {np.median(counts):g},"
            f" maximum {counts.max():,}; {int((counts == 0).sum()):,} have none"
        )
    if linked.keys is not None and (unknown := int(np.isnan(linked.keys).sum())):
        if unknown < rows:
            yield f"{plural(unknown, 'row')} without the order {table.order!r}: they come last"
        else:
            line = f"no row has a number or time in its order {table.order!r}: rows come in any order"
            yield Misfit(line, NO_ORDER)
