"""One table of a database: opened, then learnt, and what the rows below it know of its rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from privsyn.errors import InputError, did_you_mean
from privsyn.marginals.domain import NO_ATTRIBUTES, Domain, Integers, Ints
from privsyn.marginals.marginal import Grouping
from privsyn.methods.learning import Learned
from privsyn.methods.links import groups_at_level
from privsyn.methods.persons import Persons
from privsyn.methods.reading import Opened
from privsyn.private.bounds import NOBODY
from privsyn.synthesis.chains import POSITION, SIBLINGS, Context, Links
from privsyn.table.database.opened import LinkedTable, positions, rows_of
from privsyn.table.database.rules import following

if TYPE_CHECKING:
    from collections.abc import Iterable

    from privsyn.marginals.counting import Block, Walk
    from privsyn.table.database.declared import Table
    from privsyn.table.kinds.numerical import Numerical
    from privsyn.table.schema.schema import Schema

POSITIONS = 4  # 1, 2, 3, and 4 and more: of a row among those of its parent


@dataclass(frozen=True, eq=False, repr=False)
class FromAbove:
    """What the rows below a table know of its rows: their columns, and those of the rows above them.

    Parameters
    ----------
    codes : tuple of arrays of shape (rows,)
        Private: a code for each row of the table.
    domain : Domain
        Of the codes.
    given : mapping of an attribute to a Context
        The table and the column of each attribute. Released.
    """

    codes: tuple[Integers, ...] = ()
    domain: Domain = NO_ATTRIBUTES
    given: Mapping[str, Context] = field(default_factory=dict)

    def joined(self, other: FromAbove) -> FromAbove:
        """Return both together."""
        domain, given = self.domain.joined(other.domain), {**self.given, **other.given}
        return FromAbove((*self.codes, *other.codes), domain, given)

    def renamed(self, old: str, new: str) -> FromAbove:
        """Return the same with another name of an attribute."""
        names = tuple(new if name == old else name for name in self.domain.names)
        domain = Domain(names, self.domain.sizes, self.domain.ordered)
        given = {new if name == old else name: of for name, of in self.given.items()}
        return FromAbove(self.codes, domain, given)

    def at(self, parents: Ints) -> FromAbove:
        """Return the codes for the rows below, given the place of each row's parent, -1 if there is none."""
        codes = tuple(np.append(of, np.zeros(1, of.dtype))[parents] for of in self.codes)
        return replace(self, codes=codes)


NOTHING = FromAbove()


@dataclass(frozen=True, eq=False)
class OpenedLevel:
    """One table of a database before the first question.

    Parameters
    ----------
    name : str
    table : Table
    rows : LinkedTable, optional
        How its rows are linked. Default: it is the only table of the run.
    opened : Opened
    pairs : int
        Number of tables of two columns among which the method chooses: of two own ones, or of one own and one
        of a row above or of the previous row.
    children : tuple of str
        The tables below it.
    """

    name: str
    table: Table
    rows: LinkedTable | None
    opened: Opened
    pairs: int
    children: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """How questions name the table: not at all, if it is the only one."""
        return "" if self.rows is None else self.name

    @property
    def linked(self) -> LinkedTable:
        """How its rows are linked."""
        if self.rows is None:
            raise ValueError(f"{self.name}: the only table of the run")
        return self.rows

    @property
    def persons(self) -> Persons:
        """Whose rows are whose."""
        if self.opened.persons is None:
            raise ValueError(f"{self.name}: nobody's rows")
        return self.opened.persons

    @property
    def columns(self) -> int:
        """Number of its columns, without the numbers of child rows."""
        known = (rows_of(child) for child in self.children)
        return len(set(self.opened.schema.schema.coded).difference(known))

    def with_most(self, columns: Mapping[str, Numerical]) -> OpenedLevel:
        """Return the table in which no number of child rows is larger than those of any person.

        Parameters
        ----------
        columns : mapping of a child table to the column of its numbers, whose bounds are released
        """
        if not columns:
            return self
        schema = self.opened.schema
        most = {rows_of(child): column for child, column in columns.items()}
        whole = replace(schema.schema, columns={**schema.schema.columns, **most})
        return replace(self, opened=replace(self.opened, schema=replace(schema, schema=whole)))

    def known(self, parent: FromAbove) -> FromAbove:
        """Return what its rows know of the rows above, given what all rows below the parent know."""
        return parent.renamed(f"{self.table.parent}.{rows_of(self.name)}", SIBLINGS)

    def below(self, parent: FromAbove, lags: int) -> Opened:
        """Return the table, whose rows have the codes of rows above, and of `lags` rows before. Private."""
        known = self.known(parent).at(self.linked.parents)
        if self.table.order is not None:
            places = np.minimum(positions(self.linked.parents, self.linked.keys), POSITIONS - 1)
            domain = Domain((POSITION,), (POSITIONS,), (POSITIONS,))
            known = known.joined(FromAbove((places.astype(np.uint8),), domain))
        above = self.persons.above
        if above is None:
            raise ValueError(f"{self.name}: nothing above it")
        above = replace(above, codes=known.codes, domain=known.domain, lags=lags)
        return replace(self.opened, persons=replace(self.persons, above=above))

    def for_below(self, learned: Learned, most: int) -> FromAbove:
        """Return the codes of the own columns of each row, in groups that released counts make. Private.

        A column of which all codes are one group is left out.

        Parameters
        ----------
        learned : Learned
        most : int
            Largest number of groups of a column with an order; see `groups_at_level` for the others.
        """
        codec, fitted, found = learned.codec, learned.fitted, NOTHING
        kept = np.flatnonzero(self.linked.persons != NOBODY)
        columns = _columns(self.opened.bounded(None).walk(codec))
        for place, attribute in enumerate(codec.domain.names):
            one_way = fitted.one_way(attribute)
            groups = groups_at_level(one_way, most)
            if not groups.any():
                continue
            codes = np.zeros(len(self.linked.persons), np.uint8)
            codes[kept] = groups[fitted.merging.groups[place][columns[place]]]
            name, coarse = f"{self.name}.{attribute}", Grouping((groups,)).domain(one_way.domain)
            given = {name: Context(self.name, attribute, groups)}
            domain = Domain((name,), coarse.sizes, coarse.ordered)
            found = found.joined(FromAbove((codes,), domain, given))
        return found


