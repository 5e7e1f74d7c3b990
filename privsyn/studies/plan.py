"""What a run would bring: the split of its budget, its noise, error, time and memory. It reads no row.

Everything here follows from public facts: the schema, the names and types of the columns, and a rough number
of rows that the caller gives. What is not public, how the values are shared out and how the columns depend,
is taken to be as in usual tables, so errors are right to a factor of two or so. Time and memory are rough.
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
from privsyn.inference.dispersion import MEAN_OF_ABSOLUTE
from privsyn.inference.higher_order import candidates
from privsyn.marginals.domain import Domain
from privsyn.marginals.types import Floats
from privsyn.methods.budget import Split
from privsyn.methods.discovery import BOUNDS, CLOSER_BOUNDS, least_share, reserved_delta
from privsyn.private.accounting import rho_for
from privsyn.synthesizer import PrivSyn
from privsyn.table.discovery.open_schema import OpenSchema
from privsyn.table.encoding.codec import Codec
from privsyn.table.io.csv_text import check_header
from privsyn.table.io.read import ending_of, read_columns
from privsyn.table.schema.schema import Schema

if TYPE_CHECKING:
    import pandas as pd


ROWS = (1_000, 10_000, 100_000, 1_000_000)
"""Numbers of rows to plan for where none is given."""

ASSUMED_VALUES = 20
"""Of a column whose values are to be found."""

USUAL_DEPENDENCE = 0.06
"""Total variation between a pair of columns and what it would be if they were independent: at this, planned
errors of pairs are from 0.7 to 2.3 times those that came about on five tables at epsilon 0.2, 1 and 5."""

# Seconds on one core of 2025, and bytes, fitted to tables of 6,000 to 49,000 rows.
START, A_PAIR, A_CELL = 0.7, 0.5e-6, 2.5e-6  # s; a pair and row of the fit; a cell of the synthetic table
PROGRAM, A_ROW = 250e6, 80.0  # bytes; a cell of the table


@dataclass(frozen=True)
class Expectation:
    """Of a table of so many rows.

    Parameters
    ----------
    rows : int
    parts : mapping of a question to its share of the budget
    count_noise : float
        Standard deviation of the noise in a count of one column, by all that tells of it, in rows.
    one_way_error, pair_error : float
        Expected total variation of the estimated tables of one and of two columns, on average; the second is
        NaN where there are no pairs.
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
    """What to expect of a run, for one or more numbers of rows.

    Parameters
    ----------
    epsilon, delta : float
        The promise.
    rho : float
        The budget that it allows, in zCDP, of one row.
    sizes : mapping of a column to how many values or bins it is counted in
    to_find : tuple of str
        Columns whose values or bounds the schema does not give.
    untyped : bool
        The table is a file without types, and no schema gives them.
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
    "An error is the share of rows that would have to move; that of two columns depends on the table, and is",
    "planned for one whose columns depend as usual. Nothing was spent, and no row was read.",
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
    """What to expect of ``PrivSyn(epsilon, delta, schema).fit(table)``, of public facts alone.

    Parameters
    ----------
    table : pandas, polars or pyarrow table, or a path to a .csv, .csv.gz or .parquet file, optional
        Only the names and dtypes of its columns are looked at; of a CSV file, its header. Left out, or a
        Schema in its place: those of the schema.
    epsilon, delta, schema, unit, rows_per_unit, target : as for PrivSyn
    rows : int, optional
        A rough number of rows, publicly known: do not count them. Left out: from a thousand to a million.

    Raises
    ------
    InputError
        If a setting cannot work.

    Examples
    --------
    >>> from privsyn import Categorical, Numerical
    >>> schema = Schema({"age": Numerical(16, 100, integer=True), "sex": Categorical(["Female", "Male"])})
    >>> found = plan(schema, 1.0, rows=10_000)
    >>> found.sizes, f"{found.expectations[0].pair_error:.3f}"
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
    )  # refuses them here
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
        check_column("target", target, domain.names)
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
    """In how many values or groups of bins each column is counted, as far as can be told."""
    unknown = OpenSchema.of(schema, columns)
    public = unknown.fill({}, {})
    codec = Codec.for_table(public, columns)
    sizes = []
    for name, size in zip(codec.domain.names, codec.domain.sizes, strict=True):
        column = unknown.schema.columns[name]
        if name in unknown.values:
            size = ASSUMED_VALUES
        elif name in unknown.bounds:
            size = column.bins  # type: ignore[attr-defined]
        sizes.append(size)
    return Domain(codec.domain.names, tuple(sizes)), unknown


def _expect(domain: Domain, rho: float, rows: int, *, finding: float, predict: bool) -> Expectation:
    """The parts of the budget and what they bring, as `methods.default` goes about it."""
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
    # Each pair tells of its two columns as well; one of b values sums b noisy counts for it.
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
    """Of the values of a column, as they usually are: the k-th has one k-th of what the first has."""
    weights = 1 / np.arange(1, size + 1)
    return np.asarray(weights / weights.sum())


def _one_way_error(size: int, sigma: float, rows: int) -> float:
    """A value of fewer rows than the noise is, at worst, lost."""
    errors = np.minimum(MEAN_OF_ABSOLUTE * sigma * sqrt(1 - 1 / size), rows * _shares(size))
    return float(errors.sum() / (2 * rows))


def _table_error(a: int, b: int, rho: float, rows: int) -> float:
    """What is left of a usual dependence once it has been measured; see `privsyn.inference.allocation`."""
    expected = rows * np.multiply.outer(_shares(a), _shares(b))
    root = USUAL_DEPENDENCE * 2 * rows / (MEAN_OF_ABSOLUTE * np.sqrt(expected).sum())
    prior = root**2 * expected
    left = MEAN_OF_ABSOLUTE * np.sqrt(prior / (1 + 2 * rho * prior)).sum()
    return float(left / (2 * rows) * sqrt((1 - 1 / a) * (1 - 1 / b)))


def _error(share: float) -> str:
    return "" if np.isnan(share) else f"{share:.2%}"


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
