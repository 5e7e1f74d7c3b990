"""How tables hang together: which rows are the persons, whose rows the others are, and what could be public.

Not private: it follows from `links_between`, which reads the rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from privsyn.errors import InputError, plural
from privsyn.marginals.domain import Ints
from privsyn.table.drafting.dependences import ROWS_OF_KEY
from privsyn.table.drafting.keys import KeyedTable, Link, links_between, may_be_looked_up
from privsyn.table.drafting.personality import is_personal, personality, question_on_persons, traces
from privsyn.table.drafting.roles import NO_ROLES, Roles
from privsyn.table.kinds.keys import Key, columns_of, key_in_words

HOUSEHOLD = 5
"""Least mean of the persons of a row above which the persons, and not such rows, are protected."""

NO_KEY = (
    "no table of two or more rows has a key: give one a column without missing cells that all differ, or say"
    " who the persons are: --persons TABLE, if each of its rows is one, or --persons TABLE.COLUMN, if a"
    " column names them"
)
"""What is said where nothing shows who the persons are."""

CONSISTENT = 0.9
"""Least share of rows in which two ways to a table above lead to the same row, if the rows belong there."""


@dataclass(frozen=True, eq=False)
class Layout:
    """How tables hang together.

    Parameters
    ----------
    root : str
        The table whose rows are the persons.
    parents : mapping of a table to its Link
        Of each table below the root, each after its parent.
    keys : mapping of a table to its key
        None if there is none, or no other table needs it.
    lookups : mapping of a table and column to a Link
        The columns that lead to tables that could be public.
    left_out : mapping of a table and column to text
        The columns of other keys, and why they are left out.
    outside : mapping of a table to text
        The tables that are not below the root and could not be public, and why.
    remarks : mapping of a table to texts
    declared_public : mapping of a table to its key
        Those that somebody said are public.
    links_of_public : mapping of a table and column to a Link
        From one of them to another.
    also : tuple of str
        The tables whose rows are persons of their own.
    dealt : mapping of a table and column to a table
        The columns that lead to one of these.
    """

    root: str
    parents: Mapping[str, Link]
    keys: Mapping[str, Key | None]
    lookups: Mapping[tuple[str, str], Link]
    left_out: Mapping[tuple[str, str], str]
    outside: Mapping[str, str]
    remarks: Mapping[str, Sequence[str]] = field(default_factory=dict)
    declared_public: Mapping[str, Key] = field(default_factory=dict)
    links_of_public: Mapping[tuple[str, str], Link] = field(default_factory=dict)
    also: tuple[str, ...] = ()
    dealt: Mapping[tuple[str, str], str] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The private tables, each after its parent."""
        return (self.root, *self.also, *self.parents)

    @property
    def public(self) -> dict[str, Key]:
        """The tables that are public, or could be, and their keys."""
        return {link.parent: link.key for link in self.lookups.values()} | dict(self.declared_public)

    def lookups_of(self, name: str) -> dict[str, str]:
        """Return the look-up table of each column of a table that leads to one."""
        return {column: link.parent for (table, column), link in self.lookups.items() if table == name}

    def lookups_of_public(self, name: str) -> dict[str, str]:
        """Return the public table of each column of a public table that leads to one."""
        return {
            column: link.parent for (table, column), link in self.links_of_public.items() if table == name
        }

    def second_keys(self, name: str) -> list[str]:
        """Return the columns of a table with keys other than its own and that of its parent."""
        return [column for table, column in (*self.left_out, *self.lookups) if table == name]


