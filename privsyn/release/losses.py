"""Losses: what a run did to the cells of each column, from released counts and public facts alone.

They cost no privacy. Each kind of loss is one row of `KINDS`. Most kinds have a function that finds their
losses in a release. The others follow from settings or numbers of rows that only `fit` knows: it notes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain
from math import hypot, isfinite, sqrt
from typing import TYPE_CHECKING, Any, ParamSpec

import numpy as np

from privsyn.errors import about_not_found, plural
from privsyn.marginals.domain import Floats
from privsyn.private.discovery import BOUNDS, GRIDS, VALUES, columns_of, deviation_of, rows_needed
from privsyn.release.computed import released_weights
from privsyn.table.discovery.lattices import LEFT_OUT, TIMES_STAND_OUT
from privsyn.table.encoding.dtypes import holds_parts_of_seconds, parse_dtype
from privsyn.table.encoding.encoders import OrderedEncoder
from privsyn.table.encoding.steps import TIMES
from privsyn.table.kinds.categorical import OTHER
from privsyn.table.schema.columns import Datetime, Identifier, Ordinal
from privsyn.table.schema.schema import named_like_codes

if TYPE_CHECKING:
    from privsyn.inference.fitted import Fitted
    from privsyn.private.bounds import Contribution
    from privsyn.release.table_model import TableModel
    from privsyn.table.discovery.beyond import Beyond

P = ParamSpec("P")

NOT_FOUND = "not found"
"""The kind of loss of a column of which nothing was found. The lines on it and its warning are others."""

NOT_COMPUTED = "not computed"
"""The kind of a loss that says that other losses could not be computed."""

SOME = 0.02
"""Share of the cells of a column from which a loss is named."""

MOST, NEARLY_ALL = 0.5, 0.95
"""Shares of the cells from which most are called lost, and nearly all. Noise leaves some cells elsewhere."""

SOME_TIMES = 0.1
"""Share of the rows from which it is said that noise would hide their times of day."""

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

UNSURE = 0.2
"""Standard deviation of the number of rows, in parts of it, from which little is known of it."""

UNCLEAR = 2.0
"""Standard deviations of the noise below which a class of the target may have no row at all."""

COUNTED_ALONE = 3
"""Largest whole number that has a cell of its own where numbers are counted to find bounds."""

SHOWN = 8
"""Most columns in a list of small losses of one kind."""


@dataclass(frozen=True)
class Loss:
    """What the run did to the cells of one column.

    Parameters
    ----------
    column : str
        The column; of linked tables with the name of its table, as in ``visits.ward``. A loss of rows has the
        name of the table, or of the column that identifies the person.
    kind : str
        A key of `KINDS`.
    share : float, optional
        Estimated share of the cells that are lost, from 0 to 1. None for a fact without a share.
    text : str
        What happened, in words.
    detail : str
        What a list of columns says after the name of this one, such as its bounds.

    Examples
    --------
    >>> print(Loss("weight", "at a bound", 0.17, "17% of the cells are at the bound 40"))
    weight: 17% of the cells are at the bound 40
    """

    column: str
    kind: str
    share: float | None
    text: str
    detail: str = ""

    def __post_init__(self) -> None:
        if self.share is not None and not (isfinite(self.share) and 0 <= self.share <= 1):
            raise ValueError(f"a loss of the share {self.share!r}")

    def __str__(self) -> str:
        return f"{self.column}: {self.text}"

    @property
    def matters(self) -> bool:
        """Whether the loss is so large that no list may leave it out."""
        return KINDS[self.kind].matters or (self.share is not None and self.share > SOME)

    @property
    def spoils(self) -> bool:
        """Whether the column may not be called usable."""
        return self.share is not None and self.share > KINDS[self.kind].usable

    def to_plain(self) -> dict[str, Any]:
        """Return the loss as plain data."""
        return asdict(self)

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Loss:
        """Return the loss that `to_plain` wrote; raise if it did not write it."""
        loss = cls(**plain)
        texts = (loss.column, loss.kind, loss.text, loss.detail)
        if loss.kind not in KINDS or not all(isinstance(text, str) for text in texts):
            raise ValueError("no loss that `to_plain` wrote")
        return loss


@dataclass(frozen=True)
class Kind:
    """One kind of loss.

    Parameters
    ----------
    heading : str
        What a list of columns with small losses of this kind says before their names.
    find : callable, optional
        Returns the losses of this kind in a release. It reads released answers and public facts alone.
        Default: `fit` notes them in the release (`Release.noted`), because a release alone does not show
        them.
    usable : float
        The largest share of a loss with which the column may still be called usable.
    matters : bool
        Whether also a loss with a small share, or without one, matters.
    may_be_true : bool
        Whether the private cells may look the same: no released count tells a spike at a bound from values
        beyond it, or an empty cell from one that could not be read.
    """

    heading: str
    find: Callable[[TableModel], Iterable[Loss]] | None = None
    usable: float = 1.0
    matters: bool = False
    may_be_true: bool = False


def losses_of(model: TableModel) -> tuple[Loss, ...]:
    """Return all losses of a release: those with the largest shares first, then the facts without a share."""
    name = model.name or ""
    computed = [computed_losses(name, kind.find, model) for kind in KINDS.values() if kind.find is not None]
    return in_order([*model.noted, *chain.from_iterable(computed)])


def computed_losses(
    name: str, find: Callable[P, Iterable[Loss]], *args: P.args, **options: P.kwargs
) -> tuple[Loss, ...]:
    """Return the losses that a function finds. If it fails, return one loss that says so.

    The run is paid when its losses are computed. A defect here must not end it, and must not be silent.

    Parameters
    ----------
    name : str
        The table; an empty text if there is only one.
    find : callable
        It is called with `args` and `options`.

    Examples
    --------
    >>> print(*computed_losses("visits", lambda: [1 / 0]))
    visits: some losses could not be computed (ZeroDivisionError): please report this defect of privsyn
    """
    try:
        return tuple(find(*args, **options))
    except Exception as error:
        defect = type(error).__name__
        text = f"some losses could not be computed ({defect}): please report this defect of privsyn"
        return (Loss(name or "all columns", NOT_COMPUTED, None, text),)


def in_order(losses: Iterable[Loss]) -> tuple[Loss, ...]:
    """Return losses with the largest shares first, and those without a share by kind."""
    kinds = list(KINDS)

    def rank(loss: Loss) -> tuple[float, int]:
        return 1.0 if loss.share is None else -loss.share, kinds.index(loss.kind)

    return tuple(sorted(losses, key=rank))


def lines_of(losses: Iterable[Loss]) -> tuple[str, ...]:
    r"""Return a line for each column that lost much, then one for each kind of the other losses.

    The first line names all columns of which nothing was found.

    >>> some = [Loss("age", "missing or unreadable", 0.1, "10% of the cells are missing")]
    >>> some += [Loss("age", "at a bound", 0.3, "30% of the cells are at the upper bound 80")]
    >>> some += [Loss(name, "identifiers", None, "replaced by generated IDs") for name in ("id", "key")]
    >>> print(*lines_of(some), sep="\n")
    age: 30% of the cells are at the upper bound 80; 10% of the cells are missing
    replaced by generated IDs: id, key
    """
    ranked = in_order(losses)
    invented = [loss.column for loss in ranked if loss.kind == NOT_FOUND]
    named = [loss for loss in ranked if loss.kind != NOT_FOUND]
    return (*([about_not_found(invented)] if invented else []), *_by_column(named), *_by_kind(named))


def lines_of_warning(losses: Iterable[Loss]) -> tuple[str, ...]:
    """Return the lines for the columns that lost much; `fit` has another warning for those not found."""
    return _by_column(in_order(loss for loss in losses if loss.kind != NOT_FOUND))


def _by_column(losses: Iterable[Loss]) -> tuple[str, ...]:
    """Return one line for each column that lost much."""
    by_column: dict[str, list[str]] = {}
    for loss in losses:
        if loss.matters:
            by_column.setdefault(loss.column, []).append(loss.text)
    return tuple(f"{column}: {'; '.join(texts)}" for column, texts in by_column.items())


def _by_kind(losses: Iterable[Loss]) -> tuple[str, ...]:
    """Return one line for each kind of small losses, and of facts without a share."""
    by_kind: dict[str, list[str]] = {}
    for loss in losses:
        if not loss.matters:
            by_kind.setdefault(loss.kind, []).append(f"{loss.column} {loss.detail}".strip())
    return tuple(f"{KINDS[kind].heading}: {_listed(names)}" for kind, names in by_kind.items())


def _listed(names: Sequence[str]) -> str:
    """Return the first `SHOWN` names, and how many more there are."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _name(model: TableModel, column: str) -> str:
    """Return a column with the name of its table, if that is one of several."""
    return column if model.name is None else f"{model.name}.{column}"


