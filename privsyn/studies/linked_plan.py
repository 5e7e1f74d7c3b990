"""Plan a run on linked tables: which links survive, from public facts alone. It reads no row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING

from privsyn.arguments import check_finite
from privsyn.errors import InputError, did_you_mean, printable
from privsyn.studies.linked_expectation import (
    COLUMN,
    NEXT,
    NUMBER,
    PAIR,
    PARENT,
    ExpectedRun,
    TableExpectation,
    opened_without_rows,
)

if TYPE_CHECKING:
    from privsyn.settings import Settings
    from privsyn.table.database.declared import Database, Table

ASSUMED_PER_PARENT = 3.0
"""Assumed number of rows of a child table for each row of its parent, if none is given."""

HEADS = {
    COLUMN: "one column",
    PAIR: "two columns",
    PARENT: "parent and row",
    NEXT: "a row and the next",
    NUMBER: "number of rows",
}
"""The columns of a printed plan."""

LINKS = {
    NUMBER: "how many rows a row of {} has",
    PARENT: "how they depend on the row of {}",
    NEXT: "how a row depends on the one before it",
}
"""The links of a child table in words; of the name of its parent."""

KEPT, IN_PART = 0.5, 0.8
"""Largest error over that without the link of a link that is kept, and of one that is kept in part."""

STEP, LARGEST = 1.25, 100.0
"""Factor between the values of epsilon that are tried, and the largest."""


@dataclass(frozen=True)
class LinkedExpectation:
    """What to expect of linked tables with this number of persons.

    Parameters
    ----------
    roots : int
        Rows of the table without a parent.
    tables : tuple of TableExpectation
    enough : mapping of a table and a link to an epsilon
        The smallest epsilon tried with which the link is kept; infinite if there is none. Links that are kept
        are left out.
    """

    roots: int
    tables: tuple[TableExpectation, ...]
    enough: Mapping[tuple[str, str], float]

    @property
    def sentences(self) -> Iterator[str]:
        """What is kept of each child table, what not, and with which epsilon it would be."""
        for table in self.tables[1:]:
            kept: dict[str, list[str]] = {"kept": [], "in part": [], "lost": []}
            for link in table.links:
                words, lost = LINKS[link].format(table.parent), table.lost(link)
                verdict = "kept" if lost <= KEPT else "in part" if lost <= IN_PART else "lost"
                if (enough := self.enough.get((table.name, link))) is not None:
                    words += (
                        f" (no epsilon up to {LARGEST:g} keeps it)"
                        if enough == inf
                        else f" (kept from epsilon {enough:.2g} on)"
                    )
                kept[verdict].append(words)
            said = [f"{verdict}: {', '.join(words)}" for verdict, words in kept.items() if words]
            yield f"{table.name}: {'; '.join(said)}"


@dataclass(frozen=True)
class LinkedPlan:
    """The expected results of a run on linked tables, for one or more numbers of persons.

    Parameters
    ----------
    epsilon, delta : float
        The privacy guarantee.
    per_parent : mapping of a child table to the number of its rows for each row of its parent
    assumed : tuple of str
        The tables of which that number was not given.
    expectations : tuple of LinkedExpectation
    """

    epsilon: float
    delta: float
    per_parent: Mapping[str, float]
    assumed: tuple[str, ...]
    expectations: tuple[LinkedExpectation, ...]

    def __str__(self) -> str:
        rows = ", ".join(f"{name} {number:g}" for name, number in self.per_parent.items())
        lines = [
            f"epsilon {self.epsilon:g} at delta {self.delta:g}",
            f"rows for each row of the parent: {rows}",
        ]
        if self.assumed:
            lines.append(f"assumed, as rows per parent were not given: {', '.join(self.assumed)}")
        for expected in self.expectations:
            root = expected.tables[0].name
            lines += ["", f"{expected.roots:,} rows of {root}, each with all that belongs to it:"]
            lines += _text_table(expected.tables)
            lines += expected.sentences
        return "\n".join(map(printable, [*lines, "", *NOTES]))


NOTES = (
    "An error is the share of rows that would have to change: a mean over columns, or over pairs of columns.",
    f"A link is kept if at most {KEPT:.0%} of a usual dependence is lost, and lost from {IN_PART:.0%} on.",
    "Nothing was spent, and no row was read.",
)


def _text_table(tables: Sequence[TableExpectation]) -> list[str]:
    width = max(len(table.name) for table in tables)
    lines = ["  ".join([" " * width, f"{'rows':>11}  budget  bound", *HEADS.values()])]
    for table in tables:
        facts = f"{table.rows:>11,.0f}  {table.share:>6.0%}  {table.bound:>5}"
        cells = [
            f"{f'{table.errors[kind]:.1%}' if kind in table.errors else '':>{len(head)}}"
            for kind, head in HEADS.items()
        ]
        lines.append("  ".join([f"{table.name:<{width}}", facts, *cells]))
    return lines


def plan_linked(
    settings: Settings,
    database: Database,
    numbers: Sequence[int],
    rows_per_parent: Mapping[str, float] | None,
) -> LinkedPlan:
    """Plan a run on linked tables.

    Parameters
    ----------
    settings : Settings
    database : Database
    numbers : sequence of int
        Numbers of rows of the table without a parent to plan for.
    rows_per_parent : mapping of str to float, optional
        See `plan`.
    """
    given, children = dict(rows_per_parent or {}), database.names[1:]
    for name in given:
        if name not in children:
            meant = did_you_mean(name, children)
            raise InputError(f"rows per parent: {name!r} is no table with a parent{meant}")
    if not children:
        raise InputError("the database has one table: plan its schema alone")
    per_parent = {name: _per_parent(name, database.tables[name], given.get(name)) for name in children}
    opened = opened_without_rows(settings, database)

    def expected(epsilon: float, roots: int) -> tuple[TableExpectation, ...]:
        of = replace(opened, settings=replace(settings, epsilon=epsilon))
        return ExpectedRun.of(of, per_parent, roots).expected

    epsilon, delta = settings.promise
    found = []
    for roots in numbers:
        tables, tried = expected(epsilon, roots), epsilon
        lacking = _links(tables) - _links(tables, KEPT)
        enough = dict.fromkeys(sorted(lacking), inf)
        while lacking and tried * STEP <= LARGEST:
            tried *= STEP
            kept = lacking & _links(expected(tried, roots), KEPT)
            enough |= dict.fromkeys(kept, tried)
            lacking -= kept
        found.append(LinkedExpectation(roots, tables, enough))
    assumed = tuple(name for name in per_parent if name not in given)
    return LinkedPlan(epsilon, delta, per_parent, assumed, tuple(found))


def _per_parent(name: str, table: Table, given: float | None) -> float:
    """Return the number of rows for each row of the parent, within what the schema says."""
    least, most = (0, inf) if table.children is None else (table.fewest_children, table.children[1] or inf)
    if given is None:
        return min(max(ASSUMED_PER_PARENT, least), most)
    number = check_finite("rows per parent", given)
    if not max(least, 0) <= number <= most or number <= 0:
        says = "give a number above 0" if table.children is None else "the schema says otherwise (children)"
        raise InputError(f"rows per parent: {name} {number:g}: {says}")
    return number


def _links(tables: Sequence[TableExpectation], lost: float = inf) -> set[tuple[str, str]]:
    """Return the links of which at most this is lost, each with its table."""
    return {(table.name, link) for table in tables for link in table.links if table.lost(link) <= lost}
