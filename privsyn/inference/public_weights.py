r"""Weights of public rows: rows of another table get the counts of the released answers.

Last year's table, a neighbour's or a biased sample shows relations that no noisy count shows. Its rows get
the weights w with the least

.. math:: \kappa \sum_i \bigl(w_i \ln \tfrac{w_i}{w_0} - w_i + w_0\bigr)
    + \sum_c \frac{(w(c) - y_c)^2}{2 \sigma_c^2}

over the cells c of all answers y, with :math:`w_0 = n / N` for N public rows: maximum entropy with a ridge.
Then :math:`\ln(w_i / w_0) = \sum_{c \ni i} \lambda_c / \kappa` with one multiplier for each cell. So what the
noise hides stays as the public table has it. The least is found table by table: the cells of one table hold
different rows, so each solves an equation of its own (iterative proportional fitting, if sigma is 0).

**How far the public rows are trusted** is decided by splitting the noise (Rasines and Young, Biometrika
2023). Draw z with the variance of the noise: then :math:`y + s z` and :math:`y - z / s` are uncorrelated
given the true counts. Both estimates, by public rows and by the tables alone, are made from the first, and
the second says which mixture of both is nearer to the truth. A mixture with the share :math:`\alpha` of
public rows has the least squared error at

.. math:: \alpha = \sum_c d_c (t_c - y'_c) / \sum_c d_c^2, \quad d = t - p

with the tables t, the public rows' counts p and the answers y' that were kept back, all over the noise of y'.
Public rows that do not lessen the error by `CLEAR` standard deviations get no share. Concordances of pairs of
numbers, which the weights do not use, are a second judge: the share is at most the one that they give. The
answers are released, so all of this is post-processing and costs no privacy.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from math import prod, sqrt

import numpy as np

from privsyn.inference import _kernels
from privsyn.inference.exact_counts import with_exact_counts
from privsyn.inference.fitted import Fitted
from privsyn.inference.measured_columns import Estimate, MeasuredColumns
from privsyn.inference.ordered.concordance import Concordance
from privsyn.inference.ordered.tails import Tails
from privsyn.inference.pairs import Pairs, estimate_pairs
from privsyn.inference.public_rows import PublicRows
from privsyn.marginals.domain import Attributes, Codes, Floats, Ints, Records
from privsyn.marginals.ipf import fit_margins
from privsyn.marginals.marginal import Marginal, Measurement
from privsyn.marginals.structural_zeros import StructuralZeros

RIDGES = (1.0, 0.3, 0.1, 0.03, 0.01)  # kappas that are tried: best ones of four tables, epsilon 0.2 to 5
SPLIT = 0.7  # s: the noise of the first part grows by a quarter, that of the part kept back is threefold
SPLITS = 4  # draws of z: they share the answers, so more say little more
CLEAR = 3.0  # standard deviations by which the public rows must lessen the error
LEAST_SHARE = 0.2  # of a far table: so little makes columns worse by more than it makes relations better
BEYOND = 1.5  # standard deviations added to the share: of unmeasured pairs tables know less than of these
FEW, MOST = 10_000, 100_000  # public rows that are weighted for each kappa, and in the end
MOST_LOOKUPS = 2**26  # of cells of rows: with very many tables fewer rows are weighted
TRIAL_SWEEPS, SWEEPS = 10, 25  # over all tables; counts then agree to hundredths of the noise
MOVED = 0.01  # share of all rows, for each root of the number of tables, that ends the sweeps
NEARLY = 1.0  # record
LEAST = 1e-12  # least sum of squares and variance, against division by 0


def with_public_rows(
    fitted: Fitted,
    records: Records,
    zeros: StructuralZeros,
    tails: Tails,
    rng: np.random.Generator,
    given: Collection[str] = (),
) -> Fitted:
    """Return the model with public rows, and tables that are mixtures of both; or as it is, if they are far.

    Parameters
    ----------
    fitted : Fitted
    records : Records
        Public rows in merged codes, of some or all attributes.
    zeros : StructuralZeros
    tails : Tails
        Layout of the cells of ordered attributes, by which the tables alone are estimated.
    rng : numpy.random.Generator
        Draws z, and which rows are weighted if there are very many.
    given : collection of str
        Attributes of other rows. Their counts alone are no answers: they judge no row, and weight none.
    """
    records = _in_order(_possible(records, zeros))
    exact = fitted.totals.merge(fitted.merging)
    inside = [
        _nearly(certainty.measured) if exact.covers(certainty.attributes) else certainty.measured
        for certainty in fitted.certainties
        if set(records.domain.names).issuperset(certainty.attributes)
        and not (len(certainty.attributes) == 1 and set(given).issuperset(certainty.attributes))
    ]
    if not len(records) or not inside:
        return fitted
    limit = min(MOST, max(MOST_LOOKUPS // len(inside), FEW))
    records = _some(records, limit, rng)
    ridge, share = _ridge_and_share(fitted, inside, records, zeros, tails, rng)
    if not share:
        return fitted
    weights = _Answers.of(records, inside).weights(inside, fitted.total, ridge, SWEEPS)
    rows = PublicRows(records, weights * (fitted.total / weights.sum()), share)
    return replace(with_exact_counts(_mixed(fitted, rows), zeros), public_rows=rows)


def _ridge_and_share(
    fitted: Fitted,
    inside: list[Measurement],
    records: Records,
    zeros: StructuralZeros,
    tails: Tails,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Return the best ridge, and the share of public rows in the best mixture; 0 if it is not clear."""
    exact = fitted.totals.merge(fitted.merging)  # these counts are met whatever the rows are
    compared = [i for i, m in enumerate(inside) if len(m.attributes) <= 2 and not exact.covers(m.attributes)]
    if not compared:
        return RIDGES[0], 0.0
    names = set(records.domain.names)
    concordances = [c for c in _concordances(fitted) if names.issuperset(c.attributes)]
    # Of tables, and of concordances: sums of d^2 and of d (t - y'), whose variance by the noise is d^2.
    sums = np.zeros((2, 2, len(RIDGES)))
    for _ in range(SPLITS):
        noise = [rng.standard_normal(m.variance.shape) * np.sqrt(m.variance) for m in inside]
        fitting = [_moved(m, SPLIT * z, 1 + SPLIT**2) for m, z in zip(inside, noise, strict=True)]
        held_back = [_moved(inside[i], -noise[i] / SPLIT, 1 + SPLIT**-2) for i in compared]
        sigma = np.sqrt(np.maximum(_cells([m.variance for m in held_back]), LEAST))
        columns, estimates = _columns_and_pairs(fitted, [fitting[i] for i in compared], zeros, tails)
        pairs = estimate_pairs(columns, estimates, rng, concordances)
        tables = {table.attributes: table for table in (*pairs.one_ways, *pairs.tables)}
        alone = _cells([inside[i].grouping.join(tables[inside[i].attributes].counts) for i in compared])
        away = (alone - _cells([m.marginal.counts for m in held_back])) / sigma
        # The weights do not know the concordances, which so judge whole: tables without them, and rows.
        unsure = estimate_pairs(columns, estimates, rng) if concordances else pairs
        short = _gaps(concordances, unsure)
        some = _some(records, FEW, rng)
        answers = _Answers.of(some, inside)
        for row, ridge in enumerate(RIDGES):
            weights = answers.weights(fitting, fitted.total, ridge, TRIAL_SWEEPS)
            weights *= fitted.total / weights.sum()
            public = answers.counts(weights)
            d = (alone - _cells([public[i] for i in compared])) / sigma
            sums[0, :, row] += d @ d, d @ away
            off = _gaps_of_rows(concordances, some, weights) - short
            sums[1, :, row] += off @ off, off @ -short
    squares, products = np.maximum(sums[:, 0], LEAST) / SPLITS, sums[:, 1] / SPLITS
    shares = np.clip(products[0] / squares[0], 0.0, 1.0)
    best = int(np.argmax(2 * shares * products[0] - shares**2 * squares[0]))
    if products[0, best] <= CLEAR * np.sqrt(squares[0, best]):
        return RIDGES[best], 0.0
    # Rows whose columns go together another way can have the counts of all columns: concordances may object.
    limits = products[:, best] / squares[:, best] + BEYOND / np.sqrt(squares[:, best])
    share = min(*limits.tolist(), 1.0)
    return RIDGES[best], share if share >= LEAST_SHARE else 0.0


