"""Plan a run: the split of its budget, its noise, error, time and memory. It reads no row.

A plan uses only public facts: the schema, the names and types of the columns, and a rough number of rows that
the caller gives. Distributions and dependences are assumed to be typical, so errors are accurate to a factor
of about two. Time and memory are rough.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb, hypot, sqrt
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from privsyn.arguments import check_column, check_finite, check_whole
from privsyn.errors import InputError, plural, printable
from privsyn.inference.higher_order import candidates
from privsyn.inference.prior.dispersion import MEAN_OF_ABSOLUTE
from privsyn.marginals.domain import Domain
from privsyn.marginals.types import Floats
from privsyn.methods.budget import Split
from privsyn.methods.discovery import BOUNDS, CLOSER_BOUNDS, least_share, reserved_delta
from privsyn.private.accounting import rho_for
from privsyn.synthesizer import PrivSyn
from privsyn.table.discovery.open_schema import OpenSchema
from privsyn.table.encoding.codec import Codec
from privsyn.table.io.csv_header import check_header
from privsyn.table.io.read import ending_of, read_columns
from privsyn.table.schema.schema import Schema

if TYPE_CHECKING:
    import pandas as pd


ROWS = (1_000, 10_000, 100_000, 1_000_000)
"""Default numbers of rows to plan for."""

ASSUMED_VALUES = 20
"""Assumed number of values of a column whose values `fit` finds."""

USUAL_DEPENDENCE = 0.06
"""Assumed total variation between a pair of columns and the product of its marginals. Planned errors of pairs
were 0.7 to 2.3 times the measured errors on five tables at epsilon 0.2, 1 and 5."""

# Seconds on one core of 2025, and bytes, fitted to tables of 6,000 to 49,000 rows.
START, A_PAIR, A_CELL = 0.7, 0.5e-6, 2.5e-6  # s; a pair and row of the fit; a cell of the synthetic table
PROGRAM, A_ROW = 250e6, 80.0  # bytes; a cell of the table


@dataclass(frozen=True)
class Expectation:
    """The expected result for a table with this number of rows.

    Parameters
    ----------
    rows : int
    parts : mapping of a question to its share of the budget
    count_noise : float
        Standard deviation of the noise in a one-way count, from all measurements combined, in rows.
    one_way_error, pair_error : float
        Mean expected total variation of the tables of one and of two columns; the second is NaN without
        pairs.
    seconds : float
    memory : float
        In bytes.
    """

    rows: int
    parts: dict[str, float]
    count_noise: float
    one_way_error: float
    pair_error: float
    seconds: float
    memory: float


@dataclass(frozen=True)
class Plan:
    """The expected results of a run, for one or more numbers of rows.

    Parameters
    ----------
    epsilon, delta : float
        The privacy guarantee.
    rho : float
        The budget in zCDP for one row.
    sizes : mapping of a column to its number of values or bins
    to_find : tuple of str
        Columns whose values or bounds are not in the schema.
    untyped : bool
        Whether the table is a file without types, and there is no schema.
    expectations : tuple of Expectation
    """

    epsilon: float
    delta: float
    rho: float
    sizes: dict[str, int]
    to_find: tuple[str, ...]
    untyped: bool
    expectations: tuple[Expectation, ...]

    def __str__(self) -> str:
        all_rows = self.expectations
        lines = [("rows of the table, as given", [f"{e.rows:,}" for e in all_rows])]
        for part in all_rows[0].parts:
            lines.append((f"budget for {part}", [f"{e.parts[part]:.1%}" for e in all_rows]))
        lines.append(("noise in a count of one column", [f"{e.count_noise:,.1f}" for e in all_rows]))
        lines.append(("error of one column, expected", [_error(e.one_way_error) for e in all_rows]))
        if len(self.sizes) > 1:
            lines.append(("error of two columns, expected", [_error(e.pair_error) for e in all_rows]))
        lines.append(("time, about", [_duration(e.seconds) for e in all_rows]))
        lines.append(("memory, about", [f"{e.memory / 1e9:.1f} GB" for e in all_rows]))
        width = max(len(title) for title, _ in lines)
        columns = len(self.sizes)
        largest = sorted(self.sizes.items(), key=lambda item: -item[1])[:3]
        head = [
            f"epsilon {self.epsilon:g} at delta {self.delta:g}: a budget of {self.rho:.4g} in rho",
            f"{plural(columns, 'column')}, {plural(comb(columns, 2), 'pair')}; the largest: "
            + ", ".join(f"{name} ({size:,})" for name, size in largest),
        ]
        if self.to_find:
            head.append(
                f"values or bounds to be found: {', '.join(self.to_find)}"
                f" (planned with {ASSUMED_VALUES} values each)"
            )
        if self.untyped:
            head.append(
                "which columns hold numbers is not known before the file is read:"
                f" to find their bounds takes another {BOUNDS:.0%} or {BOUNDS + CLOSER_BOUNDS:.0%}"
            )
        table = [f"{title:<{width}}" + "".join(f"{cell:>12}" for cell in cells) for title, cells in lines]
        return "\n".join(map(printable, [*head, "", *table, "", *NOTES]))


NOTES = (
    "An error is the share of rows that would have to change. For two columns it assumes a typical",
    "dependence. Nothing was spent, and no row was read.",
)


def plan(
    table: Any = None,
    epsilon: float = 1.0,
    delta: float = 1e-9,
    schema: Schema | None = None,
    *,
    rows: int | None = None,
    unit: str | None = None,
    rows_per_unit: int | None = None,
    target: str | None = None,
) -> Plan:
    """Plan ``PrivSyn(epsilon, delta, schema).fit(table)`` from public facts alone.

    Parameters
    ----------
    table : pandas, polars or pyarrow table, or a path to a .csv, .csv.gz or .parquet file, optional
        Only the names and dtypes of its columns are read; of a CSV file, the header. Default: the columns of
        the schema. A Schema is accepted here, too.
    epsilon, delta, schema, unit, rows_per_unit, target : as for PrivSyn
    rows : int, optional
        A rough, public number of rows: do not count them. Default: from a thousand to a million.

    Raises
    ------
    InputError
        If a setting is impossible.

    Examples
    --------
    >>> from privsyn import Categorical, Numerical
    >>> schema = Schema({"age": Numerical(16, 100, integer=True), "sex": Categorical(["Female", "Male"])})
    >>> planned = plan(schema, 1.0, rows=10_000)
    >>> planned.sizes, f"{planned.expectations[0].pair_error:.3f}"
    ({'age': 33, 'sex': 3}, '0.021')
    """
    if isinstance(table, Schema):
        if schema is not None:
            raise InputError("two schemas: give a table and a schema, or the schema alone")
        table, schema = None, table
    if table is None and schema is None:
        raise InputError("a plan needs the columns: give a table, a schema, or both")
    PrivSyn(
        epsilon, delta, schema, unit=unit, rows_per_unit=rows_per_unit, target=target
    )  # refuses wrong settings
    numbers = ROWS if rows is None else (check_whole("rows", rows, least=1),)
    columns = read_columns(schema if table is None else table, schema)
    text = isinstance(table, str | PathLike) and ending_of(table) != ".parquet"
    if text:
        known = () if schema is None else schema.columns
        check_header(Path(table), columns.columns.tolist(), known if unit is None else (*known, unit))
    if unit is not None:
        columns = columns.drop(columns=unit, errors="ignore")
    domain, unknown = _domain(columns, schema)
    if target is not None:
        check_column("target", target, unknown.schema.coded)
    epsilon, delta = check_finite("epsilon", epsilon), check_finite("delta", delta)
    reserved = reserved_delta(delta, unknown)
    rho = rho_for(epsilon, delta - reserved, "gaussian") / (rows_per_unit or 1) ** 2
    to_find = (*unknown.values, *unknown.bounds)
    expectations = tuple(
        _expect(domain, rho, n, finding=least_share(unknown), predict=target is not None) for n in numbers
    )
    sizes = dict(zip(domain.names, domain.sizes, strict=True))
    return Plan(epsilon, delta, rho, sizes, to_find, text and schema is None, expectations)


def _domain(columns: pd.DataFrame, schema: Schema | None) -> tuple[Domain, OpenSchema]:
    """Return the domain with the number of values or bins of each column, as far as it is public."""
    unknown = OpenSchema.of(schema, columns)
    public = unknown.fill({}, {})
    codec = Codec.for_table(public, columns)
    sizes = []
    for name, size in zip(codec.domain.names, codec.domain.sizes, strict=True):
        of = codec.column_of(name)
        column = unknown.schema.columns[of]
        if of in unknown.values:
            size = ASSUMED_VALUES
        elif of in unknown.bounds:
            size = column.bins  # type: ignore[attr-defined]
        sizes.append(size)
    return Domain(codec.domain.names, tuple(sizes)), unknown


def _expect(domain: Domain, rho: float, rows: int, *, finding: float, predict: bool) -> Expectation:
    """Return the parts of the budget and the expected errors, following `methods.default`."""
    left = (1 - finding) * rho
    split = Split.for_domain(left, domain, rows, predict=predict)
    if not candidates(domain):
        split = split.without_scores()
    first, second = split.first_look + split.one_ways, split.pairs + split.second_look
    spent = {
        "values and bounds": finding * rho,
        "one-ways": first,
        "scores": split.departures + split.scores,
        "pairs and bigger tables": second,
    }
    number = len(domain) * (len(domain) - 1) // 2
    a_pair = second / max(number, 1)
    # Each pair also measures its two columns; a pair with b values sums b noisy counts for a value.
    of_others = 2 * a_pair * sum(1 / size for size in domain.sizes)
    sigma = 1 / sqrt(2 * first / len(domain) + of_others)
    one_ways = [_one_way_error(size, sigma, rows) for size in domain.sizes]
    of_pairs = [
        hypot(_table_error(a, b, a_pair, rows), one, two)
        for (a, one), (b, two) in combinations(zip(domain.sizes, one_ways, strict=True), 2)
    ]
    cells = rows * len(domain)
    return Expectation(
        rows=rows,
        parts={what: part / rho for what, part in spent.items() if part},
        count_noise=sigma,
        one_way_error=float(np.mean(one_ways)),
        pair_error=float(np.mean(of_pairs)) if of_pairs else float("nan"),
        seconds=START + A_PAIR * rows * number + A_CELL * cells,
        memory=PROGRAM + A_ROW * cells,
    )


def _shares(size: int) -> Floats:
    """Return typical shares of the values of a column, by Zipf's law: the k-th is 1/k of the first."""
    weights = 1 / np.arange(1, size + 1)
    return np.asarray(weights / weights.sum())


def _one_way_error(size: int, sigma: float, rows: int) -> float:
    """Return the expected error; the error of a value is at most its number of rows."""
    errors = np.minimum(MEAN_OF_ABSOLUTE * sigma * sqrt(1 - 1 / size), rows * _shares(size))
    return float(errors.sum() / (2 * rows))


def _table_error(a: int, b: int, rho: float, rows: int) -> float:
    """Return the posterior error of a typical dependence; see `privsyn.inference.selection`."""
    expected = rows * np.multiply.outer(_shares(a), _shares(b))
    root = USUAL_DEPENDENCE * 2 * rows / (MEAN_OF_ABSOLUTE * np.sqrt(expected).sum())
    prior = root**2 * expected
    left = MEAN_OF_ABSOLUTE * np.sqrt(prior / (1 + 2 * rho * prior)).sum()
    return float(left / (2 * rows) * sqrt((1 - 1 / a) * (1 - 1 / b)))


def _error(share: float) -> str:
    return "" if np.isnan(share) else f"{share:.2%}"


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
