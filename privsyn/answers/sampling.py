"""Drawing columns of codes from tables of counts, each value as often as it should be."""

from __future__ import annotations

import numpy as np

from privsyn.answers._kernels import round_with_offset
from privsyn.answers.arrays import Codes, Floats
from privsyn.answers.marginal import Marginal


def draw_by_quota(weights: Floats, n: int, rng: np.random.Generator) -> Codes:
    """`n` codes in random order, each as often as its weight says, to within one.

    Parameters
    ----------
    weights : array of shape (size,)
        Not negative; equal ones if all are 0.

    Examples
    --------
    >>> codes = draw_by_quota(np.array([3.0, 1.0]), 8, np.random.default_rng(0))
    >>> np.bincount(codes).tolist()
    [6, 2]
    """
    weights = weights if weights.sum() > 0 else np.ones(len(weights))
    quota = round_with_offset(weights * (n / weights.sum()), rng.random())
    codes = np.repeat(np.arange(len(weights), dtype=np.int32), quota)
    # In floating point the quotas can miss n by one row.
    codes = np.resize(codes, n) if len(codes) else np.full(n, int(np.argmax(weights)), np.int32)
    rng.shuffle(codes)
    return codes


def draw_given(table: Marginal, given: Codes, rng: np.random.Generator) -> Codes:
    """A second attribute for rows whose first is known, by quota within each value of the first.

    Parameters
    ----------
    table : Marginal over two attributes, the known one first
        Counts, not negative.
    given : array of shape (n,)
        Codes of the known attribute.

    Examples
    --------
    >>> from privsyn.answers.domain import Domain
    >>> same = Marginal(Domain(("a", "b"), (2, 2)), np.array([[5.0, 0.0], [0.0, 5.0]]))
    >>> draw_given(same, np.array([0, 1, 1, 0], np.int32), np.random.default_rng(0)).tolist()
    [0, 1, 1, 0]
    """
    drawn = np.empty(len(given), np.int32)
    overall = table.counts.sum(axis=0)
    rows = np.argsort(given, kind="stable")
    ends = np.cumsum(np.bincount(given, minlength=len(table.counts)))
    for value, (start, end) in enumerate(zip(np.r_[0, ends[:-1]], ends, strict=True)):
        if end > start:
            weights = table.counts[value]
            drawn[rows[start:end]] = draw_by_quota(
                weights if weights.sum() > 0 else overall, end - start, rng
            )
    return drawn