def _columns_and_pairs(
    fitted: Fitted, measured: list[Measurement], zeros: StructuralZeros, tails: Tails
) -> tuple[MeasuredColumns, tuple[Estimate, ...]]:
    """Return the columns and pairs, with these answers, as the release estimates them from its own."""
    by_attributes = {m.attributes: m for m in measured}
    one_ways = tuple(
        by_attributes.get(certainty.attributes, certainty.measured)
        for certainty in fitted.certainties[: len(fitted.one_ways)]
    )
    pairs = tuple(
        Estimate(table, measured=zeros.clean(by_attributes[table.attributes]))
        for table in fitted.marginals
        if table.attributes in by_attributes
    )
    columns = MeasuredColumns(
        fitted.merging, zeros, tails, one_ways=one_ways, margins_known=True, totals=fitted.totals
    )
    return columns, pairs


def _gaps(concordances: list[Concordance], pairs: Pairs) -> Floats:
    """Return by how much tables, or independent columns, fall short of the answers, over their noise."""
    one_ways = {table.attributes[0]: table for table in pairs.one_ways}
    tables = {table.attributes: table.counts for table in pairs.tables}
    gaps = np.empty(len(concordances))
    for index, concordance in enumerate(concordances):
        first, second = (one_ways[name].counts for name in concordance.attributes)
        independent = np.outer(first, second) / pairs.total
        gap = concordance.gap(tables.get(concordance.attributes, independent))
        gaps[index] = gap / sqrt(max(concordance.variance, LEAST))
    return gaps


