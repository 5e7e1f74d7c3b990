"""What the rows in each cell of released counts add to a ratio of two sums over rows, such as a mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from privsyn.inference.ordered.number_intervals import noise_variance, squarable_unit
from privsyn.inference.ratios.weights import Weights
from privsyn.marginals.domain import Attributes, Floats, Mask
from privsyn.release.accuracy.ordered_columns import OrderedColumns
from privsyn.release.questions.joint_answers import JointAnswers
from privsyn.release.questions.points import Points
from privsyn.table.codec.codec import Codec
from privsyn.table.schema.box import ALL, Span
from privsyn.table.schema.condition import Condition

if TYPE_CHECKING:
    from privsyn.release.fitted_table import FittedTable

SumsOf = Callable[[pd.DataFrame], tuple[Floats, Floats]]
"""Returns what each row adds above and below the line of a ratio."""

MOST_HIDDEN = 0.05  # of the sum of weights, that rows of large weights may add unseen to a weighted estimate
SURELY = 2.0  # standard deviations of the noise that hides them


@dataclass(frozen=True, eq=False)
class Ratio:
    """A ratio of two sums over rows.

    Parameters
    ----------
    columns : set of str
        On which it depends.
    sums_of : callable
        Returns what each row adds above and below the line.
    limits : pair of float
        The least and the largest ratio.
    column : str, optional
        The column of the numbers above, if it is a mean.
    condition : Condition, optional
        The rows that count above, if it is a share.
    inside : Condition, optional
        The rows that count below. Default: all.
    """

    columns: frozenset[str]
    sums_of: SumsOf
    limits: tuple[float, float]
    column: str = ""
    condition: Condition | None = None
    inside: Condition | None = None


class CellWeights:
    """The weights of the cells of a table in ratios.

    Parameters
    ----------
    model : FittedTable
    answers : JointAnswers
    ordered : OrderedColumns
        Knows the noise of each attribute.
    """

    def __init__(self, model: FittedTable, answers: JointAnswers, ordered: OrderedColumns) -> None:
        self._codec, self._fitted, self._answers, self._ordered = model.codec, model.fitted, answers, ordered

    def in_cells_of(self, ratio: Ratio) -> Weights:
        """Return what the rows add in each cell of the attributes from which the columns follow."""
        if (source := self._answers.source_of(ratio.columns)) is None:
            raise ValueError(f"{sorted(ratio.columns)}: not all have counts")
        return self.in_cells(source, ratio)

    def in_cells(self, source: tuple[Codec, Attributes], ratio: Ratio) -> Weights:
        """Return what the records of each cell add, with the unknown places of numbers inside cells."""
        points, names = self._answers.spread.in_all_cells(*source), source[1]
        weights = points.weights(*ratio.sums_of(points.frame))
        if ratio.column in names and ratio.column in self._ordered.counted:
            unit = squarable_unit(*map(np.atleast_1d, self._answers.limits(ratio.column)))
            deviations = self._ordered.cells(ratio.column).divided(unit).deviations
            along = _along(deviations, names.index(ratio.column), weights.below.shape)
            weights = replace(weights, place_variance=(weights.below * along) ** 2)
        ends = () if ratio.condition is None else self._ends(points, names, ratio, ratio.condition)
        return replace(weights, variants=self._variants(points, names, ratio, ends or (weights,)))

    def _variants(
        self, points: Points, names: Attributes, ratio: Ratio, ends: tuple[Weights, ...]
    ) -> tuple[Weights, ...]:
        """Return the weights if no row, or each one, of a cell that the group's condition cuts is in it."""
        inside = {} if ratio.inside is None else self._inside(points, names, ratio.inside)
        if ratio.inside is None or not any(map(np.any, inside.values())):
            return ends if len(ends) > 1 else ()
        is_cut = points.mean(reduce(np.logical_or, inside.values()).astype(np.float64)) > 0
        share = points.mean(self._answers.holds(ratio.inside, points.frame).astype(np.float64))
        every = np.divide(1.0, share, out=np.ones_like(share), where=is_cut & (share > 0))
        none = np.where(is_cut, 0.0, 1.0)
        return tuple(weights.scaled(factors) for weights in ends for factors in (every, none))

    def _ends(
        self, points: Points, names: Attributes, ratio: Ratio, condition: Condition
    ) -> tuple[Weights, ...]:
        """Return the least and the largest weights of a condition that cuts cells; none if it cuts none.

        All rows of a cell may lie on one side of a cut: real numbers are often few, or round, as a price of
        500,000 is, and people ask at these. No count shows it.
        """
        frame, inside = points.frame, self._inside(points, names, condition)
        meets = self._answers.holds(condition, frame)
        surely, possibly = np.array(meets), np.array(meets)
        for size in range(1, len(inside) + 1):
            for chosen in combinations(inside, size):
                rows = reduce(
                    np.logical_and, (mask if name in chosen else ~mask for name, mask in inside.items())
                )
                boxes = tuple({**box, **dict.fromkeys(chosen, ALL)} for box in condition.boxes)
                surely &= ~rows
                possibly |= rows & self._answers.holds(replace(condition, boxes=boxes), frame)
        if not inside or (surely == possibly).all():
            return ()
        _, below = ratio.sums_of(frame)
        return points.weights(below * surely, below), points.weights(below * possibly, below)

    def _inside(self, points: Points, names: Attributes, condition: Condition) -> dict[str, Mask]:
        """Return, for each column of which a condition cuts cells, the rows in these."""
        inside = {}
        for name in (name for name in names if name in self._ordered.counted and name in condition.columns):
            cells, spans = self._ordered.cells(name), [box[name] for box in condition.boxes if name in box]
            if spans:
                is_cut = reduce(Span.union, spans).cuts(cells.lows, cells.highs)
                along = np.zeros(points.shape[names.index(name)], bool)
                along[: len(is_cut)] = is_cut
                inside[name] = along[np.unravel_index(points.cells, points.shape)[names.index(name)]]
        return inside

    def times_weight(self, name: str, sums_of: SumsOf) -> SumsOf:
        """Return what each row adds above and below the line, times its weight over the largest one.

        So no row counts more than once, and what noise hides of rows is no more in these units.
        """
        _, largest = self._answers.limits(name)

        def weighted(frame: pd.DataFrame) -> tuple[Floats, Floats]:
            weight = self._codec.numbers_of(name, frame) / largest
            above, below = sums_of(frame)
            return weight * above, weight * below

        return weighted

    def may_be_hidden(self, name: str | None) -> bool:
        """Return whether noise may hide rows of large weights that would change weighted estimates much.

        Codes of large weights are merged until their count stands out, and a fitted tail says which of them
        are likely. Few rows at the top of such a group, no more than its noise, move no count of rows but may
        have much of the sum of weights.
        """
        source = None if name is None else self._answers.source_of({name})
        if name is None or source is None:
            return False
        points = self._answers.spread.in_all_cells(*source)
        weights = self._codec.numbers_of(name, points.frame)
        mean, largest = points.mean(weights), np.zeros(points.shape)
        np.maximum.at(largest, points.cells, weights)
        hidden = noise_variance(largest - mean, self._ordered.noise(source[1][0]))
        total = float(self._fitted.one_way(source[1][0]).counts @ mean)
        return SURELY * sqrt(hidden) > MOST_HIDDEN * total


def _along(values: Floats, axis: int, shape: tuple[int, ...]) -> Floats:
    """Return numbers of the first codes along an axis as an array that broadcasts over a table; 0 for others.

    >>> _along(np.array([2.0, 3.0]), 1, (5, 3)).tolist()
    [[2.0, 3.0, 0.0]]
    """
    padded = np.pad(values, (0, shape[axis] - len(values)))
    return padded.reshape([-1 if index == axis else 1 for index in range(len(shape))])
