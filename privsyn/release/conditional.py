"""Conditional samples: complete partial rows, and balance classes.

Given values of computed columns become values of the columns that they are computed from.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np

from privsyn.errors import InputError
from privsyn.inference.fitted import Fitted
from privsyn.marginals.domain import Floats, Integers, Mask, Records
from privsyn.release.given import patterns
from privsyn.release.pool import Pool
from privsyn.release.ranges import records_with, within
from privsyn.synthesis.synthesise import ENOUGH
from privsyn.table.codec.codec import Codec
from privsyn.table.codec.gaps import Gap, number_of
from privsyn.table.codec.parts import split_given, split_spans, times_within
from privsyn.table.encoding.grid import ROUNDING, Grid
from privsyn.table.encoding.steps import DAY
from privsyn.table.enforcement.determined import LookUp
from privsyn.table.enforcement.equal import CopyOf
from privsyn.table.enforcement.rules import Numbers, Span

if TYPE_CHECKING:
    import pandas as pd


LEAST = 0.5
"""Rows. A sample as large as the private table usually contains no value with a smaller released count."""


def balanced(codec: Codec, fitted: Fitted, name: str, n: int, rng: np.random.Generator) -> Floats:
    """Return `n` values of a column in random order, each released value equally often, to within one."""
    return rng.permutation(np.resize(np.flatnonzero(_is_released(codec, fitted, name)).astype(np.float64), n))


def absent(codec: Codec, fitted: Fitted, name: str) -> tuple[Any, ...]:
    """Return the listed values of a column with no row in the release, which no sample can have."""
    return tuple(compress(codec.schema.coded[name].listed, ~_is_released(codec, fitted, name)))


def _is_released(codec: Codec, fitted: Fitted, name: str) -> Mask:
    """Return which listed values have rows in the release; the most frequent value always does."""
    weights = np.nan_to_num(released_weights(codec, fitted, name))
    if not len(weights):
        raise InputError(f"balance {name!r} needs a column of listed values")
    return weights >= min(LEAST, weights.max())


def completed(
    pool: Pool, given: Numbers, spans: Mapping[str, Span], n: int, missing: Collection[str] = ()
) -> pd.DataFrame:
    """Return a table of `n` rows with the given numbers; other columns follow the release, given these.

    Parameters
    ----------
    pool : Pool
    given : mapping of a column to a number for each row, NaN where it is to be filled in
    spans : mapping of other columns to the span of their numbers in all rows
    n : int
    missing : collection of columns whose cell is missing in all rows, optional
        Their numbers in `given` are NaN.

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
        known = {
            name: numbers for name, numbers in given.items() if name in missing or not np.isnan(numbers).any()
        }
        spans = _with_keys(codec, known, spans)
        looked_up = {maker.column for maker in codec.computed if set(maker.by) & set(spans)}
        others = {name: x for name, x in known.items() if name not in looked_up}
        held = encoded_given(pool, others, n)
        missing = [name for name, numbers in {**known, **held}.items() if np.isnan(numbers).all()]
        given = {**known, **held, **within(pool, held, spans, n)}
        for name, span in whole_spans.items():
            given |= _in_part_of_a_day(pool, codec.parts[name], name, span, given)
    whole: dict[str, Floats] = {}
    for names, at in patterns(given, missing):
        some = {name: given[name][at] for name in names}
        for name, numbers in _complete(pool, some, len(at)).items():
            whole.setdefault(name, np.empty(n))[at] = numbers
    return codec.table(whole, pool.rng)


def _in_part_of_a_day(
    pool: Pool, parts: tuple[str, ...], name: str, span: Span, given: Numbers
) -> dict[str, Floats]:
    """Return the date and the time of day of rows on the first and the last day of a span of times."""
    date, clock = parts[:2]
    if clock in given:
        return {}
    times = times_within(pool.codec.grid(name), given[date], span, pool.rng)
    days = np.floor(times / DAY)
    return {date: np.where(np.isnan(days), given[date], days), clock: times - days * DAY}


