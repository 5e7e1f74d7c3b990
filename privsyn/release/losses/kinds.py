"""Loss: what a run did to the cells of one column; and the kinds of loss."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from math import isfinite
from typing import Any, Protocol

NOT_FOUND = "not found"
"""The kind of loss of a column of which nothing was found. The lines on it and its warning are others."""

WITH_ANOTHER = "counted with another"
"""The kind of loss of a column whose rare values are counted with a frequent one."""

BEYOND_BOUND = "rows beyond the bound"
"""The kind of loss of rows of a person that are not counted. Its share is of all rows."""

AT_ZERO = "zeros at the lower bound"
"""The kind of loss of numbers of which many are 0, their lower bound. Zeros are common in truth."""

NOT_COMPUTED = "not computed"
"""The kind of a loss that says that other losses could not be computed."""

SOME = 0.02
"""Share of the cells of a column from which a loss usually has a line of its own."""

MOST, NEARLY_ALL = 0.5, 0.95
"""Shares of the cells from which most are called lost, and nearly all. Noise leaves some cells elsewhere."""


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
        kind = KINDS[self.kind]
        return kind.matters or (self.share is not None and self.share > kind.named)

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
    usable : float
        The largest share of a loss with which the column may still be called usable.
    matters : bool
        Whether also a loss with a small share, or without one, matters.
    named : float
        The share from which a loss has a line of its own, and does not only stand in a list.
    is_whole : bool
        Whether no cell of a column is that of the table, so that no summary may leave out its line.
    may_be_true : bool
        Whether the private cells may look the same: no released count tells a spike at a bound from values
        beyond it, or an empty cell from one that could not be read.
    """

    heading: str
    usable: float = 1.0
    matters: bool = False
    named: float = SOME
    is_whole: bool = False
    may_be_true: bool = False


KINDS: dict[str, Kind] = {
    NOT_FOUND: Kind("no values or bounds were found, and the cells are invented", 0.0, is_whole=True),
    NOT_COMPUTED: Kind("not computed", matters=True),
    "target": Kind("rare classes of the target are not found", matters=True),
    "places": Kind("values in one group whose differences the noise hides", matters=True),
    "one value": Kind("one value alone was found", matters=True),
    "left out": Kind("left out, as columns of kind text and of persons are", is_whole=True),
    "identifiers": Kind(
        "replaced by generated IDs, a new one in each row; repeated and missing ones are lost", is_whole=True
    ),
    "keys": Kind("new keys, which hold the links"),
    "stand-ins": Kind("replaced by stand-ins that Faker makes, missing cells too", is_whole=True),
    "found, and without rows": Kind("values that were found, but that hardly any synthetic row has"),
    "listed, and without rows": Kind(
        "listed values that hardly any synthetic row has: the table has none, or few"
    ),
    "missing, and without rows": Kind(
        "hardly any missing cell in the synthetic rows: the table has none, or as few as noise hides (rows)"
    ),
    "rare values": Kind("values that too few rows share are replaced by a word, in this share of the cells"),
    WITH_ANOTHER: Kind("values that too few rows share, if the table has any, are counted with this value"),
    "at a found bound": Kind("bounds found under privacy, to which other values are clipped", usable=SOME),
    "perhaps at a found bound": Kind("at a bound that was found", usable=MOST, may_be_true=True),
    "at a bound": Kind("at a bound of the schema", MOST, may_be_true=True),
    AT_ZERO: Kind(
        "zeros at the lower bound, true unless the table has numbers below",
        MOST,
        named=MOST,
        may_be_true=True,
    ),
    "in one range": Kind("nearly all in one range", MOST),
    "missing or not listed": Kind("missing in the table, or not in the list", MOST, may_be_true=True),
    "missing or unreadable": Kind(
        "missing in the table, infinite or unreadable",
        NEARLY_ALL,
        may_be_true=True,
    ),
    "first value": Kind("the most frequent value found stands for others", NEARLY_ALL, may_be_true=True),
    "other": Kind("rare values are replaced by a word, so that a column of numbers is text", MOST),
    "links": Kind("rows are dealt at random, because the noise would hide their links", matters=True),
    BEYOND_BOUND: Kind("rows beyond the bound are not counted"),
    "number of rows": Kind("the noise hides the number of rows", matters=True),
    "same in all rows": Kind("the same in all rows that belong together, as the first one of these says"),
    "same sum": Kind(
        "computed from a sum of columns, which the first one of the rows that belong together decides"
    ),
    "rows without an owner": Kind("rows that belong to nobody are left out, and their number is private"),
    "times of day": Kind(
        "taken as dates, because the noise would hide times of day; unit: s in a schema keeps them"
    ),
    "parts of seconds": Kind("in whole seconds: parts of them are left out"),
    "rounded": Kind("multiples of a step, to which other numbers are rounded"),
    "spread values": Kind(
        "a value may be spread over its range unless about this share of the cells have it"
    ),
    "no missing cells": Kind(
        "no cell may be missing: the first value listed, or the lower bound, stands for missing cells"
    ),
    "words for missing cells": Kind("missing cells are empty, not the words of the schema"),
    "taken as amounts": Kind(
        "taken as amounts, though named like codes; {kind: categorical} in a schema keeps codes"
    ),
}
"""All kinds of loss by name, in the order of their lists: whole columns that are lost stand first."""


