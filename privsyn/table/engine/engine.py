"""A connection to a database: it counts rows there, and only counts and released values come back.

Privacy: four methods read answers about rows. `Engine.count` and `Engine.count_margins` send queries that are
by construction counts of rows, grouped by public cells. `Engine.ranked` reads the votes for values by their
ranks, and `Engine.values_at` the values whose noisy votes passed a threshold (see
`privsyn.table.engine.search`). Counts and votes are exact, and private like those of
`privsyn.private.rows.Rows`: noise is added where they arrive, never in the database. What an engine keeps
(`Engine.keep`) stays there, and so do the finer counts from which it adds up margins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from secrets import token_hex
from typing import Any

import numpy as np

from privsyn.errors import InputError, replace_errors
from privsyn.marginals.domain import Ints
from privsyn.table.engine.arithmetic import RINT, rint
from privsyn.table.engine.dialects import Dialect
from privsyn.table.engine.sqlglot_later import exp
from privsyn.table.io.formats import quoted

FAILED = (
    "the database did not answer a query: is the connection open, may this user read the table and create"
    " temporary tables, and does every row have the types that the table declares?"
)

NO_SNAPSHOT = (
    "each statement of the open transaction may see other rows: commit it before the fit, or begin it with"
    " ISOLATION LEVEL REPEATABLE READ"
)

TRANSACTION = "SELECT 0 AS number, 0 AS cell, TXID_CURRENT() AS rows_counted"
"""The number of the transaction of DuckDB: without an open one each statement has its own."""

BITS = (
    "SELECT 0 AS number, 0 AS cell, CAST(CURRENT_SETTING('perfect_ht_threshold') AS BIGINT) AS rows_counted"
)
"""Up to how many bits of a cell DuckDB counts in an array, which takes half the time of a hash table."""

SET_BITS = "SET perfect_ht_threshold = "

LISTED = 1000
"""Ranks of values that one query lists."""

LARGEST = 2**62
"""More rows than any table has."""


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of a table of counts, as an expression over the columns of a table.

    Parameters
    ----------
    sql : sqlglot expression
        Whole numbers from 0 to below `size`; NULL for a row that is in no cell.
    size : int
    """

    sql: exp.Expr
    size: int


