"""Count, sum, mean, variance and median of a column, each a private answer in one line, charged to a ledger.

Bounds are public: the caller knows them, and does not take them from the column. Cells beyond a bound count
as the bound. Missing cells, and cells of a column of objects that are no number, count nowhere. How many
there are stays private.

Floating-point sums depend on the order of their terms, and one row can move them further than its own size
(Casacuberta, Shoemate, Vadhan and Wagaman, 2022). So each cell is first rounded to a whole number of steps
between those of its bounds, and all sums are sums of whole numbers. A step is the power of two below (high -
low) / 2^20, whatever the cells are: a missing cell makes a column of integers one of floats, so a step that
depended on the dtype would reveal that cell.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import inf, nan
from typing import Any

import numpy as np
import pandas as pd

from privsyn.arguments import check_between, check_finite
from privsyn.errors import InputError, replace_errors, safe_repr
from privsyn.marginals.domain import Ints
from privsyn.mechanisms.additive import DiscreteLaplace, step_of
from privsyn.mechanisms.mechanism import Mechanism
from privsyn.private.composition import Promise
from privsyn.private.ledger import Ledger
from privsyn.private.noise_laws import HEADROOM, LAPLACE
from privsyn.private.smooth_sensitivity import lower_median, rounded_cauchy, smooth_sensitivity_of_median
from privsyn.private.spend import ADD_OR_REMOVE, CHANGE, Spend
from privsyn.table.encoding.parsing import alone, is_missing

MOST_STEPS = 2.0**52
"""Steps that a double holds beside a half."""


def count(column: Any, *, epsilon: float, ledger: Ledger | None = None, seed: int | None = None) -> int:
    """Return the number of cells that are not missing, with discrete Laplace noise.

    Cells are counted whatever they say: the number of True in a mask is its `sum`, with bounds 0 and 1.

    Parameters
    ----------
    column : Series, array or list
    epsilon : float
    ledger : Ledger, optional
        It is charged first, and refuses if it has not enough left. Default: you add up the costs yourself.
        Its `neighbours` determine the sensitivity. Default: a record is added or removed.
    seed : int, optional
        For tests: NOT PRIVATE.

    Examples
    --------
    >>> from privsyn import Ledger
    >>> ledger = Ledger(epsilon=1)
    >>> count([31, None, 44, 50], epsilon=0.5, ledger=ledger, seed=7)
    3
    """
    series = series_of(column)
    _neighbours(ledger)
    # A record adds one cell or none. A changed one goes missing or appears: 1 for both neighbours.
    noisy = DiscreteLaplace(epsilon=epsilon, sensitivity=1, seed=seed)
    charge(ledger, f"count of {name_of(series)}", noisy)
    return noisy.release(_present(series))


def sum(  # noqa: A001  the name of the question
    column: Any,
    *,
    low: float,
    high: float,
    epsilon: float,
    ledger: Ledger | None = None,
    seed: int | None = None,
) -> float:
    """Return the sum of a column, with discrete Laplace noise.

    Parameters
    ----------
    column : Series, array or list of numbers
        Other cells count nowhere, and no error says so: the sum or mean of a column of text is noise.
    low, high : float
        Public bounds of a cell.
    epsilon, ledger, seed
        As of `count`.

    Examples
    --------
    >>> round(sum([31, 44, 50], low=0, high=100, epsilon=1.0, seed=7))
    148
    """
    series = series_of(column)
    grid = Grid.of(series, low, high)
    # A record adds one cell, from `low` to `high`, or none. A changed one moves between these three.
    sensitivity = max(abs(grid.low), abs(grid.high))
    if _neighbours(ledger) == CHANGE:
        sensitivity = max(sensitivity, grid.high - grid.low)
    noisy = DiscreteLaplace(epsilon=epsilon, sensitivity=max(sensitivity, 1), seed=seed)
    charge(ledger, f"sum of {name_of(series)}", noisy)
    return grid.value(noisy.release(total(grid.cells(series))))


def mean(
    column: Any,
    *,
    low: float,
    high: float,
    epsilon: float,
    ledger: Ledger | None = None,
    seed: int | None = None,
) -> float:
    """Return the mean of a column, from a noisy sum and a noisy number of cells.

    Half of epsilon each. The sum is that of the distances from the middle of both bounds, which one record
    moves least. The mean is the middle plus noisy sum / noisy number, within the bounds: post-processing.

    Parameters
    ----------
    column, low, high, epsilon, ledger, seed
        As of `sum`.

    Examples
    --------
    >>> f"{mean([31, None, 44, 50] * 100, low=0, high=100, epsilon=1.0, seed=7):.0f}"
    '42'
    """
    series = series_of(column)
    grid = Grid.of(series, low, high)
    check_between("epsilon", epsilon)
    # Beside a distance, a record adds 1 or 0 to the number.
    sensitivity = grid.sensitivity_of_distances(_neighbours(ledger))
    noisy_sum = DiscreteLaplace(epsilon=epsilon / 2, sensitivity=sensitivity, seed=seed)
    noisy_number = DiscreteLaplace(
        epsilon=epsilon / 2, sensitivity=1, seed=None if seed is None else seed + 1
    )
    charge(ledger, f"mean of {name_of(series)}", noisy_sum, noisy_number)
    cells = grid.cells(series)
    distances = noisy_sum.release(total(cells - grid.middle))
    number = max(1, noisy_number.release(len(cells)))
    return min(max(float((grid.middle + Fraction(distances, number)) * grid.step), float(low)), float(high))


def variance(
    column: Any,
    *,
    low: float,
    high: float,
    epsilon: float,
    ledger: Ledger | None = None,
    seed: int | None = None,
) -> float:
    """Return the variance of a column, the mean square of the distances of its cells from their mean.

    Half of epsilon is for the sum of squared distances from the middle of both bounds, and a quarter each for
    the sum of these distances and for the number of cells. The variance is that of the three noisy answers,
    within 0 and a quarter of (high - low)^2: post-processing.

    Parameters
    ----------
    column, low, high, epsilon, ledger, seed
        As of `sum`.

    Examples
    --------
    >>> f"{variance([31, None, 44, 50] * 400, low=0, high=100, epsilon=1.0, seed=7) ** 0.5:.0f}"
    '8'
    """
    series = series_of(column)
    grid = Grid.of(series, low, high)
    check_between("epsilon", epsilon)
    with replace_errors(f"the bounds {low:g} and {high:g} are too far apart to be squared", OverflowError):
        largest = (float(high) - float(low)) ** 2 / 4
    # Beside a distance, a record adds its rounded square and 1 to the number, or nothing. A changed one moves
    # the square between 0 and the farthest one, or to or from that of a missing cell.
    farthest, sensitivity = grid.farthest, grid.sensitivity_of_distances(_neighbours(ledger))
    noisy_squares, noisy_sum, noisy_number = (
        DiscreteLaplace(epsilon=share, sensitivity=bound, seed=None if seed is None else seed + number)
        for number, (share, bound) in enumerate(
            ((epsilon / 2, farthest), (epsilon / 4, sensitivity), (epsilon / 4, 1))
        )
    )
    charge(ledger, f"variance of {name_of(series)}", noisy_squares, noisy_sum, noisy_number)
    distances = grid.cells(series) - grid.middle
    # Each square is rounded to a multiple of the farthest distance, so it is 0 to farthest of these.
    squares = noisy_squares.release(total((distances**2 + farthest // 2) // farthest))
    moved, number = noisy_sum.release(total(distances)), max(1, noisy_number.release(len(distances)))
    spread = (Fraction(squares * farthest, number) - Fraction(moved, number) ** 2) * grid.step**2
    return float(min(max(spread, Fraction(0)), Fraction(largest)))  # a float of `spread` may overflow


def median(
    column: Any,
    *,
    low: float,
    high: float,
    epsilon: float,
    ledger: Ledger | None = None,
    seed: int | None = None,
) -> float:
    """Return the median of a column, with Cauchy noise in proportion to its smooth sensitivity.

    Of an even number of cells the lower middle one; of none, `low`. Where many cells lie close to the
    median the noise is small, in a column with few cells or a gap in the middle it is large. The answer is
    cut off at the bounds. A pure epsilon: see `privsyn.private.smooth_sensitivity` for the proof.

    Parameters
    ----------
    column, low, high, epsilon, ledger, seed
        As of `sum`.

    References
    ----------
    Nissim, Raskhodnikova and Smith, "Smooth sensitivity and sampling in private data analysis", 2007.

    Examples
    --------
    >>> round(median(list(range(1000)), low=0, high=1000, epsilon=1.0, seed=7))
    500
    """
    series = series_of(column)
    grid = Grid.of(series, low, high)
    check_between("epsilon", epsilon)
    # A changed record is one that is removed and one that is added, each at half of epsilon.
    steps = 2 if _neighbours(ledger) == CHANGE else 1
    noisy = SmoothCauchy(epsilon=epsilon / steps, seed=seed)
    charge(ledger, f"median of {name_of(series)}", *[noisy] * steps)
    cells = np.sort(grid.cells(series))
    # Its local sensitivity, the widest move of the median by one record, is at most the smooth one.
    sensitivity = smooth_sensitivity_of_median(cells, grid.low, grid.high, noisy.beta)
    answer = noisy.release(lower_median(cells, grid.low), sensitivity, grid.high - grid.low)
    return grid.value(min(max(answer, grid.low), grid.high))


@dataclass(frozen=True)
class Grid:
    """Public bounds of a column in whole steps.

    Parameters
    ----------
    low, high : int
        In steps.
    step : Fraction
    """

    low: int
    high: int
    step: Fraction

    @classmethod
    def of(cls, series: pd.Series[Any], low: float, high: float) -> Grid:
        """Return the grid of a column with these bounds. It depends on the bounds alone."""
        low, high = check_finite("low", low), check_finite("high", high)
        if not low < high:
            raise InputError(f"low must be below high; got {low:g} and {high:g}")
        if series.dtype.kind not in "biufO":
            raise InputError(f"the column must hold numbers; got dtype {series.dtype}")
        step = step_of(high - low)
        if max(abs(low), abs(high)) / step > MOST_STEPS:
            raise InputError(f"the bounds {low:g} and {high:g} are too close together for their size")
        return cls(round(Fraction(low) / step), round(Fraction(high) / step), step)

    @property
    def middle(self) -> int:
        """The middle of both bounds, from which one record is least far."""
        return (self.low + self.high) // 2

    @property
    def farthest(self) -> int:
        """The largest distance of a cell from the middle, at least 1."""
        return max(self.middle - self.low, self.high - self.middle, 1)

    def sensitivity_of_distances(self, neighbours: str) -> int:
        """Return by how many steps one record moves the sum of the distances of cells from the middle.

        A record adds one distance or, with a missing cell, none. A changed one moves its distance between
        those of `low` and `high`, or to or from that of a missing cell, which is 0.
        """
        return max(self.high - self.low, 1) if neighbours == CHANGE else self.farthest

    def cells(self, series: pd.Series[Any]) -> Ints:
        """Return each cell that is not missing, within the bounds, in steps."""
        if series.dtype.kind == "O":  # each alone: no cell decides how another one is read
            numbers = np.array([number_in(cell) for cell in series], np.float64)
        else:
            numbers = series.to_numpy(np.float64, na_value=np.nan)
        present = numbers[~np.isnan(numbers)]
        inside = np.clip(present, float(self.low * self.step), float(self.high * self.step))
        # Whatever a cell is rounded to, it lies within the bounds: no rounding error enters a sensitivity.
        return np.clip(np.floor(inside / float(self.step) + 0.5).astype(np.int64), self.low, self.high)

    def value(self, steps: int) -> float:
        """Return a number of steps in the unit of the column."""
        return float(steps * self.step)


@dataclass(frozen=True, kw_only=True)
class SmoothCauchy(Mechanism):
    """Cauchy noise of scale S / alpha, where S is a beta-smooth sensitivity: epsilon = alpha + beta.

    S depends on the private table.

    Parameters
    ----------
    epsilon : float
        Half of it is alpha, the other half beta.
    seed : int, optional
        For tests: NOT PRIVATE.
    """

    epsilon: float

    def __post_init__(self) -> None:
        super().__post_init__()
        check_between("epsilon", self.epsilon)

    @property
    def beta(self) -> float:
        """By which factor, as a logarithm, the smooth sensitivities of neighbours may differ; and alpha."""
        return self.epsilon / 2 / (1 + HEADROOM)

    @property
    def spend(self) -> Spend:
        """What one answer costs, in units of the smooth sensitivity, which is private."""
        return Spend(self.name, 1, 1.0, LAPLACE.scale(self.epsilon, 1.0), law="laplace")

    @property
    def promise(self) -> Promise:
        """A pure epsilon, alpha + beta."""
        return Promise.pure(2 * self.beta)

    def release(self, exact: int, sensitivity: Fraction, limit: int) -> int:
        """Return a private answer in whole steps: round(exact + noise), with noise of at most `limit` steps.

        Parameters
        ----------
        exact : int
        sensitivity : Fraction
            Smooth, for `beta`.
        limit : int
            Largest distance of the answer from `exact` that matters: whatever is further is cut off.
        """
        return exact + rounded_cauchy(sensitivity / Fraction(self.beta), limit, self._bits)


def number_in(cell: Any) -> float:
    """Return a cell of a column of objects as a number; not a number for what is none.

    >>> number_in("7"), number_in("seven"), number_in(-(10**400))
    (7.0, nan, -inf)
    """
    try:
        return float(cell)
    except OverflowError:
        return inf if cell > 0 else -inf
    except Exception:  # no error may depend on a cell
        return nan


def series_of(column: Any) -> pd.Series[Any]:
    """Return a column of any kind as a Series; refuse a table, by its type alone."""
    if isinstance(column, pd.Series):
        return column
    if getattr(column, "ndim", 1) != 1 or hasattr(column, "columns") or isinstance(column, str | Mapping):
        raise InputError("give one column, such as table['age'], and no table, text or mapping")
    if hasattr(column, "to_pylist"):  # of Arrow
        return pd.Series(column.to_pandas())
    if isinstance(column, list | tuple):  # of objects: no cell decides on a dtype
        return pd.Series(column, dtype=object)
    series = pd.Series(column.to_numpy() if hasattr(column, "to_numpy") else column)
    return series.rename(getattr(column, "name", None))


def _present(series: pd.Series[Any]) -> int:
    """Return how many cells are not missing. `Decimal("sNaN")` raises when tested: it counts as missing."""
    if series.dtype.kind != "O":
        return int(series.notna().sum())
    return int(np.count_nonzero([not alone(is_missing, cell, True) for cell in series]))


def name_of(series: pd.Series[Any]) -> str:
    """Return the name of a column, for the ledger."""
    return "a column" if series.name is None else str(series.name)


def total(cells: Ints) -> int:
    """Return the sum of whole numbers, however large."""
    high, rest = np.divmod(cells, 2**20)
    return int(high.sum()) * 2**20 + int(rest.sum())


def charge(ledger: Ledger | None, question: str, *mechanisms: DiscreteLaplace | SmoothCauchy) -> None:
    """Charge the mechanisms of a question, before any of them draws."""
    if ledger is not None:
        ledger.charge(*mechanisms, question=question)


def _neighbours(ledger: Ledger | None) -> str:
    """Return the neighbours of the ledger; refuse those for which no sensitivity is proved here."""
    if not isinstance(ledger, Ledger | None):
        raise InputError(f"ledger must be a Ledger, such as Ledger(epsilon=1); got {safe_repr(ledger)}")
    neighbours = ADD_OR_REMOVE if ledger is None else ledger.neighbours
    if neighbours not in (ADD_OR_REMOVE, CHANGE):
        raise InputError(f"sensitivities are known for one record, and not for neighbours that {neighbours}")
    return neighbours
