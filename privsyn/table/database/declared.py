"""Database: what is public about several tables that keys link, and how they are linked."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from functools import cached_property, partial
from itertools import product
from os import PathLike
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from privsyn.abilities import LINKED, TOGETHER
from privsyn.errors import InputError, about, did_you_mean, safe_repr
from privsyn.table.database.computed_above import ComputedAbove, check_computed_above
from privsyn.table.database.lives import Distinct, Lasting, LifeRule, check_columns, check_lives
from privsyn.table.database.rows_per_parent import OnlyOne, check_only_ones, read_children
from privsyn.table.database.rules import (
    EQUAL,
    ColumnComparison,
    check_between,
    check_column,
    following,
    orders,
    read_across,
)
from privsyn.table.database.summaries import CHANGES, Computed, Derived
from privsyn.table.kinds.keys import Key, columns_of
from privsyn.table.schema.columns import Text
from privsyn.table.schema.constraint import check_names
from privsyn.table.schema.schema import Schema
from privsyn.table.schema.yaml_file import read_schema

if TYPE_CHECKING:
    import networkx as nx

PERSONS, ROWS = "persons", "rows"
"""The tables of one table whose rows belong to persons."""


@dataclass(frozen=True)
class Table:
    """Declare what is public about one table of a `Database`.

    Parameters
    ----------
    schema : Schema or path of a YAML file, optional
        Of the columns of data: all but `key` and `link`, and but `order` if its values are no data. Default:
        they follow from names and dtypes, as without a schema.
    key : str or sequence of str, optional
        The column that identifies a row, or several that do so together, such as ``["student", "course"]``. A
        table needs it if another table is linked to it. Columns of a key of several may be columns of data;
        one that is neither data nor part of the link numbers the rows.
    parent : str, optional
        The table to whose rows the rows of this one belong. Default: none; each row is a person.
    link : str or sequence of str, optional
        The column that has the key of the parent's row; one for each column of that key, in its order. It may
        be the key, too: then a row of the parent has at most one row.
    order : str, optional
        The column by which the rows of one parent are in order: a time, or a number such as 1, 2, 3. Default:
        they have no order.
    derive : mapping of a name to an expression, optional
        Summaries of child rows, such as ``{"spent": "sum(purchases.dollars)"}``. They are measured like
        columns. Synthetic child rows depend on them, but do not add up to them. They are not in the
        synthetic table. Their bounds are found under privacy.
    lookups : mapping of a column to a table, optional
        The columns whose values are keys of a public table, such as ``{"origin": "zones", "destination":
        "zones"}``. The schema need not have them. A column that has the name of such a key needs no mention.
    dealt : mapping of a column to a table, optional
        Columns with keys of other private tables, or of the same one, such as ``{"manager": "staff"}``. No
        cell of them is read. Synthetic rows get the key of a random row, or of an earlier one of the same
        table: all links are valid, and say nothing. A table that is named here needs no parent: then its rows
        are persons too, protected with the rows below them by the same promise.
    constraints : list of text, optional
        Comparisons of a column with one of a table above, such as ``"arrived >= persons.born"``, copies from
        there, such as ``"zone == persons.zone"``, columns that are computed with those from there, such as
        ``"age == year - persons.born"``, and sums and numbers of the rows below, such as
        ``"total == sum(items.price)"``. Rules of lives, which hold among the rows of one parent:
        ``"year rises"``, ``"tenure never falls"``, ``"married stays yes"``, ``"(course, term) is unique"``,
        ``"at most 2 role == 'head'"``. Others join those of the schema.
    constant : list of str, optional
        Columns that are the same in all rows of one parent.
    one : text or list of text, optional
        A column and a value that exactly one row of each parent has, such as ``"relation == 'head'"``. With
        ``"first(relation) == 'head'"`` it is the first of them.
    children : (int, int or None), int or text, optional
        How many rows each row of the parent has: at least one with ``(1, None)`` or ``"1.."``. Default: any
        number.
    public : path or table, optional
        A look-up table that everybody may know, such as ``"drugs.csv"``. It has a `key`, maybe `lookups` to
        other public tables, and nothing else of what is above. No question is asked of it, and it is among
        the synthetic tables as it is.

    Examples
    --------
    >>> from privsyn import Numerical
    >>> Table(Schema({"age": Numerical(0, 110)}), key="person", parent="households", link="household").keys
    ('person', 'household')
    """

    schema: Schema | None = None
    _: KW_ONLY
    key: Any = None  # a name or a tuple of names; lists are replaced
    parent: str | None = None
    link: Any = None
    order: str | None = None
    derive: Mapping[str, Any] = field(default_factory=dict)  # of Derived; text is replaced
    lookups: Mapping[str, str] = field(default_factory=dict)
    dealt: Mapping[str, str] = field(default_factory=dict)
    constraints: Sequence[Any] = ()  # of rules about several rows; text is replaced
    constant: Sequence[str] = ()
    one: Any = ()  # of OnlyOne; text is replaced
    children: Any = None  # a pair; what else is given is replaced
    public: Any = field(default=None, compare=False)  # data frames cannot be compared

    def __post_init__(self) -> None:
        schema = read_schema(self.schema) if isinstance(self.schema, str | PathLike) else self.schema
        if schema is not None and not isinstance(schema, Schema):
            raise InputError(f"the schema of a table is a Schema, not {safe_repr(schema)}")
        object.__setattr__(self, "schema", schema)
        for setting in ("key", "link"):
            object.__setattr__(self, setting, _read_key(setting, getattr(self, setting)))
        for setting in ("parent", "order"):
            name = getattr(self, setting)
            if setting == "parent" and isinstance(name, list | tuple):
                raise InputError("a table has one parent: leave out the key of the other, or see lookups")
            if name is not None and not isinstance(name, str):
                raise InputError(f"{setting} must be a name; got {safe_repr(name)}")
        if not isinstance(self.lookups, Mapping) or not all(
            isinstance(name, str) for pair in self.lookups.items() for name in pair
        ):
            raise InputError('lookups maps columns to public tables, as in {"drug": "drugs"}')
        object.__setattr__(self, "lookups", MappingProxyType(dict(self.lookups)))
        self._read_dealt()
        for name in self.lookups:
            if name in (*self.keys, self.order):
                raise InputError(f"lookups: {name!r} is the key, link or order of the table, no data")
        if self.public is not None:
            self._check_public()
        if (self.parent is None) != (self.link is None):
            raise InputError("give both parent and link, the column with the parent's key, or neither")
        if self.order is not None and self.parent is None:
            raise InputError("order is about the rows of one parent: give parent and link, or leave it out")
        if self.order in self.link_columns:
            raise InputError(
                f"order {self.order!r} is the same in all rows of one parent: name another column"
            )
        if schema is not None and (order := self.order) is not None:
            is_text = isinstance(schema.columns.get(order), Text)  # no data
            object.__setattr__(self, "schema", schema.without([order]) if is_text else schema)
        columns = () if self.schema is None else tuple(self.schema.columns)
        for name in self.keys:
            if name in columns:
                raise InputError(f"the key {name!r} is a column of the schema: remove it there, keys are new")
        self._check_key()
        if not isinstance(self.derive, Mapping):
            raise InputError('derive maps names to summaries, as in {"spent": "sum(purchases.dollars)"}')
        for name in self.derive:
            if name in (*columns, *self.keys):
                raise InputError(f"derive: {name!r} is a column of the table: choose another name")
        read = {
            name: summary if isinstance(summary, Derived) else Derived.of(summary)
            for name, summary in self.derive.items()
        }
        object.__setattr__(self, "derive", MappingProxyType(read))
        self._read_rules()

    def _read_rules(self) -> None:
        """Read the rules. Those on columns of this table alone join its schema."""
        rules, expressions = read_across(self.constraints)
        object.__setattr__(self, "constraints", rules)
        if len(self.computed) < sum(isinstance(rule, Computed) for rule in rules):
            raise InputError("two constraints compute the same column from rows below: drop one")
        if expressions and self.schema is None:
            raise InputError(f"constraint {expressions[0]!r}: declare the columns that it names in a schema")
        schema = self.schema
        if expressions and schema is not None:
            schema = replace(schema, constraints=(*schema.constraints, *expressions))
            object.__setattr__(self, "schema", schema)
        object.__setattr__(self, "constant", check_names("constant", self.constant) if self.constant else ())
        ones = self.one if isinstance(self.one, list | tuple) else [self.one]
        object.__setattr__(self, "one", tuple(map(OnlyOne.read, ones)))
        check_only_ones(self.one, self.order, schema)
        about_rows = (*self.compared, *self.copied.values(), *self.lives, *self._computed_above)
        for rule in self.one:
            if rule.column in self.lasting:
                raise InputError(f"one {str(rule)!r}: one row alone has the value, so it does not last")
        about_parent = [f"constraint {str(rule)!r}" for rule in about_rows] + [
            setting for setting in ("children", "constant", "one") if getattr(self, setting) not in (None, ())
        ]
        if about_parent and self.parent is None:
            raise InputError(f"{about_parent[0]} is about rows of one parent: this table has no parent")
        if self.data_of_key and self.numbering is None and self.public is None:
            unique = Distinct(self.data_of_key)
            if unique not in self.lives:
                object.__setattr__(self, "constraints", (*self.constraints, unique))
        check_lives(self.lives, self.order)
        if self.children is not None:
            object.__setattr__(self, "children", read_children(self.children))
        if self.parent is not None and self.key_columns and {*self.key_columns} <= {*self.link_columns}:
            fewest, largest = self.children or (0, 1)
            if largest != 1:
                raise InputError(
                    "children: the key is the link, so a row of the parent has at most one: 0..1"
                )
            object.__setattr__(self, "children", (fewest, largest))
        named = {name for rule in (() if schema is None else schema.constraints) for name in rule.columns}
        named |= {rule.column for rule in (*self.compared, *self.one)}
        named |= {name for rule in self.lives for name in rule.columns}
        named |= {*self.keys, *self.key_columns, self.order, *self.lookups}
        named |= {column for rule in self._computed_above for column in rule.parts_here}
        self._check_lives()
        equal = [rule for rule in self._comparisons if rule.sign == EQUAL]
        copies = [rule for rule in equal if None in (rule.lhs[0], rule.rhs[0])]
        following = len(self.constant) + len(self.computed) + len(copies) + len(self._computed_above)
        if len({*self.elsewhere}) < following:
            raise InputError("two rules say from which other table a column follows: drop one")
        for name in self.elsewhere:
            if schema is not None and schema.columns and name not in (*schema.coded, *self.copied):
                meant = did_you_mean(name, schema.coded)
                raise InputError(f"{name!r} is no column of the table that is counted{meant}")
            if name in named:
                why, advice = (
                    "follows from another table, as constant, a copy or a sum says",
                    "leave out one of them",
                )
                if name in self.computed_above:
                    why, advice = "is computed with rows above", "limit it by its bounds, or name its parts"
                raise InputError(f"{name!r} {why}: no other rule or setting can name it; {advice}")

    def _check_lives(self) -> None:
        """Refuse rules of lives on columns that other rules would have to change so that a row keeps them."""
        columns = {name: rule for rule in self.kept_lives for name in rule.columns}
        for only_one in self.one:
            if only_one.column in columns:
                rule = columns[only_one.column]
                raise InputError(f"{str(rule)!r} and one {str(only_one)!r} are about one column: drop one")
        held = {*columns, self.order} if self.in_order_of_life else {*columns}
        for constraint in () if self.schema is None else self.schema.constraints:
            joined = [name for name in constraint.columns if name in held]
            if len(joined) > 1:
                rule = next(columns[name] for name in joined if name in columns)
                raise InputError(
                    f"{str(rule)!r}: a constraint joins {joined[0]!r} with {joined[1]!r}, and a rule on the"
                    " rows of one parent holds each of them: leave out one of these rules"
                )

    @property
    def _comparisons(self) -> list[ColumnComparison]:
        return [rule for rule in self.constraints if isinstance(rule, ColumnComparison)]

    @property
    def lives(self) -> tuple[LifeRule, ...]:
        """The rules on the rows of one parent, from row to row."""
        return tuple(rule for rule in self.constraints if isinstance(rule, LifeRule))

    @property
    def kept_lives(self) -> tuple[LifeRule, ...]:
        """The rules on the rows of one parent that every synthetic row keeps."""
        return tuple(rule for rule in self.lives if not isinstance(rule, Lasting))

    @property
    def in_order_of_life(self) -> bool:
        """Whether such a rule needs the order of the rows."""
        return any(rule.needs_order for rule in self.kept_lives)

    @property
    def compared(self) -> tuple[ColumnComparison, ...]:
        """The rules that keep columns in order with those of tables above."""
        return tuple(rule for rule in self._comparisons if rule.sign != EQUAL)

    @property
    def compared_columns(self) -> set[str]:
        """The columns that rules compare with others of the table, or of tables above."""
        pairs = (pair[:2] for pair in orders(self.schema))
        return {rule.column for rule in self.compared}.union(*pairs)

    @property
    def ruled(self) -> tuple[str, ...]:
        """The columns of data that rules about several rows name: each is counted as it is, if it can be."""
        names = [rule.column for rule in self.compared]
        names += [name for rule in self.kept_lives for name in rule.columns]
        if self.in_order_of_life and self.order is not None and self.only_order is None:
            names.append(self.order)
        return tuple(dict.fromkeys(names))

    @property
    def copied(self) -> dict[str, ColumnComparison]:
        """The rule of each column that has the cell of a row above."""
        equal = (rule for rule in self._comparisons if rule.sign == EQUAL)
        oriented = (ColumnComparison(rule.rhs, EQUAL, rule.lhs) if rule.lhs[0] else rule for rule in equal)
        return {rule.column: rule for rule in oriented if rule.lhs[0] is None}  # a `Database` has the tables

    @property
    def computed(self) -> dict[str, Derived]:
        """The columns that sum up the rows of child tables."""
        return {rule.column: rule.summary for rule in self.constraints if isinstance(rule, Computed)}

    @property
    def _computed_above(self) -> list[ComputedAbove]:
        rules = (rule for rule in self.constraints if isinstance(rule, ComputedAbove))
        return [rule for rule in rules if rule.side[0] is None]  # a `Database` has the tables

    @property
    def computed_above(self) -> dict[str, ComputedAbove]:
        """The rule of each column that is computed from its row and from rows above it."""
        return {rule.column: rule for rule in self._computed_above}

    @property
    def lasting(self) -> tuple[str, ...]:
        """The columns that seldom change along the rows of a parent."""
        return tuple(rule.column for rule in self.lives if isinstance(rule, Lasting))

    @property
    def named_in_rules(self) -> frozenset[str]:
        """The columns that rules or settings name, besides those of derived columns."""
        rules = () if self.schema is None else self.schema.constraints
        named = {name for rule in (*rules, *self.lives) for name in rule.columns}
        named |= {rule.column for rule in (*self.compared, *self.one)}
        return frozenset({*named, *self.elsewhere, self.order or ""})

    @property
    def elsewhere(self) -> tuple[str, ...]:
        """The columns whose cells follow from other tables: no cell of them is drawn."""
        return (*self.constant, *self.computed, *self.copied, *self.computed_above)

    def _read_dealt(self) -> None:
        """Read the columns that are dealt, and refuse those that are something else too."""
        if not isinstance(self.dealt, Mapping) or not all(
            isinstance(name, str) for pair in self.dealt.items() for name in pair
        ):
            raise InputError('dealt maps columns to private tables, as in {"manager": "staff"}')
        object.__setattr__(self, "dealt", MappingProxyType(dict(self.dealt)))
        for name in self.dealt:
            if name in (*self.key_columns, *self.link_columns, *self.lookups, self.order):
                raise InputError(f"dealt: {name!r} is a key, link, order or look-up too: drop one of them")

    def _check_key(self) -> None:
        """Refuse a key that no synthetic row could have: at most one column numbers rows, see `numbering`."""
        new = [name for name in self.key_columns if name not in (*self.link_columns, *self.data_of_key)]
        if len(new) > 1:
            raise InputError(
                f"key: {new[0]!r} and {new[1]!r} are no data, and one column of a key numbers rows: declare"
                " the other one in columns, in lookups or in link"
            )
        if self.key_columns and not new and not {*self.link_columns} <= {*self.key_columns}:
            raise InputError(
                "key: all its columns are data, so rows could share a key: add the columns of link, or one"
                " that numbers the rows"
            )
        if self.parent is None and self.key_columns and not new and self.public is None:
            raise InputError("key: all its columns are data, so two persons could share a key: add a number")

    def _check_public(self) -> None:
        """Refuse what a look-up table cannot have."""
        if isinstance(self.public, bool | int | float | Mapping | list | tuple):
            raise InputError(f"public is the path of a table, or a table, not {safe_repr(self.public)}")
        setting = next((name for name in PRIVATE if getattr(self, name)), None)
        if setting is not None:
            raise InputError(f"a public table has a key, and no row of it is made: leave out {setting}")
        if self.key is None:
            raise InputError("a public table needs a key, which the rows of other tables name")

    def __reduce__(self) -> tuple[Any, ...]:
        settings = {field.name: getattr(self, field.name) for field in fields(self)}
        return _table, (
            settings | {name: dict(getattr(self, name)) for name in ("derive", "lookups", "dealt")},
        )

    @property
    def fewest_children(self) -> int:
        """The least number of rows of each row of the parent."""
        return 0 if self.children is None else int(self.children[0])

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The columns of the key."""
        return columns_of(self.key)

    @property
    def link_columns(self) -> tuple[str, ...]:
        """The columns of the link, each with a column of the parent's key."""
        return columns_of(self.link)

    @property
    def data_of_key(self) -> tuple[str, ...]:
        """The columns of a key of several that are data: in the schema or with a look-up table.

        >>> Table(Schema({}), key=["student", "course"], parent="students", link="student",
        ...       lookups={"course": "courses"}).data_of_key
        ('course',)
        """
        coded = () if self.schema is None else self.schema.coded
        data = (name for name in self.key_columns if name in coded or name in self.lookups)
        return tuple(name for name in data if len(self.key_columns) > 1 and name not in self.link_columns)

    @property
    def numbering(self) -> str | None:
        """The column of the key that numbers the rows; None if the others identify them."""
        linked_or_data = (*self.link_columns, *self.data_of_key)
        return next((name for name in self.key_columns if name not in linked_or_data), None)

    @property
    def is_numbered_by_parent(self) -> bool:
        """Whether `numbering` begins at 1 for each parent, whose key the others are."""
        return bool(self.link_columns) and {*self.link_columns} <= {*self.key_columns}

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns of key and link that are no data, and those that are dealt."""
        names = dict.fromkeys((*self.key_columns, *self.link_columns, *self.dealt))
        return tuple(name for name in names if name not in self.data_of_key)

    @property
    def only_order(self) -> str | None:
        """The order if it is no column of data: synthetic rows have 1, 2, 3, ... there."""
        if self.order is None or self.schema is None or self.order in self.schema.columns:
            return None
        return self.order

    @property
    def has_data(self) -> bool:
        """Whether there may be columns of data."""
        return self.schema is None or bool(self.schema.columns or self.lookups)


PRIVATE = (
    *("schema", "parent", "link", "order", "derive", "dealt", "constraints", "constant", "one", "children"),
)
"""What only tables of private rows have."""


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


def _table(settings: Mapping[str, Any]) -> Table:
    return Table(**settings)


def _read_key(setting: str, names: Any) -> Key | None:
    """Return a key or link as a name, or as a tuple of several.

    >>> _read_key("key", ["student", "course"]), _read_key("key", ["student"])
    (('student', 'course'), 'student')
    """
    listed = tuple(names) if isinstance(names, list | tuple) else () if names is None else (names,)
    if not all(isinstance(name, str) for name in listed) or (names is not None and not listed):
        raise InputError(f"{setting} must be a name, or a list of names; got {safe_repr(names)}")
    if twice := next((name for name in listed if listed.count(name) > 1), None):
        raise InputError(f"{setting}: {twice!r} is named twice")
    return listed[0] if len(listed) == 1 else listed or None


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
