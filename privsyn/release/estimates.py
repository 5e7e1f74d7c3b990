"""Estimates: shares and means under conditions, with intervals, from draws of a release: at no cost."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from math import inf, isnan, nan

import numpy as np
import pandas as pd

from privsyn.errors import InputError, did_you_mean, safe_repr
from privsyn.inference.ordered.number_intervals import Interval
from privsyn.marginals.domain import Floats, Mask, Records
from privsyn.progress import Progress
from privsyn.release.draws.bias import Bias
from privsyn.release.draws.pooling import pool
from privsyn.table.codec.codec import Codec
from privsyn.table.schema.condition import Condition

KEPT = 4  # sets of columns whose draws are kept in memory
SHOWN = ("estimate", "low", "high")
POINTS = 20_000  # drawn in all cells of a column

Draw = Callable[[frozenset[str] | None, Progress | None], Iterable[pd.DataFrame]]
"""Yields draws of some columns; for None, one synthetic table of all columns."""

ShareOf = Callable[[Condition], Interval | None]
"""Returns the share of rows that meet a condition by the counts of its column; None if it has none."""


class Estimates:
    """Estimates for the private table from the draws of a release.

    Parameters
    ----------
    codec : Codec
    draw : Draw
    measured : collection of sets of columns
        The tables of counts that were measured.
    bias : Bias
        What the noisy counts say about the bias of a mean.
    share_of : ShareOf, optional
    """

    def __init__(
        self,
        codec: Codec,
        draw: Draw,
        measured: Collection[frozenset[str]],
        bias: Bias,
        share_of: ShareOf = lambda condition: None,
    ) -> None:
        self._codec, self._draw, self._measured = codec, draw, measured
        self._bias, self._share_of = bias, share_of
        self._specimen = codec.specimen(np.random.default_rng(0))
        self._kept: dict[frozenset[str] | None, list[pd.DataFrame]] = {}

    def share(self, where: str, progress: Progress | None = None) -> pd.Series:
        """Return the share of the rows that meet a condition; see `Accuracy.share`."""
        condition = Condition.read(where, self._codec.schema.coded)
        interval = self._share_of(condition) if len(condition.columns) == 1 else None
        if interval is None:
            frames = self._draws(condition.columns, progress)
            shares = [float(_rows(self._codec, condition, frame).mean()) for frame in frames]
            interval = _pooled(shares)
            if len({*shares}) == 1 and shares[0] in (0.0, 1.0):  # noise hides the rows that meet it, or not
                interval = Interval(interval.estimate, nan, nan)
            interval = replace(interval, low=max(interval.low, 0.0), high=min(interval.high, 1.0))
        return self._result(condition.columns, interval, condition)

    def mean(self, column: str, where: str | None = None, progress: Progress | None = None) -> pd.Series:
        """Return the mean of a column over the rows that meet a condition; see `Accuracy.mean`."""
        if column not in self._specimen.columns:
            meant = did_you_mean(column, self._specimen.columns)
            raise InputError(f"there is no column {safe_repr(column)} in the synthetic table{meant}")
        if np.isnan(self._numbers(column, self._specimen)).all():
            raise InputError(
                f"column {safe_repr(column)} has no numbers: `share` estimates how often a value occurs"
            )
        condition = None if where is None else Condition.read(where, self._codec.schema.coded)
        columns = (condition.columns if condition else frozenset()) | {column}
        frames = self._draws(columns, progress)
        numbers = [self._numbers(column, frame) for frame in frames]
        met = [~np.isnan(cells) for cells in numbers]
        if condition:
            met = [
                rows & _rows(self._codec, condition, frame) for rows, frame in zip(met, frames, strict=True)
            ]
        means = [float(cells[rows].mean()) for cells, rows in zip(numbers, met, strict=True) if rows.any()]
        if not means:
            return self._shown(column, self._result(columns, Interval(nan, nan, nan), condition))
        variance = self._bias.variance(frames, columns, np.concatenate(numbers), np.concatenate(met))
        if variance == inf or len(means) < len(frames):  # the group is too small to know its mean
            return self._shown(
                column, self._result(columns, Interval(float(np.mean(means)), nan, nan), condition)
            )
        mean, kind = _pooled(means, variance), self._codec.schema.coded.get(column)
        if kind is not None and not kind.lists_values:
            low, high = kind.bounds
            mean = replace(mean, low=max(mean.low, low), high=min(mean.high, high))
        return self._shown(column, self._result(columns, mean, condition))

    def _is_time(self, column: str) -> bool:
        kind = self._codec.schema.coded.get(column)
        return kind is not None and not kind.lists_values and not kind.has_numbers

    def _numbers(self, column: str, frame: pd.DataFrame) -> Floats:
        """Return a column as numbers, NaN where there is none; times in the units of the column."""
        if self._is_time(column):
            return self._codec.read(frame[[column]])[column]
        return pd.to_numeric(frame[column], errors="coerce").to_numpy(np.float64, na_value=np.nan)

    def _shown(self, column: str, result: pd.Series) -> pd.Series:
        """Return a mean with times as cells of the table, as `Accuracy.means` has them."""
        ends = [name for name in SHOWN if not isnan(result[name])] if self._is_time(column) else []
        numbers = (result[name if name in ends else "estimate"] for name in SHOWN)
        if ends:  # the estimate is one of them
            cells = dict(zip(SHOWN, self._codec.interval(column, *numbers), strict=True))
            return pd.Series({**result, **{name: cells[name] for name in ends}}, dtype=object)
        return result

    def _draws(self, columns: frozenset[str], progress: Progress | None) -> list[pd.DataFrame]:
        """Return draws of the smallest table that holds the columns; else one table of all columns."""
        holding = [table for table in self._measured if columns <= table]
        key = min(holding, key=len) if holding else None
        if key not in self._kept:
            made = list(self._draw(key, progress))
            while len(self._kept) >= KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[key] = made
        return self._kept[key]

    def _result(self, columns: frozenset[str], interval: Interval, condition: Condition | None) -> pd.Series:
        """Return the estimate, its interval for the private table, and whether it is covered."""
        is_known = any(columns <= table for table in self._measured) and not isnan(interval.low)
        covered = is_known and not (condition and condition.uncounted)
        shown = interval if covered else replace(interval, low=nan, high=nan)
        return pd.Series({**vars(shown), "covered": covered}, dtype=object)


def _rows(codec: Codec, condition: Condition, frame: pd.DataFrame) -> Mask:
    """Return which rows of a draw meet a condition."""
    columns, numbers = codec.schema.coded, codec.read(frame[[*condition.columns]])
    for name in numbers:
        if (decimals := columns[name].fixed_decimals) is not None:
            # Cells of a narrow dtype are not exactly the numbers that they stand for.
            numbers[name] = np.round(numbers[name], decimals)
    return condition.holds(numbers)


def _pooled(estimates: list[float], variance: float = 0.0) -> Interval:
    """Return the estimate of all draws and its interval, which a single table does not have."""
    if len(estimates) == 1:
        return Interval(estimates[0], nan, nan)
    pooled = pool(estimates, [variance] * len(estimates)).iloc[0]
    return Interval(*map(float, pooled[["estimate", "low", "high"]]))


def share_of_codes(codec: Codec, condition: Condition) -> Floats:
    """Return the share of the rows of each code that meet a condition, for a codec of one column.

    Numbers are drawn inside their cells as those of a release are.
    """
    (size,) = codec.domain.sizes
    points = max(POINTS // size, 1) if codec.domain.ordered[0] else 1
    codes = np.repeat(np.arange(size, dtype=np.int32), points)
    frame = codec.decode(Records(codec.domain, codes[:, np.newaxis]), np.random.default_rng(0))
    return np.asarray(_rows(codec, condition, frame).reshape(size, points).mean(axis=1))
