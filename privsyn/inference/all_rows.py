"""From the rows that bounds keep of each person to all rows: tables reweighted by classes of persons.

Of persons with many rows, bounds leave out most. Within a class of persons with about equally many rows, the
rows that are kept are a random sample. How many rows each class has is known from the released numbers of
rows per person. So a table over a column and the classes is multiplied by the ratio of all rows to kept rows
of each class. Other tables are multiplied by the ratio that they would have if their columns depended on each
other through the classes alone, and fitted to the columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import hypot, sqrt
from types import MappingProxyType

import numpy as np

from privsyn.inference.composition import Composition
from privsyn.inference.consistency import combine_one_ways
from privsyn.inference.departures import NO_CONCORDANCES, NO_DEPARTURES
from privsyn.inference.fitted import NO_COMMON, ONE_SIDED, TWO_SIDED, Certainty, Fitted
from privsyn.inference.measured_columns import MeasuredColumns
from privsyn.inference.prior.dispersion import MEAN_OF_ABSOLUTE
from privsyn.inference.rows_per_person import RowsOfGroups
from privsyn.inference.single_rows import SingleCounts, SingleRows, shares_with_single_codes
from privsyn.marginals.domain import Attributes, Codes, Floats
from privsyn.marginals.ipf import fit_all
from privsyn.marginals.marginal import Marginal, Measurement, lift
from privsyn.marginals.structural_zeros import NO_ZEROS, StructuralZeros
from privsyn.marginals.tolerances import TINY_COUNT

UNCERTAIN = 0.25  # standard deviation of the expected number of rows in a table, over that number
UNSURE = 0.07
"""Error of the numbers of rows of the classes, over the number of all rows, above which a column that was
counted with them is known no better than one that was not. Mostly it is the error of the last class: noise
may hide persons with more rows than are seen. Of 3,000 generated patients at epsilon 5 it is .077 for drugs,
which depend on the number of visits: 32 of 48 intervals that follow from the classes held, and 48 of 48 of
those for columns that were not measured."""
SHAPELESS = 0.05
"""The same of all classes but the last, above which nothing is known of such a column: an assumed shape then
gives the numbers of rows. Of these drugs it is .09 to .11 at epsilon 1, and 28 of 39 wider intervals held."""

LARGEST_RATIO = 30.0  # of all rows to kept rows of a class: few kept rows show almost nothing of all
LEAN = 0.1  # prior deviation of the log odds of a value, by which a bound on squares moves it
NO_FIRSTS: Mapping[str, float] = MappingProxyType({})


def scaled_to(total: float, measured: Measurement, part: float | None) -> Measurement:
    """Return counts of a table, scaled to another number of rows than were counted in it.

    The number of counted rows has two estimates: the sum of the noisy counts, and `part` times the total,
    with a standard deviation of `UNCERTAIN` times itself. Their precision-weighted mean is taken. Without a
    part all rows were counted.

    >>> from privsyn.marginals.domain import Domain
    >>> table = Measurement(Marginal(Domain(("a",), (2,)), np.array([30.0, 50.0])), 1.0)
    >>> scaled_to(160.0, table, 0.6).marginal.counts.round(1).tolist()
    [60.0, 99.9]
    """
    if part is None:
        return measured
    variance_of_expected, variance_of_counts = (UNCERTAIN * part * total) ** 2, float(measured.variance.sum())
    counted = measured.marginal.total * variance_of_expected + part * total * variance_of_counts
    factor = total / max(counted / (variance_of_expected + variance_of_counts), 1.0)
    counts = Marginal(measured.marginal.domain, factor * measured.marginal.counts)
    return Measurement(counts, factor**2 * measured.variance, measured.grouping)


def answered(
    measured_columns: MeasuredColumns,
    total: float,
    answers: Sequence[Measurement],
    within_squares: Callable[[Attributes], bool],
    part: float | None,
) -> tuple[MeasuredColumns, tuple[Measurement, ...]]:
    """Return the measured columns, whose one-ways also use the counts of tables, and these counts.

    The counts are scaled to `total` rows, and are 0 in structural zeros.

    Parameters
    ----------
    measured_columns : MeasuredColumns
    total : float
    answers : sequence of Measurement
    within_squares : callable
        Whether the squares of a person's counts were bounded in the table of some columns. Such a table adds
        `leaning_margins` to the one-ways. Later, margins of tables say nothing new.
    part : float, optional
        Number of rows counted within squares, over the number of rows counted in a column.
    """
    tables = tuple(
        measured_columns.zeros.clean(
            scaled_to(total, answer, part if within_squares(answer.attributes) else None)
        )
        for answer in answers
    )
    leaning = [table for table in tables if within_squares(table.attributes)]
    if not leaning:
        return measured_columns, tables
    unbiased = [table for table in tables if not within_squares(table.attributes)]
    # A second look leans as much as the first: both together show no more than the first alone.
    margins = () if measured_columns.margins_known else leaning_margins(measured_columns.one_ways, leaning)
    one_ways = combine_one_ways(measured_columns.domain, (*measured_columns.one_ways, *unbiased, *margins))
    return replace(measured_columns, one_ways=one_ways, margins_known=True), tables


def leaning_margins(
    one_ways: Sequence[Measurement], tables: Sequence[Measurement]
) -> tuple[Measurement, ...]:
    r"""Return the counts of single columns in tables that bound squares, with how far they may lean.

    Within a bound on squares, more rows are kept of a person whose rows differ. So rare values have too large
    a share in the table. The share p of a value errs by about :math:`\lambda p (1 - p)`, alike in all such
    tables. :math:`\lambda^2` is estimated for each column from what exceeds the noise in the differences
    between the tables and the column's own counts. Its prior mean is the square of `LEAN`, its standard
    deviation too.

    Parameters
    ----------
    one_ways : sequence of Measurement
        The counts of each column alone.
    tables : sequence of Measurement
        Of several columns, in as many rows.

    Examples
    --------
    Two tables that are nearly exact differ alike from the column's own counts, so they show little:

    >>> from privsyn.marginals.domain import Domain
    >>> own = Measurement(Marginal(Domain(("a",), (2,)), np.array([300.0, 700.0])), 1.0)
    >>> pair = Marginal(Domain(("a", "b"), (2, 2)), np.array([[170.0, 170.0], [330.0, 330.0]]))
    >>> margins = leaning_margins([own], [Measurement(pair, 1.0)] * 2)
    >>> [margin.variance.round(-2).tolist() for margin in margins]
    [[2400.0, 2400.0], [2400.0, 2400.0]]
    """
    results: list[Measurement] = []
    for one_way in one_ways:
        own_variance = np.broadcast_to(one_way.variance, one_way.marginal.counts.shape)
        margins, up, down = [], LEAN**-2, LEAN**-4
        for table in (table for table in tables if one_way.attributes[0] in table.attributes):
            axis = table.attributes.index(one_way.attributes[0])
            summed = tuple(k for k in range(len(table.attributes)) if k != axis)
            grouping, counts = table.grouping.project((axis,)), table.marginal.counts.sum(axis=summed)
            variance = np.broadcast_to(table.variance, table.marginal.counts.shape).sum(axis=summed)
            expected, noise = grouping.join(one_way.marginal.counts), variance + grouping.join(own_variance)
            rows = np.clip(expected, 0.0, None)
            unit = rows * (1 - rows / max(float(rows.sum()), TINY_COUNT))  # p (1 - p), in rows
            weight = unit**2 / (2 * (noise + (LEAN * unit) ** 2) ** 2)
            up += float((weight * ((counts - expected) ** 2 - noise)).sum())
            down += float((weight * unit**2).sum())
            domain = table.marginal.domain.project(one_way.attributes)
            margins.append((Measurement(Marginal(domain, counts), variance, grouping), unit))
        lean = len(margins) * max(up / down, 0.0)  # alike in all, so all together show no more than one
        results += [replace(margin, variance=margin.variance + lean * unit**2) for margin, unit in margins]
    return tuple(results)


def reweighted(
    fitted: Fitted,
    classes: str,
    rows: RowsOfGroups,
    firsts: Mapping[str, float] = NO_FIRSTS,
    *,
    composition: Composition | None = None,
    zeros: StructuralZeros = NO_ZEROS,
) -> Fitted:
    """Return the model of all rows; if the noise hides all persons, the model of the kept rows.

    Parameters
    ----------
    fitted : Fitted
        The model of the kept rows.
    classes : str
        The attribute of the classes of persons. If there is none, all persons are in one class.
    rows : RowsOfGroups
        All rows of the persons of each class.
    firsts : mapping of an attribute of a row before to a number, optional
        The number of rows without a row before, which have the last code.
    composition : Composition, optional
        Of the kept rows and of all rows. Default: all rows are like the kept ones.
    zeros : StructuralZeros, optional
        Each column was weighted alone: so that rules between columns hold, they are settled again.
    """
    if not (total := float(rows.numbers.sum())) >= 1:
        return fitted
    weights = Weights.of(fitted, classes, rows)
    columns = {}
    for table in fitted.one_ways:
        (name,), counts = table.attributes, weights.all_rows(table)
        if name in firsts:
            counts_after = counts[:-1] * (
                max(total - firsts[name], 0.0) / max(float(counts[:-1].sum()), TINY_COUNT)
            )
            counts = np.append(counts_after, firsts[name])
        columns[name] = Marginal(table.domain, counts * (total / max(float(counts.sum()), TINY_COUNT)))
    columns = {column.attributes[0]: column for column in zeros.settle(tuple(columns.values()))}
    weighted = [Marginal(table.domain, weights.all_rows(table)) for table in fitted.marginals]
    margins = [tuple(columns[name] for name in table.attributes) for table in weighted]
    tables = (*columns.values(), *(fit_all(weighted, margins) if weighted else ()))
    return replace(
        fitted,
        one_ways=tables[: len(columns)],
        marginals=tables[len(columns) :],
        total=total,
        certainties=tuple(map(weights.certainty, fitted.certainties, fitted.tables, tables)),
        total_variance=max(float(rows.covariance.sum()), 0.0),
        departures=NO_DEPARTURES,  # they are of the kept rows
        concordances=NO_CONCORDANCES,
        composition=None
        if composition is None
        else replace(
            composition, measured=weights.measured, confused=weights.confused, hidden=weights.hidden
        ),
    )


@dataclass(frozen=True, eq=False)
class Weights:
    """The ratio of all rows to kept rows in each class of persons, and what it adds to the errors of tables.

    Parameters
    ----------
    classes : str
        Their attribute.
    kept_rows : array of shape (classes,)
        Number of kept rows.
    rows : RowsOfGroups
        All rows.
    code_shares : mapping of an attribute to an array of shape (codes, classes)
        The share of each code among the kept rows of a class. Without an entry it is the same in all classes.
    noise : mapping of the same attributes to arrays of the same shape
        Noise variance of the kept rows with each code in each class.
    groups : mapping of the same attributes to integer arrays of shape (codes,)
        The group in which each code was counted with the classes.
    joined : mapping of the same attributes to integer arrays of shape (classes,)
        The group in which each class was counted with the codes.
    counted_shares : mapping of an attribute to an array of shape (codes, classes)
        Of codes that at most one row of a person has: what the counts alone say.
    """

    classes: str
    kept_rows: Floats
    rows: RowsOfGroups
    code_shares: Mapping[str, Floats]
    noise: Mapping[str, Floats]
    groups: Mapping[str, Codes] = field(default_factory=dict)
    joined: Mapping[str, Codes] = field(default_factory=dict)
    counted_shares: Mapping[str, Floats] = field(default_factory=dict)

    @classmethod
    def of(cls, fitted: Fitted, classes: str, rows: RowsOfGroups) -> Weights:
        """Return the weights of the classes in which the model counts kept rows."""
        if classes not in fitted.merging.original.names:
            return cls(classes, np.array([fitted.total]), rows, {}, {})
        rows_kept, index = fitted.one_way(classes).counts, fitted.merging.original.names.index(classes)
        group = fitted.merging.groups[index]
        to_merged = np.eye(len(rows_kept))[:, group]
        merged = rows.joined(to_merged)
        code_shares, noise, groups, joined, answers = {}, {}, {}, {}, dict[str, SingleCounts]()
        for certainty, table in fitted.measured_marginals:
            if len(table.attributes) != 2 or classes not in table.attributes:
                continue
            (name,) = (name for name in table.attributes if name != classes)
            order = (name, classes)
            grouping, variance = certainty.measured.grouping, certainty.measured.variance
            group_errors = np.sqrt(np.broadcast_to(variance, grouping.join(table.counts).shape))
            cell_errors = grouping.scale(table.counts, group_errors, TINY_COUNT) if grouping else group_errors
            code_shares[name] = table.project(order).counts / np.maximum(rows_kept, TINY_COUNT)
            noise[name] = Marginal(table.domain, cell_errors).project(order).counts ** 2
            groups[name], joined[name] = (
                grouping.project(table.domain.axes((attribute,))).of_codes((size,))[0]
                for attribute, size in zip(order, code_shares[name].shape, strict=True)
            )
            counts = certainty.measured.marginal
            variances = Marginal(counts.domain, np.broadcast_to(variance, counts.counts.shape))
            answers[name] = SingleCounts(
                counts.project(order).counts, variances.project(order).counts, groups[name], joined[name]
            )
        counted_shares = {}
        if merged.single is not None:
            ones, counted = np.ones(len(rows_kept)), merged.single.counted
            for name, codes in merged.single.codes.items():
                shares = code_shares.get(name, np.outer(fitted.one_way(name).counts / fitted.total, ones))
                code_shares[name] = shares_with_single_codes(
                    shares, rows_kept, codes.mask, counted, answers.get(name)
                )
                if name in answers:
                    counted_shares[name] = shares_with_single_codes(
                        shares, rows_kept, codes.mask, counted, replace(answers[name], unlike=np.inf)
                    )
        return cls(classes, rows_kept, merged, code_shares, noise, groups, joined, counted_shares)

    @cached_property
    def ratios(self) -> Floats:
        """All rows over kept rows in each class."""
        return np.clip(self.rows.numbers / np.maximum(self.kept_rows, TINY_COUNT), 0.0, LARGEST_RATIO)

    @property
    def measured(self) -> frozenset[str]:
        """The attributes that were counted with the classes, unless noise hides the classes' numbers."""
        return frozenset(self.noise if self._error_of(len(self.rows.numbers)) <= UNSURE else ())

    @property
    def confused(self) -> frozenset[str]:
        """The attributes that were counted with the classes, if noise hides even how their numbers fall."""
        return frozenset(self.noise if self._error_of(len(self.rows.numbers) - 1) > SHAPELESS else ())

    @property
    def hidden(self) -> float:
        """The largest share of all rows that are of persons with more rows than is seen."""
        rows = TWO_SIDED * self.rows.hidden
        return rows / max(float(self.rows.numbers.sum()) + rows, TINY_COUNT)

    def _error_of(self, classes: int) -> float:
        """Return the error of the numbers of rows of the first classes, over the number of all rows.

        Rows that may be unlike all others count in `hidden`.
        """
        variance = float(np.diag(self.rows.covariance)[:classes].sum())
        variance = max(variance - self.rows.hidden**2 * (classes == len(self.rows.numbers)), 0.0)
        return sqrt(variance) / max(float(self.rows.numbers.sum()), TINY_COUNT)

    def in_classes(self, table: Marginal) -> Floats:
        """Return the kept rows of a table in each class: an array of shape (classes, ...).

        Columns are taken to depend on each other through the classes alone.
        """
        shape = table.domain.shape
        if self.classes in table.attributes:
            numbers = np.arange(len(self.kept_rows), dtype=np.float64)
            class_of_cell = lift(Marginal(table.domain.project((self.classes,)), numbers), table.domain)
            is_in_class = numbers.reshape(-1, *(1,) * len(shape)) == class_of_cell
            return np.where(is_in_class, table.counts, 0.0)
        parts = np.empty((len(self.kept_rows), *shape))
        for index, number in enumerate(self.kept_rows.tolist()):
            parts[index] = number
            for name in table.attributes:
                if name in self.code_shares:
                    share = Marginal(table.domain.project((name,)), self.code_shares[name][:, index])
                    parts[index] *= lift(share, table.domain)
        sums, shares = parts.sum(axis=0), np.empty_like(parts)
        shares[...] = (self.kept_rows / max(float(self.kept_rows.sum()), TINY_COUNT)).reshape(
            -1, *(1,) * len(shape)
        )
        return table.counts * np.divide(parts, sums, out=shares, where=sums > TINY_COUNT)

    def all_rows(self, table: Marginal) -> Floats:
        """Return the number of all rows in each cell."""
        names = tuple(name for name in table.attributes if name != self.classes)
        single = self.rows.single
        if len(names) > 1 or single is None or not single.codes.keys() & set(names):
            return np.tensordot(self.ratios, self.in_classes(table), 1)
        rows = self._all_rows_in_classes(table.project(names), single)
        if self.classes not in table.attributes:
            return np.asarray(rows.sum(axis=0))
        return rows if table.attributes[0] == self.classes else rows.T

    def _all_rows_in_classes(self, column: Marginal, single: SingleRows) -> Floats:
        r"""Return the rows with each code of a column in each class: an array of shape (classes, codes).

        A code that at most one row of a person has is kept less often the more rows a person has. So its
        :math:`k_g` kept rows in class g stand for :math:`k_g N_g / s_g` rows. :math:`N_g` is the number of
        persons, and :math:`s_g` of how many of them a random row is kept. Other codes have the remaining
        rows of the class. Where another answer says how many persons have the code, that is taken.
        """
        counts, codes = self.in_classes(column), single.codes[column.attributes[0]]
        ratios = np.clip(single.persons / np.maximum(single.counted, TINY_COUNT), 1.0, LARGEST_RATIO)
        rows = codes.scaled(np.where(codes.mask, counts * ratios[:, np.newaxis], 0.0))
        further = np.where(codes.mask, 0.0, counts)
        numbers = self.ratios * counts.sum(axis=1)
        rows *= np.minimum(1.0, numbers / np.maximum(rows.sum(axis=1), TINY_COUNT))[:, np.newaxis]
        remainder = (numbers - rows.sum(axis=1)) / np.maximum(further.sum(axis=1), TINY_COUNT)
        return np.asarray(rows + further * remainder[:, np.newaxis])

    def _in_groups(self, name: str) -> bool:
        """Return whether codes were counted with the classes in groups of several."""
        return name in self.noise and len(self.groups[name]) > int(self.groups[name].max()) + 1

    def _common(self, name: str, ratio: Floats, shares: Floats) -> Floats:
        r"""Return the errors that move the numbers of all rows of many codes of a column together.

        In a weighted sum of codes, such as a mean or a share, errors of codes are not independent. Two of the
        errors in `certainty` move many codes x together. Let :math:`c_x` be the weight of a code.

        - *The number of rows of each class* has the error :math:`L z`, with :math:`L L' = V`. It moves code x
          by :math:`\sum_g p_{gx} (L z)_g`. So the sum has the variance :math:`d' V d`, where
          :math:`d_g = \sum_x c_x p_{gx}` is the contrast of class g. If all classes have the same shares of
          codes, it is 0 for a mean or a share.
        - *Which rows are of which class*: where groups a of codes and h of classes were counted together,
          there is one noisy count of both, with the standard deviation :math:`\sigma_{ah}`. Code x has the
          part :math:`s_{gx}` of it in class g. So all codes of the group are moved one way, each by
          :math:`\sum_{g \in h} (w_g - w_x) s_{gx} \sigma_{ah}`.

        Parameters
        ----------
        name : str
        ratio : array of shape (codes,)
            All rows over kept rows.
        shares : array of shape (classes, codes)
            Of the codes in the kept rows of each class.

        Returns
        -------
        array of shape (codes, k)
            As `Certainty.common`.
        """
        values, vectors = np.linalg.eigh(self.rows.covariance)
        number_errors = shares.T @ (vectors * np.sqrt(np.maximum(values, 0.0)))
        number_errors = number_errors[:, number_errors.any(axis=0)]
        if not self._in_groups(name):
            return np.asarray(number_errors)
        group, joined = self.groups[name], self.joined[name]
        moved = (self.ratios - ratio[:, np.newaxis]) * np.sqrt(self.noise[name])
        count_errors = moved @ np.eye(int(joined.max()) + 1)[joined]
        is_in_group = np.eye(int(group.max()) + 1)[group]
        class_errors = is_in_group[:, :, np.newaxis] * count_errors[:, np.newaxis]
        return np.hstack([number_errors, class_errors.reshape(len(group), -1)])

    def certainty(self, certainty: Certainty, before: Marginal, after: Marginal) -> Certainty:
        r"""Return the certainty of a table of all rows.

        The number of all rows in a cell is :math:`\sum_g R_g p_g`. :math:`R_g` is the number of all rows of
        class g, and :math:`p_g = k_g / K_g` the share of the cell in its :math:`K_g` kept rows. Four
        independent errors add up. All are estimated from released numbers. Let :math:`w_g = R_g / K_g`, and w
        be their mean in the cell.

        - *The noise of the kept rows of the cell*, times :math:`w^2`.
        - *Which of them are of which class*: :math:`\sum_g (w_g - w)^2 v_g`. :math:`v_g` is the variance of
          :math:`k_g`: its noise if the table of the column and the classes was measured, and if not
          :math:`k_g`, as in a random sample.
        - *The number of rows of each class*: :math:`p' V p` with the covariance V of :math:`R`.
        - *The sampling of rows*. Of a person with n rows, c = n / w are kept, drawn without replacement. Let
          q be the share of the cell in the n rows, and p its mean over persons. So w times the kept rows of
          the cell has the variance :math:`n (w - 1) q (1 - q)`, but for a factor near 1. In a class of
          persons with unlike n it errs in proportion to :math:`n - \bar n` too, which adds
          :math:`(n - \bar n)^2 (q - p)^2`. The means of :math:`q (1 - q)` and of :math:`(q - p)^2` over
          persons sum to :math:`p (1 - p)`. How alike the rows of a person are divides it between them. That
          is not known, so the larger factor is taken: of all persons,
          :math:`p (1 - p) \max(R_g (w_g - 1), (1 - 1 / w_g) \sum (n - \bar n)^2)`. If a class keeps all
          rows, nothing is sampled.

        The estimate also uses other answers. Each may count other rows of the same persons, so the difference
        from this one may not be noise alone. If it exceeds that, the variance grows until the interval
        reaches the estimate.

        Of a code that at most one row of a person has, the estimate expects that persons with many rows have
        it as often as others. By how much that moves it from what the counts alone say is an error too.

        A column also has the errors that many of its codes have in common: see `_common`. What is left is
        taken as independent. Of the sampling that is :math:`p` in place of :math:`p (1 - p)`: to any sum of
        :math:`c_x - \bar c` over the codes x of a class, the variance of independent codes then gives
        :math:`\sum_x p_x (c_x - \bar c)^2`, as in a random sample of rows.

        The expected error is a distance of shares. So there :math:`p_g` counts less its mean over classes.

        Parameters
        ----------
        certainty : Certainty
            Of the kept rows.
        before, after : Marginal
            The estimated counts of the kept rows, and of all rows.
        """
        measured, shape = certainty.measured, (-1, *(1,) * len(after.domain.shape))
        parts = np.array([measured.grouping.join(part) for part in self.in_classes(before)])
        now, then = parts.sum(axis=0), measured.grouping.join(after.counts)
        ratio = np.divide(then, now, out=np.ones_like(now), where=now > TINY_COUNT)
        counts = Marginal(measured.marginal.domain, measured.marginal.counts * ratio)

        shares = np.minimum(parts / np.maximum(self.kept_rows.reshape(shape), TINY_COUNT), 1.0)
        larger = np.maximum(
            self.rows.numbers * np.maximum(self.ratios - 1, 0.0),
            self.rows.spread * np.maximum(1 - 1 / np.maximum(self.ratios, 1.0), 0.0),
        )
        name, *further = certainty.attributes
        sampled = parts if further or name not in self.noise else self.noise[name].T
        class_variance = (((self.ratios.reshape(shape) - ratio) ** 2) * sampled).sum(axis=0)
        within = np.zeros_like(now)
        if not further:
            # Where only groups of codes were counted with the classes, the ratio of a whole group is known.
            # So this is the variance of the number of all rows that a group leaves open.
            group = self.groups.get(name, np.arange(len(now), dtype=np.int32))
            sums = np.bincount(group, now).astype(np.float64)
            ratios = np.bincount(group, then) / np.maximum(sums, TINY_COUNT)
            spread = spread_inside(ratios, sums, len(set(group[: before.domain.ordered[0]].tolist())))[group]
            within = spread * now**2 * (1 - now / np.maximum(sums[group], TINY_COUNT))
        unsure = class_variance + within + np.tensordot(larger, shares * (1 - shares), 1)

        def of_classes(shares: Floats) -> Floats:
            return (shares * np.tensordot(self.rows.covariance, shares, 1)).sum(axis=0)

        more, common = unsure + of_classes(shares), NO_COMMON
        if not further:
            common = self._common(name, ratio, shares)
            alone = (
                within + np.tensordot(larger, shares, 1) + (0.0 if self._in_groups(name) else class_variance)
            )
            more = alone + (common**2).sum(axis=1)
        apart = (then - counts.counts) / ONE_SIDED  # of `count_intervals`, no end is nearer than this
        variance = np.maximum(measured.variance * ratio**2 + more, apart**2)
        if not further and name in self.counted_shares:
            by_counts = replace(self, code_shares={**self.code_shares, name: self.counted_shares[name]})
            variance = variance + (then - measured.grouping.join(by_counts.all_rows(before))) ** 2
        total = max(float(then.sum()), 1.0)
        share_errors = np.sqrt(np.maximum(unsure + of_classes(shares - then / total), 0.0))
        error = hypot(certainty.error, MEAN_OF_ABSOLUTE * float(share_errors.sum()) / (2 * total))
        return Certainty(Measurement(counts, variance, measured.grouping), min(error, 1.0), common)


