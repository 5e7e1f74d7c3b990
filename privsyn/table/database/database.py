"""Database: what is public about several tables that keys link, and how they are linked."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import product
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from privsyn.abilities import LINKED, TOGETHER
from privsyn.errors import InputError, about, did_you_mean, safe_repr
from privsyn.table.database.computed_above import ComputedAbove, check_computed_above
from privsyn.table.database.declared import Table
from privsyn.table.database.life_sentences import check_columns
from privsyn.table.database.lives import Lasting
from privsyn.table.database.rules import (
    EQUAL,
    ColumnComparison,
    check_between,
    check_column,
    following,
    orders,
)
from privsyn.table.database.summaries import CHANGES, Computed, Derived
from privsyn.table.kinds.keys import key_in_words
from privsyn.table.schema.columns import Text
from privsyn.table.schema.schema import Schema

if TYPE_CHECKING:
    import networkx as nx

PERSONS, ROWS = "persons", "rows"
"""The tables of one table whose rows belong to persons."""


@dataclass(frozen=True)
class Database:
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

    Examples
    --------
    >>> from privsyn import Categorical, Numerical
    >>> persons = Table(Schema({"age": Numerical(0, 110)}), key="person")
    >>> visits = Table(Schema({"ward": Categorical(["a", "b"])}), parent="persons", link="person")
    >>> Database({"visits": visits, "persons": persons}).names
    ('persons', 'visits')
    """

    tables: Mapping[str, Table]
    bare: bool = field(default=False, kw_only=True, repr=False, compare=False)
    single: str | None = field(default=None, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.tables, Mapping) or not self.tables:
            raise InputError('a database maps names to tables, as in Database({"persons": Table(...)})')
        object.__setattr__(self, "tables", MappingProxyType(dict(self.tables)))
        for name, table in self.tables.items():
            if not isinstance(name, str) or not name or re.search(r"[./\\:\n()]", name):
                raise InputError(f"the table name {safe_repr(name)} is no name of a file: rename the table")
            if not isinstance(table, Table):
                raise InputError(f"table {name!r}: {safe_repr(table)} is not a Table")
        tables = {name: self._with_lookups_in_key(table) for name, table in self.tables.items()}
        object.__setattr__(self, "tables", MappingProxyType(tables))
        for name, table in self.tables.items():
            with about(f"table {name!r}"):
                self._check_links(name, table)
        if any(table.parent for table in self.private.values()):
            import networkx as nx

            if circle := next(nx.simple_cycles(self._links), []):
                name = next(name for name in self.tables if name in circle)
                why = "it belongs to itself through its parents: one table has no parent"
                raise InputError(f"table {name!r}: {why}")
        for name, table in self.tables.items():  # last: a misspelled parent would be called a wrong summary
            for derived, summary in table.derive.items():
                with about(f"table {name!r}"), about(f"derive {derived!r}"):
                    self._check_summary(name, summary)
        if self.single is not None and self.single not in self.private:
            raise InputError(f"there is no private table {safe_repr(self.single)}")
        if len(roots := self._of_persons) > 1:
            raise InputError(
                f"the tables {', '.join(map(repr, roots))} have no parent: one private table, whose rows are"
                " the persons, has no parent; name another one in dealt, or leave it out"
            )
        if not roots:
            raise InputError("all are public: one private table, whose rows are the persons, has no parent")
        for step in (_seen_from, self._with_rules):
            tables = {}
            for name, table in self.tables.items():
                with about(f"table {name!r}"):
                    tables[name] = step(name, table)
            object.__setattr__(self, "tables", MappingProxyType(tables))
        for name, table in tables.items():
            for summary in (*table.derive.values(), *table.computed.values()):
                child = tables[summary.table]
                follow = child.elsewhere if summary in table.computed.values() else tuple(child.copied)
                if summary.column in follow:
                    why = f"{summary.column!r} follows from another table itself: name that one"
                    raise InputError(f"table {name!r}: {summary}: {why}")

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(Database, bare=self.bare, single=self.single), (dict(self.tables),)

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
        return Database(tables, bare=self.bare, single=self.single)

    def title(self, table: str) -> str:
        """Return the name of a table in the questions of a ledger; "" for the only table of a run."""
        return table if self.is_linked else ""

    def headed(self, table: str, text: str) -> str:
        """Return a text about a table behind its name, if the user gave it one."""
        return f"{name}: {text}" if (name := self.shown_name(table)) else text

    def about(self, table: str) -> AbstractContextManager[None]:
        """Begin errors with the name of the table that they are about, if the user gave it one."""
        return about(f"table {name!r}") if (name := self.shown_name(table)) else nullcontext()

    @classmethod
    def of_one(cls, schema: Any = None, name: str = ROWS) -> Database:
        """Return the database of one table that somebody gives, and gets back, without a name."""
        return cls({name: Table(schema)}, single=name)

    @property
    def schema(self) -> Schema | None:
        """The schema of the one table that somebody gives without a name; None for tables with names."""
        return None if self.single is None else self.tables[self.single].schema

    @property
    def shown_names(self) -> tuple[str, ...]:
        """The names of private tables that a user reads: none where one table has no name."""
        return tuple(filter(None, map(self.shown_name, self.names)))

    @property
    def shown(self) -> tuple[str, ...]:
        """The private tables that somebody gives and gets back: all, or the `single` one."""
        return tuple(name for name in self.names if self.single in (None, name))

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

    def _with_lookups_in_key(self, table: Table) -> Table:
        """Return a table with look-ups for columns of its key that are called like a public key."""
        data = () if table.schema is None else table.schema.columns
        called = {
            public.key: name
            for name, public in self.tables.items()
            if public.public is not None and public is not table
        }
        known_columns = (*table.link_columns, *table.lookups, *data)
        lookups = {
            name: called[name] for name in table.key_columns if name in called and name not in known_columns
        }
        if len(table.key_columns) < 2 or not lookups:
            return table
        return replace(table, lookups={**table.lookups, **lookups})

    def _check_links(self, name: str, table: Table) -> None:
        if table.parent is not None:
            if table.parent == name:
                raise InputError("its parent is the table itself, which is not supported: give another one")
            if table.parent not in self.tables:
                meant = did_you_mean(table.parent, self.tables)
                raise InputError(f"there is no table {table.parent!r}, which is its parent{meant}")
            if self.tables[table.parent].public is not None:
                raise InputError(
                    f"its parent {table.parent!r} is public: name it in lookups, as"
                    f" {{{table.link!r}: {table.parent!r}}}"
                )
            its_key = self.tables[table.parent].key_columns
            if not its_key:
                raise InputError(f"its parent {table.parent!r} needs a key")
            if len(its_key) != len(table.link_columns):
                raise InputError(
                    f"its parent {table.parent!r} has the key {', '.join(map(repr, its_key))}: link names a"
                    " column for each of them, in this order"
                )
        if table.dealt and table.schema is None and not self.bare:
            raise InputError("dealt: declare the other columns of the table in a schema")
        for column, target in table.dealt.items():
            if target not in self.tables:
                raise InputError(f"dealt: there is no table {target!r}{did_you_mean(target, self.tables)}")
            if self.tables[target].public is not None:
                raise InputError(f"dealt: {target!r} is public: name it in lookups instead")
            if len(self.tables[target].key_columns) != 1:
                raise InputError(f"dealt: {target!r} needs a key of one column, to which {column!r} leads")
        for column, lookup in table.lookups.items():
            if lookup not in self.tables:
                raise InputError(f"lookups: there is no table {lookup!r}{did_you_mean(lookup, self.tables)}")
            if len(self.tables[lookup].key_columns) > 1:
                raise InputError(
                    f"lookups: the key of {lookup!r} has several columns, and {column!r} is one: leave it out"
                )
            if self.tables[lookup].public is None:
                raise InputError(
                    f"lookups: {lookup!r} is private: a table has one private parent, so leave out {column!r}"
                    " or name it in dealt"
                )

    @cached_property
    def _links(self) -> nx.DiGraph[str]:
        """The tables, each with a link to the tables below it."""
        import networkx as nx

        links: nx.DiGraph[str] = nx.DiGraph()
        links.add_nodes_from(self.private)
        links.add_edges_from((table.parent, name) for name, table in self.private.items() if table.parent)
        return links

    def _check_summary(self, name: str, summary: Derived) -> None:
        child = self.tables.get(summary.table)
        if child is None or child.parent != name:
            meant = did_you_mean(summary.table, self.children(name))
            raise InputError(f"{summary.table!r} is no table whose parent is {name!r}{meant}")
        columns = () if child.schema is None else (*child.schema.coded, *child.lookups, *child.copied)
        if summary.column in child.computed:
            raise InputError(
                f"{summary.column!r} is computed itself: sum up the rows that it is computed from"
            )
        if summary.column is not None and child.schema is not None and summary.column not in columns:
            meant = did_you_mean(summary.column, columns)
            raise InputError(f"{summary.table!r} has no column {summary.column!r}{meant}")
        if summary.how in ("first", "last", CHANGES) and child.order is None:
            raise InputError(f"the rows of {summary.table!r} have no order")

    def _with_rules(self, name: str, table: Table) -> Table:
        """Return a table whose rules name its own column first, and a column of a table above second.

        Raises
        ------
        InputError
            If a rule names no table above or no column of it, or two rules leave some row no value.
        """
        for column, summary in table.computed.items():
            with about(repr(column)):
                self._check_summary(name, summary)
        for rule in table.constraints:
            if isinstance(rule, Computed) and rule.side[0] not in (None, name):
                raise InputError(f"{str(rule)!r}: it computes no column of {name!r}: move it to its table")
        computed = [Computed((None, column), summary) for column, summary in table.computed.items()]
        across = [rule for rule in table.constraints if isinstance(rule, ColumnComparison)]
        for rule in across:
            self._check_comparison(name, table, rule)
        computed_above = [rule for rule in table.constraints if isinstance(rule, ComputedAbove)]
        self._check_computed_above(name, table, computed_above)
        for floor, ceiling in () if self.bare else product(across, across):
            if floor.column == ceiling.column and floor.sign[0] == ">" and ceiling.sign[0] == "<":
                signs = self._signs_between(floor.above, ceiling.above)
                check_between(floor, ceiling, ordered=bool(signs), strictly="<" in signs)
        for only_one in table.one:
            check_column(name, only_one.column, self.data_columns(name))
            only_one.check(None if table.schema is None else table.schema.coded.get(only_one.column))
        check_columns(table.lives, name, self.data_columns(name))
        for rule in table.lives:
            rule.check({} if table.schema is None else table.schema.coded)
        if not table.constraints:
            return table
        table = replace(table, constraints=[*across, *computed_above, *computed, *table.lives])
        if table.schema is None or not table.schema.columns:
            return table
        columns = dict(table.schema.columns)
        for copy, rule in table.copied.items():  # a copy is of the kind of the column above; a key is no data
            above, column = rule.above
            schema = self.tables[above].schema
            if column in self.tables[above].keys:
                columns[copy] = Text()
            elif schema is not None and column in schema.columns:
                columns[copy] = schema.columns[column]
        return replace(table, schema=replace(table.schema, columns=columns))

    def _check_comparison(self, name: str, table: Table, rule: ColumnComparison) -> None:
        """Refuse a rule that names no table above a table, or no column of it, or contradicts its column."""
        above, column = rule.above
        columns = {table_name: self.data_columns(table_name) for table_name in (name, *self.above(name))}
        for table_name in (rule.lhs[0] or name, above):
            if table_name not in columns:
                meant = did_you_mean(table_name, columns)
                raise InputError(f"{str(rule)!r}: {table_name!r} is no table above {name!r}{meant}")
        if column in self.tables[above].elsewhere:
            raise InputError(f"{str(rule)!r}: {column!r} follows from another table itself: name that one")
        if rule.sign == EQUAL:
            if rule.lhs[0] is not None:
                raise InputError(f"{str(rule)!r}: it names no column of {name!r}, which would be the copy")
            if column in self.tables[above].dealt:
                raise InputError(f"{str(rule)!r}: {rule.name} is dealt, and is not copied: drop one of both")
            if column not in self.tables[above].keys:
                check_column(above, column, columns[above])
            return
        check_column(name, rule.column, columns[name])
        check_column(above, column, columns[above])
        coded, coded_above = (
            {} if schema is None else schema.coded for schema in (table.schema, self.tables[above].schema)
        )
        for comparison in (rule, *following(table.schema, rule)):
            comparison.check(coded.get(comparison.column), coded_above.get(column))

    def _check_computed_above(self, name: str, table: Table, rules: Sequence[ComputedAbove]) -> None:
        """Refuse a computed column of another table, or whose parts are not there or contradict it."""
        tables = (name, *self.above(name))
        for rule in rules:
            if rule.side[0] is not None:
                raise InputError(f"{str(rule)!r}: it computes no column of {name!r}: move it to its table")
            for above, column in (
                (name, rule.column),
                *((name, part) for part in rule.parts_here),
                *rule.above,
            ):
                if above not in tables:
                    meant = did_you_mean(above, tables)
                    raise InputError(f"{str(rule)!r}: {above!r} is no table above {name!r}{meant}")
                with about(repr(str(rule))):
                    check_column(above, column, self.data_columns(above))
                if above != name and column in self.tables[above].elsewhere:
                    raise InputError(
                        f"{str(rule)!r}: {column!r} follows from another table itself: name that one"
                    )
        schemas = {above: self.tables[above].schema for above in tables}
        coded = {above: {} if schema is None else schema.coded for above, schema in schemas.items()}
        check_computed_above(rules, coded[name], coded, table.compared_columns)

    def _signs_between(self, low: tuple[str, str], high: tuple[str, str]) -> set[str]:
        """Return how rules relate two columns, of one table or of a table and one above it: "<" or "<="."""
        signs = {"<="} if low == high else set[str]()
        if low[0] == high[0]:
            signs |= {
                "<" if strict else "<="
                for lower, upper, strict in orders(self.tables[low[0]].schema)
                if (lower, upper) == (low[1], high[1])
            }
        for (table, column), above, sign in ((low, high, "<"), (high, low, ">")):
            for rule in (rule.seen_from(table) for rule in self.tables[table].compared):
                if rule.column == column and rule.above == above and rule.sign[0] == sign:
                    signs.add("<" if rule.strict else "<=")
        return signs

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
    def _of_persons(self) -> list[str]:
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
        return self._of_persons[0]

    @property
    def below(self) -> tuple[str, ...]:
        """The private tables with a parent, each after its parent."""
        return tuple(name for name in self.names if self.tables[name].parent is not None)

    def without_other_roots(self) -> Database:
        """Return the root and the tables below it; the links to others become text, which is left out.

        >>> staff = Table(Schema({}), key="staff_id")
        >>> persons = Table(Schema({}), key="person", dealt={"nurse": "staff"})
        >>> Database({"persons": persons, "staff": staff}).without_other_roots().names
        ('persons',)
        """
        if len(self.roots) == 1:
            return self
        inside = {name for name in self.names if self.root in (name, *self.above(name))}
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

    @property
    def names(self) -> tuple[str, ...]:
        """The tables of private rows, each after its parent; the root and those below it come first."""
        if len(self.private) == 1:
            return (self.root,)
        import networkx as nx

        return tuple(name for root in self.roots for name in nx.dfs_preorder_nodes(self._links, root))

    def copied_keys(self, name: str) -> dict[str, tuple[str, str]]:
        """Return the columns of a table that copy a key, and the table and column whose key it is.

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


def _seen_from(name: str, table: Table) -> Table:
    """Return a table in whose rules no column of the table itself stands behind its name."""
    rules: list[object] = []
    for rule in table.constraints:
        if isinstance(rule, ColumnComparison | ComputedAbove):
            seen = rule.seen_from(name)
            rules.append(str(seen) if seen.is_within_table else seen)
        else:
            rules.append(rule)
    return replace(table, constraints=rules) if rules else table
