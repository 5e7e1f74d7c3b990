"""Means of columns that are counted by their distance from another one: `total`, by ``part <= total``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from privsyn.inference.ordered.number_intervals import EVENLY, Interval, NumberedCells
from privsyn.inference.ratios.intervals import ratio_interval
from privsyn.inference.ratios.weights import Weights
from privsyn.release.questions.joint_answers import JointAnswers
from privsyn.table.codec.gaps import Gap
from privsyn.table.schema.condition import Condition

if TYPE_CHECKING:
    from privsyn.release.fitted_table import FittedTable


@dataclass(frozen=True, eq=False)
class GapMeans:
    """Means, in a group of rows, of a column that is counted by its distance from another column.

    A table of the distance, of this other column, and of the column of the group is seldom counted.
    The mean is the sum of two means, each of which follows from a table of two columns.

    Parameters
    ----------
    model : FittedTable
    answers : JointAnswers
    """

    model: FittedTable
    answers: JointAnswers

    def mean(self, column: str, unit: float, inside: Condition, near: Callable[[str], Interval]) -> Interval:
        """Return the mean of a column in a group of rows, and its interval; NaN if none is known.

        The interval has the ends of both added up. Let e be the error of one mean and f that of the other.
        The standard deviation of e + f is at most the sum of theirs, whatever their correlation is.

        Parameters
        ----------
        column : str
        unit : float
            The unit of the mean.
        inside : Condition
            The condition of the group.
        near : callable
            Returns the mean of another column in this group, in the same unit.
        """
        unknown, gap = Interval(np.nan, np.nan, np.nan), self.model.codec.gaps.get(column)
        if gap is None or len(gap.side.neighbours) != 1 or gap.encoder.second:
            return unknown
        ((neighbour, (scale, strict)),) = gap.side.neighbours.items()
        may_be_missing = any(
            self.model.codec.cells()[name].nullable
            for name in (gap.name, *self.model.codec.attributes_of(neighbour))
        )
        if scale != 1 or may_be_missing:
            return unknown
        away, base = self._away(gap, unit, inside), near(neighbour)
        # A distance begins at the next number of the grid of the column that keeps the order.
        step = 1 / gap.encoder.column_encoder.grid.scale / unit
        away = Interval(away.estimate + strict * step, away.low, away.high + step)
        if gap.side.sign > 0:
            return Interval(*(vars(base)[end] + vars(away)[end] for end in ("estimate", "low", "high")))
        return Interval(base.estimate - away.estimate, base.low - away.high, base.high - away.low)

    def _away(self, gap: Gap, unit: float, inside: Condition) -> Interval:
        """Return the mean distance among the rows that meet a condition, in a unit; NaN if none is known."""
        unknown = Interval(np.nan, np.nan, np.nan)
        source = self.answers.source_of(inside.columns | {gap.column})
        named = self.answers.names_of(inside.columns)
        if source is None or named is None:
            return unknown
        codec, names = source[0], tuple(name for name in source[1] if name in {gap.name, *named})
        answers = self.answers.counts(names) if gap.name in names else None
        if answers is None:
            return unknown
        merging = self.model.fitted.merging
        points = self.answers.spread.in_all_cells(codec, names)
        below = points.mean(self.answers.holds(inside, points.frame).astype(np.float64))
        cells = NumberedCells.of(
            *gap.encoder.extents, merging.group_of[gap.name], merging.share_of[gap.name]
        ).divided(unit)
        along = [-1 if name == gap.name else 1 for name in names]
        numbers, deviations, inner = (
            values.reshape(along)
            for values in (cells.middles, cells.deviations, EVENLY * (cells.highs - cells.lows) ** 2)
        )
        moments = below * (numbers**2 + inner), below * numbers, below
        weights = Weights.of_moments(below * numbers, below, moments, (below * deviations) ** 2)
        limits = 0.0, float(cells.highs[-1])
        interval = ratio_interval(answers, weights, limits, laplace=self.model.has_laplace_noise)
        rows = float((answers.released * weights.below).sum())
        if interval is None or not rows > 0:
            return unknown
        estimate = float((answers.released * weights.above).sum()) / rows
        return Interval(min(max(estimate, limits[0]), limits[1]), interval.low, interval.high).extended()
