"""Column: what every kind of column can do. The kinds themselves are in `columns` and `time_columns`.

A kind of column is a frozen dataclass whose fields are its settings in a schema file. Constraints and
encoders see its values as numbers: a listed value is its place in the list, a time its steps.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from math import inf
from typing import Any, Self

import numpy as np

from privsyn.errors import InputError
from privsyn.marginals.types import Floats
from privsyn.table.schema.plain_values import changed_settings
from privsyn.table.schema.steps import multiples_within

HARDLY = 2.0**-20
"""The step of real numbers, in parts of the distance of their bounds: too small to notice."""


class Column(ABC):  # noqa: B024  # a kind that is never counted needs no method
    """What the owner declares public about one column."""

    @property
    def is_public(self) -> bool:
        """Whether nothing about the column is left to be found under privacy."""
        return True

    def to_plain(self, what: str) -> dict[str, Any]:
        """Return the settings that differ from their defaults as plain data; `what` begins an error."""
        return changed_settings(what, self)


class Coded(Column):
    """A column that is counted."""

    nullable: bool
    missing: str | Sequence[str]

    @property
    @abstractmethod
    def bounds(self) -> tuple[float, float]:
        """The least and the largest number; the values or bounds are known."""

    @abstractmethod
    def number_of(self, value: Any) -> float:
        """Return the number of a value that a constraint names; refuse one that the column cannot have."""

    @abstractmethod
    def intervals_of(self, ends: Mapping[str, Any]) -> tuple[Floats, Floats]:
        """Return the low and high ends of the intervals in a range, whose `low` or `high` may be absent."""

    @property
    def fixed_decimals(self) -> int | None:
        """How many decimals the numbers have; None if they are real."""
        return 0

    @property
    def resolution(self) -> float:
        """The least distance of two numbers."""
        if self.fixed_decimals is not None:
            return 10.0**-self.fixed_decimals
        low, high = self.bounds
        return max((high - low) * HARDLY, 1e-300)

    @property
    @abstractmethod
    def public_hint(self) -> str:
        """What to do, and how, to make the values or bounds public."""


class Ordinal(Coded):
    """A column whose values have an order, and lie between two bounds."""

    low: Any
    high: Any
    bins: int

    @property
    def is_public(self) -> bool:
        """Whether the bounds are given."""
        return self.low is not None

    @property
    def bounds(self) -> tuple[float, float]:
        """The bounds as numbers; with a step, the first and the last multiple within them."""
        low, high = self.number_of(self.low), self.number_of(self.high)
        if self.grid_step is None:
            return low, high
        return multiples_within(low, high, self.grid_step, self.fixed_decimals or 0)

    @property
    def grid_step(self) -> float | None:
        """The number of which all numbers are multiples; None if the schema says nothing about it."""
        return None

    @property
    def resolution(self) -> float:
        """The least distance of two numbers."""
        return super().resolution if self.grid_step is None else self.grid_step

    def intervals_of(self, ends: Mapping[str, Any]) -> tuple[Floats, Floats]:
        """Return the range as one interval."""
        low = self.number_of(ends["low"]) if "low" in ends else -inf
        high = self.number_of(ends["high"]) if "high" in ends else inf
        if low > high:
            raise InputError("the low end of a range is above its high end")
        return np.array([low]), np.array([high])

    @property
    def scale(self) -> float:
        """The size of one unit in the unit in which columns of this kind are compared: for times, seconds."""
        return 1.0

    @property
    def limits(self) -> tuple[float, float]:
        """The least and the largest number that any column of this kind can have."""
        return -inf, inf

    def with_bounds(self, found: tuple[float, float] | None, *, whole: bool) -> Self:
        """Return the column with bounds that were found under privacy.

        Parameters
        ----------
        found : pair of float, optional
            The bounds as numbers. Default: bounds for a column in which nothing was found.
        whole : bool
            Whether the dtype of the column holds whole numbers only.
        """
        raise InputError(self.public_hint)

    @property
    def public_hint(self) -> str:
        """What to do to make the bounds public."""
        return f"give its bounds: {type(self).__name__}(low, high)"
