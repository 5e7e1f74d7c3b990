"""Losses of cells that are missing, that a value stands for, or of which nothing was found."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from privsyn.errors import plural
from privsyn.private.find_values import VALUES, columns_of, rows_needed
from privsyn.release.conditional.computed_columns import released_weights
from privsyn.release.conditional.partial_rows import LEAST
from privsyn.release.losses.bounds import CLEAR
from privsyn.release.losses.kinds import (
    MOST,
    NEARLY_ALL,
    NOT_FOUND,
    SOME,
    WITH_ANOTHER,
    Loss,
    loss_of,
    percent,
)
from privsyn.release.losses.lines import listed
from privsyn.table.encoding.dtypes import family, holds_missing, parse_dtype
from privsyn.table.kinds.categorical import OTHER

if TYPE_CHECKING:
    from privsyn.release.fitted_table import FittedTable

FEW = 3.0
"""Rows. A sample may have no row with a smaller released count: of as many, Poisson, it has none in 5 %."""


def missing_cells(model: FittedTable, *, is_listed: bool) -> Iterator[Loss]:
    """Yield the columns with missing cells beyond noise: an encoder cannot tell whether a cell had a value.

    Where values are listed, or were found, any other value is missing too. They are a kind of their own.
    """
    codec = model.codec
    searched = columns_of(model.ledger, VALUES, codec.names, model.title)
    for name, column in codec.schema.coded.items():
        attribute = codec.attributes_of(name)[0]
        if name in codec.gaps or attribute not in codec.nullable or name in model.not_found:
            continue
        missing = float(model.fitted.counts_of(attribute)[-1])
        share, noise = missing / max(model.fitted.total, 1.0), model.fitted.one_way_certainty(attribute).sigma
        if missing > max(CLEAR * noise, LEAST) and bool(column.listed) is is_listed:
            kind = "missing or not listed" if is_listed else "missing or unreadable"
            reason = _missing_reason(is_listed=is_listed, is_searched=name in searched)
            text = f"{percent(share)} of the cells are missing in the table, {reason}"
            yield loss_of(model, name, kind, share, text, percent(share))


def _missing_reason(*, is_listed: bool, is_searched: bool) -> str:
    """Return what is counted as missing beside the cells that are missing in the table."""
    if is_searched:
        return "or counted as missing, as too few rows share their values"
    return "or not in the list" if is_listed else "infinite or unreadable"


def missing_without_rows(model: FittedTable) -> Iterator[Loss]:
    """Yield the columns of which cells may be missing, but with too few of them for a sample to have one.

    The noise says how many it may hide.
    """
    codec = model.codec
    searched = columns_of(model.ledger, VALUES, codec.names, model.title)
    for name, column in codec.schema.coded.items():
        attribute = codec.attributes_of(name)[0]
        is_counted = attribute in codec.domain.names and attribute in codec.nullable
        if not is_counted or name in (*model.not_found, *model.unpublished):
            continue
        missing, noise = (
            model.fitted.counts_of(attribute)[-1],
            model.fitted.one_way_certainty(attribute).sigma,
        )
        if missing < FEW and max(missing, noise) > 0:
            reason = _missing_reason(is_listed=bool(column.listed), is_searched=name in searched)
            text = (
                "the synthetic rows have hardly any missing cell. Either the table has none (missing,"
                f" {reason}), or too few to stand out of the noise of about {plural(ceil(noise), 'row')}"
            )
            yield loss_of(model, name, "missing, and without rows", None, text, f"({ceil(noise):,})")


def first_values(model: FittedTable) -> Iterator[Loss]:
    """Yield the columns without missing cells of which nearly all cells have the first value listed.

    Where no cell may be missing, the first value stands for missing cells and for values not in the list. If
    values were found, others were surely there, and any share is named.
    """
    codec = model.codec
    searched = columns_of(model.ledger, VALUES, codec.names, model.title)
    for name, column in codec.schema.coded.items():
        is_open = name in searched and name not in model.not_found
        if len(column.listed) < (1 if is_open else 2) or column.other is not None or name in codec.nullable:
            continue
        weights = released_weights(codec, model.fitted, name)
        share = float(weights[0] / max(weights.sum(), 1.0))
        if name in codec.domain.names and (is_open or share > NEARLY_ALL):
            values = "values that too few rows share" if is_open else "values that are not in the list"
            text = (
                f"{percent(share)} of the cells have the value {column.listed[0]!r}, which also stands"
                f" for missing cells and for {values}"
            )
            yield loss_of(model, name, "first value", share, text)


def no_missing_cells(model: FittedTable) -> Iterator[Loss]:
    """Yield the columns in which a value stands for missing cells: no released count shows how many.

    `first_values` names those of which the values were found.
    """
    codec = model.codec
    searched = columns_of(model.ledger, VALUES, codec.names, model.title)
    for name, column in codec.schema.coded.items():
        dtype = parse_dtype(codec.dtype_of[name])
        may_be_other = family(dtype) != "boolean" if column.listed else holds_missing(dtype)
        attribute = codec.attributes_of(name)[0]
        is_counted = attribute in codec.domain.names and attribute not in codec.nullable
        if not is_counted or not may_be_other or column.other is not None or name in searched:
            continue
        stands = f"{column.listed[0]!r}" if column.listed else "the lower bound"
        values = " and for values that are not in the list" if column.listed else ""
        text = f"no cell may be missing: {stands} stands for missing cells{values}"
        yield loss_of(model, name, "no missing cells", None, text)


def pooled_cells(model: FittedTable) -> Iterator[Loss]:
    """Yield the columns with a value that stands for all others.

    If values were found, rare ones are surely replaced, and any share is named. If they are listed, only a
    share of most cells is.
    """
    codec, ledger = model.codec, model.ledger
    searched = columns_of(ledger, VALUES, codec.names, model.title)
    for name, column in codec.schema.coded.items():
        if column.other not in column.listed or name in model.not_found:
            continue
        weights = released_weights(codec, model.fitted, name)
        cells = model.fitted.total if name in codec.domain.names else float(weights.sum())
        share = float(weights[column.listed.index(column.other)] / max(cells, 1.0))
        values = [value for value in column.listed if value != column.other]
        why = (
            "too few rows share their values"
            if name in searched
            else "this one, and values that are not in the list"
        )
        text = f"{percent(share)} of the cells are {column.other!r}: {why}"
        if name in searched and share > MOST and column.other == OTHER:
            text += "; if they are amounts or times, `privsyn schema` drafts their format"
        is_word = name in searched and share * model.fitted.total >= 1 and column.other == OTHER
        if is_word and values and all(str(value).isdecimal() for value in values):
            text += "; with this word the column of numbers is text"
        elif share <= SOME and name in searched:
            rows, _ = rows_needed(ledger, model.title) or (0, 0)
            if (value := _value_instead(model, name)) is not None:
                text = (
                    f"values that fewer than about {rows:,} rows share, if the table has any, are counted"
                    f" with {value!r}: no row is {column.other!r}"
                )
                yield loss_of(model, name, WITH_ANOTHER, None, text, repr(value))
                continue
            text = f"values that fewer than about {rows:,} rows share are {column.other!r}: {percent(share)}"
            yield loss_of(model, name, "rare values", share, f"{text} of the cells", percent(share))
            continue
        elif share <= MOST and name not in searched:
            continue
        yield loss_of(model, name, "other" if name in searched else "missing or not listed", share, text)


def _value_instead(model: FittedTable, name: str) -> object:
    """Return the value with which the value for all others is counted, if that is never drawn; else None."""
    column = model.codec.schema.coded[name]
    if name not in model.codec.domain.names:
        return None
    values, code = model.pooled_values(name), column.listed.index(column.other)
    beside = np.flatnonzero(values.group == values.group[code])
    shown = beside[values.shares[beside] > 0]
    if values.shares[code] > 0 or not len(shown) or shown[0] >= len(column.listed):
        return None
    return column.listed[int(shown[0])]


def found_without_rows(model: FittedTable) -> Iterator[Loss]:
    """Yield the columns with values that were found or are listed, but that hardly a sample has (`FEW`).

    If they were found, enough rows have them. A column of which one value is left is named too: `(other)` has
    no row, so nothing else shows it.
    """
    searched = columns_of(model.ledger, VALUES, model.codec.names, model.title)
    for name, column in model.codec.schema.coded.items():
        is_counted = model.codec.attributes_of(name)[0] in model.codec.domain.names
        if not (column.listed and is_counted) or name in model.not_found:
            continue
        weights = released_weights(model.codec, model.fitted, name)
        values = [
            str(value)
            for value, weight in zip(column.listed, weights, strict=True)
            if value != column.other and weight < FEW
        ]
        if values and name in searched:
            text = f"found, but hardly any synthetic row has them: {listed(values)}"
            yield loss_of(model, name, "found, and without rows", None, text, f"({listed(values)})")
        elif values:
            text = (
                f"listed, but hardly any synthetic row has them: the table has none, or few: {listed(values)}"
            )
            yield loss_of(model, name, "listed, and without rows", None, text, f"({listed(values)})")
        if name in searched and len(column.listed) > 1 and int((weights >= LEAST).sum()) == 1:
            value = column.listed[int(weights.argmax())]
            text = f"{value!r} is the only value of the release: others, if the table has any, are lost"
            yield loss_of(model, name, "one value", None, text)


def invented_cells(model: FittedTable) -> Iterator[Loss]:
    """Yield the columns of which nothing was found under privacy."""
    for name in model.not_found:
        text = "no values or bounds were found: its cells are invented, unless it is empty"
        yield loss_of(model, name, NOT_FOUND, 1.0, text)
