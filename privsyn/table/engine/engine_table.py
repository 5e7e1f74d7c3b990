"""A table in a database, whose rows are counted there.

The engine counts several tables in one scan: it adds them up from a finer table, which stays there. A scan
costs the engine more than the cells do, as long as they fit in a processor's cache: 10,000,000 rows in 2^10
cells take DuckDB 0.055 s, and 2^17 cells 0.105 s.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import chain
from math import log2, prod
from typing import Any, Self

import pyarrow as pa

from privsyn.errors import InputError, replace_errors
from privsyn.files import close_at_end
from privsyn.marginals.counting import CountTables, Tables
from privsyn.marginals.domain import Attributes, Domain, Ints
from privsyn.marginals.marginal import NO_GROUPS, Grouping
from privsyn.table.codec.codec import Codec
from privsyn.table.discovery.open_schema import OpenSchema
from privsyn.table.engine.codes import Coding, grouped, names_of
from privsyn.table.engine.engine import Cells, Engine
from privsyn.table.engine.search import Search, tallied
from privsyn.table.engine.sqlglot_later import exp
from privsyn.table.io.arrow import empty_table, frame_of
from privsyn.table.io.output_type import OutputType
from privsyn.table.io.read_in_batches import read_in_batches
from privsyn.table.io.source import A, Question, RawTable
from privsyn.table.schema.schema import Schema

BLOCK = 500
"""Tables among which those that share a scan are looked for: the time for this grows with their square."""

PUBLIC_INPUTS = (
    "that the database answers every query",  # an odd cell may make one fail
    "that each row of a view or query depends on the rows of one person alone",  # its rows are protected
)
"""For the ledger of a table in a database. Nothing here tells a view from a table."""

UNTYPED = (
    "the database declares no type for it, and a type that follows from its cells is not public: declare it"
    " in CREATE TABLE, or give the file"
)

QUERIES = ("SQLQueryResult", "SQLStringView")
"""What ibis calls queries that are written in SQL."""

RESERVED = "privsyn_"
"""How the columns begin that queries add, such as the number of rows that have a value."""

HAS_RESERVED = (
    f"names that begin with {RESERVED} are for what the queries compute: rename it in a view, or give the"
    " table as a file"
)

INTEGERS = 2**31
"""Numbers that a whole number of four bytes holds from 0 on."""

NO_ROWS = (
    "rows in a database are counted there: write all values and bounds into the schema, and of each date or"
    " time its unit or step"
)


def coverings(
    sets: Sequence[Attributes], size_of: Mapping[str, int], finest: int, limit: int
) -> Iterator[tuple[Attributes, list[int]]]:
    """Yield the attributes of finer tables, each with the indices of the sets that it covers.

    A finer table begins with the largest set that is left. Then it gets the attribute that covers the most
    further sets, for the factor by which its cells grow, as long as there are at most `finest`.

    Parameters
    ----------
    sets : sequence of attributes
    size_of : mapping of an attribute to its number of values
    finest : int
        Cells of a finer table, unless one set has more.
    limit : int
        Sets that a finer table covers.

    Examples
    --------
    >>> sets = [("a", "b"), ("a", "c"), ("b", "c"), ("a", "d")]
    >>> list(coverings(sets, {"a": 2, "b": 3, "c": 4, "d": 50}, finest=100, limit=64))
    [(('a', 'd'), [3]), (('b', 'c', 'a'), [0, 1, 2])]
    """
    for start in range(0, len(sets), BLOCK):
        cells = {
            index: prod(size_of[name] for name in sets[index])
            for index in range(start, min(start + BLOCK, len(sets)))
        }
        uncovered = {
            index: frozenset(sets[index]) for index in sorted(cells, key=lambda index: -cells[index])
        }
        while uncovered:
            first = next(iter(uncovered))
            names, size = list(sets[first]), cells[first]
            while True:
                missing = (attributes.difference(names) for attributes in uncovered.values())
                gains = Counter(name for (name, *more) in filter(None, missing) if not more)
                fitting = [name for name in gains if size * size_of[name] <= finest]
                if not fitting:
                    break
                best = max(fitting, key=lambda name: (gains[name] / log2(1 + size_of[name]), name))
                names.append(best)
                size *= size_of[best]
            covered = sorted(
                [index for index, attributes in uncovered.items() if attributes <= {*names}][:limit]
            )
            yield tuple(names), covered
            for index in covered:
                del uncovered[index]


def margin(finer: Domain, attributes: Attributes) -> exp.Expr:
    """Return the cell of a coarser table, from the column `cell` of a finer one.

    >>> margin(Domain(("a", "b", "c"), (2, 3, 4)), ("c", "a")).sql()
    '(cell % 4) * 2 + CAST((cell - cell % 12) / 12 AS INT)'
    """
    digits = []
    for name in attributes:
        number = finer.names.index(name)
        below, size = prod(finer.sizes[number + 1 :]), finer.sizes[number]
        digit: exp.Expr = exp.column("cell")
        if number:
            digit = exp.Mod(this=digit, expression=exp.convert(below * size))
        if below > 1:  # the division is exact, also where it is one of doubles
            rest = exp.Mod(this=exp.column("cell"), expression=exp.convert(below))
            exact = exp.paren(exp.Sub(this=digit, expression=rest))
            digit = exp.cast(
                exp.Div(this=exact, expression=exp.convert(below), typed=False, safe=False), "int"
            )
        digits.append(digit)
    return position(digits, [finer.size_of[name] for name in attributes])


def position(digits: Sequence[exp.Expr], sizes: Sequence[int]) -> exp.Expr:
    """Return the position of a cell in a table, from those along each axis. The last one changes fastest.

    >>> from sqlglot import column
    >>> position([column("a"), column("b"), column("c")], [5, 6, 7]).sql()
    '((a) * 6 + b) * 7 + c'
    """
    cell: exp.Expr | None = None
    for digit, size in zip(digits, sizes, strict=True):
        before = None if cell is None else exp.Mul(this=exp.paren(cell), expression=exp.convert(size))
        cell = digit if before is None else exp.Add(this=before, expression=digit)
    return exp.convert(0) if cell is None else cell


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

        Raises
        ------
        InputError
            If a column may be taken for one that queries add. A sum over it would be no count: one row would
            move it by its own number. Names are public.
        """
        with replace_errors("the ibis table has no connection, or Arrow has no type for one of its columns"):
            backend = table.get_backend()
            relation = backend.compiler.to_sqlglot(table).subquery("raw")
            types = table.schema().to_pyarrow()
            # Its tables and views, and queries in SQL.
            operations = list(table.op().find(lambda op: type(op).__name__ in {"DatabaseTable", *QUERIES}))
        for name in types.names:
            if name.lower().startswith(RESERVED):
                raise InputError(f"column {name!r}: {HAS_RESERVED}")
        engine = Engine(backend, log)
        if engine.dialect.mixes_types:
            _require_types(engine, operations)
        empty = empty_table(types, "the table")
        return cls(
            frame_of(empty, "the table"),
            public_inputs=PUBLIC_INPUTS,
            form=OutputType.of(empty),
            near=False,
            once=not engine.dialect.searches,
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

    def check(self, codec: Codec) -> None:
        """Refuse a column that SQL cannot code exactly, before anything is asked."""
        self.coding(codec).check()

    def require_again(self, subject: str) -> None:
        """Refuse an open schema where rows of persons are bounded, and where nothing is searched."""
        if self.once:
            raise InputError(NO_ROWS)

    def check_search(self, open_schema: OpenSchema) -> None:
        """Refuse an open column that SQL cannot count exactly, before anything is asked.

        A released answer chooses which columns are counted as distances: all that may be are tried.
        """
        if self.once and open_schema.open:
            raise InputError(f"column {open_schema.open[0]!r}: {NO_ROWS}")
        if not self.once:
            self._search().check(open_schema)
            filled = open_schema.fill({}, {})
            without_gaps = open_schema.spreads(filled).never_with_gaps
            coding = self.coding(Codec.for_table(filled, self.head, fine=True, without_gaps=without_gaps))
            for column in coding.codec.gaps:
                for attribute in coding.codec.attributes_of(column):
                    coding.code(attribute)

    def tally(self, counted: Sequence[Any], add: Callable[[list[Any], list[Any]], list[Any]]) -> list[Any]:
        """Return what the engine counts of all rows, for each question."""
        close_at_end(self.engine.close)
        self.engine.begin()
        return tallied(self.engine, self._search, counted)

    def counter(self, codec: Codec) -> CountTables:
        """Return what counts the rows: a temporary table of their codes, which the engine keeps."""
        codes = self.keep(self.coding(codec).query())
        return CodedTable(self.engine, codes, names_of(codec)).count

    def _search(self) -> Search:
        return Search(self.relation, self.types, self.engine.dialect)

    def keep(self, query: exp.Select) -> exp.Table:
        """Write the rows of a query into a temporary table inside the engine, and return its name."""
        close_at_end(self.engine.close)
        self.engine.begin()
        table = self.engine.keep(query)
        self.engine.commit()
        return table

    def coding(self, codec: Codec) -> Coding:
        """Return the codes of a codec as a query; refuse a column that SQL cannot code exactly."""
        return Coding(self.relation, self.types, self.engine.dialect, codec)


class CodedTable:
    """A temporary table of codes, and the one of joined codes that was asked for last.

    Parameters
    ----------
    engine : Engine
    table : sqlglot table
    columns : mapping of an attribute to its column
    also : sequence of str
        Further columns, such as the person of a row.
    """

    def __init__(
        self, engine: Engine, table: exp.Table, columns: Mapping[str, str], also: Sequence[str] = ()
    ) -> None:
        self.engine, self._table, self._columns, self._also = engine, table, dict(columns), also
        self._joined: tuple[Grouping, exp.Table] = NO_GROUPS, table

    def count(self, tables: Tables, some: Callable[[exp.Table], exp.Expr] | None = None) -> list[Ints]:
        """Return tables of counts, in groups of the codes, of all rows or of `some` of them."""
        rows = self.joined(tables)
        source = rows if some is None else some(rows)
        counts = dict[int, Ints]()
        alone = list[int]()
        dialect = self.engine.dialect
        for names, covered in coverings(tables.sets, tables.domain.size_of, dialect.finest, dialect.parts):
            if len(covered) == 1:
                alone += covered
                continue
            finer = tables.domain.project(names)
            margins = [
                Cells(margin(finer, tables.sets[index]), prod(tables.shapes[index])) for index in covered
            ]
            counted = self.engine.count_margins(source, self.cells(finer), margins)
            counts |= zip(covered, counted, strict=True)
        cells = [self.cells(tables.domain.project(tables.sets[index])) for index in alone]
        counts |= zip(alone, self.engine.count(source, cells), strict=True)
        return [counts[index].reshape(shape) for index, shape in enumerate(tables.shapes)]

    def cells(self, domain: Domain) -> Cells:
        """Return the cells of a table of some attributes."""
        return Cells(self.cell(domain), prod(domain.shape))

    def cell(self, domain: Domain, grouping: Grouping = NO_GROUPS) -> exp.Expr:
        """Return the place of a row in a table, the last attribute of which changes fastest.

        Parameters
        ----------
        domain : Domain
            Of the groups.
        grouping : Grouping, optional
            Of the codes of the same attributes.
        """
        names = [self._columns[attribute] for attribute in domain.names]
        codes: list[exp.Expr] = [exp.column(name) for name in names]
        if grouping:
            dialect = self.engine.dialect
            codes = [
                grouped(name, groups, dialect) for name, groups in zip(names, grouping.groups, strict=True)
            ]
        kind = "int" if prod(domain.sizes) <= INTEGERS else "bigint"
        return position([exp.cast(code, kind) for code in codes], domain.sizes)

    def joined(self, tables: Tables) -> exp.Table:
        """Return the table of joined codes, written once: each pair would compute them again."""
        grouping, merged = tables.grouping, tables.domain
        if not grouping:
            return self._table
        if self._joined[0] is not grouping:
            if self._joined[0]:
                self.engine.forget(self._joined[1])
            dialect = self.engine.dialect
            codes = [
                exp.alias_(
                    exp.cast(grouped(self._columns[name], group, dialect), dialect.code_type(size)),
                    self._columns[name],
                )
                for name, group, size in zip(merged.names, grouping.groups, merged.sizes, strict=True)
            ]
            also = (exp.column(name, quoted=True) for name in self._also)
            self._joined = grouping, self.engine.keep(exp.select(*codes, *also).from_(self._table.copy()))
        return self._joined[1]


def _require_types(engine: Engine, operations: Sequence[Any]) -> None:
    """Refuse columns whose type ibis takes from a cell: a private row would decide what is refused."""
    if any(type(operation).__name__ in QUERIES for operation in operations):
        raise InputError("a query in SQL has no declared types in SQLite: use ibis, or give the file")
    for column in chain.from_iterable(engine.untyped(operation.name) for operation in operations):
        raise InputError(f"column {column!r}: {UNTYPED}")


def is_ibis(table: object) -> bool:
    """Return whether this is a table of ibis, which is not imported for the test.

    >>> is_ibis("people.csv")
    False
    """
    return type(table).__module__.startswith("ibis.") and hasattr(table, "get_backend")


def open_table(
    source: object, schema: Schema | None, *, unit: str | tuple[str, ...] | None = None
) -> RawTable:
    """Open a table to be counted, wherever its rows are; see `read_in_batches`."""
    return EngineTable.of(source) if is_ibis(source) else read_in_batches(source, schema, unit=unit)
