"""How far tables of counts lie apart: total variation over margins, and the dependence that pairs show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb, nan, prod

import numpy as np

from privsyn.marginals.domain import Attributes, Domain, Records
from privsyn.marginals.statistics import total_variation
from privsyn.marginals.types import Floats, Ints, keep

SEED = 20240607
"""Of every sample of margins and queries: the same in every run, so that runs can be compared."""

MOST_PAIRS = 1000
"""All pairs of 45 columns; of a wider table a fixed sample."""

TRIPLES = 100

DENSE = 2**22
"""Cells: a bigger table of counts is kept only where some row falls."""

QUERIES = 1000
CONDITIONS = 3


def sample_of_margins(names: Attributes, order: int, most: int) -> list[Attributes]:
    """All sets of `order` names, or a fixed sample of `most` of them.

    >>> sample_of_margins(("a", "b", "c"), 2, 10)
    [('a', 'b'), ('a', 'c'), ('b', 'c')]
    """
    number = comb(len(names), order)
    chosen = np.arange(number)
    if number > most:
        chosen = np.sort(np.random.default_rng(SEED).choice(number, most, replace=False))
    return [tuple(names[place] for place in _combination(len(names), order, int(c))) for c in chosen]


def _combination(n: int, order: int, index: int) -> list[int]:
    """The combination at this place of the lexicographic order, without listing those before it."""
    places, first = [], 0
    for left in range(order, 0, -1):
        while index >= (skipped := comb(n - first - 1, left - 1)):
            index -= skipped
            first += 1
        places.append(first)
        first += 1
    return places


def shares(tables: Sequence[Records], attributes: Attributes) -> list[Floats]:
    """Each table's share of rows in the cells of a margin, flat; the same cells for all tables."""
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
        occupied, places = np.unique(np.concatenate(cells), return_inverse=True)
        ends = np.cumsum([len(table) for table in tables])
        size, cells = len(occupied), np.split(places, ends[:-1])
    return [np.bincount(cell, minlength=size) / len(cell) for cell in cells]


def margin_errors(
    real: Records, others: Mapping[str, Records], margins: Sequence[Attributes]
) -> dict[str, Floats]:
    """Total variation between the real and each other table, in every margin."""
    errors = {name: np.empty(len(margins)) for name in others}
    for place, attributes in enumerate(margins):
        truth, *rest = shares([real, *others.values()], attributes)
        for name, share in zip(others, rest, strict=True):
            errors[name][place] = total_variation(truth, share)
    return errors


@dataclass(frozen=True, eq=False)
class PairErrors:
    """What pairs of columns say of one table against the real.

    All are matrices, symmetric, NaN where not looked at. `real_...` are those of the real table.

    Parameters
    ----------
    error : array of shape (d, d)
        Total variation.
    cramers_v, real_cramers_v : array of shape (d, d)
        0 for independent columns, 1 where one decides the other.
    spearman, real_spearman : array of shape (d, d)
        Rank correlation of columns with an order; between bins, without missing cells.
    """

    error: Floats
    cramers_v: Floats
    real_cramers_v: Floats
    spearman: Floats
    real_spearman: Floats

    @property
    def errors(self) -> Floats:
        """The errors of the pairs that were looked at, each once."""
        return _each_once(self.error)

    @property
    def cramers_v_errors(self) -> Floats:
        """How far Cramer's V is from the real, for each pair."""
        return _each_once(np.abs(self.cramers_v - self.real_cramers_v))

    @property
    def spearman_errors(self) -> Floats:
        """How far the rank correlation is from the real, for each pair that has one."""
        return _each_once(np.abs(self.spearman - self.real_spearman))


def _each_once(matrix: Floats) -> Floats:
    above = matrix[np.triu_indices(len(matrix), 1)]
    return above[~np.isnan(above)]


def compare_pairs(real: Records, others: Mapping[str, Records]) -> dict[str, PairErrors]:
    """`PairErrors` of every other table."""
    domain = real.domain
    shape = (len(domain), len(domain))
    result = {name: PairErrors(*(np.full(shape, nan) for _ in range(5))) for name in others}
    for attributes in sample_of_margins(domain.names, 2, MOST_PAIRS):
        a, b = domain.axes(attributes)
        truth, *rest = (
            share.reshape(domain.sizes[a], domain.sizes[b])
            for share in shares([real, *others.values()], attributes)
        )
        real_v, real_spearman = cramers_v(truth), _spearman(truth, domain, a, b)
        for pairs, share in zip(result.values(), rest, strict=True):
            pairs.error[[a, b], [b, a]] = total_variation(share, truth)
            pairs.cramers_v[[a, b], [b, a]] = cramers_v(share)
            pairs.spearman[[a, b], [b, a]] = _spearman(share, domain, a, b)
            pairs.real_cramers_v[[a, b], [b, a]] = real_v
            pairs.real_spearman[[a, b], [b, a]] = real_spearman
    return result


def _spearman(table: Floats, domain: Domain, a: int, b: int) -> float:
    """Rank correlation between the codes in order; NaN where a column has none."""
    rows, columns = domain.ordered[a], domain.ordered[b]
    return spearman(table[:rows, :columns]) if rows and columns else nan


def cramers_v(table: Floats) -> float:
    """How far two columns depend on each other; 0 where one of them is constant.

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


def spearman(table: Floats) -> float:
    """Rank correlation of the rows' and the columns' order, ties at their middle; 0 if one is constant.

    >>> f"{spearman(np.array([[0.0, 0.5], [0.5, 0.0]])):.3f}"
    '-1.000'
    """
    total = table.sum()
    if total <= 0:
        return 0.0
    rows, columns = table.sum(axis=1) / total, table.sum(axis=0) / total
    x, y = (np.cumsum(side) - side / 2 - 0.5 for side in (rows, columns))  # mean 0
    scale = (rows @ x**2) * (columns @ y**2)
    return float(x @ table @ y / total / np.sqrt(scale)) if scale > 1e-30 else 0.0


@dataclass(frozen=True, eq=False)
class Queries:
    """Queries, a row each: three columns, and the first and last code that each lets pass."""

    axes: Ints
    first: Ints
    last: Ints

    def __post_init__(self) -> None:
        keep(self, "axes", "first", "last")
        if not self.axes.shape == self.first.shape == self.last.shape:
            raise ValueError("columns and their ranges are not one for one")


def make_queries(real: Records) -> Queries:
    """The same queries for the same table: a random range of an ordered column, one value of another.

    The value is that of a random real row, so that answers are not all near zero.
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
    """The share of rows that each query picks out."""
    shares = np.empty(len(queries.axes))
    for place, (axes, first, last) in enumerate(zip(queries.axes, queries.first, queries.last, strict=True)):
        picked = np.ones(len(records), dtype=bool)
        for axis, low, high in zip(axes, first, last, strict=True):
            codes = records.codes[:, axis]
            picked &= codes == low if low == high else (codes >= low) & (codes <= high)
        shares[place] = picked.mean()
    return shares


def query_errors(real: Records, others: Mapping[str, Records]) -> dict[str, Floats]:
    """How far each table's answers are from those of the real one."""
    queries = make_queries(real)
    truth = answer(queries, real)
    return {name: np.abs(answer(queries, other) - truth) for name, other in others.items()}
