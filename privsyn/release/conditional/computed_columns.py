"""Given values of computed columns, in terms of the columns that they are computed from."""

from __future__ import annotations

import numpy as np

from privsyn.errors import InputError
from privsyn.inference.fitted import Fitted
from privsyn.marginals.domain import Floats, Integers, Numbers
from privsyn.marginals.tolerances import SMALLEST
from privsyn.release.conditional.pool import Pool
from privsyn.table.codec.codec import Codec
from privsyn.table.codec.gaps import Gap, lower, number_of
from privsyn.table.codec.parts import split_given
from privsyn.table.encoding.grid import ROUNDING
from privsyn.table.encoding.steps import DAY
from privsyn.table.enforcement.determined import MappingOf
from privsyn.table.enforcement.equal import CopyOf

MOST_KINDS = 200
"""Combinations of other given values for which records are made. With more, these values are ignored where a
given column is split into the columns before and a gap."""

NEAR = 50
"""Records on either side of a given value: a row takes the gap of one of them."""


def encoded_given(pool: Pool, fixed: Numbers, n: int) -> dict[str, Floats]:
    """Return the given numbers of encoded columns.

    A given value of a copied column becomes a value of the column that is counted. A given value of a mapping
    becomes a key that leads to this value. A given column that is encoded as a gap becomes the columns before
    it, and the gap.

    Raises
    ------
    InputError
        If a given column is a total, or given values contradict each other.
    """
    codec = pool.codec
    encoded = {**fixed, **_whole_times(pool, fixed)}
    for maker in reversed(codec.computed):
        if maker.column not in encoded:
            continue
        wanted, by = encoded[maker.column], maker.by[0]
        match maker:
            case Gap() if np.isnan(wanted).all():
                encoded[maker.name] = wanted
            case Gap():
                encoded |= _split(pool, encoded, maker, n)
            case CopyOf() | MappingOf() if len(maker.by) == 1:
                if by not in encoded:
                    encoded[by] = wanted if isinstance(maker, CopyOf) else _keys(pool, maker, wanted)
                elif not np.array_equal(maker.make(encoded), wanted, equal_nan=True):
                    raise InputError(f"given: {maker.column!r} contradicts {by!r}, from which it follows")
            case _:
                raise InputError(
                    f"given: {maker.column!r} is computed: give {' and '.join(maker.by)} instead"
                )
    encoded = split_given(encoded, codec.parts)
    return {name: numbers for name, numbers in encoded.items() if name in codec.domain.names}


def _whole_times(pool: Pool, fixed: Numbers) -> dict[str, Floats]:
    """Return times for the columns whose date is given, and from which a given column follows by a gap.

    A time of day that is not given is drawn from the records. No time lies beyond the given column.
    """
    codec, times = pool.codec, {}
    for gap in codec.computed:
        first = gap.by[0]
        date, clock, *_ = (*codec.attributes_of(first), "")
        if not isinstance(gap, Gap) or first not in codec.parts or {gap.column, date} - set(fixed):
            continue
        if np.isnan(fixed[gap.column]).all():
            continue
        at = pool.rng.integers(len(pool.records), size=len(fixed[date]))
        drawn = pool.numbers(pool.records)[first][at] % DAY if clock not in fixed else fixed[clock]
        sign, (scale, _) = gap.side.sign, gap.side.neighbours[first]
        ends = _rounded(codec, first, fixed[gap.column] / scale, sign)
        starts = fixed[date] * DAY + np.nan_to_num(drawn)
        times[first] = np.where(np.floor(ends / DAY) == fixed[date], lower(starts, ends, sign), starts)
    return times


def _keys(pool: Pool, maker: MappingOf, wanted: Floats) -> Floats:
    """Return a key that leads to each wanted value, drawn by the released counts of the keys.

    Only a missing key leads to a missing value.
    """
    if np.isnan(wanted).all():
        return wanted
    weights = released_weights(pool.codec, pool.fitted, maker.by[0])
    drawn = np.empty(len(wanted))
    for value in np.unique(wanted):
        keys = maker.keys[maker.values == value, 0].astype(np.int64)
        if not len(keys):
            raise InputError(f"given: {maker.column!r} has a value that follows from no {maker.by[0]!r}")
        probabilities = weights[keys] + SMALLEST
        at = wanted == value
        drawn[at] = pool.rng.choice(keys, int(at.sum()), p=probabilities / probabilities.sum())
    return drawn


