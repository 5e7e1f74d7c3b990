"""What is refused of a table beside the tables that it names: links, summaries, and rules across tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from privsyn.errors import InputError, about, did_you_mean
from privsyn.table.database.computed_above import CONSTANT, ComputedAbove, check_computed_above
from privsyn.table.database.declared import Table
from privsyn.table.database.life_sentences import check_columns
from privsyn.table.database.rules import (
    EQUAL,
    ColumnComparison,
    check_between,
    check_column,
    following,
    orders,
)
from privsyn.table.database.summaries import CHANGES, Computed, Derived
from privsyn.table.database.table_tree import TableTree
from privsyn.table.schema.columns import Text


def with_lookups_in_key(tree: TableTree, table: Table) -> Table:
    """Return a table with look-ups for columns of its key that are called like a public key."""
    data = () if table.schema is None else table.schema.columns
    called = {
        public.key: name
        for name, public in tree.tables.items()
        if public.public is not None and public is not table
    }
    known_columns = (*table.link_columns, *table.lookups, *data)
    lookups = {
        name: called[name] for name in table.key_columns if name in called and name not in known_columns
    }
    if len(table.key_columns) < 2 or not lookups:
        return table
    return replace(table, lookups={**table.lookups, **lookups})


def check_links(tree: TableTree, name: str, table: Table) -> None:
    """Refuse a parent, a dealt table or a look-up table to which the links of a table cannot lead."""
    if table.parent is not None:
        if table.parent == name:
            raise InputError("its parent is the table itself, which is not supported: give another one")
        if table.parent not in tree.tables:
            meant = did_you_mean(table.parent, tree.tables)
            raise InputError(f"there is no table {table.parent!r}, which is its parent{meant}")
        if tree.tables[table.parent].public is not None:
            raise InputError(
                f"its parent {table.parent!r} is public: name it in lookups, as"
                f" {{{table.link!r}: {table.parent!r}}}"
            )
        its_key = tree.tables[table.parent].key_columns
        if not its_key:
            raise InputError(f"its parent {table.parent!r} needs a key")
        if len(its_key) != len(table.link_columns):
            raise InputError(
                f"its parent {table.parent!r} has the key {', '.join(map(repr, its_key))}: link names a"
                " column for each of them, in this order"
            )
    if table.dealt and table.schema is None and not tree.bare:
        raise InputError("dealt: declare the other columns of the table in a schema")
    for column, target in table.dealt.items():
        if target not in tree.tables:
            raise InputError(f"dealt: there is no table {target!r}{did_you_mean(target, tree.tables)}")
        if tree.tables[target].public is not None:
            raise InputError(f"dealt: {target!r} is public: name it in lookups instead")
        if len(tree.tables[target].key_columns) != 1:
            raise InputError(f"dealt: {target!r} needs a key of one column, to which {column!r} leads")
    for column, lookup in table.lookups.items():
        if lookup not in tree.tables:
            raise InputError(f"lookups: there is no table {lookup!r}{did_you_mean(lookup, tree.tables)}")
        if len(tree.tables[lookup].key_columns) > 1:
            raise InputError(
                f"lookups: the key of {lookup!r} has several columns, and {column!r} is one: leave it out"
            )
        if tree.tables[lookup].public is None:
            raise InputError(
                f"lookups: {lookup!r} is private: a table has one private parent, so leave out {column!r}"
                " or name it in dealt"
            )


def check_summary(tree: TableTree, name: str, summary: Derived) -> None:
    """Refuse a summary of rows that are not below a table, or of a column that they have not."""
    child = tree.tables.get(summary.table)
    if child is None or child.parent != name:
        meant = did_you_mean(summary.table, tree.children(name))
        raise InputError(f"{summary.table!r} is no table whose parent is {name!r}{meant}")
    columns = () if child.schema is None else (*child.schema.coded, *child.lookups, *child.copied)
    if summary.column in child.computed:
        raise InputError(f"{summary.column!r} is computed itself: sum up the rows that it is computed from")
    if summary.column is not None and child.schema is not None and summary.column not in columns:
        meant = did_you_mean(summary.column, columns)
        raise InputError(f"{summary.table!r} has no column {summary.column!r}{meant}")
    if summary.how in ("first", "last", CHANGES) and child.order is None:
        raise InputError(f"the rows of {summary.table!r} have no order")


def with_rules(tree: TableTree, name: str, table: Table) -> Table:
    """Return a table whose rules name its own column first, and a column of a table above second.

    Raises
    ------
    InputError
        If a rule names no table above or no column of it, or two rules leave some row no value.
    """
    for column, summary in table.computed.items():
        with about(repr(column)):
            check_summary(tree, name, summary)
    for rule in table.constraints:
        if isinstance(rule, Computed) and rule.side[0] not in (None, name):
            raise InputError(f"{str(rule)!r}: it computes no column of {name!r}: move it to its table")
    computed = [Computed((None, column), summary) for column, summary in table.computed.items()]
    across = [rule for rule in table.constraints if isinstance(rule, ColumnComparison)]
    for rule in across:
        _check_comparison(tree, name, table, rule)
    computed_above = [rule for rule in table.constraints if isinstance(rule, ComputedAbove)]
    _check_computed(tree, name, table, computed_above)
    for floor, ceiling in () if tree.bare else product(across, across):
        if floor.column == ceiling.column and floor.sign[0] == ">" and ceiling.sign[0] == "<":
            signs = _signs_between(tree, floor.above, ceiling.above)
            check_between(floor, ceiling, ordered=bool(signs), strictly="<" in signs)
    for only_one in table.one:
        check_column(name, only_one.column, tree.data_columns(name))
        only_one.check(None if table.schema is None else table.schema.coded.get(only_one.column))
    check_columns(table.lives, name, tree.data_columns(name))
    for rule in table.lives:
        rule.check({} if table.schema is None else table.schema.coded)
    if not table.constraints:
        return table
    table = replace(
        table, constraints=[*across, *computed_above, *computed, *table.constant_sums, *table.lives]
    )
    if table.schema is None or not table.schema.columns:
        return table
    columns = dict(table.schema.columns)
    for copy, rule in table.copied.items():  # a copy is of the kind of the column above; a key is no data
        above, column = rule.above
        schema = tree.tables[above].schema
        if column in tree.tables[above].keys:
            columns[copy] = Text()
        elif schema is not None and column in schema.columns:
            columns[copy] = schema.columns[column]
    return replace(table, schema=replace(table.schema, columns=columns))


def _check_comparison(tree: TableTree, name: str, table: Table, rule: ColumnComparison) -> None:
    """Refuse a rule that names no table above a table, or no column of it, or contradicts its column."""
    above, column = rule.above
    columns = {table_name: tree.data_columns(table_name) for table_name in (name, *tree.above(name))}
    for table_name in (rule.lhs[0] or name, above):
        if table_name not in columns:
            meant = did_you_mean(table_name, columns)
            raise InputError(f"{str(rule)!r}: {table_name!r} is no table above {name!r}{meant}")
    if column in tree.tables[above].elsewhere:
        raise InputError(f"{str(rule)!r}: {column!r} follows from another table itself: name that one")
    if rule.sign == EQUAL:
        if rule.lhs[0] is not None:
            raise InputError(f"{str(rule)!r}: it names no column of {name!r}, which would be the copy")
        if column in tree.tables[above].dealt:
            raise InputError(f"{str(rule)!r}: {rule.name} is dealt, and is not copied: drop one of both")
        if column not in tree.tables[above].keys:
            check_column(above, column, columns[above])
        return
    check_column(name, rule.column, columns[name])
    check_column(above, column, columns[above])
    coded, coded_above = (
        {} if schema is None else schema.coded for schema in (table.schema, tree.tables[above].schema)
    )
    for comparison in (rule, *following(table.schema, rule)):
        comparison.check(coded.get(comparison.column), coded_above.get(column))


def _check_computed(tree: TableTree, name: str, table: Table, rules: Sequence[ComputedAbove]) -> None:
    """Refuse a computed column of another table, or whose parts are not there or contradict it."""
    tables = (name, *tree.above(name))
    columns_of_parent = (table.parent and tree.data_columns(table.parent)) or ()
    for rule in rules:
        if both := [column for column in rule.constant if column in columns_of_parent]:
            raise InputError(f"{str(rule)!r}: {both[0]!r} is a column of {table.parent!r} too: rename it")
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
                check_column(above, column, tree.data_columns(above))
            if above != name and column in tree.tables[above].elsewhere:
                raise InputError(
                    f"{str(rule)!r}: {column!r} follows from another table itself: name that one"
                )
    schemas = {above: tree.tables[above].schema for above in tables}
    coded = {above: {} if schema is None else schema.coded for above, schema in schemas.items()}
    constant = {column: kind for column, kind in coded[name].items() if column in table.constant}
    for total in table.constant_sums:
        if {*total.columns} <= coded[name].keys():
            constant[total.name] = total.kind(coded[name])
    check_computed_above(rules, coded[name], {**coded, CONSTANT: constant}, table.compared_columns)


def _signs_between(tree: TableTree, low: tuple[str, str], high: tuple[str, str]) -> set[str]:
    """Return how rules relate two columns, of one table or of a table and one above it: "<" or "<="."""
    signs = {"<="} if low == high else set[str]()
    if low[0] == high[0]:
        signs |= {
            "<" if strict else "<="
            for lower, upper, strict in orders(tree.tables[low[0]].schema)
            if (lower, upper) == (low[1], high[1])
        }
    for (table, column), above, sign in ((low, high, "<"), (high, low, ">")):
        for rule in (rule.seen_from(table) for rule in tree.tables[table].compared):
            if rule.column == column and rule.above == above and rule.sign[0] == sign:
                signs.add("<" if rule.strict else "<=")
    return signs


def seen_from(_: TableTree, name: str, table: Table) -> Table:
    """Return a table in whose rules no column of the table itself stands behind its name."""
    rules: list[object] = []
    for rule in table.constraints:
        if isinstance(rule, ColumnComparison | ComputedAbove):
            seen = rule.seen_from(name)
            rules.append(str(seen) if seen.is_within_table else seen)
        else:
            rules.append(rule)
    return replace(table, constraints=rules) if rules else table
