"""DATA that is the URL of a database, in which `privsyn synth` counts the rows where they are."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from privsyn.errors import InputError, replace_errors
from privsyn.files import close_at_end

if TYPE_CHECKING:
    from privsyn.table.database.database import Database
    from privsyn.table.engine.engine_table import EngineTable

FILES = ("duckdb", "sqlite")
"""Schemes of URLs that lead to a file, which is not made if it is not there."""

TABLES = "SELECT table_name FROM information_schema.tables WHERE table_schema = CURRENT_SCHEMA()"
"""The tables and views of DuckDB, from its catalogue."""


@dataclass(frozen=True)
class DatabaseUrl:
    """The URL of a database, with the table to be counted in it. Its password is never shown or written.

    Parameters
    ----------
    url : str
    table : str, optional
        With a schema of the database before a dot. Default: the only table there is.
    log : Path, optional
        The file that gets all SQL.
    """

    url: str
    table: str | None = None
    log: Path | None = None

    @property
    def scheme(self) -> str:
        """The kind of the database."""
        return urlsplit(self.url).scheme

    @property
    def is_file(self) -> bool:
        """Whether the database is a file."""
        return self.scheme in FILES

    def account(self, file: Path) -> Path:
        """Return the path that says which account the table has; see `privsyn.account.files`.

        A database that is a file has the account that its file has when its rows are read. One of a server
        has that of its name in the folder of another file. All tables of a database have one account. The
        host is no part of it: a server has several names, which would be several accounts.

        >>> DatabaseUrl("postgres://me:word@host/shop", "orders").account(Path("out.parquet")).as_posix()
        'shop'
        """
        from privsyn.table.io.formats import SEPARATOR, file_of

        if self.is_file:
            named = Path(f"{self._file}{SEPARATOR}{self.table}")
            return named if self.table and file_of(named) == self._file else self._file
        name = urlsplit(self.url).path.strip("/") or self.scheme
        return file.with_name(re.sub(r"[^\w.-]", "_", name))

    @property
    def _file(self) -> Path:
        """The file of a database that is one: from the root, or from here if none is there."""
        parts = urlsplit(self.url)
        path = f"{parts.netloc}{parts.path}"
        if path.startswith("/"):
            absolute, relative = Path("/" + path.lstrip("/")), Path(path.lstrip("/"))
            return relative if relative.exists() and not absolute.exists() else absolute
        return Path(path)

    def connect(self) -> Any:
        """Return a connection of ibis, which ends with the command.

        Raises
        ------
        InputError
            If ibis or the driver is missing, the file is not there, or the database refuses the connection.
        """
        from privsyn.table.engine.dialects import Dialect

        with replace_errors("a database needs ibis: run pip install 'privsyn[engine]'", ImportError):
            import ibis
        kind = "postgres" if self.scheme == "postgresql" else self.scheme
        Dialect.of(kind)  # before a driver is installed for a database that cannot be used
        url = self.url
        if self.is_file:
            if not self._file.is_file():
                raise InputError(
                    f"{self._file}: there is no such file: write {self.scheme}:///folder/file"
                    " and --table NAME"
                )
            url = urlsplit(url)._replace(netloc="", path=str(self._file.absolute())).geturl()
        options = {"read_only": True} if kind == "duckdb" else {}
        driver = f"{self.scheme}: its driver is missing: run pip install 'ibis-framework[{kind}]'"
        refused = f"{self.scheme}: no connection: check host, database, user and password in the URL"

        def message(error: Exception) -> str:
            return driver if isinstance(error, ImportError) else refused

        with replace_errors(message):
            connection = ibis.connect(url, **options)
        close_at_end(partial(_disconnect, connection))
        return connection

    def open(self, database: Database) -> EngineTable | dict[str, EngineTable]:
        """Return what `fit` takes: a table, or linked tables by their names."""
        from privsyn.table.engine.engine_table import EngineTable

        if self.table is not None and database.single is None:
            raise InputError("--table: the schema names the tables: leave it out")
        connection, log = self.connect(), self._writer()
        if database.single is None:
            return {name: EngineTable.of(self._table(connection, name), log) for name in database.names}
        return EngineTable.of(self._table(connection, self.table or self._only_table()), log)

    def _only_table(self) -> str:
        names = list[str]()
        with suppress(Exception):  # some versions of drivers cannot list them, nor do more on that connection
            connection = self.connect()
            if self.scheme == "duckdb":  # from DuckDB 2 on, Ibis 12 cannot list them
                names += [name for (name,) in connection.con.execute(TABLES).fetchall()]
            else:
                names += connection.list_tables()
        if len(names) != 1:
            raise InputError(f"--table: name the table of the {self.scheme} database")
        return names[0]

    def _table(self, connection: Any, name: str) -> Any:
        folder, _, last = name.rpartition(".")
        with replace_errors(f"--table {name}: there is no such table"):
            return connection.table(last, database=folder or None)

    def _writer(self) -> Callable[[str], object] | None:
        """Return what writes each statement into the log, from the first one on in a new file."""
        if self.log is None:
            return None
        file, modes = self.log, iter("w")

        def write(statement: str) -> None:
            with file.open(next(modes, "a"), encoding="utf-8") as lines:
                lines.write(f"{statement};\n")

        return write


def _disconnect(connection: Any) -> None:
    with suppress(Exception):  # it may be broken
        connection.disconnect()


def database_url(text: str) -> DatabaseUrl:
    """Return the URL of a database; refuse a text that is none, without a word of it."""
    with replace_errors(
        "the URL of the database cannot be read: write signs such as @ / [ in it as %40 %2F %5B"
    ):
        parts = urlsplit(text)
        _ = parts.hostname, parts.port
    return DatabaseUrl(text)


def source_and_path(
    data: Path | DatabaseUrl, beside: Path, table: str | None, log: Path | None, report: Path | None
) -> tuple[Path | DatabaseUrl, Path]:
    """Return where the rows are, and the path that says which account they have.

    That of a database of a server is in the folder of the file `beside`.
    """
    if isinstance(data, DatabaseUrl):
        if report is not None:
            raise InputError("--report reads rows, which stay in the database: leave it out")
        source = replace(data, table=table, log=log)
        return source, source.account(beside)
    for option, value in (("--table", table), ("--sql", log)):
        if value is not None:
            raise InputError(f"{option}: is for the URL of a database: leave it out")
    return data, data


def check_account(
    source: Path | DatabaseUrl, budget: Path | None, policy: Path | None, *, declined: bool
) -> None:
    """Refuse a table of a server without a named budget file: runs in two folders would have two accounts."""
    is_named = declined or budget is not None or policy is not None
    if isinstance(source, DatabaseUrl) and not (source.is_file or is_named):
        raise InputError(
            f"{source.scheme}: a server has no folder for the budget file: give --budget FILE.jsonl, the same"
            " in each run on this database, or --no-budget"
        )
