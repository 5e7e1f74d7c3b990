"""What differs between engines: how they count many tables at once, compare text and keep tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from privsyn.errors import InputError
from privsyn.table.engine.scales import Days, Moments, Scale
from privsyn.table.engine.sqlglot_later import exp

CELLS = 10**6
"""Cells of the tables of counts that one query asks for, unless one table has more: they are sorted here."""


@dataclass(frozen=True)
class Dialect:
    """The SQL of one kind of engine.

    Parameters
    ----------
    name : str
        As sqlglot and ibis call it.
    begin : str
        The statement that begins a transaction in which all queries see the same rows; empty if none does.
    has_cursors : bool
        Whether a result is a cursor of its own, which has to be closed.
    small : str
        The type of codes below 256.
    far_years : bool
        Whether dates may lie before the year 1 or after 9999; infinite ones do.
    has_times : bool
        Whether dates and times have types of their own.
    parts : int
        Tables of counts that one query asks for. PostgreSQL sets memory aside for each part of a UNION ALL.
    keeps : bool
        Whether a session may keep temporary tables.
    has_lists : bool
        Whether an element of a constant list takes no longer than a comparison.
    finest : int
        Cells of a table from which the engine adds up several tables of counts: one scan serves them all.
    """

    name: str
    begin: str = ""
    has_cursors: bool = True
    small: str = "SMALLINT"
    far_years: bool = False
    has_times: bool = True
    keeps: bool = True
    parts: int = 64
    has_lists: bool = False
    finest: int = 2**15

    @classmethod
    def of(cls, name: str) -> Dialect:
        """Return the dialect of an engine; refuse one that is not known.

        >>> Dialect.of("oracle")
        Traceback (most recent call last):
        privsyn.errors.InputError: rows cannot be counted in 'oracle': give a file or a data frame
        """
        name = NAMES.get(name, name)
        if name not in DIALECTS:
            raise InputError(f"rows cannot be counted in {name!r}: give a file or a data frame")
        if not DIALECTS[name].keeps:
            raise InputError(
                f"rows cannot be counted in {name!r}, which keeps no temporary table: give a file or a data"
                " frame"
            )
        return DIALECTS[name]

    @property
    def mixes_types(self) -> bool:
        """Whether each cell of a column has a type of its own."""
        return self.name == "sqlite"

    @property
    def searches(self) -> bool:
        """Whether values and bounds are found there: the tests compare these engines with memory."""
        return self.name in ("duckdb", "postgres", "sqlite")

    @property
    def orders_by_code_point(self) -> bool:
        """Whether `text` is ordered like text of Python."""
        return self.name != "tsql"

    def write(self, expression: exp.Expr) -> str:
        """Return a statement as text."""
        return expression.sql(dialect=self.name, copy=False)

    def text(self, column: exp.Expr) -> exp.Expr:
        """Return a column of text as it is compared byte by byte."""
        as_text = exp.cast(column, "text")
        if self.name in ("postgres", "duckdb"):  # whose columns may have collations of their own
            return exp.Collate(this=as_text, expression=exp.to_identifier("C", quoted=True))
        if self.name == "sqlite":
            return exp.Collate(this=as_text, expression=exp.to_identifier("BINARY"))
        if self.name == "tsql":
            return exp.cast(exp.cast(column, "nvarchar(max)"), "varbinary(max)")
        return as_text

    def text_literal(self, text: str) -> exp.Expr:
        """Return a text in SQL."""
        if self.name == "tsql":
            return exp.cast(exp.cast(exp.National(this=text), "nvarchar(max)"), "varbinary(max)")
        return exp.Literal.string(text)

    def order(self, text: str) -> Any:
        """Return the key by which the engine orders texts."""
        return text.encode("utf-16-le" if self.name == "tsql" else "utf-8", "surrogatepass")

    def takes(self, kind: pa.DataType) -> bool:
        """Return whether cells of a type are compared in the engine as in Arrow."""
        return self.has_times or not pa.types.is_temporal(kind)

    def scale(self, scale: Scale) -> Scale:
        """Return the scale; of dates and times, of those that the engine can hold."""
        return replace(scale, far=self.far_years) if isinstance(scale, Days | Moments) else scale

    def day(self, moment: exp.Expr) -> exp.Expr:
        """Return the days since 1970 of a date or time without a zone."""
        date, first = exp.cast(moment, "date"), exp.cast(exp.Literal.string("1970-01-01"), "date")
        return exp.DateDiff(this=date, expression=first, unit=exp.var("DAY"))

    def second(self, moment: exp.Expr) -> exp.Expr:
        """Return the whole seconds since midnight of a time without a zone."""
        hour, minute, second = (
            exp.Floor(this=exp.Extract(this=exp.var(part), expression=moment.copy()))
            for part in ("HOUR", "MINUTE", "SECOND")
        )
        return exp.cast(3600 * hour + 60 * minute + second, "int")

    def code_type(self, size: int) -> exp.DataType:
        """Return the smallest type that holds codes from 0 to below `size`."""
        return exp.DataType(
            this=exp.DType[self.small if size <= 256 else "SMALLINT" if size <= 2**15 else "INT"]
        )

    def apart(self, query: exp.Select) -> exp.Select:
        """Return a subquery whose columns are computed once: some engines would copy them to all places."""
        if self.name == "sqlite":
            return query.limit(-1).offset(0)
        return query.offset(0) if self.name == "postgres" else query

    def table(self, name: str) -> exp.Table:
        """Return a temporary table by its name."""
        return exp.Table(this=exp.Identifier(this=name, temporary=self.name == "tsql"))

    def create(self, name: str, query: exp.Select) -> str:
        """Return the statement that writes a query into a temporary table; Spark keeps it in its cache."""
        if self.name == "spark":
            return f"CACHE TABLE {name} AS {self.write(query)}"
        temporary = exp.Properties(expressions=[exp.TemporaryProperty()])
        table = exp.to_table(name)  # MS SQL's names of temporary tables come with the property
        return self.write(exp.Create(this=table, kind="TABLE", expression=query, properties=temporary))

    def drop(self, name: str) -> str:
        """Return the statement that drops a temporary table."""
        verb = "UNCACHE" if self.name == "spark" else "DROP"
        return f"{verb} TABLE IF EXISTS {self.write(self.table(name))}"

    def counts(
        self, source: exp.Expr, cells: Sequence[exp.Expr], sizes: Sequence[int], rows: str | None = None
    ) -> Iterator[tuple[str, range]]:
        """Yield queries that count rows by cell, each with the range of `cells` that it counts.

        A column `rows` of `source` may say for how many rows each of its rows stands.

        The answer of a query has three columns: the number in that range, the cell, and the number of rows.
        """
        start = 0
        while start < len(cells):
            end, total = start + 1, sizes[start]
            while end < min(start + self.parts, len(cells)) and total + sizes[end] <= CELLS:
                end, total = end + 1, total + sizes[end]
            yield self.write(self._by_parts(source, cells[start:end], rows)), range(start, end)
            start = end

    def margins(self, source: exp.Expr, cell: exp.Expr, margins: Sequence[exp.Expr]) -> str:
        """Return the query that counts rows by cell once, and adds these counts up in coarser cells.

        The counts of the finer cells are no part of the answer, which is that of `counts`.

        Parameters
        ----------
        source, cell : sqlglot expression
        margins : sequence of sqlglot expression
            Over the column `cell`.
        """
        coded = exp.select(exp.alias_(cell.copy(), "cell")).from_(source.copy()).subquery("coded")
        finer = exp.select(exp.column("cell"), _rows()).from_(coded).group_by(exp.column("cell"))
        query = self._by_parts(exp.to_table("finer"), margins, "rows_counted")
        return self.write(query.with_("finer", as_=finer))

    def _by_parts(self, source: exp.Expr, cells: Sequence[exp.Expr], rows: str | None) -> exp.Query:
        number_of_rows = _rows()
        if rows is not None:
            total = exp.cast(exp.Sum(this=exp.column(rows)), "bigint")
            number_of_rows = exp.alias_(total, "rows_counted")
        parts = []
        for index, cell in enumerate(cells):
            columns = [exp.alias_(cell.copy(), "cell"), *([] if rows is None else [exp.column(rows)])]
            coded = exp.select(*columns).from_(source.copy()).subquery("coded")
            number = exp.alias_(exp.convert(index), "number")
            counted = exp.select(number, exp.column("cell"), number_of_rows).from_(coded)
            counted = counted.where(exp.column("cell").is_(exp.null()).not_())
            parts.append(counted.group_by(exp.column("cell")))
        return exp.union(*parts, distinct=False) if len(parts) > 1 else parts[0]


def _rows() -> exp.Expr:
    return exp.alias_(exp.Count(this=exp.Star()), "rows_counted")


DIALECTS = {
    dialect.name: dialect
    for dialect in (
        Dialect(
            "duckdb",
            "BEGIN TRANSACTION",
            has_cursors=False,
            small="UTINYINT",
            far_years=True,
            has_lists=True,
            finest=2**17,
        ),
        Dialect("postgres", "BEGIN ISOLATION LEVEL REPEATABLE READ", far_years=True, parts=8),
        Dialect("sqlite", "BEGIN", small="INT", has_times=False),
        Dialect("bigquery", keeps=False),
        Dialect("snowflake"),
        Dialect("spark", has_cursors=False),
        Dialect("trino", keeps=False),
        Dialect("tsql"),
    )
}
"""By the names that sqlglot gives them."""

NAMES = {"pyspark": "spark", "mssql": "tsql"}
"""Names of ibis where they are others."""
