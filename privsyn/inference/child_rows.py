"""The number of child rows of each row of a table, from its two measurements: one truth.

It is a column of the table. It is also measured by the numbers of rows per person, where the rows of the
table are persons. Both are noisy counts of the same rows.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil, log, log1p

import numpy as np

from privsyn.inference.fitted import ONE_SIDED, Fitted, one_way_certainty
from privsyn.inference.rows_per_person import RowsPerPerson
from privsyn.marginals.domain import Floats, Ints
from privsyn.marginals.ipf import fit_all
from privsyn.marginals.marginal import Marginal

TINY = 1e-9  # records


def agreed(fitted: Fitted, column: str, numbers: Floats, rows: RowsPerPerson) -> tuple[Fitted, RowsPerPerson]:
    """Return both, changed to agree: the least-squares estimate from both.

    The number of rows of the table stays, if it has other columns. Tables with the column are fitted to it.

    Parameters
    ----------
    fitted : Fitted
        Of the rows of the table, each of which is a person.
    column : str
        The one with the number of child rows.
    numbers : array of shape (codes,)
        The number of child rows that each original code of the column stands for.
    rows : RowsPerPerson
        Persons without rows are not in it: the column alone counts them.
    """
    place = fitted.merging.original.names.index(column)
    group, share = fitted.merging.groups[place], fitted.merging.shares[place]
    table, certainty = fitted.one_way(column), fitted.one_way_certainty(column)
    classes = np.where(numbers < 1, 0, np.searchsorted(rows.begins, numbers, side="right"))  # 0: no rows
    size, merged = len(rows.begins) + 1, len(table.counts)
    parts = np.bincount(classes * merged + group, share, size * merged).reshape(size, merged)
    before, noise = parts @ table.counts, certainty.measured.variance
    # How a class is divided among merged codes, and how a merged code with parents without rows is divided
    # between them and others, is not known: fewer parents have many rows, and each share may be wrong.
    held = np.zeros((size, merged))
    np.add.at(held, (classes, group), np.maximum(numbers, 1.0) ** -2)
    counted = held.any(axis=1)
    held[counted] /= held[counted].sum(axis=1, keepdims=True)
    of_rows = held[0] == 0
    unsure = ((held * (1 - held))[1:] * rows.persons[:, np.newaxis]) ** 2
    given = noise + unsure.sum(axis=0)
    rows = rows.with_persons(held[1:, of_rows].T, table.counts[of_rows], given[of_rows])
    if len(fitted.one_ways) == 1:  # nothing else has counted the rows of the table
        total = max(float(before[0] + rows.persons.sum()), 1.0)
    else:
        total, of_total = table.total, float(noise.sum()) / len(fitted.one_ways)
        of_none = float(parts[0] ** 2 @ noise + (parts[0] * (1 - parts[0]) @ table.counts) ** 2)
        rows = rows.with_sum_of_persons(total - float(before[0]), of_total + of_none)
    after = np.where(counted, np.append(total - rows.persons.sum(), rows.persons), 0.0)
    after = np.maximum(after, 0.0)
    if not after.any():  # a rule leaves none of the classes in which persons were found
        after[counted] = 1.0
    after *= total / max(float(after.sum()), TINY)
    return _refitted(fitted, place, _spread(fitted.counts_of(column), classes, before, after)), rows


def _spread(cells: Floats, classes: Ints, before: Floats, after: Floats) -> Floats:
    """Return the cells scaled to new sums of their classes; where there was nothing, evenly spread."""
    in_class = np.bincount(classes, minlength=len(before))
    even = after[classes] / in_class[classes]
    ratio = after / np.maximum(before, TINY)
    return np.asarray(np.where(before[classes] > TINY, cells * ratio[classes], even), np.float64)


def _refitted(fitted: Fitted, place: int, cells: Floats) -> Fitted:
    """Return the model in which the column at a place has these cells.

    An interval for a count stays that of the column's own answer, whose noise is known. It grows until it
    reaches the estimate.
    """
    merging, column = fitted.merging, fitted.merging.original.names[place]
    certainty = fitted.one_way_certainty(column)
    group, shares = merging.groups[place], list(merging.shares)
    table = fitted.one_way(column)
    counts = np.bincount(group, cells, len(table.counts)).astype(np.float64)
    shares[place] = np.where(counts[group] > TINY, cells / np.maximum(counts[group], TINY), shares[place])
    columns = {each.attributes[0]: each for each in fitted.one_ways}
    columns[column] = Marginal(table.domain, counts)
    changed = [each for each in fitted.marginals if column in each.attributes]
    margins = [tuple(columns[name] for name in each.attributes) for each in changed]
    now = dict(zip([each.attributes for each in changed], fit_all(changed, margins), strict=True))
    answer = certainty.measured
    apart = (counts - answer.marginal.counts) / ONE_SIDED  # of `count_intervals`, no end is nearer than this
    measured = replace(answer, variance=np.maximum(answer.variance, apart**2))
    certainty_now = one_way_certainty(measured, columns[column])
    return replace(
        fitted,
        merging=replace(merging, shares=tuple(shares)),
        one_ways=tuple(columns.values()),
        total=max(float(counts.sum()), 1.0),  # of one row, rounding may leave a little less
        marginals=tuple(now.get(each.attributes, each) for each in fitted.marginals),
        certainties=tuple(certainty_now if each is certainty else each for each in fitted.certainties),
    )


def largest_if_geometric(rows: RowsPerPerson) -> int:
    """Return the number of rows beyond which fewer persons are than the standard deviation of the noise.

    The numbers of rows of the persons are taken to be geometric. At least 1.

    >>> rows = RowsPerPerson(np.array([1, 2, 3]), np.array([600.0, 300.0, 100.0]), sigma=10.0)
    >>> rows.largest, largest_if_geometric(rows)
    (3, 10)
    """
    persons = float(rows.persons.sum())
    if not (persons > 0 and rows.sigma > 0):
        return 1
    return max(ceil(log(max(persons / rows.sigma, 1.0)) / log1p(persons / rows.total)), 1)
