"""Metrics of marginals: total variation, range queries, association of pairs; and metrics of whole rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import comb, nan, prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import wasserstein_distance

from privsyn.evaluation.comparison import SEED, Comparison
from privsyn.evaluation.encoding import Coded
from privsyn.evaluation.metric import Score
from privsyn.marginals.domain import Attributes, Floats, Ints, Records
from privsyn.marginals.statistics import total_variation

MOST_PAIRS = 1000
"""All pairs of 45 columns; a fixed sample for wider tables."""

TRIPLES = 100

DENSE = 2**22
"""Number of cells; larger marginals are stored sparsely."""

QUERIES = 1000
CONDITIONS = 3


def sample_of_margins(names: Attributes, order: int, limit: int) -> list[Attributes]:
    """Return all sets of `order` names, or a fixed sample of `limit` of them.

    >>> sample_of_margins(("a", "b", "c"), 2, 10)
    [('a', 'b'), ('a', 'c'), ('b', 'c')]
    """
    number = comb(len(names), order)
    chosen = np.arange(number)
    if number > limit:
        chosen = np.sort(np.random.default_rng(SEED).choice(number, limit, replace=False))
    return [tuple(names[axis] for axis in _combination(len(names), order, int(c))) for c in chosen]


def _combination(n: int, order: int, index: int) -> list[int]:
    """Return the combination at this index in lexicographic order, without enumeration."""
    axes, first = [], 0
    for remaining in range(order, 0, -1):
        while index >= (skipped := comb(n - first - 1, remaining - 1)):
            index -= skipped
            first += 1
        axes.append(first)
        first += 1
    return axes


def shares(
    tables: Sequence[Records], attributes: Attributes, weights: Sequence[Floats] | None = None
) -> list[Floats]:
    """Return the share of rows in the cells of a marginal for each table, flat, with the same cells.

    With the weights of the rows of each table, it is their share of all weights.
    """
    domain = tables[0].domain.project(attributes)
    axes = tables[0].domain.axes(attributes)
    cells = []
    for table in tables:
        cell = np.zeros(len(table), np.int64)
        for axis, stride in zip(axes, domain.strides, strict=True):
            cell += table.codes[:, axis] * np.int64(stride)
        cells.append(cell)
    size = prod(domain.sizes)
    if size > DENSE:
        occupied, cell_codes = np.unique(np.concatenate(cells), return_inverse=True)
        ends = np.cumsum([len(table) for table in tables])
        size, cells = len(occupied), np.split(cell_codes, ends[:-1])
    if weights is None:
        return [np.bincount(cell, minlength=size) / len(cell) for cell in cells]
    return [
        np.bincount(cell, weight, size) / weight.sum() for cell, weight in zip(cells, weights, strict=True)
    ]


def margin_errors(
    real: Records, references: Mapping[str, Records], margins: Sequence[Attributes]
) -> dict[str, Floats]:
    """Return the total variation between the real and each other table, for every marginal."""
    errors = {name: np.empty(len(margins)) for name in references}
    for index, attributes in enumerate(margins):
        truth, *rest = shares([real, *references.values()], attributes)
        for name, share in zip(references, rest, strict=True):
            errors[name][index] = total_variation(truth, share)
    return errors


@dataclass(frozen=True, eq=False)
class PairErrors:
    """Errors and associations of all pairs of columns.

    All are symmetric matrices, NaN for pairs that are not sampled.

    Parameters
    ----------
    error : array of shape (d, d)
        Total variation.
    cramers_v, real_cramers_v : array of shape (d, d)
        0 for independent columns, 1 if one determines the other.
    """

    error: Floats
    cramers_v: Floats
    real_cramers_v: Floats

    @property
    def errors(self) -> Floats:
        """Return the errors of the sampled pairs, each once."""
        return each_once(self.error)

    @property
    def cramers_v_errors(self) -> Floats:
        """Return the absolute differences of Cramér's V."""
        return each_once(np.abs(self.cramers_v - self.real_cramers_v))


def each_once(matrix: Floats) -> Floats:
    """Return the numbers of all pairs of columns that have one, from a symmetric matrix."""
    above = matrix[np.triu_indices(len(matrix), 1)]
    return above[~np.isnan(above)]


def compare_pairs(real: Records, references: Mapping[str, Records]) -> dict[str, PairErrors]:
    """Return the `PairErrors` of every other table."""
    domain = real.domain
    shape = (len(domain), len(domain))
    result = {name: PairErrors(*(np.full(shape, nan) for _ in range(3))) for name in references}
    for attributes in sample_of_margins(domain.names, 2, MOST_PAIRS):
        a, b = domain.axes(attributes)
        truth, *rest = (
            share.reshape(domain.sizes[a], domain.sizes[b])
            for share in shares([real, *references.values()], attributes)
        )
        real_v = cramers_v(truth)
        for pairs, share in zip(result.values(), rest, strict=True):
            pairs.error[[a, b], [b, a]] = total_variation(share, truth)
            pairs.cramers_v[[a, b], [b, a]] = cramers_v(share)
            pairs.real_cramers_v[[a, b], [b, a]] = real_v
    return result


