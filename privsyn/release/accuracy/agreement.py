r"""Agreement: whether synthetic rows show what their release says. It uses released answers alone: no cost.

The rows are compared with the release's own estimates: the counts of each column and of each measured table,
the missing cells of each column, the means of ordered columns, and Spearman's correlation of each measured
pair of them. What the rows show must lie in the interval of the release, widened by what drawing n rows adds.

**False alarms.** The interval contains the estimate. So n rows that are drawn from the estimates leave it
only if they differ from its estimate by more than it was widened. With m comparisons, each is widened so that
this has a probability of at most `ALARM` / m, however the comparisons depend on each other:

- A mean of numbers with variance v, at most b from their mean, by :math:`\sqrt{2 v L / n} + b L / 3n` with
  :math:`L = \ln(2 m / \mathrm{ALARM})` (Bernstein's inequality). A share is a mean of zeros and ones.
- The share of rows in other cells than in the release: its expectation is at most
  :math:`\sum \sqrt{p (1 - p) / n} / 2`, and one row changes it by at most 1 / n. So it exceeds its
  expectation by :math:`\sqrt{L / 2n}` (McDiarmid's inequality).
- A correlation by :math:`\sqrt{2 L / n}`, as for ranks that are independent: the variance is 1 / n.

The method that makes rows scatters them less than independent draws. See docs/inference.md for how often
it was silent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, log, prod, sqrt
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from privsyn.errors import InputError, in_digits, replace_errors
from privsyn.inference.fitted import Certainty, Fitted
from privsyn.inference.ordered.number_intervals import (
    Interval,
    correlation_interval,
    correlation_of,
    mean_interval,
    squarable_unit,
)
from privsyn.inference.ratios.intervals import share_interval
from privsyn.marginals.counting import Tables, block_of
from privsyn.marginals.domain import Attributes, Floats, Ints, Records
from privsyn.marginals.marginal import Marginal
from privsyn.marginals.statistics import total_variation
from privsyn.release.accuracy.ordered_columns import OrderedColumns
from privsyn.table.codec.codec import Codec

ALARM = 0.01
"""Largest probability that rows drawn from the estimates are reported."""

UNMADE = 0.01
"""Share of the rows that a table may lack without a warning. The rows above have numbers of rows: their sum
says how many it should have."""

FEW = 100
"""Fewer rows are not compared: they may differ from any release by chance."""

CLEAR = 0.02
"""Shares that are further apart are shown without decimals."""

NO_OTHER_ROWS: Mapping[str, str] = MappingProxyType({})

MODEL, MORE_COLUMNS, CHANCE = 1.5, 1.0, 1.5
"""Parts of the limit of an error, in expected errors: for the model, more for each further column, and for
chance, divided by the root of the degrees of freedom. A mean of `n` absolute normal errors is below
1 + 1.96 sqrt(pi / 2 - 1) / sqrt(n) times its expectation with probability 0.95 or more. The rest is for the
model behind the expected error; that of one column needs none. The strength of a relationship was outside its
interval in 27 of 2,915 pairs of four tables (experiments/relationships.py)."""


def error_limit(error: float, shape: Sequence[int]) -> float:
    """Return the error that a table of this shape and expected error hardly exceeds."""
    freedom = max(prod(size - 1 for size in shape), 1)
    model = 1.0 if len(shape) == 1 else MODEL + MORE_COLUMNS * (len(shape) - 2)
    return error * (model + CHANCE / sqrt(freedom))


@dataclass(frozen=True)
class Disagreement:
    """Something that synthetic rows show and that lies outside the interval of the release.

    Parameters
    ----------
    columns : tuple of str
    what : str
        ``counts`` (the share of rows in other cells than in the release), ``missing``, ``mean``,
        ``rank correlation`` (Spearman's), or without columns ``rows`` (the number of rows).
    rows, release : number, or for a mean a cell of the column
        What the rows show, and the estimate of the release.
    low, high : the same
        The ends of the widened interval.
    ratio : float
        Distance from the estimate, over the largest in the interval.
    """

    columns: tuple[str, ...]
    what: str
    rows: Any
    release: Any
    low: Any
    high: Any
    ratio: float

    def __str__(self) -> str:
        name = " x ".join(self.columns)
        if self.what == "rows":
            return (
                f"{self.rows:,} rows, {self.release:,} in the release: no value is left with which more rows"
                " could keep the key or the rules"
            )
        if self.what == "counts":
            return f"{name}: {self.rows:.0%} of the rows lie in other cells than in the release"
        if self.what == "missing":
            rows, release = (
                f"{x:.{0 if abs(self.rows - self.release) > CLEAR else 2}%}"
                for x in (self.rows, self.release)
            )
            return f"{name}: {rows} missing in the rows, {release} in the release"
        texts = [in_digits(x) if isinstance(x, float) else str(x) for x in (self.rows, self.release)]
        return f"{name}: {self.what} {texts[0]} in the rows, {texts[1]} in the release"


class Agreement:
    """Compares rows, which may come in blocks, with the release from which they were drawn.

    Parameters
    ----------
    codec : Codec
    fitted : Fitted
    not_compared : tuple of str
        Columns that may be absent: their cells are invented, or no synthetic table has them.
    across : sequence of (Certainty, Marginal)
        Tables over own attributes and those of other rows. Rows are then given by `add_records` alone.
    called : mapping of an attribute of other rows to its name
    rows_above : int
        The sum of the numbers of rows that the rows above have. Rules may leave fewer rows. Default: 0, which
        compares no number of rows.
    """

    def __init__(
        self,
        codec: Codec,
        fitted: Fitted,
        not_compared: tuple[str, ...] = (),
        across: Sequence[tuple[Certainty, Marginal]] = (),
        called: Mapping[str, str] = NO_OTHER_ROWS,
        rows_above: int = 0,
    ) -> None:
        self._codec, self._fitted = codec, fitted
        self._ordered = OrderedColumns(codec, fitted, not_compared)
        self._tables = [*fitted.with_certainties, *across]
        self._not_compared, self._called, self._rows_above = not_compared, called, rows_above
        self._counts: list[Ints] = []
        self._rows = 0

    def add(self, rows: pd.DataFrame) -> None:
        """Add rows of the synthetic table, also if they were written to a file and read again.

        Raises
        ------
        InputError
            If a column is absent, or its cells are not like those of a sample.
        """
        specimen, cells = self._specimen, {}
        dtypes = {name: specimen[name].dtype for name in self._codec.schema.coded if name in specimen}
        for name, dtype in dtypes.items():
            if name not in rows and name in self._not_compared:
                cells[name] = specimen[name].iloc[[0] * len(rows)].set_axis(rows.index)
                continue
            if name not in rows:
                raise InputError(f"the rows have no column {name!r}, which a sample of this release has")
            complaint = (
                f"column {name!r} has other cells than a sample of this release: give its file or data frame"
            )
            with replace_errors(complaint, (TypeError, ValueError)):
                if isinstance(dtype, pd.CategoricalDtype):  # its own values stay: some may not be listed
                    dtype = pd.CategoricalDtype(ordered=dtype.ordered)
                cells[name] = rows[name] if rows[name].dtype == dtype else rows[name].astype(dtype)
        coded = self._codec.encode(pd.DataFrame(cells).reindex(columns=list(self._codec.names)))
        self.add_records(self._fitted.merging.merge(coded))

    @cached_property
    def _specimen(self) -> pd.DataFrame:
        return self._codec.specimen(np.random.default_rng(0))

    def add_records(self, records: Records) -> None:
        """Add rows in merged codes."""
        sets = [table.attributes for _, table in self._tables]
        counts = Tables(records.domain, sets).count([block_of(records)])
        self._counts = list(map(np.add, self._counts, counts)) if self._counts else counts
        self._rows += len(records)

    @property
    def counts(self) -> dict[Attributes, Ints]:
        """The counts of the rows in each table, in merged codes."""
        return {
            table.attributes: table_counts
            for (_, table), table_counts in zip(self._tables, self._counts, strict=False)
        }

    def compares(self, attributes: Attributes) -> bool:
        """Return whether rows are compared with the table of these attributes."""
        return set(map(self._name_of, attributes)).isdisjoint(self._not_compared)

    def disagreements(self) -> list[Disagreement]:
        """Return where the rows differ from the release by more than chance, the worst first.

        Each set of columns is named once, and a set only if none of its columns is named alone.
        """
        every = [*self._unmade(), *(self._all_disagreements() if self._rows >= FEW else ())]
        ranked = sorted(
            every,
            key=lambda disagreement: (len(disagreement.columns) > 1, -disagreement.ratio),
        )
        named: dict[tuple[str, ...], Disagreement] = {}
        for disagreement in ranked:
            if disagreement.columns not in named and not any(
                (name,) in named for name in disagreement.columns
            ):
                named[disagreement.columns] = disagreement
        return sorted(named.values(), key=lambda disagreement: -disagreement.ratio)

    def table(self) -> pd.DataFrame:
        """Return the disagreements as a table."""
        names = ["columns", "what", "rows", "release", "low", "high"]
        return pd.DataFrame(
            [[getattr(disagreement, name) for name in names] for disagreement in self.disagreements()],
            columns=names,
        )

    def _unmade(self) -> Iterator[Disagreement]:
        """Yield the number of rows if it is smaller than the rows above say."""
        made, above = self._rows, self._rows_above
        if above >= FEW and made < (1 - UNMADE) * above:
            yield Disagreement(
                (), "rows", made, above, ceil((1 - UNMADE) * above), above, above / max(made, 1)
            )

    def _all_disagreements(self) -> Iterator[Disagreement]:
        cells, counts = self._codec.cells(self._fitted.merging), self.counts
        for certainty, table in self._tables:
            drawn, name = counts[table.attributes], table.attributes[0]
            if not self.compares(table.attributes):
                continue
            grouping = certainty.measured.grouping
            expected, seen = (
                _shares(grouping.join(np.asarray(count, np.float64))) for count in (table.counts, drawn)
            )
            apart = total_variation(expected, seen)
            chance = float(np.sqrt(expected * (1 - expected) / self._rows).sum()) / 2
            sampled = chance + sqrt(self._logarithm / (2 * self._rows))
            high = sampled + error_limit(certainty.error, expected.shape)
            if apart > high:
                yield Disagreement(self._columns_of(table), "counts", apart, 0.0, 0.0, high, apart / high)
            if len(table.attributes) > 1:
                continue
            missing = cells[name].missing
            if missing >= 0 and int((cells[name].groups == missing).sum()) == 1:
                yield from self._missing(certainty, table, drawn, missing)
            if name in self._ordered.counted:
                yield from self._mean(certainty, table, drawn)
        for certainty, table in self._ordered.pairs():
            if not self._ordered.tied(table.attributes):
                yield from self._correlation(certainty, table, counts[table.attributes])

    @cached_property
    def _logarithm(self) -> float:
        """L in the formulas above; at most three comparisons of a column and two of other tables."""
        return log(2 * 3 * len(self._tables) / ALARM)

    def _widened(self, variance: float, farthest: float, rows: int) -> float:
        """Return how far the mean of this number of rows may lie from its expectation."""
        return sqrt(2 * variance * self._logarithm / rows) + farthest * self._logarithm / (3 * rows)

    def _missing(
        self, certainty: Certainty, table: Marginal, drawn: Ints, code: int
    ) -> Iterator[Disagreement]:
        parts = (np.arange(len(table.counts)) == code).astype(np.float64)
        expected, seen = float(_shares(table.counts)[code]), float(_shares(drawn)[code])
        widened = self._widened(expected * (1 - expected), max(expected, 1 - expected), self._rows)
        if abs(seen - expected) > widened:
            noise = self._ordered.noise(table.attributes[0])
            interval = share_interval(certainty.measured, table, parts, noise).extended()
            yield from _outside(
                (self._codec.column_of(table.attributes[0]),), "missing", seen, interval, widened
            )

    def _mean(self, certainty: Certainty, table: Marginal, drawn: Ints) -> Iterator[Disagreement]:
        (name,) = table.attributes
        cells = self._ordered.cells(name)
        size, numbers = len(cells.middles), int(drawn[: len(cells.middles)].sum())
        expected = _shares(table.counts[:size])
        if not numbers or not expected.any():
            return
        mean = float(expected @ cells.middles)
        away = np.abs(cells.middles - mean)[expected > 0]
        unit = squarable_unit(away, away)
        away = away / unit
        widened = unit * self._widened(float(expected[expected > 0] @ away**2), float(away.max()), numbers)
        seen = float(_shares(drawn[:size]) @ cells.middles)
        if abs(seen - mean) > widened:
            noise = self._ordered.noise(name)
            interval = mean_interval(certainty.measured, table, cells, noise).extended()
            for disagreement in _outside((name,), "mean", seen, interval, widened):
                ends = max(disagreement.low, cells.lows[0]), min(disagreement.high, cells.highs[-1])
                rows, low, high = self._ordered.in_units(name, disagreement.rows, *ends)
                release, *_ = self._ordered.in_units(name, disagreement.release, *ends)
                yield replace(disagreement, rows=rows, release=release, low=low, high=high)

    def _correlation(self, certainty: Certainty, table: Marginal, drawn: Ints) -> Iterator[Disagreement]:
        first, second = (self._ordered.ranks(name) for name in table.attributes)
        sides = first, second
        block = tuple(slice(int(side.merged.max()) + 1) for side in sides)
        numbers = int(drawn[block].sum())
        if not numbers:
            return
        widened = sqrt(2 * self._logarithm / numbers)
        seen = correlation_of(drawn.astype(np.float64), sides)
        if abs(seen - correlation_of(table.counts, sides)) > widened:
            interval = correlation_interval(certainty.measured, table, sides).extended()
            yield from _outside(self._columns_of(table), "rank correlation", seen, interval, widened)

    def _columns_of(self, table: Marginal) -> tuple[str, ...]:
        """Return the columns that a table counts, once each if they are counted in parts."""
        return tuple(dict.fromkeys(map(self._name_of, table.attributes)))

    def _name_of(self, attribute: str) -> str:
        """Return the column of an own attribute, or the name of one of another row."""
        return self._called.get(attribute) or self._codec.column_of(attribute)


def _shares(counts: Floats | Ints) -> Floats:
    return np.asarray(counts / max(float(counts.sum()), 1e-9))


def _outside(
    columns: tuple[str, ...], statistic: str, seen: float, interval: Interval, widened: float
) -> Iterator[Disagreement]:
    """Yield the disagreement if a number lies outside the interval, widened on both sides."""
    low, high = interval.low - widened, interval.high + widened
    end = high if seen > interval.estimate else low
    ratio = (seen - interval.estimate) / (end - interval.estimate)
    if ratio > 1:
        yield Disagreement(columns, statistic, seen, interval.estimate, low, high, ratio)