def lay_out(tables: Mapping[str, KeyedTable], roles: Roles = NO_ROLES) -> Layout:
    """Return how tables hang together.

    Public tables are look-up tables. The root has the persons: those of `roles`, or a table whose name says
    so, or else the table without a parent below which most rows hang. A table of several possible parents
    belongs to the one furthest from the root.

    Raises
    ------
    InputError
        If no table has a key and `roles` name no persons, a public one has no key or keys of a private one,
        or no private table leads to further persons.
    """
    persons, public, also = roles
    roles.check_keys(tables)
    links = links_between(tables)
    likely = [links_of_column[0] for links_of_column in links.values()]
    usable = [link for link in likely if link.parent != link.table and link.as_written]
    looked_up = set(_look_ups(tables, usable)) - {persons, *also} | {*public}
    if not any(table.keys for name, table in tables.items() if name not in looked_up):
        looked_up = {*public}  # then one of them is the root
    up = _without_circles(link for link in usable if not {link.table, link.parent} & looked_up)
    roots = _roots({name: table for name, table in tables.items() if name not in (*looked_up, *also)}, up)
    root = next(iter(roots), None) if persons is None else persons
    if root is None:
        raise InputError(NO_KEY)
    parents = _parents_below((root, *also), up)
    private = (root, *also, *parents)
    lookups, left_out, further = _other_links(private, tables, links, parents, public)
    dealt = {
        column: links[column][0].parent
        for column in left_out
        if links[column][0].parent in also and links[column][0].as_written
    }
    roles.check_links(likely, private, {*dealt.values()})
    left_out = {column: why for column, why in left_out.items() if column not in dealt}
    keys_of_public = {link.parent: link.key for link in lookups.values()}
    for name in private:
        lookups |= dict(_numbers_of(name, tables, keys_of_public, links))
    remarks = {
        name: [*_remarks_on_link(tables[name], link, links), *further.get(name, ())]
        for name, link in parents.items()
    }
    if persons is None and (question := question_on_persons(root, roots, tables, likely)):
        remarks[root] = [question]
    outside = [name for name in tables if name not in (*private, *keys_of_public, *public)]
    why = {name: _why_outside(name, likely, private) for name in outside}
    return Layout(
        root,
        parents,
        {name: _key_of(tables[name], parents) for name in private},
        lookups,
        left_out,
        why,
        remarks,
        declared_public={name: tables[name].keys[0] for name in public},
        links_of_public=_links_of_public(public, likely),
        also=tuple(also),
        dealt=dealt,
    )


def _without_circles(links: Iterable[Link]) -> list[Link]:
    """Return links that make no circle; those that are declared, or nearer by name, come first."""
    up: list[Link] = []
    for link in sorted(links, key=lambda link: (-link.declared, -link.close)):
        if link.parent not in _below(link.table, up):
            up.append(link)
    return up


def _parents_below(roots: Collection[str], up: Collection[Link]) -> dict[str, Link]:
    """Return the link of each table below a root to its parent; a table belongs to the first such root."""
    up = [link for link in up if link.table not in roots]
    parents: dict[str, Link] = {}
    for root in roots:
        inside = {root, *_below(root, up)} - {*parents}
        parents |= _parents(root, [link for link in up if {link.table, link.parent} <= inside])
    return parents


def _key_of(table: KeyedTable, parents: Mapping[str, Link]) -> Key | None:
    """Return the key to which other tables lead, or the one that is declared, or the likeliest."""
    used = [link.key for link in parents.values() if link.parent == table.name]
    declared = table.keys if table.declared.key else ()
    link_column = parents[table.name].column if table.name in parents else None
    unlinked = (key for key in table.keys if key != link_column)
    return next(iter((*used, *declared, *unlinked)), None)


def _links_of_public(public: Collection[str], likely: Collection[Link]) -> dict[tuple[str, str], Link]:
    """Return the links of one column from a public table to another; the last link of a column counts."""
    up = {(link.table, link.column): link for link in likely if {link.table, link.parent} <= {*public}}
    return {
        (table, column): link
        for (table, column), link in up.items()
        if isinstance(column, str) and link.parent != table and not link.strays
    }


def _roots(tables: Mapping[str, KeyedTable], up: Collection[Link]) -> dict[str, int]:
    """Return the tables whose rows may be the persons, with the number of rows below; the likeliest first.

    A table with a parent may have the persons if its `personality` is larger than that of all tables above,
    and if these have too few rows to be households. Each of its rows alone is a person if it has no key.
    """
    below = {name: sum(len(tables[child].frame) for child in _below(name, up)) for name in tables}
    likeliness: dict[str, tuple[int, int, int]] = {}
    for name, table in tables.items():
        rank = personality(table)
        above = [parent for parent in tables.values() if name in _below(parent.name, up)]
        if (table.keys or above) and all(
            rank > personality(parent) and len(table.frame) >= HOUSEHOLD * len(parent.frame)
            for parent in above
        ):
            likeliness[name] = rank, below[name], len(table.frame)
    return {name: below[name] for name in sorted(likeliness, key=likeliness.__getitem__, reverse=True)}


