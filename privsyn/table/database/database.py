"""Database: what is public about several tables that keys link, and how they are linked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from privsyn.abilities import LINKED, TOGETHER
from privsyn.errors import InputError, about, safe_repr
from privsyn.table.database.declared import Table
from privsyn.table.database.lives import Lasting
from privsyn.table.database.table_tree import TableTree
from privsyn.table.database.tree_checks import (
    check_links,
    check_summary,
    seen_from,
    with_lookups_in_key,
    with_rules,
)
from privsyn.table.schema.about import About, read_about
from privsyn.table.schema.columns import Text
from privsyn.table.schema.schema import Schema

PERSONS, ROWS = "persons", "rows"
"""The tables of one table whose rows belong to persons."""


@dataclass(frozen=True)
class Database(TableTree):
    """Declare what is public about several tables, and how they are linked.

    One row of the root, the table without a parent, is a person: it is protected together with all rows that
    belong to it, in all tables. So is a row of another table without a parent, which `dealt` names. Look-up
    tables are public.

    Parameters
    ----------
    tables : mapping of a name to a Table
    bare : bool
        Whether the tables are without their schemas, with which their rules were checked, as in a model file.
    single : str, optional
        The table that somebody gave without a database, and gets back alone: its rows, or the rows of persons
        that are the root. Default: all tables are given, by their names.
    about : About or mapping, optional
        The publisher's words on all tables. The schema of a table may have its own title and description.

    Examples
    --------
    >>> from privsyn import Categorical, Numerical
    >>> persons = Table(Schema({"age": Numerical(0, 110)}), key="person")
    >>> visits = Table(Schema({"ward": Categorical(["a", "b"])}), parent="persons", link="person")
    >>> Database({"visits": visits, "persons": persons}).names
    ('persons', 'visits')
    """

    single: str | None = field(default=None, kw_only=True, repr=False)
    about: About | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.tables, Mapping) or not self.tables:
            raise InputError('a database maps names to tables, as in Database({"persons": Table(...)})')
        object.__setattr__(self, "tables", MappingProxyType(dict(self.tables)))
        object.__setattr__(self, "about", read_about(self.about))
        for name, table in self.tables.items():
            if not isinstance(name, str) or not name or re.search(r"[./\\:\n()]", name):
                raise InputError(f"the table name {safe_repr(name)} is no name of a file: rename the table")
            if not isinstance(table, Table):
                raise InputError(f"table {name!r}: {safe_repr(table)} is not a Table")
            words = None if table.schema is None else table.schema.about
            if self.single is None and words is not None and (of_all := words.of_all_tables):
                raise InputError(
                    f"table {name!r}: about: {of_all[0]} is of all tables: write it under the about of these"
                )
        tables = {name: with_lookups_in_key(self, table) for name, table in self.tables.items()}
        object.__setattr__(self, "tables", MappingProxyType(tables))
        for name, table in self.tables.items():
            with self.naming_errors(name):
                check_links(self, name, table)
                if table.parent is None and table.about_siblings and name != self.single:
                    why = "is about rows of one parent: this table has no parent"
                    raise InputError(f"{table.about_siblings[0]} {why}")
        if any(table.parent for table in self.private.values()):
            import networkx as nx

            if circle := next(nx.simple_cycles(self._links), []):
                name = next(name for name in self.tables if name in circle)
                why = "it belongs to itself through its parents: one table has no parent"
                raise InputError(f"table {name!r}: {why}")
        for name, table in self.tables.items():  # last: a misspelled parent would be called a wrong summary
            for derived, summary in table.derive.items():
                with self.naming_errors(name), about(f"derive {derived!r}"):
                    check_summary(self, name, summary)
        if self.single is not None and self.single not in self.private:
            raise InputError(f"there is no private table {safe_repr(self.single)}")
        if len(roots := self._tables_of_persons) > 1:
            raise InputError(
                f"the tables {', '.join(map(repr, roots))} have no parent: one private table, whose rows are"
                " the persons, has no parent; name another one in dealt, or leave it out"
            )
        if not roots:
            raise InputError("all are public: one private table, whose rows are the persons, has no parent")
        for step in (seen_from, with_rules):
            tables = {}
            for name, table in self.tables.items():
                with self.naming_errors(name):
                    tables[name] = step(self, name, table)
            object.__setattr__(self, "tables", MappingProxyType(tables))
        for name, table in tables.items():
            for summary in (*table.derive.values(), *table.computed.values()):
                child = tables[summary.table]
                follow = child.elsewhere if summary in table.computed.values() else tuple(child.copied)
                if summary.column in follow:
                    why = f"{summary.column!r} follows from another table itself: name that one"
                    raise InputError(f"table {name!r}: {summary}: {why}")

    def __reduce__(self) -> tuple[Any, ...]:
        settings = {name: getattr(self, name) for name in ("bare", "single", "about")}
        return partial(Database, **settings), (dict(self.tables),)

    @property
    def is_linked(self) -> bool:
        """Whether rows depend on rows of another table; not if the one table is given without persons."""
        return self.single != self.root

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of run on it, as `abilities` calls them."""
        if self.single is None:
            return (LINKED,)
        return (TOGETHER,) if self.is_linked else ()

    def with_lasting(self, columns: Mapping[str, Sequence[str]]) -> Database:
        """Return the database with rules by which some `columns` of some tables last.

        >>> from privsyn import Categorical
        >>> visits = Table(Schema({"ward": Categorical(["a", "b"])}), parent="persons", link="id", order="n")
        >>> database = Database({"persons": Table(key="id"), "visits": visits})
        >>> print(*database.with_lasting({"visits": ["ward"]}).tables["visits"].lives)
        ward lasts
        """
        tables = {
            name: replace(table, constraints=[*table.constraints, *map(Lasting, columns[name])])
            if name in columns
            else table
            for name, table in self.tables.items()
        }
        return replace(self, tables=tables)

    def title(self, table: str) -> str:
        """Return the name of a table in the questions of a ledger; "" for the only table of a run."""
        return table if self.is_linked else ""

    def headed(self, table: str, text: str) -> str:
        """Return a text about a table behind its name, if the user gave it one."""
        return f"{name}: {text}" if (name := self.shown_name(table)) else text

    def naming_errors(self, table: str) -> AbstractContextManager[None]:
        """Begin errors with the name of the table that they are about, if the user gave it one."""
        return about(f"table {name!r}") if (name := self.shown_name(table)) else nullcontext()

    @classmethod
    def of_one(cls, schema: Any = None, name: str = ROWS) -> Database:
        """Return the database of one table that somebody gives, and gets back, without a name.

        Parameters
        ----------
        schema : Schema or Table, optional
            Of a table with rules on the rows of one person.
        """
        return cls({name: schema if isinstance(schema, Table) else Table(schema)}, single=name)

    @property
    def about_persons(self) -> tuple[str, ...]:
        """What is declared about the rows of one person of a table whose persons are not known yet."""
        return () if self.is_linked or self.single is None else self.tables[self.single].about_siblings

    @property
    def schema(self) -> Schema | None:
        """The schema of the one table that somebody gives without a name; None for tables with names."""
        return None if self.single is None else self.tables[self.single].schema

    @property
    def words(self) -> About | None:
        """The publisher's words on what somebody gives: on all tables, or on the one table."""
        return self.schema.about if self.schema is not None else self.about

    @property
    def shown_names(self) -> tuple[str, ...]:
        """The names of private tables that a user reads: none where one table has no name."""
        return tuple(filter(None, map(self.shown_name, self.names)))

    @property
    def shown(self) -> tuple[str, ...]:
        """The private tables that somebody gives and gets back: all, or the `single` one."""
        return tuple(name for name in self.names if self.single in (None, name))

    @property
    def named(self) -> tuple[str, ...]:
        """The private tables with which a question may begin: none where one table is that of the persons.

        Of one table whose rows belong to persons, they are ``persons`` and ``rows``.
        """
        return self.names if self.is_linked else ()

    def by_name(self, tables: Any) -> Any:
        """Return tables by their names, as somebody gives them: one table has no name yet.

        >>> database = Database.of_one()
        >>> database.by_name("people.csv"), database.without_names({"rows": "people.csv"})
        ({'rows': 'people.csv'}, 'people.csv')
        """
        return tables if self.single is None else {self.single: tables}

    def without_names(self, tables: Mapping[str, Any]) -> Any:
        """Return tables as somebody gets them: by their names, or the one table alone."""
        return tables if self.single is None else tables[self.single]

    def shown_name(self, table: str) -> str:
        """Return the name that a user reads of a table; "" where the user gave one table, without a name."""
        return table if self.single is None else ""

    def shown_column(self, table: str, column: str) -> str:
        """Return the name that a user reads of a column: ``column``, or ``table.column`` in a database."""
        return f"{name}.{column}" if (name := self.shown_name(table)) else column

    def tree(self, root: str) -> Database:
        """Return one kind of persons and the tables below it; links to others become text, which is left out.

        >>> staff = Table(Schema({}), key="staff_id")
        >>> persons = Table(Schema({}), key="person", dealt={"nurse": "staff"})
        >>> Database({"persons": persons, "staff": staff}).tree("staff").names
        ('staff',)
        """
        if len(self.roots) == 1:
            return self
        inside = {name for name in self.names if root in (name, *self.above(name))}
        tables = dict(self.public)
        for name in inside:
            table = self.tables[name]
            to_others = [column for column, target in table.dealt.items() if target not in inside]
            dealt = {column: target for column, target in table.dealt.items() if target in inside}
            schema = table.schema
            if schema is not None and schema.columns:
                schema = replace(schema, columns={**schema.columns, **dict.fromkeys(to_others, Text())})
            tables[name] = replace(table, schema=schema, dealt=dealt)
        return replace(self, tables=tables)