def _columns(walk: Walk) -> list[Integers]:
    """Return the codes of all rows, by column."""
    parts: list[Block] = []

    def collect(blocks: Iterable[Block]) -> list[Ints]:
        parts.extend(blocks)
        return []

    walk(collect)
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


@dataclass(frozen=True, eq=False)
class LearnedLevel:
    """What was learnt of one table of a database.

    Parameters
    ----------
    learned : Learned
        Of all rows.
    links : Links, optional
        How its rows are linked; None for the root.
    below : FromAbove
        What the tables below need. Its codes are private.
    """

    learned: Learned
    links: Links | None
    below: FromAbove


def check_compared(opened: Opened, table: Table, above: Mapping[str, Schema]) -> None:
    """Refuse comparisons with rows above that no synthetic row could keep, before anything is spent."""
    schema = opened.schema.fill({}, {})
    counted = opened.codec(schema).domain.names if table.compared or table.one else ()
    for one in table.one:
        if one.column not in counted:
            raise InputError(f"one {str(one)!r}: {one.column!r} is no column that is counted")
        one.check(opened.schema.schema.coded[one.column])
    for rule in table.compared:
        (name, column), own = rule.above, rule.column
        for each, known in ((own, schema.coded), (column, above[name].coded)):
            if each not in known:
                raise InputError(f"{str(rule)!r}: there is no column {each!r}{did_you_mean(each, known)}")
        for reached in (rule, *following(opened.schema.schema, rule)):
            mine, other = opened.schema.schema.coded[reached.column], above[name].coded[column]
            reached.check(mine, other)
            if mine.is_public and not other.is_public:
                has = f"as {reached.column!r} has some"
                raise InputError(f"{str(rule)!r}: declare bounds of {rule.name!r}, {has}")
        if own not in counted:
            raise InputError(
                f"{str(rule)!r}: {own!r} is computed from other columns of the table, or measured from one"
                " without missing cells: compare that one, or leave out the constraint on both"
            )


def covering(opened: Opened, table: Table, found: Mapping[str, LearnedLevel]) -> Opened:
    """Return a table in which bounds that are found leave each row below any row above a value.

    Those of the rows above are public or released.
    """
    needed: dict[str, tuple[float, float, bool]] = {}
    for rule in table.compared:
        name, column = rule.above
        low, high = rule.needed(found[name].learned.codec.schema.ordinal(column))
        for each in (rule, *following(opened.schema.schema, rule)):
            lowest, highest, strict = needed.get(each.column, (inf, -inf, False))
            needed[each.column] = (min(low, lowest), max(high, highest), strict or each.strict)
    return replace(opened, schema=replace(opened.schema, covering=needed)) if needed else opened
