"""The criteria that a release must meet, as a publisher writes them. Read and checked before any question."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from privsyn.arguments import check_between, check_column, check_whole
from privsyn.errors import InputError, about, did_you_mean, safe_repr, spelled
from privsyn.files import check_file, read_text
from privsyn.table.schema.box import Span, check_values
from privsyn.table.schema.schema import Schema
from privsyn.table.schema.yaml_file import parse

SHARE, RISK = 0.1, 0.05
"""Part of the budget for the tests, and the error probability, by default."""

GROUPS = 10
"""Groups of about equal size in which an ordered column of a margin is compared, by default."""

PERCENT = re.compile(r"([0-9]+(?:\.[0-9]+)?|\.[0-9]+) *%")

Variable: TypeAlias = str | Mapping[str, Any]
"""A column of numbers; or a condition on one column, which counts 1 where it is met and 0 elsewhere."""


class Criterion(ABC):
    """A largest error allowed. Settings without a default are needed; the last of them is the error."""

    where: Mapping[str, Any] = MappingProxyType({})

    @property
    def bound(self) -> float:
        """The largest error allowed."""
        return getattr(self, self.needed()[-1])

    @classmethod
    def needed(cls) -> list[str]:
        """Return the names of the settings that are needed."""
        settings = fields(cls)  # type: ignore[arg-type]
        return [field.name for field in settings if field.default is field.default_factory is MISSING]

    @property
    def variables(self) -> tuple[Variable, ...]:
        """What is summed over the rows, if anything."""
        return ()

    @property
    def conditions(self) -> Mapping[str, Any]:
        """Which rows the criterion is about, or which are counted."""
        return self.where

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the criterion names: those of the variables come first."""
        summed = (name for variable in self.variables for name in _names_of(variable))
        return tuple(dict.fromkeys((*summed, *self.conditions)))

    def check(self, schema: Schema) -> None:  # noqa: B027  # a margin fits any schema with its columns
        """Refuse a criterion that does not fit the schema."""

    @abstractmethod
    def __str__(self) -> str:
        """Return the criterion in words, for the ledger."""


def _names_of(variable: Variable) -> tuple[str, ...]:
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
        check_whole("groups", self.groups, minimum=2)

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

    def check(self, schema: Schema) -> None:
        """Refuse a column without numbers, and conditions that do not fit the schema."""
        if self.mean in self.where:
            raise InputError(f"{self.mean!r} is both averaged and in a condition")
        column = schema.coded[self.mean]
        if not column.has_numbers:
            raise InputError(f"{self.mean!r} is no column of numbers: give its margin, or a proportion")
        if (ends := column.number_range) is not None and self.within >= ends[1] - ends[0]:
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
        if _names_of(self.slope) == _names_of(self.against):
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
        if (match := PERCENT.fullmatch(self.within.strip())) is None:
            raise InputError(f'within is a number or a share such as "10%"; got {safe_repr(self.within)}')
        return check_between("within", float(match[1]) / 100, 1.0)

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The response and the regressor."""
        return self.slope, self.against

    def check(self, schema: Schema) -> None:
        """Refuse variables without numbers, and conditions that do not fit the schema."""
        for variable in self.variables:
            if isinstance(variable, str):
                if not schema.coded[variable].has_numbers:
                    raise InputError(
                        f"{variable!r} is no column of numbers: name a value, such as {{sex: Female}}"
                    )
            else:
                spans(variable, schema)
                if set(variable) & set(self.where):
                    raise InputError(f"{next(iter(variable))!r} is both in the slope and in a condition")
        spans(self.where, schema)

    def __str__(self) -> str:
        y, x = (variable if isinstance(variable, str) else in_words(variable) for variable in self.variables)
        error = f"{100 * self.bound:g} % of it" if self.relative else f"{self.bound:g}"
        return f"slope of {y} against {x}{among(self.where)} within {error}"


KINDS: dict[str, type[Criterion]] = {
    "margin": Margin,
    "mean": Mean,
    "proportion": Proportion,
    "slope": Slope,
}
"""Each kind of criterion by the key that names it."""


@dataclass(frozen=True)
class Criteria:
    """All criteria, the part of the budget for their tests, and the error probability.

    Parameters
    ----------
    criteria : tuple of Margin, Mean, Proportion or Slope
    share : float
        Part of the budget, between 0 and 1.
    risk : float
        The largest probability of accepting a table that breaks a criterion, below 1/2.
    """

    criteria: tuple[Criterion, ...]
    share: float = SHARE
    risk: float = RISK

    def __post_init__(self) -> None:
        object.__setattr__(self, "share", check_between("share", self.share, 1.0))
        object.__setattr__(self, "risk", check_between("risk", self.risk, 0.5))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that any criterion names."""
        return tuple(dict.fromkeys(name for criterion in self.criteria for name in criterion.columns))

    def check(self, schema: Schema) -> None:
        """Refuse criteria that do not fit the schema. No row is read."""
        for number, criterion in enumerate(self.criteria, 1):
            with about(f"criterion {number}"):
                for name in criterion.columns:
                    check_column("column", name, schema.coded)
                    if name in schema.randomised:
                        raise InputError(f"{name!r} was randomised by the respondents: it cannot be tested")
                    if name in schema.computed:
                        raise InputError(f"{name!r} is computed from other columns: name these")
                criterion.check(schema)


