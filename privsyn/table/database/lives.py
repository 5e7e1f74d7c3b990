"""Rules of lives: what holds from row to row among the rows of one parent, such as the years of a person.

They are public. Each rule is a sentence of the constraints of a `Table`, and one class here.
"""

from __future__ import annotations

import ast
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd

from privsyn.errors import InputError, did_you_mean, safe_repr
from privsyn.marginals.counting import ranks
from privsyn.marginals.domain import Ints, Mask, Numbers
from privsyn.synthesis.limits import RowsWithCode
from privsyn.synthesis.siblings import NO_RULES, DistinctCodes, SiblingRules, Step
from privsyn.table.database.summaries import text_of
from privsyn.table.schema.columns import Coded, Numerical, Ordinal
from privsyn.table.schema.draws import Cells

COLUMN = r"(`[^`]+`|[^\s`'\"=<>!(),&|~]+)"
"""A column in a sentence: in backticks, or a name without blanks."""


class LifeRule(ABC):
    """A rule on the rows of one parent, which a sentence declares.

    A rule for another kind of sentence is one more class, and a place in `life_sentences.LIFE_RULES`.
    """

    sentence: ClassVar[re.Pattern[str]]
    """What a sentence looks like; its groups are what `of_match` reads."""

    needs_order: ClassVar[bool] = True
    """Whether the rule means rows in an order."""

    separates = True
    """Whether rows keep the rule only if each value of the columns has a code of its own."""

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """The columns that the rule names."""

    @classmethod
    @abstractmethod
    def of_match(cls, match: re.Match[str]) -> Self:
        """Return the rule that a sentence of this class declares."""

    def check(self, columns: Mapping[str, Coded]) -> None:  # noqa: B027  # most rules take any column
        """Refuse columns on which the rule has no meaning; those that are missing here are unknown."""

    def check_counted(self, columns: Mapping[str, Coded]) -> None:
        """Refuse columns, all of which are counted, with which no synthetic row could keep the rule."""
        self.check(columns)

    def most_rows(self, columns: Mapping[str, Coded]) -> float:  # most rules leave any number
        """Return how many rows of a parent can keep the rule."""
        return np.inf

    @property
    def ways(self) -> dict[str, bool]:
        """The columns whose values go one way from row to row, and whether they rise."""
        return {}

    @property
    def differing(self) -> tuple[str, ...]:
        """The columns in which no two rows of a parent have the same values, alone or together."""
        return ()

    @abstractmethod
    def explain(self, parent: str) -> str:
        """Return what the rule says of the rows of a `parent`, such as "one worker", in plain English."""

    @abstractmethod
    def in_codes(
        self, columns: Mapping[str, Coded], cells: Mapping[str, Cells], crowded: Mapping[str, Mask]
    ) -> SiblingRules:
        """Return the rule for synthetic rows, in merged codes.

        Parameters
        ----------
        columns : mapping of a name to a column
        cells : mapping of a name to its Cells
        crowded : mapping of a name to a boolean array of shape (merged codes,)
            The codes that have fewer values than a parent may have rows.
        """

    @abstractmethod
    def broken(self, columns: Mapping[str, Coded], numbers: Numbers, parents: Ints) -> Mask:
        """Return which rows break the rule. A missing cell breaks none.

        Parameters
        ----------
        columns : mapping of a name to a column
        numbers : mapping of a name to an array of shape (rows,)
            The cells as constraints read them, NaN where they are missing.
        parents : integer array of shape (rows,)
            The parent of each row. The rows of a parent stand together, in their order.
        """


