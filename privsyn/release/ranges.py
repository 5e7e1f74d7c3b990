"""Draw numbers within given ranges, from the released distribution given all other given values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from privsyn.inference.fitted import Fitted
from privsyn.marginals.domain import Array, Floats, Integers, Mask, Records
from privsyn.marginals.nearest_rows import nearest_rows
from privsyn.release.pool import Pool
from privsyn.synthesis.synthesise import ENOUGH
from privsyn.table.codec.codec import Codec
from privsyn.table.enforcement.draws import Cells
from privsyn.table.enforcement.rules import Numbers, Span

EACH = 1000
"""Records made for each combination of given values, to estimate the numbers that occur with it."""

TRIES = 50
"""Most times that a row is drawn again because its numbers break a constraint on these columns alone."""


def part_inside(cells: Cells, span: Span) -> Floats:
    """Return the share of each code's points that lie in a span; 0 for missing.

    Examples
    --------
    >>> from privsyn.table.encoding.grid import Grid
    >>> grid = Grid.exact(0, 9, decimals=0, bins=2)
    >>> ages = Cells.unmerged(*grid.extents, grid)
    >>> part_inside(ages, Span(np.array([4.0]), np.array([8.5]), missing=False)).tolist()
    [0.2, 0.8]
    """
    if cells.grid is None:
        return span.covers(cells.lows, cells.highs).astype(np.float64)
    (low,), (high,) = span.lows, span.highs
    inside = cells.grid.count(np.maximum(cells.lows, low), np.minimum(cells.highs, high))
    whole = cells.grid.count(cells.lows, cells.highs)  # NaN for missing
    return np.divide(inside, whole, out=np.zeros(len(whole)), where=whole > 0)


def within(pool: Pool, held: Numbers, spans: Mapping[str, Span], n: int) -> dict[str, Floats]:
    """Draw numbers that lie in spans, for rows in which other columns are given.

    For each row, draw a record among those with the given values. Its weight is the part of it that lies in
    all spans, so the dependence between columns is kept. Within its groups of codes, numbers are drawn as in
    any sample. If no record lies in the spans, each column is drawn alone.

    Parameters
    ----------
    pool : Pool
    held : mapping of each given column to a number for each of the `n` rows
    spans : mapping of each other column to the span of its numbers
    """
    codec, rng = pool.codec, pool.rng
    records, kinds, kind = records_with(pool, held, n)
    if not set(spans) <= set(codec.domain):
        return _within_computed(pool, records, spans, kinds, kind)
    columns = {name: _Column.of(codec, pool.fitted, name, span) for name, span in spans.items()}
    weights = np.ones(len(records))
    for column in columns.values():
        weights *= column.chances[records.codes[:, column.place]]

    def draw(rows: Integers) -> dict[str, Floats]:
        picked = nearest_rows([kinds], weights, [kind[rows]], rng)
        alone = weights[picked] == 0
        found = {}
        for name, column in columns.items():
            groups = records.codes[picked, column.place]
            drawn = rng.choice(len(column.alone), len(rows), p=column.alone)  # for rows that no record fits
            found[name] = column.draw(np.where(alone, drawn, groups), rng)
        return found

    found = draw(np.arange(n))
    for _ in range(TRIES if codec.schema.constraints else 0):
        broken = np.flatnonzero(~_keeps(codec, {**held, **found}))
        if not len(broken):
            break
        for name, numbers in draw(broken).items():
            found[name][broken] = numbers
    return found


def records_with(pool: Pool, held: Numbers, n: int) -> tuple[Records, Array, Array]:
    """Return records with the given values, the combination of each record, and that of each row."""
    merging = pool.fitted.merging
    if not held:
        return pool.records, np.zeros(len(pool.records), np.int64), np.zeros(n, np.int64)
    cells, axes = pool.codec.cells(), merging.original.axes(tuple(held))
    merged = [
        merging.groups[axis][cells[name].find(numbers)]
        for axis, (name, numbers) in zip(axes, held.items(), strict=True)
    ]
    distinct, kind = np.unique(np.stack(merged, axis=1), axis=0, return_inverse=True)
    kinds = np.repeat(np.arange(len(distinct)), max(EACH, -(-ENOUGH // len(distinct))))
    wanted = Records(merging.merged.project(tuple(held)), distinct[kinds])
    return pool.complete(wanted), kinds, kind.ravel()


def _within_computed(
    pool: Pool, records: Records, spans: Mapping[str, Span], kinds: Array, kind: Array
) -> dict[str, Floats]:
    """Draw numbers that lie in spans, some of which are about computed columns.

    They are those of a record that lies in all spans. If there is none, each column is drawn uniformly.
    """
    numbers, rng = pool.numbers(records), pool.rng
    inside = np.ones(len(records))
    for name, span in spans.items():
        inside *= span.holds(numbers[name])
    at = nearest_rows([kinds], inside, [kind], rng)
    outside = np.flatnonzero(inside[at] == 0)
    found = {name: numbers[name][at] for name in spans}
    for name, span in spans.items():
        cells = pool.codec.own_cells(name)
        low, high = max(span.lows.min(), cells.lows[0]), min(span.highs.max(), cells.highs[-1])
        found[name][outside] = cells.draw(np.full(len(outside), low), np.full(len(outside), high), rng)
    return found


@dataclass(frozen=True, eq=False)
class _Column:
    """A column whose numbers must lie in a span.

    Parameters
    ----------
    place : int
        Place in the domain.
    cells : Cells
        The codes, with their groups in the release.
    span : Span
    inside : array of shape (codes,)
        Weight of each code within its group, times the share of it that lies in the span.
    alone : array of shape (groups,)
        Probability of each group if the column is drawn alone.
    """

    place: int
    cells: Cells
    span: Span
    inside: Floats
    alone: Floats

    @classmethod
    def of(cls, codec: Codec, fitted: Fitted, name: str, span: Span) -> _Column:
        """Return the column with its released distribution, or uniform if no row lies in the span."""
        cells = codec.cells(fitted.merging)[name]
        (place,) = fitted.merging.original.axes((name,))
        part = part_inside(cells, span)
        inside = part * cells.shares
        alone = fitted.one_ways[place].counts * _by_group(cells, inside)
        if not alone.sum() > 0:
            inside, alone = part, _by_group(cells, part)
        return cls(place, cells, span, inside, alone / alone.sum())

    @property
    def chances(self) -> Floats:
        """The share of each group that lies in the span."""
        return _by_group(self.cells, self.inside)

    def draw(self, groups: Integers, rng: np.random.Generator) -> Floats:
        """Draw a number of each group that lies in the span."""
        codes = nearest_rows([self.cells.groups], self.inside, [groups], rng)
        lows, highs = self.cells.lows[codes], self.cells.highs[codes]
        if self.cells.grid is None:
            return lows
        return self.cells.draw(
            np.maximum(lows, self.span.lows[0]), np.minimum(highs, self.span.highs[0]), rng
        )


def _by_group(cells: Cells, weights: Floats) -> Floats:
    """Return the sum of weights over the codes of each group."""
    return np.bincount(cells.groups, weights, minlength=cells.merged).astype(np.float64)


def _keeps(codec: Codec, numbers: dict[str, Floats]) -> Mask:
    """Return which rows keep the constraints on these columns alone."""
    for maker in codec.computed:
        if set(maker.by) <= set(numbers):
            numbers[maker.column] = maker.make(numbers)
    return codec.rules.holds(numbers)
