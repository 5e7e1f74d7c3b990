"""Iterative proportional fitting of a table to given margins."""

from __future__ import annotations

from math import isclose

import numpy as np

from privsyn.marginals.domain import Domain
from privsyn.marginals.marginal import Marginal, lift
from privsyn.marginals.types import Floats, Mask

FITTINGS = 30  # most rounds over the margins
FITTED = 1e-12  # share of the total: a margin counts as met if its largest gap is below
SAME = 1e-9  # relative difference that is only rounding
STALLED = 1e-5  # stop when a round reduces the largest gap by less than this share


def fit_margins(
    table: Marginal, margins: tuple[Marginal, ...], *, rounds: int = FITTINGS, enough: float = FITTED
) -> Marginal:
    """Scale a table to the given margins by iterative proportional fitting (Deming and Stephan, 1940).

    Fitting stops after `rounds`, when every gap is at most `enough` times the total, or when it no longer
    improves. Margins that contradict each other or the table's zeros cannot all be met. The total is always
    met: the table is scaled to it. An empty table is filled evenly, outside its zeros where possible.

    Examples
    --------
    >>> from privsyn.marginals.domain import Domain
    >>> square = Domain(("a", "b"), (2, 2))
    >>> a, b = (Marginal(square.project((name,)), np.array([6.0, 2.0])) for name in "ab")
    >>> fit_margins(Marginal(square, np.ones((2, 2))), (a, b)).counts.round(6).tolist()
    [[4.5, 1.5], [1.5, 0.5]]
    """
    counts = table.counts
    sides = _sides(table.domain, margins)
    missed = np.inf
    for _ in range(rounds):
        before, missed = missed, 0.0
        for others, margin in sides:
            sums = counts.sum(axis=others, keepdims=True)
            missed = max(missed, float(np.abs(sums - margin).max()))
            if sums.min() > 0:
                counts = counts * (margin / sums)
            else:
                counts = counts * np.divide(margin, sums, out=np.zeros_like(sums), where=sums > 0)
        if missed <= enough * counts.sum() or before - missed <= STALLED * missed:
            break
    return Marginal(
        table.domain, _with_total(counts, table.counts > 0, margins[0].total) if margins else counts
    )


def _with_total(counts: Floats, room: Mask, total: float) -> Floats:
    """Return the counts scaled to `total`; if all are 0, equal counts in every cell of `room`."""
    if not counts.sum() > 0:
        counts = (room if room.any() else ~room).astype(np.float64)
    found = float(counts.sum())
    return counts if isclose(found, total, rel_tol=SAME) else counts * (total / found)


def _sides(domain: Domain, margins: tuple[Marginal, ...]) -> list[tuple[tuple[int, ...], Floats]]:
    """Return for each margin the axes that it sums out, and its counts in the table's shape."""
    return [
        (
            tuple(axis for axis, name in enumerate(domain.names) if name not in margin.attributes),
            lift(margin, domain),
        )
        for margin in margins
    ]
