"""Draft a schema of several tables for a person to review. Not private."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from textwrap import indent
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from privsyn.errors import InputError, about, plural
from privsyn.table.drafting.candidates import Proposal
from privsyn.table.drafting.computed_relations import computed_with_above
from privsyn.table.drafting.constant_sums import constant_sums
from privsyn.table.drafting.cross_table_relations import (
    DependentColumns,
    copies_from_above,
    orders_with_above,
    sums_of_rows,
)
from privsyn.table.drafting.draft import draft_of_rows
from privsyn.table.drafting.drafted_table import DraftedTable
from privsyn.table.drafting.keys import KeyedTable, with_pairs
from privsyn.table.drafting.layout import Layout, lay_out
from privsyn.table.drafting.life_rules import rules_of_lives
from privsyn.table.drafting.personality import personality
from privsyn.table.drafting.persons_without_table import (
    GATHERED,
    UNLISTED,
    columns_of_persons,
    persons_of_column,
)
from privsyn.table.drafting.proposed_tables import ProposedLookup, ProposedTable
from privsyn.table.drafting.review import MARKS_READ, READ, review
from privsyn.table.drafting.roles import NO_ROLES, Roles
from privsyn.table.drafting.with_codebook import DescribedTable
from privsyn.table.io.csv_table import PLAIN
from privsyn.table.io.formats import CSV, DeclaredTable, Location
from privsyn.table.io.read_in_memory import LoadedTable, read_in_memory
from privsyn.table.kinds.csv_format import CsvFormat
from privsyn.table.kinds.keys import columns_of, key_in_words, plain_key
from privsyn.table.schema.about import TO_FILL
from privsyn.table.schema.columns import Categorical, Column, Identifier, Numerical, Text
from privsyn.table.schema.schema import Schema
from privsyn.table.schema.yaml_comments import comment

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
            advice = f"write constant: [{column}] below link, and no rule that names it"
            same = f"READ: never differs among the rows of one row of {table.parent}."
            yield name, column, f"{same} If that is always so, {advice}. Else synthetic rows may differ."


REMARKS: list[Callable[[Mapping[str, DraftedTable]], Iterator[Remark]]] = [of_parent]
"""What is remarked on in the tables of a draft."""


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
    codebook : mapping of a table to what a codebook says of it
    unlisted : frozenset of str
        The columns that name persons who have no table, as ``ratings.user_id``, and are no root.
    """

    locations: Mapping[str, tuple[str, DeclaredTable]]
    csv: CsvFormat
    keyed: Mapping[str, KeyedTable]
    layout: Layout
    tables: Mapping[str, DraftedTable]
    codebook: Mapping[str, DescribedTable] = field(default_factory=dict)
    unlisted: frozenset[str] = frozenset()

    @cached_property
    def dependent(self) -> DependentColumns:
        """The columns that follow from another table: copies, sums of its rows, and computed ones.

        So do those of sums that are the same in all rows of one parent.
        """
        copies = copies_from_above(self.tables, self.keyed, self.layout)
        sums = sums_of_rows(self.tables, copies)
        dependent = {name: {**sums[name], **copies_of_table} for name, copies_of_table in copies.items()}
        computed = computed_with_above(self.tables, dependent)
        dependent = {name: {**computed[name], **columns} for name, columns in dependent.items()}
        return {
            name: {**constant_sums(self.tables[name], columns), **columns}
            for name, columns in dependent.items()
        }

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
        roles: Roles = NO_ROLES,
        codebook: Mapping[str, DescribedTable] = MappingProxyType({}),
        *,
        only_files: bool = False,
    ) -> LinkedDraft:
        """Read all tables, and draft the private ones; one without rows is outside.

        Parameters
        ----------
        locations : mapping of a table to where it is, and what a database says of it
            As `every_table` returns it.
        csv : CsvFormat
            How CSV files are written.
        roles : Roles
        codebook : mapping of a table to what a codebook says of it
        only_files : bool
            Whether each table is one of `locations`. Then persons who have no table are asked about at their
            column. Default: they get a table of keys alone, if nothing else is as likely to be the persons.
        """
        roles.check(locations)
        persons, public, also = roles
        form = None if csv == PLAIN else Schema({}, csv=csv)
        loaded: dict[str, LoadedTable] = {}
        for name, (location, _) in locations.items():
            with about(f"table {name!r}"):
                loaded[name] = read_in_memory(location, form)
        empty = [name for name, table in loaded.items() if not len(table.frame)]
        if len(empty) == len(locations) or roles.table_of_persons in empty:
            raise InputError(f"{persons or 'no table'}: no rows to draft from")
        keyed = {
            name: KeyedTable(
                name, _frame_of_keys(loaded[name]), declared, Location.of(location).format is CSV
            )
            for name, (location, declared) in locations.items()
            if name not in empty
        }
        unlisted = {at: rank for at, rank in columns_of_persons(keyed).items() if at[0] not in public}
        column = persons
        written = [(at, rank) for at, rank in unlisted.items() if keyed[at[0]].cells[at[1]].as_written]
        if persons is None and written and not only_files:
            likeliest, rank = written[0]
            rank_of_tables = max((personality(table) for table in keyed.values() if table.keys), default=0)
            column = ".".join(likeliest) if rank > rank_of_tables else None
        if column is not None and column not in keyed:
            of_column = persons_of_column(keyed, column, public, empty)
            persons, keyed = persons and of_column.name, {**keyed, of_column.name: of_column}
        keyed = with_pairs(keyed)
        named = ([name for name in names if name in keyed] for names in (public, also))
        layout, drafted = lay_out(keyed, Roles(persons, *named)), {}
        without_rows = dict.fromkeys(empty, "READ: it has no rows. Draft again once it has some.")
        layout = replace(layout, outside={**layout.outside, **without_rows})
        for name in layout.names:
            with about(f"table {name!r}"):
                table = keyed[name]
                if table.gathered:  # the keys of persons who have no table of their own, and no data
                    keys, nowhere = {"key": table.frame.columns[0]}, np.full(len(table.frame), -1)
                    drafted[name] = DraftedTable(name, Schema({}), table.frame.iloc[:, :0], {}, keys, nowhere)
                else:
                    drafted[name] = _draft_table(name, locations[name][0], loaded[name], layout, keyed, csv)
        unlisted_columns = {".".join(column) for column in unlisted}.difference(keyed[layout.root].gathered)
        return cls(locations, csv, keyed, layout, drafted, codebook, frozenset(unlisted_columns))

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

    def text(
        self, stem: str | None = None, folder: Path | None = None, about: str = TO_FILL
    ) -> tuple[str, dict[str, str]]:
        """Return the draft as a schema file, and the text of each file of a look-up by its name.

        Parameters
        ----------
        stem : str, optional
            How the names of files of look-ups begin; without one, none is written.
        folder : Path, optional
            Where the draft will be: paths in it begin there. Default: the working folder.
        about : str
            The lines of `about:`. Default: those to be filled in.
        """
        sections, files = [], dict[str, str]()
        for name, proposed in self.private.items():
            section, look_ups = proposed.text(self.csv, None if stem is None else f"{stem}.{name}")
            sections.append(section)
            files |= look_ups
        sections += [lookup.text(folder or Path()) for lookup in self.public]
        sections += [
            comment(f"NOT DRAFTED: the table {name}. {why} `synth` makes no such table.")
            for name, why in self.layout.outside.items()
        ]
        marks = MARKS_READ if any(table.schema.missing for table in self.tables.values()) else ""
        return READ + LINKED + about + marks + "tables:\n" + indent("".join(sections), "  "), files

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
            draft = review(table.schema, table.frame, table.spelling, dependent, self.ordered[name])
            keys, notes = self.layout.second_keys(name), dict[str, tuple[str, ...]]()
            for column, lines in draft.notes.items():  # keys were found, not persons
                shown = (note for note in lines if column not in keys and "--unit" not in note)
                notes[column] = (*shown, *remarks_of.get(column, ()))
            draft = replace(draft, notes=notes)
            if (described := self.codebook.get(name)) is not None:
                remarks_on_table = (*described.remarks(self.keyed[name].frame.columns), *remarks_on_table)
                draft = described.described(draft)
        children = "" if table.parent is None else table.children(len(self.keyed[table.parent].frame))
        return ProposedTable(name, links, children, remarks_on_table, summaries, lookups, draft)

    def _remarks_on_columns(self, table: DraftedTable, remarks: list[Remark]) -> dict[str, list[str]]:
        """Return the remarks on the columns of a table, those on the table itself by the name ""."""
        comments = self.keyed[table.name].declared.comments
        texts = {column: [f"In the database: {text}"] for column, text in comments.items()}
        for column, kind in table.schema.columns.items():
            column_of_table, mine = (table.name, column), texts.setdefault(column, [])
            if why := self.layout.left_out.get(column_of_table):
                mine.append(why)
            elif link := self.layout.lookups.get(column_of_table):
                is_numeric = self.keyed[table.name].cells[column].numbers is not None
                by_cells = (
                    " All its numbers are keys there. Or numerical?"
                    if is_numeric
                    else " Its cells are keys there."
                )
                target = "" if link.close or link.declared else by_cells
                strays = f" {plural(link.strays, 'cell')} are no such key." if link.strays else ""
                values = (
                    ""
                    if link.parent in self.layout.declared_public
                    else " Common values are found under privacy."
                )
                mine.append(f"READ: leads to {link.parent}.{target}{strays}{values}")
            elif isinstance(kind, Identifier):
                mine.append("READ: nearly all cells differ. New ones are generated.")
            elif f"{table.name}.{column}" in self.unlisted:
                as_written = self.keyed[table.name].cells[column].as_written
                rewrite = "" if as_written else "write its numbers without a point, and "
                mine.append(
                    f"READ: {UNLISTED} Its name says so, and none is protected with all rows of its key."
                    f" Then {rewrite}draft again with --persons {table.name}.{column}."
                )
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
            if keyed.gathered:
                yield (
                    f"READ: {GATHERED}: each of {len(keyed.frame):,} different cells of"
                    f" {', '.join(keyed.gathered)} is one, who is protected with all rows that belong to it."
                    f" No file is needed: these keys are the table {table.name}."
                )
            else:
                extent = (
                    "with all rows that belong to it" if key is not None else "alone: no table leads here"
                )
                yield f"READ: {rows}, each a person, who is protected {extent}."
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
            if unlisted := to_find(table.name, table, self.layout):
                remark += (
                    f" Few values of {key_in_words(unlisted)} are found under privacy. Once a public list or"
                    f" table has them all, add key: [{key_in_words(key)}]."
                )
            yield f"READ: LINK TABLE, {together} together {how}.{remark}"
        if table.remark:
            yield table.remark


