"""Estimates: shares, rates and means under conditions, with intervals, from released answers: at no cost."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from math import isnan, nan, sqrt
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from privsyn.errors import InputError, did_you_mean, safe_repr
from privsyn.inference.fitted import TWO_SIDED, Certainty
from privsyn.inference.ordered.number_intervals import Interval, noise_variance, squarable_unit
from privsyn.inference.rare_values import NOTHING_HIDDEN, Hidden
from privsyn.inference.ratio_intervals import Departure, JointCounts, Weights, ratio_interval
from privsyn.marginals.domain import Attributes, Codes, Floats, Mask
from privsyn.marginals.marginal import Grouping, Marginal, Measurement
from privsyn.marginals.tolerances import TINY_COUNT
from privsyn.progress import Progress
from privsyn.release.accuracy.ordered_columns import OrderedColumns
from privsyn.release.questions.points import FEW_POINTS, POINTS, Points, SpreadRows, codec_of
from privsyn.table.codec.codec import Codec
from privsyn.table.discovery.find_bounds import SIGNIFICANT_RUN
from privsyn.table.schema.condition import ALL, Condition

if TYPE_CHECKING:
    from privsyn.release.fitted_table import FittedTable

SumsOf = Callable[[pd.DataFrame], tuple[Floats, Floats]]
"""Returns what each row adds above and below the line of a ratio."""

SHOWN = ("estimate", "low", "high")
EXACTLY = 9  # decimals of a share of points: a sum of all is 1
LEAST_SHARE = 1e-12  # a smaller one is that of no row
MOST_HIDDEN = 0.05  # of the sum of weights, that rows of large weights may add unseen to a weighted estimate
SURELY = 2.0  # standard deviations of the noise that hides them


@dataclass(frozen=True, eq=False)
class Group:
    """The rows that meet a condition on columns of their own table, or of a table above it.

    Parameters
    ----------
    condition : Condition
    table : str
        The table above. Empty if the condition is on columns of the rows themselves.
    estimates : Estimates, optional
        Of the table above.
    """

    condition: Condition
    table: str = ""
    estimates: Estimates | None = None


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
    """

    columns: frozenset[str]
    sums_of: SumsOf
    limits: tuple[float, float]
    column: str = ""
    condition: Condition | None = None


