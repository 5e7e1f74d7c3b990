"""Accuracy: error bars of a release, as tables. They follow from released counts and cost no privacy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from privsyn.errors import InputError, printable, safe_repr
from privsyn.inference.fitted import Certainty, Fitted
from privsyn.inference.ordered.number_intervals import Interval, share_interval
from privsyn.inference.rare_values import Hidden
from privsyn.marginals.domain import Codes
from privsyn.notebook import html, html_table
from privsyn.progress import Progress
from privsyn.release.accuracy_of_numbers import OrderedColumns
from privsyn.release.agreement import Agreement
from privsyn.release.draws.bias import Bias
from privsyn.release.draws.frames import codec_of
from privsyn.release.estimates import Draw, Estimates, share_of_codes
from privsyn.table.codec.codec import Codec
from privsyn.table.codec.labels import Label, labels, labels_of
from privsyn.table.discovery.find_bounds import STANDS_OUT
from privsyn.table.io.read_in_memory import read_in_memory
from privsyn.table.schema.columns import Identifier
from privsyn.table.schema.condition import Condition

MOST_SHOWN = 20
"""Tables in a notebook."""

SHOWN = ("estimate", "low", "high", "covered")  # parts of an estimate under a condition


@dataclass(frozen=True, eq=False, repr=False)
class Accuracy:
    """Expected errors of a release against the private table, and confidence intervals for its counts.

    They cover the one-way table of every column, every measured table of two or more columns, means,
    quantiles and correlations of ordered columns, and shares and means under conditions. They do not include
    the sampling error of a synthetic table.

    Parameters
    ----------
    codec : Codec
    fitted : Fitted
    laplace : bool
        Whether the noise is discrete Laplace, and not Gaussian: the intervals of single counts are wider.
    draw : Draw
    not_found : tuple of str
        Columns of which no value and no bound was found. Their cells are invented, so nothing covers them.
    unpublished : tuple of str
        Counted columns that no synthetic table has, such as numbers of child rows.
    bounds_noise : mapping of a column to a number of rows
        The noise by which its bounds were found; of columns whose bounds were found alone.

    Examples
    --------
    >>> from privsyn import Categorical, PrivSyn, Schema
    >>> people = pd.DataFrame({"sex": ["F", "M"] * 500, "smokes": ["no", "no", "no", "yes"] * 250})
    >>> schema = Schema({"sex": Categorical(["F", "M"]), "smokes": Categorical(["no", "yes"])})
    >>> accuracy = PrivSyn(1.0, 1e-6, schema, seed=0).fit(people).accuracy_
    >>> accuracy.tables["columns"].tolist()
    [('sex',), ('smokes',), ('sex', 'smokes')]
    >>> bool((accuracy.counts("smokes")["low"] <= [750, 250]).all())
    True
    """

    codec: Codec
    fitted: Fitted
    laplace: bool = False
    draw: Draw = lambda columns, progress: ()
    not_found: tuple[str, ...] = ()
    unpublished: tuple[str, ...] = ()
    bounds_noise: Mapping[str, float] = field(default_factory=dict)

    @cached_property
    def tables(self) -> pd.DataFrame:
        """One row for each table of counts, with its columns, number of columns, cells and errors.

        ``sigma`` is the standard deviation of the noise in a cell, in rows. ``expected_error`` is the
        expected total variation between the estimate and the private table: the share of rows that would
        have to change. It includes the effect of constraints on the estimate. It excludes the effects of
        constraints and of sampling on a synthetic table; `privsyn.report` includes both. It is missing, and
        ``covered`` is False, where a column is one of `not_found`.
        """
        certainties = self.fitted.certainties
        covered = [not self._lost(certainty) for certainty in certainties]
        found = pd.DataFrame(
            {
                "columns": [certainty.attributes for certainty in certainties],
                "order": [len(certainty.attributes) for certainty in certainties],
                "cells": [certainty.measured.marginal.domain.cells for certainty in certainties],
                "sigma": [certainty.sigma for certainty in certainties],
                "expected_error": [certainty.error for certainty in certainties],
                "covered": covered,
            }
        )
        return found.assign(expected_error=found["expected_error"].where(found["covered"]))

    def counts(self, *columns: str) -> pd.DataFrame:
        """Return one row for each cell of a table: its values, the estimated count, and a 95 % interval.

        The interval, from ``low`` to ``high``, contains the true count with probability 0.95; after a run
        with a delta of 0, with 0.95 to 0.97. It comes from the noisy counts of this table alone. ``estimate``
        also uses all other counts and the constraints, and is usually more accurate. Where it lies outside,
        the interval is extended to it. The interval of one column is valid even if private rows break
        constraints. Tables of more columns omit rows that break a constraint on them. If persons may have
        many rows, it is for all rows; how uncertain their number is, and the choice of rows, make it wider.

        A label of several values that were counted together begins with their number. Values so rare that
        they were counted with another one, and missing cells, are named in ``counted_with`` beside it; there
        is this column only if there are any. No sample has them.

        Parameters
        ----------
        *columns : str
            The columns of one table, in any order; `tables` lists all tables. Numbers are in the groups in
            which they were counted; a pair often has fewer groups than a single column.

        Raises
        ------
        InputError
            If no table of these columns was measured.
        """
        return self._counts(*self._table(*columns), for_readers=False)

    def labelled_counts(self, *columns: str) -> pd.DataFrame:
        """Return `counts` with labels for readers, which name all values that were counted with another."""
        return self._counts(*self._table(*columns), for_readers=True)

    def _table(self, *columns: str) -> tuple[Certainty, np.ndarray]:
        """Return the measured table of some columns, and the released estimate of it."""
        named = frozenset(name for name in columns if isinstance(name, str))
        if len(named) == len(columns) and named in self._places:
            place = self._places[named]
            estimates = (*self.fitted.one_ways, *self.fitted.marginals)
            return self.fitted.certainties[place], np.asarray(estimates[place].counts)
        computed = [maker for maker in self.codec.computed if maker.column in columns]
        if computed:
            name, by = computed[0].column, " and ".join(map(repr, computed[0].by))
            raise InputError(f"{name!r} is computed from {by}: ask for these")
        names = ", ".join(map(safe_repr, columns)) or "no column"
        raise InputError(f"no table of {names} was measured: see accuracy_.tables for the measured ones")

    @cached_property
    def means(self) -> pd.DataFrame:
        """One row for each ordered column: the estimated mean, and a 95 % interval.

        The interval covers the mean of the private numbers, clipped to the bounds. It comes from the noisy
        counts of the column, alone and in pairs, and assumes that in each cell the numbers' mean differs from
        that of the release by half a standard deviation, or so. It is extended to the estimate where this,
        which uses all answers and the constraints, lies outside. ``within_cells`` is how far the mean can
        move at most; it is large where bounds are far beyond the numbers. With bounds that were found,
        intervals hold less often: see docs/inference.md#how-far-off-may-it-be. Times are cells of the table.
        ``covered`` is False if the column follows from others, or its bounds were not found, or rare numbers
        far apart were pooled.
        """
        return self._ordered.means()

    @cached_property
    def quantiles(self) -> pd.DataFrame:
        """One row for each ordered column and quantile: the share, the estimate, and a 95 % interval.

        The interval ends where cells end. It contains the quantile of the private numbers, clipped to the
        bounds, with a probability of at least 0.95, for every private table if the bounds were given.
        """
        return self._ordered.quantiles()

    @cached_property
    def correlations(self) -> pd.DataFrame:
        """One row for each pair of ordered columns: Spearman's correlation, and a 95 % interval.

        The interval comes from the noisy counts of this pair alone. It assumes that inside the groups in
        which the pair was counted, dependence is that of a Gaussian copula. The finer the groups, the less
        this matters. A pair with ``covered`` False was not measured, or a constraint links both columns.
        """
        return self._ordered.correlations()

    def share(self, where: str, *, progress: Progress | None = None) -> pd.Series:
        """Return the share of rows that meet a condition: ``estimate``, ``low``, ``high`` and ``covered``.

        The 95 % interval is for the private table. A condition on one column is answered by its counts: the
        estimate is that of `counts`, and the interval is extended to it as in `means`. One on several columns
        is answered by 20 draws (`Release.draws`) of the smallest table of counts that holds them. ``covered``
        is False if there is no such table. The estimate is then that of one synthetic table, and has no
        interval. ``covered`` is False, too, if a number in the condition is beyond the bounds of its column,
        to which numbers are clipped, or if all draws agree that no row, or every row, meets a condition on
        several columns: noise may hide some.

        Parameters
        ----------
        where : str
            Comparisons of columns with values, such as ``"age >= 65 and not sex == 'Female'"``. Names with
            spaces are put in backticks. A missing cell meets ``is missing`` only.
        progress : callable, optional
            Called as ``progress(stage, done, total)``.

        Raises
        ------
        InputError
            If it is no condition on the columns.
        """
        return self._estimates.share(where, progress)

    def mean(self, column: str, where: str | None = None, *, progress: Progress | None = None) -> pd.Series:
        """Return the mean of a column of numbers over the rows that meet a condition, as `share` does.

        Draws are shrunk, so the interval includes the bias that the noisy counts of the columns show. If the
        noise hides the mean of so small a group, ``covered`` is False, and the estimate is missing if no draw
        has such a row with a number. Without a condition it is that of
        `means`, if the column has one.
        """
        if where is None and column in self._ordered.names:
            found = self._ordered.mean(column)
            if found["covered"]:
                return pd.Series({key: found[key] for key in SHOWN}, dtype=object)
        if isinstance(self.codec.schema.columns.get(column), Identifier):
            raise InputError(
                f"column {safe_repr(column)} is generated: it says nothing about the private table"
            )
        return self._estimates.mean(column, where, progress)

    def agreement(self, rows: Any) -> pd.DataFrame:
        """Return where a sample differs from this release by more than chance, the worst first.

        Each line has ``columns``, ``what`` is compared, its value in the ``rows`` and in the ``release``, and
        the widened interval from ``low`` to ``high``; for counts the share of rows in other cells.
        Give a sample, not private rows: it shows their exact values.

        Raises
        ------
        InputError
            If the rows do not have the columns and dtypes of a sample.
        """
        agreement = Agreement(self.codec, self.fitted, (*self.not_found, *self.unpublished))
        agreement.add(read_in_memory(rows, self.codec.schema).frame)
        return agreement.table()

    @cached_property
    def _estimates(self) -> Estimates:
        part_of = {part: name for name, parts in self.codec.parts.items() for part in parts}
        known = [one for one in self.fitted.certainties if one.relates and not self._lost(one)]
        sets = [frozenset(part_of.get(name, name) for name in c.attributes) for c in known]
        return Estimates(self.codec, self.draw, sets, Bias(self.codec, self.fitted, known), self._share_of)

    def _share_of(self, condition: Condition) -> Interval | None:
        """Return the share of rows by the counts of one column; None if it has none of its own."""
        (column,) = condition.columns
        if column not in self.codec.domain.names or self.codec.attributes_of(column) != (column,):
            return None
        merging = self.fitted.merging.project((column,))
        met = share_of_codes(codec_of(self.codec, {column}, constrained=False), condition)
        (group,), (shares,) = merging.groups, merging.shares
        parts = np.bincount(group, shares * met).astype(np.float64)
        place, noise = self.codec.domain.names.index(column), self._ordered.noise(column)
        measured, released = self.fitted.certainties[place].measured, self.fitted.one_ways[place]
        hidden = Hidden.of(measured, group, shares, met).beyond(*self._clipped(condition, column))
        found = share_interval(measured, released, parts, noise, hidden=hidden, laplace=self.laplace)
        return found.extended()

    def _clipped(self, condition: Condition, column: str) -> tuple[float, float]:
        """Return how many rows beyond bounds that were found may miss a condition, or meet it.

        They are counted at the bound, as if they met it or missed it. They are no more than the records of
        the cell there, and no significant run: else the bound would be farther away; see
        `privsyn.table.discovery.find_bounds`.
        """
        if column not in self.bounds_noise:
            return 0.0, 0.0
        place = self.codec.domain.names.index(column)
        at_ends = self.fitted.merging.groups[place][[0, self.codec.domain.ordered[place] - 1]]
        _, high = self.fitted.certainties[place].intervals(laplace=self.laplace)
        most = np.minimum(high[at_ends], STANDS_OUT * self.bounds_noise[column])
        ends = np.array(self.codec.schema.coded[column].bounds)
        at, away = (
            condition.holds({column: numbers}) for numbers in (ends, np.nextafter(ends, (-np.inf, np.inf)))
        )
        return float(most[at & ~away].sum()), float(most[~at & away].sum())

    @cached_property
    def _places(self) -> dict[frozenset[str], int]:
        return {frozenset(one.attributes): place for place, one in enumerate(self.fitted.certainties)}

    @cached_property
    def _ordered(self) -> OrderedColumns:
        return OrderedColumns(self.codec, self.fitted, self.not_found)

    def _lost(self, certainty: Certainty) -> bool:
        """Return whether nothing was found of a column of a table."""
        return any(self.codec.column_of(name) in self.not_found for name in certainty.attributes)

    def _counts(self, certainty: Certainty, estimate: np.ndarray, *, for_readers: bool) -> pd.DataFrame:
        words = [self._labels[name] for name in certainty.attributes]
        if grouping := certainty.measured.grouping:
            estimate = grouping.join(estimate)
            words = list(map(self._joined, certainty.attributes, grouping.groups))
        places = np.indices(estimate.shape).reshape(estimate.ndim, -1)
        labels = [[word[k] for k in place] for word, place in zip(words, places.tolist(), strict=True)]
        texts = labels if for_readers else [[label.value for label in column] for column in labels]
        values = {
            name: np.array(text, dtype=object) for name, text in zip(certainty.attributes, texts, strict=True)
        }
        low, high = (end.ravel() for end in certainty.intervals(laplace=self.laplace))
        found = pd.DataFrame(values).assign(estimate=estimate.ravel())
        found = found.assign(low=np.minimum(low, found["estimate"]), high=np.maximum(high, found["estimate"]))
        rests = ["; ".join(filter(None, (label.rest for label in row))) for row in zip(*labels, strict=True)]
        return found.assign(counted_with=rests) if any(rests) and not for_readers else found

    def _joined(self, name: str, group: Codes) -> tuple[Label, ...]:
        """Return the labels of an attribute's groups of merged codes."""
        place = self.codec.domain.names.index(name)
        return labels_of(self.codec.encoders[place], group[self.fitted.merging.groups[place]])

    @cached_property
    def _labels(self) -> dict[str, tuple[Label, ...]]:
        """Labels of the counted values; rare values and neighbouring bins may be counted together."""
        merging = self.fitted.merging
        words = labels(self.codec, merging.groups, merging.shares)
        return dict(zip(self.codec.domain.names, words, strict=True))

    def __repr__(self) -> str:
        means = self.tables[self.tables["covered"]].groupby("order")["expected_error"].agg(["size", "mean"])
        parts = (f"{row['size']:.0f} of {order} columns {row['mean']:.2%}" for order, row in means.iterrows())
        return f"<Accuracy: expected error of tables: {', '.join(parts) or 'none is covered'}>"

    def _repr_html_(self) -> str:
        most = self.tables.nlargest(MOST_SHOWN, "expected_error")
        rows = zip(
            most["columns"].map(" x ".join), most["cells"], most["sigma"], most["expected_error"], strict=True
        )
        cells = [(name, n, f"{sigma:.2f}", f"{error:.2%}") for name, n, sigma, error in rows]
        head = ("columns", "cells", "noise, rows", "expected error")
        lines = [repr(self).strip("<>"), f"The {len(cells)} tables with the largest expected error:"]
        return html("Accuracy", lines, html_table(head, cells))

    def __str__(self) -> str:
        names = self.tables["columns"].map(lambda names: printable(" x ".join(names)))
        named = self.tables.assign(columns=names)
        return named.to_string(index=False, float_format="{:.4f}".format)
