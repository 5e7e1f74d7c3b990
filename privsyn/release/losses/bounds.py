"""Losses at the bounds of a column: many cells at a bound, or nearly all in one range between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import hypot, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from privsyn.marginals.domain import Floats
from privsyn.private.find_values import BOUNDS, FREQUENT, columns_of, fine_deviation
from privsyn.release.losses.kinds import AT_ZERO, NEARLY_ALL, SOME, Loss, loss_of, percent
from privsyn.table.encoding.dtypes import holds_missing, parse_dtype
from privsyn.table.encoding.encoders import OrderedEncoder
from privsyn.table.schema.columns import Ordinal

if TYPE_CHECKING:
    from privsyn.release.fitted_table import FittedTable
    from privsyn.table.discovery.beyond import Beyond

IN_ONE = 0.8
"""Share of the cells in one of hundreds of ranges of a column from which its bounds are too far apart."""

CUT = 4.0
"""Standard deviations of the noise that the rows beyond a found bound exceed which are called cut."""

CLEAR = 3.0
"""Standard deviations of the noise that the rows at a bound exceed, beside those that neighbours explain."""

BESIDE = 0.15
"""Part of the range in which the cells beside a bound show how many rows the cell of the bound would have."""

STEEPEST = 4.0
"""Largest factor by which the density may grow from one cell to the next towards a bound."""

FEWEST = 4
"""Cells of a column from which its neighbours show how many rows a bound would have."""

STANDS_OUT = 5.0
"""Standard deviations of the noise of fine cells from which the rows of one value stay at it."""

COUNTED_ALONE = 3
"""Largest whole number that has a cell of its own where numbers are counted to find bounds."""


@dataclass(frozen=True)
class _End:
    """The cell of one bound of a column.

    Parameters
    ----------
    share : float
        Share of the cells of the column that are there.
    excess : float
        The part of it that neighbours and noise do not explain.
    present : float
        Share of the cells of the column that are not missing.
    """

    share: float
    excess: float
    present: float = field(default=1.0, repr=False)


NOTHING = _End(0.0, 0.0)


def _end(counts: Floats, widths: Floats, sigma: float, total: float) -> _End:
    """Return the first cell of a column.

    Its neighbours explain what the densest of them (`BESIDE`) would have in its width, or what the next two
    extrapolate to: numbers of rare events fall from 0 on. An excess is clear beside the noise and the chance
    of as many rows.

    Parameters
    ----------
    counts, widths : arrays of shape (cells,)
        Estimated counts, and the number of grid points of each cell.
    sigma : float
        Standard deviation of the noise of the first count.
    total : float
        Rows of the table.

    Examples
    --------
    >>> _end(np.array([100.0, 20, 30, 30, 20, 0]), np.ones(6), 5.0, 200.0)
    _End(share=0.5, excess=0.35)
    >>> _end(np.array([100.0, 50, 25, 12, 6, 3]), np.ones(6), 5.0, 196.0).excess
    0.0
    """
    share = float(counts[0] / max(total, 1.0))
    if share > NEARLY_ALL:
        return _End(share, share)
    if len(counts) < FEWEST:
        return _End(share, 0.0)
    near = np.cumsum(widths[1:-1]) <= BESIDE * widths.sum()
    near[:2] = True
    density, wide = counts[1:-1] / widths[1:-1], widths[0] / widths[1]
    smallest = max(CLEAR * sigma, np.finfo(np.float64).tiny)  # exact counts have no noise
    deviation = hypot(sigma, sqrt(max(float(counts[0]), 0.0)))
    growth = min(density[0] * widths[1] / max(density[1] * widths[1], smallest), STEEPEST)
    # Each explanation with the noise of the excess, in standard deviations of a count: that of the end and of
    # one neighbour, or of c1^2 / c2 by its derivatives 2 g and g^2.
    explained = (
        (float(density[near].max() * widths[0]), hypot(1.0, wide)),
        (float(density[0] * growth * widths[0]), hypot(1.0, 2 * growth * wide, growth**2 * wide)),
    )
    excesses = [counts[0] - rows for rows, noise in explained if counts[0] - rows > CLEAR * noise * deviation]
    is_clear = len(excesses) == len(explained)
    return _End(share, float(min(excesses)) / max(total, 1.0) if is_clear else 0.0)


def _ends_of(model: FittedTable, name: str) -> tuple[_End, _End] | None:
    """Return the ends of a column of numbers or times; None if its numbers are not counted."""
    codec, fitted, attribute = model.codec, model.fitted, model.codec.attributes_of(name)[0]
    if name in codec.gaps or attribute not in codec.domain.names:
        return None
    index = codec.domain.names.index(attribute)
    cells, groups = codec.domain.ordered[index], fitted.merging.groups[index]
    encoder, measured = codec.encoders[index], fitted.certainties[index].measured
    if not isinstance(encoder, OrderedEncoder) or measured.grouping:
        return None
    counts, widths = fitted.counts_of(attribute)[:cells], encoder.grid.widths
    variance = np.broadcast_to(measured.variance, measured.marginal.counts.shape)
    low, high = (sqrt(float(variance[groups[end]])) for end in (0, cells - 1))
    total, present = fitted.total, min(float(counts.sum() / max(fitted.total, 1.0)), 1.0)
    ends = _end(counts, widths, low, total), _end(counts[::-1], widths[::-1], high, total)
    return replace(ends[0], present=present), replace(ends[1], present=present)


def cells_at_bounds(model: FittedTable) -> Iterator[Loss]:
    """Yield the columns with more cells at a bound of the schema than noise and the cells beside it explain.

    Values beyond a bound are counted there: a few of them may have most of a sum, so no share is too small to
    be said. But a spike at a bound may also be true, as incomes of 0 are. So the text says no more than is
    known, and zeros have a list, not a line each. Summaries of rows below have no cell beyond their bounds: 0
    is that of persons without rows.
    """
    searched = columns_of(model.ledger, BOUNDS, model.codec.names, model.title)
    for name, column in model.codec.schema.coded.items():
        if not isinstance(column, Ordinal) or name in (*searched, *model.unpublished):
            continue
        ends = _ends_of(model, name) or (NOTHING, NOTHING)
        shares = [end.share if end.excess else 0.0 for end in ends]
        may_fill = _missing_cells_may_fill(model, name)
        if shares[0] and column.has_numbers and column.low == 0:
            below = "numbers below 0, or missing cells, which" if may_fill else "numbers below 0, which"
            text = f"{percent(shares[0])} of the cells are 0: true, unless the table has {below} count as 0"
            yield loss_of(model, name, AT_ZERO, ends[0].excess, text, percent(shares[0]))
            ends, shares = (NOTHING, ends[1]), [0.0, shares[1]]
        if any(shares):
            text = f"{_at(column, shares)}: {_counted_there(column, shares, may_fill=may_fill)}"
            at = zip(shares, column.bounds, strict=True)
            detail = " and ".join(f"{percent(share)} at {_written(bound)}" for share, bound in at if share)
            yield loss_of(model, name, "at a bound", sum(end.excess for end in ends), text, detail)


def cells_at_found_bounds(model: FittedTable, beyond: Mapping[str, tuple[Beyond, Beyond]]) -> Iterator[Loss]:
    """Yield the columns of which bounds were found, and those with many cells at one or beyond it.

    `fit` notes them in the release, for it alone has the counts beyond the bounds.

    Parameters
    ----------
    model : FittedTable
    beyond : mapping of a column to a pair of Beyond
        What the counts in which the bounds were found show beyond them.
    """
    searched = columns_of(model.ledger, BOUNDS, model.codec.names, model.title)
    for name, column in model.codec.schema.coded.items():
        if not isinstance(column, Ordinal) or name not in searched or name in model.not_found:
            continue
        bounds, sides = (_written(column.low), _written(column.high)), beyond.get(name, (None, None))
        ends = _ends_of(model, name) or (NOTHING, NOTHING)
        cut, unsure = [0.0, 0.0], [0.0, 0.0]
        for which, (end, side) in enumerate(zip(ends, sides, strict=True)):
            if side is not None and side.at is not None and (which or name in model.codec.nullable):
                added = end.share - side.at * end.present  # beside the rows that have the bound itself
                cut[which] = added if added > CUT * side.noise else 0.0
            if cut[which]:
                continue
            if side is not None and side.share > CUT * side.deviation:
                cut[which] = side.share
            elif end.excess and not _is_spike(end, side, column, which):
                unsure[which] = end.share
        may_fill = _missing_cells_may_fill(model, name)
        text = f"the bounds {' to '.join(bounds)} were found under privacy: values beyond them are clipped"
        if any(cut):
            at = _at(column, cut, "beyond", " that was found")
            where = _where_mean_lies(column, cut, may_fill=may_fill)
            text = f"about {at}: they count as the bound, so the true mean {where}"
        yield loss_of(model, name, "at a found bound", sum(cut), text, " to ".join(bounds))
        shares = [end.share for end in ends]
        rows_elsewhere = (ends[0].present - max(shares)) * model.fitted.total
        is_alone = sum(shares) > 0 and rows_elsewhere < 1
        if (column.low == column.high or is_alone) and not any(cut):
            number = bounds[int(shares[1] > shares[0])]
            text = f"{number} is the only number found: others, if the table has any, are lost"
            yield loss_of(model, name, "one value", None, text)
        if any(unsure):
            at = _at(column, unsure, how=" that was found", cells="cells of the release")
            text = f"{at}: {_counted_there(column, unsure, may_fill=may_fill)}"
            yield loss_of(model, name, "perhaps at a found bound", sum(unsure), text)


def _is_spike(end: _End, side: Beyond | None, column: Ordinal, which: int) -> bool:
    """Return whether the cells at a found bound are true: nothing, or less than half of them, is beyond it.

    The search for bounds counts 0, and whole numbers next to it, alone. If such a bound was found, its cells
    have the number itself, and no cell beyond it stands out.
    """
    bound = column.bounds[which]
    is_whole = column.fixed_decimals == 0 and abs(bound) <= COUNTED_ALONE
    is_alone = column.has_numbers and (bound == 0 or is_whole)
    return is_alone or (side is not None and side.largest < end.excess / 2)


def _at(
    column: Ordinal, shares: Sequence[float], where: str = "at", how: str = "", cells: str = "cells"
) -> str:
    """Return which shares of the cells are at which bounds, or beyond them."""
    bounds = ("lower", column.low), ("upper", column.high)
    return " and ".join(
        f"{percent(share)} of the {cells} are {where} the {which} bound {_written(bound)}{how}"
        for share, (which, bound) in zip(shares, bounds, strict=True)
        if share
    )


def _missing_cells_may_fill(model: FittedTable, name: str) -> bool:
    """Return whether missing cells of a column, if there are any, count as its lower bound."""
    column = model.codec.schema.coded[name]
    return not column.nullable and holds_missing(parse_dtype(model.codec.dtype_of[name]))


def _counted_there(column: Ordinal, shares: Sequence[float], *, may_fill: bool) -> str:
    """Return what the cells at the bounds with a share may be, and what follows.

    No count tells true values from others: amounts of 0 are natural, and fewer cells may be moved there.
    Missing cells are among them if they `may_fill` the lower bound.
    """
    missing = "missing cells or " if shares[0] and may_fill else ""
    them = "them" if all(shares) else "it"
    where = _where_mean_lies(column, shares, may_fill=may_fill)
    return f"they are true, or stand for {missing}values beyond {them} (then the true mean {where})"


def _where_mean_lies(column: Ordinal, shares: Sequence[float], *, may_fill: bool) -> str:
    """Return where the true mean lies, if values beyond the bounds with a share are counted there.

    Missing cells that `may_fill` the lower bound lower the mean.
    """
    if all(shares) or (shares[0] and may_fill):
        return "differs"
    ways = ("lower", "higher") if column.has_numbers else ("earlier", "later")
    return f"is {ways[not shares[0]]}"


def cells_in_one_range(model: FittedTable) -> Iterator[Loss]:
    """Yield the columns of which most cells were counted in one range: their bounds are too far apart.

    Found bounds are uncertain, and so is how many private cells lie in the range of one:
    `cells_at_found_bounds` is about these.
    """
    codec = model.codec
    searched = columns_of(model.ledger, BOUNDS, codec.names, model.title)
    for name, encoder in codec.encoder_of.items():
        column = codec.column_of(name)
        if not isinstance(encoder, OrderedEncoder) or column in (*codec.gaps, *model.not_found):
            continue
        counts = model.fitted.counts_of(name)[: encoder.size]
        index, share = int(counts.argmax()), float(counts.max(initial=0.0) / max(model.fitted.total, 1.0))
        low, high = (float(ends[index]) for ends in encoder.extents)
        is_found = column in searched
        if is_found and index in (0, encoder.size - 1):
            continue
        if share > IN_ONE and high > low:
            where = encoder.range_words(low, high)
            cells = "cells of the release" if is_found else "cells"
            text = f"{percent(share)} of the {cells} are in one range, {where}, and where in it is lost"
            yield loss_of(model, column, "in one range", share, f"{text}: narrower bounds keep it")


def spread_values(model: FittedTable) -> Iterator[Loss]:
    """Yield the columns in which a value that many rows share may be spread over its range.

    The counts of fine cells tell it from its neighbours. Their noise is in the ledger. They are no counts of
    single numbers: a cell of several shows one only where frequent numbers were looked for.
    """
    codec = model.codec
    looked_for = columns_of(model.ledger, FREQUENT, codec.names, model.title)
    rows = STANDS_OUT * fine_deviation(model.ledger, model.title) / model.counted_share
    if rows <= SOME * model.fitted.total:
        return
    share = percent(min(rows / max(model.fitted.total, 1.0), 1.0))
    for name, axis in codec.axes.items():
        column = codec.column_of(name)
        if name not in codec.domain.names or column in (*codec.gaps, *model.not_found, *model.unpublished):
            continue
        groups = model.fitted.merging.groups[codec.domain.names.index(name)][: len(axis.widths)]
        if len(np.unique(groups)) < len(groups):
            values, limit = f"that fewer than about {rows:,.0f} rows share ({share} of the cells)", share
            if column not in looked_for and axis.widths.max() > 1:
                values, limit = "that many rows share, other than zero and the bounds,", ""
            text = f"a value {values} may be spread over its range"
            yield loss_of(model, column, "spread values", None, text, limit)


def _written(bound: Any) -> str:
    """Return a bound as text.

    >>> _written(131072.0), _written(2015), _written(0.25)
    ('131,072', '2015', '0.25')
    """
    if isinstance(bound, bool) or not isinstance(bound, int | float):
        return str(bound).removesuffix(" 00:00:00")
    return f"{bound:,.10g}" if abs(bound) >= 10_000 else f"{bound:.10g}"
