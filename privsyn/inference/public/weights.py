r"""Weights of public rows: rows of another table get the counts of the released answers.

Last year's table, a neighbour's or a biased sample shows relations that no noisy count shows. Its rows get
weights :math:`w_i = w_0 \exp(\sum_{c \ni i} u_c)` over the cells c of all answers y, with :math:`w_0 = n /
N` for N public rows (maximum entropy with a ridge). The answers make

.. math:: w(c) - y_c + r_T \sigma_c^2 u_c = 0

in each cell c of a table T. So what the noise hides stays as the public table has it. They are solved table
by table: the cells of one table hold different rows (iterative proportional fitting, if sigma is 0).

**How far each table is moved.** The ridge :math:`r_T` is 1 over the dispersion of T about the public rows:
the variance of its true counts about theirs, over these. It is estimated from the answers as of any table
about its expected counts (`prior.dispersion`). The column that departs most clearly comes first, and the
next one is compared with rows that have its weights: columns that depend on it depart with it. Then pairs
and larger tables are compared with rows that have the weights of all columns. Dispersions of columns are
pooled, and those of all other tables: where noise hides the departures, one table alone says nothing.

**The share of public rows** follows from two judges.

*Measured tables*, by splitting the noise (Rasines and Young, Biometrika 2023). Draw z with the variance of
the noise: then :math:`y + s z` and :math:`y - z / s` are uncorrelated given the true counts. Both
estimates, by public rows and by the tables alone, are made from the first, and the second says which
mixture of both is nearer to the truth. A mixture with the share :math:`\alpha` of public rows has the least
squared error at

.. math:: \alpha = \sum_c d_c (t_c - y'_c) / \sum_c d_c^2, \quad d = t - p

with the tables t, the public rows' counts p and the answers y' that were kept back, all over the noise of
y'. Public rows that do not lessen the error by `CLEAR` standard deviations get no share. One standard
deviation is added to :math:`\alpha`: the more noise there is, the less do tables know of other relations.

*What no table shows*, by leaving pairs out. The public rows are weighted without a fifth of the measured
pairs. Their counts p of these pairs, independent columns in place of t, and the answers in place of y' give
a share :math:`\beta` by the same formula. Concordances of pairs of numbers, which the weights do not use,
count as pairs left out; t are then tables that do not know them. If :math:`\beta` is 0, the columns of
public rows go together another way, and they get no share.

If the tables show a part :math:`\nu` of all relations, the share of public rows is

.. math:: 1 \Big/ \Bigl(\frac{\nu}{\alpha} + \frac{1 - \nu}{1 - (1 - \alpha)(1 - \beta)}\Bigr).

The second denominator is larger than :math:`\beta`, because relations of more than two columns are in
public rows alone. The share has the least sum of relative errors if the squared error of public rows is
:math:`1 / \alpha - 1` times that of the tables. The answers are released, so all of this is post-processing
and costs no privacy.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from math import comb, prod, sqrt

import numpy as np

from privsyn.inference import _kernels
from privsyn.inference.exact_counts import with_exact_counts
from privsyn.inference.fitted import Fitted
from privsyn.inference.measured_columns import Estimate, MeasuredColumns
from privsyn.inference.ordered.concordance import Concordance
from privsyn.inference.ordered.tails import Tails
from privsyn.inference.pairs import Pairs, estimate_pairs
from privsyn.inference.prior.dispersion import DISPERSIONS, deviation_likelihoods, pooled_dispersions
from privsyn.inference.public.rows import PublicRows
from privsyn.marginals.domain import Attributes, Codes, Floats, Ints, Records
from privsyn.marginals.ipf import fit_margins
from privsyn.marginals.marginal import Marginal, Measurement
from privsyn.marginals.structural_zeros import StructuralZeros

COLUMNS = 3.0  # times the ridge of columns: pairs move them too
SPLIT = 0.7  # s: the noise of the first part grows by a quarter, that of the part kept back is threefold
SPLITS = 4  # draws of z: they share the answers, so more say little more
CLEAR = 3.0  # standard deviations by which the public rows must lessen the error
FOLDS = 5  # parts of the measured pairs, each of which is left out once
LEAST_SHARE = 0.01  # less would be called 0 %
SHOWN = 0.75  # part of all relations that the tables show if all pairs are measured
FEW, MOST = 10_000, 100_000  # public rows that are weighted for each judge, and in the end
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
    context: Collection[str] = (),
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
    context : collection of str
        Attributes of other rows. Their counts alone are no answers: they judge no row, and weight none.
    """
    records = _in_order(_possible(records, zeros))
    exact = fitted.totals.merge(fitted.merging)
    inside = [  # exact counts as if their noise were `NEARLY`: weighted rows cannot meet all of them
        Measurement(certainty.measured.marginal, np.full(certainty.measured.variance.shape, NEARLY**2))
        if exact.covers(certainty.attributes)
        else certainty.measured
        for certainty in fitted.certainties
        if set(records.domain.names).issuperset(certainty.attributes)
        and not (len(certainty.attributes) == 1 and set(context).issuperset(certainty.attributes))
    ]
    if not len(records) or not inside:
        return fitted
    limit = min(MOST, max(MOST_LOOKUPS // len(inside), FEW))
    records = _some(records, limit, rng)
    judged = _some(records, FEW, rng)
    share, clearness = _share_of_tables(fitted, inside, judged, zeros, tails, rng)
    if clearness <= CLEAR:
        return fitted
    shown = SHOWN * sum(len(m.attributes) == 2 for m in inside) / max(comb(len(records.domain), 2), 1)
    unmeasured = _share_of_unmeasured(fitted, inside, judged, zeros, tails, rng)
    unmeasured = share if unmeasured is None else unmeasured
    if not unmeasured:
        return fitted
    share = 1 / (shown / share + (1 - shown) / (1 - (1 - share) * (1 - unmeasured)))
    if share < LEAST_SHARE:
        return fitted
    answers = _Answers.of(records, inside)
    weights = answers.weights(inside, fitted.total, answers.ridges(inside, fitted.total), SWEEPS)
    rows = PublicRows(records, weights, share)
    return replace(with_exact_counts(_mixed(fitted, rows), zeros), public_rows=rows)


def _share_of_tables(
    fitted: Fitted,
    inside: list[Measurement],
    records: Records,
    zeros: StructuralZeros,
    tails: Tails,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Return the share of public rows in the best mixture of tables, and the gain in standard deviations."""
    exact = fitted.totals.merge(fitted.merging)  # these counts are met whatever the rows are
    compared = [i for i, m in enumerate(inside) if len(m.attributes) <= 2 and not exact.covers(m.attributes)]
    if not compared:
        return 0.0, 0.0
    names = set(records.domain.names)
    concordances = [c for c in _concordances(fitted) if names.issuperset(c.attributes)]
    answers = _Answers.of(records, inside)
    squares, products = LEAST, 0.0  # of d^2 and of d (t - y'), whose variance by the noise is d^2
    for _ in range(SPLITS):
        noise = [rng.standard_normal(m.variance.shape) * np.sqrt(m.variance) for m in inside]
        fitting = [_moved(m, SPLIT * z, 1 + SPLIT**2) for m, z in zip(inside, noise, strict=True)]
        held_back = [_moved(inside[i], -noise[i] / SPLIT, 1 + SPLIT**-2) for i in compared]
        columns, estimates = _columns_and_pairs(fitted, [fitting[i] for i in compared], zeros, tails)
        pairs = estimate_pairs(columns, estimates, rng, concordances)
        tables = {table.attributes: table for table in (*pairs.one_ways, *pairs.tables)}
        alone = [inside[i].grouping.join(tables[inside[i].attributes].counts) for i in compared]
        ridges = answers.ridges(fitting, fitted.total)
        public = answers.counts(answers.weights(fitting, fitted.total, ridges, TRIAL_SWEEPS))
        d = _cells(alone) - _cells([public[i] for i in compared])
        away = _cells(alone) - _cells([m.marginal.counts for m in held_back])
        variance = np.maximum(_cells([m.variance for m in held_back]), LEAST)
        squares += float(d**2 @ (1 / variance)) / SPLITS
        products += float(d * away @ (1 / variance)) / SPLITS
    return min(max((products + sqrt(squares)) / squares, 0.0), 1.0), products / sqrt(squares)


def _share_of_unmeasured(
    fitted: Fitted,
    inside: list[Measurement],
    records: Records,
    zeros: StructuralZeros,
    tails: Tails,
    rng: np.random.Generator,
) -> float | None:
    """Return the share of public rows in the best mixture of pairs not measured; None if nothing tells."""
    answers = _Answers.of(records, inside)
    ridges = answers.ridges(inside, fitted.total)
    exact = fitted.totals.merge(fitted.merging)
    pairs = np.array([len(m.attributes) == 2 and not exact.covers(m.attributes) for m in inside])
    folds = np.where(pairs, rng.integers(0, FOLDS, len(inside)), -1)
    squares, products = 0.0, 0.0  # as of measured tables, with independence in place of tables
    for fold in np.unique(folds[pairs]).tolist():
        left_out = np.flatnonzero(folds == fold).tolist()
        hidden = [{*inside[i].attributes} for i in left_out]
        fitting = [i for i, m in enumerate(inside) if not any(pair.issubset(m.attributes) for pair in hidden)]
        weights = answers.only(fitting).weights(
            [inside[i] for i in fitting], fitted.total, ridges[fitting], TRIAL_SWEEPS
        )
        public = answers.counts(weights)
        for i in left_out:
            m = inside[i]
            first, second = (fitted.one_way(name).counts for name in m.attributes)
            independent = m.grouping.join(np.outer(first, second) / fitted.total)
            d, variance = independent - public[i], np.maximum(m.variance, LEAST)
            squares += float(np.sum(d**2 / variance))
            products += float(np.sum(d * (independent - m.marginal.counts) / variance))
    names = set(records.domain.names)
    concordances = [c for c in _concordances(fitted) if names.issuperset(c.attributes)]
    if concordances:
        compared = [m for m in inside if len(m.attributes) <= 2 and not exact.covers(m.attributes)]
        short = _gaps(concordances, estimate_pairs(*_columns_and_pairs(fitted, compared, zeros, tails), rng))
        weights = answers.weights(inside, fitted.total, ridges, TRIAL_SWEEPS)
        off = _gaps_of_rows(concordances, records, weights) - short
        squares, products = squares + float(off @ off), products - float(off @ short)
    if not squares:
        return None
    return min(max(products / squares, 0.0), 1.0)


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

    def only(self, tables: list[int]) -> _Answers:
        """Return the cells of some tables."""
        return _Answers(self.cells[tables], [self.shapes[i] for i in tables])

    def ridges(self, measured: Sequence[Measurement], total: float) -> Floats:
        """Return the ridge of each table: 1 over its dispersion about the public rows."""
        one_way = np.array([len(m.attributes) == 1 for m in measured])
        ridges, weights = np.ones(len(measured)), np.full(self.cells.shape[1], total / self.cells.shape[1])
        evidence = np.zeros((len(measured), len(DISPERSIONS)))  # log-likelihoods of dispersions

        def compare(tables: Ints) -> None:
            """Replace the evidence on the dispersion of tables, about the weighted rows."""
            counts = self.only(tables.tolist()).counts(weights)
            likelihoods = deviation_likelihoods([measured[i] for i in tables], counts)
            for table, likelihood in zip(tables, likelihoods, strict=True):
                evidence[table] = likelihood

        columns = np.flatnonzero(one_way)
        for done in range(len(columns)):
            compare(columns[done:])
            clearness = np.max(evidence[columns[done:]], axis=1) - evidence[columns[done:], 0]
            clearest = done + int(np.argmax(clearness))
            columns[[done, clearest]] = columns[[clearest, done]]
            first = columns[: done + 1].tolist()
            ridges[first[-1]] = COLUMNS / pooled_dispersions([*evidence[columns]])[done]
            weights = self.only(first).weights(
                [measured[i] for i in first], total, ridges[first], TRIAL_SWEEPS
            )
        larger = np.flatnonzero(~one_way)
        compare(larger)
        ridges[larger] = 1 / pooled_dispersions([*evidence[larger]])
        return ridges

    def weights(self, measured: Sequence[Measurement], total: float, ridges: Floats, sweeps: int) -> Floats:
        """Return the weights of the rows, which sum to the total."""
        counts = _cells([m.marginal.counts for m in measured])
        noisy = _kernels.CellCounts(self.starts, counts, _cells([m.variance for m in measured]), ridges)
        weights, multipliers = (
            np.full(self.cells.shape[1], total / self.cells.shape[1]),
            np.zeros(len(counts)),
        )
        for _ in range(sweeps):
            moved = _kernels.weigh(self.cells, noisy, weights, multipliers)
            if moved < MOVED * total * np.sqrt(len(measured)):
                break
        return np.asarray(weights * (total / weights.sum()))

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