def _frame_of_keys(loaded: LoadedTable) -> pd.DataFrame:
    """Return the rows of a table; numbers that a CSV has as 1.0 are reals: as texts they are no key 1."""
    written = {} if loaded.schema is None else loaded.schema.coded
    reals = [name for name, column in written.items() if isinstance(column, Numerical) and column.format]
    return loaded.frame.astype({name: np.float64 for name in reals if name in loaded.frame})


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
    schema, frame, spelling = draft_of_rows(location, loaded, frame, csv, kinds_of_keys)
    links: dict[str, Any] = {} if key is None else {"key": plain_key(key)}
    parents = np.full(len(frame), -1)
    if link is not None:
        links |= {"parent": link.parent, "link": plain_key(link.column)}
        parents = tables[name].cells_of(link.column).places_in(tables[link.parent].cells_of(link.key))
    links |= {"dealt": dealt} if dealt else {}
    drafted = DraftedTable(name, schema, frame, spelling, links, parents).in_order(kinds_of_keys)
    if key is not None and not isinstance(key, str):
        drafted = _with_key(drafted, key, linked, to_find(name, drafted, layout))
    return drafted if drafted.schema.columns else replace(drafted, schema=Schema({}))


def to_find(name: str, table: DraftedTable, layout: Layout) -> tuple[str, ...]:
    """Return the columns of the key of a table whose values are neither listed nor keys of a public table."""
    looked_up = {column for column, at in layout.lookups_of(name).items() if at in layout.declared_public}
    kinds = ((column, table.schema.columns.get(column)) for column in columns_of(layout.keys[name]))
    return tuple(
        column for column, kind in kinds if not (kind is None or kind.is_public or column in looked_up)
    )


def _with_key(
    table: DraftedTable, key: tuple[str, ...], link: tuple[str, ...], unlisted: tuple[str, ...]
) -> DraftedTable:
    """Return a table with a key of several columns, or without one if no synthetic row could have it.

    Of its columns that are no link, those that are data stay so, and at most one is no data: it numbers rows.
    Without a public list of the values of `unlisted` columns few would be found, and rows would share a key.
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
    if numbers != new or len(new) > 1 or not (new or covers) or unlisted:
        return replace(table, links={word: value for word, value in table.links.items() if word != "key"})
    for column in new:
        columns.pop(column, None)
        frame = frame.drop(columns=[column], errors="ignore")
    return replace(table, schema=replace(table.schema, columns=columns), frame=frame)
