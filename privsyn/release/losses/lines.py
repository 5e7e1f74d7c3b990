"""The lines that say what a run did to columns: for the owner, the page and the sheet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from privsyn.errors import about_not_found
from privsyn.release.losses.kinds import KINDS, MOST, NEARLY_ALL, NOT_FOUND, Loss, in_order, percent

SHOWN = 8
"""Most columns in a shortened list of small losses of one kind."""

ALIKE = 3
"""Least number of columns with the same loss that share a line."""

SHARE = "{share}"
"""What stands for the share in a text."""

WHERE_ALL_ARE = "in losses_ and on the page of `privsyn report`"
"""Where the whole of each list is."""


def lines_of(losses: Iterable[Loss], *, in_full: bool = False, shown: int = 0) -> tuple[str, ...]:
    r"""Return a line for each column that lost much, then one for each kind of the other losses.

    Columns that lost the same but for its share have one line, if they are at least `ALIKE`, and a line each
    `in_full`. The first line names all columns of which nothing was found. So does a list of columns of which
    no cell is that of the table. Other lists are shortened unless they are asked for `in_full`, and say
    where all are. Beside a list of all, they may have `shown` names.

    >>> some = [Loss("age", "missing or unreadable", 0.1, "10% of the cells are missing")]
    >>> some += [Loss("age", "at a bound", 0.3, "30% of the cells are at the upper bound 80")]
    >>> some += [Loss(name, "identifiers", None, "replaced") for name in ("id", "key")]
    >>> print(*lines_of(some), sep="\n")
    age: 30% of the cells are at the upper bound 80; 10% of the cells are missing
    replaced by generated IDs, a new one in each row; repeated and missing ones are lost: id, key

    >>> zeros = [("a", 0.92), ("b", 0.5), ("c", 0.96)]
    >>> at_zero = [Loss(name, "at a bound", part, f"{part:.0%} are at the bound 0") for name, part in zeros]
    >>> print(*lines_of(at_zero))
    c, a, b: 50% to 96% are at the bound 0
    """
    ranked = in_order(losses)
    invented = [loss.column for loss in ranked if loss.kind == NOT_FOUND]
    named = [loss for loss in ranked if loss.kind != NOT_FOUND]
    small: dict[str, list[str]] = {}  # losses, and facts without a share, by kind
    for loss in named:
        if not loss.matters:
            small.setdefault(loss.kind, []).append(f"{loss.column} {loss.detail}".strip())
    in_lists = [(kind, small[kind]) for kind in KINDS if kind in small]
    by_kind = [
        f"{KINDS[kind].heading}: "
        + (", ".join(names) if in_full or KINDS[kind].is_whole else _shortened(names, shown))
        for kind, names in in_lists
    ]
    return (*([about_not_found(invented)] if invented else []), *_by_column(named, in_full=in_full), *by_kind)


def worst_lines_of(losses: Iterable[Loss], *, in_full: bool = False) -> tuple[str, ...]:
    r"""Return the lines that no summary may leave out: of columns of which all or most cells are lost.

    >>> some = [Loss("code", "other", 0.99, "99% are '(other)'"), Loss("id", "identifiers", None, "replaced")]
    >>> some += [Loss("pay", "at a bound", 0.3, "30% are at the bound 0")]
    >>> print(*worst_lines_of(some), sep="\n")
    code: 99% are '(other)'
    replaced by generated IDs, a new one in each row; repeated and missing ones are lost: id
    """
    ranked = in_order(losses)
    lost = {
        loss.column
        for loss in ranked
        if loss.share is not None and loss.share > (NEARLY_ALL if KINDS[loss.kind].may_be_true else MOST)
    }
    lists = lines_of((loss for loss in ranked if KINDS[loss.kind].is_whole), in_full=in_full)
    by_column = _of_columns((loss for loss in ranked if loss.kind != NOT_FOUND), in_full=in_full)
    return (*(line for columns, line in by_column if not lost.isdisjoint(columns)), *lists)


def lines_of_warning(losses: Iterable[Loss]) -> tuple[str, ...]:
    """Return the lines for columns that lost much; `fit` has another warning for columns not found."""
    return _by_column(in_order(loss for loss in losses if loss.kind != NOT_FOUND))


def _by_column(losses: Iterable[Loss], *, in_full: bool = False) -> tuple[str, ...]:
    """Return one line for each column that lost much, or for several that lost alike but for the share."""
    return tuple(line for _, line in _of_columns(losses, in_full=in_full))


def _of_columns(losses: Iterable[Loss], *, in_full: bool) -> Iterator[tuple[Sequence[str], str]]:
    """Yield the columns of each line of `_by_column`, and the line."""
    by_column: dict[str, list[Loss]] = {}
    for loss in losses:
        if loss.matters:
            by_column.setdefault(loss.column, []).append(loss)
    alike: dict[tuple[str, ...], list[str]] = {}
    for column, losses_of_column in by_column.items():
        alike.setdefault(tuple(map(_without_share, losses_of_column)), []).append(column)
    for columns in alike.values():
        if in_full or len(columns) < ALIKE:
            for column in columns:
                yield (column,), f"{column}: {'; '.join(loss.text for loss in by_column[column])}"
            continue
        together = zip(*(by_column[column] for column in columns), strict=True)
        yield columns, f"{', '.join(columns)}: {'; '.join(map(_of_several, together))}"


def _without_share(loss: Loss) -> str:
    return loss.text if loss.share is None else loss.text.replace(percent(loss.share), SHARE, 1)


def _of_several(losses: Sequence[Loss]) -> str:
    """Return the text of losses of several columns, with the least and the largest share."""
    shares = [loss.share for loss in losses if loss.share is not None]
    low, high = (percent(share) for share in (min(shares, default=0.0), max(shares, default=0.0)))
    return _without_share(losses[0]).replace(SHARE, high if low == high else f"{low} to {high}", 1)


def _shortened(names: Sequence[str], shown: int) -> str:
    if shown:
        return listed(names, shown)
    return f"{listed(names)} (all {WHERE_ALL_ARE})" if len(names) > SHOWN else listed(names)


def listed(names: Sequence[str], shown: int = SHOWN) -> str:
    """Return the first names, and how many more there are."""
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(names[:shown]) + more
