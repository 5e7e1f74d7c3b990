"""Samples of which something is given: partial rows completed, and classes of equal size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from privsyn.errors import InputError, safe_repr
from privsyn.inference.fitted import Fitted
from privsyn.marginals.domain import Records
from privsyn.marginals.marginal import Marginal
from privsyn.marginals.types import Floats
from privsyn.synthesis.conditional import complete
from privsyn.synthesis.synthesise import ENOUGH
from privsyn.table.encoding.codec import Codec
from privsyn.table.enforcement.determined import LookUp
from privsyn.table.enforcement.ranges import bounds_of, number_of
from privsyn.table.enforcement.rules import Numbers


def balanced(codec: Codec, learnt: Fitted, name: str, n: int, rng: np.random.Generator) -> Floats:
    """The values of a column that occur by the release, each equally often in `n` rows, to within one."""
    weights = np.nan_to_num(_weights(codec, learnt, name))
    if not len(weights):
        raise InputError(f"balance {name!r} wants a column of listed values")
    values = np.flatnonzero(weights > 0).astype(np.float64)
    return rng.permutation(np.resize(values if len(values) else np.zeros(1), n))


def completed(
    codec: Codec,
    learnt: Fitted,
    tables: tuple[Marginal, ...],
    pool: Records,
    given: Numbers,
    rng: np.random.Generator,
) -> pd.DataFrame:
    """A table with the given numbers, the rest as the release has it in such rows.

    Parameters
    ----------
    codec : Codec
    learnt : Fitted
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
    learnt: Fitted,
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


def _coded(codec: Codec, learnt: Fitted, given: Numbers, rng: np.random.Generator) -> dict[str, Floats]:
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


def _weights(codec: Codec, learnt: Fitted, name: str) -> Floats:
    """What the release counts of each listed value of a column; nothing if it is no such column."""
    size = codec.listed(name)
    if name in codec.domain.names:
        (place,) = codec.domain.axes((name,))
        merging = learnt.merging
        return (learnt.one_ways[place].counts[merging.groups[place]] * merging.shares[place])[:size]
    return np.ones(size)


def read_given(codec: Codec, given: object, n: int | None, rows: int) -> dict[str, Floats]:
    """The numbers of the given cells by column, NaN where none is given.

    Parameters
    ----------
    codec : Codec
    given : mapping of a column to a value, or pandas.DataFrame
        A cell that is missing is to be filled in.
    n : int, optional
        What the caller said of the number of rows; of a data frame they are as many as it has.
    rows : int
        How many a mapping is for.

    Examples
    --------
    >>> from privsyn import Categorical, Numerical, Schema
    >>> schema = Schema({"sex": Categorical(["F", "M"]), "age": Numerical(0, 9)})
    >>> codec = Codec(schema, ("sex", "age"), ("object", "int64"))
    >>> {name: numbers.tolist() for name, numbers in read_given(codec, {"sex": "M"}, None, 2).items()}
    {'sex': [1.0, 1.0]}
    """
    if isinstance(given, pd.DataFrame):
        if n is not None and n != len(given):
            raise InputError("given has as many rows as are made: leave out n")
        cells = {name: given[name].tolist() for name in given.columns} if given.columns.is_unique else None
        if cells is None:
            raise InputError("given has two columns of one name: drop one")
    elif isinstance(given, Mapping):
        cells = {name: [value] * rows for name, value in given.items()}
    else:
        raise InputError(f"given is a mapping of columns to values, or a data frame; got {safe_repr(given)}")
    found = {}
    for name, values in cells.items():
        if name not in codec.schema.coded:
            raise InputError(f"given: there is no column {safe_repr(name)} among those to be synthesised")
        numbers = _Numbers(codec, name, quoting=isinstance(given, Mapping))
        found[name] = np.array([numbers[value] for value in values], np.float64)
    return found


class _Numbers(dict[Any, float]):
    """The number of each value of a column, worked out when it is first asked for.

    A complaint quotes the value of a mapping, which somebody wrote; rows of a data frame may be of people.
    """

    def __init__(self, codec: Codec, name: str, *, quoting: bool) -> None:
        super().__init__()
        self.column, self.name, self.codec, self.quoting = codec.schema.coded[name], name, codec, quoting

    def __getitem__(self, value: Any) -> float:
        if not pd.api.types.is_scalar(value):
            raise InputError(f"given: column {self.name!r} wants one value a row")
        try:
            return np.nan if pd.isna(value) else super().__getitem__(value)
        except InputError as error:
            complaint = str(error)
        except Exception:  # an object may raise what it likes
            complaint = f"{safe_repr(value)} cannot be read"
        complaint = complaint if self.quoting else "it has a value that cannot be there"
        raise InputError(f"given: column {self.name!r}: {complaint}")

    def __missing__(self, value: Any) -> float:
        number = number_of(self.column, value.item() if isinstance(value, np.generic) else value)
        low, high = bounds_of(self.column)
        if not low <= number <= high:
            raise InputError(f"{safe_repr(value)} lies outside its bounds")
        cells = self.codec.cells().get(self.name)
        if cells is not None:
            snapped = float(cells.snap(np.array([number]))[0])
            if np.isnan(snapped):
                raise InputError(f"{safe_repr(value)} is not one of its numbers")
            is_real = cells.grid is not None and cells.grid.decimals is None
            number = number if is_real else snapped  # what is given stays as it is said
        self[value] = number
        return number


def patterns(given: Mapping[str, Floats]) -> Iterator[tuple[tuple[str, ...], np.ndarray]]:
    """The sets of columns that are given together, each with its rows."""
    names = tuple(given)
    known = np.stack([~np.isnan(given[name]) for name in names], axis=1)
    which, rows = np.unique(known, axis=0, return_inverse=True)
    for place, pattern in enumerate(which):
        some = tuple(name for name, is_given in zip(names, pattern, strict=True) if is_given)
        yield some, np.flatnonzero(rows.ravel() == place)
