"""Remarks on a release for its owner, from released counts alone: they cost no privacy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from privsyn.inference.fitted import Fitted
from privsyn.release.computed import released_weights
from privsyn.table.codec.codec import Codec
from privsyn.table.kinds.categorical import OTHER
from privsyn.table.schema.schema import Schema, named_like_codes

EMPTY = 0.95
"""Share of missing cells from which a column is called empty. Noise leaves some cells in an empty one."""

SOME, MOSTLY = 0.02, 0.5
"""Shares of cells with replaced values from which a column is named, and is called mostly that."""


def empty_columns(codec: Codec, fitted: Fitted) -> tuple[str, ...]:
    """Return the columns of which the release counts nearly all cells as missing."""
    cells, found = codec.cells(fitted.merging), set()
    for name in codec.domain.names:
        weights = fitted.counts_of(name)
        if weights[np.isnan(cells[name].lows)].sum() > EMPTY * max(weights.sum(), 1.0):
            found.add(codec.column_of(name))
    return tuple(name for name in codec.names if name in found)


def codes_with_other(codec: Codec, fitted: Fitted, public: Schema | None) -> tuple[str, ...]:
    """Return the columns of whole numbers in a CSV whose rare values come out as the word `OTHER`, as text.

    Not those of which the `public` schema names the word itself.
    """
    found = []
    for name, column in codec.schema.coded.items():
        given = None if public is None else public.columns.get(name)
        if column.other != OTHER or not column.listed:
            continue
        if given is not None and given.other is not None:
            continue
        values = [str(value) for value in column.listed if value != OTHER]
        is_drawn = released_weights(codec, fitted, name)[column.listed.index(OTHER)] >= 1
        if is_drawn and values and all(value.isdecimal() for value in values):
            found.append(name)
    return tuple(found)


def amounts_named_like_codes(codec: Codec, public: Schema | None) -> tuple[str, ...]:
    """Return the columns of numbers without bounds in the `public` schema whose names imply codes."""
    return tuple(filter(named_like_codes, found_bounds(codec, public)))


def mostly_other(codec: Codec, fitted: Fitted, public: Schema | None) -> list[str]:
    """Return the columns of which most values were not found, each with the share of cells replaced."""
    return [said for said, share in _replaced(codec, fitted, public) if share > MOSTLY]


def partly_other(codec: Codec, fitted: Fitted, public: Schema | None) -> list[str]:
    """Return the columns of which some values were not found, each with the share of cells replaced."""
    return [said for said, share in _replaced(codec, fitted, public) if SOME < share <= MOSTLY]


def _replaced(codec: Codec, fitted: Fitted, public: Schema | None) -> Iterator[tuple[str, float]]:
    """Yield each column whose values were looked for in words, and the share of cells that are replaced."""
    for name, column in codec.schema.coded.items():
        given = None if public is None else public.columns.get(name)
        if column.other not in column.listed:
            continue
        if len(column.listed) == 1 or (given is not None and given.listed):
            continue  # nothing was found, which is reported elsewhere; or the owner lists the values
        weights = released_weights(codec, fitted, name)
        share = float(weights[column.listed.index(column.other)] / max(weights.sum(), 1.0))
        yield f"{name} ({share:.0%} of the cells are {column.other})", share


def found_bounds(codec: Codec, public: Schema | None) -> dict[str, tuple[float, float]]:
    """Return the bounds of each column of numbers that the `public` schema does not give."""
    given = {} if public is None else public.columns
    return {
        name: ends
        for name, column in codec.schema.columns.items()
        if (ends := column.number_range) is not None and not (name in given and given[name].is_public)
    }
