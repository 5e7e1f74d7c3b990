"""Conditional samples: complete partial rows, and balance classes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import compress
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from privsyn.errors import InputError
from privsyn.inference.fitted import Fitted
from privsyn.marginals.domain import Records
from privsyn.marginals.types import Floats, Mask, Numbers
from privsyn.release.computed import encoded_given, released_weights
from privsyn.release.given import patterns
from privsyn.release.pool import Pool
from privsyn.release.ranges import within
from privsyn.synthesis.synthesise import ENOUGH
from privsyn.table.codec.codec import Codec
from privsyn.table.codec.parts import split_spans, times_within
from privsyn.table.encoding.steps import DAY
from privsyn.table.enforcement.determined import LookUp
from privsyn.table.schema.columns import Categorical
from privsyn.table.schema.condition import Span

if TYPE_CHECKING:
    import pandas as pd


LEAST = 0.5
"""Rows. A sample as large as the private table usually contains no value with a smaller released count."""


def balanced(codec: Codec, fitted: Fitted, name: str, n: int, rng: np.random.Generator) -> Floats:
    """Return `n` values of a column in random order, each released value equally often, to within one."""
    return rng.permutation(np.resize(np.flatnonzero(_is_released(codec, fitted, name)).astype(np.float64), n))


def absent(codec: Codec, fitted: Fitted, name: str) -> tuple[Any, ...]:
    """Return the listed values of a column with no row in the release, which no sample can have."""
    values = cast(Categorical, codec.schema.coded[name]).values or ()
    return tuple(compress(values, ~_is_released(codec, fitted, name)))


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
