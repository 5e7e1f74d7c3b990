"""TableAccuracy: error bars of one table. They follow from released counts and cost no privacy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import nan
from typing import Any

import numpy as np
import pandas as pd

from privsyn.errors import InputError, safe_repr
from privsyn.inference.fitted import Certainty
from privsyn.marginals.domain import Attributes, Codes, Floats
from privsyn.notebook import html, html_table
from privsyn.progress import Progress
from privsyn.release.accuracy.agreement import Agreement
from privsyn.release.accuracy.drift import Difference, Shares
from privsyn.release.accuracy.ordered_columns import OrderedColumns
from privsyn.release.accuracy.weighted import weighted_estimates
from privsyn.release.fitted_table import FittedTable
from privsyn.release.questions.estimates import Estimates, Group, TableAbove
from privsyn.table.codec.labels import Label, labels, labels_of
from privsyn.table.io.read_in_memory import read_in_memory
from privsyn.table.schema.columns import Identifier

MOST_SHOWN = 20
"""Tables in a notebook."""

SHOWN = ("estimate", "low", "high", "covered")  # parts of an estimate under a condition


@dataclass(frozen=True, eq=False, repr=False)
class TableAccuracy:
    """Expected errors of the model of one table, and confidence intervals for its counts.

    Parameters
    ----------
    model : FittedTable
    """

    model: FittedTable

    @property
    def not_found(self) -> tuple[str, ...]:
        """Columns of which no value and no bound was found: nothing covers their invented cells."""
        return self.model.not_found

    @cached_property
    def tables(self) -> pd.DataFrame:
        """One row for each table of counts; see `Accuracy.tables`."""
        certainties = self.model.fitted.certainties
        covered = [not self._lost(certainty) for certainty in certainties]
        tables = pd.DataFrame(
            {
                "columns": [certainty.attributes for certainty in certainties],
                "order": [len(certainty.attributes) for certainty in certainties],
                "cells": [certainty.measured.marginal.domain.cells for certainty in certainties],
                "sigma": [certainty.sigma for certainty in certainties],
                "expected_error": [certainty.error for certainty in certainties],
                "covered": covered,
            }
        )
        return tables.assign(expected_error=tables["expected_error"].where(tables["covered"]))

    def counts(self, *columns: str) -> pd.DataFrame:
        """Return one row for each cell of a table; see `Accuracy.counts`."""
        return self._counts(*self._table(*columns), for_readers=False)

    def labelled_counts(self, *columns: str) -> pd.DataFrame:
        """Return `counts` with labels for readers, which name all values that were counted with another."""
        return self._counts(*self._table(*columns), for_readers=True)

    def _table(self, *columns: str) -> tuple[Certainty, np.ndarray]:
        """Return the measured table of some columns, and the released estimate of it."""
        named = frozenset(name for name in columns if isinstance(name, str))
        if len(named) == len(columns) and named in self._places:
            index = self._places[named]
            estimates = (*self.model.fitted.one_ways, *self.model.fitted.marginals)
            return self.model.fitted.certainties[index], np.asarray(estimates[index].counts)
        self.model.check_not_computed_above(columns)
        computed = [maker for maker in self.model.codec.computed if maker.column in columns]
        if computed:
            name, by = computed[0].column, " and ".join(map(repr, computed[0].by))
            raise InputError(f"{name!r} is computed from {by}: ask for these")
        names = ", ".join(map(safe_repr, columns)) or "no column"
        raise InputError(f"no table of {names} was measured: see accuracy_.tables for the measured ones")

    @cached_property
    def means(self) -> pd.DataFrame:
        """One row for each ordered column; see `Accuracy.means`."""
        return self._ordered.means()

    @cached_property
    def quantiles(self) -> pd.DataFrame:
        """One row for each ordered column and quantile; see `Accuracy.quantiles`."""
        return self._ordered.quantiles()

    @cached_property
    def correlations(self) -> pd.DataFrame:
        """One row for each pair of ordered columns; see `Accuracy.correlations`."""
        return self._ordered.correlations(self._estimates.correlation_in_rows)

    @cached_property
    def weighted(self) -> pd.DataFrame:
        """One row for each listed value and each mean of numbers; see `Accuracy.weighted`."""
        return weighted_estimates(self.model, self.share, self.mean)

    def group(self, where: str) -> Group:
        """Return the rows that meet a condition."""
        return Group(self.model.condition(where))

    def above(self, table: str) -> TableAbove:
        """Return this table, of some name, as one above the rows of another."""
        return TableAbove(table, self._estimates)

    def share(
        self,
        condition: str | Group,
        where: Group | None = None,
        *,
        weighted: bool = False,
        progress: Progress | None = None,
    ) -> pd.Series:
        """Return the share of rows that meet a condition; see `Accuracy.share`."""
        subject = condition if isinstance(condition, Group) else self.group(condition)
        return self._estimates.share(subject, where, progress, weighted=weighted)

    def mean(
        self,
        column: str,
        where: Group | None = None,
        *,
        weighted: bool = False,
        progress: Progress | None = None,
        above: TableAbove | None = None,
    ) -> pd.Series:
        """Return the mean of a column, here or above, over the rows that meet a condition."""
        if above is not None:
            return self._estimates.mean(column, where, progress, weighted=weighted, above=above)
        if where is None and not weighted and column in self._ordered.names:
            mean = self._ordered.mean(column)
            if mean["covered"]:
                return pd.Series({key: mean[key] for key in SHOWN}, dtype=object)
        if isinstance(self.model.codec.schema.columns.get(column), Identifier):
            raise InputError(
                f"column {safe_repr(column)} is generated: it says nothing about the private table"
            )
        return self._estimates.mean(column, where, progress, weighted=weighted)

    def why_unknown(self, subject: Group, where: Group | None, *, weighted: bool = False) -> str:
        """Return why `share` or `mean` has no interval for a condition or a column."""
        return self._estimates.why_unknown(subject, where, weighted=weighted)

    def agreement(self, rows: Any) -> pd.DataFrame:
        """Return where a sample differs from the release, the worst first; see `Accuracy.agreement`."""
        model = self.model
        agreement = Agreement(model.codec, model.fitted, (*model.not_found, *model.unpublished))
        agreement.add(read_in_memory(rows, model.codec.schema).frame)
        return agreement.table()

    def drift(self, rows: Any) -> pd.DataFrame:
        """Return how far new rows are from the private table; see `Release.drift`."""
        model = self.model
        if (unit := model.ledger.unit) is not None:
            raise InputError(f"drift is of rows that are persons, and here {unit!r} may have many rows")
        frame = read_in_memory(rows, model.codec.schema).frame
        lacking = dict.fromkeys(
            (name for name in model.codec.schema.coded if name not in frame), "no such column in the rows"
        )
        lacking |= {
            name: "no column in the rows from which it is measured"
            for name, gap in model.codec.gaps.items()
            if not lacking.keys().isdisjoint(gap.side.columns)
        }
        agreement = Agreement(model.codec, model.fitted, (*model.not_found, *model.unpublished, *lacking))
        agreement.add(frame)
        comparisons = [
            (certainty, shares)
            for certainty in model.fitted.certainties
            if agreement.compares(certainty.attributes)
            for shares in Shares.of(certainty, agreement.counts[certainty.attributes], model.fitted)
        ]
        if not comparisons or frame.empty:
            raise InputError("give rows with columns that the release has, and at least one row")
        lines = self._differences(comparisons, len(frame))
        lines += [Difference((name,), nan, why, nan, nan) for name, why in lacking.items()]
        table = pd.DataFrame(lines, columns=Difference._fields)
        return table.sort_values("p_value", kind="stable", ignore_index=True)

    def _differences(self, comparisons: Sequence[tuple[Certainty, Shares]], rows: int) -> list[Difference]:
        """Return the largest difference of each table."""
        model, numbers = self.model, Counter[bool]()
        for _, shares in comparisons:
            numbers[len(shares.attributes) > 1] += len(shares.rows)
        largest: dict[Attributes, Difference] = {}
        for certainty, shares in comparisons:
            bounds = shares.bounds(rows, model.fitted, laplace=model.has_laplace_noise)
            index, factor = int(bounds.argmin()), len(numbers) * numbers[len(shares.attributes) > 1]
            p_value = min(1.0, factor * float(bounds[index]))
            before = largest.get(shares.attributes)
            if before is None or p_value < before.p_value:
                columns = tuple(dict.fromkeys(map(model.codec.column_of, shares.attributes)))
                ends = float(shares.rows[index]), float(shares.release[index])
                where = self._cell(certainty, shares, index)
                largest[shares.attributes] = Difference(columns, p_value, where, *ends)
        return list(largest.values())

    def _cell(self, certainty: Certainty, shares: Shares, index: int) -> str:
        """Return in words which rows a share is of."""
        name = shares.attributes[0]
        if shares.up_to and name in self._ordered.counted:
            highest = float(self._ordered.cells(name).highs[index])
            cell = self._ordered.in_units(name, highest, highest, highest)[0]
            return f"{name} <= {cell:.10g}" if isinstance(cell, float) else f"{name} <= {cell}"
        if shares.up_to:
            return f"{name} <= {self._labels[name][index].value}"
        words = self._words(certainty)
        cell = np.unravel_index(index, certainty.measured.marginal.counts.shape)
        return " & ".join(
            f"{attribute} = {word[int(k)].value}"
            for attribute, word, k in zip(shares.attributes, words, cell, strict=True)
        )

    @cached_property
    def _estimates(self) -> Estimates:
        return Estimates(self.model, self._ordered)

    @cached_property
    def _places(self) -> dict[frozenset[str], int]:
        return {
            frozenset(certainty.attributes): index
            for index, certainty in enumerate(self.model.fitted.certainties)
        }

    @cached_property
    def _ordered(self) -> OrderedColumns:
        return OrderedColumns(self.model.codec, self.model.fitted, self.not_found)

    def _lost(self, certainty: Certainty) -> bool:
        """Return whether nothing was found of a column of a table."""
        return any(self.model.codec.column_of(name) in self.not_found for name in certainty.attributes)

    def _counts(self, certainty: Certainty, estimate: np.ndarray, *, for_readers: bool) -> pd.DataFrame:
        words = self._words(certainty)
        estimate = certainty.measured.grouping.join(estimate)
        cells = np.indices(estimate.shape).reshape(estimate.ndim, -1)
        labels = [[word[k] for k in cell] for word, cell in zip(words, cells.tolist(), strict=True)]
        texts = labels if for_readers else [[label.value for label in column] for column in labels]
        values = {
            name: np.array(text, dtype=object) for name, text in zip(certainty.attributes, texts, strict=True)
        }
        low, high = certainty.intervals(laplace=self.model.has_laplace_noise)
        if not for_readers:  # a label for readers is of all values in the cell, those never drawn too
            low = np.maximum(low - self._hidden(certainty), 0.0)
        low, high = (end.ravel() for end in self.model.fitted.of_all_rows(certainty.attributes, low, high))
        counts = pd.DataFrame(values).assign(estimate=estimate.ravel())
        counts = counts.assign(
            low=np.minimum(low, counts["estimate"]), high=np.maximum(high, counts["estimate"])
        )
        rests = ["; ".join(filter(None, (label.rest for label in row))) for row in zip(*labels, strict=True)]
        return counts.assign(counted_with=rests) if any(rests) and not for_readers else counts

    def _hidden(self, certainty: Certainty) -> Floats:
        """Return how many records of each cell may have a value that is never drawn.

        Of a cell of several columns they are at most those of each column, added up.
        """
        fitted, grouping = self.model.fitted, certainty.measured.grouping
        hidden = np.zeros(certainty.measured.marginal.counts.shape)
        for axis, name in enumerate(certainty.attributes):
            measured = fitted.one_way_certainty(name).measured
            values = self.model.pooled_values(name)
            is_range = np.arange(len(values.group)) < fitted.merging.original.ordered_of[name]
            records = values._replace(shares=np.where(is_range, 1.0, values.shares)).hidden_records(measured)
            if grouping:
                records = np.sqrt(np.bincount(grouping.groups[axis], records**2))
            hidden = hidden + np.expand_dims(
                records, [index for index in range(hidden.ndim) if index != axis]
            )
        return hidden

    def _words(self, certainty: Certainty) -> list[tuple[Label, ...]]:
        """Return the labels of the cells of a table along each attribute."""
        if grouping := certainty.measured.grouping:
            return list(map(self._joined, certainty.attributes, grouping.groups))
        return [self._labels[name] for name in certainty.attributes]

    def _joined(self, name: str, group: Codes) -> tuple[Label, ...]:
        """Return the labels of an attribute's groups of merged codes."""
        index = self.model.codec.domain.names.index(name)
        return labels_of(self.model.codec.encoders[index], group[self.model.fitted.merging.groups[index]])

    @cached_property
    def _labels(self) -> dict[str, tuple[Label, ...]]:
        """Labels of the counted values; rare values and neighbouring bins may be counted together."""
        merging = self.model.fitted.merging
        words = labels(self.model.codec, merging.groups, merging.shares)
        return dict(zip(self.model.codec.domain.names, words, strict=True))

    def __repr__(self) -> str:
        means = self.tables[self.tables["covered"]].groupby("order")["expected_error"].agg(["size", "mean"])
        parts = (f"{row['size']:.0f} of {order} columns {row['mean']:.2%}" for order, row in means.iterrows())
        return f"<Accuracy: expected error of tables: {', '.join(parts) or 'none is covered'}>"

    def _repr_html_(self) -> str:
        largest = self.tables.nlargest(MOST_SHOWN, "expected_error")
        cells = [
            (" x ".join(row["columns"]), row["cells"], f"{row['sigma']:.2f}", f"{row['expected_error']:.2%}")
            for row in largest.to_dict("records")
        ]
        head = ("columns", "cells", "noise, rows", "expected error")
        lines = [repr(self).strip("<>"), f"The {len(cells)} tables with the largest expected error:"]
        return html("Accuracy", lines, html_table(head, cells))
