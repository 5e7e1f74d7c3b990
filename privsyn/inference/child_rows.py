"""The number of child rows of each row of a table, from two measurements of it.

The number is a column of the table. Where the rows of the table are persons, the released numbers of rows per
person measure it too. Both are noisy counts of the same rows, so one estimate is made from both.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil, log, log1p, sqrt

import numpy as np

from privsyn.inference.fitted import ONE_SIDED, Fitted, one_way_certainty
from privsyn.inference.rows_per_person import CLEAR, RowsPerPerson
from privsyn.marginals.domain import Codes, Floats, Ints, Mask
from privsyn.marginals.ipf import fit_all
from privsyn.marginals.marginal import Marginal, Measurement
from privsyn.marginals.tolerances import TINY_COUNT


def agreed(
    fitted: Fitted, column: str, numbers: Floats, rows: RowsPerPerson, *, limited: bool = False
) -> tuple[Fitted, RowsPerPerson]:
    """Return the model and the rows per person, changed to agree: the least-squares estimate from both.

    The number of rows of the table stays, if it has other columns. Tables with the column are fitted to it.

    Parameters
    ----------
    fitted : Fitted
        Of the rows of the table, each of which is a person.
    column : str
        The column with the number of child rows.
    numbers : array of shape (codes,)
        The number of child rows that each original code of the column stands for.
    rows : RowsPerPerson
        Only persons with rows; how many persons have none, only the column counts.
    limited : bool
        Whether public rules say that nobody has more rows than the largest of `numbers`.
    """
    rows = rows.at_most(int(numbers[-1])) if limited else rows
    axis = fitted.merging.original.names.index(column)
    group, share = fitted.merging.groups[axis], fitted.merging.shares[axis]
    table, certainty = fitted.one_way(column), fitted.one_way_certainty(column)
    classes = np.where(numbers < 1, 0, np.searchsorted(rows.begins, numbers, side="right"))  # 0: no rows
    size, merged = len(rows.begins) + 1, len(table.counts)
    parts = np.bincount(classes * merged + group, share, size * merged).reshape(size, merged)
    before, noise = parts @ table.counts, certainty.measured.variance
    # Class c has N_c persons, of whom an unknown share s_cm is in merged code m. Its mean h_cm is taken in
    # proportion to 1 / n^2, because few persons have many rows n. Its standard deviation is taken as
    # h_cm (1 - h_cm): where h is 1/2, about that of a share which may be anything from 0 to 1. So the count
    # of code m is sum_c N_c h_cm, and besides its noise it has the variance sum_c (N_c h_cm (1 - h_cm))^2.
    shares = np.zeros((size, merged))
    np.add.at(shares, (classes, group), np.maximum(numbers, 1.0) ** -2)
    counted = shares.any(axis=1)
    shares[counted] /= shares[counted].sum(axis=1, keepdims=True)
    deviation = (shares * (1 - shares))[1:] * rows.persons[:, np.newaxis]
    alone = _noise_alone(certainty.measured, group, numbers, rows)
    counts = np.where(alone, 0.0, table.counts)
    # In a merged code that also holds persons without rows any part of the persons may have some.
    without = np.where(shares[0] > 0, counts / 2, 0.0)
    variance = noise + (deviation**2).sum(axis=0) + without**2
    noisy = rows.with_persons(shares[1:].T, certainty.measured.marginal.counts - without, variance)
    rows = rows.with_persons(shares[1:].T, counts - without, variance)
    if alone.any():  # they are taken to be 0, which is off by what the noisy counts say
        rows = rows.with_error(noisy.total - rows.total)
    # A merged code may also hold persons with rows. The share p of those without errs by p (1 - p), too.
    variance_without_rows = float(parts[0] ** 2 @ noise + (parts[0] * (1 - parts[0]) @ table.counts) ** 2)
    if len(fitted.one_ways) == 1:  # only the column has counted the rows of the table
        total = max(float(before[0] + rows.persons.sum()), 1.0)
        fitted = replace(fitted, total_variance=variance_without_rows + rows.variance_of_persons)
    else:
        total, variance_of_total = table.total, float(noise.sum()) / len(fitted.one_ways)
        summed = rows.with_sum_of_persons(total - float(before[0]), variance_of_total + variance_without_rows)
        # The counts of the column have this sum already: it moves the estimate, and makes nothing surer.
        rows = replace(summed, covariance=rows.covariance)
    if not limited:
        # What the model takes for noise in the last code may be persons with many rows.
        merged_code = group[-1]
        last = share[-1] * max(table.counts[merged_code], certainty.measured.marginal.counts[merged_code])
        rows = rows.with_rows_beyond(int(numbers[-1]), float(last) + sqrt(noise[merged_code]))
    after = np.where(counted, np.append(total - rows.persons.sum(), rows.persons), 0.0)
    after = np.maximum(after, 0.0)
    if not after.any():  # a rule excludes all classes in which there were persons
        after[counted] = 1.0
    after *= total / max(float(after.sum()), TINY_COUNT)
    return _refitted(fitted, axis, _spread(fitted.counts_of(column), classes, before, after)), rows


def _noise_alone(measured: Measurement, group: Codes, numbers: Floats, rows: RowsPerPerson) -> Mask:
    """Return which merged codes of a column reach further than the rows per person, and may be noise alone.

    Where noise hides the rows per person the column has many codes, and counts that are not negative add up
    noise: of 100 persons with 3 rows up to five times as many were made. So one of the codes beyond what the
    rows per person show, or the sum of all, has to stand out of its noise.
    """
    counts = measured.marginal.counts
    starts = np.full(len(counts), np.inf)
    np.minimum.at(starts, group, numbers)
    far = starts > max(rows.largest, _largest_if_geometric(rows))
    variance = np.broadcast_to(measured.variance, far.shape)
    clear = (counts > CLEAR * np.sqrt(variance))[far].any()
    clear |= counts[far].sum() > CLEAR * sqrt(float(variance[far].sum()))
    return far & (rows.hidden and not clear)


def _spread(cells: Floats, classes: Ints, before: Floats, after: Floats) -> Floats:
    """Return the cells scaled to new sums of their classes; where there was nothing, evenly spread."""
    cells_in_class = np.bincount(classes, minlength=len(before))
    even = after[classes] / cells_in_class[classes]
    ratio = after / np.maximum(before, TINY_COUNT)
    return np.asarray(np.where(before[classes] > TINY_COUNT, cells * ratio[classes], even), np.float64)


def _refitted(fitted: Fitted, axis: int, cells: Floats) -> Fitted:
    """Return the model in which the column on an axis has the given count of each original code.

    An interval for a count stays that of the column's own answer, whose noise is known. It grows until it
    reaches the estimate.
    """
    merging, column = fitted.merging, fitted.merging.original.names[axis]
    certainty = fitted.one_way_certainty(column)
    group, shares = merging.groups[axis], list(merging.shares)
    table = fitted.one_way(column)
    counts = np.bincount(group, cells, len(table.counts)).astype(np.float64)
    shares[axis] = np.where(
        counts[group] > TINY_COUNT, cells / np.maximum(counts[group], TINY_COUNT), shares[axis]
    )
    columns = {one_way.attributes[0]: one_way for one_way in fitted.one_ways}
    numbers = columns[column] = Marginal(table.domain, counts)
    changed = [_with_rows(pair, numbers) for pair in fitted.marginals if column in pair.attributes]
    margins = [tuple(columns[name] for name in marginal.attributes) for marginal in changed]
    refitted = dict(zip([m.attributes for m in changed], fit_all(changed, margins), strict=True))
    answer = certainty.measured
    apart = (counts - answer.marginal.counts) / ONE_SIDED  # of `count_intervals`, no end is nearer than this
    measured = replace(answer, variance=np.maximum(answer.variance, apart**2))
    new_certainty = one_way_certainty(measured, columns[column])
    return replace(
        fitted,
        merging=replace(merging, shares=tuple(shares)),
        one_ways=tuple(columns.values()),
        total=max(float(counts.sum()), 1.0),  # of one row, rounding may leave a little less
        marginals=tuple(refitted.get(marginal.attributes, marginal) for marginal in fitted.marginals),
        certainties=tuple(new_certainty if c is certainty else c for c in fitted.certainties),
    )


def _with_rows(table: Marginal, one_way: Marginal) -> Marginal:
    """Return a table in which no code of a column is without rows that has some in the one-way table.

    Noise may leave none in the table; no fit to margins gives rows to an empty slice. They are taken to be
    like all others.

    >>> from privsyn.marginals.domain import Domain
    >>> pair = Marginal(Domain(("a", "b"), (2, 2)), np.array([[30.0, 10.0], [0.0, 0.0]]))
    >>> _with_rows(pair, Marginal(Domain(("a",), (2,)), np.array([20.0, 20.0]))).counts.tolist()
    [[30.0, 10.0], [15.0, 5.0]]
    """
    (axis,) = table.domain.axes(one_way.attributes)
    slices = np.moveaxis(table.counts, axis, -1)
    sums = slices.sum(axis=tuple(range(slices.ndim - 1)))
    like_others = slices.sum(axis=-1, keepdims=True) / max(float(sums.sum()), TINY_COUNT)
    slices = np.where(sums <= TINY_COUNT, like_others * one_way.counts, slices)
    return Marginal(table.domain, np.moveaxis(slices, -1, axis))


FAR = 50  # rows of a person that a column counts at least, where noise hides how many persons have


def largest_in_column(rows: RowsPerPerson) -> int:
    """Return the largest number of rows that a column with the number of rows of each person tells apart.

    A person is in one cell of the column, so a larger number adds no noise, and it is never below `largest`.
    It is also at least the n, from 1, such that sigma persons or more would have over n rows if the numbers
    were geometric. Sigma is the standard deviation of the noise in the number of persons of a class. If noise
    hides how many persons have few rows and how many have many, it is at least `FAR`: the column gets far
    more of the budget than the numbers of rows per person, and shows what they cannot.

    >>> rows = RowsPerPerson(np.array([1, 2, 3]), np.array([600.0, 300.0, 100.0]), sigma=10.0)
    >>> rows.largest, largest_in_column(rows)
    (3, 10)
    """
    return max(rows.largest, _largest_if_geometric(rows), FAR if rows.hidden else 1)


def _largest_if_geometric(rows: RowsPerPerson) -> int:
    persons = float(rows.persons.sum())
    if not (persons > 0 and rows.sigma > 0):
        return 1
    return max(ceil(log(max(persons / rows.sigma, 1.0)) / log1p(persons / rows.total)), 1)