def _gaps_of_rows(concordances: list[Concordance], records: Records, weights: Floats) -> Floats:
    """Return by how much weighted records fall short of the answers, over the noise of these."""
    gaps = np.empty(len(concordances))
    for index, concordance in enumerate(concordances):
        axes = records.domain.axes(concordance.attributes)
        first, second = (
            sign[records.codes[:, axis]] for axis, sign in zip(axes, concordance.signs.values(), strict=True)
        )
        gap = concordance.measured - float(weights @ (first * second))
        gaps[index] = gap / sqrt(max(concordance.variance, LEAST))
    return gaps


def _concordances(fitted: Fitted) -> list[Concordance]:
    """Return the released concordances of pairs."""
    domain, released = fitted.merging.merged, fitted.concordances
    signs = {}
    for name, half in released.halves.items():
        codes = np.arange(domain.size_of[name])
        signs[name] = np.where(codes < domain.ordered_of[name], np.where(codes < half, -1, 1), 0)
    return [
        Concordance({name: signs[name] for name in pair}, measured, released.variance)
        for pair, measured in zip(released.pairs, released.measured.tolist(), strict=True)
    ]


def _mixed(fitted: Fitted, rows: PublicRows) -> Fitted:
    """Return the model whose tables are mixtures of the public rows' counts and its own; they agree."""
    names = set(rows.records.domain.names)
    inside = [table for table in fitted.tables if names.issuperset(table.attributes)]
    counts = weighted_counts(rows.records, [table.attributes for table in inside], rows.weights)
    mixed = {
        table.attributes: Marginal(table.domain, rows.share * public + (1 - rows.share) * table.counts)
        for table, public in zip(inside, counts, strict=True)
    }
    one_ways = tuple(mixed.get(table.attributes, table) for table in fitted.one_ways)
    margins = {table.attributes[0]: table for table in one_ways}
    marginals = tuple(
        mixed[table.attributes]
        if table.attributes in mixed
        else fit_margins(table, tuple(margins[name] for name in table.attributes))
        for table in fitted.marginals
    )
    return replace(fitted, one_ways=one_ways, marginals=marginals)