def spread_inside(ratios: Floats, rows: Floats, ordered: int) -> Floats:
    r"""Return the variance of the ratio of all rows to kept rows among the codes of each group.

    Inside a group with an order the ratio is taken to be a line. Its slope is half the difference of the
    neighbours on both sides, d from one group to the next, so the variance is :math:`d^2 / 12`. Between codes
    without an order it may differ as much as between the groups.

    Parameters
    ----------
    ratios, rows : arrays of shape (groups,)
        The ratio of each group, and its kept rows.
    ordered : int
        Number of groups with an order; they come first.

    Examples
    --------
    >>> spread_inside(np.array([1.0, 1.6, 2.2]), np.ones(3), 3).round(3).tolist()
    [0.03, 0.03, 0.03]
    >>> spread_inside(np.array([1.0, 1.6, 2.2]), np.ones(3), 0).round(3).tolist()
    [0.24, 0.24, 0.24]
    """
    spread = np.full(len(ratios), np.average((ratios - np.average(ratios, weights=rows)) ** 2, weights=rows))
    if ordered > 1:
        spread[:ordered] = np.minimum(spread[:ordered], np.gradient(ratios[:ordered]) ** 2 / 12)
    return spread


def only(fitted: Fitted, names: Attributes) -> Fitted:
    """Return the model of some of the attributes."""
    wanted = set(names)
    if wanted.issuperset(fitted.merging.merged.names):
        return fitted
    return replace(
        fitted,
        merging=fitted.merging.project(names),
        one_ways=tuple(map(fitted.one_way, names)),
        marginals=tuple(table for table in fitted.marginals if wanted.issuperset(table.attributes)),
        certainties=tuple(
            certainty for certainty in fitted.certainties if wanted.issuperset(certainty.attributes)
        ),
        departures=fitted.departures.only(names),
        concordances=fitted.concordances.only(names),
    )