class Engine:
    """A database in which rows are counted, through a connection of ibis.

    Parameters
    ----------
    backend : ibis backend
    log : callable, optional
        Gets the text of each statement before it is sent.
    """

    def __init__(self, backend: Any, log: Callable[[str], object] | None = None) -> None:
        self._backend = backend
        self._log = log or (lambda _: None)
        self.dialect = Dialect.of(backend.name)
        if self.dialect.name == "sqlite":  # it runs in this process, and has no such function
            backend.con.create_function(RINT, 1, rint, deterministic=True)
        self._kept: list[str] = []
        self._is_widened, self._at_end = False, list[str]()
        self._is_begun = self._is_ours = False

    def count(self, source: exp.Expr, cells: Sequence[Cells], rows: str | None = None) -> list[Ints]:
        """Return the exact number of rows in each cell, an array of shape (size,) for each of `cells`.

        Parameters
        ----------
        source : sqlglot expression
            A table, as `keep` returns it, or a subquery with a name.
        cells : sequence of Cells
        rows : str, optional
            A column of `source` with the number of rows for which each of its rows stands. Default: one.

        Raises
        ------
        InputError
            If the database does not answer, or with anything but counts of these cells.
        """
        sizes, counts = [part.size for part in cells], list[Ints]()
        for query, numbers in self.dialect.counts(source, [part.sql for part in cells], sizes, rows):
            counts += self._counts(query, sizes[numbers.start : numbers.stop])
        return counts

    def count_margins(self, source: exp.Expr, finer: Cells, margins: Sequence[Cells]) -> list[Ints]:
        """Return the counts of coarser cells, as `count` does, from one scan. The finer counts stay there.

        Parameters
        ----------
        source : sqlglot expression
        finer : Cells
        margins : sequence of Cells
            Over the column `cell`, which has the finer cells.
        """
        query = self.dialect.margins(source, finer.sql, [part.sql for part in margins])
        return self._counts(query, [part.size for part in margins])

    def _counts(self, query: str, sizes: Sequence[int]) -> list[Ints]:
        """Return the counts of a query of rows by number and cell, an array of each size."""
        answer = self._answer(query)
        if not _are_counts(answer, np.array(sizes)):
            raise InputError(FAILED)
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        counts = np.zeros(starts[-1], np.int64)
        counts[starts[answer[:, 0]] + answer[:, 1]] = answer[:, 2]
        return np.split(counts, starts[1:-1])

    def ranked(self, table: exp.Table) -> Ints:
        """Return the votes for the values in a temporary table, by the rank of each value.

        Parameters
        ----------
        table : sqlglot table
            As `keep` returns it, with columns `cell`, the rank from 0, and `units`, the votes.
        """
        number = exp.alias_(exp.convert(0), "number")
        answer = self._answer(self.dialect.write(exp.select(number, "cell", "units").from_(table.copy())))
        if not _are_counts(answer, np.array([len(answer)])):
            raise InputError(FAILED)
        votes = np.zeros(len(answer), np.int64)
        votes[answer[:, 1]] = answer[:, 2]
        return votes

    def untyped(self, table: str) -> list[str]:
        """Return the columns of a table or view of SQLite that declare no type: the catalogue says it."""
        with self._result(f"PRAGMA table_info({quoted(table)})") as result, replace_errors(FAILED):
            return [str(name) for _, name, kind, *_ in _fetched(result) if not kind]

    def values_at(self, table: exp.Table, ranks: Ints) -> list[Any]:
        """Return the values of some ranks in a temporary table with columns `cell` and `value`.

        Privacy: only of ranks whose noisy votes passed a threshold. These values are released. The ranks are
        not, as they count rare values: the log does not have them.
        """
        values = {}
        for start in range(0, len(ranks), LISTED):
            listed = list(map(exp.convert, ranks[start : start + LISTED].tolist()))
            query = exp.select("cell", "value").from_(table.copy())
            logged = f"{self.dialect.write(query)} WHERE cell IN (...)"
            query = query.where(exp.In(this=exp.column("cell"), expressions=listed))
            with self._result(self.dialect.write(query), logged) as result, replace_errors(FAILED):
                values.update({int(rank): value for rank, value in _fetched(result)})
        if values.keys() != {*ranks.tolist()}:
            raise InputError(FAILED)
        return [values[rank] for rank in ranks.tolist()]

    def keep(self, query: exp.Select) -> exp.Table:
        """Write the rows of a query into a temporary table inside the engine, and return its name."""
        name = f"privsyn_{token_hex(6)}"
        self._send(self.dialect.create(name, query))
        self._kept.append(name)
        return self.dialect.table(name)

    def forget(self, table: exp.Table) -> None:
        """Drop a temporary table."""
        self._kept.remove(table.name)
        self._send(self.dialect.drop(table.name))

    def is_at(self, engine: Engine) -> bool:
        """Return whether both are one connection."""
        return self._backend is engine._backend

    def hide(self, secret: str) -> None:
        """Keep a key out of the log from now on."""
        log = self._log
        self._log = lambda statement: log(statement.replace(secret, "..."))

    def define(self, name: str, function: Callable[[Any], Any]) -> None:
        """Let SQLite call a function of one argument, which runs in this process."""
        with replace_errors(FAILED):
            self._backend.con.create_function(name, 1, function, deterministic=True)

    def begin(self) -> None:
        """Begin the transaction in which all statements see the same rows, if the engine has one.

        A transaction that the caller has begun serves as well, and it is the caller who ends it.

        Raises
        ------
        InputError
            If it does not begin, or if each of its statements may see other rows.
        """
        if self.dialect.name == "duckdb" and not self._is_widened:
            # It counts in arrays of the finest tables, until the end; another engine may have widened it.
            bits, needed = int(self._answer(BITS)[0, 2]), self.dialect.finest.bit_length()
            if bits < needed:
                self._send(f"{SET_BITS}{needed}")
                self._at_end.append(f"{SET_BITS}{bits}")
            self._is_widened = True
        if not self._is_begun and self.dialect.begin:
            is_open = self._is_in_transaction()
            if not is_open:
                self._send(self.dialect.begin)
            self._is_begun, self._is_ours = True, not is_open
            self._require_snapshot()

    def _is_in_transaction(self) -> bool:
        """Return whether one is open. BEGIN would break it in DuckDB, and only warn in PostgreSQL."""
        if self.dialect.name == "duckdb":
            first, second = (int(self._answer(TRANSACTION)[0, 2]) for _ in range(2))
            return first == second
        connection = self._backend.con
        status = getattr(getattr(connection, "info", None), "transaction_status", 0)
        return bool(getattr(connection, "in_transaction", status))

    def _require_snapshot(self) -> None:
        """Refuse a transaction of PostgreSQL that does not see the same rows throughout."""
        if self.dialect.name == "postgres":
            level = exp.func("CURRENT_SETTING", exp.Literal.string("transaction_isolation"))
            setting = exp.select(exp.alias_(level, "level")).subquery("setting")
            levels = [exp.Literal.string(name) for name in ("repeatable read", "serializable")]
            unsteady = exp.not_(exp.In(this=exp.column("level"), expressions=levels))
            (counts,) = self.count(setting, [Cells(exp.cast(unsteady, "int"), 2)])
            if not counts[0]:
                raise InputError(NO_SNAPSHOT)

    def commit(self) -> None:
        """End the transaction, unless the caller has begun it. Temporary tables stay."""
        self._end("COMMIT")

    def _end(self, statement: str) -> None:
        is_ours, self._is_begun, self._is_ours = self._is_ours, False, False
        if is_ours:
            self._send(statement)

    def close(self) -> None:
        """Drop the temporary tables, and set back what was set. An engine that is gone has done so."""
        with suppress(InputError):
            self._end("ROLLBACK")
        for name in self._kept:
            with suppress(InputError):
                self._send(self.dialect.drop(name))
        self._kept.clear()
        for statement in self._at_end:
            with suppress(InputError):
                self._send(statement)
        self._at_end.clear()
        self._is_widened = False

    def _send(self, statement: str) -> None:
        """Run a statement that has no answer."""
        with self._result(statement):
            pass

    def _answer(self, query: str) -> Ints:
        """Return the answer of a query of three columns of whole numbers."""
        with self._result(query) as result, replace_errors(FAILED):
            if hasattr(result, "fetchnumpy"):  # DuckDB, without a Python object for each number
                columns: Any = [np.asarray(column, np.int64) for column in result.fetchnumpy().values()]
                return np.stack(columns, axis=1)
            return np.array([tuple(map(int, row)) for row in _fetched(result)], np.int64).reshape(-1, 3)

    @contextmanager
    def _result(self, statement: str, logged: str | None = None) -> Iterator[Any]:
        """Log and run a statement. Errors of drivers quote cells, so none is shown."""
        self._log(statement if logged is None else logged)
        with replace_errors(FAILED):
            result = self._backend.raw_sql(statement)
        try:
            yield result
        finally:
            if self.dialect.has_cursors:
                with suppress(Exception):
                    result.close()


def _fetched(result: Any) -> Any:
    """Return the rows of a result as sequences."""
    rows = result.collect() if hasattr(result, "collect") else result
    return rows.fetchall() if hasattr(rows, "fetchall") else rows


def _are_counts(answer: Ints, sizes: Ints) -> bool:
    """Return whether rows of (number, cell, count) are counts of cells that were asked for, each once."""
    number, cell, count = answer.T
    if not ((number >= 0) & (number < len(sizes)) & (count >= 0) & (count < LARGEST)).all():
        return False
    if not ((cell >= 0) & (cell < sizes[number])).all():
        return False
    is_counted = np.zeros(sizes.sum(), bool)
    is_counted[(np.cumsum(sizes) - sizes)[number] + cell] = True
    return bool(np.count_nonzero(is_counted) == len(answer))