@dataclass(frozen=True)
class ColumnRule(LifeRule):
    """A rule that names one column."""

    column: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the rule names."""
        return (self.column,)


@dataclass(frozen=True)
class ValueRule(ColumnRule):
    """A rule that names one column, and a value that the column lists."""

    value: Any

    @property
    def comes_once(self) -> bool:
        """Whether at most one row of a parent has the value."""
        return False

    @classmethod
    def of_match(cls, match: re.Match[str]) -> Self:
        """Return the rule that a sentence declares."""
        return cls(_name(match[1]), _value(match[2]))

    def check(self, columns: Mapping[str, Coded]) -> None:
        """Refuse a column without a list of values, or a value that it does not list."""
        column, name = columns.get(self.column), self.column
        if column is None:
            return
        if not column.lists_values:
            raise InputError(f"{str(self)!r}: declare {name!r} as categorical, with its list of values")
        if column.listed and self.value not in column.listed:
            meant = did_you_mean(self.value, column.listed)
            value = safe_repr(self.value)
            raise InputError(f"{str(self)!r}: the schema lists no value {value} of {name!r}{meant}")

    def check_counted(self, columns: Mapping[str, Coded]) -> None:
        """Refuse a column whose values are not public: one of them must be the value."""
        super().check_counted(columns)
        if not columns[self.column].is_public:
            raise InputError(f"{str(self)!r}: list the values of {self.column!r}: one must be {self.value!r}")

    def code(self, columns: Mapping[str, Coded], cells: Mapping[str, Cells]) -> int:
        """Return the merged code of the value."""
        number = columns[self.column].number_of(self.value)
        return int(cells[self.column].merged_codes(np.array([number]))[0])

    def holds(self, columns: Mapping[str, Coded], numbers: Numbers) -> Mask:
        """Return which rows have the value; none if the column does not list it."""
        column = columns[self.column]
        number = column.number_of(self.value) if self.value in column.listed else np.nan
        return np.asarray(numbers[self.column] == number)


@dataclass(frozen=True)
class Monotone(ColumnRule):
    """Requires the values of a column to go one way from row to row.

    Parameters
    ----------
    column : str
    way : one of `WAYS`

    Examples
    --------
    >>> rule = Monotone("year", "rises")
    >>> print(rule, rule.strict, rule.rising)
    year rises True True
    >>> rule.broken({}, {"year": np.array([1.0, 2, 2, 1])}, np.array([0, 0, 0, 1])).tolist()
    [False, False, True, False]
    >>> rule.explain("one worker")
    'year rises from row to row of one worker, and no two rows have the same.'
    """

    way: str

    WAYS: ClassVar[Mapping[str, tuple[bool, bool]]] = {
        "rises": (True, True),
        "falls": (False, True),
        "never falls": (True, False),
        "never rises": (False, False),
    }
    """Whether values rise, and whether two rows of a parent have different values."""

    sentence = re.compile(rf"{COLUMN} +(rises|falls|never +falls|never +rises)")

    def __str__(self) -> str:
        return f"{text_of((None, self.column))} {self.way}"

    @classmethod
    def of_match(cls, match: re.Match[str]) -> Self:
        """Return the rule that a sentence declares."""
        return cls(_name(match[1]), " ".join(match[2].split()))

    @property
    def rising(self) -> bool:
        """Whether values go up; else they go down."""
        return self.WAYS[self.way][0]

    @property
    def strict(self) -> bool:
        """Whether two rows of a parent have different values."""
        return self.WAYS[self.way][1]

    @property
    def separates(self) -> bool:  # type: ignore[override]
        """Whether rows keep the rule only if each value has a code of its own."""
        return self.strict

    def explain(self, parent: str) -> str:
        """Return what the rule says, in plain English."""
        differ = ", and no two rows have the same" if self.strict else ""
        return f"{self.column} {self.way} from row to row of {parent}{differ}."

    def check(self, columns: Mapping[str, Coded]) -> None:
        """Refuse a column on which the rule has no meaning."""
        column = columns.get(self.column)
        if column is not None and not isinstance(column, Ordinal):
            raise InputError(f"{str(self)!r}: it is about numbers or times, and {self.column!r} is neither")

    @property
    def ways(self) -> dict[str, bool]:
        """The column, and whether it rises."""
        return {self.column: self.rising}

    @property
    def differing(self) -> tuple[str, ...]:
        """The column, if no two rows of a parent have the same value."""
        return (self.column,) if self.strict else ()

    def most_rows(self, columns: Mapping[str, Coded]) -> float:
        """Return how many rows of a parent can keep the rule."""
        return _number_of_values([columns[self.column]]) if self.strict else np.inf

    def in_codes(
        self, columns: Mapping[str, Coded], cells: Mapping[str, Cells], crowded: Mapping[str, Mask]
    ) -> SiblingRules:
        """Return the step by which the ranks of codes never fall; a crowded code comes once if strict."""
        ranks = cells[self.column].ranks(rising=self.rising)
        return SiblingRules(steps=(Step(self.column, ranks, crowded[self.column] & self.strict),))

    def broken(self, columns: Mapping[str, Coded], numbers: Numbers, parents: Ints) -> Mask:
        """Return which rows break the rule."""
        values = numbers[self.column] if self.rising else -numbers[self.column]
        present = np.flatnonzero(~np.isnan(values))
        wrong = np.zeros(len(values), np.bool_)
        steps = np.diff(values[present])
        against = steps <= 0 if self.strict else steps < 0
        wrong[present[1:]] = against & (np.diff(parents[present]) == 0)
        return wrong


@dataclass(frozen=True)
class Absorbing(ValueRule):
    """Requires that a column keeps a value once a row of the parent has it.

    Parameters
    ----------
    column : str
    value : text, number or boolean

    Examples
    --------
    >>> from privsyn import Categorical
    >>> rule, married = Absorbing("married", "yes"), np.array([0.0, 1, 0, 1, 0])
    >>> columns = {"married": Categorical(["no", "yes"])}
    >>> print(rule, rule.broken(columns, {"married": married}, np.array([0, 0, 0, 1, 2])).tolist())
    married stays 'yes' [False, False, True, False, False]
    """

    sentence = re.compile(rf"{COLUMN} +stays +(.+)")

    def __str__(self) -> str:
        return f"{text_of((None, self.column))} stays {self.value!r}"

    def explain(self, parent: str) -> str:
        """Return what the rule says, in plain English."""
        return f"{self.column} stays {self.value}: once a row of {parent} has it, all later rows have it."

    def in_codes(
        self, columns: Mapping[str, Coded], cells: Mapping[str, Cells], crowded: Mapping[str, Mask]
    ) -> SiblingRules:
        """Return the step in which the code of the value is the last."""
        has = np.arange(cells[self.column].merged) == self.code(columns, cells)
        return SiblingRules(steps=(Step(self.column, has.astype(np.int64), np.zeros(len(has), np.bool_)),))

    def broken(self, columns: Mapping[str, Coded], numbers: Numbers, parents: Ints) -> Mask:
        """Return which rows break the rule."""
        has = self.holds(columns, numbers)
        return (_running_count(has, parents) > 0) & ~has & ~np.isnan(numbers[self.column])


@dataclass(frozen=True)
class Last(ValueRule):
    """Requires that a row with a value is the last one of the parent, as that of a death is.

    Parameters
    ----------
    column : str
    value : text, number or boolean

    Examples
    --------
    >>> from privsyn import Categorical
    >>> rule, columns = Last("outcome", "dead"), {"outcome": Categorical(["home", "dead"])}
    >>> print(rule, rule.broken(columns, {"outcome": np.array([0.0, 1, 0])}, np.zeros(3, np.int64)).tolist())
    outcome == 'dead' is last [False, True, False]
    """

    sentence = re.compile(rf"{COLUMN} *== *(.+?) +is +last")

    def __str__(self) -> str:
        return f"{text_of((None, self.column))} == {self.value!r} is last"

    @property
    def comes_once(self) -> bool:
        """At most one row is the last one."""
        return True

    def explain(self, parent: str) -> str:
        """Return what the rule says, in plain English."""
        return f"A row of {parent} with {self.column} {self.value} is the last one."

    def most_rows(self, columns: Mapping[str, Coded]) -> float:
        """Return how many rows of a parent can keep the rule: one, if all have the value."""
        column = columns[self.column]
        return np.inf if column.nullable or {*column.listed} != {self.value} else 1

    def in_codes(
        self, columns: Mapping[str, Coded], cells: Mapping[str, Cells], crowded: Mapping[str, Mask]
    ) -> SiblingRules:
        """Return the step in which the code of the value is the last, and comes once."""
        has = np.arange(cells[self.column].merged) == self.code(columns, cells)
        return SiblingRules(steps=(Step(self.column, has.astype(np.int64), has),))

    def broken(self, columns: Mapping[str, Coded], numbers: Numbers, parents: Ints) -> Mask:
        """Return which rows break the rule: those with the value that another row follows."""
        return self.holds(columns, numbers) & (np.diff(parents, append=-1) == 0)


@dataclass(frozen=True)
class Lasting(ColumnRule):
    """Says that a column seldom changes: its first value is counted, and its changes. No row breaks it.

    Parameters
    ----------
    column : str

    Examples
    --------
    >>> print(Lasting("south"))
    south lasts
    """

    sentence = re.compile(rf"{COLUMN} +lasts")
    separates = False

    def __str__(self) -> str:
        return f"{text_of((None, self.column))} lasts"

    @classmethod
    def of_match(cls, match: re.Match[str]) -> Self:
        """Return the rule that a sentence declares."""
        return cls(_name(match[1]))

    def explain(self, parent: str) -> str:
        """Return what the rule says, in plain English."""
        return f"{self.column} seldom changes among the rows of {parent}: its changes are counted."

    def check(self, columns: Mapping[str, Coded]) -> None:
        """Refuse a column without a list of values: among numbers, noise hides which ones are equal."""
        column = columns.get(self.column)
        if column is not None and not (column.lists_values and column.is_public):
            raise InputError(
                f"{str(self)!r}: declare {self.column!r} as categorical, with its list of values"
            )

    def in_codes(
        self, columns: Mapping[str, Coded], cells: Mapping[str, Cells], crowded: Mapping[str, Mask]
    ) -> SiblingRules:
        """Return no rule."""
        return NO_RULES

    def broken(self, columns: Mapping[str, Coded], numbers: Numbers, parents: Ints) -> Mask:
        """Return which rows break the rule."""
        return np.zeros(len(parents), np.bool_)


@dataclass(frozen=True)
class Distinct(LifeRule):
    """Requires that no two rows of a parent have the same values in some columns.

    Parameters
    ----------
    names : tuple of str
        The columns.

    Examples
    --------
    >>> rule = Distinct(("course", "term"))
    >>> numbers = {"course": np.array([1.0, 1, 1]), "term": np.array([1.0, 2, 1])}
    >>> print(rule, rule.broken({}, numbers, np.zeros(3, np.int64)).tolist())
    (course, term) is unique [False, False, True]
    """

    names: tuple[str, ...]

    sentence = re.compile(rf"(?:\( *({COLUMN}(?: *, *{COLUMN})*) *,? *\)|{COLUMN}) +is +unique")
    needs_order = False

    def __str__(self) -> str:
        names = ", ".join(text_of((None, name)) for name in self.names)
        return f"{names if len(self.names) == 1 else f'({names})'} is unique"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the rule names."""
        return self.names

    @property
    def differing(self) -> tuple[str, ...]:
        """The columns."""
        return self.names

    def most_rows(self, columns: Mapping[str, Coded]) -> float:
        """Return how many rows of a parent can keep the rule."""
        return _number_of_values([columns[name] for name in self.names])

    @classmethod
    def of_match(cls, match: re.Match[str]) -> Self:
        """Return the rule that a sentence declares."""
        names = [_name(name) for name in re.findall(COLUMN, match[1] or match[4])]
        if len({*names}) < len(names):
            raise InputError(f"{safe_repr(match[0])}: it names a column twice")
        return cls(tuple(names))

    def explain(self, parent: str) -> str:
        """Return what the rule says, in plain English."""
        return f"No two rows of {parent} have the same {' and '.join(self.names)}."

    def in_codes(
        self, columns: Mapping[str, Coded], cells: Mapping[str, Cells], crowded: Mapping[str, Mask]
    ) -> SiblingRules:
        """Return that no two rows share their codes, if these are crowded; numbers differ in other codes."""
        return SiblingRules(distinct=(DistinctCodes({name: crowded[name] for name in self.names}),))

    def broken(self, columns: Mapping[str, Coded], numbers: Numbers, parents: Ints) -> Mask:
        """Return which rows break the rule."""
        cells = pd.DataFrame({index: numbers[name] for index, name in enumerate(self.names)})
        repeated = cells.assign(parent=parents).duplicated().to_numpy()
        return np.asarray(repeated & cells.notna().all(axis=1).to_numpy())


