"""Draft a schema of several tables for a person to review, or count what does not fit one. Not private."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from textwrap import indent

import numpy as np

from privsyn.errors import InputError, about, plural
from privsyn.marginals.domain import Ints
from privsyn.table.database.declared import Database
from privsyn.table.database.lookups import with_lookups
from privsyn.table.database.opened import LinkedTable, named_tables, open_tables
from privsyn.table.drafting.candidates import Proposal
from privsyn.table.drafting.draft import check_schema, draft_of_rows
from privsyn.table.drafting.elsewhere import Elsewhere, copies_from_above, orders_with_above, sums_of_rows
from privsyn.table.drafting.keys import KeyedTable
from privsyn.table.drafting.layout import Layout, lay_out
from privsyn.table.drafting.review import MARKS_READ, READ, review, wrapped
from privsyn.table.drafting.siblings import DraftedTable, RowOrder, Siblings
from privsyn.table.io.csv_table import PLAIN
from privsyn.table.io.formats import CSV, SEPARATOR, DeclaredTable, Location
from privsyn.table.io.identifiers import NOBODY, codes_of
from privsyn.table.io.read_in_memory import LoadedTable, read_in_memory
from privsyn.table.kinds.csv_format import CsvFormat
from privsyn.table.schema.columns import Categorical, Column, Identifier, Text
from privsyn.table.schema.schema import Schema
from privsyn.table.schema.yaml_file import dump, to_yaml

LINKED = """\
# Keys, links and orders are those that the database declares; others were READ from the rows. Check them all:
# each row of the table without a parent is a person, who is protected with all rows that belong to it.
# A line that begins with #derive, #lookups or #NAME: {public: ...} is a proposal. Remove its # to take it.
"""

WIDE = "SEVERAL COLUMNS:"
"""How the remark on a key of several columns begins."""


Remark = tuple[str, str, str]
"""A table, one of its columns or "", and what is remarked on it."""


def of_parent(drafted: Mapping[str, DraftedTable]) -> Iterator[Remark]:
    """Yield the columns that never differ among the rows of one parent."""
    for name, table in drafted.items():
        if table.siblings is not None:
            for column in table.siblings.belonging_to_parent():
                where = table.siblings.parent
                remark = (
                    f"READ: never differs among the rows of one row of {where}. If that is always so, write"
                )
                yield (
                    name,
                    column,
                    f"{remark} constant: [{column}] below link. Else synthetic rows may differ.",
                )


REMARKS: list[Callable[[Mapping[str, DraftedTable]], Iterator[Remark]]] = [of_parent]
"""What is remarked on in the tables of a draft."""


def draft_tables(
    locations: Mapping[str, tuple[str, DeclaredTable]],
    *,
    stem: str | None = None,
    folder: Path | None = None,
    csv: CsvFormat = PLAIN,
    persons: str | None = None,
) -> tuple[str, dict[str, str]]:
    """Return the text of a draft of several tables, and the text of each file of a look-up by its name.

    It reads the rows, so it is not private before a person reviews it. A table without rows is named.

    Parameters
    ----------
    locations : mapping of a table to where it is, and what a database says of it
        As `every_table` returns it.
    stem : str, optional
        How the names of files of look-ups begin; without one, none is written.
    folder : Path, optional
        Where the draft will be: paths in it begin there. Default: the working folder.
    csv : CsvFormat
        How CSV files are written.
    persons : str, optional
        The table whose rows are the persons. Default: names and links say which.
    """
    if persons is not None and persons not in locations:
        raise InputError(f"--persons {persons!r} is none of the tables {', '.join(locations)}")
    draft = _Draft.of(locations, csv, persons)
    remarks = [remark_on_column for remark in REMARKS for remark_on_column in remark(draft.tables)]
    sections, files = [], dict[str, str]()
    for name in draft.layout.names:
        section, look_ups = draft.section(name, None if stem is None else f"{stem}.{name}", remarks)
        sections.append(section)
        files |= look_ups
    sections += [draft.public(name, folder or Path()) for name in draft.layout.public]
    sections += [
        _comment(f"NOT DRAFTED: the table {name}. {why} `synth` makes no such table.")
        + "".join(map(_comment, _of_wide_keys(locations[name][1])))
        for name, why in draft.layout.outside.items()
    ]
    marks = MARKS_READ if any(table.schema.missing for table in draft.tables.values()) else ""
    return READ + LINKED + marks + "tables:\n" + indent("".join(sections), "  "), files


@dataclass(frozen=True, eq=False)
class _Draft:
    """The tables of a draft, and how they hang together.

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
    def elsewhere(self) -> Elsewhere:
        """The columns that follow from another table: those that repeat one above, and sums of rows below."""
        copies = copies_from_above(self.tables, self.keyed, self.layout)
        sums = sums_of_rows(self.tables, copies)
        return {name: {**sums[name], **copies_of_table} for name, copies_of_table in copies.items()}

    @cached_property
    def ordered(self) -> Mapping[str, list[tuple[str, Proposal]]]:
        """The dates of each table on one side of a date above, and the rules."""
        return orders_with_above(self.tables, self.elsewhere)

    @classmethod
    def of(
        cls, locations: Mapping[str, tuple[str, DeclaredTable]], csv: CsvFormat, persons: str | None
    ) -> _Draft:
        """Read all tables, and draft the private ones; one without rows is outside."""
        form = None if csv == PLAIN else Schema({}, csv=csv)
        loaded: dict[str, LoadedTable] = {}
        for name, (location, _) in locations.items():
            with about(f"table {name!r}"):
                loaded[name] = read_in_memory(location, form)
        empty = [name for name, table in loaded.items() if not len(table.frame)]
        if len(empty) == len(locations) or persons in empty:
            raise InputError(f"{persons or 'no table'}: no rows to draft from")
        keyed = {
            name: KeyedTable(name, loaded[name].frame, declared, Location.of(location).format is CSV)
            for name, (location, declared) in locations.items()
            if name not in empty
        }
        layout, drafted = lay_out(keyed, persons), {}
        without_rows = dict.fromkeys(empty, "READ: it has no rows. Draft again once it has some.")
        layout = replace(layout, outside={**layout.outside, **without_rows})
        for name in layout.names:
            with about(f"table {name!r}"):
                drafted[name] = _draft_table(name, locations[name][0], loaded[name], layout, keyed, csv)
        return cls(locations, csv, keyed, layout, drafted)

    def section(self, name: str, stem: str | None, remarks: list[Remark]) -> tuple[str, dict[str, str]]:
        """Return the lines of a private table, and the text of each file of a look-up by its name."""
        table = self.tables[name]
        elsewhere = self.elsewhere[name]
        remarks_of_columns = self._said_of_columns(
            table, [remark for remark in remarks if remark[1] not in elsewhere]
        )
        about_table = [*self._said_of_table(table), *remarks_of_columns.pop("", [])]
        dialect = "" if self.csv == PLAIN else to_yaml(Schema({}, csv=self.csv))
        body, files = dialect + "columns: {}\n", dict[str, str]()
        if table.schema.columns:
            key_columns = {
                column for remark, column in (*self.layout.left_out, *self.layout.lookups) if remark == name
            }
            ordered = self.ordered[name]
            draft = review(
                table.schema, table.frame, table.unread, remarks_of_columns, key_columns, elsewhere, ordered
            )
            body, files = draft.text("constraints:\n", stem)
        links = dump(dict(table.links), flow=False) if table.links else ""
        title = dump({name: None}, flow=False).replace(" null", "")
        lines = "".join(map(_comment, about_table)) + links + self._proposals(name) + body
        return title + indent(lines, "  "), files

    def _said_of_columns(self, table: DraftedTable, remarks: list[Remark]) -> dict[str, list[str]]:
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
                mine.append(
                    f"READ: leads to {link.parent}.{target}{strays} Common values are found under privacy."
                )
            elif isinstance(kind, Identifier):
                mine.append("READ: nearly all cells differ. New ones are generated.")
            elif column in table.order.numbering:
                mine.append("READ: numbers the rows of one parent, as their order does: it is left out.")
        for remark_table, column, text in remarks:
            if remark_table == table.name:
                texts.setdefault(column, []).append(text)
        return texts

    def _said_of_table(self, table: DraftedTable) -> Iterator[str]:
        """Yield the remarks on a table: its rows, its key, its link and its order."""
        keyed, key = self.keyed[table.name], self.layout.keys[table.name]
        if table.siblings is None:
            rows = plural(len(keyed.frame), "row")
            yield f"READ: {rows}, each a person, who is protected with all rows that belong to it."
        else:
            above = self.keyed[table.siblings.parent].frame
            how = "declared" if self.layout.parents[table.name].declared else "found"
            yield f"READ: {table.siblings.counts(len(above))}. The link was {how}."
        if key is not None and (repeated := len(keyed.frame) - len(keyed.cells[key].coded[1])):
            rows = plural(repeated, "row")
            yield f"READ: {rows} without a {key} of its own: --check says what becomes of it."
        yield from self.layout.remarks.get(table.name, ())
        yield from _of_wide_keys(keyed.declared)
        if key is None and not keyed.declared.wide:
            yield from self._key_of_two(table.name)
        if table.order.remark:
            yield table.order.remark

    def _key_of_two(self, name: str) -> Iterator[str]:
        """Yield which two links of a table without a key differ in every row together."""
        parent_link = self.layout.parents.get(name)
        link_columns = [
            column for table, column in (*self.layout.left_out, *self.layout.lookups) if table == name
        ]
        frame = self.keyed[name].frame
        for first, second in combinations(
            [*([] if parent_link is None else [parent_link.column]), *link_columns], 2
        ):
            if not frame.duplicated([first, second]).any():
                yield (
                    f"READ: LINK TABLE, {first} and {second} together differ in every row. It needs no key."
                    " Synthetic rows may repeat such a pair: a key of several columns cannot be declared."
                )
                return

    def _proposals(self, name: str) -> str:
        """Return the lines of a table that a person may take, each behind a #."""
        lines = ""
        summaries: dict[str, str] = {}
        for table in self.tables.values():
            if table.siblings is not None and table.siblings.parent == name:
                summaries |= table.siblings.summaries(table.order.column, self.elsewhere[table.name])
        if summaries:
            lines += (
                "# What analysts join for is kept best as a summary, which costs budget as a column does:\n"
            )
            lines += _behind_sign("derive", summaries)
        looked_up = self.layout.lookups_of(name).items()
        lookups = {column: table for column, table in looked_up if column != self.layout.public[table]}
        if lookups:
            lines += "# With the public tables at the end:\n" + _behind_sign("lookups", lookups)
        return lines

    def public(self, name: str, folder: Path) -> str:
        """Return the lines of a table that could be public; the path in them begins at `folder`."""
        where = Location.of(self.locations[name][0])
        file = Path(os.path.relpath(where.file, folder))
        path = f"{file}{SEPARATOR}{where.inside}" if where.inside else str(file)
        links = self.layout.lookups.items()
        by = sorted(f"{table}.{column}" for (table, column), link in links if link.parent == name)
        note = (
            f"READ: {', '.join(by)} lead{'s' if len(by) == 1 else ''} to {name}. If everybody may know that"
            " table and no row of it is a person, remove the # below, and that of each line of lookups. It is"
            " published as it is."
        )
        return _comment(note) + _behind_sign(name, {"public": path, "key": self.layout.public[name]})


