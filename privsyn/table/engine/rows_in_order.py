"""The rows of persons in a database: each person's in random order, in a temporary table that stays there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any

import pyarrow as pa

from privsyn.errors import InputError
from privsyn.marginals.counting import Tables
from privsyn.marginals.domain import Codes, Ints
from privsyn.marginals.marginal import Grouping
from privsyn.table.codec.codec import Codec
from privsyn.table.encoding.dtypes import UNCOUNTED, family
from privsyn.table.engine import persons
from privsyn.table.engine.codes import grouped, names_of
from privsyn.table.engine.engine import Cells
from privsyn.table.engine.engine_table import CodedTable, EngineTable
from privsyn.table.engine.sqlglot_later import exp
from privsyn.table.io.identifiers import persons_of
from privsyn.table.kinds.keys import Key, columns_of

CLASS, POSITION = "privsyn_class", "privsyn_position"
"""Columns: the class of the number of rows of the person, and the position among the rows of the parent."""


@dataclass(frozen=True, eq=False, repr=False)
class SortedRows:
    """All rows that belong to somebody, as an engine sorts them once. Private.

    Parameters
    ----------
    table : EngineTable
        With the columns of identifiers.
    identity : Identity
        The columns that identify a person, or lead to the row of the parent table.
    names : tuple of str
        Columns whose cells decide the order: all that are counted.
    parent : SortedRows, optional
        The rows of the parent table.
    key : Identity, optional
        The columns by which rows of child tables name a row. In linked tables the root has one.
    order : str, optional
        The column by which the rows of a parent are sorted.
    """

    table: EngineTable
    identity: persons.Identity
    names: tuple[str, ...]
    parent: SortedRows | None = None
    key: persons.Identity | None = None
    order: str | None = None

    @cached_property
    def stored(self) -> exp.Table:
        """The temporary table: all questions of a run are about its rows."""
        dialect, relation = self.table.engine.dialect.name, self.table.relation
        if self.parent is not None:
            rows = persons.below(relation, self.names, self.identity, self.parent.stored, self.key)
            also = [persons.PARENT, *([] if self.key is None else [persons.KEY])]
            return self.table.keep(persons.in_order(rows, [*self.names, *also], dialect))
        query = persons.in_order(self.identity.rows(relation, self.names), self.names, dialect)
        if self.key is not None:  # each person is one row of the root
            query = persons.with_key_of_person(persons.first_of_each(query))
        return self.table.keep(query)


@dataclass(frozen=True, eq=False, repr=False)
class RowsInOrder:
    """Rows that belong to somebody, with what is computed of them. Private.

    Parameters
    ----------
    rows : SortedRows
    numbers : mapping of a column to a child table
        Columns with the number of rows below each row.
    constants : mapping of a column to a text
        Columns of one value.
    """

    rows: SortedRows
    numbers: Mapping[str, SortedRows] = field(default_factory=dict)
    constants: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, table: EngineTable, unit: Key, key: str) -> RowsInOrder:
        """Return the rows by person; refuse columns that cannot identify one. No row is counted.

        Parameters
        ----------
        table : EngineTable
        unit : str or tuple of str
        key : str
            The key of the hashes, drawn for this run.
        """
        identity = identity_of(table, unit, key)
        return cls(SortedRows(table, identity, _countable(table, columns_of(unit))))

    @classmethod
    def linked(
        cls,
        table: EngineTable,
        identity: persons.Identity,
        key: persons.Identity | None,
        left_out: tuple[str, ...],
        order: str | None,
        parent: RowsInOrder | None,
    ) -> RowsInOrder:
        """Return the rows of one of several linked tables. No row is counted.

        Parameters
        ----------
        table : EngineTable
        identity : Identity
            The columns that name a row of the parent; of the root, its key.
        key : Identity, optional
            The columns by which rows of child tables name a row; None if there are none.
        left_out : tuple of str
            Columns that are no data, such as those of the identities.
        order : str, optional
        parent : RowsInOrder, optional
        """
        if order is not None and not _is_ordered(table.types.field(order).type):
            raise InputError(
                f"order {order!r}: a database does not sort texts as times: name a column of numbers or times"
            )
        names = tuple(dict.fromkeys((*_countable(table, left_out), *columns_of(order))))
        above = None if parent is None else parent.rows
        return cls(SortedRows(table, identity, names, above, key, order))

    def with_number(self, name: str, child: RowsInOrder) -> RowsInOrder:
        """Return the rows with one more column: the number of rows of a child table below each."""
        return replace(self, numbers={**self.numbers, name: child.rows})

    def with_constant(self, name: str, value: str) -> RowsInOrder:
        """Return the rows with one more column, of one value."""
        return replace(self, constants={**self.constants, name: value})

    def in_classes(self, begins: Ints) -> Ints:
        """Return how many persons have a number of rows in each class, given the first number of each."""
        cells = Cells(persons.class_of(begins.tolist()), len(begins))
        (counts,) = self.rows.table.engine.count(persons.rows_of_each(self.rows.stored), [cells])
        return counts

    def within(self, bound: int) -> int:
        """Return the number of all rows, of which each person has at most `bound`."""
        cells = [Cells(exp.convert(0), 1)]
        (counts,) = self.rows.table.engine.count(persons.first_rows(self.rows.stored, bound), cells)
        return int(counts[0])

    def bounded(self, bound: int | None, left_out: Sequence[str]) -> EngineTable:
        """Return the first `bound` rows of each person, all with None, with the columns that are computed.

        With a bound of 0 nothing is written into the database.

        Parameters
        ----------
        bound : int, optional
        left_out : sequence of str
            Columns that the table has no longer, such as identifiers.
        """
        table = self.rows.table
        relation: exp.Expr
        if bound == 0:
            none = exp.EQ(this=exp.convert(1), expression=exp.convert(0))
            relation = exp.select("*").from_(table.relation.copy()).where(none).subquery("no_rows")
        else:
            relation = self.rows.stored if bound is None else persons.first_rows(self.rows.stored, bound)
            stored = {name: child.stored for name, child in self.numbers.items()}
            relation = persons.with_numbers(relation, stored)
        if self.constants:
            values = (exp.convert(value).as_(name, quoted=True) for name, value in self.constants.items())
            relation = exp.select("*", *values).from_(relation).subquery("rows_of_persons")
        types = table.types
        for name in self.numbers:
            types = types.append(pa.field(name, pa.int64()))
        for name in self.constants:
            types = types.append(pa.field(name, pa.string()))
        head = table.head.drop(columns=list(left_out))
        added = {name: pa.array([], types.field(name).type).to_pandas() for name in self.numbers}
        added |= {name: head.index.astype("str").to_series() for name in self.constants}
        return replace(table, head=head.assign(**added), relation=relation, types=types, once=True)

    def coded(
        self,
        rows: EngineTable,
        codec: Codec,
        begins: Mapping[str, Sequence[int]],
        above: Mapping[str, ColumnAbove | int],
        before: Mapping[str, tuple[str, int]],
    ) -> CodedRows:
        """Return the codes of `rows` of `bounded`, in a temporary table that stays in the engine.

        Parameters
        ----------
        rows : EngineTable
        codec : Codec
        begins : mapping of an attribute to numbers of rows
            The attribute of the class of the number of rows, if there is one, with the first of each class.
        above : mapping of an attribute to a column of rows above, or to the classes of the position
        before : mapping of an attribute to an attribute of `codec` and a number
            Of the row that stands this number of rows before.
        """
        names, sizes = names_of(codec), codec.domain.size_of
        added: dict[str, tuple[str, exp.Expr]] = {}
        for attribute, firsts in begins.items():
            added[attribute] = CLASS, persons.class_of(firsts)
        for number, (attribute, column) in enumerate(above.items()):
            if isinstance(column, int):
                added[attribute] = POSITION, persons.position(self.rows.order, column)
            else:
                added[attribute] = f"above_{number}", persons.column(column.name)
        for number, (attribute, (attribute_before, lag)) in enumerate(before.items()):
            code = persons.previous(
                exp.column(names[attribute_before]), self.rows.order, lag, sizes[attribute_before]
            )
            added[attribute] = f"before_{number}", code
        query = self._with_rows_above(rows, codec, [c for c in above.values() if isinstance(c, ColumnAbove)])
        also = (persons.PERSON, persons.ORDER, persons.ROWS)
        computed = (exp.alias_(sql, name, quoted=True) for name, sql in added.values())
        columns = [*(exp.column(name) for name in names.values()), *map(persons.column, also), *computed]
        table = rows.keep(exp.select(*columns).from_(query))
        names = {**names, **{attribute: name for attribute, (name, _) in added.items()}}
        return CodedRows(rows.engine, table, names, also)

    def codes_above(
        self, rows: EngineTable, codec: Codec, groups: Mapping[int, Codes], above: Sequence[ColumnAbove]
    ) -> tuple[ColumnAbove, ...]:
        """Return what rows of child tables may have of these rows, as columns of a temporary table.

        Parameters
        ----------
        rows : EngineTable
        codec : Codec
        groups : mapping of an axis to an array of shape (codes,)
            The group of each code.
        above : sequence of ColumnAbove
            What the rows have of the rows above themselves.
        """
        attributes = list(names_of(codec).values())
        dialect = rows.engine.dialect
        codes = [grouped(attributes[axis], group, dialect) for axis, group in groups.items()]
        codes += [persons.column(column.name) for column in above]
        names = [f"of_row_{number}" for number in range(len(codes))]
        named = (exp.alias_(code, name, quoted=True) for code, name in zip(codes, names, strict=True))
        columns = [*map(persons.column, (persons.PERSON, persons.ORDER)), *named]
        table = rows.keep(exp.select(*columns).from_(self._with_rows_above(rows, codec, above)))
        return tuple(ColumnAbove(table, name) for name in names)

    def _with_rows_above(self, rows: EngineTable, codec: Codec, above: Sequence[ColumnAbove]) -> exp.Subquery:
        """Return the query of the codes of rows, with the columns of the rows above them."""
        also = [persons.PERSON, persons.ORDER, persons.ROWS]
        also += [persons.PARENT] * (self.rows.parent is not None)
        also += columns_of(self.rows.order)
        query = rows.coding(codec).query().select(*map(persons.column, also)).subquery("rows_of_persons")
        if not above:
            return query
        (table,) = {column.table for column in above}
        columns = [exp.column(column.name, table="above", quoted=True) for column in above]
        everything = exp.Column(this=exp.Star(), table=exp.to_identifier("rows_of_persons"))
        same = persons.same_row(persons.PARENT, "above", persons.ORDER)
        joined = exp.select(everything, *columns).from_(query)
        return joined.join(exp.alias_(table.copy(), "above", table=True), on=same).subquery("rows_of_persons")


@dataclass(frozen=True)
class ColumnAbove:
    """A column of a temporary table with a row for each row of a parent table. Private.

    Parameters
    ----------
    table : sqlglot table
    name : str
    """

    table: exp.Table
    name: str


class CodedRows(CodedTable):
    """The codes of the rows of persons, which are counted within bounds."""

    def first_rows(self, tables: Tables, bound: int) -> list[Ints]:
        """Return tables of counts of the first `bound` rows of each person."""
        return self.count(tables, lambda rows: persons.first_rows(rows, bound))

    def within_squares(self, tables: Tables, further: Sequence[Grouping], norm: int) -> list[Ints]:
        """Return tables of counts in groups, to which each person adds a vector of norm `norm`."""
        rows, counts = self.joined(tables), []
        for attributes, grouping in zip(tables.sets, further, strict=True):
            domain = grouping.domain(tables.domain.project(attributes))
            source = persons.within_squares(rows, self.cell(domain, grouping), norm)
            (counted,) = self.engine.count(source, [Cells(persons.column("cell"), prod(domain.shape))])
            counts.append(counted.reshape(domain.shape))
        return counts


def identity_of(table: EngineTable, unit: Key, key: str) -> persons.Identity:
    """Return how columns identify a person; refuse those that cannot.

    Parameters
    ----------
    table : EngineTable
    unit : str or tuple of str
    key : str
        Of the hashes.
    """
    columns: list[tuple[str, persons.Family]] = []
    for name in columns_of(unit):
        persons_of(table.head, name)  # refuses a missing column, or one of another kind
        columns.append((name, _family(table, name)))
    table.engine.hide(key)
    if table.engine.dialect.name == "sqlite":
        table.engine.define(persons.SQLITE_HASH, persons.sqlite_sha256)
    return persons.Identity(tuple(columns), key, table.engine.dialect.name)


def _countable(table: EngineTable, left_out: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that can be counted: bytes and nested cells, which cannot, may have no order."""
    dtypes: Any = table.head.dtypes
    names = (name for name in table.types.names if name not in left_out)
    return tuple(name for name in names if family(dtypes[name]) not in UNCOUNTED)


def _is_ordered(kind: pa.DataType) -> bool:
    """Return whether the cells of a column have the order of numbers or times."""
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_temporal(kind)


def _family(table: EngineTable, name: str) -> persons.Family:
    """Return how the cells of a column of identifiers are written."""
    kind = table.types.field(name).type
    if pa.types.is_floating(kind):
        return "double" if kind == pa.float64() else "single"
    return "integer" if pa.types.is_integer(kind) else "text"
