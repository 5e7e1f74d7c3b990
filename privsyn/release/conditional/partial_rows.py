"""Conditional samples: complete partial rows, draw numbers within ranges, and balance classes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np

from privsyn.errors import InputError
from privsyn.inference.fitted import Fitted
from privsyn.marginals.domain import Array, Floats, Integers, Mask, Numbers, Records
from privsyn.marginals.nearest_rows import nearest_rows
from privsyn.release.conditional.computed_columns import encoded_given, released_numbers
from privsyn.release.conditional.pool import Pool
from privsyn.synthesis.synthesise import ENOUGH
from privsyn.table.codec.codec import Codec
from privsyn.table.codec.parts import split_spans, times_within
from privsyn.table.encoding.steps import DAY
from privsyn.table.enforcement.determined import MappingOf
from privsyn.table.schema.box import Span
from privsyn.table.schema.draws import Cells, Grid

if TYPE_CHECKING:
    import pandas as pd


LEAST = 0.5
"""Rows. A sample as large as the private table usually contains no value with a smaller released count."""

MOST_CLASSES = 1_000
"""Most numbers of a column that `balance` takes as classes."""

TRIES = 50
"""Most times that a row is drawn again because its numbers break a constraint on these columns alone."""


def balanced(codec: Codec, fitted: Fitted, name: str, n: int, rng: np.random.Generator) -> Floats:
    """Return `n` values of a column in random order, each released value equally often, to within one."""
    numbers, released = _classes(codec, fitted, name)
    return rng.permutation(np.resize(numbers[released], n))


def absent(codec: Codec, fitted: Fitted, name: str) -> tuple[Any, ...]:
    """Return the values of a column with no row in the release, which no sample with classes can have."""
    numbers, released = _classes(codec, fitted, name)
    if codec.listed(name):
        return tuple(compress(codec.schema.coded[name].listed, ~released))
    encoder = codec.encoder_of[name]
    return tuple(encoder.decode(numbers[~released], np.zeros(int((~released).sum()), bool)).tolist())


def _classes(codec: Codec, fitted: Fitted, name: str) -> tuple[Floats, Mask]:
    """Return the values of a column as numbers, and which have rows in the release: at least one has."""
    numbers, weights = released_numbers(codec, fitted, name, MOST_CLASSES)
    if not len(numbers):
        raise InputError(
            f"balance {name!r} needs a column of listed values, or of at most {MOST_CLASSES:,} different"
            " numbers: list the values in the schema, or declare integer: true and bounds"
        )
    weights = np.nan_to_num(weights)
    return numbers, weights >= min(LEAST, weights.max())


def completed(
    pool: Pool, fixed: Numbers, spans: Mapping[str, Span], n: int, missing: Collection[str] = ()
) -> pd.DataFrame:
    """Return a table of `n` rows with the given numbers; other columns follow the release, given these.

    Parameters
    ----------
    pool : Pool
    fixed : mapping of a column to a number for each row, NaN where it is to be filled in
    spans : mapping of other columns to the span of their numbers in all rows
    n : int
    missing : collection of columns whose cell is missing in all rows, optional
        Their numbers in `fixed` are NaN.

    Raises
    ------
    InputError
        If no row can have the given values, or one of `missing` is never missing in the release.
    """
    codec = pool.codec
    for name in missing:
        if codec.cells(pool.fitted.merging)[codec.target_attribute(name)].missing < 0:
            raise InputError(
                f"given: in the release, no cell of {name!r} is missing: leave it out, or give a value"
            )
    whole_spans = {name: span for name, span in spans.items() if name in codec.parts}
    spans = split_spans(spans, codec.parts)
    if spans:  # given as a mapping, so a column is given in all rows or in none
        fixed_rows = {
            name: numbers for name, numbers in fixed.items() if name in missing or not np.isnan(numbers).any()
        }
        spans = _with_keys(codec, fixed_rows, spans)
        looked_up = {maker.column for maker in codec.computed if set(maker.by) & set(spans)}
        counted = {name: x for name, x in fixed_rows.items() if name not in looked_up}
        held = encoded_given(pool, counted, n)
        missing = [name for name, numbers in {**fixed_rows, **held}.items() if np.isnan(numbers).all()]
        fixed = {**fixed_rows, **held, **_within(pool, held, spans, n)}
        for name, span in whole_spans.items():  # on the first and the last day, part of the times lie in it
            date, clock = codec.parts[name][:2]
            if clock not in fixed:
                times = times_within(codec.grid(name), fixed[date], span, pool.rng)
                days = np.floor(times / DAY)
                fixed |= {date: np.where(np.isnan(days), fixed[date], days), clock: times - days * DAY}
    table: dict[str, Floats] = {}
    # Each set of columns that are given together is completed with its rows; a missing cell counts as given.
    is_fixed = np.stack([~np.isnan(fixed[name]) | (name in missing) for name in fixed], axis=1)
    patterns, pattern_of_row = np.unique(is_fixed, axis=0, return_inverse=True)
    for index, pattern in enumerate(patterns):
        at = np.flatnonzero(pattern_of_row.ravel() == index)
        some = {name: fixed[name][at] for name in compress(fixed, pattern)}
        for name, numbers in _complete(pool, some, len(at)).items():
            table.setdefault(name, np.empty(n))[at] = numbers
    return codec.table(table, pool.rng)


def _complete(pool: Pool, fixed: Numbers, n: int) -> Numbers:
    """Return the numbers of `n` rows in which the same columns are given."""
    codec, merging, rng = pool.codec, pool.fitted.merging, pool.rng
    encoded = encoded_given(pool, fixed, n)
    codes = {name: codec.cells()[name].find(numbers) for name, numbers in encoded.items()}
    axes = dict(zip(merging.original.names, range(len(merging.original)), strict=True))
    if encoded:
        rows = np.tile(np.arange(n), -(-ENOUGH // n))
        columns = [merging.groups[axes[name]][code[rows]] for name, code in codes.items()]
        wanted = Records(merging.merged.project(tuple(encoded)), np.stack(columns, axis=1))
        completions = pool.complete(wanted).codes
        copy = rng.integers(len(rows) // n, size=n)  # the completion that each row gets
        records = Records(merging.merged, completions[copy * n + np.arange(n)])
    else:
        records = Records(merging.merged, pool.records.codes[rng.integers(len(pool.records), size=n)])
    restored = np.array(merging.restore(records, rng).codes)
    for name, code in codes.items():
        restored[:, axes[name]] = code
    return codec.numbers(Records(merging.original, restored), rng, merging, encoded)


def _with_keys(codec: Codec, fixed: Numbers, spans: Mapping[str, Span]) -> dict[str, Span]:
    """Add a span for each column that a mapping gives: the keys that lead to the value given for all rows."""
    key_spans = dict(spans)
    for maker in codec.computed:
        (by, *more), wanted = maker.by, fixed.get(maker.column)
        if wanted is None or more or by in fixed or not isinstance(maker, MappingOf):
            continue
        if by in codec.domain.names and (wanted == wanted[0]).all():
            keys = np.unique(maker.keys[maker.values == wanted[0], 0])
            keys = keys[key_spans[by].holds(keys)] if by in key_spans else keys
            if not len(keys):
                raise InputError(f"given: {maker.column!r} has a value that no {by!r} leads to")
            key_spans[by] = Span(keys, keys, missing=False)
    return key_spans


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
    inside = _points_inside(cells, cells.grid, span, np.arange(len(cells.lows))).sum(axis=0)
    points = cells.grid.count(cells.lows, cells.highs)  # NaN for missing
    return np.divide(inside, points, out=np.zeros(len(points)), where=points > 0)


def _points_inside(cells: Cells, grid: Grid, span: Span, codes: Integers) -> Floats:
    """Return the number of each code's points in each interval of a span, of shape (intervals, codes)."""
    lows, highs = cells.lows[codes], cells.highs[codes]
    ends = zip(span.lows.tolist(), span.highs.tolist(), strict=True)
    return np.stack([grid.count(np.maximum(lows, low), np.minimum(highs, high)) for low, high in ends])