class Estimates:
    """Estimates for the private table from the answers about it.

    Parameters
    ----------
    model : FittedTable
    ordered : OrderedColumns
        Knows the noise of each attribute.
    """

    def __init__(self, model: FittedTable, ordered: OrderedColumns) -> None:
        self._model, self._codec, self._fitted, self._ordered = model, model.codec, model.fitted, ordered
        self._specimen = model.codec.specimen(np.random.default_rng(0))
        self._spread = SpreadRows(model.fitted)
        self._sampled: list[pd.DataFrame] = []

    def group(self, where: str, table: str = "") -> Group:
        """Return the rows that meet a condition on this table; `table` is its name for rows below it."""
        return Group(self._condition(where), table, self if table else None)

    def share(
        self,
        text: str,
        group: Group | None = None,
        progress: Progress | None = None,
        *,
        weighted: bool = False,
    ) -> pd.Series:
        """Return the share of rows that meet a condition; see `Accuracy.share`."""
        condition = self._condition(text)
        interval = self._share(condition, group, progress, weighted=weighted)
        if condition.extremes:
            without, filled = (
                self._share(extreme, group, progress, weighted=weighted) for extreme in condition.extremes
            )
            interval = Interval(interval.estimate, without.low, filled.high)
        ends = (0.0 if abs(end) < LEAST_SHARE else end for end in vars(interval).values())
        return self._result(Interval(*ends), condition, group)

    def _share(
        self, condition: Condition, group: Group | None, progress: Progress | None, *, weighted: bool
    ) -> Interval:
        inside = self._inside(group)

        def sums_of(frame: pd.DataFrame) -> tuple[Floats, Floats]:
            below = np.ones(len(frame)) if inside is None else self._rows(inside, frame).astype(np.float64)
            return below * self._rows(condition, frame), below

        columns = condition.columns | (inside.columns if inside else frozenset())
        ratio = Ratio(columns, sums_of, (0.0, 1.0), condition=condition)
        weight = self._weight(group) if weighted else None
        if group is not None and group.table:
            return self._interval_above(ratio, group)
        return self._interval(ratio, progress, weight, of_all=inside is None)

    @staticmethod
    def _inside(group: Group | None) -> Condition | None:
        """Return the condition of a group on columns of its own table."""
        return None if group is None or group.table else group.condition

    def _weight(self, group: Group | None) -> str:
        """Return the column with the weights of rows; refuse rows without weights, or below the weighted."""
        if (name := self._codec.schema.weight) is None:
            raise InputError(
                "a weighted estimate needs the weights of the rows: declare the column of kind weight,"
                " Weight(low, high), in the schema of this table"
            )
        if group is not None and group.table:
            raise InputError("a weighted estimate is among rows of the table with the weights")
        return name

    def _with_weights(self, name: str, sums_of: SumsOf) -> SumsOf:
        """Return what each row adds above and below the line, times its weight over the largest one.

        So no row counts more than once, and what noise hides of rows is no more in these units.
        """
        _, largest = self._limits(name)

        def weighted(frame: pd.DataFrame) -> tuple[Floats, Floats]:
            weight = self._codec.numbers_of(name, frame) / largest
            above, below = sums_of(frame)
            return weight * above, weight * below

        return weighted

    def _hides_weights(self, name: str | None) -> bool:
        """Return whether noise may hide rows of large weights that would change weighted estimates much.

        Codes of large weights are merged until their count stands out, and a fitted tail says which of them
        are likely. Few rows at the top of such a group, no more than its noise, move no count of rows but may
        have much of the sum of weights.
        """
        source = None if name is None else self._source_of({name})
        if name is None or source is None:
            return False
        points = self._spread.in_all_cells(*source)
        weights = self._codec.numbers_of(name, points.frame)
        mean, largest = points.mean(weights), np.zeros(points.shape)
        np.maximum.at(largest, points.cells, weights)
        hidden = noise_variance(largest - mean, self._ordered.noise(source[1][0]))
        total = float(self._fitted.one_way(source[1][0]).counts @ mean)
        return SURELY * sqrt(hidden) > MOST_HIDDEN * total

    def mean(
        self,
        column: str,
        group: Group | None = None,
        progress: Progress | None = None,
        *,
        weighted: bool = False,
    ) -> pd.Series:
        """Return the mean of a column over the rows that meet a condition; see `Accuracy.mean`."""
        self._model.check_not_computed_above([column])
        if column not in self._specimen.columns:
            meant = did_you_mean(column, self._specimen.columns)
            raise InputError(f"there is no column {safe_repr(column)} in the synthetic table{meant}")
        if np.isnan(self._codec.numbers_of(column, self._specimen)).all():
            raise InputError(
                f"column {safe_repr(column)} has no numbers: `share` estimates how often a value occurs"
            )
        inside = self._inside(group)
        columns = (inside.columns if inside else frozenset()) | {column}
        low, high = self._limits(column)
        unit = squarable_unit(np.array([low]), np.array([high]))

        def sums_of(frame: pd.DataFrame) -> tuple[Floats, Floats]:
            numbers = self._codec.numbers_of(column, frame)
            below = ~np.isnan(numbers) & (True if inside is None else self._rows(inside, frame))
            return np.where(below, np.nan_to_num(numbers) / unit, 0.0), below.astype(np.float64)

        ratio = Ratio(columns, sums_of, (low / unit, high / unit), column)
        weight = self._weight(group) if weighted else None
        if group is not None and group.table:
            interval = self._interval_above(ratio, group)
        else:
            interval = self._interval(ratio, progress, weight)
        interval = Interval(*(unit * end for end in vars(interval).values()))
        result = self._result(interval, None, group)
        ends = [name for name in SHOWN if not isnan(result[name])] if self._codec.has_times(column) else []
        if ends:  # as `Accuracy.means` has times; the estimate is one of the ends
            numbers = (result[name if name in ends else "estimate"] for name in SHOWN)
            cells = dict(zip(SHOWN, self._codec.interval(column, *numbers), strict=True))
            result = pd.Series({**result, **{name: cells[name] for name in ends}}, dtype=object)
        return result

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
            columns, sums_of = columns | {weight}, self._with_weights(weight, sums_of)
        source = self._source_of(columns)
        answers = None if source is None or self._hides_weights(weight) else self._answers(source[1])
        if source is None or answers is None:
            above, below = map(np.sum, sums_of(self._synthetic(progress)))
            return Interval(float(above / below) if below else nan, nan, nan)
        codec, names = source
        hidden = NOTHING_HIDDEN
        if of_all and (condition := ratio.condition) is not None:
            hiding = tuple(name for name in names if name != weight or name in condition.columns)
            hidden = self._hidden(codec, hiding, lambda frame: ratio.sums_of(frame)[0], condition)
        weights = self._cell_weights(source, replace(ratio, sums_of=sums_of))
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

    def _interval_above(self, ratio: Ratio, group: Group) -> Interval:
        """Return the ratio of two sums over the rows below the rows of a group, and its interval.

        It follows from the counts of one column of these rows with one column of the table above. NaN if
        there are none. Which rows above have a value inside a group of values is as in their own table.
        """
        above, nothing = group.estimates, Interval(nan, nan, nan)
        source = self._source_of(ratio.columns)
        if above is None or source is None or len(source[1]) > 1:
            return nothing
        source_above = above._source_of(group.condition.columns)
        if source_above is None or len(source_above[1]) > 1:
            return nothing
        (name,), (attribute,) = source[1], source_above[1]
        tables = self._linking_tables(name, group.table, attribute)
        composition = self._fitted.composition_of((name,))
        if not tables or (composition is not None and name in composition.confused):
            return nothing
        table, measured, groups = tables[0]
        points_above = above._spread.in_all_cells(*source_above)
        rows = above._fitted.one_way(attribute).counts + TINY_COUNT
        met = points_above.mean(above._rows(group.condition, points_above.frame).astype(np.float64))
        met = np.bincount(groups, rows * met) / np.bincount(groups, rows)
        weights = self._cell_weights(source, ratio).times(met)
        ordered = table.domain.ordered
        zeros = [np.zeros(size) for size in table.domain.shape]
        answers = JointCounts(
            table.counts,
            zeros,
            [side[:, np.newaxis] for side in zeros],
            ordered,
            measured,
            margins_hold=False,
            composition=composition,
        )
        interval = ratio_interval(answers, weights, ratio.limits, laplace=self._model.has_laplace_noise)
        return nothing if interval is None else interval.extended()

    def _cell_weights(self, source: tuple[Codec, Attributes], ratio: Ratio) -> Weights:
        """Return what the records of each cell add, with the unknown places of numbers inside cells."""
        points, names = self._spread.in_all_cells(*source), source[1]
        weights = points.weights(*ratio.sums_of(points.frame))
        if ratio.condition is not None:
            picked = weights.below**2 * self._picked(points, names, ratio.condition)
            return replace(weights, place_variance=picked)
        if ratio.column not in names or ratio.column not in self._ordered.counted:
            return weights
        unit = squarable_unit(*map(np.atleast_1d, self._limits(ratio.column)))
        deviations = self._ordered.cells(ratio.column).divided(unit).deviations
        along = _along(deviations, names.index(ratio.column), weights.below.shape)
        return replace(weights, place_variance=(weights.below * along) ** 2)

    def _picked(self, points: Points, names: Attributes, condition: Condition) -> Floats:
        """Return the variance of the share of each cell that meets a condition on a part inside the cell.

        A single number of a cell, or a range inside, may be that of all rows of the cell or of none. Where a
        condition has one limit in a cell, numbers are taken to be spread; see `ratio_intervals`.
        """
        met, variance = points.mean(self._rows(condition, points.frame).astype(np.float64)), np.zeros(1)
        for name in (name for name in names if name in self._ordered.counted and name in condition.columns):
            grid = self._codec.cells()[name].grid
            cells, spans = self._ordered.cells(name), [box[name] for box in condition.boxes if name in box]
            if grid is None or not spans:
                continue
            picked = np.any([span.picks(cells.lows, cells.highs, grid.step) for span in spans], axis=0)
            widened = replace(condition, boxes=tuple({**box, name: ALL} for box in condition.boxes))
            rest = points.mean(self._rows(widened, points.frame).astype(np.float64))
            share = np.divide(met, rest, out=np.zeros_like(met), where=rest > 0)
            along = _along(picked.astype(np.float64), names.index(name), met.shape)
            variance = variance + along * (rest * np.maximum(share, 1 - share) / TWO_SIDED) ** 2
        return np.asarray(variance)

    def why_unknown(self, text: str, group: Group | None, *, weighted: bool = False) -> str:
        """Return why a share under a condition, or the mean of a column, has no interval in a group."""
        name, inside = text.strip("`"), self._inside(group)
        columns = frozenset({name}) if name in self._specimen.columns else self._condition(text).columns
        if weighted:
            columns |= {weight := self._weight(group)}
            if self._hides_weights(weight):
                return "noise may hide rows of very large weights: an upper bound nearer to them may help"
        source = self._source_of(columns | (inside.columns if inside else frozenset()))
        if source is None:
            return "not all of these columns have counts"
        names, above = source[1], None if group is None else group.estimates
        composition = self._fitted.composition_of(names)
        if composition is not None and not composition.confused.isdisjoint(names):
            return "noise hides how these columns depend on the number of rows of a person"
        if above is None or group is None:
            if len(names) > 2 and not any(
                {*names} <= {*table.attributes} for table in self._fitted.marginals
            ):
                rest = ": all of them and the weights as a set under `important` may help" if weighted else ""
                return f"these columns were not counted together{rest}"
            return "noise hides how many rows there are in the group"
        source_above = above._source_of(group.condition.columns)
        if len(names) > 1 or source_above is None or len(source_above[1]) > 1:
            return f"rows are counted with one column of {group.table} at a time"
        if not self._linking_tables(names[0], group.table, source_above[1][0]):
            return f"noise leaves no counts of these rows with that column of {group.table}"
        return "noise hides how many rows there are in the group"

    def _linking_tables(
        self, name: str, table_above: str, attribute: str
    ) -> list[tuple[Marginal, Measurement, Codes]]:
        """Return the counts of a column with one of a table above, and the group of each code of this."""
        links = self._model.links
        if links is None:
            return []
        return [
            (linking.table.project((name, linked)), linking.measured.project((name, linked)), context.groups)
            for linking in links.linking
            for linked, context in links.context.items()
            if {*linking.table.attributes} == {name, linked}
            and (context.table, context.attribute) == (table_above, attribute)
        ]

    def _source_of(self, columns: Collection[str]) -> tuple[Codec, Attributes] | None:
        """Return the codec by which some columns follow from attributes, and these; None if it has more."""
        if not {*self._model.not_found}.isdisjoint(columns):
            return None
        makers = {maker.column: maker for maker in self._codec.computed}
        needed, names, waiting = set[str](), set[str](), [*columns]
        while waiting:
            column = waiting.pop()
            needed.add(column)
            if column in makers:
                waiting += {*makers[column].by} - needed
            if column in self._codec.gaps or column not in makers:
                names |= {*self._codec.attributes_of(column)}
        codec = codec_of(self._codec, needed, constrained=not makers.keys().isdisjoint(needed))
        if {*codec.domain.names} != names:
            return None
        late = {part for parts in codec.parts.values() for part in parts[1:]}
        return codec, tuple(name for name in codec.domain.names if name not in late)

    def _answers(self, names: Attributes) -> JointCounts | None:
        """Return what was answered about some attributes together; None if nothing relates them."""
        fitted = self._fitted
        certain = list(map(fitted.one_way_certainty, names))
        margins = [certainty.measured.marginal.counts for certainty in certain]
        factors = list(map(self._ordered.noise, names))
        ordered = fitted.merging.merged.project(names).ordered
        composition = fitted.composition_of(names)
        if composition is not None and not composition.confused.isdisjoint(names):
            return None
        if len(names) == 1:
            return JointCounts(
                fitted.one_way(names[0]).counts, margins, factors, ordered, composition=composition
            )
        measured = [
            (certainty, table)
            for certainty, table in fitted.measured_marginals
            if {*names} <= {*table.attributes} and certainty.relates and not self._lost(certainty)
        ]
        if measured:
            certainty, table = min(measured, key=lambda pair: (len(pair[1].attributes), pair[0].sigma))
            hold = bool(self._model.zeros.mask(table.domain).all())
            counts = certainty.measured.project(names)
            return JointCounts(
                table.project(names).counts, margins, factors, ordered, counts, hold, composition=composition
            )
        if len(names) > 2:
            return None
        a, b = (fitted.one_way(name).counts for name in names)
        hold = bool(self._model.zeros.mask(fitted.merging.merged.project(names)).all())
        departures = fitted.departures
        index = departures.index.get(frozenset(names)) if hold else None
        product = np.outer(a, b) / fitted.total
        if index is not None:
            distance, sigma = float(departures.distances[index]), float(departures.sigmas[index])
            blocks = Grouping(tuple(departures.blocks[name] for name in names))
            return JointCounts(
                product, margins, factors, ordered, departure=Departure(distance, sigma, blocks)
            )
        return JointCounts(product, margins, factors, ordered, composition=composition)

    def _lost(self, certainty: Certainty) -> bool:
        return any(self._codec.column_of(name) in self._model.not_found for name in certainty.attributes)

    def _hidden(
        self,
        codec: Codec,
        names: Attributes,
        met: Callable[[pd.DataFrame], Floats],
        condition: Condition,
    ) -> Hidden:
        """Return what noise hides of the rows that meet a condition, because values were counted together."""
        hidden = NOTHING_HIDDEN
        for name in names:
            axis = self._fitted.merging.original.names.index(name)
            group, share = self._fitted.merging.groups[axis], self._fitted.merging.shares[axis]
            if len(group) == int(group.max()) + 1:
                continue
            points = self._spread.along(codec, name, names, POINTS if len(names) == 1 else FEW_POINTS)
            measured = self._fitted.one_way_certainty(name).measured
            usual = np.round(points.mean(met(points.frame)), EXACTLY)
            more = Hidden.of(measured, group, share, usual)
            hidden = Hidden(hidden.variance + more.variance, hidden.missing, hidden.meeting).beyond(
                more.missing, more.meeting
            )
        (column, *further) = condition.columns
        return hidden if further or names != (column,) else hidden.beyond(*self._clipped(condition, column))

    def _clipped(self, condition: Condition, column: str) -> tuple[float, float]:
        """Return how many rows beyond bounds that were found may miss a condition, or meet it.

        They are counted at the bound, as if they met it or missed it. They are no more than the records of
        the cell there, and no significant run: else the bound would be farther away; see
        `privsyn.table.discovery.find_bounds`.
        """
        if column not in self._model.bounds_noise:
            return 0.0, 0.0
        index = self._codec.domain.names.index(column)
        at_ends = self._fitted.merging.groups[index][[0, self._codec.domain.ordered[index] - 1]]
        _, high = self._fitted.certainties[index].intervals(laplace=self._model.has_laplace_noise)
        limit = np.minimum(high[at_ends], SIGNIFICANT_RUN * self._model.bounds_noise[column])
        ends = np.array(self._codec.schema.coded[column].bounds)
        at, away = (
            condition.holds({column: numbers}) for numbers in (ends, np.nextafter(ends, (-np.inf, np.inf)))
        )
        return float(limit[at & ~away].sum()), float(limit[~at & away].sum())

    def _condition(self, text: str) -> Condition:
        return self._model.condition(text)

    def _rows(self, condition: Condition, frame: pd.DataFrame) -> Mask:
        """Return which rows meet a condition."""
        return condition.holds(self._codec.as_compared(condition.columns, frame))

    def _limits(self, column: str) -> tuple[float, float]:
        """Return the least and the largest number that a column can have."""
        kind = self._codec.schema.coded[column]
        if kind.lists_values:
            numbers = self._codec.numbers_of(column, self._specimen)
            return float(np.nanmin(numbers)), float(np.nanmax(numbers))
        return float(kind.bounds[0]), float(kind.bounds[1])

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


def _along(values: Floats, axis: int, shape: tuple[int, ...]) -> Floats:
    """Return numbers of the first codes along an axis as an array that broadcasts over a table; 0 for others.

    >>> _along(np.array([2.0, 3.0]), 1, (5, 3)).tolist()
    [[2.0, 3.0, 0.0]]
    """
    padded = np.pad(values, (0, shape[axis] - len(values)))
    return padded.reshape([-1 if index == axis else 1 for index in range(len(shape))])
