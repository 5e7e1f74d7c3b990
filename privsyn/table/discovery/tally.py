"""Tally: which public cell each row lies in, for questions that count the rows of each cell.

A tally says what is counted, and not where the rows are. Rows in a frame are counted here. A database counts
them itself, by queries that `privsyn.table.engine` makes from the same tally. `OpenValues` and
`distinct_cells` say the same of the values that rows vote for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

from privsyn.errors import replace_errors
from privsyn.marginals.domain import Floats, Integers, Ints, Numbers
from privsyn.table.encoding.dtypes import OBJECT
from privsyn.table.encoding.encoders import STRAY, OrderedEncoder

LARGEST_NUMBER = 2**63
"""Numbers of this size or larger are not found."""

FAILED = "the cells could not be counted: please report this, unless memory ran out"


class RowCells(ABC):
    """Public cells: the numbers of a row decide in which one it lies, if in any.

    `positions` computes with NumPy's functions of arrays alone, so that a database can compute the same.
    `cell` makes cells of the positions, in their order.
    """

    @property
    @abstractmethod
    def encoders(self) -> Mapping[str, OrderedEncoder]:
        """The encoder that reads the numbers of each column."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of cells."""

    @abstractmethod
    def positions(self, numbers: Numbers) -> Floats:
        """Return a number for each row, from its own numbers alone; NaN if it lies in no cell."""

    def cell(self, positions: Floats) -> Ints:
        """Return the cell of each place that is not NaN. It never falls as the place rises.

        Default: the place itself.
        """
        return positions.astype(np.int64)

    def count(self, table: pd.DataFrame) -> Ints:
        """Return the number of rows in each cell. Private: a row adds one to one cell, or nothing."""
        with np.errstate(over="ignore", invalid="ignore"):  # a warning would reveal a cell
            positions = self.positions(
                {name: encoder.read(table[name]) for name, encoder in self.encoders.items()}
            )
            return np.bincount(self.cell(positions[~np.isnan(positions)]), minlength=self.size).astype(
                np.int64
            )


@dataclass(frozen=True)
class OpenValues:
    """For which values of its columns a row votes, and how.

    Each row gives its values that are not found yet the same number of votes. A cell is no value if it is
    missing, neither text nor a number nor a truth value, a mark of missing, or too large for a file.

    Parameters
    ----------
    marks : mapping of each column to the texts that mean missing there
    released : mapping of (column, type of a value) to the values that are found already
    weights : integer array
        The votes that a row gives to each of its values that are left, by how many these are.
    """

    marks: Mapping[str, Set[str]]
    released: Mapping[tuple[str, str], Set[Any]]
    weights: Ints


def distinct_cells(cells: pd.Series, marks: set[str]) -> tuple[Sequence[Any], Integers]:
    """Return the distinct values of a column, and the place of each row's value. Private.

    The value of a row is a function of its own cell, independent of all other rows and of their order.
    """
    values: list[Any]
    if cells.dtype == OBJECT:
        # 1, 1.0 and True are equal. Keep their types, or the first row would decide which one is listed.
        keys = [None if plain is None else (type(plain), plain) for plain in map(_plain, cells)]
        indices = {key: index for index, key in enumerate(dict.fromkeys(keys))}
        codes = np.fromiter((indices[key] for key in keys), np.int64, len(keys))
        values = [None if key is None else key[1] for key in indices]
    elif isinstance(cells.dtype, pd.CategoricalDtype):
        codes, values = cells.cat.codes.to_numpy().astype(np.int64), cells.cat.categories.tolist()
    else:
        codes_found, uniques = pd.factorize(cells)
        codes, values = codes_found.astype(np.int64), uniques.tolist()
    values = [_plain(float(value) if type(value) is Decimal else value) for value in values]
    values = [value + 0.0 if type(value) is float else value for value in values]  # -0.0 is 0.0
    # A schema and a file can hold a value that is no mark of missing, and not too large.
    sound = np.zeros(len(values) + 1, np.bool_)  # the last for the place -1
    for index, value in enumerate(values):
        if type(value) is str:  # half of a surrogate pair cannot be written in any file
            can_be_written = value.encode("utf-8", "ignore") == value.encode("utf-8", "replace")
            sound[index] = value not in marks and can_be_written
        elif type(value) in (bool, int, float):
            sound[index] = abs(value) < LARGEST_NUMBER and str(value) not in marks
    return values, np.where(sound[codes], codes, STRAY)


def by_type(values: Sequence[Any], codes: Integers) -> dict[str, tuple[Sequence[Any], Integers]]:
    """Return the distinct values of each type, and the place of each row's value among them.

    >>> held = by_type([1, True], np.array([0, 1, 1, -1]))
    >>> {kind: (values, codes.tolist()) for kind, (values, codes) in held.items()}
    {'bool': ([True], [-1, 0, 0, -1]), 'int': ([1], [0, -1, -1, -1])}
    """
    types = [type(value) for value in values]
    held: dict[str, tuple[Sequence[Any], Integers]] = {}
    for kind in sorted({bool, int, float, str}.intersection(types), key=lambda kind: kind.__name__):
        distinct = dict.fromkeys(value for value in values if type(value) is kind)
        if len(distinct) == len(values):
            return {kind.__name__: (values, codes)}
        indices = {value: index for index, value in enumerate(distinct)}
        codes_of_kind = [indices[value] if type(value) is kind else STRAY for value in values]
        held[kind.__name__] = list(distinct), np.array([*codes_of_kind, STRAY])[codes]
    return held


def _plain(cell: Any) -> bool | int | float | str | None:
    """Return a Python string, number or boolean, also for NumPy scalars; None for other objects."""
    try:
        plain = cell.item() if issubclass(type(cell), np.generic) else cell
    except Exception:  # a subclass may raise any exception
        return None
    kind = type(plain)  # a type may raise if hashed or compared, so test identity
    return plain if kind is str or kind is int or kind is float or kind is bool else None


class Tally(ABC):
    """A question: how many rows lie in each cell, of one or more counts with public cells."""

    @property
    @abstractmethod
    def cells(self) -> Mapping[str, RowCells]:
        """The cells of each count."""

    def count(self, table: pd.DataFrame) -> dict[str, Ints]:
        """Return the counts of some rows. Private: a row adds one to one cell of each count, or nothing."""
        with replace_errors(FAILED):
            return {name: cells.count(table) for name, cells in self.cells.items()}
