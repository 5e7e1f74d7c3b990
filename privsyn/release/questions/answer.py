"""The answer to one question: an estimate, its interval and verdict, and what the rows show."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from math import floor, isnan, log10, nan
from typing import Any, Self

import numpy as np
import pandas as pd

from privsyn.errors import HUGE, in_digits
from privsyn.inference.ordered.number_intervals import Interval
from privsyn.release.accuracy.verdicts import RowsStatistic

NO_ANSWER = "no answer"
"""Stands for a verdict in the row of a question that cannot be read."""


@dataclass(frozen=True)
class Answer:
    """What a release says to a question, and what the answer is good for.

    Parameters
    ----------
    question : str
    estimate, low, high : number, or for a time a cell of the column
        The estimate for the private table and the ends of its 95 % interval; NaN where there is none.
    verdict : str
        ``keep``, ``direction only``, ``not decided`` or ``no better than independent columns``.
    rows : the same
        What synthetic rows give. NaN if none can be made.
    independent : the same
        What columns with the released counts give that do not depend on each other; NaN for one column.
    reason : str
        Why, in a few words.

    Examples
    --------
    >>> print(Answer("mean of latitude", 47.5831, 47.549, 47.613, "keep", 47.5836, nan, "narrow"))
    mean of latitude: 47.58 (47.55 to 47.61), keep: narrow; rows 47.58
    >>> print(Answer("share of ill among old", 0.31, 0.29, 0.33, "keep", 0.3, 0.2, "within a tenth"))
    share of ill among old: 0.31 (0.29 to 0.33), keep: within a tenth; rows 0.3, independent columns 0.2
    """

    question: str
    estimate: Any
    low: Any
    high: Any
    verdict: str
    rows: Any
    independent: Any
    reason: str

    @classmethod
    def refused(cls, question: str, why: str) -> Self:
        """Return the row of a question that cannot be answered, in a table of answers."""
        return cls(question, nan, nan, nan, NO_ANSWER, nan, nan, why)

    def __str__(self) -> str:
        decimals, ends = 0, (self.low, self.high)
        if all(isinstance(end, float | int | np.number) for end in ends) and 0 < self.high - self.low < HUGE:
            decimals = max(0, -floor(log10(self.high - self.low)))  # the ends differ in the last one
        estimate, low, high, rows, independent = (
            _shown(number, decimals) for number in (self.estimate, *ends, self.rows, self.independent)
        )
        beside = [f"rows {rows}"] * bool(rows) + [f"independent columns {independent}"] * bool(independent)
        interval = f" ({low} to {high})" if low else ""
        answer = f"{self.question}: {estimate or 'no estimate'}{interval}, {self.verdict}: {self.reason}"
        return "; ".join(filter(None, [answer, ", ".join(beside)]))

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain data."""
        return asdict(self)


def _shown(number: Any, decimals: int) -> str:
    """Return a number in words; a time as it is; "" for NaN."""
    if pd.isna(number):
        return ""
    if not isinstance(number, float | int | np.number):
        return str(number).removesuffix(" 00:00:00")
    return in_digits(float(number), decimals)


def interval_of(result: pd.Series) -> Interval:
    """Return an estimate of numbers with the ends of its interval; NaN if it is not covered."""
    ends = (result["low"], result["high"]) if result["covered"] else (nan, nan)
    return Interval(float(result["estimate"]), *map(float, ends))


def why_at_an_end(interval: Interval, limits: tuple[float, float]) -> str:
    """Return why an estimate is at an end of its interval; "" if it is not.

    >>> why_at_an_end(Interval(0.0, 0.0, 0.1), (0.0, 1.0))
    '; the estimate is the least possible one, at which noise below it is cut'
    >>> why_at_an_end(Interval(0.4, 0.2, 0.4), (0.0, 1.0))
    '; other counts move the estimate to the end of the interval'
    >>> why_at_an_end(Interval(0.4, 0.2, 0.5), (0.0, 1.0)), why_at_an_end(Interval(0.0, 0.0, 0.0), (0.0, 1.0))
    ('', '')
    """
    if not interval.low < interval.high or interval.low < interval.estimate < interval.high:
        return ""
    if interval.estimate == limits[0]:
        return "; the estimate is the least possible one, at which noise below it is cut"
    if interval.estimate == limits[1]:
        return "; the estimate is the largest possible one, at which noise above it is cut"
    return "; other counts move the estimate to the end of the interval"


def as_in_rows(interval: Interval, rows: RowsStatistic, *, linked: bool = False) -> Interval:
    """Return the interval, with the number of the synthetic rows if the release has no estimate.

    Without an interval the estimate is that of rows. Of `linked` rows it is then of rows made alone, and
    what a user draws has the number of linked ones.
    """
    takes_rows = isnan(interval.estimate) or (linked and isnan(interval.low) and not isnan(rows.number))
    return replace(interval, estimate=rows.number) if takes_rows else interval
