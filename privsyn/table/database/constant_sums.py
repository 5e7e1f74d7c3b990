"""Sums of columns that are the same in all rows of one parent, as year - age is in all years of a person."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from privsyn.errors import InputError, about
from privsyn.marginals.domain import Floats, Numbers
from privsyn.table.database.computed_above import CONSTANT, ComputedAbove, SideReader, sum_in_words
from privsyn.table.enforcement.total import Total
from privsyn.table.schema.columns import Coded, Numerical
from privsyn.table.schema.constraint import Columns


@dataclass(frozen=True)
class ConstantSum:
    """Requires a weighted sum of columns to be the same in all rows of one parent.

    The sum is counted once a parent, and one of the columns is computed from it in each synthetic row.

    Parameters
    ----------
    parts : tuple of (column, factor)

    Examples
    --------
    >>> rule = ConstantSum.read("year - age is constant")
    >>> print(rule, "|", rule.computation(["year"]))
    year - age is constant | age == year - `year - age`
    """

    parts: tuple[tuple[str, float], ...]

    sentence: ClassVar[re.Pattern[str]] = re.compile(r"(.+?) +is +constant")

    @classmethod
    def read(cls, text: object) -> ConstantSum | None:
        """Return the rule that a sentence declares; None if it is no such sentence.

        Raises
        ------
        InputError
            If it is one, and names no two columns.
        """
        match = cls.sentence.fullmatch(text.strip()) if isinstance(text, str) else None
        if match is None:
            return None
        with about(repr(match[0][:100])):
            return cls.of(match[1])

    @classmethod
    def of(cls, name: str) -> ConstantSum:
        """Return the rule on the sum that has a name."""
        reader = SideReader()
        factors, number = reader.weighted_sum(reader.parse(reader.unquoted(name)))
        if number or not factors:
            raise InputError("it is about a sum or a difference of columns: leave out the number")
        sides = [reader.sides[column] for column in factors]
        if any(table for table, _ in sides):
            raise InputError("it is about columns of its own table: leave out the name of the table")
        if len(factors) < 2 or not all(factors.values()):
            advice = f"add it to the list constant, as in constant: [{sides[0][1]}]"
            raise InputError(f"it is about a sum or a difference of columns; of one column alone, {advice}")
        return cls(
            tuple((column, factor) for (_, column), factor in zip(sides, factors.values(), strict=True))
        )

    def __str__(self) -> str:
        return f"{self.name} is constant"

    @property
    def name(self) -> str:
        """The sum, as an expression: its name as a column of the parent."""
        return sum_in_words(((None, column), factor) for column, factor in self.parts)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the sum."""
        return tuple(column for column, _ in self.parts)

    def computation(self, held: Collection[str]) -> ComputedAbove:
        """Return how the last column that is not `held` follows from the sum and the others.

        Of s = x - y the last column is y = x - s.
        """
        free = (column for column, factor in reversed(self.parts) if abs(factor) == 1 and column not in held)
        column = next(free, None)
        if column is None:
            raise InputError(
                f"{str(self)!r}: one of its columns is computed from the others, and each has another rule or"
                " a factor: leave out one of these rules"
            )
        sign = dict(self.parts)[column]
        rest = [((None, part), -sign * factor) for part, factor in self.parts if part != column]
        parts = sorted([*rest, ((CONSTANT, self.name), sign)], key=lambda part: part[1] < 0)
        return ComputedAbove((None, column), tuple(parts))

    def kind(self, columns: Columns) -> Coded:
        """Return the kind of the sum, with the bounds that follow from its columns; none if these have none.

        >>> years = {"year": Numerical(1984, 1988, integer=True), "age": Numerical(25, 64, integer=True)}
        >>> ConstantSum.of("year - age").kind(years).bounds
        (1920.0, 1963.0)
        """
        for column in self.columns:
            if not isinstance(columns[column], Numerical):
                raise InputError(f"{str(self)!r}: {column!r} is no column of numbers")
        decimals = self._total.computation(columns).decimals
        counted = Numerical(decimals=decimals) if decimals else Numerical(integer=decimals == 0)
        return {self.name: counted, **self._total.derive({**columns, self.name: counted})}[self.name]

    def sums(self, columns: Columns, numbers: Numbers) -> Floats:
        """Return the sum of each row; NaN where a column is missing."""
        with np.errstate(over="ignore", invalid="ignore"):  # a warning would reveal a cell
            return self._total.computation(columns).make(numbers)

    @property
    def _total(self) -> Total:
        return Total(self.name, dict(self.parts))
