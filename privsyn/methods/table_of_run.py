"""One table of a run: opened, then learnt, and the context that it gives to the rows below it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from privsyn.errors import InputError, did_you_mean
from privsyn.inference.single_rows import SingleCodes
from privsyn.marginals.domain import NO_ATTRIBUTES, Codes, Domain
from privsyn.marginals.marginal import Grouping
from privsyn.methods.learning import Learned
from privsyn.methods.persons import Above, Persons, PersonsInMemory
from privsyn.methods.previous_siblings import groups_at_level
from privsyn.methods.reading import Opened
from privsyn.synthesis.chains import POSITION, SIBLINGS, Context, Links
from privsyn.table.database.child_summaries import YES
from privsyn.table.database.derived_columns import rows_of
from privsyn.table.database.kept_lives import check_kept, codes_that_come_once
from privsyn.table.database.rules import following
from privsyn.table.database.summaries import EVER
from privsyn.table.discovery.find_bounds import RequiredBounds

if TYPE_CHECKING:
    from collections.abc import Collection

    from privsyn.table.database.declared import Table
    from privsyn.table.database.summaries import Derived
    from privsyn.table.kinds.numerical import Numerical
    from privsyn.table.schema.columns import Coded
    from privsyn.table.schema.schema import Schema

POSITIONS = 4  # 1, 2, 3, and 4 and more: of a row among those of its parent


@dataclass(frozen=True, eq=False, repr=False)
class PrivateContext:
    """What the rows of a table are to the rows below them: their columns, and those of the rows above them.

    Parameters
    ----------
    codes : tuple
        Private: a code for each row of the table; see `Persons.codes_above`.
    domain : Domain
        Of the codes.
    columns : mapping of an attribute to a Context
        The table and the column of each attribute. Released.
    """

    codes: tuple[Any, ...] = ()
    domain: Domain = NO_ATTRIBUTES
    columns: Mapping[str, Context] = field(default_factory=dict)

    def renamed(self, old: str, new: str) -> PrivateContext:
        """Return the same with another name of an attribute."""
        names = tuple(new if name == old else name for name in self.domain.names)
        domain = Domain(names, self.domain.sizes, self.domain.ordered)
        columns = {new if name == old else name: column for name, column in self.columns.items()}
        return PrivateContext(self.codes, domain, columns)


NO_CONTEXT = PrivateContext()


@dataclass(frozen=True, eq=False)
class RunTable:
    """One table of a run before the first question.

    Parameters
    ----------
    name : str
    declared : Table
    opened : Opened
    pairs : int
        Number of pairs among which the method chooses: two columns of this table, or a column of this table
        and one of a row above or of the previous row.
    linking_pairs : int
        How many of them are with a column of another row.
    children : tuple of str
        The tables below it.
    of_children : tuple of str
        Its columns of the numbers of child rows, and of how their lasting columns begin and change.
    computed_above : mapping of a column that is computed from rows above to its kind
    has_links : bool
        Whether its columns are counted with those of other rows. If not, the noise would hide all of that.
    """

    name: str
    declared: Table
    opened: Opened
    pairs: int
    linking_pairs: int = 0
    children: tuple[str, ...] = ()
    of_children: tuple[str, ...] = ()
    computed_above: Mapping[str, Coded] = field(default_factory=dict)
    has_links: bool = True

    @property
    def title(self) -> str:
        """How questions name the table: not at all, if it is the only one."""
        return "" if self.opened.above is None else self.name

    @property
    def above(self) -> Above:
        """What its rows belong to."""
        if self.opened.above is None:
            raise ValueError(f"{self.name}: the only table of the run")
        return self.opened.above

    @property
    def persons(self) -> Persons:
        """Whose rows are whose."""
        if self.opened.persons is None:
            raise ValueError(f"{self.name}: nobody's rows")
        return self.opened.persons

    @property
    def persons_here(self) -> PersonsInMemory:
        """Whose rows are whose, if the rows are in this process."""
        if not isinstance(self.persons, PersonsInMemory):
            raise ValueError(f"{self.name}: rows that are elsewhere")
        return self.persons

    @property
    def columns(self) -> int:
        """Number of its columns, without those `of_children`."""
        return len(set(self.opened.schema.schema.coded).difference(self.of_children))

    def with_numbers_of_rows(self, columns: Mapping[str, Numerical]) -> RunTable:
        """Return the table in which no number of child rows is larger than those of any person.

        Parameters
        ----------
        columns : mapping of a name to a column of such numbers, whose bounds are released
        """
        if not columns:
            return self
        schema = self.opened.schema.schema
        schema = replace(schema, columns={**schema.columns, **columns})
        opened = replace(self.opened, schema=replace(self.opened.schema, schema=schema))
        return replace(self, opened=opened)

    @property
    def needs_links(self) -> bool:
        """Whether a declared rule relates its rows to other rows.

        Synthetic rows keep rules without links too, but know nothing else of the rows that a rule names. A
        column that lasts needs none: it is counted with the rows above.
        """
        declared = self.declared
        return bool(declared.compared or declared.one or declared.kept_lives)

    def single_codes(
        self, learned: Learned, persons: Learned, derive: Mapping[str, Derived]
    ) -> dict[str, SingleCodes]:
        """Return by column which merged codes at most one row of a person has, and how many persons have it.

        The number follows from released counts of persons: of ``ever(visits.outcome == dead)`` in `derive`,
        or of the numbers of rows, if each person with rows has such a row.

        Parameters
        ----------
        learned, persons : Learned
            This table, and that of the persons, which is its parent.
        derive : mapping of a column of the persons to a Derived
        """
        numbers = dict[tuple[str, str], float]()
        for rule in self.declared.one:
            counts, rows = persons.cells_of(rows_of(self.name))
            numbers[rule.column, str(rule.value)] = float(counts[rows > 0].sum())
        for column, summary in derive.items():
            if summary.how == EVER and summary.table == self.name and column in persons.codec.domain.names:
                code = int(persons.codec.schema.coded[column].number_of(YES))
                numbers[str(summary.column), str(summary.value)] = float(
                    persons.fitted.counts_of(column)[code]
                )
        codes, group_of = dict[str, SingleCodes](), learned.fitted.merging.group_of
        masks = codes_that_come_once(self.declared, learned.codec, learned.fitted.merging)
        for name, mask in masks.items():
            kind, persons_with = learned.codec.schema.coded[name], np.full(len(mask), np.nan)
            for value in kind.listed:
                merged = group_of[name][int(kind.number_of(value))]
                if mask[merged]:
                    persons_with[merged] = numbers.get((name, str(value)), np.nan)
            codes[name] = SingleCodes(mask, persons_with)
        return codes

    def without_links(self) -> RunTable:
        """Return the table, whose rows are counted with the class of their number, but with no other rows."""
        return replace(self, has_links=False, pairs=self.pairs - self.linking_pairs, linking_pairs=0)

    def context_of_rows(self, parent: PrivateContext) -> PrivateContext:
        """Return the context of its rows, given that of all rows below the parent."""
        return parent.renamed(f"{self.declared.parent}.{rows_of(self.name)}", SIBLINGS)

    def with_context(self, parent: PrivateContext, lags: int) -> Opened:
        """Return the table, whose rows have the codes of rows above, and of `lags` rows before. Private."""
        if not self.has_links:
            above = replace(self.above, codes=(), domain=NO_ATTRIBUTES, lags=0)
            return replace(self.opened, persons=self.persons.with_above(above))
        context = self.context_of_rows(parent)
        domain, classes = context.domain, 0
        if self.declared.order is not None:
            classes = POSITIONS
            domain = domain.joined(Domain((POSITION,), (classes,), (classes,)))
        codes, lasting = self.persons.codes_below(context.codes, classes), self.declared.lasting
        above = replace(self.above, codes=codes, domain=domain, lags=lags, lasting=lasting)
        return replace(self.opened, persons=self.persons.with_above(above))

    def context_for_children(
        self, learned: Learned, largest: int, left_out: Collection[str], above: PrivateContext
    ) -> PrivateContext:
        """Return the codes of the own columns of each row, in groups that released counts make. Private.

        A column of which all codes are one group is left out. The columns of the rows above come last.

        Parameters
        ----------
        learned : Learned
        largest : int
            Largest number of groups of a column with an order; see `groups_at_level` for the others.
        left_out : collection of str
            Attributes that say how columns of the rows below begin and change.
        above : PrivateContext
            Of the rows of the parent table.
        """
        codec, fitted = learned.codec, learned.fitted
        groups_of_codes: dict[int, Codes] = {}
        columns: dict[str, Context] = {}
        domains = NO_ATTRIBUTES
        for axis, attribute in enumerate(codec.domain.names):
            if attribute in left_out:
                continue
            one_way = fitted.one_way(attribute)
            groups = groups_at_level(one_way, largest)
            if not groups.any():
                continue
            groups_of_codes[axis] = groups[fitted.merging.groups[axis]]
            name, coarse = f"{self.name}.{attribute}", Grouping((groups,)).domain(one_way.domain)
            domains = domains.joined(Domain((name,), coarse.sizes, coarse.ordered))
            columns[name] = Context(self.name, attribute, groups)
        codes = self.persons.codes_above(self.opened.bounded(None), codec, groups_of_codes, above.codes)
        return PrivateContext(codes, domains.joined(above.domain), {**columns, **above.columns})


@dataclass(frozen=True, eq=False)
class LearnedTable:
    """What was learnt of one table of a run.

    Parameters
    ----------
    learned : Learned
        Of all rows.
    links : Links, optional
        How its rows are linked; None for the root.
    context : PrivateContext
        What the tables below need. Its codes are private.
    has_links : bool
        As in `RunTable`.
    """

    learned: Learned
    links: Links | None
    context: PrivateContext
    has_links: bool = True


def check_compared(opened: Opened, declared: Table, above: Mapping[str, Schema]) -> None:
    """Refuse comparisons with rows above that no synthetic row could keep, before anything is spent."""
    schema, columns = opened.schema.fill({}, {}), opened.schema.schema.coded
    counted = opened.codec(schema).domain.names if declared.ruled or declared.one else ()
    check_kept(declared, columns, counted)
    for rule in declared.one:
        if rule.column not in counted:
            raise InputError(f"one {str(rule)!r}: {rule.column!r} is no column that is counted")
        rule.check(columns[rule.column])
    for rule in declared.compared:
        parent, parent_column = rule.above
        for column, coded in ((rule.column, schema.coded), (parent_column, above[parent].coded)):
            if column not in coded:
                raise InputError(f"{str(rule)!r}: there is no column {column!r}{did_you_mean(column, coded)}")
        for comparison in (rule, *following(opened.schema.schema, rule)):
            kind, parent_kind = columns[comparison.column], above[parent].coded[parent_column]
            comparison.check(kind, parent_kind)
            if kind.is_public and not parent_kind.is_public:
                has = f"as {comparison.column!r} has some"
                raise InputError(f"{str(rule)!r}: declare bounds of {rule.name!r}, {has}")
        if rule.column not in counted:
            raise InputError(
                f"{str(rule)!r}: {rule.column!r} is computed from other columns of the table, or measured"
                " from one without missing cells: compare that one, or leave out the constraint on both"
            )


def check_limited(opened: Opened, limited: Collection[str]) -> None:
    """Refuse columns that must keep computed ones within bounds but are not counted, before any cost."""
    counted = opened.codec(opened.schema.fill({}, {})).domain.names if limited else ()
    for column in limited:
        if column not in counted:
            raise InputError(
                f"{column!r} must keep a computed column within its bounds, and is computed itself: widen"
                " these bounds, or leave them out"
            )


def with_required_bounds(opened: Opened, declared: Table, parents: Mapping[str, LearnedTable]) -> Opened:
    """Return `opened` with the interval that the bounds of each compared column must contain.

    A rule such as ``arrived >= persons.born`` compares a column with one of a table above. If the bounds of
    the column are found under privacy, some row above might allow no value between them. So they must contain
    an interval that follows from the bounds of the column above, which are public or released.
    """
    required: dict[str, RequiredBounds] = {}
    for rule in declared.compared:
        parent, parent_column = rule.above
        low, high = rule.needed(parents[parent].learned.codec.schema.ordinal(parent_column))
        for comparison in (rule, *following(opened.schema.schema, rule)):
            column = comparison.column
            bounds = required.get(column, RequiredBounds())
            required[column] = bounds.joined(low, high, strict=comparison.strict)
    return replace(opened, schema=replace(opened.schema, required_bounds=required)) if required else opened