def _within(pool: Pool, held: Numbers, spans: Mapping[str, Span], n: int) -> dict[str, Floats]:
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
    records, kinds, kind = pool.with_values(held, n)
    if not set(spans) <= set(codec.domain):
        return _within_computed(pool, records, spans, kinds, kind)
    columns = {name: _Column.of(codec, pool.fitted, name, span) for name, span in spans.items()}
    weights = np.ones(len(records))
    for column in columns.values():
        weights *= column.chances[records.codes[:, column.axis]]

    def draw(rows: Integers) -> dict[str, Floats]:
        picked = nearest_rows([kinds], weights, [kind[rows]], rng)
        alone = weights[picked] == 0
        numbers = {}
        for name, column in columns.items():
            groups = records.codes[picked, column.axis]
            drawn = rng.choice(len(column.alone), len(rows), p=column.alone)  # for rows that no record fits
            numbers[name] = column.draw(np.where(alone, drawn, groups), rng)
        return numbers

    inside = draw(np.arange(n))
    for _ in range(TRIES if codec.schema.constraints else 0):
        broken = np.flatnonzero(~_keeps(codec, {**held, **inside}))
        if not len(broken):
            break
        for name, numbers in draw(broken).items():
            inside[name][broken] = numbers
    return inside


def _within_computed(
    pool: Pool, records: Records, spans: Mapping[str, Span], kinds: Array, kind: Array
) -> dict[str, Floats]:
    """Draw numbers that lie in spans, some of which are about computed columns.

    A row gets the numbers of a record that lies in all spans. If there is no such record, each column is
    drawn uniformly.
    """
    numbers, rng = pool.numbers(records), pool.rng
    inside = np.ones(len(records))
    for name, span in spans.items():
        inside *= span.holds(numbers[name])
    at = nearest_rows([kinds], inside, [kind], rng)
    outside = np.flatnonzero(inside[at] == 0)
    drawn = {name: numbers[name][at] for name in spans}
    for name, span in spans.items():
        cells = pool.codec.own_cells(name)
        interval = rng.integers(len(span.lows), size=len(outside))
        ends = cells.lows[0], cells.highs[-1 - cells.nullable]
        low, high = (end[interval].clip(*ends) for end in (span.lows, span.highs))
        drawn[name][outside] = cells.draw(low, high, rng)
    return drawn