def cramers_v(table: Floats) -> float:
    """Return Cramér's V of a table of shares; 0 if a column is constant.

    >>> cramers_v(np.array([[0.5, 0.0], [0.0, 0.5]])), cramers_v(np.array([[0.25, 0.25], [0.25, 0.25]]))
    (1.0, 0.0)
    """
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    seen = table[np.ix_(rows > 0, columns > 0)]
    if min(seen.shape) < 2:
        return 0.0
    expected = np.outer(rows[rows > 0], columns[columns > 0])
    chi2 = ((seen - expected) ** 2 / expected).sum()
    return float(np.sqrt(chi2 / (min(seen.shape) - 1)))


class Queries(NamedTuple):
    """Range queries, one in each row: three columns, and the first and last code of each range."""

    axes: Ints
    first: Ints
    last: Ints


def make_queries(real: Records) -> Queries:
    """Return random queries with a fixed seed: a range of an ordered column, one value of another.

    The value is taken from a random real row, so that answers are not all near zero.
    """
    rng = np.random.default_rng(SEED + 1)
    sizes = np.array(real.domain.sizes)
    ordered = np.array(real.domain.ordered) > 0
    conditions = min(CONDITIONS, len(sizes))
    axes = np.array([rng.choice(len(sizes), conditions, replace=False) for _ in range(QUERIES)])
    rows = rng.integers(0, len(real), size=QUERIES)
    ends = np.sort(rng.random((QUERIES, conditions, 2)), axis=2)
    codes = np.floor(ends * sizes[axes][:, :, None]).astype(np.int64)
    point = real.codes[rows[:, None], axes]
    in_order = ordered[axes]
    return Queries(axes, np.where(in_order, codes[:, :, 0], point), np.where(in_order, codes[:, :, 1], point))


def answer(queries: Queries, records: Records) -> Floats:
    """Return the share of rows that each query selects."""
    shares = np.empty(len(queries.axes))
    for index, (axes, first, last) in enumerate(zip(queries.axes, queries.first, queries.last, strict=True)):
        selected = np.ones(len(records), dtype=bool)
        for axis, low, high in zip(axes, first, last, strict=True):
            codes = records.codes[:, axis]
            selected &= codes == low if low == high else (codes >= low) & (codes <= high)
        shares[index] = selected.mean()
    return shares


def query_errors(real: Records, references: Mapping[str, Records]) -> dict[str, Floats]:
    """Return the absolute error of each answer, for each other table."""
    queries = make_queries(real)
    truth = answer(queries, real)
    return {name: np.abs(answer(queries, table) - truth) for name, table in references.items()}


def marginals_of(names: Attributes, order: int) -> list[Attributes]:
    """Return the sample of marginals of 1, 2 or 3 columns that is compared."""
    return sample_of_margins(names, order, {1: len(names), 2: MOST_PAIRS, 3: TRIPLES}[order])


def one_way_errors(comparison: Comparison) -> dict[str, Floats]:
    """Return the errors of all one-way marginals."""
    margins = marginals_of(comparison.view.domain.names, 1)
    return comparison.compare_records(partial(margin_errors, margins=margins))


def weighted_errors(comparison: Comparison, order: int) -> dict[str, Floats]:
    """Return the errors of one-way or two-way marginals of the other columns, of weighted rows.

    A row without a weight has the least one. There is no error if rows have no weights.
    """
    weight = comparison.weight
    names = tuple(name for name in comparison.view.domain.names if name != weight)
    margins = [] if weight is None else marginals_of(names, order)

    def errors(real: Coded, references: Mapping[str, Coded]) -> dict[str, Floats]:
        tables = {"": real, **references}
        weights = [_weights(table, str(weight)) for table in tables.values()] if margins else []
        results: dict[str, list[float]] = {name: [] for name in references}
        for attributes in margins:
            truth, *rest = shares([table.records for table in tables.values()], attributes, weights)
            for name, share in zip(references, rest, strict=True):
                results[name].append(total_variation(truth, share))
        return {name: np.array(listed) for name, listed in results.items()}

    return comparison.compare(errors)


def _weights(table: Coded, name: str) -> Floats:
    """Return the weight of each row, the least one where it is missing; 1 if all are."""
    weights = table.numbers[name]
    present = weights[~np.isnan(weights)]
    return np.where(np.isnan(weights), present.min() if len(present) else 1.0, weights)


def triple_errors(comparison: Comparison) -> dict[str, Floats]:
    """Return the errors of the sampled marginals of three columns."""
    margins = marginals_of(comparison.view.domain.names, 3)
    return comparison.compare_records(partial(margin_errors, margins=margins))


def pairs_of(comparison: Comparison) -> dict[str, PairErrors]:
    """Return the errors and associations of pairs."""
    return comparison.compare_records(compare_pairs)


RARE = 0.01
"""A value is rare below this share of the real rows."""

NEAREST_ROWS = 200
"""Number of rows whose nearest real row is searched, among at most `NEAREST_AMONG`."""

