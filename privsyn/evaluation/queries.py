"""Range queries: the share of rows that three conditions pick out, as an analyst would ask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from privsyn.answers.arrays import Floats, Ints, keep
from privsyn.answers.domain import Records
from privsyn.evaluation.margins import SEED

QUERIES = 1000
CONDITIONS = 3


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
