"""Table: what is public about one table of a database, and the rules that it declares."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from os import PathLike
from types import MappingProxyType
from typing import Any

from privsyn.errors import InputError, did_you_mean, safe_repr
from privsyn.table.database.computed_above import ComputedAbove
from privsyn.table.database.constant_sums import ConstantSum
from privsyn.table.database.life_sentences import check_lives
from privsyn.table.database.lives import Distinct, Lasting, LifeRule
from privsyn.table.database.rows_per_parent import OnlyOne, check_only_ones, read_children
from privsyn.table.database.rules import EQUAL, ColumnComparison, about_columns_above, orders, read_across
from privsyn.table.database.summaries import Computed, Derived
from privsyn.table.kinds.keys import columns_of, read_key
from privsyn.table.schema.columns import Text
from privsyn.table.schema.constraint import check_names
from privsyn.table.schema.schema import Schema
from privsyn.table.schema.yaml_file import read_schema


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
        ``"year rises"``, ``"tenure never falls"``, ``"married stays yes"``, ``"outcome == 'dead' is last"``,
        ``"(course, term) is unique"``, ``"at most 2 role == 'head'"``. Sums that are the same there:
        ``"year - age is constant"``. Others join those of the schema.
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
            object.__setattr__(self, setting, read_key(setting, getattr(self, setting)))
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
        if self.parent is not None and schema is not None and schema.weight is not None:
            raise InputError(
                f"column {schema.weight!r} is a weight, and rows of a table with a parent have none: declare"
                " it kind: numerical"
            )
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
        if expressions:
            self._add_to_schema(expressions)
        schema = self.schema
        object.__setattr__(self, "constant", check_names("constant", self.constant) if self.constant else ())
        ones = self.one if isinstance(self.one, list | tuple) else [self.one]
        object.__setattr__(self, "one", tuple(map(OnlyOne.read, ones)))
        check_only_ones(self.one, self.order, schema)
        for rule in self.one:
            if rule.column in self.lasting:
                raise InputError(f"one {str(rule)!r}: one row alone has the value, so it does not last")
        self._lift_computed()
        if self.data_of_key and self.numbering is None and self.public is None:
            unique = Distinct(self.data_of_key)
            if unique not in self.lives:
                object.__setattr__(self, "constraints", (*self.constraints, unique))
        check_lives(self.lives, self.order, needs_order=self.parent is not None)
        if self.children is not None:
            object.__setattr__(self, "children", read_children(self.children))
        if self.parent is not None and self.key_columns and {*self.key_columns} <= {*self.link_columns}:
            fewest, largest = self.children or (0, 1)
            if largest != 1:
                raise InputError(
                    "children: the key is the link, so a row of the parent has at most one: 0..1"
                )
            object.__setattr__(self, "children", (fewest, largest))
        self._check_lives()
        self._check_elsewhere()

    @property
    def about_siblings(self) -> tuple[str, ...]:
        """What is declared about the rows of one parent, in words."""
        stated = (rule for rule in self.stated if isinstance(rule, ConstantSum | ComputedAbove))
        rules = (*self.compared, *self.copied.values(), *self.lives, *stated)
        settings = [name for name in ("children", "constant", "one") if getattr(self, name) not in (None, ())]
        return (*(f"constraint {str(rule)!r}" for rule in rules), *settings)

    def _lift_computed(self) -> None:
        """Compute columns with parts that are constant from these, which stand in the row above.

        Such a rule is written as one within the table, or with the name of the parent.
        """
        constant = {*self.constant}
        rules: list[Any] = []
        for rule in self.constraints:
            if isinstance(rule, ComputedAbove):
                rule = rule.with_constant(constant, self.parent)
            rules.append(rule)
        if self.schema is not None:
            lifted = {
                number: rule
                for number, constraint in enumerate(self.schema.constraints)
                if constant.intersection(constraint.columns)
                and (rule := ComputedAbove.with_constants(constraint, constant)) is not None
            }
            rest = [c for number, c in enumerate(self.schema.constraints) if number not in lifted]
            if lifted:
                object.__setattr__(self, "schema", replace(self.schema, constraints=rest))
                rules += lifted.values()
        held = {self.order or "", *constant, *(name for rule in self.lives for name in rule.columns)}
        rules = [
            rule.solved(held) if isinstance(rule, ComputedAbove) and rule.constant else rule for rule in rules
        ]
        object.__setattr__(self, "constraints", tuple(rules))
        self._compute_by_sums()

    def _compute_by_sums(self) -> None:
        """Compute a column of each sum that is constant, but no order, and no column with another rule."""
        sums = self.constant_sums
        rest = [rule for rule in self.constraints if not self._follows_from_a_sum(rule)]
        object.__setattr__(self, "constraints", tuple(rest))
        number_of_sums = Counter(column for rule in sums for column in rule.columns)
        held = {*self.named_in_rules, *self.lookups, *self.dealt, *self.keys, *self.data_of_key}
        held |= {column for rule in self._computed_above for column in rule.parts_here}
        held |= {column for column, times in number_of_sums.items() if times > 1}
        object.__setattr__(self, "constraints", (*rest, *(rule.computation(held) for rule in sums)))

    def _follows_from_a_sum(self, rule: object) -> bool:
        """Return whether a rule computes a column with a sum that is constant, and was not stated itself."""
        names = {total.name for total in self.constant_sums}
        return isinstance(rule, ComputedAbove) and bool(names.intersection(rule.constant))

    @property
    def stated(self) -> tuple[Any, ...]:
        """The rules about several rows that somebody stated, without those that follow from others."""
        return tuple(rule for rule in self.constraints if not self._follows_from_a_sum(rule))

    def _check_elsewhere(self) -> None:
        """Refuse columns whose cells follow from other tables twice, or that other rules or settings name."""
        copies = [
            rule for rule in self._comparisons if rule.sign == EQUAL and None in (rule.lhs[0], rule.rhs[0])
        ]
        following = len(self.constant) + len(self.computed) + len(copies) + len(self._computed_above)
        if len({*self.elsewhere}) < following:
            raise InputError("two rules say from which other table a column follows: drop one")
        counted = None if self.schema is None or not self.schema.columns else self.schema.coded
        named = {*self._named_in_constraints, *self.keys, *self.key_columns, *self.lookups, self.order}
        named |= {column for rule in self._computed_above for column in rule.parts_here}
        for name in self.elsewhere:
            if counted is not None and name not in (*counted, *self.copied):
                meant = did_you_mean(name, counted)
                raise InputError(f"{name!r} is no column of the table that is counted{meant}")
            if name in named:
                why, advice = (
                    "follows from another table, as constant, a copy or a sum says",
                    "leave out one of them",
                )
                if name in self.computed_above:
                    why, advice = "is computed with rows above", "limit it by its bounds, or name its parts"
                raise InputError(f"{name!r} {why}: no other rule or setting can name it; {advice}")

    def _add_to_schema(self, expressions: Sequence[str]) -> None:
        """Add constraints on columns of this table alone to its schema."""
        if self.schema is None:
            raise InputError(f"constraint {expressions[0]!r}: declare the columns that it names in a schema")
        with about_columns_above(self.parent):
            schema = replace(self.schema, constraints=(*self.schema.constraints, *expressions))
        object.__setattr__(self, "schema", schema)

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
    def constant_sums(self) -> tuple[ConstantSum, ...]:
        """The sums of columns that are the same in all rows of one parent."""
        return tuple(rule for rule in self.constraints if isinstance(rule, ConstantSum))

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
        return frozenset({*self._named_in_constraints, *self.elsewhere, self.order or ""})

    @property
    def _named_in_constraints(self) -> set[str]:
        """The columns that constraints, rules of lives and `one` name."""
        rules = () if self.schema is None else self.schema.constraints
        named = {name for rule in (*rules, *self.lives) for name in rule.columns}
        return named | {rule.column for rule in (*self.compared, *self.one)}

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


def _table(settings: Mapping[str, Any]) -> Table:
    return Table(**settings)