def _draft_table(
    name: str,
    location: str,
    loaded: LoadedTable,
    layout: Layout,
    tables: Mapping[str, KeyedTable],
    csv: CsvFormat,
) -> DraftedTable:
    """Return the draft of a private table: its links, its columns of data, and their order."""
    parent_link, key = layout.parents.get(name), layout.keys[name]
    links = {} if key is None else {"key": key}
    links |= {} if parent_link is None else {"parent": parent_link.parent, "link": parent_link.column}
    kinds_of_keys: dict[str, Column] = {
        column: Text() for table_name, column in layout.left_out if table_name == name
    }
    kinds_of_keys |= {column: Categorical() for column in layout.lookups_of(name)}
    frame = loaded.frame.drop(columns=[column for setting, column in links.items() if setting != "parent"])
    schema, frame, unread = draft_of_rows(location, loaded, frame, csv, kinds_of_keys)
    siblings, order = None, RowOrder()
    if parent_link is not None:
        parents = (
            tables[name]
            .cells[parent_link.column]
            .places_in(tables[parent_link.parent].cells[parent_link.key])
        )
        siblings = Siblings(name, parent_link.parent, frame, parents, schema)
        order = siblings.order(kinds_of_keys)
        columns = {**schema.columns, **dict.fromkeys(order.numbering, Text())}
        if order.column in order.numbering:  # it is no data: synthetic rows are numbered again
            columns.pop(order.column)
            frame = frame.drop(columns=[order.column])
        schema = replace(schema, columns=columns)
        siblings = replace(siblings, schema=schema)
        links |= {} if order.column is None else {"order": order.column}
    if not schema.columns:
        schema = Schema({})
    return DraftedTable(name, schema, frame, unread, links, siblings, order)


