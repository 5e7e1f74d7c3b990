"""Verdicts on what a release says: how well relationships are kept, and what answers are good for.

All thresholds of both are here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from math import hypot, isnan, nan, sqrt
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from privsyn.inference.fitted import TWO_SIDED
from privsyn.inference.ordered.number_intervals import Interval, squarable_unit
from privsyn.inference.prior.dispersion import MEAN_OF_ABSOLUTE
from privsyn.marginals.domain import Attributes, Floats, Mask
from privsyn.marginals.statistics import total_variation
from privsyn.release.accuracy.agreement import error_limit

if TYPE_CHECKING:
    from privsyn.inference.fitted import Certainty, Fitted
    from privsyn.marginals.marginal import Marginal

WELL, WELL_ROWS = 1 / 4, 0.1
"""A relationship is kept well if half of its interval is at most this part of its strength, and at most this
share of the rows."""

ROUGHLY = 1 / 2
"""A relationship is kept roughly if half of its interval is at most this part of its strength. Then most
of it has the released direction."""

KEPT_WELL, KEPT_ROUGHLY, UNDECIDED = "kept well", "kept roughly", "not decided"

HOW_KEPT = (KEPT_WELL, KEPT_ROUGHLY, UNDECIDED)
"""How well a measured relationship is kept, in words."""

KEEP, DIRECTION, NO_BETTER = "keep", "direction only", "no better than independent columns"
"""The verdicts on an answer, beside `UNDECIDED`; see `verdict_of`."""

KNOWN = "it is known exactly"
"""The reason of an answer that is certain by public totals."""

POINT = "{}, though not within a tenth of it"
"""How far the interval of a small number ends, in words."""

RARE = "rare, at most {} of {} rows, and noise hides how rare"
"""The reason of an answer about few rows, whose interval spans a factor of `SPAN`."""

BY_SCHEMA = (
    "the schema says so: cells beyond its bounds, missing cells that it does not allow, and rows that break"
    " its rules were changed to fit"
)
"""The reason of an answer that is certain by the schema, whatever the private rows are."""

ONE_VALUE = "both ends of the interval are this value"
"""The reason of a median, or a mean of times, whose interval noise does not make wider than one value."""

WITHIN = 0.1
"""An estimate is kept if its interval ends within this share of it; a mean or a median, within this share of
its distance from the lower bound of the column, if that is less: years and degrees begin far from 0."""

SMALL_SHARE, SMALL_CORRELATION, SMALL_TIME = 0.01, 0.05, 0.01
"""It is kept too if the interval ends within this share of the rows, within this correlation, or, of a time,
within this part of the range of the column."""

RELATIONSHIPS = (2.2, 0.75)
"""Strengths over expected errors from which relationships are called usable, and rough.

