"""Rows from a schema alone: for code that is written before, or away from, the private table.

No table is read, and no epsilon is spent. Each value is as frequent as any other, so the rows say nothing
about any data. They keep the rules of the schema, because privsyn makes them as it makes synthetic rows: from
a release, whose counts are all equal here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd

from privsyn.arguments import check_whole
from privsyn.errors import InputError, about, kept_disagreements
from privsyn.inference.measured_columns import MeasuredColumns
from privsyn.marginals.domain import Domain
from privsyn.marginals.marginal import Marginal, Measurement, groups_at
from privsyn.marginals.recoding import Merging
from privsyn.methods.default import fit_one_ways
from privsyn.methods.learning import Learned
from privsyn.methods.reading import Opened
from privsyn.methods.run_of_tables import Run
from privsyn.methods.table_of_run import NO_CONTEXT, LearnedTable, RunTable, with_required_bounds
from privsyn.private.randomness import seeded_bits
from privsyn.private.run_ledger import RunLedger
from privsyn.release.release import Release
from privsyn.release.release_of_run import release_of
from privsyn.synthesis.chains import Links
from privsyn.synthesizer import PrivSyn
from privsyn.table.codec.codec import Codec
from privsyn.table.codec.file_dtypes import dtypes_in_file
from privsyn.table.database.database import Database
from privsyn.table.database.declared import Table
from privsyn.table.database.derived_columns import (
    changes_of,
    most_rows_by_rules,
    number_of_changes,
    number_of_rows,
    rows_of,
)
from privsyn.table.database.lookups import with_lookups
from privsyn.table.database.yaml_form import as_database
from privsyn.table.encoding.dtypes import parse_dtype
from privsyn.table.schema.columns import Categorical, Coded, Column, Datetime, Duration, Numerical, Ordinal
from privsyn.table.schema.constraint import constraint_to_plain
from privsyn.table.schema.schema import Schema, declared

NOTHING = (
    "nobody: the rows were made from a schema alone, each value as often as any other. They say nothing of"
    " any data"
)
"""The promise in the ledger of such rows."""

PUBLIC = ("all that the schema says",)

MISSING = 0.05
"""Share of missing cells, in columns that may have some."""

MOST_CHILDREN = 4
"""Rows of each row above, at most, if the schema says nothing."""

GROUPS = 32
"""Groups of numbers or times that are drawn alike."""

PLACEHOLDERS: Mapping[type[Ordinal], tuple[Any, Any]] = {
    Numerical: (0, 100),
    Datetime: ("2000-01-01", "2029-12-31"),
    Duration: ("0 days", "30 days"),
}
"""Bounds of columns for which the schema has none."""

WORDS = ("value 1", "value 2", "value 3")
"""Values of columns for which the schema lists none."""


def dummy(
    schema: Schema | Database | str | PathLike[str], rows: int = 1000, *, seed: int | None = None
) -> Any:
    """Return rows from a schema alone. No table is read, no epsilon spent: THEY SAY NOTHING OF ANY DATA.

    All values are equally frequent, and numbers are spread evenly between their bounds. The rows keep the
    constraints, and linked tables their keys and rules. Where the schema lists no values, or has no bounds,
    they are placeholders: ``"value 1"`` to ``"value 3"``, 0 to 100, 2000 to 2029.

    Parameters
    ----------
    schema : Schema, Database, or path of a YAML file
    rows : int
        Number of rows; of linked tables, of the table without a parent.
    seed : int, optional
        Makes the rows repeatable.

    Returns
    -------
    pandas.DataFrame, or for a database a dict of tables by their names

    Raises
    ------
    InputError
        If the schema declares no columns, or a placeholder contradicts a constraint.

    Warns
    -----
    ColumnWarning
        If columns of free text are left out.

    Examples
    --------
    >>> from privsyn import Categorical, Numerical
    >>> schema = Schema({"sex": Categorical(["F", "M"]), "age": Numerical(0, 9, integer=True)})
    >>> table = dummy(schema, 50, seed=0)
    >>> len(table), sorted(table["sex"].dropna().unique()), int(table["age"].max()) <= 9
    (50, ['F', 'M'], True)
    """
    rows = check_whole("rows", rows)
    release = uniform_release(schema, rows)
    with kept_disagreements():  # rules make some values rarer than others
        return release.sample(rows, seed=seed)


def uniform_release(schema: Schema | Database | str | PathLike[str], rows: int) -> Release[Any]:
    """Return a release in which all codes have equal counts. Nothing but the schema is in it."""
    database = with_placeholders(with_lookups(as_database(schema)))
    # The settings of a run are read, and no question is asked: neither epsilon nor seed has a meaning here.
    settings: Any = PrivSyn(1.0, 1e-9, None if database.single else database, seed=0)
    bits = seeded_bits(np.random.default_rng(0))
    if database.single is not None:
        public = declared(database.schema)
        if public is None:
            raise InputError("the schema declares no column: rows are made from what it says")
        settings = PrivSyn(1.0, 1e-9, public, seed=0)
        run = Run.of_one(Opened.of(_empty(public), None, settings, bits))
    else:
        run = Run.of(database, _empty_tables(database), settings, bits)
    learned: dict[str, LearnedTable] = {}
    for table in run.tables:
        with run.database.naming_errors(table.name):
            learned[table.name] = _learned(run, table, learned, float(max(rows, 1)))
    return release_of(run, learned, RunLedger.measured_elsewhere(NOTHING, PUBLIC))


def _learned(run: Run, table: RunTable, learned: Mapping[str, LearnedTable], rows: float) -> LearnedTable:
    """Return a table of which all codes have equal counts."""
    columns: dict[str, Numerical] = {}
    kinds = {table.name: table.opened.schema.schema.coded for table in run.tables}
    for child in run.database.children(table.name):
        declared = run.database.tables[child]
        numbers = number_of_rows(declared, min(MOST_CHILDREN, most_rows_by_rules(declared, kinds[child])))
        columns[rows_of(child)] = numbers
        for column in run.database.tables[child].lasting:
            columns[changes_of(run.database, child, column)] = number_of_changes(numbers.bounds[1])
    table = table.with_numbers_of_rows(columns)
    opened = with_required_bounds(table.opened, table.declared, learned)
    codec = opened.codec(opened.schema.fill({}, {}))
    links = None if table.declared.parent is None else Links({}, {}, ())
    return LearnedTable(Learned(codec, fit_one_ways(uniform_columns(codec, rows))), links, NO_CONTEXT)


def uniform_columns(codec: Codec, rows: float) -> MeasuredColumns:
    """Return one-way tables of equal counts: of each value, and in proportion to its width of each cell."""
    merging = _merging(codec)
    zeros = codec.possible(merging)
    one_ways = []
    for name, widths in _widths(codec).items():
        domain = merging.merged.project((name,))
        counts = np.asarray(np.bincount(merging.group_of[name], widths) * rows, np.float64)
        one_ways.append(zeros.clean(Measurement(Marginal(domain, counts), np.ones(domain.shape))))
    return MeasuredColumns(merging, zeros, one_ways=tuple(one_ways))


def _widths(codec: Codec) -> dict[str, Any]:
    """Return the share of rows that each code of each attribute gets."""
    shares = {}
    for name, size in codec.domain.size_of.items():
        widths = np.ones(size)
        if name in codec.axes:
            widths[: codec.domain.ordered_of[name]] = codec.axes[name].widths
        if name in codec.nullable and size > 1:
            widths[-1] = MISSING / (1 - MISSING) * widths[:-1].sum()
        shares[name] = widths / widths.sum()
    return shares


def _merging(codec: Codec) -> Merging:
    """Return the merging of the cells of each ordered attribute to groups of about equal width."""
    domain, groups, shares = codec.domain, [], []
    for name, widths in _widths(codec).items():
        alone = domain.project((name,))
        group = np.arange(alone.cells, dtype=np.int32)
        if name in codec.axes:
            group = groups_at(Marginal(alone, np.asarray(widths, np.float64)), GROUPS)
        groups.append(group.astype(np.int32))
        of_group = np.bincount(group, widths)
        shares.append(widths / of_group[group])
    sizes = tuple(int(group.max()) + 1 for group in groups)
    ordered = tuple(
        int(group[: codec.domain.ordered_of[name]].max()) + 1 if codec.domain.ordered_of[name] else 0
        for name, group in zip(domain.names, groups, strict=True)
    )
    return Merging(domain, Domain(domain.names, sizes, ordered), tuple(groups), tuple(shares))


def with_placeholders(database: Database) -> Database:
    """Return a database, or one table, in which no value or bound is left open.

    >>> from privsyn import Categorical, Numerical
    >>> schema = Schema({"ward": Categorical(), "age": Numerical()})
    >>> filled = with_placeholders(Database.of_one(schema)).schema
    >>> filled.columns["ward"].values, filled.columns["age"].bounds
    (('value 1', 'value 2', 'value 3'), (0.0, 100.0))
    """
    tables: dict[str, Table] = {}
    for name, table in database.tables.items():
        schema = table.schema
        with database.naming_errors(name) if name in database.private else about(f"table {name!r}"):
            if schema is not None and schema.columns:
                tables[name] = replace(table, schema=_completed(schema, table.lookups))
            elif schema is None and table.public is None and database.single is None:
                raise InputError("its columns are not declared: rows are made from what the schema says")
            else:
                tables[name] = table
    return replace(database, tables=tables)


def placeholders_of(database: Database) -> list[str]:
    """Return the columns of private tables whose values or bounds the schema leaves open.

    >>> from privsyn import Categorical, Numerical
    >>> placeholders_of(Database.of_one(Schema({"ward": Categorical(), "age": Numerical(0, 9)})))
    ['ward']
    """
    return [
        database.shown_column(name, column)
        for name in database.shown
        if (schema := with_lookups(database).tables[name].schema) is not None
        for column, kind in schema.coded.items()
        if not kind.is_public and column not in schema.computed
    ]


def _completed(schema: Schema, lookups: Mapping[str, str]) -> Schema:
    columns = dict(schema.columns)
    plain = [constraint_to_plain(rule, schema.columns) for rule in schema.constraints]
    for name, column in schema.columns.items():
        if isinstance(column, Categorical) and column.keep is not None:
            columns[name] = column = replace(column, keep=None)
        if not isinstance(column, Coded) or column.is_public or name in (*schema.computed, *lookups):
            continue
        columns[name] = _placeholder(name, column, schema, plain)
    return replace(schema, columns=columns)


def _placeholder(name: str, column: Coded, schema: Schema, plain: list[Any]) -> Column:
    """Return a column with values or bounds: those that its constraints name, or else some of its kind."""
    if isinstance(column, Categorical):
        named = tuple(dict.fromkeys(_named(name, plain)))
        kinds = {type(value) for value in named}
        more: tuple[Any, ...] = WORDS if kinds <= {str} else () if kinds == {bool} else _others(named)
        pooled = () if column.other is None else (column.other,)
        return replace(column, values=tuple(dict.fromkeys((*named, *more, *pooled))), ordered=None)
    low, high = next((ends for kind, ends in PLACEHOLDERS.items() if isinstance(column, kind)), (None, None))
    related = [
        schema.columns[column_of_rule]
        for rule in schema.constraints
        if name in rule.columns
        for column_of_rule in rule.columns
        if type(schema.columns[column_of_rule]) is type(column) and schema.columns[column_of_rule].is_public
    ]
    if related:
        low, high = min(kind.low for kind in related), max(kind.high for kind in related)  # type: ignore[attr-defined]
    return replace(column, low=low, high=high)


def _others(named: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return three numbers besides those that are named."""
    last = max((int(value) for value in named if isinstance(value, int | float)), default=0)
    return tuple(range(last + 1, last + 4))


