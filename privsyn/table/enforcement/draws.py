"""Rows of numbers on their way out, and the room that each number has.

Between codes and cells every column is numbers (see `spans`): there constraints are kept. A number was drawn
from a group of cells that the release tells of; within that group it may be drawn anew at no loss.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from privsyn.marginals.types import Floats, Integers, Ints, keep


class Grid(Protocol):
    """Which numbers a column can hold; see `privsyn.table.encoding.grid`."""

    @property
    def decimals(self) -> int | None:
        """How many decimals they have; None if they are real numbers."""

    @property
    def step(self) -> float:
        """The distance of two neighbours; 0 for real numbers."""

    def between(self, lows: Floats, highs: Floats, rng: np.random.Generator) -> Floats:
        """A number between each two, both included; NaN where there is none."""

    def count(self, lows: Floats, highs: Floats) -> Floats:
        """How many numbers lie between each two, both included."""

    def snap(self, numbers: Floats) -> Floats:
        """The numbers of the column that these are; NaN where it has none such."""


@dataclass(frozen=True, eq=False)
class Cells:
    """The codes of one column as numbers, and how they were merged: all public.

    Parameters
    ----------
    lows, highs : of shape (codes,)
        Least and largest number of each code; NaN for missing.
    grid : Grid, optional
        Of numbers and times; listed values have none.
    groups : of shape (codes,)
        The merged code of each code.
    shares : of shape (codes,)
        Weight of each code within its merged code.
    """

    lows: Floats
    highs: Floats
    grid: Grid | None
    groups: Integers
    shares: Floats

    def __post_init__(self) -> None:
        keep(self, "lows", "highs", "groups", "shares")
        if not self.lows.shape == self.highs.shape == self.groups.shape == self.shares.shape:
            raise ValueError("bounds, groups and shares are not one a code")

    @classmethod
    def unmerged(cls, lows: Floats, highs: Floats, grid: Grid | None) -> Cells:
        """Each code its own group."""
        return cls(lows, highs, grid, np.arange(len(lows)), np.ones(len(lows)))

    @property
    def merged(self) -> int:
        """How many merged codes there are."""
        return int(self.groups.max()) + 1

    @property
    def reach(self) -> tuple[Floats, Floats]:
        """Least and largest number of each merged code; NaN for missing."""
        lows, highs = np.full(self.merged, np.inf), np.full(self.merged, -np.inf)
        np.fmin.at(lows, self.groups, self.lows)
        np.fmax.at(highs, self.groups, self.highs)
        empty = lows > highs
        return np.where(empty, np.nan, lows), np.where(empty, np.nan, highs)

    @property
    def nullable(self) -> bool:
        """Whether a cell may be missing."""
        return bool(np.isnan(self.lows[-1]))

    def find(self, numbers: Floats) -> Integers:
        """The code of each number."""
        known = self.lows[:-1] if self.nullable else self.lows
        codes = np.clip(np.searchsorted(known, numbers, side="right") - 1, 0, None)
        return np.where(np.isnan(numbers), len(known), codes)

    def count(self, numbers: Floats) -> Ints:
        """Return how many of the numbers lie in each merged code."""
        return np.bincount(self.groups[self.find(numbers)], minlength=self.merged)

    def draw(self, lows: Floats, highs: Floats, rng: np.random.Generator) -> Floats:
        """A number between each two, both included; NaN where the column has none."""
        if self.grid is not None:
            return self.grid.between(lows, highs, rng)
        first, last = np.ceil(lows), np.floor(highs)
        return np.where(first <= last, first + np.floor(rng.random(len(first)) * (last - first + 1)), np.nan)

    def snap(self, numbers: Floats) -> Floats:
        """The numbers of the column that these are; NaN where it has none such."""
        if self.grid is not None:
            return self.grid.snap(numbers)
        return np.where(numbers == np.rint(numbers), numbers, np.nan)


@dataclass(eq=False)
class DrawnRows:
    """Numbers by column, to be changed where they break a constraint.

    Parameters
    ----------
    numbers : of each column, of shape (rows,)
    codes : of each column that is coded, the code that a number was drawn from
    cells : of each column that is coded
    fixed : columns whose numbers may not change
    """

    numbers: dict[str, Floats]
    codes: Mapping[str, Integers]
    cells: Mapping[str, Cells]
    fixed: frozenset[str] = frozenset()

    def is_free(self, name: str) -> bool:
        """Whether the numbers of a column may be drawn anew."""
        return name in self.cells and name not in self.fixed

    def merged(self, name: str, at: Integers) -> Integers:
        """The merged codes of some rows."""
        return self.cells[name].groups[self.codes[name][at]]

    def room(self, name: str, at: Integers) -> tuple[Floats, Floats]:
        """Between which numbers those of some rows may move; NaN where they are missing."""
        numbers = self.numbers[name][at]
        if not self.is_free(name):
            return numbers, numbers
        lows, highs = self.cells[name].reach
        groups, lost = self.merged(name, at), np.isnan(numbers)
        return np.where(lost, np.nan, lows[groups]), np.where(lost, np.nan, highs[groups])