For the second, pairs that were not measured have no strength, and a part (`OF_COLUMNS`) of the error of
columns adds to that of pairs. Below it `evaluate` found rows no nearer than independent columns in 36 of 38
runs; above it they closed more than a fifth of the gap in all of 9 (docs/epsilon.md names the tables)."""

OF_COLUMNS = 0.25
"""Part of the error of single columns that adds to the error of pairs."""

UNSEEN = 0.25
"""Expected error of a column, over the share of all rows that are of persons with other numbers of rows than
the counted ones are, if it is not known how the column depends on the number. Of 3,000 generated patients at
epsilon 1 this share is .24, and the two columns of their visits are .13 and .03 off."""

SPAN = 2.0
"""The ends of an interval differ by more than this factor if it leaves the size of a rare share open."""

BY_CHANCE = 2.0
"""Standard deviations by which drawn rows may leave an interval."""


@dataclass(frozen=True)
class Relationship:
    """The relationship of the columns of a released table.

    Parameters
    ----------
    columns : tuple of str
    cells : int
        Number of cells, or of groups of cells that were counted together.
    strength : float
        The total variation distance of the released table from independence, s.
    chance : float
        What s would be expected to be if two columns were independent, c; 0 of more columns.
    error : float
        The expected error of the table.
    limit : float
        Half of the 95 % interval of s.
    """

    columns: Attributes
    cells: int
    strength: float
    chance: float
    error: float
    limit: float

    @classmethod
    def of(cls, certainty: Certainty, table: Marginal) -> Relationship:
        """Return the relationship in a measured and released table."""
        counts, error = certainty.measured.grouping.join(table.counts), certainty.error
        chance = chance_of(counts) if counts.ndim == 2 else 0.0
        limit = error_limit(error, counts.shape)
        return cls(table.attributes, counts.size, strength(counts), chance, error, limit)

    @property
    def strength_beyond_chance(self) -> float:
        """The strength without chance, sqrt(max(s^2 - c^2, 0))."""
        return sqrt(max(self.strength**2 - self.chance**2, 0.0))

    @property
    def error_with_chance(self) -> float:
        """The error for another table of the same kind, which has another dependence by chance."""
        return hypot(self.error, self.chance)

    @property
    def how_kept(self) -> str:
        """How well the relationship is kept, in words."""
        beyond = self.strength_beyond_chance
        return kept_how(beyond if beyond > self.chance else 0.0, self.limit)

    @property
    def is_decided(self) -> bool:
        """Whether the relationship is kept well or roughly."""
        return self.how_kept != UNDECIDED


def kept_how(power: float, limit: float) -> str:
    """Return how well a relationship is kept whose strength is known up to a limit.

    At most `limit` of the strength is wrong. So a table that is not kept well or roughly may point in
    another direction for half of its strength.

    >>> kept_how(0.4, 0.09), kept_how(0.73, 0.18), kept_how(0.73, 0.59)
    ('kept well', 'kept roughly', 'not decided')
    """
    if limit <= min(WELL * power, WELL_ROWS):
        return KEPT_WELL
    return KEPT_ROUGHLY if limit <= ROUGHLY * power else UNDECIDED


def level_of_relationships(
    strength: float, *, measured: float, error: float, error_of_columns: float, level_if_none_is_kept: int
) -> int:
    """Return 0 if relationships are usable, 1 if they are rough, 2 if independent columns are as good.

    Parameters
    ----------
    strength : float
        Mean strength of the measured pairs over their mean expected error.
    measured : float
        Share of the pairs that were measured; others have no strength.
    error, error_of_columns : float
        Mean expected errors of the measured pairs, and of single columns.
    level_if_none_is_kept : int
        The least level if no pair is kept: 2, or 1 if errors are upper limits, as those of rows of which
        persons have many; 0 if one is.

    Examples
    --------
    >>> facts = {"measured": 1.0, "error": 0.05, "error_of_columns": 0.02, "level_if_none_is_kept": 0}
    >>> [level_of_relationships(strength, **facts) for strength in (3.0, 1.0, 0.5)]
    [0, 1, 2]
    """
    signal = signal_of(strength, measured=measured, error=error, error_of_columns=error_of_columns)
    level = 2 if signal < RELATIONSHIPS[1] else int(strength < RELATIONSHIPS[0])
    return max(level, level_if_none_is_kept)


def signal_of(strength: float, *, measured: float, error: float, error_of_columns: float) -> float:
    """Return the strength over the error of all pairs and their columns; see `level_of_relationships`."""
    return strength * measured * (error / (error + OF_COLUMNS * error_of_columns) if error else 1.0)


def error_unseen(fitted: Fitted, names: Attributes) -> float:
    """Return the expected error of columns because all rows are unlike the counted ones; see `UNSEEN`."""
    composition = fitted.composition_of(names)
    return 0.0 if composition is None else UNSEEN * composition.distance


def strength(counts: Floats) -> float:
    """Return the total variation distance of a table from independence.

    >>> strength(np.array([[5.0, 0.0], [0.0, 5.0]])), strength(np.ones((2, 3)))
    (0.5, 0.0)
    """
    shares = counts / max(counts.sum(), 1e-300)
    axes = range(shares.ndim)
    alone = [shares.sum(axis=tuple(axis_out for axis_out in axes if axis_out != axis)) for axis in axes]
    return round(total_variation(shares, reduce(np.multiply.outer, alone)), 12)


def chance_of(counts: Floats) -> float:
    """Return the expected total variation from independence of rows of two independent columns.

    A cell of probability a b has the variance a (1 - a) b (1 - b) / n about the product of the margins.

    >>> round(chance_of(np.full((2, 2), 25.0)), 3)
    0.04
    """
    total = max(float(counts.sum()), 1.0)
    shares = (np.clip(counts.sum(axis=axis) / total, 0, 1) for axis in (1, 0))
    first, second = (float(np.sqrt(share * (1 - share)).sum()) for share in shares)
    return MEAN_OF_ABSOLUTE * first * second / (2 * sqrt(total))


class RowsStatistic(NamedTuple):
    """What synthetic rows answer: a number, and its standard deviation by chance."""

    number: float
    deviation: float

    @classmethod
    def of(cls, cells: Floats | Mask, weights: Floats | None = None) -> RowsStatistic:
        """Return the mean of some rows, by their weights if these are given; NaN if there are none."""
        if not len(cells):
            return cls(nan, nan)
        numbers = cells.astype(np.float64)
        if (unit := squarable_unit(numbers, numbers)) != 1:
            return cls(*(unit * number for number in cls.of(numbers / unit, weights)))
        if weights is None:
            return cls(float(cells.mean()), float(cells.std()) / sqrt(len(cells)))
        shares = weights / weights.sum()
        mean = float(shares @ cells)
        return cls(mean, sqrt(float(shares @ (cells - mean) ** 2) * float(shares @ shares)))


class Tolerance(NamedTuple):
    """Distances from an estimate by which a verdict is made.

    Parameters
    ----------
    near : float
        How far from the estimate the interval of a number that is kept may end.
    small : float
        A distance that does not matter.
    scale : str
        What `near` is if it is more than `WITHIN` of the estimate, in words.
    rare : str
        The reason for a share or a number of rows whose interval spans a factor, in place of `scale`.
    """

    near: float
    small: float
    scale: str = ""
    rare: str = ""


def verdict_of(
    interval: Interval,
    tolerance: Tolerance,
    rows: RowsStatistic,
    independent: float,
    *,
    several: bool,
) -> tuple[str, str]:
    """Return the verdict on an estimate, and the reason.

    *keep*: the interval ends near the estimate, and the synthetic rows show a number in it, or as near.
    *direction only*: the interval of a relationship is wider, but does not hold what independent columns
    give, and the estimate is not within a standard deviation of that. *no better than independent columns*:
    the estimate departs from what they give by less than its standard deviation, or by little, and the
    standard deviation is no larger than what does not matter. *not decided*: all else.

    Parameters
    ----------
    interval : Interval
        Its ends are NaN if the estimate is not covered.
    tolerance : Tolerance
    rows : RowsStatistic
    independent : float
        What independent columns give; NaN if that is unknown.
    several : bool
        Whether the question is about several columns.

    Examples
    --------
    >>> three_points = Tolerance(0.03, 0.01)
    >>> verdict_of(Interval(0.3, 0.2, 0.4), three_points, RowsStatistic(0.3, 0.01), 0.1, several=True)
    ('direction only', 'the interval is wide, and independent columns lie outside it')
    >>> verdict_of(Interval(0.3, 0.25, 0.35), three_points, RowsStatistic(0.3, 0.01), 0.28, several=True)[0]
    'no better than independent columns'
    >>> verdict_of(Interval(0.3, 0.2, 0.4), three_points, RowsStatistic(0.3, 0.01), 0.22, several=True)
    ('not decided', 'the interval holds what independent columns give')

    Other counts may move an estimate from where its own answers point:

    >>> interval, rows = Interval(0.518, 0.517, 0.75), RowsStatistic(0.52, 0.01)
    >>> verdict_of(interval, Tolerance(0.05, 0.01), rows, 0.515, several=True)
    ('not decided', 'the estimate lies where independent columns do, and the interval does not')

    Of rare rows an interval may be narrow beside all rows, and wide beside the estimate:

    >>> few = Tolerance(0.01, 0.01, POINT.format("0.01 of the estimate"), RARE.format("0.2%", "the"))
    >>> verdict_of(Interval(4e-4, 5e-5, 0.002), few, RowsStatistic(4e-4, 1e-4), nan, several=False)
    ('keep', 'rare, at most 0.2% of the rows, and noise hides how rare')

    Rows that lie near an estimate, but outside its interval, are named too:

    >>> verdict_of(Interval(0.3, 0.28, 0.31), three_points, RowsStatistic(0.327, 0.001), nan, several=False)
    ('keep', 'the interval is narrow, but the rows lie outside it')
    """
    estimate, low, high = interval.estimate, interval.low, interval.high
    near, small, scale, rare = tolerance
    is_known, chance = not isnan(low), BY_CHANCE * rows.deviation
    agree = isnan(rows.number) or not is_known or low - chance <= rows.number <= high + chance
    if is_known and max(estimate - low, high - estimate) <= near:
        if agree or abs(rows.number - estimate) <= near:
            is_narrow = max(estimate - low, high - estimate) <= WITHIN * abs(estimate)
            if low == high:
                return KEEP, KNOWN
            size = f"the interval {'is narrow' if is_narrow or not scale else f'ends within {scale}'}"
            size = rare if rare and high > SPAN * low else size
            return KEEP, size + ("" if agree else ", but the rows lie outside it")
        if not several:
            return UNDECIDED, "the interval is narrow, but the rows lie outside it"
    if not is_known:
        hidden = "these columns were not counted together, or noise hides them"
        return UNDECIDED, hidden if several else "the release has no interval for it"
    if not several or isnan(independent):
        return UNDECIDED, "the interval is wide"
    noise = (high - low) / (2 * TWO_SIDED)
    if noise <= max(near, small) and abs(estimate - independent) <= max(noise, small):
        return NO_BETTER, "it departs from independent columns by no more than noise"
    if low <= independent <= high:
        return UNDECIDED, "the interval holds what independent columns give"
    if abs(estimate - independent) <= noise:
        return UNDECIDED, "the estimate lies where independent columns do, and the interval does not"
    if agree:
        return DIRECTION, "the interval is wide, and independent columns lie outside it"
    return DIRECTION, "independent columns lie outside the interval, and so do the rows"