def _of_wide_keys(declared: DeclaredTable) -> Iterator[str]:
    """Yield what to do about keys of several columns, which a database declares."""
    for columns, target in declared.wide:
        listed, joined = ", ".join(columns), " || '-' || ".join(columns)
        if target:
            text, where, name = f"({listed}) lead to {target}", f" here and in {target}", "link and key"
        else:
            text, where, name = f"the key is ({listed})", "", "key"
        yield (
            f"{WIDE} {text}. A key or link is one column: add one that joins them{where}, such as {joined},"
            f" and name it as {name}."
        )


def _comment(remark: str) -> str:
    return "".join(f"# {line}\n" for line in wrapped(remark))


def _behind_sign(name: str, value: object) -> str:
    """Return plain data in one line, which stays one whatever its length, behind a #."""
    return f"#{name}: {' '.join(dump(value, flow=True).split())}\n"


class Unlinked(str):
    """A line about a table of which no row has a parent."""

    __slots__ = ()


class Unordered(str):
    """A line about a table of which no row has an order."""

    __slots__ = ()


class Shared(str):
    """A line about keys that rows of two persons share."""

    __slots__ = ()


def check_tables(data: str | os.PathLike[str], database: Database) -> list[str]:
    """Return what does not fit the schema of several tables: rows without a parent, repeated keys, and cells.

    NOT PRIVATE: each line counts private rows, and is for the owner only. The lines about cells are those of
    `check_schema`; one about a table of which no row has a parent is `Unlinked`, of which none has an order
    `Unordered`, and one about keys that two persons share is `Shared`.
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
        lines += [type(line)(f"table {name!r}: {line}") for line in table_lines]
    return lines


def _of_keys(name: str, linked: LinkedTable, database: Database) -> Iterator[str]:
    """Yield how many rows there are, and how many have no key of their own."""
    table = database.tables[name]
    yield plural(len(linked.persons), "row")
    if table.key is None or table.key not in linked.source.head:
        return
    codes = codes_of(np.concatenate(linked.source.fingerprints(table.key)))
    missing = int((codes == NOBODY).sum())
    if repeated := len(codes) - missing - len(np.unique(codes[codes != NOBODY])):
        fate = "of each key one row is kept" if table.parent is None else "rows below belong to one of them"
        yield f"the key {table.key!r} of {plural(repeated, 'row')} is that of another row: {fate}"
    if times := _of_two_persons(codes, linked.persons) if database.children(name) else 0:
        yield Shared(
            f"the key {table.key!r} is the same in rows of two persons, {plural(times, 'time')}:"
            " the promise does not hold for them"
        )
    if missing:
        fate = "left out" if table.parent is None else "without rows below them"
        yield f"{plural(missing, 'row')} without the key {table.key!r}: {fate}"


def _of_two_persons(keys: Ints, persons: Ints) -> int:
    """Return how many keys have rows of two persons: if one leaves, the rows below are the other's."""
    valid = (keys != NOBODY) & (persons != NOBODY)
    pairs = np.unique(np.stack([keys[valid], persons[valid]]), axis=1)
    return int((np.bincount(pairs[0]) > 1).sum())


def _of_parents(name: str, opened: Mapping[str, LinkedTable], database: Database) -> Iterator[str]:
    """Yield how many rows have no parent, how many rows a parent has, and how many have no order."""
    table, linked = database.tables[name], opened[name]
    if table.parent is None:
        return
    missing = codes_of(np.concatenate(linked.prints)) == NOBODY
    orphans = (linked.parents < 0) & ~missing
    rows, above = len(linked.parents), opened[table.parent]
    for text, where in (
        (f"name no row of {table.parent!r} in {table.link!r}", orphans),
        (f"have no {table.link!r}", missing),
        (
            f"belong to a row of {table.parent!r} that is left out",
            (linked.persons == NOBODY) & (linked.parents >= 0),
        ),
    ):
        if count := int(where.sum()):
            kind = Unlinked if count == rows else str
            yield kind(f"{count:,} of {plural(rows, 'row')} {text}: they are left out")
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
            yield Unordered(
                f"no row has a number or time in its order {table.order!r}: rows come in any order"
            )
