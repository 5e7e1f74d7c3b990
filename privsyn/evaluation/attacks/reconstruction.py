"""`reconstruct`: find a secret bit of each person from many noisy counts, as Dinur and Nissim (2003) did.

The attacker knows who was counted in each answer, and nothing else. The attack reads answers alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog, lsq_linear

from privsyn.errors import InputError, did_you_mean, safe_repr
from privsyn.marginals.domain import Floats, Ints

MOST_PEOPLE = 20
"""People of an exhaustive search at most. It compares 2^n candidates with all answers."""

CANDIDATES_AT_ONCE = 2**14


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """The bits that an attacker infers.

    Parameters
    ----------
    bits : array of 0 and 1, shape (n,)
        `fractions` above one half.
    fractions : array, shape (n,)
        The solution between 0 and 1 before it is rounded. Of an exhaustive search these are the bits.
    """

    bits: Ints
    fractions: Floats

    def right(self, secret: npt.ArrayLike) -> float:
        """Return the share of the bits that are those of `secret`, shape (n,). A coin gets half.

        >>> Reconstruction(np.array([1, 0, 1, 1]), np.array([1, 0.1, 0.8, 0.9])).right([1, 0, 1, 0])
        0.75
        """
        if np.shape(secret) != self.bits.shape:
            raise InputError(f"secret must have one bit for each of {len(self.bits)} people")
        return float(np.mean(self.bits == np.asarray(secret)))


def reconstruct(answers: npt.ArrayLike, queries: npt.ArrayLike, method: str = "linear") -> Reconstruction:
    r"""Infer the secret bit of each person from noisy counts of subsets of the people.

    Parameters
    ----------
    answers : array of float, shape (m,)
        Each is the number of counted people whose bit is 1, plus some error.
    queries : array of 0 and 1, shape (m, n)
        Whether a query (row) counts a person (column).
    method : "linear", "least squares" or "exhaustive"
        What the bits :math:`x` minimise, for the queries :math:`Q` and the answers :math:`a`:

        - "linear": :math:`\sum_i |a - Q x|_i` over :math:`0 \le x \le 1`, by linear programming.
        - "least squares": :math:`\sum_i (a - Q x)_i^2` over :math:`0 \le x \le 1`.
        - "exhaustive": :math:`\max_i |a - Q x|_i` over all :math:`x \in \{0, 1\}^n`, for up to 20 people.

    Returns
    -------
    Reconstruction
        The bits, and the solution before it is rounded.

    Raises
    ------
    InputError
        If the shapes do not fit, a number is not finite, or there are too many people to try all candidates.

    References
    ----------
    Dinur and Nissim, "Revealing information while preserving privacy", PODS 2003. The sum of distances
    follows Dwork, McSherry and Talwar, "The price of privacy and the limits of LP decoding", STOC 2007.

    Examples
    --------
    >>> reconstruct([1, 2, 1], [[1, 1, 0], [0, 1, 1], [1, 0, 1]]).bits.tolist()
    [0, 1, 1]
    """
    if method not in METHODS:
        meant = did_you_mean(method, METHODS) or f": choose from {', '.join(METHODS)}"
        raise InputError(f"there is no method {safe_repr(method)} to reconstruct{meant}")
    counts, subsets = _finite("answers", answers, 1), _finite("queries", queries, 2)
    if len(counts) != len(subsets) or not subsets.size:
        shape = " x ".join(map(str, subsets.shape))
        raise InputError(f"queries must have one row for each of {len(counts)} answers; got {shape}")
    if not np.isin(subsets, (0, 1)).all():
        raise InputError("queries must be 0 or 1: whether a query counts a person")
    fractions = METHODS[method](counts, subsets)
    return Reconstruction((fractions > 0.5).astype(np.int64), fractions)


def _finite(name: str, values: npt.ArrayLike, axes: int) -> Floats:
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be numbers in {axes} dimension{'s'[: axes - 1]}") from None
    if numbers.ndim != axes or not np.isfinite(numbers).all():
        raise InputError(f"{name} must be finite numbers in {axes} dimension{'s'[: axes - 1]}")
    return numbers


def _least_distances(answers: Floats, queries: Floats) -> Floats:
    """Return the solution of the linear programme, from its dual.

    The primal minimises sum_i |a - Q x|_i and has a constraint for each answer. The dual maximises
    a.y - sum_j w_j over |y_i| <= 1 and w_j >= max(0, (Q^T y)_j). It has a constraint for each person, of
    whom there are fewer, and x_j is the multiplier of w_j >= (Q^T y)_j.
    """
    m, n = queries.shape
    solution = linprog(
        np.r_[-answers, np.ones(n)],
        A_ub=np.hstack([queries.T, -np.eye(n)]),
        b_ub=np.zeros(n),
        bounds=[(-1, 1)] * m + [(0, None)] * n,
        method="highs-ipm",
    )
    return np.clip(-solution.ineqlin.marginals, 0, 1)


def _least_squares(answers: Floats, queries: Floats) -> Floats:
    """Return the least squares solution between 0 and 1."""
    return np.clip(lsq_linear(queries, answers, (0, 1)).x, 0, 1)


def _exhaustive(answers: Floats, queries: Floats) -> Floats:
    """Return the first candidate whose largest distance to an answer is smallest."""
    n = queries.shape[1]
    if n > MOST_PEOPLE:
        raise InputError(
            f"an exhaustive search of {n} people has 2^{n} candidates: give at most {MOST_PEOPLE} people, or"
            ' method="linear"'
        )
    best, smallest = 0, np.inf
    for first in range(0, 2**n, CANDIDATES_AT_ONCE):
        candidates = np.arange(first, min(first + CANDIDATES_AT_ONCE, 2**n))
        distances = np.abs(_bits(candidates, n) @ queries.T - answers).max(axis=1)
        if distances.min() < smallest:
            best, smallest = first + int(distances.argmin()), float(distances.min())
    return _bits(np.array([best]), n)[0]


def _bits(numbers: Ints, n: int) -> Floats:
    """Return the n binary digits of each number, the first digit last.

    >>> _bits(np.array([1, 6]), 3).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]]
    """
    return (numbers[:, None] >> np.arange(n) & 1).astype(np.float64)


METHODS = {"linear": _least_distances, "least squares": _least_squares, "exhaustive": _exhaustive}