def _split(pool: Pool, fixed: Numbers, gap: Gap, n: int) -> dict[str, Floats]:
    """Return the columns from which a given one is measured, and the gap to it.

    Those that are not given come from a record whose value of the column is near the given one. They are
    shifted by the difference.
    """
    codec, completed, side, wanted = pool.codec, dict(fixed), gap.side, fixed[gap.column]
    missing = [name for name in side.columns if name not in fixed]
    if missing:
        records, at = _near(pool, fixed, gap.column, n)
        shift = wanted - records[gap.column][at]
        for name, (scale, _) in side.neighbours.items():
            if name in missing:
                numbers = lower(records[name][at] + shift / scale, wanted / scale, side.sign)
                completed[name] = _rounded(codec, name, numbers, side.sign)
        broken = gap.distance(completed) < 0  # strictly below or above, on grids of their own
        for name in missing:
            step = side.sign * codec.ordered(name).grid.step
            completed[name] = np.where(
                broken, _rounded(codec, name, completed[name] - step, side.sign), completed[name]
            )
    if (gap.distance(completed) < 0).any():
        names = ", ".join((*side.columns, gap.column)[:: side.sign])
        raise InputError(
            f"no row was found that keeps the constraints on {names}: "
            "change the constraints, or the given values"
        )
    return {**completed, gap.name: gap.gap_of(completed)}


def _rounded(codec: Codec, name: str, numbers: Floats, sign: int) -> Floats:
    """Return the largest number of a column at or below each number; the smallest above if `sign` is -1."""
    grid = codec.ordered(name).grid
    points = sign * np.floor(sign * (numbers - grid.low) * grid.scale + ROUNDING)
    return number_of(grid, np.clip(points, 0, grid.points - 1))


def _near(pool: Pool, fixed: Numbers, name: str, n: int) -> tuple[Numbers, Integers]:
    """Return decoded records, and a record for each row: with its given values, and near it in `name`."""
    encoded = split_given(fixed, pool.codec.parts)
    held = {name: numbers for name, numbers in encoded.items() if name in pool.codec.domain.names}
    if held and len(np.unique(np.stack(list(held.values())), axis=1).T) > MOST_KINDS:
        held = {}
    records, kinds, kind = pool.with_values(held, n)
    numbers = pool.numbers(records)
    at = np.flatnonzero(~np.isnan(numbers[name]))
    if not len(at):
        raise InputError(f"given: in the release, {name!r} is always missing")
    order = at[np.lexsort((numbers[name][at], kinds[at]))]
    chosen = np.empty(n, np.int64)
    for combination in np.unique(kind):
        rows, same = np.flatnonzero(kind == combination), order[kinds[order] == combination]
        same = same if len(same) else at[np.argsort(numbers[name][at])]
        index = np.searchsorted(numbers[name][same], fixed[name][rows])
        index = index + pool.rng.integers(-NEAR, NEAR + 1, len(rows))
        chosen[rows] = same[np.clip(index, 0, len(same) - 1)]
    return numbers, chosen


def released_weights(codec: Codec, fitted: Fitted, name: str) -> Floats:
    """Return the released count of each listed value of a column; empty if the column lists none."""
    size = codec.listed(name)
    if name in codec.domain.names:
        return fitted.counts_of(name)[:size]
    maker = next((maker for maker in codec.computed if maker.column == name), None)
    if isinstance(maker, MappingOf) and len(maker.by) == 1 and size:
        keys, values = maker.keys[:, 0].astype(np.int64), maker.values.astype(np.int64)
        weights = released_weights(codec, fitted, maker.by[0])
        if len(weights):  # the keys are listed
            return np.bincount(values, weights[keys], minlength=size).astype(np.float64)
    return np.ones(size)


def released_numbers(codec: Codec, fitted: Fitted, name: str, limit: int) -> tuple[Floats, Floats]:
    """Return the values of a column as numbers, and the released count of each.

    Both are empty if there is no list of values, and no grid of at most `limit` exact numbers that are
    counted.
    """
    if codec.listed(name):
        weights = released_weights(codec, fitted, name)
        return np.arange(len(weights), dtype=np.float64), weights
    cells, grid = codec.cells(fitted.merging).get(name), codec.grid(name)
    if cells is None or grid is None or grid.decimals is None or grid.points > limit:
        return np.empty(0), np.empty(0)
    numbers = number_of(grid, np.arange(grid.points, dtype=np.float64))
    codes = cells.find(numbers)
    of_codes = fitted.counts_of(name)[: len(cells.lows)] / grid.count(cells.lows, cells.highs)
    return numbers, of_codes[codes]
