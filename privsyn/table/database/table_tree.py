"""TableTree: tables that keys link, and which of them lie above and below each."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from privsyn.errors import InputError
from privsyn.table.database.declared import Table
from privsyn.table.kinds.keys import key_in_words

if TYPE_CHECKING:
    import networkx as nx


@dataclass(frozen=True)
class TableTree:
    """Tables that keys link, and which of them lie above and below each.

    Parameters
    ----------
    tables : mapping of a name to a Table
    bare : bool
        Whether the tables are without their schemas, with which their rules were checked, as in a model file.
    """

    tables: Mapping[str, Table]
    bare: bool = field(default=False, kw_only=True, repr=False, compare=False)

    @cached_property
    def _links(self) -> nx.DiGraph[str]:
        """The tables, each with a link to the tables below it."""
        import networkx as nx

        links: nx.DiGraph[str] = nx.DiGraph()
        links.add_nodes_from(self.private)
        links.add_edges_from((table.parent, name) for name, table in self.private.items() if table.parent)
        return links

    def data_columns(self, name: str) -> list[str] | None:
        """Return the columns of data of a table; None if they follow from the data."""
        table = self.tables[name]
        return None if table.schema is None else [*table.schema.coded, *table.lookups]

    @property
    def private(self) -> dict[str, Table]:
        """The tables of private rows."""
        return {name: table for name, table in self.tables.items() if table.public is None}

    @property
    def public(self) -> dict[str, Table]:
        """The look-up tables."""
        return {name: table for name, table in self.tables.items() if table.public is not None}

    @property
    def roots(self) -> tuple[str, ...]:
        """The private tables without a parent: the root, and those whose rows are persons of their own."""
        roots = [name for name, table in self.private.items() if table.parent is None]
        return (self.root, *(name for name in roots if name != self.root))

    @property
    def other_persons(self) -> tuple[tuple[str, str], ...]:
        """The tables whose rows are persons of their own, besides the root, each with its key in words."""
        return tuple((name, key_in_words(self.tables[name].key)) for name in self.roots[1:])

    @property
    def _tables_of_persons(self) -> list[str]:
        """The tables without a parent that no other table deals; if all are dealt, the first of them."""
        roots = [name for name, table in self.private.items() if table.parent is None]
        dealt = {
            target
            for name, table in self.private.items()
            for target in table.dealt.values()
            if target != name
        }
        return [name for name in roots if name not in dealt] or roots[:1]

    @property
    def root(self) -> str:
        """The table whose rows are the persons."""
        return self._tables_of_persons[0]

    @property
    def may_lack(self) -> str | None:
        """The root if it has a key of one column alone: it need not be given, as links name its rows.

        >>> from privsyn import Schema
        >>> ratings = Table(parent="users", link="user_id")
        >>> TableTree({"users": Table(Schema({}), key="user_id"), "ratings": ratings}).may_lack
        'users'
        """
        root = self.tables[self.root]
        return None if root.has_data or len(root.key_columns) != 1 else self.root

    @property
    def below(self) -> tuple[str, ...]:
        """The private tables with a parent, each after its parent."""
        return tuple(name for name in self.names if self.tables[name].parent is not None)

    @property
    def names(self) -> tuple[str, ...]:
        """The tables of private rows, each after its parent; the root and those below it come first."""
        if len(self.private) == 1:
            return (self.root,)
        import networkx as nx

        return tuple(name for root in self.roots for name in nx.dfs_preorder_nodes(self._links, root))

    def copied_keys(self, name: str) -> dict[str, tuple[str, str]]:
        """Return the columns of a table that copy a key, and the table and column whose key it is.

        >>> from privsyn import Database
        >>> tables = {"homes": Table(key="home"), "people": Table(key="person", parent="homes", link="home")}
        >>> trips = Table(parent="people", link="person", constraints=["at == people.home"])
        >>> Database(tables | {"trips": trips}).copied_keys("trips")
        {'at': ('homes', 'home')}
        """
        return {
            column: self.origin(*rule.above)
            for column, rule in self.tables[name].copied.items()
            if rule.above[1] in self.tables[rule.above[0]].keys
        }

    def origin(self, name: str, column: str) -> tuple[str, str]:
        """Return the table above that a column of a key or link comes from, and its column there.

        >>> from privsyn import Database
        >>> people = Table(key=["home", "n"], parent="homes", link="home")
        >>> trips = Table(parent="people", link=["home", "person"])
        >>> database = Database({"homes": Table(key="home"), "people": people, "trips": trips})
        >>> database.origin("trips", "home"), database.origin("trips", "person")
        (('homes', 'home'), ('people', 'n'))
        """
        while column in (links := self.tables[name].link_columns):
            name = self.tables[name].parent or ""
            column = self.tables[name].key_columns[links.index(column)]
        return name, column

    def looked_up(self, name: str, columns: Collection[str]) -> dict[str, str]:
        """Return the look-up table of each column that has one: those named, and those by the same name.

        Parameters
        ----------
        name : str
            A table of private rows.
        columns : collection of str
            Its columns of data.
        """
        lookups = dict(self.tables[name].lookups)
        for lookup, table in self.public.items():
            key = table.key
            if key in columns and key not in self.tables[name].lookups:
                if key in lookups:
                    both = f"{lookups[key]!r} and {lookup!r}"
                    raise InputError(f"{key!r} is the key of {both}: say in lookups which one is meant")
                lookups[key] = lookup
        return lookups

    def children(self, name: str) -> tuple[str, ...]:
        """Return the tables whose parent is `name`."""
        return tuple(child for child, table in self.tables.items() if table.parent == name)

    def above(self, name: str) -> tuple[str, ...]:
        """Return the parent of a table, the parent of that, ..."""
        ancestors: list[str] = []
        while (parent := self.tables[ancestors[-1] if ancestors else name].parent) is not None:
            ancestors.append(parent)
        return tuple(ancestors)
