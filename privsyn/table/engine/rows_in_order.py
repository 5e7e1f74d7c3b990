"""The rows of persons in a database: each person's in random order, in a temporary table that stays there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING

import pyarrow as pa

from privsyn.marginals.counting import Tables
from privsyn.marginals.domain import Ints
from privsyn.marginals.marginal import Grouping
from privsyn.table.codec.codec import Codec
from privsyn.table.encoding.dtypes import UNCOUNTED, family
from privsyn.table.engine.codes import names_of
from privsyn.table.engine.engine import Cells
from privsyn.table.engine.engine_table import CodedTable, EngineTable
from privsyn.table.io.identifiers import persons_of
from privsyn.table.kinds.keys import Key, columns_of

if TYPE_CHECKING:
    from sqlglot import exp

    from privsyn.table.engine.persons import Family, Identity

CLASS = "privsyn_class"
"""The column of the class of the number of rows of the person."""


@dataclass(frozen=True, eq=False, repr=False)
class RowsInOrder:
    """All rows that belong to somebody, as an engine sorts them. Private.

    Parameters
    ----------
    table : EngineTable
        With the columns of identifiers.
    identity : Identity
        Which of them identify a person.
    """

    table: EngineTable
    identity: Identity

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
        from privsyn.table.engine.persons import SQLITE_HASH, Identity, sqlite_sha256

        columns: list[tuple[str, Family]] = []
        for name in columns_of(unit):
            persons_of(table.head, name)  # refuses a missing column, or one of another kind
            columns.append((name, _family(table, name)))
        table.engine.hide(key)
        if table.engine.dialect.name == "sqlite":
            table.engine.define(SQLITE_HASH, sqlite_sha256)
        return cls(table, Identity(tuple(columns), key, table.engine.dialect.name))

    @property
    def _names(self) -> list[str]:
        """The columns that can be counted: bytes and nested cells, which cannot, need not have an order."""
        identifiers, dtypes = dict(self.identity.columns), self.table.head.dtypes
        names = (name for name in self.table.types.names if name not in identifiers)
        return [name for name in names if family(dtypes[name]) not in UNCOUNTED]

    @cached_property
    def _kept(self) -> exp.Table:
        """The temporary table: all questions of a run are about its rows."""
        return self.table.keep(self.identity.in_order(self.table.relation, self._names))

    def in_classes(self, begins: Ints) -> Ints:
        """Return how many persons have a number of rows in each class, given the first number of each."""
        from privsyn.table.engine.persons import class_of, rows_of_each

        cells = Cells(class_of(begins.tolist()), len(begins))
        (counts,) = self.table.engine.count(rows_of_each(self._kept), [cells])
        return counts

    def within(self, bound: int) -> int:
        """Return the number of all rows, of which each person has at most `bound`."""
        from sqlglot import exp

        from privsyn.table.engine.persons import first_rows

        (counts,) = self.table.engine.count(first_rows(self._kept, bound), [Cells(exp.convert(0), 1)])
        return int(counts[0])

    def bounded(self, bound: int | None) -> EngineTable:
        """Return the first `bound` rows of each person, all with None, without the identifiers.

        With a bound of 0 nothing is written into the database.
        """
        from sqlglot import exp, select

        from privsyn.table.engine.persons import first_rows

        relation: exp.Expr
        if bound == 0:
            none = exp.EQ(this=exp.convert(1), expression=exp.convert(0))
            relation = select("*").from_(self.table.relation.copy()).where(none).subquery("no_rows")
        else:
            relation = self._kept if bound is None else first_rows(self._kept, bound)
        head = self.table.head.drop(columns=[name for name, _ in self.identity.columns])
        return replace(self.table, head=head, relation=relation)

    def coded(self, rows: EngineTable, codec: Codec, begins: Mapping[str, Sequence[int]]) -> CodedRows:
        """Return the codes of `rows` of `bounded`, in a temporary table that stays in the engine.

        Parameters
        ----------
        rows : EngineTable
        codec : Codec
        begins : mapping of an attribute to numbers of rows
            The attribute of the class of the number of rows, if there is one, with the first of each class.
        """
        from sqlglot import exp

        from privsyn.table.engine.persons import ORDER, PERSON, ROWS, class_of, column

        also = (PERSON, ORDER, ROWS)
        classes = [exp.alias_(class_of(firsts), CLASS, quoted=True) for firsts in begins.values()]
        query = rows.coding(codec).query().select(*map(column, also), *classes)
        names = {**names_of(codec), **dict.fromkeys(begins, CLASS)}
        return CodedRows(rows.engine, rows.keep(query), names, also)


class CodedRows(CodedTable):
    """The codes of the rows of persons, which are counted within bounds."""

    def first_rows(self, tables: Tables, bound: int) -> list[Ints]:
        """Return tables of counts of the first `bound` rows of each person."""
        from privsyn.table.engine.persons import first_rows

        return self.count(tables, lambda rows: first_rows(rows, bound))

    def within_squares(self, tables: Tables, further: Sequence[Grouping], norm: int) -> list[Ints]:
        """Return tables of counts in groups, to which each person adds a vector of norm `norm`."""
        from privsyn.table.engine.persons import column, within_squares

        rows, counts = self.joined(tables), []
        for attributes, grouping in zip(tables.sets, further, strict=True):
            domain = grouping.domain(tables.domain.project(attributes))
            source = within_squares(rows, self.cell(domain, grouping), norm)
            (counted,) = self.engine.count(source, [Cells(column("cell"), prod(domain.shape))])
            counts.append(counted.reshape(domain.shape))
        return counts


def _family(table: EngineTable, name: str) -> Family:
    """Return how the cells of a column of identifiers are written."""
    kind = table.types.field(name).type
    if pa.types.is_floating(kind):
        return "double" if kind == pa.float64() else "single"
    return "integer" if pa.types.is_integer(kind) else "text"
