"""The kinds of criteria on counts, means and shares, each checked against the schema before any question.

A condition on rows is a value, a list of values or a range of each column.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, TypeAlias

import numpy as np

from privsyn.arguments import check_between, check_whole
from privsyn.errors import InputError, about
from privsyn.table.schema.columns import Numerical
from privsyn.table.schema.condition import Span
from privsyn.table.schema.schema import Schema

GROUPS = 10
"""Groups of about equal size in which an ordered column of a margin is compared, by default."""

Variable: TypeAlias = str | Mapping[str, Any]
"""A column of numbers; or a condition on one column, which counts 1 where it is met and 0 elsewhere."""


class Criterion(ABC):
    """A largest error allowed. Settings without a default are needed; the last of them is the error."""

    @property
    def bound(self) -> float:
        """The largest error allowed."""
        return getattr(self, self.needed()[-1])

    @classmethod
    def needed(cls) -> list[str]:
        """Return the names of the settings that are needed."""
        known = fields(cls)  # type: ignore[arg-type]
        return [field.name for field in known if field.default is field.default_factory is MISSING]

    @property
    def variables(self) -> tuple[Variable, ...]:
        """What is summed over the rows, if anything."""
        return ()

    @property
    def conditions(self) -> Mapping[str, Any]:
        """Which rows the criterion is about, or which are counted."""
        return {}

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the criterion names: those of the variables come first."""
        summed = (name for variable in self.variables for name in names_of(variable))
        return tuple(dict.fromkeys((*summed, *self.conditions)))

    def check(self, schema: Schema) -> None:  # noqa: B027  # a margin fits any schema with its columns
        """Refuse a criterion that does not fit the schema."""

    @abstractmethod
    def __str__(self) -> str:
        """Return the criterion in words, for the ledger."""


def names_of(variable: Variable) -> tuple[str, ...]:
    """Return the column of a variable, in a tuple."""
    return (variable,) if isinstance(variable, str) else tuple(variable)


@dataclass(frozen=True)
class Margin(Criterion):
    """The total variation distance of a table of counts, as shares, between the private and the released.

    Parameters
    ----------
    margin : tuple of str
        The columns of the table.
    error : float
        The largest distance allowed, between 0 and 1.
    groups : int
        Groups of about equal size in which numbers and times are compared.
    """

    margin: Sequence[str]
    error: float
    groups: int = GROUPS

    def __post_init__(self) -> None:
        names = (self.margin,) if isinstance(self.margin, str) else self.margin
        if not isinstance(names, list | tuple) or not names or len(set(map(repr, names))) < len(names):
            raise InputError("margin is a list of different columns")
        object.__setattr__(self, "margin", tuple(names))
        object.__setattr__(self, "error", check_between("error", self.error, 1.0))
        check_whole("groups", self.groups, least=2)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the criterion names."""
        return tuple(self.margin)

    def __str__(self) -> str:
        return f"total variation of {' x '.join(self.margin)} at most {self.error:g}"


@dataclass(frozen=True)
class Mean(Criterion):
    """The mean of a column of numbers, over all rows or those that meet conditions.

    Parameters
    ----------
    mean : str
        The column.
    within : float
        The largest difference allowed between the private mean and the released one.
    where : mapping of a column to a value, a list of values or a range, optional
        Which rows. A range is ``{low: 30, high: 40}``, both ends included; either may be left out.
    """

    mean: str
    within: float
    where: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.mean, str):
            raise InputError("mean is the name of one column")
        object.__setattr__(self, "within", check_between("within", self.within))
        check_where(self.where)

    @property
    def variables(self) -> tuple[Variable, ...]:
        """What is averaged."""
        return (self.mean,)

    @property
    def conditions(self) -> Mapping[str, Any]:
        """Which rows are averaged."""
        return self.where

    def check(self, schema: Schema) -> None:
        """Refuse a column without numbers, and conditions that do not fit the schema."""
        if self.mean in self.where:
            raise InputError(f"{self.mean!r} is both averaged and in a condition")
        column = schema.coded[self.mean]
        if not isinstance(column, Numerical):
            raise InputError(f"{self.mean!r} is no column of numbers: give its margin, or a proportion")
        if column.low is not None and column.high is not None and self.within >= column.high - column.low:
            raise InputError(
                f"no mean of {self.mean!r} errs by {self.within:g}: its bounds are closer together"
            )
        spans(self.where, schema)

    def __str__(self) -> str:
        return f"mean of {self.mean}{among(self.where)} within {self.within:g}"


@dataclass(frozen=True)
class Proportion(Criterion):
    """The share of rows that meet conditions.

    Parameters
    ----------
    proportion : mapping of a column to a value, a list of values or a range
    within : float
        The largest difference allowed between the private share and the released one.
    """

    proportion: Mapping[str, Any]
    within: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "within", check_between("within", self.within, 1.0))
        check_where(self.proportion)
        if not self.proportion:
            raise InputError("proportion needs at least one condition")

    @property
    def conditions(self) -> Mapping[str, Any]:
        """Which rows are counted."""
        return self.proportion

    def check(self, schema: Schema) -> None:
        """Refuse conditions that do not fit the schema."""
        spans(self.proportion, schema)

    def __str__(self) -> str:
        return f"share of rows{among(self.proportion)} within {self.within:g}"


def spans(where: Mapping[str, Any], schema: Schema) -> dict[str, Span]:
    """Return the values that each condition names; refuse what the schema does not list as public."""
    found = {}
    for name, said in where.items():
        column = schema.coded[name]
        with about(f"column {name!r}"):
            if not column.is_public:
                raise InputError(f"a condition needs public values or bounds: {column.public_hint}")
            if isinstance(said, Mapping):
                if not said or set(said) - {"low", "high"} or column.lists_values:
                    raise InputError("a range is {low: ..., high: ...}, of a column of numbers or times")
                said = {end: value for end, value in said.items() if value is not None}
            found[name] = Span.of(column, tuple(said) if isinstance(said, list) else said)
            if not found[name].missing and not found[name].touches(*map(np.atleast_1d, column.bounds)).any():
                raise InputError("no value within its bounds meets the condition: correct one of them")
    return found


def in_words(where: Mapping[str, Any]) -> str:
    """Return conditions as text.

    >>> in_words({"sex": "F", "age": {"low": 65}, "job": ["a", "b"]})
    'sex = F, age from 65, job = a or b'
    """
    words = []
    for name, said in where.items():
        if isinstance(said, Mapping):
            ends = [f"{word} {said[end]}" for end, word in (("low", "from"), ("high", "to")) if end in said]
            words.append(f"{name} {' '.join(ends)}")
        else:
            words.append(f"{name} = {' or '.join(map(str, said if isinstance(said, list) else [said]))}")
    return ", ".join(words)


def among(where: Mapping[str, Any]) -> str:
    """Return the rows that meet conditions as the end of a sentence; nothing if there is no condition.

    >>> among({"sex": "F"}), among({})
    (' where sex = F', '')
    """
    return f" where {in_words(where)}" if where else ""


def check_where(where: object) -> None:
    """Refuse conditions that are no mapping."""
    if not isinstance(where, Mapping):
        raise InputError("conditions are a mapping such as {sex: Female, age: {low: 30, high: 40}}")
