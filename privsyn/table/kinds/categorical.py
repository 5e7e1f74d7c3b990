"""Categorical: a column of a few listed values."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Self

import numpy as np
import pandas as pd
import pyarrow as pa

from privsyn.errors import InputError, did_you_mean, replace_errors, safe_repr
from privsyn.marginals.domain import Floats
from privsyn.table.encoding import dtypes
from privsyn.table.encoding.encoders import CategoricalEncoder
from privsyn.table.encoding.parsing import convert_distinct, number
from privsyn.table.kinds.column import COMPARES, FOR_FAMILY, Coded, in_words, number_in
from privsyn.table.kinds.column_settings import (
    distinct_values,
    flag,
    normalise,
    normalise_shared,
    probability,
)
from privsyn.table.kinds.csv_format import CsvFormat

OTHER = "(other)"
"""Default name, in dtypes that hold text, for all values that are not found. Tables may have an "other"."""

MOST_SHOWN = 12
"""Listed values that the sheet of a release names."""


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
        first value with ``nullable=False``; if they are found, ``"(other)"`` where the dtype can hold that,
        and else missing or the most frequent value.
    nullable : bool
        Whether a cell may be missing. If not, a missing cell counts as the first value.
    missing : str or list of str
        Texts that mean a missing cell in a file, in addition to the empty cell.
    ordered : bool, optional
        Whether the listed values have an order, which is that of the list. Then neighbours are taken to be
        more alike than values far apart. A value that replaces all others has no place in it if it is the
        last. Default: the dtype is of ordered categories.
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
    ordered: bool | None = field(default=None, kw_only=True)
    keep: float | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        normalise_shared(self)
        if self.ordered is not None:
            normalise(self, ordered=flag("ordered", self.ordered))
        if self.ordered and (self.values is None or self.keep is not None):
            raise InputError("ordered needs the list of values, and cells that nobody randomised")
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
    def values_sentence(self) -> str:
        """How many values are listed, and the first of them."""
        if self.values is None:
            rest = OTHER if self.other is None else self.other
            return f"values that enough rows share are found under privacy; the rest becomes {rest!r}."
        text = f"one of {len(self.values)} public values: {in_words(self.values)}."
        return text if self.keep is None else f"{text} The respondents randomised it (keep {self.keep:g})."

    @property
    def bounds(self) -> tuple[float, float]:
        """The first and the last place in the list."""
        return 0.0, len(self.listed) - 1.0

    def number_of(self, value: Any) -> float:
        """Return the place of a value in the list."""
        try:
            return float(self.listed.index(value))
        except ValueError:
            pooled = "" if self.other is None else f"; values that are not listed are {self.other!r}"
            meant = did_you_mean(value, self.listed, may_exist=bool(pooled))
            raise InputError(f"{safe_repr(value)} is not one of its values{pooled}{meant}") from None

    def intervals_of(self, ends: Mapping[str, Any]) -> tuple[Floats, Floats]:
        """Return the place of each listed value in the range."""
        low, high = ends.get("low", -np.inf), ends.get("high", np.inf)
        values: Any = self.values
        with replace_errors("a range needs numbers or dates: list the values", TypeError):
            positions = np.flatnonzero([low <= value <= high for value in values]).astype(np.float64)
        return positions, positions

    @property
    def public_hint(self) -> str:
        """What to do to make the values public."""
        return "list its values: Categorical([...])"

    def known_by_dtype(self, dtype: dtypes.Dtype) -> Self:
        """Return a column of false and true if the dtype holds nothing else."""
        is_open = not self.is_public and self.other is None
        return replace(self, values=(False, True)) if is_open and dtypes.family(dtype) == "boolean" else self

    def answered(self, frequent: Sequence[Any] | None, dtype: dtypes.Dtype, marks: Sequence[str]) -> Self:
        """Return the column with the values found, the most frequent first, and one value for all others."""
        kind = dtypes.family(dtype)
        is_text = kind in ("text", "object", "category")
        pooled = self.other
        values = dict.fromkeys(frequent or ())  # of equal values such as 1 and True, keep the most frequent
        if pooled is None and is_text and OTHER not in marks:
            pooled = OTHER
            while pooled in values:  # a value of the table, which is found itself
                pooled = f"({pooled})"
        if pooled is not None:
            values.setdefault(pooled)
        if not values:
            values = dict.fromkeys(["" if is_text else 0])
        return replace(self, values=tuple(values), other=pooled, ordered=False)

    lists_values = True

    @property
    def listed(self) -> tuple[Any, ...]:
        """The list of values; empty if it is not public."""
        return tuple(self.values or ())

    @property
    def data_type(self) -> str:
        """Boolean or Integer if all listed values are."""
        kinds = {type(value) for value in self.listed}
        return {frozenset({bool}): "Boolean", frozenset({int}): "Integer"}.get(frozenset(kinds), "Text")

    @property
    def values_in_words(self) -> str:
        """The first of the listed values."""
        more = f" and {len(self.listed) - MOST_SHOWN} more" if len(self.listed) > MOST_SHOWN else ""
        return ", ".join(map(str, self.listed[:MOST_SHOWN])) + more

    @property
    def all_values(self) -> Any:
        """The list."""
        return self.listed

    def compared(self, sign: str, operands: Sequence[Any]) -> list[Any]:
        """Return listed values; of a list that is not public, only those that are named."""
        if self.is_public and sign not in COMPARES:
            excluded = [self.number_of(operand) for operand in operands]  # refuses a value that is not listed
        if sign in ("==", "in"):
            return [tuple(dict.fromkeys(operands))]
        if self.values is None:
            raise InputError(f"{sign} needs the list of values: Categorical([...])")
        if sign in ("!=", "not in"):
            matching = tuple(value for position, value in enumerate(self.values) if position not in excluded)
            return [matching] if matching else []
        values: Any = self.values
        if not all(type(value) in (int, float) for value in (*operands, *values)):
            raise InputError(f"{sign} needs numbers or dates: list the values, as in ['a', 'b']")
        matching = tuple(value for value in values if COMPARES[sign](value, operands[0]))
        return [matching] if matching else []

    def with_listed(self, values: Sequence[Any]) -> Self:
        """Return the column with these values."""
        return replace(self, values=tuple(dict.fromkeys(values)))

    def like(self, column: Self) -> Self:
        """Return the column with the list of another one."""
        return replace(self, values=column.values)

    def value_of(self, text: str) -> Any:
        """Return the listed value with this text; else a number if numbers are listed, or the text."""
        for value in self.listed:
            if text in (str(value), str(value).lower() if isinstance(value, bool) else None):
                return value
        return number_in(text) if any(isinstance(value, int | float) for value in self.listed) else text

    @property
    def fate(self) -> str:
        """What cells become that are not listed."""
        if self.other is not None:
            return f"become {self.other!r}"
        return "become missing" if self.nullable else "become the first value listed"

    def as_read(self, cells: pd.Series) -> pd.Series:
        """Return the cells, those that are not listed missing."""
        return cells if self.values is None else cells.where(cells.isin(list(self.values)))

    def kept_dtype(self, dtype: dtypes.Dtype) -> str | None:
        """Return the dtype as text; None for categories that no list holds, as intervals."""
        return super().kept_dtype(dtype) if dtypes.may_be_listed(dtype) else None

    def make_encoder(self, dtype: dtypes.Dtype, family: dtypes.Family) -> CategoricalEncoder:
        """Return the encoder; refuse a dtype in which the listed values are not distinct."""
        values = self.listed
        pooled = None if self.other is None else values.index(self.other)
        return CategoricalEncoder(_pool(values, dtype, family), pooled, self._in_order(dtype))

    def _in_order(self, dtype: dtypes.Dtype) -> int:
        """Return how many of the values have an order, from the first one on; fewer than three have none."""
        ranked = len(self.listed) - (self.listed[-1:] == (self.other,))
        in_order = getattr(dtype, "ordered", False) if self.ordered is None else self.ordered
        return ranked if in_order and self.keep is None and ranked > 2 else 0

    def read_cells(self, cells: pa.ChunkedArray, csv_format: CsvFormat) -> pd.Series:
        """Return the listed value that each text stands for, or `other`; texts if no values are listed."""
        values = self.listed
        types = {type(value) for value in values}
        if types <= {str}:
            return cells.to_pandas().astype(dtypes.TEXT)
        # Programs write false and true as 0 and 1, too: SQLite has no other way. No list has both pairs.
        written: dict[Any, Any] = {
            number(value): value for value in values if isinstance(value, bool | int | float)
        }
        written |= {str(value).lower(): value for value in values if isinstance(value, bool)}
        written |= {str(value): value for value in reversed(values)}
        if types == {bool}:
            dtype = "boolean"
        elif types == {int} and all(-(2**63) <= value < 2**63 for value in values):
            dtype = "Int64"
        else:
            dtype = "float64" if types == {float} or types == {int, float} else "object"

        def convert(texts: Sequence[str | None]) -> pd.Series:
            return pd.Series([self._meaning(text, written, csv_format) for text in texts], dtype=dtype)

        return convert_distinct(cells, convert)

    def _meaning(self, text: str | None, written: Mapping[Any, Any], csv_format: CsvFormat) -> Any:
        """Return the value with this text, in other letters (``TRUE``), or as a number (``1.0`` for 1)."""
        if text is None:
            return None
        return written.get(
            text, written.get(text.lower(), written.get(number(csv_format.plain_number(text)), self.other))
        )


def _pool(values: tuple[Any, ...], dtype: dtypes.Dtype, kind: dtypes.Family) -> pd.Series:
    """Return the listed values in the dtype of the column; refuse a dtype in which they are not distinct."""
    if kind in FOR_FAMILY:
        raise InputError(f"{dtypes.its(dtype)}: use {FOR_FAMILY[kind]}")
    if kind == "real" and dtypes.number_type(dtype) == np.float16:  # pandas cannot look up values in it
        raise InputError(f"{dtypes.its(dtype)}: convert it to float32")
    can_hold = _can_hold(dtype, kind)
    for value in values:
        if not can_hold(value):
            raise InputError(f"{dtypes.its(dtype)}, which cannot hold the listed value {safe_repr(value)}")
    if kind == "category":
        categories = pd.Index(values, tupleize_cols=False)
        return pd.Series(pd.Categorical(values, categories=categories, ordered=dtype.ordered))
    if kind in ("integer", "real"):  # some dtypes refuse 1.0 for 1, or 2**63 for a float
        values = tuple(map(int if kind == "integer" else float, values))
    if kind == "decimal":
        values = tuple(Decimal(str(value)) for value in values)
    pool = pd.Series(values, dtype=dtype)
    if kind != "object" and not pd.Index(pool).is_unique:
        raise InputError(f"{dtypes.its(dtype)}, in which some listed values are equal")
    return pool


def _can_hold(dtype: dtypes.Dtype, kind: dtypes.Family) -> Callable[[Any], bool]:
    match kind:
        case "text":
            return lambda value: isinstance(value, str)
        case "boolean":
            return lambda value: isinstance(value, bool)
        case "integer":
            limits = np.iinfo(dtypes.number_type(dtype))
            return lambda x: _is_number(x) and x == round(x) and limits.min <= x <= limits.max
        case "decimal":
            decimals, limit = dtypes.decimals_of(dtype), dtypes.largest_decimal(dtype)
            return lambda x: _is_number(x) and x == round(x, decimals) and abs(x) <= limit
        case "real":
            largest = float(np.finfo(dtypes.number_type(dtype)).max)
            return lambda x: _is_number(x) and abs(x) <= largest
        case _:
            return lambda value: True


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf")