@dataclass(frozen=True, eq=False)
class _Column:
    """A column whose numbers must lie in a span.

    Parameters
    ----------
    axis : int
        Of the domain.
    cells : Cells
        The codes, with their groups in the release.
    span : Span
    inside : array of shape (codes,)
        Weight of each code within its group, times the share of it that lies in the span.
    alone : array of shape (groups,)
        Probability of each group if the column is drawn alone.
    """

    axis: int
    cells: Cells
    span: Span
    inside: Floats
    alone: Floats

    @classmethod
    def of(cls, codec: Codec, fitted: Fitted, name: str, span: Span) -> _Column:
        """Return the column with its released distribution, or uniform if no row lies in the span."""
        cells = codec.cells(fitted.merging)[name]
        (axis,) = fitted.merging.original.axes((name,))
        part = part_inside(cells, span)
        inside = part * cells.shares
        alone = fitted.one_ways[axis].counts * _by_group(cells, inside)
        if not alone.sum() > 0:
            inside, alone = part, _by_group(cells, part)
        return cls(axis, cells, span, inside, alone / alone.sum())

    @property
    def chances(self) -> Floats:
        """The share of each group that lies in the span."""
        return _by_group(self.cells, self.inside)

    def draw(self, groups: Integers, rng: np.random.Generator) -> Floats:
        """Draw a number of each group that lies in the span."""
        codes = nearest_rows([self.cells.groups], self.inside, [groups], rng)
        lows, highs = self.cells.lows[codes], self.cells.highs[codes]
        if (grid := self.cells.grid) is None:
            return lows
        interval = np.zeros(len(codes), np.int64)
        if len(self.span.lows) > 1:
            until = _points_inside(self.cells, grid, self.span, codes).cumsum(axis=0)
            interval = (until <= rng.random(len(codes)) * until[-1]).sum(axis=0)
        low, high = self.span.lows[interval], self.span.highs[interval]
        return self.cells.draw(np.maximum(lows, low), np.minimum(highs, high), rng)


def _by_group(cells: Cells, weights: Floats) -> Floats:
    """Return the sum of weights over the codes of each group."""
    return np.bincount(cells.groups, weights, minlength=cells.merged).astype(np.float64)


def _keeps(codec: Codec, numbers: dict[str, Floats]) -> Mask:
    """Return which rows keep the constraints on these columns alone."""
    for maker in codec.computed:
        if set(maker.by) <= set(numbers):
            numbers[maker.column] = maker.make(numbers)
    return codec.rules.holds(numbers)
