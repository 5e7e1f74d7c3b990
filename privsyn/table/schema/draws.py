"""Represent drawn rows as numbers, and the range within which each number may change.

Between codes and cells, every column is numbers (see `ranges`). Constraints are enforced on these. The
release counts groups of codes, so drawing a number again within its group changes no count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from privsyn.marginals.domain import Floats, Integers, Ints, Mask, keep


class Grid(Protocol):
    """The numbers that a column can hold; see `privsyn.table.encoding.grid`."""

    @property
    def decimals(self) -> int | None:
        """Number of decimals; None for reals."""

    @property
    def step(self) -> float:
        """The distance between neighbouring numbers."""

    def between(self, lows: Floats, highs: Floats, rng: np.random.Generator) -> Floats:
        """Draw a number from each low to each high, both included; NaN where there is none."""

    def count(self, lows: Floats, highs: Floats) -> Floats:
        """Return the count of numbers from each low to each high, both included."""

    def snap(self, numbers: Floats) -> Floats:
        """Return the number of the column that each number stands for; NaN where there is none."""


@dataclass(frozen=True, eq=False)
class Cells:
    """The codes of one column as numbers, and how they were merged. All of it is public.

    Parameters
    ----------
    lows, highs : float arrays of shape (codes,)
        Smallest and largest number of each code; NaN for missing.
    grid : Grid, optional
        For numbers and times; listed values have none.
    groups : integer array of shape (codes,)
        The merged code of each code.
    shares : float array of shape (codes,)
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
            raise ValueError("bounds, groups and shares need one entry for each code")

    @classmethod
    def unmerged(cls, lows: Floats, highs: Floats, grid: Grid | None, *, nullable: bool = False) -> Cells:
        """Return cells in which each code is its own group; a last one is of missing cells if `nullable`."""
        if nullable:
            lows, highs = np.append(lows, np.nan), np.append(highs, np.nan)
        return cls(lows, highs, grid, np.arange(len(lows)), np.ones(len(lows)))

    @property
    def merged(self) -> int:
        """Number of merged codes."""
        return int(self.groups.max()) + 1

    @property
    def reach(self) -> tuple[Floats, Floats]:
        """Smallest and largest number of each merged code; NaN for missing."""
        lows, highs = np.full(self.merged, np.inf), np.full(self.merged, -np.inf)
        np.fmin.at(lows, self.groups, self.lows)
        np.fmax.at(highs, self.groups, self.highs)
        empty = lows > highs
        return np.where(empty, np.nan, lows), np.where(empty, np.nan, highs)

    @property
    def nullable(self) -> bool:
        """Whether a cell may be missing."""
        return bool(np.isnan(self.lows[-1]))

    @property
    def missing(self) -> int:
        """The merged code of missing cells, -1 if none are made: their code has a share of 0."""
        return int(self.groups[-1]) if self.nullable and self.shares[-1] > 0 else -1

    def find(self, numbers: Floats) -> Integers:
        """Return the code of each number."""
        lows = self.lows[:-1] if self.nullable else self.lows
        codes = np.clip(np.searchsorted(lows, numbers, side="right") - 1, 0, None)
        return np.where(np.isnan(numbers), len(lows), codes)

    def merged_codes(self, numbers: Floats) -> Integers:
        """Return the merged code of each number."""
        return self.groups[self.find(numbers)]

    def ranks(self, *, rising: bool) -> Ints:
        """Return the ranks of the merged codes in the order of the rows; missing cells are last."""
        ranks = np.arange(self.merged) if rising else np.arange(self.merged)[::-1].copy()
        if self.missing >= 0:
            ranks[self.missing] = self.merged
        return ranks

    def crowded(self, rows: int, *, compared: bool) -> Mask:
        """Return the merged codes that have fewer values than there are `rows`; missing cells never do.

        If the column is `compared` with a row above, no code is known to have more than one value.
        """
        values = np.ones(len(self.lows)) if self.grid is None else self.grid.count(self.lows, self.highs)
        values = np.where(np.isnan(self.lows), np.where(self.shares > 0, np.inf, 0.0), values)
        number = np.bincount(self.groups, values)
        return np.isfinite(number) & ((number < rows) | compared)

    def draw(self, lows: Floats, highs: Floats, rng: np.random.Generator) -> Floats:
        """Draw a number from each low to each high, both included; NaN where there is none."""
        if self.grid is not None:
            return self.grid.between(lows, highs, rng)
        first, last = np.ceil(lows), np.floor(highs)
        return np.where(first <= last, first + np.floor(rng.random(len(first)) * (last - first + 1)), np.nan)

    def snap(self, numbers: Floats) -> Floats:
        """Return the number of the column that each number stands for; NaN where there is none."""
        if self.grid is not None:
            return self.grid.snap(numbers)
        return np.where(numbers == np.rint(numbers), numbers, np.nan)


@dataclass(eq=False)
class DrawnRows:
    """Drawn rows as numbers by column. Repair changes them in place.

    Parameters
    ----------
    numbers : mapping of each column to an array of shape (rows,)
    codes : mapping of each coded column to the codes that its numbers were drawn from
    cells : mapping of each coded column to its cells
    fixed : set of columns whose numbers may not change
    """

    numbers: dict[str, Floats]
    codes: Mapping[str, Integers]
    cells: Mapping[str, Cells]
    fixed: frozenset[str] = frozenset()

    def is_free(self, name: str) -> bool:
        """Return whether the numbers of a column may change."""
        return name in self.cells and name not in self.fixed

    def merged(self, name: str, at: Integers) -> Integers:
        """Return the merged codes of the rows `at`."""
        return self.cells[name].groups[self.codes[name][at]]

    def room(self, name: str, at: Integers) -> tuple[Floats, Floats]:
        """Return the smallest and the largest number that each row `at` may have; NaN if it is missing."""
        numbers = self.numbers[name][at]
        if not self.is_free(name):
            return numbers, numbers
        lows, highs = self.cells[name].reach
        groups, missing = self.merged(name, at), np.isnan(numbers)
        return np.where(missing, np.nan, lows[groups]), np.where(missing, np.nan, highs[groups])