def check_accept(criteria: Criteria, schema: Schema | None, epsilon: float | None) -> None:
    """Refuse criteria without a budget, or that do not fit the schema, if it is known."""
    if epsilon is None:
        raise InputError(f"{spelled('accept')} needs {spelled('epsilon')}: its tests add noise")
    if schema is not None:
        with about(spelled("accept")):
            criteria.check(schema)


def read_criteria(accept: object) -> Criteria | None:
    """Return criteria, given as such, as plain data or as the path of a YAML file.

    Examples
    --------
    >>> read = read_criteria({"criteria": [{"margin": ["sex", "income"], "error": 0.03}], "risk": 0.01})
    >>> str(read.criteria[0]), read.share, read.risk
    ('total variation of sex x income at most 0.03', 0.1, 0.01)
    """
    if accept is None or isinstance(accept, Criteria):
        return accept
    if not isinstance(accept, str | PathLike):
        with about("accept"):
            return _from_plain(accept)
    check_file(Path(accept))
    text = read_text(Path(accept))
    with about(f"{accept}"):
        return _from_plain(parse(text))


def _from_plain(plain: object) -> Criteria:
    settings: dict[str, Any] = dict(plain) if isinstance(plain, Mapping) else {"criteria": plain}
    if further := set(settings) - {"criteria", "share", "risk"}:
        raise InputError(f"{safe_repr(min(map(str, further)))} is not known: criteria, share and risk are")
    listed = settings.pop("criteria", None)
    if not isinstance(listed, Sequence) or isinstance(listed, str) or not listed:
        raise InputError("'criteria:' is a list, each such as {margin: [sex, income], error: 0.03}")
    criteria: list[Criterion] = []
    for number, line in enumerate(listed, 1):
        with about(f"criterion {number}"):
            if not isinstance(line, Mapping):
                raise InputError("is a mapping such as {mean: age, within: 0.5}")
            kinds: list[Any] = [class_ for key, class_ in KINDS.items() if key in line]
            if len(kinds) != 1:
                meant = "" if kinds else did_you_mean(next(iter(line), None), KINDS)
                raise InputError(f"names exactly one of {', '.join(KINDS)}{meant}")
            names = [field.name for field in fields(kinds[0])]
            if unknown := [key for key in line if key not in names]:
                meant = did_you_mean(unknown[0], names) or f": it has {', '.join(names)}"
                raise InputError(f"{safe_repr(unknown[0])} is not known{meant}")
            if lacking := [key for key in kinds[0].needed() if key not in line]:
                raise InputError(f"{lacking[0]!r} is missing")
            criteria.append(kinds[0](**line))
    return Criteria(tuple(criteria), **settings)


def spans(where: Mapping[str, Any], schema: Schema) -> dict[str, Span]:
    """Return the values that each condition names; refuse what the schema does not list as public."""
    by_column = {}
    for name, condition in where.items():
        column = schema.coded[name]
        with about(f"column {name!r}"):
            if not column.is_public:
                raise InputError(f"a condition needs public values or bounds: {column.public_hint}")
            values = check_values(condition)
            if isinstance(values, Mapping) and column.lists_values:
                raise InputError("a range is of a column of numbers or times: list the values")
            span = by_column[name] = Span.of(column, values)
            if not span.missing and not span.touches(*map(np.atleast_1d, column.bounds)).any():
                raise InputError("no value within its bounds meets the condition: correct one of them")
    return by_column


def in_words(where: Mapping[str, Any]) -> str:
    """Return conditions as text.

    >>> in_words({"sex": "F", "age": {"low": 65}, "job": ["a", "b"]})
    'sex = F, age from 65, job = a or b'
    """
    words = []
    for name, condition in where.items():
        if isinstance(condition, Mapping):
            ends = [
                f"{word} {condition[end]}"
                for end, word in (("low", "from"), ("high", "to"))
                if end in condition
            ]
            words.append(f"{name} {' '.join(ends)}")
        else:
            words.append(
                f"{name} = {' or '.join(map(str, condition if isinstance(condition, list) else [condition]))}"
            )
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
