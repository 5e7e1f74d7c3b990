"""Tally: which public cell each row lies in, for questions that count the rows of each cell.

A tally says what is counted, and not where the rows are. Rows in a frame are counted here. A database counts
them itself, by queries that `privsyn.table.engine` makes from the same tally.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from privsyn.errors import replace_errors
from privsyn.marginals.domain import Floats, Ints, Numbers
from privsyn.table.encoding.encoders import OrderedEncoder

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
