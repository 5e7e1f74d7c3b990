"""Accuracy of ordered columns: means, quantiles and correlations as tables; see `number_intervals`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import combinations
from math import isnan, nan
from typing import Any

import numpy as np
import pandas as pd

from privsyn.inference.composition import Composition
from privsyn.inference.fitted import Certainty, Fitted
from privsyn.inference.ordered.number_intervals import (
    Interval,
    NumberedCells,
    Ranks,
    correlation_interval,
    mean_interval,
    quantile_interval,
    within_cells,
)
from privsyn.inference.ordered.unmeasured_correlations import (
    Halves,
    NoisySigns,
    concordance_interval,
    largest_correlation,
    margin_noise,
    unmeasured_interval,
)
from privsyn.inference.posterior.tables import noise_of
from privsyn.inference.ratios.joint_counts import Departure
from privsyn.marginals.domain import Attributes, Floats
from privsyn.marginals.marginal import Grouping, Marginal
from privsyn.marginals.tolerances import TINY_COUNT
from privsyn.table.codec.codec import Codec
from privsyn.table.encoding.encoders import has_grid

SHARES = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
UNKNOWN = Interval(nan, nan, nan)
WHOLE_RANGE = 2.0  # of correlations


class OrderedColumns:
    """Estimates of the ordered columns of a release.

    Parameters
    ----------
    codec : Codec
    fitted : Fitted
    not_found : tuple of str
        Columns whose numbers are invented: nothing is estimated.
    """

    def __init__(self, codec: Codec, fitted: Fitted, not_found: tuple[str, ...] = ()) -> None:
        self._codec, self._fitted, self._not_found = codec, fitted, not_found
        self._ranked = {
            name: encoder
            for name, encoder in codec.encoder_of.items()
            if encoder.ordered and name in codec.names and name not in not_found
            # The published method pools rare numbers wherever they lie, with missing cells too. A pool has no
            # place in the order.
            if np.isin(np.diff(fitted.merging.group_of[name][: encoder.ordered], prepend=0), (0, 1)).all()
        }
        self._encoders = {name: encoder for name, encoder in self._ranked.items() if has_grid(encoder)}
        self.cells = cache(self._cells)
        self.noise = cache(partial(noise_of, fitted, codec.possible(fitted.merging)))
        self.ranks = cache(self._ranks)

    def __reduce__(self) -> tuple[type, tuple[Codec, Fitted, tuple[str, ...]]]:
        return type(self), (self._codec, self._fitted, self._not_found)  # pickled without what is cached

    @property
    def names(self) -> list[str]:
        """The ordered columns in the order of the table; some have no counts of their own."""
        kinds = self._codec.schema.coded
        return [name for name in self._codec.names if name in kinds and not kinds[name].lists_values]

    @property
    def counted(self) -> list[str]:
        """The ordered columns with counts of their own."""
        return list(self._encoders)

    def means(self) -> pd.DataFrame:
        """Return one row for each column; see `Accuracy.means`."""
        rows = [{"column": name, **self.mean(name)} for name in self.names]
        return pd.DataFrame(rows, columns=["column", "estimate", "low", "high", "within_cells", "covered"])

    def mean(self, name: str) -> dict[str, Any]:
        """Return the mean of one of the `names`, its interval, and how far it can move inside cells."""
        interval, away = UNKNOWN, nan
        if name in self._encoders:
            certainty, released = self._one_way(name)
            cells = self.cells(name)
            interval = mean_interval(certainty.measured, released, cells, self.noise(name))
            if (composition := self._fitted.composition_of((name,))) is not None:
                interval = _interval_of_all_rows(interval, composition, name, released, cells)
            interval, away = interval.extended(), within_cells(released, cells)
        return {**self._shown(name, interval), "within_cells": away}

    def quantiles(self) -> pd.DataFrame:
        """Return one row for each column and quantile; see `Accuracy.quantiles`."""
        rows = []
        for name in self.names:
            for share in SHARES:
                interval = UNKNOWN
                if name in self._encoders:
                    certainty, released = self._one_way(name)
                    quantile = partial(
                        quantile_interval, certainty.measured, released, self.cells(name), self.noise(name)
                    )
                    interval = quantile(share)
                    if (composition := self._fitted.composition_of((name,))) is not None:
                        first, last = composition.share_counted(np.array([share, 1 - share])).tolist()
                        low, high = quantile(first).low, quantile(1 - last).high
                        if name in composition.confused:
                            low, high = self.cells(name).lows[0], self.cells(name).highs[-1]
                        interval = Interval(interval.estimate, float(low), float(high))
                    interval = interval.extended()
                rows.append({"column": name, "share": share, **self._shown(name, interval)})
        return pd.DataFrame(rows, columns=["column", "share", "estimate", "low", "high", "covered"])

    def correlations(self, in_rows: Callable[[Attributes], float]) -> pd.DataFrame:
        """Return one row for each pair of columns; see `Accuracy.correlations`.

        Parameters
        ----------
        in_rows : callable
            Returns the correlation of a pair in synthetic rows; NaN if none can be made.
        """
        measured = {frozenset(c.attributes): (c, table) for c, table in self.pairs()}
        rows: list[dict[str, Any]] = []
        ordered = [name for name in self._codec.names if name in {*self.names, *self._ranked}]
        for pair in combinations(ordered, 2):
            interval = UNKNOWN
            if frozenset(pair) in measured:
                certainty, released = measured[frozenset(pair)]
                a, b = (self.ranks(name) for name in certainty.attributes)
                interval = correlation_interval(certainty.measured, released, (a, b)).extended()
            is_tied = self.tied(pair)
            if not (is_tied or _says_something(interval)) and self._ranked.keys() >= {*pair}:
                without_table = self._unmeasured(pair)
                if _says_something(without_table):
                    estimate = in_rows(pair) if interval is UNKNOWN else interval.estimate
                    interval = _near(estimate, without_table)
            if is_tied or not _says_something(interval):
                interval = Interval(interval.estimate, nan, nan)
            rows.append({"columns": pair, **vars(interval), "covered": not np.isnan(interval.low)})
        return pd.DataFrame(rows, columns=["columns", "estimate", "low", "high", "covered"])

    def _unmeasured(self, pair: Attributes) -> Interval:
        """Return the interval of the correlation of a pair without its table; -1 to 1 if nothing shows it."""
        fitted, pair_set = self._fitted, frozenset(pair)
        sides = self.ranks(pair[0]), self.ranks(pair[1])
        counts = [self._ordered_counts(name) for name in pair]
        records = float(np.prod([count.sum() / fitted.total for count in counts])) * fitted.total
        departures, concordances = fitted.departures, fitted.concordances
        interval, largest = None, 1.0
        if (index := concordances.index.get(pair_set)) is not None:
            a, b = (Halves(self.ranks(name), concordances.halves[name]) for name in pair)
            noise = concordances.variance + margin_noise(*map(self._noisy_signs, pair))
            measured = float(concordances.measured[index])
            interval = concordance_interval(measured, noise, (a, b), records)
        if (index := departures.index.get(pair_set)) is not None:
            blocks = Grouping(tuple(departures.blocks[name] for name in pair))
            distance, sigma = float(departures.distances[index]), float(departures.sigmas[index])
            largest = largest_correlation(Departure(distance, sigma, blocks), sides, records)
        return unmeasured_interval(interval, largest)

    def _ordered_counts(self, name: str) -> Floats:
        """Return the released counts of the merged codes with an order."""
        return self._one_way(name)[1].counts[: int(self.ranks(name).merged.max()) + 1]

    def _noisy_signs(self, name: str) -> NoisySigns:
        counts = self._ordered_counts(name)
        signs = np.where(np.arange(len(counts)) < self._fitted.concordances.halves[name], -1.0, 1.0)
        return NoisySigns(signs, counts / max(float(counts.sum()), TINY_COUNT), self.noise(name))

    def tied(self, pair: Attributes) -> bool:
        """Return whether a constraint links both columns."""
        return any(set(pair) <= set(constraint.columns) for constraint in self._codec.schema.constraints)

    def pairs(self) -> Iterator[tuple[Certainty, Marginal]]:
        """Yield the measured pairs of the columns with counts."""
        for certainty, table in self._fitted.measured_marginals:
            if len(table.attributes) == 2 and set(table.attributes) <= self._ranked.keys():
                yield certainty, table

    def _one_way(self, name: str) -> tuple[Certainty, Marginal]:
        index = self._codec.domain.names.index(name)
        return self._fitted.certainties[index], self._fitted.one_ways[index]

    def _cells(self, name: str) -> NumberedCells:
        index, encoder, merging = (
            self._codec.domain.names.index(name),
            self._encoders[name],
            self._fitted.merging,
        )
        codes = slice(encoder.size)
        return NumberedCells.of(*encoder.extents, merging.groups[index][codes], merging.shares[index][codes])

    def _ranks(self, name: str) -> Ranks:
        return Ranks.after(self._fitted.merging, self._one_way(name)[1])

    def _shown(self, name: str, interval: Interval) -> dict[str, Any]:
        """Return an interval in the units of the column; times as cells of the table."""
        values: dict[str, Any] = vars(interval)
        if name in self._encoders:
            values = dict(zip(values, self.in_units(name, **values), strict=True))
        return {**values, "covered": name in self._encoders}

    def in_units(self, name: str, estimate: float, low: float, high: float) -> Sequence[Any]:
        """Return an estimate and the ends of its interval as cells of a column with counts."""
        return self._encoders[name].interval(estimate, low, high)


def _says_something(interval: Interval) -> bool:
    """Return whether an interval of a correlation excludes any number."""
    return interval.high - interval.low < WHOLE_RANGE


def _near(estimate: float, interval: Interval) -> Interval:
    """Return the interval with an estimate from elsewhere, moved into it; with its own if that is NaN."""
    if isnan(estimate):
        return interval
    return replace(interval, estimate=min(max(estimate, interval.low), interval.high))


def _interval_of_all_rows(
    interval: Interval, composition: Composition, name: str, released: Marginal, cells: NumberedCells
) -> Interval:
    """Return the interval of a mean, moved to the extremes of what is unknown of all rows."""
    first, last = float(cells.lows[0]), float(cells.highs[-1])
    if name in composition.confused:
        return Interval(interval.estimate, first, last)
    counts = released.counts[: len(cells.middles)]
    shares = counts / max(float(counts.sum()), TINY_COUNT)
    usual, middles = float(shares @ cells.middles), cells.middles
    largest = composition.largest_mean(middles, shares)
    smallest = -composition.largest_mean(-middles, shares)
    low, high = interval.low - max(usual - smallest, 0.0), interval.high + max(largest - usual, 0.0)
    return Interval(interval.estimate, max(low, first), min(high, last))