def _loss(
    model: TableModel, column: str, kind: str, share: float | None, text: str, detail: str = ""
) -> Loss:
    return Loss(_name(model, column), kind, None if share is None else min(share, 1.0), text, detail)


def _percent(share: float) -> str:
    """Return a share in percent, with a digit after the point if it is small.

    >>> _percent(0.172), _percent(0.0234), _percent(0.00004)
    ('17%', '2.3%', '0.0%')
    """
    return f"{share:.0%}" if share >= 0.095 else f"{share:.1%}"


# Cells at a bound


@dataclass(frozen=True)
class _End:
    """The cell of one bound of a column.

    Parameters
    ----------
    share : float
        Share of the cells of the column that are there.
    excess : float
        The part of it that neighbours and noise do not explain.
    """

    share: float
    excess: float


NOTHING = _End(0.0, 0.0)


def _end(counts: Floats, widths: Floats, sigma: float, total: float) -> _End:
    """Return the first cell of a column.

    Its neighbours explain what the densest of them (`BESIDE`) would have in its width, or what the next two
    extrapolate to: numbers of rare events fall from 0 on.

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
    growth = min(density[0] * widths[1] / max(density[1] * widths[1], CLEAR * sigma), STEEPEST)
    # Each explanation with the noise of the excess, in standard deviations of a count: that of the end and of
    # one neighbour, or of c1^2 / c2 by its derivatives 2 g and g^2.
    explained = (
        (float(density[near].max() * widths[0]), hypot(1.0, wide)),
        (float(density[0] * growth * widths[0]), hypot(1.0, 2 * growth * wide, growth**2 * wide)),
    )
    excesses = [counts[0] - rows for rows, noise in explained if counts[0] - rows > CLEAR * noise * sigma]
    is_clear = len(excesses) == len(explained)
    return _End(share, float(min(excesses)) / max(total, 1.0) if is_clear else 0.0)


def _ends_of(model: TableModel, name: str) -> tuple[_End, _End] | None:
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
    total = fitted.total
    return _end(counts, widths, low, total), _end(counts[::-1], widths[::-1], high, total)


def _at_bounds(model: TableModel) -> Iterator[Loss]:
    """Yield the columns with many cells at a bound of the schema.

    Values beyond a bound are counted there. But a spike at a bound may also be true, as incomes of 0 are. So
    the text says no more than is known.
    """
    searched = columns_of(model.ledger, BOUNDS, model.codec.names, model.name)
    for name, column in model.codec.schema.coded.items():
        if not isinstance(column, Ordinal) or name in searched:
            continue
        ends = _ends_of(model, name) or (NOTHING, NOTHING)
        shares = [end.share if end.excess > SOME else 0.0 for end in ends]
        if any(shares):
            text = f"{_at(column, shares)}: {_beyond(column, shares)} are counted there"
            yield _loss(model, name, "at a bound", sum(end.excess for end in ends if end.excess > SOME), text)


def at_found_bounds(model: TableModel, beyond: Mapping[str, tuple[Beyond, Beyond]]) -> Iterator[Loss]:
    """Yield the columns of which bounds were found, and those with many cells at one or beyond it.

    `fit` notes them in the release, for it alone has the counts beyond the bounds.

    Parameters
    ----------
    model : TableModel
    beyond : mapping of a column to a pair of Beyond
        What the counts in which the bounds were found show beyond them.
    """
    searched = columns_of(model.ledger, BOUNDS, model.codec.names, model.name)
    for name, column in model.codec.schema.coded.items():
        if not isinstance(column, Ordinal) or name not in searched or name in model.accuracy_.not_found:
            continue
        bounds, sides = (_written(column.low), _written(column.high)), beyond.get(name, (None, None))
        ends = _ends_of(model, name) or (NOTHING, NOTHING)
        cut, unsure = [0.0, 0.0], [0.0, 0.0]
        for which, (end, side) in enumerate(zip(ends, sides, strict=True)):
            if side is not None and side.share > max(SOME, CUT * side.deviation):
                cut[which] = side.share
            elif end.excess > SOME and not _is_spike(end, side, column, which):
                unsure[which] = end.share
        text = f"the bounds {' to '.join(bounds)} were found under privacy: values beyond them are clipped"
        if any(cut):
            text = f"about {_at(column, cut, 'beyond', ' that was found')}: they are counted there"
        yield _loss(model, name, "at a found bound", sum(cut), text, " to ".join(bounds))
        if any(unsure):
            rest = f"they are true, or {_beyond(column, unsure)} are counted there"
            text = f"{_at(column, unsure, how=' that was found')}: {rest}"
            yield _loss(model, name, "perhaps at a found bound", sum(unsure), text)


def _is_spike(end: _End, side: Beyond | None, column: Ordinal, which: int) -> bool:
    """Return whether the cells at a found bound are true: nothing, or less than half of them, is beyond it.

    The search for bounds counts 0, and whole numbers next to it, alone. If such a bound was found, its cells
    have the number itself, and no cell beyond it stands out.
    """
    bound = column.bounds[which]
    is_whole = column.fixed_decimals == 0 and abs(bound) <= COUNTED_ALONE
    is_alone = column.has_numbers and (bound == 0 or is_whole)
    return is_alone or (side is not None and side.largest < end.excess / 2)


def _at(column: Ordinal, shares: Sequence[float], where: str = "at", how: str = "") -> str:
    """Return which shares of the cells are at which bounds, or beyond them."""
    bounds = ("lower", column.low), ("upper", column.high)
    return " and ".join(
        f"{_percent(share)} of the cells are {where} the {which} bound {_written(bound)}{how}"
        for share, (which, bound) in zip(shares, bounds, strict=True)
        if share
    )


def _beyond(column: Ordinal, shares: Sequence[float]) -> str:
    """Return what else is counted at the bounds with a share of the cells."""
    missing = "missing cells and " if shares[0] and not column.nullable else ""
    return f"{missing}values beyond {'them' if all(shares) else 'it'}"


def _in_one_range(model: TableModel) -> Iterator[Loss]:
    """Yield the columns of which most cells were counted in one range: their bounds are too far apart."""
    codec = model.codec
    for name, encoder in zip(codec.domain.names, codec.encoders, strict=True):
        column = codec.column_of(name)
        if not isinstance(encoder, OrderedEncoder) or column in (*codec.gaps, *model.accuracy_.not_found):
            continue
        counts = model.fitted.counts_of(name)[: encoder.size]
        index, share = int(counts.argmax()), float(counts.max(initial=0.0) / max(model.fitted.total, 1.0))
        low, high = (float(ends[index]) for ends in encoder.extents)
        if share > IN_ONE and high > low:
            where = encoder.range_words(low, high)
            text = f"{_percent(share)} of the cells are in one range, {where}, and where in it is lost"
            yield _loss(model, column, "in one range", share, f"{text}: narrower bounds keep it")


def _written(bound: Any) -> str:
    """Return a bound as text.

    >>> _written(131072.0), _written(2015), _written(0.25)
    ('131,072', '2015', '0.25')
    """
    if isinstance(bound, bool) or not isinstance(bound, int | float):
        return str(bound).removesuffix(" 00:00:00")
    return f"{bound:,.10g}" if abs(bound) >= 10_000 else f"{bound:.10g}"


# Cells that are missing, or that a value stands for


def _missing(model: TableModel, *, is_listed: bool) -> Iterator[Loss]:
    """Yield the columns with many missing cells: an encoder cannot tell whether a cell had a value.

    Where values are listed, a value that is not in the list is missing too. They are a kind of their own.
    """
    codec = model.codec
    for name, column in codec.schema.coded.items():
        attribute = codec.attributes_of(name)[0]
        if name in codec.gaps or attribute not in codec.nullable or name in model.accuracy_.not_found:
            continue
        share = float(model.fitted.counts_of(attribute)[-1] / max(model.fitted.total, 1.0))
        if share > SOME and bool(column.listed) is is_listed:
            kind = "missing or not listed" if is_listed else "missing or unreadable"
            how = f"missing in the table, {'or not in the list' if is_listed else 'infinite or unreadable'}"
            yield _loss(model, name, kind, share, f"{_percent(share)} of the cells are {how}")


def _first_value(model: TableModel) -> Iterator[Loss]:
    """Yield the columns without missing cells of which nearly all cells have the first value listed.

    Where no cell may be missing, the first value stands for missing cells and for values not in the list.
    """
    codec = model.codec
    for name, column in codec.schema.coded.items():
        if len(column.listed) < 2 or column.other is not None or name in codec.nullable:
            continue
        weights = released_weights(codec, model.fitted, name)
        share = float(weights[0] / max(weights.sum(), 1.0))
        if name in codec.domain.names and share > NEARLY_ALL:
            text = (
                f"{_percent(share)} of the cells have the value {column.listed[0]!r}, which also stands"
                " for missing cells and for values that are not in the list"
            )
            yield _loss(model, name, "first value", share, text)


def _other(model: TableModel) -> Iterator[Loss]:
    """Yield the columns of which many cells have the value that stands for all others."""
    codec, ledger = model.codec, model.ledger
    searched = columns_of(ledger, VALUES, codec.names, model.name)
    for name, column in codec.schema.coded.items():
        if column.other not in column.listed or name in model.accuracy_.not_found:
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
        text = f"{_percent(share)} of the cells are {column.other!r}: {why}"
        if name in searched and share > MOST and column.other == OTHER:
            text += "; if they are amounts or times, `privsyn schema` drafts their format"
        is_word = name in searched and share * model.fitted.total >= 1 and column.other == OTHER
        if is_word and values and all(str(value).isdecimal() for value in values):
            text += "; with this word the column of numbers is text"
        elif share <= (SOME if name in searched else MOST):
            continue
        yield _loss(model, name, "other" if name in searched else "missing or not listed", share, text)


def _not_found(model: TableModel) -> Iterator[Loss]:
    """Yield the columns of which nothing was found under privacy."""
    for name in model.accuracy_.not_found:
        text = "no values or bounds were found: its cells are invented, unless it is empty"
        yield _loss(model, name, NOT_FOUND, 1.0, text)


# Classes of the target, and rows


def of_target(model: TableModel, target: str) -> Iterator[Loss]:
    """Yield what the run did to the classes of the target: to be predicted, a column needs two of them."""
    column = model.codec.schema.coded.get(target)
    attribute = model.codec.attributes_of(target)[0]
    if column is None or attribute not in model.codec.domain.names:
        return
    counts, values = model.fitted.counts_of(attribute), column.listed
    cells = len(values) or model.codec.domain.ordered[model.codec.domain.names.index(attribute)]
    pool = values.index(column.other) if column.other in values else cells
    clear = max(UNCLEAR * model.fitted.one_way_certainty(attribute).sigma, 1.0)
    classes = [index for index in range(cells) if index != pool and counts[index] >= clear]
    share = float(counts[pool] / max(model.fitted.total, 1.0)) if column.other in values else 0.0
    texts = ["the target has one class that stands out of the noise"] if len(classes) < 2 else []
    texts += [f"{_percent(share)} of the rows are {column.other!r}"] if share else []
    if target in columns_of(model.ledger, VALUES, model.codec.names, model.name):
        rows, _ = rows_needed(model.ledger) or (0, 0)
        texts.append(
            f"a class that fewer than about {rows:,} rows have is not found, unless the schema lists it"
        )
    if texts:
        yield _loss(model, target, "target", 1.0 if len(classes) < 2 else share or None, "; ".join(texts))


def losses_of_rows(
    name: str, fitted: Fitted, contribution: Contribution, *, person: str, owner: str
) -> tuple[Loss, ...]:
    """Return the losses of rows that belong to persons, for `fit` to note in the release.

    Parameters
    ----------
    name : str
        The table, or the column that identifies the person.
    fitted : Fitted
    contribution : Contribution
    person, owner : str
        What a person is called, and what a row without one lacks.
    """
    return computed_losses(name, _of_rows, name, fitted, contribution, person, owner)


def _of_rows(
    name: str, fitted: Fitted, contribution: Contribution, person: str, owner: str
) -> Iterator[Loss]:
    """Yield the rows beyond the bound, a number of rows of which little is known, and rows of nobody."""
    if contribution.of_columns is not None and (share := 1 - min(contribution.of_columns, 1.0)) > SOME:
        bound = "1 row" if contribution.most == 1 else f"{contribution.most} rows"
        text = (
            f"about {_percent(share)} of the rows are not counted: at most {bound} of one {person} are; the"
            " synthetic rows stand for all of them"
        )
        yield Loss(name, "rows beyond the bound", share, text)
    if fitted.is_mostly_noise:
        error = max(fitted.error_of_total, fitted.noise_of_total)
        text = f"about {plural(fitted.total, 'row')} are made, give or take {error:,.0f}: mostly noise,"
        yield Loss(name, "number of rows", 1.0, f"{text} so all may be invented")
    elif fitted.total_variance and fitted.error_of_total > UNSURE * fitted.total:
        text = (
            f"about {plural(fitted.total, 'row')} are made, give or take {fitted.error_of_total:,.0f}: the"
            " noise hides how many rows a person has, and far more are missing if few have many"
        )
        yield Loss(name, "number of rows", None, text)
    text = f"rows that lead to no {owner} are left out; their number is private"
    yield Loss(name, "rows without an owner", None, text)


# Facts that follow from the schema, names and types


def _dropped(model: TableModel) -> Iterator[Loss]:
    """Yield the columns of free text."""
    for name in model.codec.dropped:
        yield _loss(model, name, "left out", None, "left out, as columns of kind text are")


def _identifiers(model: TableModel) -> Iterator[Loss]:
    """Yield the columns of identifiers."""
    for name, column in model.codec.schema.columns.items():
        if isinstance(column, Identifier):
            yield _loss(model, name, "identifiers", None, "replaced by generated IDs")


def _times_of_day(model: TableModel) -> Iterator[Loss]:
    """Yield the columns taken as dates in which the noise would hide times of day.

    The question on their grids counts times, and the ledger has its noise. What it cannot hide is no loss.
    """
    total, codec = max(model.fitted.total, 1.0), model.codec
    for name in columns_of(model.ledger, GRIDS, codec.names, model.name):
        column = codec.schema.coded.get(name)
        if not isinstance(column, Datetime) or column.unit != "D" or name in model.accuracy_.not_found:
            continue
        sigma = deviation_of(model.ledger, GRIDS, name, model.name)
        share = min(LEFT_OUT + (TIMES_STAND_OUT + CLEAR) * sigma * sqrt(len(TIMES)) / total, 1.0)
        if share > SOME_TIMES:
            hidden = f"of up to {_percent(share)} of the rows"
            text = (
                f"taken as dates: the noise would hide times of day {hidden}; unit: s in a schema keeps them"
            )
            yield _loss(model, name, "times of day", None, text, f"({hidden})")


def _parts_of_seconds(model: TableModel) -> Iterator[Loss]:
    """Yield the columns of times whose type holds parts of a second: whole ones are counted and made."""
    codec = model.codec
    for name, dtype in zip(codec.names, codec.dtypes, strict=True):
        column = codec.schema.coded.get(name)
        is_second = isinstance(column, Datetime) and column.unit == "s" and column.step in (None, "1s")
        if is_second and holds_parts_of_seconds(parse_dtype(dtype)):
            yield _loss(model, name, "parts of seconds", None, "in whole seconds: parts of them are left out")


def _words_for_missing(model: TableModel) -> Iterator[Loss]:
    """Yield the columns of which the schema says that a word means a missing cell."""
    codec = model.codec
    for name, column in codec.schema.coded.items():
        words = [word for word in (*codec.schema.missing, *getattr(column, "missing", ())) if word]
        if words and codec.attributes_of(name)[0] in codec.nullable:
            listed = _listed([repr(word) for word in words])
            text = f"missing cells are empty: the schema has {listed} for them"
            yield _loss(model, name, "words for missing cells", None, text, f"({listed})")


def _amounts(model: TableModel) -> Iterator[Loss]:
    """Yield the columns whose bounds were found, and whose names are those of codes."""
    for name in columns_of(model.ledger, BOUNDS, model.codec.names, model.name):
        if named_like_codes(name):
            text = "taken as an amount, though named like codes; {kind: categorical} in a schema keeps codes"
            yield _loss(model, name, "taken as amounts", None, text)


def one_class_left(model: TableModel, target: str) -> bool:
    """Return whether the release has one class of a target: then no model learns anything."""
    return any(loss.kind == "target" and loss.share == 1.0 for loss in of_target(model, target))


def spoiled(model: TableModel) -> dict[str, float]:
    """Return the columns that may not be called usable, each with the largest share of its cells lost.

    Those in doubt are not among them: their cells may be true.
    """
    return _spoiled(model, may_be_true=False)


def in_doubt(model: TableModel) -> tuple[str, ...]:
    """Return the other columns of which most cells are alike: the owner knows whether the schema fits."""
    surely = spoiled(model)
    return tuple(name for name in _spoiled(model, may_be_true=True) if name not in surely)


def _spoiled(model: TableModel, *, may_be_true: bool) -> dict[str, float]:
    """Return the columns with a loss of such a kind that spoils them, each with its largest share."""
    shares: dict[str, float] = {}
    for loss in model.losses:
        if loss.spoils and loss.share is not None and KINDS[loss.kind].may_be_true == may_be_true:
            shares.setdefault(loss.column, loss.share)
    full_names = {name: _name(model, name) for name in model.codec.names}
    return {name: shares[full_name] for name, full_name in full_names.items() if full_name in shares}


KINDS: dict[str, Kind] = {
    NOT_FOUND: Kind("no values or bounds were found, and the cells are invented", _not_found, 0.0),
    NOT_COMPUTED: Kind("not computed", matters=True),
    "target": Kind("rare classes of the target are not found", matters=True),
    "at a found bound": Kind("bounds found under privacy, to which other values are clipped", usable=SOME),
    "perhaps at a found bound": Kind("at a bound that was found", usable=MOST, may_be_true=True),
    "at a bound": Kind("at a bound of the schema", _at_bounds, MOST, may_be_true=True),
    "in one range": Kind("nearly all in one range", _in_one_range, MOST),
    "missing or not listed": Kind(
        "missing in the table, or not in the list", partial(_missing, is_listed=True), MOST, may_be_true=True
    ),
    "missing or unreadable": Kind(
        "missing in the table, infinite or unreadable",
        partial(_missing, is_listed=False),
        NEARLY_ALL,
        may_be_true=True,
    ),
    "first value": Kind("nearly always the first value listed", _first_value, NEARLY_ALL, may_be_true=True),
    "other": Kind("rare values are replaced by a word, so that a column of numbers is text", _other, MOST),
    "rows beyond the bound": Kind("rows beyond the bound are not counted"),
    "number of rows": Kind("the noise hides the number of rows", matters=True),
    "rows without an owner": Kind("rows that belong to nobody are left out, and their number is private"),
    "left out": Kind("left out, as columns of kind text are", _dropped),
    "identifiers": Kind("replaced by generated IDs", _identifiers),
    "times of day": Kind(
        "taken as dates, because the noise would hide times of day; unit: s in a schema keeps them",
        _times_of_day,
    ),
    "parts of seconds": Kind("in whole seconds: parts of them are left out", _parts_of_seconds),
    "words for missing cells": Kind(
        "missing cells are empty, not the words of the schema", _words_for_missing
    ),
    "taken as amounts": Kind(
        "taken as amounts, though named like codes; {kind: categorical} in a schema keeps codes", _amounts
    ),
}
"""All kinds of loss by name. Facts without a share are listed in this order.

What no released count shows, but a public fact implies for a whole column, is a kind too: its function reads
the codec, the schema or the types of a release.
"""
