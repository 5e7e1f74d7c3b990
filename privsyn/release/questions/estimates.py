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
from privsyn.table.schema.condition import ALL, NO_CONDITION, Condition

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
        ratio = self._side(subject.condition, inside)
        return self._interval(ratio, progress, weight, of_all=inside is None)

    def _side(self, subject: Condition | None, inside: Condition | None) -> Ratio:
        """Return what rows add to a share of those that meet `subject` among those that meet `inside`."""

        def sums_of(frame: pd.DataFrame) -> tuple[Floats, Floats]:
            below = np.ones(len(frame)) if inside is None else self._rows(inside, frame).astype(np.float64)
            return below if subject is None else below * self._rows(subject, frame), below

        return Ratio(_columns(subject, inside), sums_of, (0.0, 1.0), condition=subject)

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
        above: TableAbove | None = None,
    ) -> pd.Series:
        """Return the mean of a column over the rows that meet a condition; see `Accuracy.mean`.

        The column is one of the table `above`, if there is one.
        """
        home = self if above is None else above.estimates
        home._check_numbers(column)
        low, high = home._limits(column)
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
            interval = self._interval(self._numbers_of(column, unit, inside), progress, weight)
        interval = Interval(*(unit * end for end in vars(interval).values()))
        result = self._result(interval, None, group)
        ends = [name for name in SHOWN if not isnan(result[name])] if home._codec.has_times(column) else []
        if ends:  # as `Accuracy.means` has times; the estimate is one of the ends
            ends_as_numbers = (result[name if name in ends else "estimate"] for name in SHOWN)
            cells = dict(zip(SHOWN, home._codec.interval(column, *ends_as_numbers), strict=True))
            result = pd.Series({**result, **{name: cells[name] for name in ends}}, dtype=object)
        return result

    def _check_numbers(self, column: str) -> None:
        """Refuse a column that does not exist, or has no numbers."""
        self._model.check_not_computed_above([column])
        if column not in self._specimen.columns:
            meant = did_you_mean(column, self._specimen.columns)
            raise InputError(f"there is no column {safe_repr(column)} in the synthetic table{meant}")
        if np.isnan(self._codec.numbers_of(column, self._specimen)).all():
            raise InputError(
                f"column {safe_repr(column)} has no numbers: `share` estimates how often a value occurs"
            )

    def _numbers_of(self, column: str, unit: float, inside: Condition | None) -> Ratio:
        """Return what rows add to the mean of a column, in some unit, among those that meet `inside`."""

        def sums_of(frame: pd.DataFrame) -> tuple[Floats, Floats]:
            numbers = self._codec.numbers_of(column, frame)
            below = ~np.isnan(numbers) & (True if inside is None else self._rows(inside, frame))
            return np.where(below, np.nan_to_num(numbers) / unit, 0.0), below.astype(np.float64)

        low, high = self._limits(column)
        return Ratio(_columns(inside) | {column}, sums_of, (low / unit, high / unit), column)

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

    def _interval_above(
        self, side: Ratio, side_above: Ratio, limits: tuple[float, float], above: TableAbove
    ) -> Interval:
        """Return a ratio of sums over rows, which add a product of both sides, and its interval.

        It follows from the counts of one column of these rows with one column of the table above. NaN if
        there are none. Inside a group of values of a column, rows are as in their own table.
        """
        nothing = Interval(nan, nan, nan)
        names, attributes = self._names_of(side.columns), above.estimates._names_of(side_above.columns)
        if names is None or attributes is None or len(names) > 1 or len(attributes) != 1:
            return nothing
        tables = self._linking_tables(names, above, attributes[0])
        if not tables:
            return nothing
        table, measured, groups = min(tables, key=lambda linking: float(linking[1].variance.sum()))
        rows = above.estimates._fitted.one_way(attributes[0]).counts + TINY_COUNT
        weights_above = above.estimates._weights(side_above).joined(groups, rows)
        weights = self._weights(side) if names else Weights.ones(table.domain.shape[0])
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

    def _weights(self, ratio: Ratio) -> Weights:
        """Return what the rows add in each cell of the attributes from which the columns follow."""
        if (source := self._source_of(ratio.columns)) is None:
            raise ValueError(f"{sorted(ratio.columns)}: not all have counts")
        return self._cell_weights(source, ratio)

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

    def _names_of(self, columns: Collection[str]) -> Attributes | None:
        """Return the attributes from which columns follow, none of no column; None if not all have counts."""
        source = self._source_of(columns) if columns else (self._codec, ())
        return None if source is None else source[1]

    def why_unknown(self, subject: Group, group: Group | None, *, weighted: bool = False) -> str:
        """Return why a share, or the mean of the one column of `subject`, has no interval in a group."""
        inside, above = _inside(group), _table_above(subject, group)
        columns = _columns(_inside(subject), inside)
        if weighted:
            columns |= {weight := self._weight(above)}
            if self._hides_weights(weight):
                return "noise may hide rows of very large weights: an upper bound nearer to them may help"
        names = self._names_of(columns)
        if names is None:
            return "not all of these columns have counts"
        attributes: Attributes | None = ()
        if above is not None:
            attributes = above.estimates._names_of(_columns(_inside_above(subject), _inside_above(group)))
            if len(names) > 1 or attributes is None or len(attributes) != 1:
                return f"rows are counted with one column of {above.table} at a time"
        composition = self._fitted.composition_of(names)
        if composition is not None and not composition.confused.isdisjoint(names):
            return "noise hides how these columns depend on the number of rows of a person"
        if above is None:
            if len(names) > 2 and not any(
                {*names} <= {*table.attributes} for table in self._fitted.marginals
            ):
                rest = ": all of them and the weights as a set under `important` may help" if weighted else ""
                return f"these columns were not counted together{rest}"
            return "noise hides how many rows there are in the group"
        if not attributes or not self._linking_tables(names, above, attributes[0]):
            return f"noise leaves no counts of these rows with that column of {above.table}"
        return "noise hides how many rows there are in the group"

    def _linking_tables(
        self, names: Attributes, above: TableAbove, attribute: str
    ) -> list[tuple[Marginal, Measurement, Codes]]:
        """Return the counts of a column with one of a table above, and the group of each code of this.

        Without a name, any column will do. Columns are left out of which noise hides how they depend on the
        number of rows of a person.
        """
        links = self._model.links
        if links is None:
            return []
        tables = []
        for linked, context in links.context.items():
            if (context.table, context.attribute) != (above.table, attribute):
                continue
            for linking in links.linking:
                (name, *rest) = (column for column in linking.table.attributes if column != linked)
                if rest or linked not in linking.table.attributes or names not in ((), (name,)):
                    continue
                composition = self._fitted.composition_of((name,))
                if composition is None or name not in composition.confused:
                    projected = (
                        linking.table.project((name, linked)),
                        linking.measured.project((name, linked)),
                    )
                    tables.append((*projected, context.groups))
        return tables

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


def _along(values: Floats, axis: int, shape: tuple[int, ...]) -> Floats:
    """Return numbers of the first codes along an axis as an array that broadcasts over a table; 0 for others.

    >>> _along(np.array([2.0, 3.0]), 1, (5, 3)).tolist()
    [[2.0, 3.0, 0.0]]
    """
    padded = np.pad(values, (0, shape[axis] - len(values)))
    return padded.reshape([-1 if index == axis else 1 for index in range(len(shape))])