def weighted_counts(records: Records, sets: Sequence[Attributes], weights: Floats) -> list[Floats]:
    """Return the weighted counts of records over each set of attributes."""
    counts = list[Floats]()
    for attributes in sets:
        shape = tuple(records.domain.size_of[name] for name in attributes)
        cells = np.ravel_multi_index(tuple(records.codes[:, records.domain.axes(attributes)].T), shape)
        counts.append(np.asarray(np.bincount(cells, weights, prod(shape)).reshape(shape), np.float64))
    return counts


@dataclass(frozen=True, eq=False)
class _Answers:
    """The cell of each row in each measured table.

    Parameters
    ----------
    cells : array of shape (tables, rows)
    shapes : list of the shape of each table
    """

    cells: Codes
    shapes: list[tuple[int, ...]]

    @classmethod
    def of(cls, records: Records, measured: Sequence[Measurement]) -> _Answers:
        cells = np.empty((len(measured), len(records)), np.int32)
        for row, m in zip(cells, measured, strict=True):
            groups = m.grouping.of_codes(m.marginal.domain.shape)
            axes = records.domain.axes(m.attributes)
            codes = [group[records.codes[:, axis]] for axis, group in zip(axes, groups, strict=True)]
            row[...] = np.ravel_multi_index(tuple(codes), m.marginal.domain.shape)
        return cls(cells, [m.marginal.domain.shape for m in measured])

    @property
    def starts(self) -> Ints:
        """Where the cells of each table begin, and the end of the last."""
        return np.cumsum([0, *(prod(shape) for shape in self.shapes)])

    def weights(self, measured: Sequence[Measurement], total: float, ridge: float, sweeps: int) -> Floats:
        """Return the weights of the rows, which about sum to the total."""
        counts = _cells([m.marginal.counts for m in measured])
        variances = _cells([m.variance for m in measured])
        weights, multipliers = (
            np.full(self.cells.shape[1], total / self.cells.shape[1]),
            np.zeros(len(counts)),
        )
        for _ in range(sweeps):
            moved = _kernels.weigh(self.cells, self.starts, counts, variances, ridge, weights, multipliers)
            if moved < MOVED * total * np.sqrt(len(measured)):
                break
        return weights

    def counts(self, weights: Floats) -> list[Floats]:
        """Return the weighted counts of each table."""
        sizes = np.diff(self.starts)
        return [
            np.asarray(np.bincount(row, weights, size).reshape(shape), np.float64)
            for row, size, shape in zip(self.cells, sizes, self.shapes, strict=True)
        ]


def _moved(measured: Measurement, noise: Floats, factor: float) -> Measurement:
    """Return a measurement with more noise, and its variance times the factor."""
    marginal = Marginal(measured.marginal.domain, measured.marginal.counts + noise)
    return Measurement(marginal, measured.variance * factor, measured.grouping)


def _nearly(measured: Measurement) -> Measurement:
    """Return exact counts as if their noise were `NEARLY`: weighted rows cannot meet all of them."""
    return Measurement(measured.marginal, np.full(measured.variance.shape, NEARLY**2))


def _cells(tables: Sequence[Floats]) -> Floats:
    return np.concatenate([table.ravel() for table in tables])


def _some(records: Records, limit: int, rng: np.random.Generator) -> Records:
    """Return the records, or some of them in order if there are more than `limit`."""
    if len(records) <= limit:
        return records
    return Records(records.domain, records.codes[np.sort(rng.permutation(len(records))[:limit])])


def _in_order(records: Records) -> Records:
    """Return the records in the order of their codes."""
    return Records(records.domain, records.codes[np.lexsort(records.codes.T[::-1])])


def _possible(records: Records, zeros: StructuralZeros) -> Records:
    """Return the records that lie in no structural zero."""
    possible = np.full(len(records), True)
    for domain, mask in zeros.masks:
        if set(records.domain.names).issuperset(domain.names):
            possible &= mask[tuple(records.codes[:, records.domain.axes(domain.names)].T)]
    return Records(records.domain, records.codes[possible])
