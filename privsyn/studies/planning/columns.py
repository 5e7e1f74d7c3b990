"""The columns of a plan: their values or bins, and what to know of them, from public facts alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING

from privsyn.errors import spelled
from privsyn.inference.weights import TARGET
from privsyn.marginals.domain import Attributes, Domain
from privsyn.methods.reading import attribute_sets, counted_directly
from privsyn.methods.run_encoding import RunEncoding
from privsyn.studies.student import Student
from privsyn.table.codec.codec import Codec
from privsyn.table.discovery.open_schema import OpenSchema
from privsyn.table.encoding.grid import FINE
from privsyn.table.io.csv_table import PLAIN, check_header
from privsyn.table.io.formats import Location, is_typed
from privsyn.table.io.identifiers import check_unit_column
from privsyn.table.io.read_in_memory import read_columns
from privsyn.table.schema.implied import declared_or_by_names
from privsyn.table.schema.important import in_words
from privsyn.table.schema.schema import Schema
from privsyn.table.totals.totals import Totals

if TYPE_CHECKING:
    import pandas as pd

    from privsyn.settings import Settings

ASSUMED_VALUES = 20
"""Assumed number of values of a column whose values `fit` finds."""

Named = Mapping[str, tuple[Attributes, ...]]
"""Sets of columns that matter most, in words, and the sets of attributes that each is counted as."""

MOST_NAMED = 3
"""Columns with wide cells that a plan names."""


def planned_columns(table: object, schema: Schema | None, unit: str | None) -> pd.DataFrame:
    """Return the columns of a table or a schema, without rows and without that of persons."""
    columns = read_columns(schema if table is None else table, schema)
    if isinstance(table, str | PathLike) and not is_typed(table):
        columns_of_schema = () if schema is None else schema.columns
        check_header(
            Location.of(table),
            columns.columns.tolist(),
            columns_of_schema if unit is None else (*columns_of_schema, unit),
            PLAIN if schema is None else schema.csv,
        )
    if unit is not None and table is not None:
        check_unit_column(columns.columns, unit)
    return columns if unit is None else columns.drop(columns=unit, errors="ignore")


def planned_totals(
    columns: pd.DataFrame, schema: Schema | None, totals: object
) -> tuple[Totals, Schema | None]:
    """Return the known totals of a table of these columns, and the schema with what they make public."""
    public = declared_or_by_names(schema, columns)
    tables = Totals.read(totals, public)
    return tables, tables.complete(public, columns) if tables else schema


def planned_domain(
    columns: pd.DataFrame, schema: Schema | None, settings: Settings, tables: Totals
) -> tuple[Domain, OpenSchema, list[str], Named]:
    """Return the domain with the public values or bins of each column, and a line on columns not counted.

    The last are the sets of attributes of the columns that matter most together. Neither the target nor
    a column of known totals, in `tables`, is computed, encoded as a gap or counted in parts.
    """
    target, important, tested = settings.target, settings.matters_most, settings.criteria
    counted = counted_directly(
        target, important, (*(() if tested is None else tested.columns), *tables.columns)
    )
    open_schema = replace(OpenSchema.of(schema, columns), counted_directly=counted).with_widest_computed()
    open_schema.schema.check_important(spelled("important"), important, read=True)
    encoding = RunEncoding(open_schema, columns, target, tables, fine=settings.algorithm.fine_cells)
    codec, sizes = planned_sizes(open_schema, encoding.codec())
    with_codes = set(map(codec.column_of, codec.domain.names))
    uncounted = ", ".join(name for name in columns.columns if name not in with_codes)
    line = [f"not counted, as they are computed, generated or left out: {uncounted}"] if uncounted else []
    named = {
        in_words((columns_of_set,)): attribute_sets(codec, (columns_of_set,)) for columns_of_set in important
    }
    ordered = tuple(map(min, codec.domain.ordered, sizes))
    return Domain(codec.domain.names, sizes, ordered), open_schema, line, named


def planned_sizes(open_schema: OpenSchema, codec: Codec) -> tuple[Codec, tuple[int, ...]]:
    """Return the codec of a run with public values and bins, and how many of these each attribute has.

    Of values that `fit` finds, a number is assumed. The parts of the times that it splits are attributes, and
    its gaps.
    """
    codec = replace(codec, fine=False, heaps={})
    sizes = []
    for name, size in codec.domain.size_of.items():
        column_name = codec.column_of(name)
        column = open_schema.schema.columns[column_name]
        if column_name in open_schema.values:
            size = ASSUMED_VALUES
        elif column_name in codec.split:
            size = min(size, column.bins)  # type: ignore[attr-defined]
        elif column_name in open_schema.bounds:
            size = column.bins  # type: ignore[attr-defined]
        sizes.append(size)
    return codec, tuple(sizes)


def notes(schema: Schema, target: str | None, epsilon: float) -> tuple[str, ...]:
    r"""Return the sentences that apply to a schema and a target, with this epsilon for one row.

    >>> from privsyn import Numerical
    >>> schema = Schema({"pay": Numerical(0, 256_000), "age": Numerical(0, 99, integer=True)})
    >>> print(*notes(schema, "age", 0.5), sep="\n")  # doctest: +NORMALIZE_WHITESPACE
    numbers are released in up to 32 cells of about as many rows each: 8,000 wide for pay if the rows were
    spread evenly between the bounds, narrower where they are dense, wider where rare
    target age: errors in tables with it weigh 4 times; the errors below are means over all tables
    a model to train: a random forest with leaves of at least 5 rows; boosting learns the noise
    """
    sentences = []
    if cells := _cells(schema):
        widest = sorted(cells.items(), key=lambda item: -item[1])[:MOST_NAMED]
        listed = ", ".join(f"{_shown(width)} wide for {name}" for name, width in widest)
        bins = max(schema.coded[name].bins for name in cells)  # type: ignore[attr-defined]
        sentences.append(
            f"numbers are released in up to {bins} cells of about as many rows each: {listed} if the"
            " rows were spread evenly between the bounds, narrower where they are dense, wider where rare"
        )
    if schema.randomised:
        names = ", ".join(schema.randomised)
        sentences.append(f"randomised by the respondents, so their errors are larger than planned: {names}")
    if schema.weight is not None:
        sentences.append(
            f"weights {schema.weight}: each column is counted with them; weighted shares and means have wider"
            " intervals than those of rows"
        )
    if target is not None:
        sentences.append(
            f"target {target}: errors in tables with it weigh {TARGET:g} times;"
            " the errors below are means over all tables"
        )
        sentences.append(str(Student.for_epsilon(epsilon)))
    return tuple(sentences)


def _shown(width: float) -> str:
    return f"{width:,.0f}" if width >= 100 else f"{width:.3g}"


def _cells(schema: Schema) -> dict[str, float]:
    """Return how wide a released cell of each column is, if its rows are spread evenly between the bounds.

    Columns whose numbers may be counted one by one are left out. Fine cells are joined until each has about
    as many rows. Where the rows are is private, so no plan knows the width of a cell.
    """
    widths = {}
    for name, column in schema.coded.items():
        if (ends := column.number_range) is not None:
            reach, decimals = float(ends[1]) - float(ends[0]), column.fixed_decimals
            if decimals is None or reach * 10.0**decimals >= FINE:
                widths[name] = reach / column.bins  # type: ignore[attr-defined]
    return widths
