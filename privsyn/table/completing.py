"""Samples of which something is given: partial rows completed, and classes of equal size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from privsyn.answers.arrays import Floats
from privsyn.answers.conditional import complete
from privsyn.answers.domain import Records
from privsyn.answers.learnt import Learnt
from privsyn.answers.marginal import Marginal
from privsyn.answers.synthesis import ENOUGH
from privsyn.errors import InputError
from privsyn.table.codec import Codec
from privsyn.table.given import patterns
from privsyn.table.rulebook import LookUp
from privsyn.table.rules import Numbers

if TYPE_CHECKING:
    import pandas as pd


def balanced(codec: Codec, learnt: Learnt, name: str, n: int, rng: np.random.Generator) -> Floats:
    """The values of a column that occur by the release, each equally often in `n` rows, to within one."""
    weights = np.nan_to_num(_weights(codec, learnt, name))
    if not len(weights):
        raise InputError(f"balance {name!r} wants a column of listed values")
    values = np.flatnonzero(weights > 0).astype(np.float64)
    return rng.permutation(np.resize(values if len(values) else np.zeros(1), n))


def completed(
    codec: Codec,
    learnt: Learnt,
    tables: tuple[Marginal, ...],
    pool: Records,
    given: Numbers,
    rng: np.random.Generator,
) -> pd.DataFrame:
    """A table with the given numbers, the rest as the release has it in such rows.

    Parameters
    ----------
    codec : Codec
    learnt : Learnt
    tables : tuple of Marginal
        That records are made from.
    pool : Records of the release, in merged codes
    given : of each column a number a row, NaN where it is to be filled in
    rng : numpy.random.Generator
    """
    n = len(next(iter(given.values())))
    whole = {name: np.empty(n) for name in codec.names}
    for names, at in patterns(given):
        some = {name: given[name][at] for name in names}
        for name, numbers in _complete(codec, learnt, tables, pool, some, len(at), rng).items():
            whole[name][at] = numbers
    return codec.table(whole, rng)


def _complete(
    codec: Codec,
    learnt: Learnt,
    tables: tuple[Marginal, ...],
    pool: Records,
    given: Numbers,
    n: int,
    rng: np.random.Generator,
) -> Numbers:
    """The numbers of rows of which the same columns are given."""
    merging = learnt.merging
    held = _coded(codec, learnt, given, rng)
    codes = {name: codec.cells()[name].find(numbers) for name, numbers in held.items()}
    places = dict(zip(merging.original.names, range(len(merging.original)), strict=True))
    if held:
        rows = np.tile(np.arange(n), -(-ENOUGH // n))
        columns = [merging.groups[places[name]][code[rows]] for name, code in codes.items()]
        wanted = Records(merging.merged.project(tuple(held)), np.stack(columns, axis=1))
        made = complete(wanted, pool, tables, rng, codec.possible(merging)).codes
        copy = rng.integers(len(rows) // n, size=n)  # which of its completions a row gets
        records = Records(pool.domain, made[copy * n + np.arange(n)])
    else:
        records = Records(pool.domain, pool.codes[rng.integers(len(pool), size=n)])
    restored = np.array(merging.restore(records, rng).codes)
    for name, code in codes.items():
        restored[:, places[name]] = code
    return codec.numbers(Records(merging.original, restored), rng, merging, held)


def _coded(codec: Codec, learnt: Learnt, given: Numbers, rng: np.random.Generator) -> dict[str, Floats]:
    """What is given in columns that are coded: of one that is looked up, a value that has it there."""
    held = {name: numbers for name, numbers in given.items() if name in codec.domain.names}
    for maker in reversed(codec.computed):
        if maker.column not in given:
            continue
        if not isinstance(maker, LookUp) or len(maker.by) > 1 or maker.by[0] not in codec.domain.names:
            raise InputError(f"given: {maker.column!r} is computed: give {' and '.join(maker.by)} instead")
        (by,), wanted = maker.by, given[maker.column]
        if by in held:
            if (maker.make(held) != wanted).any():
                raise InputError(f"given: {maker.column!r} is not what follows from {by!r}")
            continue
        weights = _weights(codec, learnt, by)
        held[by] = np.empty(len(wanted))
        for value in np.unique(wanted):
            keys = maker.keys[maker.values == value, 0].astype(np.int64)
            if not len(keys):
                raise InputError(f"given: {maker.column!r} has a value that no {by!r} leads to")
            chances = weights[keys] + np.finfo(float).tiny
            at = wanted == value
            held[by][at] = rng.choice(keys, int(at.sum()), p=chances / chances.sum())
    return held


def _weights(codec: Codec, learnt: Learnt, name: str) -> Floats:
    """What the release counts of each listed value of a column; nothing if it is no such column."""
    size = codec.listed(name)
    if name in codec.domain.names:
        (place,) = codec.domain.axes((name,))
        merging = learnt.merging
        return (learnt.one_ways[place].counts[merging.groups[place]] * merging.shares[place])[:size]
    return np.ones(size)
