"""Estimates: shares, rates and means under conditions, with intervals, from released answers: at no cost."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from math import isnan, nan
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from privsyn.errors import InputError, did_you_mean, safe_repr, spelled
from privsyn.inference.ordered.number_intervals import Interval, squarable_unit
from privsyn.inference.rare_values import NOTHING_HIDDEN
from privsyn.inference.ratios.intervals import ratio_interval
from privsyn.inference.ratios.joint_counts import JointCounts
from privsyn.inference.ratios.weights import Weights
from privsyn.marginals.domain import Attributes, Floats
from privsyn.marginals.tolerances import TINY_COUNT
from privsyn.progress import Progress
from privsyn.release.accuracy.ordered_columns import OrderedColumns
from privsyn.release.questions.cell_weights import CellWeights, Ratio
from privsyn.release.questions.certain import certain_share
from privsyn.release.questions.gap_means import GapMeans
from privsyn.release.questions.joint_answers import JointAnswers
from privsyn.table.schema.condition import NO_CONDITION, Condition

if TYPE_CHECKING:
    from privsyn.release.fitted_table import FittedTable
    from privsyn.table.codec.codec import Codec

SHOWN = ("estimate", "low", "high")
MOST_POINTS = 2**16  # in which rules are looked for: each further column of a question multiplies them
MOST_IMPORTANT = 3  # columns of a set under `important`
LEAST_SHARE = 1e-12  # a smaller one is that of no row


@dataclass(frozen=True, eq=False)
class TableAbove:
    """A table above the rows.

    Parameters
    ----------
    table : str
    estimates : Estimates
    """

    table: str
    estimates: Estimates


@dataclass(frozen=True, eq=False)
class Group:
    """The rows that meet a condition on columns of their own table, or of a table above it.

    Parameters
    ----------
    condition : Condition
    above : TableAbove, optional
        The table above. Default: the condition is on columns of the rows themselves.
    """

    condition: Condition
    above: TableAbove | None = None

    @property
    def table(self) -> str:
        """The table above; "" if the condition is on columns of the rows themselves."""
        return "" if self.above is None else self.above.table


class Estimates:
    """Estimates for the private table from the answers about it.

    Parameters
    ----------
    model : FittedTable
    ordered : OrderedColumns
        Knows the noise of each attribute.
    """

    def __init__(self, model: FittedTable, ordered: OrderedColumns) -> None:
        self._model, self._codec, self._fitted = model, model.codec, model.fitted
        self._answers = JointAnswers(model, ordered)
        self._weights = CellWeights(model, self._answers, ordered)
        self._gaps = GapMeans(model, self._answers)
        self._sampled: list[pd.DataFrame] = []

    def share(
        self,
        subject: Group,
        group: Group | None = None,
        progress: Progress | None = None,
        *,
        weighted: bool = False,
    ) -> pd.Series:
        """Return the share of rows that are in `subject`, among those in `group`; see `Accuracy.share`."""
        condition = subject.condition
        interval = self._share(subject, group, progress, weighted=weighted)
        if condition.extremes:
            without, filled = (
                self._share(replace(subject, condition=extreme), group, progress, weighted=weighted)
                for extreme in condition.extremes
            )
            interval = Interval(interval.estimate, without.low, filled.high)
        ends = (0.0 if abs(end) < LEAST_SHARE else end for end in vars(interval).values())
        return self._result(Interval(*ends), condition, group)

    def _share(
        self, subject: Group, group: Group | None, progress: Progress | None, *, weighted: bool
    ) -> Interval:
        inside, above = _inside(group), _table_above(subject, group)
        weight = self._weight(above) if weighted else None
        if above is not None:
            side_above = above.estimates._side(_inside_above(subject), _inside_above(group))
            return self._interval_above(self._side(_inside(subject), inside), side_above, (0.0, 1.0), above)
        if (certain := certain_share(self._model, subject.condition, inside)) is not None:
            return Interval(certain, certain, certain)
        ratio = self._side(subject.condition, inside)
        return self._interval(ratio, progress, weight, of_all=inside is None)

    def _side(self, subject: Condition | None, inside: Condition | None) -> Ratio:
        """Return what rows add to a share of those that meet `subject` among those that meet `inside`."""

        def sums_of(frame: pd.DataFrame) -> tuple[Floats, Floats]:
            below = (
                np.ones(len(frame))
                if inside is None
                else self._answers.holds(inside, frame).astype(np.float64)
            )
            return below if subject is None else below * self._answers.holds(subject, frame), below

        return Ratio(_columns(subject, inside), sums_of, (0.0, 1.0), condition=subject, inside=inside)

    def _weight(self, above: TableAbove | None) -> str:
        """Return the column with the weights of rows; refuse rows without weights, or below the weighted."""
        if (name := self._codec.schema.weight) is None:
            raise InputError(
                "a weighted estimate needs the weights of the rows: declare the column of kind weight,"
                " Weight(low, high), in the schema of this table"
            )
        if above is not None:
            raise InputError("a weighted estimate is among rows of the table with the weights")
        return name

    def mean(
        self,
        column: str,
        group: Group | None = None,
        progress: Progress | None = None,
        *,
        weighted: bool = False,
        above: TableAbove | None = None,
    ) -> pd.Series:
        """Return the mean of a column over the rows that meet a condition; see `Accuracy.mean`.

        The column is one of the table `above`, if there is one.
        """
        home = self if above is None else above.estimates
        home._check_numbers(column)
        low, high = home._answers.limits(column)
        unit = squarable_unit(np.array([low]), np.array([high]))
        limits = low / unit, high / unit
        linked, inside = (
            _table_above(None if above is None else Group(NO_CONDITION, above), group),
            _inside(group),
        )
        weight = self._weight(linked) if weighted else None
        if linked is not None:
            inside_above = _inside_above(group)
            numbers = home._numbers_of(column, unit, inside if above is None else inside_above)
            sides = numbers, linked.estimates._side(None, inside_above)
            if above is not None:
                sides = self._side(None, inside), numbers
            interval = self._interval_above(*sides, limits, linked)
        else:
            interval = self._mean(column, unit, inside, progress, weight)
        interval = Interval(*(unit * end for end in vars(interval).values()))
        result = self._result(interval, None, group)
        ends = [name for name in SHOWN if not isnan(result[name])] if home._codec.has_times(column) else []
        if ends:  # as `Accuracy.means` has times; the estimate is one of the ends
            ends_as_numbers = (result[name if name in ends else "estimate"] for name in SHOWN)
            cells = dict(zip(SHOWN, home._codec.interval(column, *ends_as_numbers), strict=True))
            result = pd.Series({**result, **{name: cells[name] for name in ends}}, dtype=object)
        return result

    def _mean(
        self,
        column: str,
        unit: float,
        inside: Condition | None,
        progress: Progress | None,
        weight: str | None = None,
    ) -> Interval:
        """Return the mean of a column of this table in a unit, and its interval; NaN where there is none."""
        interval = self._interval(self._numbers_of(column, unit, inside), progress, weight)
        if inside is None or weight is not None or not isnan(interval.low):
            return interval
        by_parts = self._gaps.mean(
            column, unit, inside, lambda neighbour: self._mean(neighbour, unit, inside, progress)
        )
        return interval if isnan(by_parts.low + by_parts.high) else by_parts

    def _check_numbers(self, column: str) -> None:
        """Refuse a column that does not exist, or has no numbers."""
        self._model.check_not_computed_above([column])
        if column not in self._answers.specimen.columns:
            meant = did_you_mean(column, self._answers.specimen.columns)
            subject, by, _ = column.partition(" by ")
            words = f"; to ask of {safe_repr(subject)} for each value of a column, give {spelled('by')}"
            hint = words if by else ""
            raise InputError(f"there is no column {safe_repr(column)} in the synthetic table{meant or hint}")
        if np.isnan(self._codec.numbers_of(column, self._answers.specimen)).all():
            raise InputError(
                f"column {safe_repr(column)} has no numbers: `share` estimates how often a value occurs"
            )

    def _numbers_of(self, column: str, unit: float, inside: Condition | None) -> Ratio:
        """Return what rows add to the mean of a column, in some unit, among those that meet `inside`."""

        def sums_of(frame: pd.DataFrame) -> tuple[Floats, Floats]:
            numbers = self._codec.numbers_of(column, frame)
            below = ~np.isnan(numbers) & (True if inside is None else self._answers.holds(inside, frame))
            return np.where(below, np.nan_to_num(numbers) / unit, 0.0), below.astype(np.float64)

        low, high = self._answers.limits(column)
        return Ratio(_columns(inside) | {column}, sums_of, (low / unit, high / unit), column, inside=inside)

    def correlation_in_rows(self, pair: Attributes) -> float:
        """Return Spearman's correlation of two columns in synthetic rows; NaN if none can be made."""
        try:
            rows = self._synthetic(None)
        except InputError:  # counts alone, or no row satisfies the constraints
            return nan
        ranks = pd.DataFrame({name: self._codec.numbers_of(name, rows) for name in pair}).dropna().rank()
        varies = len(ranks) > 1 and bool((ranks.std() > 0).all())
        return float(np.corrcoef(ranks.to_numpy().T)[0, 1]) if varies else nan

    def _interval(
        self, ratio: Ratio, progress: Progress | None, weight: str | None = None, *, of_all: bool = False
    ) -> Interval:
        """Return a ratio of two sums over the rows, and its interval; NaN where there is none.

        Parameters
        ----------
        ratio : Ratio
        progress : callable, optional
        weight : str, optional
            The column of weights by which a row counts above and below the line.
        of_all : bool
            Whether it is a share of all rows, of which noise may hide some.
        """
        columns, sums_of, limits = ratio.columns, ratio.sums_of, ratio.limits
        if weight is not None:
            columns, sums_of = columns | {weight}, self._weights.times_weight(weight, sums_of)
        source = self._answers.source_of(columns)
        if source is not None and (ruled := self._by_rules(source, ratio)) is not None:
            return Interval(ruled, ruled, ruled)
        answers = (
            None if source is None or self._weights.may_be_hidden(weight) else self._answers.counts(source[1])
        )
        if source is None or answers is None:
            above, below = map(np.sum, sums_of(self._synthetic(progress)))
            return Interval(float(above / below) if below else nan, nan, nan)
        codec, names = source
        weights = self._weights.in_cells(source, replace(ratio, sums_of=sums_of))
        hidden = NOTHING_HIDDEN
        # A group allows for hidden rows where no counted cell meets the condition, or every one does.
        in_part = bool(weights.above.any()) and bool((weights.below - weights.above).any())
        if (of_all or not in_part) and (condition := ratio.condition) is not None:
            hiding = tuple(name for name in names if name != weight or name in condition.columns)
            hidden = self._answers.hidden(codec, hiding, lambda frame: ratio.sums_of(frame)[0], condition)
        interval = ratio_interval(
            answers, weights, limits, hidden=hidden, laplace=self._model.has_laplace_noise
        )
        released = float((answers.released * weights.below).sum())
        estimate = float((answers.released * weights.above).sum()) / released if released > 0 else nan
        if len(names) > 1 and answers.measured is None:  # the rows have what other tables say of the pair
            above, below = map(np.sum, sums_of(self._synthetic(progress)))
            estimate = float(above / below) if below else estimate
        estimate = min(max(estimate, limits[0]), limits[1])
        if interval is None:
            return Interval(estimate, nan, nan)
        return replace(interval, estimate=estimate).extended()

    def _by_rules(self, source: tuple[Codec, Attributes], ratio: Ratio) -> float | None:
        """Return a ratio that is the same in every row that counts, whatever the counts are; else None.

        Rules of the schema make it so, such as a mapping that gives each row with a value of one column the
        same value of another. Values are listed here, so the points are all values that rows can have.
        """
        codec, names = source
        merging = self._fitted.merging.project(codec.domain.names)
        merged, original = merging.merged.project(names), merging.original.project(names)
        is_listed = all(
            name in codec.schema.coded and codec.schema.coded[name].lists_values for name in names
        )
        if not is_listed or (len(names) > 1 and merged.sizes != original.sizes) or merged.cells > MOST_POINTS:
            return None
        points = self._answers.spread.in_all_cells(*source)
        above, below = ratio.sums_of(points.frame)
        counts = self._model.zeros.mask(merged).ravel()[points.cells] & (below > 0)
        ratios = above[counts] / below[counts]
        return float(ratios[0]) if len(ratios) and np.ptp(ratios) == 0 else None

    def _interval_above(
        self, side: Ratio, side_above: Ratio, limits: tuple[float, float], above: TableAbove
    ) -> Interval:
        """Return a ratio of sums over rows, which add a product of both sides, and its interval.

        It follows from the counts of one column of these rows with one column of the table above. NaN if
        there are none. Inside a group of values of a column, rows are as in their own table.
        """
        nothing = Interval(nan, nan, nan)
        names, attributes = (
            self._answers.names_of(side.columns),
            above.estimates._answers.names_of(side_above.columns),
        )
        if names is None or attributes is None or len(names) > 1 or len(attributes) != 1:
            return nothing
        tables = self._answers.linking_tables(names, above.table, attributes[0])
        if not tables:
            return nothing
        table, measured, groups = min(tables, key=lambda linking: float(linking[1].variance.sum()))
        rows = above.estimates._fitted.one_way(attributes[0]).counts + TINY_COUNT
        weights_above = above.estimates._weights.in_cells_of(side_above).joined(groups, rows)
        weights = self._weights.in_cells_of(side) if names else Weights.ones(table.domain.shape[0])
        zeros = [np.zeros(size) for size in table.domain.shape]
        answers = JointCounts(
            table.counts,
            zeros,
            [side[:, np.newaxis] for side in zeros],
            table.domain.ordered,
            measured,
            margins_hold=False,
            composition=self._fitted.composition_of(table.attributes[:1]),
        )
        interval = ratio_interval(
            answers, weights.times(weights_above), limits, laplace=self._model.has_laplace_noise
        )
        return nothing if interval is None else interval.extended()

    def why_unknown(self, subject: Group, group: Group | None, *, weighted: bool = False) -> str:
        """Return why a share, or the mean of the one column of `subject`, has no interval in a group."""
        inside, above = _inside(group), _table_above(subject, group)
        columns = _columns(_inside(subject), inside)
        if weighted:
            columns |= {weight := self._weight(above)}
            if self._weights.may_be_hidden(weight):
                return "noise may hide rows of very large weights: an upper bound nearer to them may help"
        names = self._answers.names_of(columns)
        if names is None:
            return "not all of these columns have counts"
        attributes: Attributes | None = ()
        if above is not None:
            attributes = above.estimates._answers.names_of(
                _columns(_inside_above(subject), _inside_above(group))
            )
            if len(names) > 1 or attributes is None or len(attributes) != 1:
                return f"rows are counted with one column of {above.table} at a time"
        composition = self._fitted.composition_of(names)
        if composition is not None and not composition.confused.isdisjoint(names):
            return "noise hides how these columns depend on the number of rows of a person"
        if above is None:
            if len(names) > 2 and not any(
                {*names} <= {*table.attributes} for table in self._fitted.marginals
            ):
                reason = self._why_by_distance(columns) or "these columns were not counted together"
                rest = ": all of them and the weights as a set under `important` may help" if weighted else ""
                return f"{reason}{rest}"
            return "noise hides how many rows there are in the group"
        if not attributes or not self._answers.linking_tables(names, above.table, attributes[0]):
            return f"noise leaves no counts of these rows with that column of {above.table}"
        return "noise hides how many rows there are in the group"

    def _why_by_distance(self, columns: Collection[str]) -> str:
        """Return which of some columns is counted by its distance from others, and what is lacking; or ""."""
        for column in sorted(columns):
            if column in self._codec.gaps:
                side = self._codec.gaps[column].side.columns
                further = sorted({*columns} - {column, *side})
                away = f"{column} is counted by its distance from {' and '.join(side)}"
                beside = f" with {' and '.join(further)}" if further else ""
                lacking = f"{away}: no table of counts has all of these{beside}"
                is_set = len({*columns, *side}) <= MOST_IMPORTANT
                return f"{lacking}; as a set under `important` they may have one" if is_set else lacking
        return ""

    def _synthetic(self, progress: Progress | None) -> pd.DataFrame:
        """Return one synthetic table of all columns, which is made once."""
        if not self._sampled:
            self._sampled.append(self._model.some_rows(progress))
        return self._sampled[0]

    def _result(self, interval: Interval, condition: Condition | None, group: Group | None) -> pd.Series:
        """Return the estimate, its interval for the private table, and whether it is covered."""
        uncounted = condition is not None and condition.uncounted
        if group is not None:
            uncounted = uncounted or group.condition.uncounted or bool(group.condition.replaced)
        covered = not isnan(interval.low + interval.high) and not uncounted
        shown = interval if covered else replace(interval, low=nan, high=nan)
        return pd.Series({**vars(shown), "covered": covered}, dtype=object)


def _inside(group: Group | None) -> Condition | None:
    """Return the condition of a group on columns of its own table."""
    return None if group is None or group.above is not None else group.condition


def _inside_above(group: Group | None) -> Condition | None:
    """Return the condition of a group on columns of a table above."""
    return None if group is None or group.above is None else group.condition


def _table_above(*groups: Group | None) -> TableAbove | None:
    """Return the one table above that groups of rows name, if any."""
    tables = {group.table: group.above for group in groups if group is not None and group.above is not None}
    if len(tables) > 1:
        raise InputError(f"ask about one of {' and '.join(tables)} at a time: rows are counted with one")
    return next(iter(tables.values()), None)


def _columns(*conditions: Condition | None) -> frozenset[str]:
    """Return the columns that conditions name."""
    return frozenset[str]().union(*(condition.columns for condition in conditions if condition is not None))
