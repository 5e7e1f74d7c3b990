"""Metrics of numbers, cells and whole rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.stats import wasserstein_distance

from privsyn.evaluation.coded import Coded
from privsyn.evaluation.comparison import SEED, Comparison
from privsyn.evaluation.metric import Score
from privsyn.marginals.domain import Floats, Ints, Records
from privsyn.marginals.statistics import total_variation

RARE = 0.01
"""A value is rare below this share of the real rows."""

NEAREST_ROWS = 200
"""Number of rows whose nearest real row is searched, among at most `NEAREST_AMONG`."""

NEAREST_AMONG = 50_000


def wasserstein(real: Floats, other: Floats) -> float:
    """Return the Wasserstein distance, in standard deviations of the real numbers.

    Missing cells are ignored. The distance is 0 if both tables have no number, and 1 if one has none.

    >>> wasserstein(np.array([0.0, 2.0, 2.0, 0.0]), np.array([1.0, 3.0]))
    1.0
    """
    real, other = real[~np.isnan(real)], other[~np.isnan(other)]
    if not len(real) or not len(other):
        return float(len(real) != len(other))
    distance = float(wasserstein_distance(real, other))
    deviation = float(real.std())
    return distance / deviation if deviation > 0 else distance


def missing_patterns(comparison: Comparison) -> Score:
    """Return the total variation between the distributions of the set of missing columns of a row."""
    missing = np.array(comparison.view.missing)

    def distance(real: Coded, other: Coded) -> float:
        ours, theirs = (_rows(np.packbits(table.records.codes == missing, axis=1)) for table in (real, other))
        _, places = np.unique(np.concatenate([ours, theirs]), return_inverse=True)
        counts = [np.bincount(part, minlength=places.max() + 1) for part in np.split(places, [len(ours)])]
        return total_variation(counts[0] / len(ours), counts[1] / len(theirs))

    return Score(**comparison.compare_each(distance))


def rare_covered(real: Records, other: Records) -> float:
    """Return the share of rare values that occur in the other table; NaN if none is rare."""
    rare = covered = 0
    for ours, theirs in _one_ways(real, other):
        is_rare = (ours > 0) & (ours < RARE * len(real))
        rare += int(is_rare.sum())
        covered += int((is_rare & (theirs > 0)).sum())
    return covered / rare if rare else np.nan


def unseen(real: Records, other: Records) -> float:
    """Return the share of cells with a value that no real row has in that column."""
    return float(np.mean([theirs[ours == 0].sum() / len(other) for ours, theirs in _one_ways(real, other)]))


def distinct_rows(comparison: Comparison) -> Score:
    """Return the share of rows that remain without duplicates."""
    tables = comparison.synthetic, comparison.real, comparison.independent
    synthetic, real, independent = (len(np.unique(_rows(t.records.codes))) / len(t) for t in tables)
    return Score(synthetic, real=real, independent=independent)


def identical_rows(real: Records, other: Records) -> float:
    """Return the share of rows that equal a real row, in codes. A diagnostic: it does not measure privacy."""
    return float(np.isin(_rows(other.codes), _rows(real.codes)).mean())


def nearest_row(real: Records, other: Records) -> float:
    """Return the mean number of columns in which a row differs from the nearest real row, over a sample.

    A diagnostic: it does not measure privacy.
    """
    rng = np.random.default_rng(SEED)
    candidates = real.codes[rng.permutation(len(real))[:NEAREST_AMONG]]
    differences = []
    for row in other.codes[rng.permutation(len(other))[:NEAREST_ROWS]]:
        equal = np.zeros(len(candidates), np.int16)
        for axis, code in enumerate(row):
            equal += candidates[:, axis] == code
        differences.append(len(row) - int(equal.max()))
    return float(np.mean(differences))


def wasserstein_of_columns(comparison: Comparison) -> dict[str, Floats]:
    """Return the distances of the columns with numbers, in the order of the real table's `numbers`."""

    def distances(real: Coded, other: Coded) -> Floats:
        return np.array([wasserstein(cells, other.numbers[name]) for name, cells in real.numbers.items()])

    return comparison.compare_each(distances)


def likeness(comparison: Comparison, measure: Callable[[Records, Records], float]) -> Score:
    """Compare without resampled rows: they are real rows, so the result would be trivial."""
    real = comparison.real.records
    return Score(
        measure(real, comparison.synthetic.records),
        held_out=measure(comparison.train.records, comparison.test.records),
        independent=measure(real, comparison.independent.records),
    )


def _one_ways(real: Records, other: Records) -> list[tuple[Ints, Ints]]:
    return [
        (np.bincount(real.codes[:, axis], minlength=size), np.bincount(other.codes[:, axis], minlength=size))
        for axis, size in enumerate(real.domain.sizes)
    ]


def pooled_cells(comparison: Comparison) -> Score:
    """Return the mean share of pooled cells over the columns; NaN if no value is pooled."""
    shares = [float(found.sum()) for found in comparison.pooled.values()]
    return Score(sum(shares) / len(comparison.view.domain.names) if shares else np.nan)


def _rows(cells: npt.NDArray) -> npt.NDArray:
    """Return each row as one item that can be compared."""
    whole = np.ascontiguousarray(cells)
    return whole.view(np.dtype((np.void, whole.dtype.itemsize * whole.shape[1]))).ravel()