@dataclass(frozen=True)
class AtMost(ValueRule):
    """Requires that no more than some number of the rows of a parent have a value.

    Parameters
    ----------
    column : str
    value : text, number or boolean
    number : int
        At least 1.

    Examples
    --------
    >>> from privsyn import Categorical
    >>> rule, columns = AtMost("role", "head", 1), {"role": Categorical(["head", "child"])}
    >>> print(rule, rule.broken(columns, {"role": np.array([0.0, 1, 0])}, np.zeros(3, np.int64)).tolist())
    at most 1 role == 'head' [False, False, True]
    """

    number: int

    sentence = re.compile(rf"at +most +([0-9]+) +{COLUMN} *== *(.+)")
    needs_order = False

    def __str__(self) -> str:
        return f"at most {self.number} {text_of((None, self.column))} == {self.value!r}"

    @property
    def comes_once(self) -> bool:
        """Whether at most one row of a parent has the value."""
        return self.number == 1

    @classmethod
    def of_match(cls, match: re.Match[str]) -> Self:
        """Return the rule that a sentence declares."""
        if not int(match[1]):
            raise InputError(f"{safe_repr(match[0])}: no row would have the value: do not list it")
        return cls(_name(match[2]), _value(match[3]), int(match[1]))

    def explain(self, parent: str) -> str:
        """Return what the rule says, in plain English."""
        rows = "row" if self.number == 1 else "rows"
        return f"At most {self.number} {rows} of {parent} have {self.column} {self.value}."

    def in_codes(
        self, columns: Mapping[str, Coded], cells: Mapping[str, Cells], crowded: Mapping[str, Mask]
    ) -> SiblingRules:
        """Return how many rows may have the code of the value."""
        return SiblingRules(few=(RowsWithCode(self.column, self.code(columns, cells), self.number),))

    def broken(self, columns: Mapping[str, Coded], numbers: Numbers, parents: Ints) -> Mask:
        """Return which rows break the rule."""
        has = self.holds(columns, numbers)
        return has & (_running_count(has, parents) > self.number)