NEAREST_AMONG = 50_000


def wasserstein(real: Floats, compared: Floats) -> float:
    """Return the Wasserstein distance, in standard deviations of the real numbers.

    Missing cells are ignored. The distance is 0 if both tables have no number, and 1 if one has none. If all
    real numbers are the same, it is the share of the others that differ: there is no unit.

    >>> wasserstein(np.array([0.0, 2.0, 2.0, 0.0]), np.array([1.0, 3.0]))
    1.0
    >>> wasserstein(np.array([8.0, 8.0]), np.array([8.0, 900.0]))
    0.5
    """
    real, compared = real[~np.isnan(real)], compared[~np.isnan(compared)]
    if not len(real) or not len(compared):
        return float(len(real) != len(compared))
    if not (deviation := float(real.std())) > 0:
        return float((compared != real[0]).mean())
    return float(wasserstein_distance(real, compared)) / deviation


def missing_patterns(comparison: Comparison) -> Score:
    """Return the total variation between the distributions of the set of missing columns of a row."""
    missing = np.array(comparison.view.missing)

    def distance(real: Coded, compared: Coded) -> float:
        ours, theirs = (
            _rows(np.packbits(table.records.codes == missing, axis=1)) for table in (real, compared)
        )
        _, patterns = np.unique(np.concatenate([ours, theirs]), return_inverse=True)
        counts = [np.bincount(part, minlength=patterns.max() + 1) for part in np.split(patterns, [len(ours)])]
        return total_variation(counts[0] / len(ours), counts[1] / len(theirs))

    return Score(**comparison.compare_each(distance))


def rare_covered(real: Records, compared: Records) -> float:
    """Return the share of rare values that occur in the other table; NaN if none is rare."""
    ours, theirs = np.concatenate(_one_ways(real, compared), axis=1)
    rare = (ours > 0) & (ours < RARE * len(real))
    return float((theirs[rare] > 0).mean()) if rare.any() else np.nan


def unseen(real: Records, compared: Records) -> float:
    """Return the share of cells with a value that no real row has in that column."""
    return float(
        np.mean([theirs[ours == 0].sum() / len(compared) for ours, theirs in _one_ways(real, compared)])
    )


def distinct_rows(comparison: Comparison) -> Score:
    """Return the share of rows that remain without duplicates."""
    tables = comparison.synthetic, comparison.real, comparison.independent
    synthetic, real, independent = (len(np.unique(_rows(t.records.codes))) / len(t) for t in tables)
    return Score(synthetic, real=real, independent=independent)


def identical_rows(real: Records, compared: Records) -> float:
    """Return the share of rows that equal a real row, in codes. A diagnostic: it does not measure privacy."""
    return float(np.isin(_rows(compared.codes), _rows(real.codes)).mean())


def nearest_row(real: Records, compared: Records) -> float:
    """Return the mean number of columns in which a row differs from the nearest real row, over a sample.

    A diagnostic: it does not measure privacy.
    """
    rng = np.random.default_rng(SEED)
    candidates = real.codes[rng.permutation(len(real))[:NEAREST_AMONG]]
    differences = []
    for row in compared.codes[rng.permutation(len(compared))[:NEAREST_ROWS]]:
        equal = np.zeros(len(candidates), np.int16)
        for axis, code in enumerate(row):
            equal += candidates[:, axis] == code
        differences.append(len(row) - int(equal.max()))
    return float(np.mean(differences))


def wasserstein_of_columns(comparison: Comparison) -> dict[str, Floats]:
    """Return the distances of the columns with numbers, in the order of the real table's `numbers`."""

    def distances(real: Coded, compared: Coded) -> Floats:
        return np.array([wasserstein(cells, compared.numbers[name]) for name, cells in real.numbers.items()])

    return comparison.compare_each(distances)


def likeness(comparison: Comparison, measure: Callable[[Records, Records], float]) -> Score:
    """Compare without resampled rows: they are real rows, so the result would be trivial."""
    real = comparison.real.records
    return Score(
        measure(real, comparison.synthetic.records),
        held_out=measure(comparison.train.records, comparison.test.records),
        independent=measure(real, comparison.independent.records),
    )


def _one_ways(real: Records, compared: Records) -> list[tuple[Ints, Ints]]:
    return [
        (
            np.bincount(real.codes[:, axis], minlength=size),
            np.bincount(compared.codes[:, axis], minlength=size),
        )
        for axis, size in enumerate(real.domain.sizes)
    ]


def pooled_cells(comparison: Comparison) -> Score:
    """Return the mean share of pooled cells over the columns; NaN if no value is pooled."""
    shares = [float(pooled.sum()) for pooled in comparison.pooled.values()]
    return Score(sum(shares) / len(comparison.view.domain.names) if shares else np.nan)


def _rows(cells: npt.NDArray) -> npt.NDArray:
    """Return each row as one item that can be compared."""
    items = np.ascontiguousarray(cells)
    return items.view(np.dtype((np.void, items.dtype.itemsize * items.shape[1]))).ravel()