def _other_links(
    private: Sequence[str],
    tables: Mapping[str, KeyedTable],
    links: Mapping[tuple[str, Key], list[Link]],
    parents: Mapping[str, Link],
    public: Collection[str],
) -> tuple[dict[tuple[str, str], Link], dict[tuple[str, str], str], dict[str, list[str]]]:
    """Return the links of private tables to public ones, why others are left out, and remarks on tables."""
    lookups: dict[tuple[str, str], Link] = {}
    left_out: dict[tuple[str, str], str] = {}
    remarks: dict[str, list[str]] = {}
    not_public = _not_public(private, tables, links)
    for name, ((table, column), (link, *_)) in product(private, links.items()):
        if table != name or link is parents.get(name):
            continue
        if not isinstance(column, str):
            listed = key_in_words(column)
            remarks.setdefault(name, []).append(
                f"READ: {listed} together lead to {link.parent}, too. A table has one parent, so no such link"
                " is made."
            )
            continue
        if name in parents and column in columns_of(parents[name].column):
            continue
        if link.parent in public:
            lookups[name, column] = link
        elif link.parent in private:
            left_out[name, column] = _second_key(link, tables, parents)
        elif is_personal(tables[link.parent]):
            left_out[name, column] = (
                f"READ: leads to {link.parent}, a second private parent if its rows are persons: it is left"
                f" out, and these are not protected. If everybody may know {link.parent}, draft again with"
                f" --public {link.parent}. With --also {link.parent} its rows are persons of their own, and"
                " the column leads to a random one of them; they take a part of the budget."
            )
        elif why := not_public.get(link.parent):
            left_out[name, column] = (
                f"READ: leads to {link.parent}, {why}: its rows may concern persons, so it is not proposed as"
                f" public, and the column is left out. If everybody may know {link.parent}, draft again with"
                f" --public {link.parent}."
            )
        else:
            lookups[name, column] = link
    return lookups, left_out, remarks


def _not_public(
    private: Collection[str], tables: Mapping[str, KeyedTable], links: Mapping[tuple[str, Key], list[Link]]
) -> dict[str, str]:
    """Return why tables outside the tree are not proposed as public, if their rows may lead to persons.

    Such a table has names or addresses, or its rows lead to a table that is not proposed itself, or few rows
    of a table of persons lead to each of its rows, as to their homes.
    """
    first = [usable[0] for usable in links.values() if usable[0].parent != usable[0].table]
    led_to = {link.parent for link in first if link.table in private} - {*private}
    why: dict[str, str] = {}
    for name in led_to:
        if columns := traces(tables[name]):
            why[name] = f"which has {', '.join(columns)}"
            continue
        # Few rows of a table of persons lead to each row, as to their homes.
        personal = [link for link in first if link.parent == name and is_personal(tables[link.table])]
        if any(rows_of_key(link, tables) < ROWS_OF_KEY for link in personal):
            why[name] = "each row of which belongs to few persons"
    while True:
        ways = (link for link in first if link.table in led_to and link.table not in why)
        on = {link.table: link.parent for link in ways if link.parent not in led_to or link.parent in why}
        if not on:
            return why
        why |= {name: f"whose rows lead to {parent}" for name, parent in on.items()}


def rows_of_key(link: Link, tables: Mapping[str, KeyedTable]) -> float:
    """Return the mean of the rows that lead to each row of the parent."""
    return len(tables[link.table].frame) / max(len(tables[link.parent].frame), 1)


def _look_ups(tables: Mapping[str, KeyedTable], links: Sequence[Link]) -> Iterator[str]:
    """Yield the tables that no row belongs to: they could be public, as a list of zones.

    Several columns of one table lead there, or ways over other tables to another row than a direct one; or
    many rows of a table of persons. None has a key of a table of other kind.
    """
    unlinked = set()
    for name, table in tables.items():
        to = [link for link in links if link.parent == name]
        if not to or is_personal(table):
            continue
        several = len({link.table for link in to}) < len(to)
        of_persons = any(
            is_personal(tables[link.table]) and rows_of_key(link, tables) >= ROWS_OF_KEY for link in to
        )
        if several or of_persons or any(_leads_elsewhere(link, tables, links) for link in to):
            unlinked.add(name)
    while bad := {link.table for link in links if link.table in unlinked and link.parent not in unlinked}:
        unlinked -= bad
    yield from unlinked


def _leads_elsewhere(link: Link, tables: Mapping[str, KeyedTable], links: Sequence[Link]) -> bool:
    """Return whether a way over another table leads to another row than the link does."""
    direct = _places(link, tables)
    for first in links:
        if first.table != link.table or first.parent in (link.table, link.parent):
            continue
        for second in links:
            if (second.table, second.parent) == (first.parent, link.parent):
                over = np.append(_places(second, tables), -1)[_places(first, tables)]
                both = (direct >= 0) & (over >= 0)
                if both.any() and (direct == over)[both].mean() < CONSISTENT:
                    return True
    return False


def _places(link: Link, tables: Mapping[str, KeyedTable]) -> Ints:
    """Return the row of the parent to which each row leads, -1 where there is none."""
    return tables[link.table].cells_of(link.column).places_in(tables[link.parent].cells_of(link.key))


def _below(name: str, links: Collection[Link]) -> set[str]:
    """Return the tables from which links lead to a table, directly or over others."""
    below: set[str] = set()
    new = {name}
    while new:
        new = {link.table for link in links if link.parent in new} - below
        below |= new
    return below


