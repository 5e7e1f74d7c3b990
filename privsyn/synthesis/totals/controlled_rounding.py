r"""Controlled rounding: whole counts near fractional ones, with given sums over groups of cells.

A count :math:`c` with the fraction :math:`\varphi` is rounded up with probability :math:`\varphi`, as far as
the sums allow it: the cells to be rounded up, :math:`x_i = 1`, have the largest :math:`\sum_i x_i s_i` of all
that keep the sums, with :math:`s_i = \ln(\varphi_i / (1 - \varphi_i)) + \varepsilon_i` and standard logistic
noise :math:`\varepsilon_i`. Alone, :math:`s_i` is positive with probability :math:`\varphi_i` ("perturb and
maximise": Papandreou and Yuille, 2011). An integer program finds them (HiGHS). Cox (JASA, 1987) shows that
such a rounding exists for every table of two attributes; where none exists, counts move by more than 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privsyn.marginals.domain import Floats, Integers, Ints
from privsyn.marginals.tolerances import TINY_COUNT

SURE = 9.0  # largest log odds of a fraction
FARTHER = 40.0  # cost of each record by which a count moves beyond the next whole number
MISSED = 400.0  # cost of each record by which a sum lies outside its bounds
GAP = 1e-2  # relative difference from the best rounding that is good enough
EXACTLY = 1e-6  # records: a fraction below comes from floating-point arithmetic


@dataclass(frozen=True, eq=False)
class SumBounds:
    """Bounds of the sums of groups of cells.

    Parameters
    ----------
    cells, groups : integer arrays of shape (entries,)
        The group of some cells. A cell may be in several groups.
    signs : array of shape (entries,)
        1 where the count is added, -1 where it is subtracted.
    lows, highs : arrays of shape (groups,)
        Whole numbers, in records.
    required : bool
        Whether the bounds hold in any case, or as far as possible.
    """

    cells: Integers
    groups: Integers
    signs: Integers
    lows: Floats
    highs: Floats
    required: bool = True

    @classmethod
    def of(
        cls, groups: Integers, lows: Floats, highs: Floats, start: int = 0, *, required: bool = True
    ) -> SumBounds:
        """Return bounds of the groups of consecutive cells, the first of which is cell `start`."""
        cells = start + np.arange(len(groups))
        return cls(cells, groups, np.ones(len(groups), np.int64), lows, highs, required)


def round_counts(
    counts: Floats,
    sums: Sequence[SumBounds],
    rng: np.random.Generator,
    bounds: tuple[Ints, Ints] | None = None,
) -> Ints | None:
    """Return whole counts near the given ones that keep all required sums; None if there are none.

    Parameters
    ----------
    counts : array of shape (cells,)
        Not negative, in records.
    sums : sequence of SumBounds
    rng : numpy.random.Generator
    bounds : two integer arrays of shape (cells,), optional
        The smallest and the largest whole counts. Default: 0, and none.

    Examples
    --------
    Two rows of two cells, each row with the sum 1:

    >>> rows = SumBounds.of(np.array([0, 0, 1, 1]), np.ones(2), np.ones(2))
    >>> counts = round_counts(np.array([0.9, 0.1, 0.0, 1.0]), [rows], np.random.default_rng(0))
    >>> counts.tolist()
    [1, 0, 0, 1]
    """
    lowest, highest = bounds or (np.zeros(len(counts)), np.full(len(counts), np.inf))
    snapped = np.where(np.abs(counts - np.rint(counts)) < EXACTLY, np.rint(counts), counts)
    floors = np.clip(np.floor(snapped), lowest, highest)
    fractions = np.where(floors < highest, np.clip(snapped - floors, 0.0, 1.0), 0.0)
    odds = np.log(fractions + TINY_COUNT) - np.log1p(TINY_COUNT - fractions)
    scores = np.clip(odds, -SURE, SURE) + rng.logistic(size=len(counts))
    up = _Moves(1, np.where(fractions > 0, 1.0, 0.0), np.where(fractions > 0, -scores, 0.0))
    if (solution := _solve(floors, [up], sums)) is None:
        costs = FARTHER * (1 + rng.random((2, len(counts))) / 2)
        farther = [_Moves(1, highest - floors - up.limits, costs[0]), _Moves(-1, floors - lowest, costs[1])]
        solution = _solve(floors, [up, *farther], sums)
    return solution


@dataclass(frozen=True, eq=False)
class _Moves:
    """A way in which each count may change: up or down, how far at most, and the cost of each record."""

    sign: int
    limits: Floats
    costs: Floats


def _solve(floors: Floats, moves: Sequence[_Moves], sums: Sequence[SumBounds]) -> Ints | None:
    """Return the floors after the cheapest moves that keep the required sums; None if there are none."""
    from scipy import sparse
    from scipy.optimize import LinearConstraint

    rows: list[Any] = []
    for bounds in sums:
        entries = bounds.signs.astype(np.float64), (bounds.groups, bounds.cells)
        rows.append(sparse.csr_matrix(entries, shape=(len(bounds.lows), len(floors))))
    matrix = sparse.vstack(rows, format="csc")
    optional = np.flatnonzero(np.repeat([not b.required for b in sums], [len(b.lows) for b in sums]))
    slack = sparse.identity(matrix.shape[0], format="csc")[:, optional]
    columns = [*(move.sign * matrix for move in moves), slack, -slack]
    costs = np.concatenate([*(move.costs for move in moves), np.full(2 * len(optional), MISSED)])
    limits = np.concatenate([*(move.limits for move in moves), np.full(2 * len(optional), np.inf)])
    sums_of_floors = matrix @ floors
    lows = np.concatenate([b.lows for b in sums]) - sums_of_floors
    highs = np.concatenate([b.highs for b in sums]) - sums_of_floors
    constraints = LinearConstraint(sparse.hstack(columns, format="csc"), lows, highs)
    solution = _cheapest(costs, limits, constraints)
    if solution is None:
        return None
    steps = np.rint(solution[: len(moves) * len(floors)]).reshape(len(moves), -1)
    moved = sum(move.sign * step for move, step in zip(moves, steps, strict=True))
    return np.asarray(floors + moved, np.int64)


def _cheapest(costs: Floats, limits: Floats, constraints: Any) -> Floats | None:
    """Return the cheapest whole numbers from 0 to the limits that keep linear constraints; None if none do.

    The cheapest fractions are mostly whole, because those of tables whose sums form a tree are. If not, the
    whole ones among them are kept; if no whole numbers go with these, all are tried.
    """
    from scipy.optimize import Bounds, milp

    # HiGHS compares all pairs of cells before it solves a sum over 60,000: 40 s in place of 0.2 s
    linear = milp(costs, bounds=Bounds(0, limits), constraints=constraints, options={"presolve": False})
    cheapest = linear.x
    if cheapest is None:
        return None
    nearest = np.rint(cheapest)
    is_whole = np.abs(cheapest - nearest) < EXACTLY
    if is_whole.all():
        return np.asarray(nearest, np.float64)
    lowest, highest = np.where(is_whole, nearest, 0.0), np.where(is_whole, nearest, limits)
    for bounds in (Bounds(lowest, highest), Bounds(0, limits)):
        whole_numbers = milp(
            costs,
            integrality=np.ones(len(costs), np.int64),
            bounds=bounds,
            constraints=constraints,
            options={"mip_rel_gap": GAP},
        ).x
        if whole_numbers is not None:
            return np.asarray(whole_numbers, np.float64)
    return None
