"""Kinds of column: listed values and numbers, those that are never counted, and, in `times`, times."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from privsyn.errors import InputError, safe_repr
from privsyn.table.schema.time_columns import Datetime, Duration, Time
from privsyn.table.schema.validation import (
    all_whole,
    both_or_neither,
    check_decimals,
    distinct_values,
    flag,
    normalise,
    normalise_shared,
    number_bounds,
    one_of,
    whole_number,
)

_FORMAT = re.compile(r"[^{}]*\{(:0?[0-9]{0,3}[dxX]?)?\}[^{}]*")
"""Text around one number."""

MAX_DECIMALS = 12


@dataclass(frozen=True)
class Categorical:
    """A column of a few listed values.

    Parameters
    ----------
    values : list of hashable values, optional
        The public list. Two values that Python calls equal (``1 == 1.0 == True``) cannot be told apart in a
        table either and count as a duplicate. Left out: the list is not public, and the values that enough
        rows share are found under privacy.
    other : hashable value, optional
        What a value that is not listed, or not found, becomes. Left out: if the values were listed, missing,
        or the first one where nothing may be missing; if they were found, ``"other"`` where the column's
        dtype can hold that, and else missing or the one most frequent.
    nullable : bool
        Whether a cell may be missing. Where nothing may be, a missing cell counts as the first value.
    missing : str or list of str
        Texts that stand for a missing cell in a file, beside the empty cell.

    Examples
    --------
    >>> Categorical(["Female", "Male"]).values
    ('Female', 'Male')
    >>> Categorical(["Rome", "Oslo"], other="elsewhere").values
    ('Rome', 'Oslo', 'elsewhere')
    """

    values: Sequence[Hashable] | None = None
    other: Hashable = field(default=None, kw_only=True)
    nullable: bool = field(default=True, kw_only=True)
    missing: str | Sequence[str] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        normalise_shared(self)
        if self.other is not None:
            normalise(self, other=distinct_values([self.other])[0])
        if self.values is not None:
            values = distinct_values(self.values)
            extra = () if self.other is None or self.other in values else (self.other,)
            normalise(self, values=values + extra)

    @property
    def is_public(self) -> bool:
        """Whether the list of values is given."""
        return self.values is not None


@dataclass(frozen=True)
class Numerical:
    """A column of numbers between public bounds; what lies outside is clipped to them.

    Parameters
    ----------
    low, high : number, optional
        The public bounds, both included. Left out: they are not public, and are found under privacy, at
        powers of two and half-way between them.
    integer : bool, optional
        Whether all numbers are whole. Left out: the column's dtype decides; in a CSV, which has none, they
        are whole if both bounds are written without a point and no decimals are given.
    decimals : int, optional
        Decimals that the numbers have, if they have a fixed number of them. Left out: those of a decimal
        dtype, if it has at most four.
    objects : {"number", "decimal"}
        What a column of Python objects holds: plain numbers, or `decimal.Decimal`.
    bins : int
        At most so many equal intervals are told apart.
    nullable : bool
        Whether a cell may be missing. A cell that is no number counts as missing, or as `low` where nothing
        may be missing.
    missing : str or list of str
        Texts that stand for a missing cell in a file, beside the empty cell.

    Examples
    --------
    >>> Numerical(5, 1)
    Traceback (most recent call last):
    privsyn.errors.InputError: low 5 is above high 1
    """

    low: float | None = None
    high: float | None = None
    integer: bool | None = field(default=None, kw_only=True)
    decimals: int | None = field(default=None, kw_only=True)
    objects: Literal["number", "decimal"] = field(default="number", kw_only=True)
    bins: int = field(default=32, kw_only=True)
    nullable: bool = field(default=True, kw_only=True)
    missing: str | Sequence[str] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        normalise_shared(self)
        one_of("objects", self.objects, ("number", "decimal"))
        if self.integer is not None:
            normalise(self, integer=flag("integer", self.integer))
        if self.decimals is not None:
            normalise(self, decimals=whole_number("decimals", self.decimals, 0, MAX_DECIMALS))
            if self.integer:
                raise InputError("integer and decimals exclude each other: give one of them")
        low, high = both_or_neither(self.low, self.high)
        if low is None:
            return
        low, high = number_bounds(low, high)
        if self.integer or self.decimals is not None:
            check_decimals(low, high, self.decimals or 0)
        normalise(self, low=low, high=high)

    @property
    def is_public(self) -> bool:
        """Whether the bounds are given."""
        return self.low is not None

    @property
    def is_whole(self) -> bool:
        """Whether all numbers are whole as far as this column says, which is what counts in a CSV.

        >>> Numerical(0, 9).is_whole, Numerical(0.0, 9.0).is_whole, Numerical(0, 9, integer=False).is_whole
        (True, False, False)
        """
        if self.integer is not None or self.decimals is not None:
            return bool(self.integer)
        low, high = self.low, self.high
        return isinstance(low, int) and isinstance(high, int) and all_whole(low, high)


@dataclass(frozen=True)
class Identifier:
    """A column that names the row. Its cells are never looked at: new names are made for synthetic rows.

    Parameters
    ----------
    format : str, optional
        Text around one running number, as in ``"CUST-{:06d}"``. Left out: whole numbers from 1 where the
        dtype holds numbers, and in a CSV; random UUIDs where it holds text.

    Examples
    --------
    >>> Identifier("CUST-{:06d}").format.format(7)
    'CUST-000007'
    """

    format: str | None = None

    def __post_init__(self) -> None:
        if self.format is None:
            return
        if not isinstance(self.format, str) or not _FORMAT.fullmatch(self.format):
            raise InputError(
                f"format {safe_repr(self.format)} is not text around one number, such as 'CUST-{{:06d}}'"
            )

    @property
    def is_public(self) -> bool:
        """Nothing of it is private."""
        return True


@dataclass(frozen=True)
class Text:
    """A column of free text, which is left out of the synthetic table. Its cells are never looked at.

    Examples
    --------
    >>> Text().is_public
    True
    """

    @property
    def is_public(self) -> bool:
        """Nothing of it is told."""
        return True


Ordinal = Numerical | Datetime | Time | Duration
"""What is coded by its place between two bounds."""

Coded = Categorical | Ordinal
"""What is counted."""

Column = Coded | Identifier | Text
