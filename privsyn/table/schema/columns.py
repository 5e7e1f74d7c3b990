"""Kinds of column: listed values, numbers, and columns that are never counted."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self, cast

import numpy as np

from privsyn.errors import InputError, did_you_mean, replace_errors, safe_repr
from privsyn.marginals.types import Floats
from privsyn.table.schema.column_base import Coded, Column, Ordinal
from privsyn.table.schema.generated import Faker, Generated, Identifier
from privsyn.table.schema.steps import (
    MAX_DECIMALS,
    decimals_of_step,
    multiples_around,
    number_step,
)
from privsyn.table.schema.time_columns import Datetime, Duration, Time
from privsyn.table.schema.validation import (
    both_or_neither,
    check_decimals,
    distinct_values,
    flag,
    normalise,
    normalise_shared,
    number_bounds,
    probability,
    whole_number,
)

__all__ = [
    "COLUMNS",
    "Categorical",
    "Coded",
    "Column",
    "Faker",
    "Generated",
    "Identifier",
    "Numerical",
    "Ordinal",
    "Text",
]


@dataclass(frozen=True)
class Categorical(Coded):
    """A column of a few listed values.

    Parameters
    ----------
    values : list of hashable values, optional
        The public list. Two values that are equal in Python (``1 == 1.0 == True``) count as a duplicate.
        Default: the list is not public, and the values that enough rows share are found under privacy.
    other : hashable value, optional
        Replaces a value that is not listed, or not found. Default: if the values are listed, missing, or the
        first value with ``nullable=False``; if they are found, ``"other"`` where the dtype can hold that, and
        else missing or the most frequent value.
    nullable : bool
        Whether a cell may be missing. If not, a missing cell counts as the first value.
    missing : str or list of str
        Texts that mean a missing cell in a file, in addition to the empty cell.
    keep : float, optional
        The respondents randomised this column: each cell was kept with this probability, and else replaced by
        any of the listed values, or by a missing cell if `nullable`, all with the same probability. See
        `privsyn.randomize`. Default: the column was not randomised.

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
    keep: float | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        normalise_shared(self)
        if self.keep is not None:
            normalise(self, keep=probability("keep", self.keep))
            if self.values is None:
                raise InputError("keep needs the list of values: randomised response draws from it")
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

    @property
    def bounds(self) -> tuple[float, float]:
        """The first and the last place in the list."""
        return 0.0, len(cast(Sequence[Hashable], self.values)) - 1.0

    def number_of(self, value: Any) -> float:
        """Return the place of a value in the list."""
        values = cast(Sequence[Hashable], self.values)
        try:
            return float(values.index(value))
        except ValueError:
            meant = did_you_mean(value, values)
            raise InputError(f"{safe_repr(value)} is not one of its values{meant}") from None

    def intervals_of(self, ends: Mapping[str, Any]) -> tuple[Floats, Floats]:
        """Return the place of each listed value in the range."""
        low, high = ends.get("low", -np.inf), ends.get("high", np.inf)
        values: Any = self.values
        with replace_errors("a range needs numbers or dates: list the values", TypeError):
            places = np.flatnonzero([low <= value <= high for value in values]).astype(np.float64)
        return places, places

    @property
    def public_hint(self) -> str:
        """What to do to make the values public."""
        return "list its values: Categorical([...])"


@dataclass(frozen=True)
class Numerical(Ordinal):
    """A column of numbers between public bounds. Numbers outside are clipped to them.

    Parameters
    ----------
    low, high : number, optional
        The public bounds, both included. Default: they are found under privacy, at powers of two and half-way
        between them.
    integer : bool, optional
        Whether all numbers are whole. Default: the dtype decides. A CSV has none: its numbers are real unless
        this, ``decimals=0`` or a whole `step` says otherwise, whether the bounds are written 0 or 0.0.
    decimals : int, optional
        How many decimals all numbers have. Default: those of a decimal dtype, if it has at most four.
    step : number, optional
        All numbers are multiples of it, such as 0.05 or 10_000. A number between two multiples is taken to
        the nearer one. The outermost multiples within the bounds are the first and the last number.
    bins : int
        The largest number of intervals that are counted.
    nullable : bool
        Whether a cell may be missing. A cell that is no number counts as missing, or with ``nullable=False``
        as `low`.
    missing : str or list of str
        Texts that mean a missing cell in a file, in addition to the empty cell.

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
    step: float | None = field(default=None, kw_only=True)
    bins: int = field(default=32, kw_only=True)
    nullable: bool = field(default=True, kw_only=True)
    missing: str | Sequence[str] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        normalise_shared(self)
        if self.integer is not None:
            normalise(self, integer=flag("integer", self.integer))
        if self.decimals is not None:
            normalise(self, decimals=whole_number("decimals", self.decimals, 0, MAX_DECIMALS))
            if self.integer:
                raise InputError("integer and decimals exclude each other: give one of them")
        if self.step is not None:
            step = number_step(self.step, integer=self.integer, decimals=self.decimals)
            normalise(self, step=step)
        low, high = both_or_neither(self.low, self.high)
        if low is None:
            return
        low, high = number_bounds(low, high)
        if self.integer or self.decimals is not None:
            check_decimals(low, high, self.decimals or 0)
        normalise(self, low=low, high=high)
        if self.step is not None:
            check_decimals(*self.bounds, decimals_of_step(self.step) or 0)

    def number_of(self, value: Any) -> float:
        """Return a finite number as a double."""
        if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
            raise InputError(f"{safe_repr(value)} is not a number")
        return float(value)

    def with_bounds(self, found: tuple[float, float] | None, *, whole: bool) -> Self:
        """Return the column with these bounds, 0 and 1 by default."""
        low, high = found or (0.0, 1.0)
        if self.step is not None:
            low, high = multiples_around(low, high, self.step, decimals_of_step(self.step) or 0)
        if whole or self.integer:
            return replace(self, low=int(low), high=int(high))
        return replace(self, low=low, high=high)

    @property
    def fixed_decimals(self) -> int | None:
        """How many decimals the numbers have as far as this column says; None if they are real."""
        if self.step is not None:
            return decimals_of_step(self.step)
        return 0 if self.integer else self.decimals

    @property
    def grid_step(self) -> float | None:
        """The step."""
        return self.step


@dataclass(frozen=True)
class Text(Column):
    """A column of free text, which the synthetic table leaves out. Its cells are never read.

    Examples
    --------
    >>> Text().is_public
    True
    """


COLUMNS: dict[str, type[Column]] = {
    "categorical": Categorical,
    "numerical": Numerical,
    "datetime": Datetime,
    "time": Time,
    "duration": Duration,
    "identifier": Identifier,
    "faker": Faker,
    "text": Text,
}
"""Each kind of column by its name in a schema file."""
