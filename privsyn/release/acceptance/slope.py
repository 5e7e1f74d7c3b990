"""The criterion on the coefficient of a linear model: the slope of a straight line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from privsyn.arguments import check_between
from privsyn.errors import InputError, safe_repr
from privsyn.release.acceptance.criterion import (
    Criterion,
    Variable,
    among,
    check_where,
    in_words,
    names_of,
    spans,
)
from privsyn.table.schema.columns import Numerical
from privsyn.table.schema.schema import Schema

PERCENT = re.compile(r"([0-9]+(?:\.[0-9]+)?|\.[0-9]+) *%")


@dataclass(frozen=True)
class Slope(Criterion):
    """The least-squares slope of one variable against another, through the means of the released rows.

    Let x and y be the numbers of a row, and mx and my their means over the released rows. The slope of a
    table is ``sum (x - mx) (y - my) / sum (x - mx)^2``. In the released table this is the coefficient of
    ordinary least squares. In the private table it differs from that by ``dx e / (v + dx^2)``, where v is the
    variance of x, dx its mean less mx, and e how far the private line lies above my at mx. So it is the same
    if the mean of x is right.

    Parameters
    ----------
    slope : str, or mapping of one column to a value, a list of values or a range
        A column of numbers; or a condition, which counts 1 where it is met and 0 elsewhere. The slope is then
        that of a linear probability model.
    against : the same
        The regressor.
    within : float or str
        The largest difference allowed between the private slope and the released one, or a percentage of the
        released one, such as "10%".
    where : mapping of a column to a value, a list of values or a range, optional
        Which rows. It may name the two columns of numbers: their ranges limit what one row can do.
    """

    slope: Variable
    against: Variable
    within: float | str
    where: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, variable in (("slope", self.slope), ("against", self.against)):
            if not (isinstance(variable, str) or (isinstance(variable, Mapping) and len(variable) == 1)):
                raise InputError(f"{name} is one column of numbers, or a condition such as {{sex: Female}}")
        if names_of(self.slope) == names_of(self.against):
            raise InputError("slope and against are different columns")
        check_where(self.where)
        _ = self.bound

    @property
    def relative(self) -> bool:
        """Whether the error is a share of the released slope."""
        return isinstance(self.within, str)

    @property
    def bound(self) -> float:
        """The largest error allowed, as a share if `relative`."""
        if not isinstance(self.within, str):
            return check_between("within", self.within)
        if (found := PERCENT.fullmatch(self.within.strip())) is None:
            raise InputError(f'within is a number or a share such as "10%"; got {safe_repr(self.within)}')
        return check_between("within", float(found[1]) / 100, 1.0)

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The response and the regressor."""
        return self.slope, self.against

    @property
    def conditions(self) -> Mapping[str, Any]:
        """Which rows the line is fitted to."""
        return self.where

    def check(self, schema: Schema) -> None:
        """Refuse variables without numbers, and conditions that do not fit the schema."""
        for variable in self.variables:
            if isinstance(variable, str):
                if not isinstance(schema.coded[variable], Numerical):
                    raise InputError(
                        f"{variable!r} is no column of numbers: name a value, such as {{sex: Female}}"
                    )
            else:
                spans(variable, schema)
                if set(variable) & set(self.where):
                    raise InputError(f"{next(iter(variable))!r} is both in the slope and in a condition")
        spans(self.where, schema)

    def __str__(self) -> str:
        y, x = (each if isinstance(each, str) else in_words(each) for each in self.variables)
        error = f"{100 * self.bound:g} % of it" if self.relative else f"{self.bound:g}"
        return f"slope of {y} against {x}{among(self.where)} within {error}"