def _running_count(has: Mask, parents: Ints) -> Ints:
    """Return of how many rows of the same parent, up to each row, a mask is true.

    >>> _running_count(np.array([True, False, True, True]), np.array([0, 0, 0, 1])).tolist()
    [1, 1, 2, 1]
    """
    counts = np.cumsum(has)
    before = np.concatenate([[0], counts])[np.arange(len(has)) - ranks(parents)]
    return np.asarray(counts - before, np.int64)


def _name(text: str) -> str:
    return text.strip("`")


def _value(text: str) -> Any:
    """Return the value that a sentence names: as Python writes it, or text without quotes."""
    with suppress(ValueError, SyntaxError):
        return ast.literal_eval(text.strip())
    return text.strip()


def _number_of_values(columns: Sequence[Coded]) -> float:
    """Return how many values, or combinations of them, columns have; missing cells never repeat."""
    number = 1.0
    for column in columns:
        if column.nullable:
            return np.inf
        if column.lists_values and column.listed:
            number *= len(column.listed)
            continue
        decimals = column.fixed_decimals if isinstance(column, Numerical) else None
        if not isinstance(column, Numerical) or column.low is None or column.high is None or decimals is None:
            return np.inf
        step = column.step or 10.0**-decimals
        number *= round((column.high - column.low) / step) + 1
    return number
