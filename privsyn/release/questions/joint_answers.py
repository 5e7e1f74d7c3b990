"""What was released of some columns together: their counts, what noise hides of them, links to rows above."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from privsyn.inference.rare_values import NOTHING_HIDDEN, Hidden
from privsyn.inference.ratios.joint_counts import Departure, JointCounts
from privsyn.marginals.domain import Attributes, Codes, Floats, Mask
from privsyn.marginals.marginal import Grouping, Marginal, Measurement
from privsyn.release.accuracy.ordered_columns import OrderedColumns
from privsyn.release.questions.points import FEW_POINTS, POINTS, SpreadRows, codec_of
from privsyn.table.codec.codec import Codec
from privsyn.table.discovery.find_bounds import SIGNIFICANT_RUN
from privsyn.table.schema.condition import Condition

if TYPE_CHECKING:
    from privsyn.release.fitted_table import FittedTable

EXACTLY = 9  # decimals of a share of points: a sum of all is 1


class JointAnswers:
    """The released answers about columns of one table, from which estimates follow.

    Parameters
    ----------
    model : FittedTable
    ordered : OrderedColumns
        Knows the noise of each attribute.

    Attributes
    ----------
    spread : SpreadRows
        Rows in the cells of the released counts.
    specimen : DataFrame
        One row with the columns and dtypes of synthetic rows.
    """

    def __init__(self, model: FittedTable, ordered: OrderedColumns) -> None:
        self._model, self._codec, self._fitted, self._ordered = model, model.codec, model.fitted, ordered
        self.specimen = model.codec.specimen(np.random.default_rng(0))
        self.spread = SpreadRows(model.fitted)

    def source_of(self, columns: Collection[str]) -> tuple[Codec, Attributes] | None:
        """Return the codec by which columns follow from attributes, and these; None if one has no counts."""
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

    def names_of(self, columns: Collection[str]) -> Attributes | None:
        """Return the attributes from which columns follow, none of no column; None if not all have counts."""
        source = self.source_of(columns) if columns else (self._codec, ())
        return None if source is None else source[1]

    def counts(self, names: Attributes) -> JointCounts | None:
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
            if {*names} <= {*table.attributes}
            and certainty.relates
            and all(self._codec.column_of(name) not in self._model.not_found for name in certainty.attributes)
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

    def linking_tables(
        self, names: Attributes, parent: str, attribute: str
    ) -> list[tuple[Marginal, Measurement, Codes]]:
        """Return the counts of a column with one of the table `parent`, and the group of each code of this.

        Without a name, any column will do. Columns are left out of which noise hides how they depend on the
        number of rows of a person.
        """
        links = self._model.links
        if links is None:
            return []
        tables = []
        for linked, context in links.context.items():
            if (context.table, context.attribute) != (parent, attribute):
                continue
            for linking in links.linking:
                (name, *rest) = (column for column in linking.table.attributes if column != linked)
                if rest or linked not in linking.table.attributes or names not in ((), (name,)):
                    continue
                composition = self._fitted.composition_of((name,))
                if composition is None or name not in composition.confused:
                    pair = name, linked
                    tables.append(
                        (linking.table.project(pair), linking.measured.project(pair), context.groups)
                    )
        return tables

    def hidden(
        self,
        codec: Codec,
        names: Attributes,
        met: Callable[[pd.DataFrame], Floats],
        condition: Condition,
    ) -> Hidden:
        """Return what noise hides of the rows that meet a condition, because values were counted together."""
        hidden = NOTHING_HIDDEN
        for name in names:
            values = self._model.pooled_values(name)
            if len(values.group) == int(values.group.max()) + 1:
                continue
            points = self.spread.along(codec, name, names, POINTS if len(names) == 1 else FEW_POINTS)
            measured = self._fitted.one_way_certainty(name).measured
            usual = np.round(points.mean(met(points.frame)), EXACTLY)
            more = Hidden.of(measured, values, usual)
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

    def holds(self, condition: Condition, frame: pd.DataFrame) -> Mask:
        """Return which rows meet a condition."""
        return condition.holds(self._codec.as_compared(condition.columns, frame))

    def limits(self, column: str) -> tuple[float, float]:
        """Return the least and the largest number that a column can have."""
        kind = self._codec.schema.coded[column]
        if kind.lists_values:
            numbers = self._codec.numbers_of(column, self.specimen)
            return float(np.nanmin(numbers)), float(np.nanmax(numbers))
        return float(kind.bounds[0]), float(kind.bounds[1])