def _parents(root: str, links: Sequence[Link]) -> dict[str, Link]:
    """Return the link of each table to the parent that is the furthest from the root; parents come first."""
    depth = {root: 0}
    while len(depth) < len({root, *(link.table for link in links)}):
        for name in sorted({link.table for link in links} - set(depth)):
            above = [link.parent for link in links if link.table == name]
            if all(parent in depth for parent in above):
                depth[name] = 1 + max(depth[parent] for parent in above)
    parents = {}
    for name in sorted(depth, key=lambda name: (depth[name], name)):
        if links_of_table := [link for link in links if link.table == name]:
            parents[name] = max(
                links_of_table, key=lambda link: (depth[link.parent], link.declared, link.close)
            )
    return parents


def _second_key(link: Link, tables: Mapping[str, KeyedTable], parents: Mapping[str, Link]) -> str:
    """Return why a key of a table in the tree, besides that of the parent, is left out."""
    if link.parent == link.table:
        return (
            f"READ: leads to another row of {link.table}. Such links are not learnt: it is left out. To give"
            f" each row a random earlier one, write dealt: {{{link.column}: {link.table}}} below the key, and"
            " drop this line."
        )
    if not link.as_written:
        return (
            f"READ: has keys of {link.parent}, but written in another way, as 412.0 for 412: `fit` would"
            " find no row. Write whole numbers if it is the parent."
        )
    parent_link = parents.get(link.table)
    column = "" if parent_link is None else key_in_words(parent_link.column)
    if parent_link is None:
        return f"READ: has keys of {link.parent}, which belongs to {link.table}: left out."
    over, at = _places(parent_link, tables), parent_link.parent
    while at != link.parent and at in parents:
        over = np.append(_places(parents[at], tables), -1)[over]
        at = parents[at].parent
    direct = _places(link, tables)
    if at == link.parent:
        broken = int(((direct != over) & (direct >= 0) & (over >= 0)).sum())
        if not broken:
            return f"READ: the key of {link.parent} follows from {column}: left out, or a copy as below."
        if link.parent not in parents:  # the root
            return (
                f"READ: {plural(broken, 'row')} of two persons: {column} leads to another row of"
                f" {link.parent}, and its person alone is protected. It is left out."
            )
        return (
            f"READ: in {plural(broken, 'row')} another row of {link.parent} than"
            f" {column} leads to."
            " One key is made: it is left out."
        )
    return (
        f"READ: leads to {link.parent}, and {column} to {parent_link.parent}: both private,"
        " and a table has one"
        " parent. It is left out."
    )


def _remarks_on_link(
    table: KeyedTable, link: Link, links: Mapping[tuple[str, Key], list[Link]]
) -> Iterator[str]:
    """Yield other tables to which the link to a parent could lead, and its cells that lead nowhere."""
    column = key_in_words(link.column)
    if len(alternatives := links[table.name, link.column][1:]):
        named = ", ".join(
            f"{alternative.parent}.{key_in_words(alternative.key)}" for alternative in alternatives
        )
        yield f"READ: {column} could also lead to {named}: the names decided."
    if link.strays:
        yield (
            f"READ: {plural(link.strays, 'row')} whose {column} is no key of {link.parent}: such rows"
            " are left out."
        )
    if empty := int((table.cells_of(link.column).coded[0] < 0).sum()):
        share = 100 * empty / len(table.frame)
        yield (
            f"READ: {plural(empty, 'row')} ({share:.0f} %) without a {column}: they belong to no row of"
            f" {link.parent}, are left out, and `synth` makes none like them."
        )


def _numbers_of(
    name: str,
    tables: Mapping[str, KeyedTable],
    public: Mapping[str, Key],
    links: Mapping[tuple[str, Key], list[Link]],
) -> Iterator[tuple[tuple[str, str], Link]]:
    """Yield the columns whose numbers are those of a look-up table, whatever they are called."""
    for column, cells in tables[name].cells.items():
        if (name, column) in links or column in tables[name].keys:
            continue
        for parent, key in public.items():
            if may_be_looked_up(cells, tables[parent].cells_of(key)):
                yield (name, column), Link(name, column, parent, key, declared=False, close=0)
                break


def _why_outside(name: str, likely: Sequence[Link], inside: Collection[str]) -> str:
    """Return why a table is neither private nor could be public."""
    led = {link.parent for link in likely if link.table == name}
    by = {link.table for link in likely if link.parent == name and link.table in inside}
    if by:
        leads = f"{', '.join(sorted(by))} lead{'s' if len(by) == 1 else ''} to it"
        return f"READ: {leads}: a second private parent, if its rows are persons."
    if led:
        return f"READ: leads to {', '.join(sorted(led))}, and not to a private table above."
    if by_others := sorted({link.table for link in likely if link.parent == name}):
        return f"READ: no private table leads to it, only {', '.join(by_others)}."
    return "READ: no key leads from or to it."