def _complete(pool: Pool, given: Numbers, n: int) -> Numbers:
    """Return the numbers of `n` rows in which the same columns are given."""
    codec, merging, rng = pool.codec, pool.fitted.merging, pool.rng
    encoded = encoded_given(pool, given, n)
    codes = {name: codec.cells()[name].find(numbers) for name, numbers in encoded.items()}
    places = dict(zip(merging.original.names, range(len(merging.original)), strict=True))
    if encoded:
        rows = np.tile(np.arange(n), -(-ENOUGH // n))
        columns = [merging.groups[places[name]][code[rows]] for name, code in codes.items()]
        wanted = Records(merging.merged.project(tuple(encoded)), np.stack(columns, axis=1))
        completions = pool.complete(wanted).codes
        copy = rng.integers(len(rows) // n, size=n)  # the completion that each row gets
        records = Records(merging.merged, completions[copy * n + np.arange(n)])
    else:
        records = Records(merging.merged, pool.records.codes[rng.integers(len(pool.records), size=n)])
    restored = np.array(merging.restore(records, rng).codes)
    for name, code in codes.items():
        restored[:, places[name]] = code
    return codec.numbers(Records(merging.original, restored), rng, merging, encoded)


def _with_keys(codec: Codec, given: Numbers, spans: Mapping[str, Span]) -> dict[str, Span]:
    """Add a span for each look-up column: the keys that lead to the value given for all rows."""
    found = dict(spans)
    for maker in codec.computed:
        (by, *others), wanted = maker.by, given.get(maker.column)
        if wanted is None or others or by in given or not isinstance(maker, LookUp):
            continue
        if by in codec.domain.names and (wanted == wanted[0]).all():
            keys = np.unique(maker.keys[maker.values == wanted[0], 0])
            keys = keys[found[by].holds(keys)] if by in found else keys
            if not len(keys):
                raise InputError(f"given: {maker.column!r} has a value that no {by!r} leads to")
            found[by] = Span(keys, keys, missing=False)
    return found


MOST_KINDS = 200
"""Combinations of other given values for which records are made. With more, these values are ignored where a
given column is split into the columns before and a gap."""

NEAR = 50
"""Records on either side of a given value: a row takes the gap of one of them."""


def encoded_given(pool: Pool, given: Numbers, n: int) -> dict[str, Floats]:
    """Return the given numbers of encoded columns.

    A given copy becomes a value of the column that is counted, and a given look-up value a key that leads
    to it. A given column that is encoded as a gap becomes the columns before it and the gap.

    Raises
    ------
    InputError
        If a given column is a total, or given values contradict each other.
    """
    codec = pool.codec
    known = {**given, **_whole_times(pool, given)}
    for maker in reversed(codec.computed):
        if maker.column not in known:
            continue
        wanted, by = known[maker.column], maker.by[0]
        match maker:
            case Gap() if np.isnan(wanted).all():
                known[maker.name] = wanted
            case Gap():
                known |= _split(pool, known, maker, n)
            case CopyOf() | LookUp() if len(maker.by) == 1:
                if by not in known:
                    known[by] = wanted if isinstance(maker, CopyOf) else _keys(pool, maker, wanted)
                elif not np.array_equal(maker.make(known), wanted, equal_nan=True):
                    raise InputError(f"given: {maker.column!r} contradicts {by!r}, from which it follows")
            case _:
                raise InputError(
                    f"given: {maker.column!r} is computed: give {' and '.join(maker.by)} instead"
                )
    known = split_given(known, codec.parts)
    return {name: numbers for name, numbers in known.items() if name in codec.domain.names}


def _whole_times(pool: Pool, given: Numbers) -> dict[str, Floats]:
    """Return times for the columns whose date is given, and from which a given column follows by a gap.

    A time of day that is not given is drawn from the records. No time is later than the given column.
    """
    codec, found = pool.codec, {}
    for gap in codec.computed:
        first = gap.by[0]
        date, clock, *_ = (*codec.attributes_of(first), "")
        if not isinstance(gap, Gap) or first not in codec.parts or {gap.column, date} - set(given):
            continue
        if np.isnan(given[gap.column]).all():
            continue
        at = pool.rng.integers(len(pool.records), size=len(given[date]))
        drawn = pool.numbers(pool.records)[first][at] % DAY if clock not in given else given[clock]
        ends = _floored(codec, first, given[gap.column] / gap.scales[0])
        whole = given[date] * DAY + np.nan_to_num(drawn)
        found[first] = np.where(np.floor(ends / DAY) == given[date], np.minimum(whole, ends), whole)
    return found


def _keys(pool: Pool, maker: LookUp, wanted: Floats) -> Floats:
    """Return a key that leads to each wanted value, drawn by the released counts of the keys.

    Only a missing key leads to a missing value.
    """
    if np.isnan(wanted).all():
        return wanted
    weights = released_weights(pool.codec, pool.fitted, maker.by[0])
    found = np.empty(len(wanted))
    for value in np.unique(wanted):
        keys = maker.keys[maker.values == value, 0].astype(np.int64)
        if not len(keys):
            raise InputError(f"given: {maker.column!r} has a value that follows from no {maker.by[0]!r}")
        probabilities = weights[keys] + np.finfo(float).tiny
        at = wanted == value
        found[at] = pool.rng.choice(keys, int(at.sum()), p=probabilities / probabilities.sum())
    return found


def _split(pool: Pool, known: Numbers, gap: Gap, n: int) -> dict[str, Floats]:
    """Return the columns before a given one, and the gap to it.

    Columns before that are not given come from a record whose value of the column is near the given one. They
    are shifted by the difference.
    """
    codec, found = pool.codec, dict(known)
    if not set(gap.before) <= set(known):
        records, at = _near(pool, known, gap.column, n)
        shift = known[gap.column] - records[gap.column][at]
        for name, scale in zip(gap.before, gap.scales, strict=True):
            if name not in known:
                numbers = np.minimum(records[name][at] + shift / scale, known[gap.column] / scale)
                found[name] = _floored(codec, name, numbers)
        if (last := gap.before[-1]) not in known:  # strictly below, on a grid of its own
            step = _grid(codec, last).step
            found[last] = np.where(
                gap.distance(found) < 0, _floored(codec, last, found[last] - step), found[last]
            )
    if (gap.distance(found) < 0).any():
        names = ", ".join((*gap.before, gap.column))
        raise InputError(
            f"no row was found that keeps the constraints on {names}: "
            "change the constraints, or the given values"
        )
    return {**found, gap.name: gap.gap_of(found)}


def _floored(codec: Codec, name: str, numbers: Floats) -> Floats:
    """Return the largest number of a column at or below each number; the lower bound if there is none."""
    grid = _grid(codec, name)
    points = np.floor((numbers - grid.low) * grid.scale + ROUNDING)
    return number_of(grid, np.clip(points, 0, grid.points - 1))


def _grid(codec: Codec, name: str) -> Grid:
    """Return the grid of a column of numbers or times."""
    grid = codec.grid(name)
    assert grid is not None  # noqa: S101
    return grid


def _near(pool: Pool, known: Numbers, name: str, n: int) -> tuple[Numbers, Integers]:
    """Return decoded records, and for each row one of them: with its given values, and near it in `name`."""
    given = split_given(known, pool.codec.parts)
    held = {of: numbers for of, numbers in given.items() if of in pool.codec.domain.names}
    if held and len(np.unique(np.stack(list(held.values())), axis=1).T) > MOST_KINDS:
        held = {}
    records, kinds, kind = records_with(pool, held, n)
    numbers = pool.numbers(records)
    at = np.flatnonzero(~np.isnan(numbers[name]))
    if not len(at):
        raise InputError(f"given: in the release, {name!r} is always missing")
    order = at[np.lexsort((numbers[name][at], kinds[at]))]
    found = np.empty(n, np.int64)
    for of in np.unique(kind):
        rows, same = np.flatnonzero(kind == of), order[kinds[order] == of]
        same = same if len(same) else at[np.argsort(numbers[name][at])]
        place = np.searchsorted(numbers[name][same], known[name][rows])
        place = place + pool.rng.integers(-NEAR, NEAR + 1, len(rows))
        found[rows] = same[np.clip(place, 0, len(same) - 1)]
    return numbers, found


def released_weights(codec: Codec, fitted: Fitted, name: str) -> Floats:
    """Return the released count of each listed value of a column; empty if the column lists none."""
    size = codec.listed(name)
    if name in codec.domain.names:
        (place,) = codec.domain.axes((name,))
        merging = fitted.merging
        return (fitted.one_ways[place].counts[merging.groups[place]] * merging.shares[place])[:size]
    maker = next((maker for maker in codec.computed if maker.column == name), None)
    if isinstance(maker, LookUp) and len(maker.by) == 1 and size:
        keys, values = maker.keys[:, 0].astype(np.int64), maker.values.astype(np.int64)
        weights = released_weights(codec, fitted, maker.by[0])[keys]
        return np.bincount(values, weights, minlength=size).astype(np.float64)
    return np.ones(size)
