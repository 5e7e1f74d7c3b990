"""A table in a database, whose rows are counted there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from math import prod
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from privsyn.errors import InputError, replace_errors
from privsyn.files import close_at_end
from privsyn.marginals.counting import CountTables, Tables
from privsyn.marginals.domain import Domain, Ints
from privsyn.marginals.marginal import NO_GROUPS, Grouping
from privsyn.table.codec.codec import Codec
from privsyn.table.engine.codes import Coding, grouped, names_of
from privsyn.table.engine.engine import Cells, Engine
from privsyn.table.io.arrow import empty_table, frame_of
from privsyn.table.io.output_type import OutputType
from privsyn.table.io.read_in_batches import read_in_batches
from privsyn.table.io.source import A, Question, RawTable
from privsyn.table.schema.schema import Schema

if TYPE_CHECKING:
    from sqlglot import exp

ANSWERS = "that the database answers every query"
"""Public input for a table in a database: an odd cell may make a query fail."""

NO_ROWS = (
    "rows in a database are counted there: write all values and bounds into the schema, and of each date or"
    " time its unit or step"
)


@dataclass(frozen=True, eq=False)
class EngineTable(RawTable):
    """A table in a database, whose rows never leave it.

    Parameters
    ----------
    engine : Engine
    relation : sqlglot expression
        The table as a subquery with a name.
    types : pyarrow.Schema
        Of its columns.
    """

    _: KW_ONLY
    engine: Engine
    relation: exp.Expr
    types: pa.Schema

    @classmethod
    def of(cls, table: Any, log: Callable[[str], object] | None = None) -> Self:
        """Return a table or query of ibis, whose rows are counted by its own connection.

        Parameters
        ----------
        table : ibis table
        log : callable, optional
            Gets the text of each statement before it is sent.
        """
        with replace_errors("the ibis table has no connection, or Arrow has no type for one of its columns"):
            backend = table.get_backend()
            relation = backend.compiler.to_sqlglot(table).subquery("raw")
            types = table.schema().to_pyarrow()
        engine = Engine(backend, log)
        empty = empty_table(types, "the table")
        return cls(
            frame_of(empty, "the table"),
            public_inputs=(ANSWERS,),
            form=OutputType.of(empty),
            near=False,
            once=True,  # no question about lattices or frequent numbers is counted in SQL yet
            engine=engine,
            relation=relation,
            types=types,
        )

    def results(self, question: Question[A]) -> list[A]:
        """Refuse the question: no row comes here."""
        raise InputError(NO_ROWS)

    def ask(self, question: Question[A], add: Callable[[A, A], A]) -> A:
        """Refuse the question: no row comes here."""
        raise InputError(NO_ROWS)

    def require_again(self, subject: str) -> None:
        """Refuse a schema that leaves something open."""
        raise InputError(NO_ROWS)

    def check(self, codec: Codec) -> None:
        """Refuse a column that SQL cannot code exactly, before anything is asked."""
        self._coding(codec).check()

    def counter(self, codec: Codec) -> CountTables:
        """Return what counts the rows: a temporary table of their codes, which the engine keeps."""
        query = self._coding(codec).query()
        close_at_end(self.engine.close)
        self.engine.begin()
        codes = self.engine.keep(query)
        self.engine.commit()
        return CodedTable(self.engine, codes, names_of(codec)).count

    def _coding(self, codec: Codec) -> Coding:
        return Coding(self.relation, self.types, self.engine.dialect, codec)


class CodedTable:
    """A temporary table of codes, and the one of joined codes that was asked for last.

    Parameters
    ----------
    engine : Engine
    table : sqlglot table
    columns : mapping of an attribute to its column
    """

    def __init__(self, engine: Engine, table: exp.Table, columns: Mapping[str, str]) -> None:
        self._engine, self._table, self._columns = engine, table, dict(columns)
        self._joined: tuple[Grouping, exp.Table] = NO_GROUPS, table

    def count(self, tables: Tables) -> list[Ints]:
        """Return tables of counts, in groups of the codes."""
        source = self._joined_by(tables.grouping, tables.domain)
        sizes = tables.domain.size_of
        cells = [
            Cells(self._cell([(attribute, sizes[attribute]) for attribute in attributes]), prod(shape))
            for attributes, shape in zip(tables.sets, tables.shapes, strict=True)
        ]
        counted = self._engine.count(source, cells)
        return [counts.reshape(shape) for counts, shape in zip(counted, tables.shapes, strict=True)]

    def _cell(self, attributes: Sequence[tuple[str, int]]) -> exp.Expr:
        """Return the place of a row in a table over some attributes, the last of which changes fastest."""
        from sqlglot import exp

        cell: exp.Expr | None = None
        for attribute, size in attributes:
            code = exp.cast(exp.column(self._columns[attribute]), "bigint")
            cell = (
                code
                if cell is None
                else exp.Add(
                    this=exp.Mul(this=exp.paren(cell), expression=exp.convert(size)), expression=code
                )
            )
        return exp.convert(0) if cell is None else cell

    def _joined_by(self, grouping: Grouping, merged: Domain) -> exp.Table:
        """Return the table of joined codes, written once: each pair would compute them again."""
        from sqlglot import exp, select

        if not grouping:
            return self._table
        if self._joined[0] is not grouping:
            if self._joined[0]:
                self._engine.forget(self._joined[1])
            codes = [
                exp.alias_(
                    exp.cast(grouped(self._columns[name], group), self._engine.dialect.code_type(size)),
                    self._columns[name],
                )
                for name, group, size in zip(merged.names, grouping.groups, merged.sizes, strict=True)
            ]
            self._joined = grouping, self._engine.keep(select(*codes).from_(self._table.copy()))
        return self._joined[1]


def is_ibis(table: object) -> bool:
    """Return whether this is a table of ibis, which is not imported for the test.

    >>> is_ibis(pd.DataFrame())
    False
    """
    return type(table).__module__.startswith("ibis.") and hasattr(table, "get_backend")


def open_table(
    source: object, schema: Schema | None, *, unit: str | tuple[str, ...] | None = None
) -> RawTable:
    """Open a table to be counted, wherever its rows are; see `read_in_batches`."""
    return EngineTable.of(source) if is_ibis(source) else read_in_batches(source, schema, unit=unit)