AT_BOUNDS = "at a bound", AT_ZERO, "at a found bound", "perhaps at a found bound"
"""The kinds of loss of numbers that are perhaps cut to a bound."""


def of_rows_without(loss: Loss, table: str, child: str) -> Loss:
    """Return a loss of a summary of child rows; its missing cells are of rows that have no child row.

    >>> str(of_rows_without(Loss("p.first", "missing or unreadable", 0.2, ""), "p", "visits"))
    'p.first: missing for 20% of the rows of p: no row of visits, or none with a value'
    """
    if loss.kind != "missing or unreadable" or loss.share is None:
        return loss
    text = (
        f"missing for {percent(loss.share)} of the rows of {table}: no row of {child}, or none with a value"
    )
    return replace(loss, text=text)


def in_order(losses: Iterable[Loss]) -> tuple[Loss, ...]:
    """Return losses by what they cost: cells that are surely lost, then those that may be true, then facts.

    Those of one cost are in the order of their shares, the largest first, and of their kinds.

    >>> some = [Loss("delinquent", "first value", 1.0, "100% of the cells have the value 0")]
    >>> some += [Loss("title", "other", 0.88, "88% of the cells are '(other)'")]
    >>> [loss.column for loss in in_order(some)]
    ['title', 'delinquent']
    """
    kinds = list(KINDS)

    def rank(loss: Loss) -> tuple[int, float, int]:
        cost = 2 if not loss.matters else int(KINDS[loss.kind].may_be_true)
        return cost, 1.0 if loss.share is None else -loss.share, kinds.index(loss.kind)

    return tuple(sorted(losses, key=rank))


class Named(Protocol):
    """A table of a release, which has a name if it is one of several."""

    @property
    def name(self) -> str | None:
        """Its name."""
        ...


def full_name(model: Named, column: str) -> str:
    """Return a column with the name of its table, if that is one of several."""
    return f"{model.name}.{column}" if model.name else column


def loss_of(model: Named, column: str, kind: str, share: float | None, text: str, detail: str = "") -> Loss:
    """Return the loss of a column of a table; a sum of shares above 1 counts as 1."""
    return Loss(full_name(model, column), kind, None if share is None else min(share, 1.0), text, detail)


def percent(share: float) -> str:
    """Return a share in percent, with a digit after the point if it is small.

    >>> percent(0.172), percent(0.0234), percent(0.00004)
    ('17%', '2.3%', '0.0%')
    """
    return f"{share:.0%}" if share >= 0.095 else f"{share:.1%}"
