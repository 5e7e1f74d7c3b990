"""Columns one by one, and whole rows: distances of numbers, missing cells, rare values, distinct rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.stats import wasserstein_distance

from privsyn.evaluation.encoding import Coded, View
from privsyn.evaluation.marginals import SEED
from privsyn.marginals.domain import Records
from privsyn.marginals.statistics import total_variation
from privsyn.marginals.types import Floats, Ints

RARE = 0.01
"""A value is rare if it has less than this share of the real rows."""

NEAREST_ROWS = 200
"""So many rows look for their nearest real one, among at most `NEAREST_AMONG`."""

NEAREST_AMONG = 50_000


def wasserstein(real: Floats, other: Floats) -> float:
    """How far the numbers would have to be moved, on average, in standard deviations of the real ones.

    Missing cells are left out. Where one table has no number at all: 0 if the other has none either, else 1.

    >>> wasserstein(np.array([0.0, 2.0, 2.0, 0.0]), np.array([1.0, 3.0]))
    1.0
    """
    real, other = real[~np.isnan(real)], other[~np.isnan(other)]
    if not len(real) or not len(other):
        return float(len(real) != len(other))
    moved = float(wasserstein_distance(real, other))
    deviation = float(real.std())
    return moved / deviation if deviation > 0 else moved


def missing_patterns(view: View, real: Records, other: Records) -> float:
    """Total variation between the patterns of missing cells, a pattern being which columns are missing."""
    missing = np.array(view.missing)
    ours, theirs = (_rows(np.packbits(table.codes == missing, axis=1)) for table in (real, other))
    _, places = np.unique(np.concatenate([ours, theirs]), return_inverse=True)
    counts = [np.bincount(part, minlength=places.max() + 1) for part in np.split(places, [len(ours)])]
    return total_variation(counts[0] / len(ours), counts[1] / len(theirs))


def rare_covered(real: Records, other: Records) -> float:
    """Of the rare values of all columns, the share that occurs at all; NaN if none is rare."""
    rare = covered = 0
    for ours, theirs in _one_ways(real, other):
        is_rare = (ours > 0) & (ours < RARE * len(real))
        rare += int(is_rare.sum())
        covered += int((is_rare & (theirs > 0)).sum())
    return covered / rare if rare else np.nan


def unseen(real: Records, other: Records) -> float:
    """The share of cells that hold a value no real row has in that column."""
    return float(np.mean([theirs[ours == 0].sum() / len(other) for ours, theirs in _one_ways(real, other)]))


def distinct_rows(table: Records) -> float:
    """The share of rows that is left when copies are taken out."""
    return len(np.unique(_rows(table.codes))) / len(table)


def identical_rows(real: Records, other: Records) -> float:
    """The share of rows that equal some real row, in codes. A diagnostic: it does not measure privacy."""
    return float(np.isin(_rows(other.codes), _rows(real.codes)).mean())


def nearest_row(real: Records, other: Records) -> float:
    """In how many columns a row differs from the real row most like it, on average over a sample.

    A diagnostic: it does not measure privacy.
    """
    rng = np.random.default_rng(SEED)
    among = real.codes[rng.permutation(len(real))[:NEAREST_AMONG]]
    differ = []
    for row in other.codes[rng.permutation(len(other))[:NEAREST_ROWS]]:
        alike = np.zeros(len(among), np.int16)
        for axis, code in enumerate(row):
            alike += among[:, axis] == code
        differ.append(len(row) - int(alike.max()))
    return float(np.mean(differ))


def numbers_moved(real: Coded, other: Coded) -> dict[str, float]:
    """`wasserstein` of each column that has numbers."""
    return {name: wasserstein(cells, other.numbers[name]) for name, cells in real.numbers.items()}


def _one_ways(real: Records, other: Records) -> list[tuple[Ints, Ints]]:
    return [
        (np.bincount(real.codes[:, axis], minlength=size), np.bincount(other.codes[:, axis], minlength=size))
        for axis, size in enumerate(real.domain.sizes)
    ]


def _rows(cells: npt.NDArray) -> npt.NDArray:
    """Each row as one item that can be compared."""
    whole = np.ascontiguousarray(cells)
    return whole.view(np.dtype((np.void, whole.dtype.itemsize * whole.shape[1]))).ravel()
