"""Rules across tables: what holds between a row and those above it, below it, or beside it.

They are public. One that is about columns of one table alone belongs to the schema of that table.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, pairwise, product
from math import inf
from typing import TYPE_CHECKING

from privsyn.errors import InputError, about, did_you_mean, replace_errors, safe_repr
from privsyn.table.database.siblings import OnlyOne, check_ones, read_children
from privsyn.table.database.summaries import FORM, Computed, Side, side_of, text_of
from privsyn.table.enforcement.compared import ComparedRule
from privsyn.table.schema.columns import Coded, Column, Ordinal, Text
from privsyn.table.schema.condition import MIRRORED, SIGNS, Reader
from privsyn.table.schema.constraint import Order, check_names
from privsyn.table.schema.schema import Schema

if TYPE_CHECKING:
    from privsyn.table.database.declared import Database, Table

ORDERS, EQUAL = ("<", "<=", ">", ">="), "=="


@dataclass(frozen=True)
class Comparison:
    """Requires a column never to pass a column of a row above it, or to be equal to it.

    Parameters
    ----------
    left, right : (table or None, column)
        In a `Database`, the left one is of the table that has the rule, and the right one of a table above.
    sign : one of "<", "<=", ">", ">=", "=="
        A column that is equal is a copy: it may be a key or a link of the table above, too.

    Examples
    --------
    >>> print(Comparison((None, "arrived"), ">=", ("persons", "born")))
    arrived >= persons.born
    """

    left: Side
    sign: str
    right: Side

    def __str__(self) -> str:
        return f"{text_of(self.left)} {self.sign} {text_of(self.right)}"

    @property
    def is_own(self) -> bool:
        """Whether both columns are of the table that has the rule."""
        return self.left[0] is None and self.right[0] is None

    @property
    def column(self) -> str:
        """The column of the table that has the rule."""
        return self.left[1]

    @property
    def above(self) -> tuple[str, str]:
        """The table above, and its column."""
        return self.right[0] or "", self.right[1]

    @property
    def name(self) -> str:
        """What the column above is called in rules on rows of the table."""
        return ".".join(self.above)

    @property
    def strict(self) -> bool:
        """Whether equal values are forbidden."""
        return len(self.sign) == 1

    def enforced(self, own: Ordinal, above: Ordinal) -> ComparedRule:
        """Return the rule as it is enforced on drawn rows, given both columns."""
        order = -1 if self.sign[0] == ">" else 1
        names, scales = (self.column, self.name), (own.scale, above.scale)
        return ComparedRule(names[::order], self.strict, scales[::order], self.column)

    def of(self, table: str) -> Comparison:
        """Return the same rule of a table: its own columns have no table, and the left one is its own."""
        left, right = ((None if side[0] == table else side[0], side[1]) for side in (self.left, self.right))
        if left[0] is not None:
            return Comparison(right, MIRRORED[self.sign], left)
        return Comparison(left, self.sign, right)

    def needed(self, other: Ordinal) -> tuple[float, float]:
        """Return how far the bounds of the own column must reach, so that rows below any row have a value.

        They are the largest lower bound and the least upper one, of which one is infinite: numbers, or
        seconds. If the rule is strict, the bounds must reach a step further.
        """
        low, high = (end * other.scale for end in other.bounds)
        return (inf, high) if self.sign[0] == ">" else (low, -inf)

    def check(self, own: Coded | None, other: Coded | None) -> None:
        """Refuse columns that cannot be compared, or whose bounds leave some rows no value; None is unknown.

        Rows below any row above must have a value. So the bounds of the own column reach as far as those of
        the other one.
        """
        for column in (own, other):
            if column is not None and not isinstance(column, Ordinal):
                raise InputError(f"{str(self)!r}: columns that are compared are both numbers, or both dates")
        if not (isinstance(own, Ordinal) and isinstance(other, Ordinal)):
            return
        if type(own) is not type(other):
            raise InputError(f"{str(self)!r}: columns that are compared are both numbers, or both dates")
        if not (own.is_public and other.is_public):
            return
        low, high = (end / own.scale for end in self.needed(other))
        step = self.strict * own.resolution
        if not (own.bounds[0] <= low - step and high + step <= own.bounds[1]):
            raise InputError(
                f"{str(self)!r}: below some values of {self.name!r} no value of {self.column!r} can stand:"
                f" let bounds of {self.column!r} reach {'beyond' if self.strict else 'to'} the others"
            )


def check_between(floor: Comparison, ceiling: Comparison, *, ordered: bool, strictly: bool) -> None:
    """Refuse two rules on one column if no value may lie between those of the two columns above.

    Parameters
    ----------
    floor, ceiling : Comparison
        The column is at least one column above, and at most another one.
    ordered, strictly : bool
        Whether the first one is never above the second one, and whether it is always below.
    """
    if not ordered or floor.strict + ceiling.strict > strictly:
        relation = "<" if floor.strict or ceiling.strict else "<="
        advice = f"let a constraint say that {floor.name} {relation} {ceiling.name}"
        if floor.strict and ceiling.strict and strictly:
            advice = "let one of them allow equal values"
        raise InputError(
            f"{str(floor)!r} and {str(ceiling)!r} may leave a row no value: {advice}, or drop one of them"
        )


def orders(schema: Schema | None) -> Iterator[Order]:
    """Yield the pairs of columns that constraints keep in order."""
    if schema is not None:
        yield from chain.from_iterable(each.kept_in_order(schema.columns) for each in schema.constraints)


def following(schema: Schema | None, rule: Comparison) -> Iterator[Comparison]:
    """Yield the same rule on each column that an order puts beyond the own one, as it keeps the rule too."""
    found, left = {rule.column}, [rule]
    while left:
        rule = left.pop()
        floor = rule.sign[0] == ">"
        for low, high, strict in orders(schema):
            one, other = (low, high) if floor else (high, low)
            if one == rule.column and other not in found:
                sign = rule.sign[0] if strict else rule.sign
                left.append(replace(rule, left=(None, other), sign=sign))
                found.add(other)
                yield left[-1]


def names_tables(text: object) -> bool:
    """Return whether an expression names a column with its table.

    >>> names_tables("arrived >= persons.born"), names_tables("days <= 2.5")
    (True, False)
    """
    if isinstance(text, str) and Computed.read(text) is not None:
        return True
    reader = Reader({})
    with suppress(InputError):
        text = reader.unquoted(text)
    for part in re.split(r"\b(?:implies|iff)\b", text) if isinstance(text, str) else ():
        with suppress(InputError):
            tree = reader.parse(part)
            if any(isinstance(node, ast.Attribute) for node in ast.walk(tree)):
                return True
    return False


Rule = Comparison | Computed
"""A rule across tables."""


def read_across(said: Sequence[object]) -> tuple[tuple[Rule, ...], tuple[str, ...]]:
    """Return the rules across tables that expressions mean, and the expressions on columns of one table.

    >>> read_across(["persons.born <= arrived <= left"])[1]
    ('arrived <= left',)
    """
    if isinstance(said, str) or not isinstance(said, Sequence):
        raise InputError('constraints are a list of text, as in ["arrived >= persons.born"]')
    rules: list[Rule] = []
    own: list[str] = []
    for each in said:
        if isinstance(each, Comparison | Computed):
            rules.append(each)
        elif not isinstance(each, str):
            raise InputError(f"a constraint of a table is text; {safe_repr(each)} belongs to its schema")
        elif (computed := Computed.read(each)) is not None:
            rules.append(computed)
        elif names_tables(each):
            with about(repr(each[:100])):
                found = list(_comparisons(each))
            rules += [rule for rule in found if not rule.is_own]
            own += [str(rule) for rule in found if rule.is_own]
        else:
            own.append(each)
    return tuple(rules), tuple(own)


def _comparisons(text: str) -> Iterator[Comparison]:
    """Yield the comparisons of two columns that an expression joins."""
    reader = Reader({})

    def facts(node: ast.expr) -> Iterator[Comparison]:
        match node:
            case ast.BoolOp(ast.And(), values):
                for value in values:
                    yield from facts(value)
            case ast.Compare(left, ops, comparators) if {SIGNS[type(op)] for op in ops} <= {*ORDERS, EQUAL}:
                for (one, other), op in zip(pairwise([left, *comparators]), ops, strict=True):
                    yield Comparison(side_of(reader, one), SIGNS[type(op)], side_of(reader, other))
            case _:
                raise InputError(f"it is no comparison of two columns: {FORM}")

    with replace_errors(f"it is no comparison of two columns: {FORM}", InputError):
        tree = reader.parse(reader.unquoted(text))
    yield from facts(tree)


def check_column(table: str, column: str, known: Sequence[str] | None) -> None:
    """Refuse a column that a table has not; `known` is None if its columns follow from the data."""
    if known is not None and column not in known:
        raise InputError(f"{table!r} has no column {column!r}{did_you_mean(column, known)}")


def read_rules(table: Table) -> None:
    """Read the rules of a `Table` that is being made. Those on its own columns join its schema."""
    rules, own = read_across(table.constraints)
    object.__setattr__(table, "constraints", rules)
    if len(table.computed) < sum(isinstance(rule, Computed) for rule in rules):
        raise InputError("two constraints compute the same column from rows below: drop one")
    if own and table.schema is None:
        raise InputError(f"constraint {own[0]!r}: declare the columns that it names in a schema")
    schema = table.schema
    if own and schema is not None:
        schema = replace(schema, constraints=(*schema.constraints, *own))
        object.__setattr__(table, "schema", schema)
    object.__setattr__(table, "constant", check_names("constant", table.constant) if table.constant else ())
    ones = table.one if isinstance(table.one, list | tuple) else [table.one]
    object.__setattr__(table, "one", tuple(map(OnlyOne.read, ones)))
    check_ones(table, schema)
    about_parent = [f"constraint {str(rule)!r}" for rule in (*table.compared, *table.copied.values())] + [
        what for what in ("children", "constant", "one") if getattr(table, what) not in (None, ())
    ]
    if about_parent and table.parent is None:
        raise InputError(f"{about_parent[0]} is about the rows above: this table has no parent")
    if table.children is not None:
        object.__setattr__(table, "children", read_children(table.children))
    named = {name for rule in (() if schema is None else schema.constraints) for name in rule.columns}
    named |= {rule.column for rule in (*table.compared, *table.one)}
    named |= {*table.keys, table.order, *table.lookups}
    equal = (rule for rule in rules if isinstance(rule, Comparison) and rule.sign == EQUAL)
    copies = [rule for rule in equal if None in (rule.left[0], rule.right[0])]
    if len({*table.elsewhere}) < len(table.constant) + len(table.computed) + len(copies):
        raise InputError("two rules say from which other table a column follows: drop one")
    for name in table.elsewhere:
        if schema is not None and schema.columns and name not in (*schema.coded, *table.copied):
            meant = did_you_mean(name, schema.coded)
            raise InputError(f"{name!r} is no column of the table that is counted{meant}")
        if name in named:
            raise InputError(
                f"{name!r} follows from another table, as constant, a copy or a sum says: no other rule or"
                " setting can name it; leave out one of them"
            )


def with_checked_rules(database: Database, name: str, table: Table) -> Table:
    """Return a table whose rules name its own column first, and one of a table above.

    Raises
    ------
    InputError
        If a rule names no table above or no column of it, or two rules leave some row no value.
    """
    computed = [Computed((None, column), said) for column, said in table.computed.items()]
    rules = [rule.of(name) for rule in table.constraints if isinstance(rule, Comparison)]
    across = [rule for rule in rules if not rule.is_own]
    for rule in across:
        above, column = rule.above
        known = {each: database.known(each) for each in (name, *database.above(name))}
        for each in (rule.left[0] or name, above):
            if each not in known:
                meant = did_you_mean(each, known)
                raise InputError(f"{str(rule)!r}: {each!r} is no table above {name!r}{meant}")
        if column in database.tables[above].elsewhere:
            raise InputError(f"{str(rule)!r}: {column!r} follows from another table itself: name that one")
        if rule.sign == EQUAL:
            if rule.left[0] is not None:
                raise InputError(f"{str(rule)!r}: it names no column of {name!r}, which would be the copy")
            if column not in database.tables[above].keys:
                check_column(above, column, known[above])
            continue
        for each, named in ((name, rule.column), (above, column)):
            check_column(each, named, known[each])
        declared = (database.tables[each].schema for each in (name, above))
        own, other = (None if schema is None else schema.coded for schema in declared)
        for reached in (rule, *following(table.schema, rule)):
            reached.check((own or {}).get(reached.column), (other or {}).get(column))
    for floor, ceiling in () if database.bare else product(across, across):
        if floor.column == ceiling.column and floor.sign[0] == ">" and ceiling.sign[0] == "<":
            signs = _signs_between(database, floor.above, ceiling.above)
            check_between(floor, ceiling, ordered=bool(signs), strictly="<" in signs)
    for one in table.one:
        check_column(name, one.column, database.known(name))
        one.check(None if table.schema is None else table.schema.coded.get(one.column))
    if not table.constraints:
        return table
    table = replace(table, constraints=[*across, *computed, *(str(rule) for rule in rules if rule.is_own)])
    copies = _kinds_of_copies(database, table)
    if table.schema is None or not table.schema.columns or not copies:
        return table
    return replace(table, schema=replace(table.schema, columns={**table.schema.columns, **copies}))


def _kinds_of_copies(database: Database, table: Table) -> dict[str, Column]:
    """Return the kind of each column that is a copy: that of the column above; none of a key is counted."""
    found: dict[str, Column] = {}
    for column, rule in table.copied.items():
        above, its = rule.above
        schema = database.tables[above].schema
        if its in database.tables[above].keys:
            found[column] = Text()
        elif schema is not None and its in schema.columns:
            found[column] = schema.columns[its]
    return found


def _signs_between(database: Database, low: tuple[str, str], high: tuple[str, str]) -> set[str]:
    """Return how rules relate a column to another one, of the same table or of one above: "<" or "<="."""
    found = {"<="} if low == high else set[str]()
    if low[0] == high[0]:
        schema = database.tables[low[0]].schema
        found |= {
            "<" if strict else "<="
            for lower, upper, strict in orders(schema)
            if (lower, upper) == (low[1], high[1])
        }
    for table, own, other, way in ((low[0], low, high, "<"), (high[0], high, low, ">")):
        for rule in (rule.of(table) for rule in database.tables[table].compared):
            if rule.column == own[1] and rule.above == other and rule.sign[0] == way:
                found.add("<" if rule.strict else "<=")
    return found