def _named(name: str, plain: Any) -> Iterator[Any]:
    """Yield the values of a column that constraints, as plain data, name."""
    if isinstance(plain, Mapping):
        for key, part in plain.items():
            if key == name:
                values = part if isinstance(part, list) else [part]
                yield from (value for value in values if isinstance(value, str | int | float))
            else:
                yield from _named(name, part)
    elif isinstance(plain, list):
        for part in plain:
            yield from _named(name, part)


def _empty(schema: Schema) -> pd.DataFrame:
    """Return a table without rows, in the dtypes of a CSV with this schema."""
    return pd.DataFrame(
        {name: pd.Series([], dtype=parse_dtype(text)) for name, text in dtypes_in_file(schema).items()}
    )


def _empty_tables(database: Database) -> dict[str, pd.DataFrame]:
    """Return the private tables without rows, each with its keys, links, order and look-ups."""
    frames = dict[str, pd.DataFrame]()
    for name in database.names:
        table = database.tables[name]
        frame = _empty(table.schema or Schema({}))
        keys = [column for column in (*table.keys, table.only_order) if column is not None]
        front = {
            column: pd.Series([], dtype="Int64" if column in table.dealt else "int64") for column in keys
        }
        rest: dict[str, pd.Series] = {}
        for column, rule in table.copied.items():
            above, original = rule.above
            cells = frames[above].get(original)
            rest[column] = pd.Series([], dtype="int64" if cells is None else cells.dtype)
        for column, lookup in table.lookups.items():
            (key,) = database.tables[lookup].key_columns
            rest[column] = database.tables[lookup].public.frame[key].iloc[:0]
        for column in table.computed:
            rest[column] = pd.Series([], dtype="float64")
        missing = {column: cells for column, cells in rest.items() if column not in (*frame, *front)}
        data = {str(column): frame[column] for column in frame}
        frames[name] = pd.DataFrame({**front, **data, **missing})
    return frames
