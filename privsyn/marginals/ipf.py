"""Iterative proportional fitting of a table to given margins."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from privsyn.marginals import _kernels
from privsyn.marginals.domain import Domain, Floats, Mask
from privsyn.marginals.marginal import Marginal, for_alike, unstacked
from privsyn.marginals.tolerances import SMALLEST

FITTINGS = 30  # most iterations over the margins
FITTED = 1e-12  # share of the total: a margin counts as met if its largest gap is below
SAME = 1e-9  # relative difference that is only rounding
STALLED = 1e-5  # stop when an iteration reduces the sum of all gaps by less than this share
CELLS_AT_ONCE = 2**15  # cells of tables that are fitted together: they stay in the second-level cache


def fit_margins(
    table: Marginal, margins: tuple[Marginal, ...], *, iterations: int = FITTINGS, enough: float = FITTED
) -> Marginal:
    """Scale a table to the given margins by iterative proportional fitting (Deming and Stephan, 1940).

    Fitting stops after `iterations`, when every gap is at most `enough` times the total, or when the sum of
    all gaps no longer falls. Of two margins it never grows, but the largest gap may. Margins that contradict
    each other or the table's zeros cannot all be met. The total is always met: the table is scaled to it. An
    empty table is filled evenly, outside its zeros where possible.

    Examples
    --------
    >>> from privsyn.marginals.domain import Domain
    >>> square = Domain(("a", "b"), (2, 2))
    >>> a, b = (Marginal(square.project((name,)), np.array([6.0, 2.0])) for name in "ab")
    >>> fit_margins(Marginal(square, np.ones((2, 2))), (a, b)).counts.round(6).tolist()
    [[4.5, 1.5], [1.5, 0.5]]
    """
    return fit_all((table,), (margins,), iterations=iterations, enough=enough)[0] if margins else table


def fit_all(
    tables: Sequence[Marginal],
    margins: Sequence[tuple[Marginal, ...]],
    *,
    iterations: int = FITTINGS,
    enough: float = FITTED,
) -> list[Marginal]:
    """Return `fit_margins` of each table to its own margins. Tables of one shape are fitted together."""
    fitted: dict[int, Marginal] = {}
    domains = [table.domain for table in tables]

    def fit(indices: list[int]) -> None:
        some = [domains[i] for i in indices]
        sides = lift_all(some, [margins[i] for i in indices])
        counts = np.array([tables[i].counts for i in indices])
        counts_fitted = fit_alike(counts, sides, sums_of(sides[0]), iterations, enough)
        fitted.update(zip(indices, unstacked(some, counts_fitted), strict=True))

    for_alike(fit, list(map(kind_of, domains, margins)), [d.cells for d in domains], CELLS_AT_ONCE)
    return [fitted[i] for i in range(len(tables))]


def kind_of(domain: Domain, margins: tuple[Marginal, ...]) -> Hashable:
    """Return what tables have in common that are computed together: shape, and axes of their margins."""
    return domain.shape, tuple(domain.axes(margin.attributes) for margin in margins)


def lift_all(domains: Sequence[Domain], margins: Sequence[tuple[Marginal, ...]]) -> list[Floats]:
    """Return each kind of margin of all tables, of shape (tables, ...): 1 along axes that it sums out.

    The tables have one `kind_of`.
    """
    lifted = []
    for margins_of_kind in zip(*margins, strict=True):
        axes = domains[0].axes(margins_of_kind[0].attributes)  # and those of all the others
        shape = [size if axis in axes else 1 for axis, size in enumerate(domains[0].shape)]
        counts = np.array([margin.counts for margin in margins_of_kind])
        lifted.append(counts.transpose(0, *(1 + np.argsort(axes))).reshape(-1, *shape))
    return lifted


def fit_alike(
    counts: Floats,
    sides: Sequence[Floats],
    totals: Floats,
    iterations: int = FITTINGS,
    enough: float = FITTED,
) -> Floats:
    """Return tables of one kind, each fitted to its margins; see `fit_margins`.

    Parameters
    ----------
    counts : array of shape (tables, ...)
    sides : the margins, see `lift_all`
    totals : array of shape (tables,)
    """
    fitted = counts.copy()
    if [side.shape[1:] for side in sides] == [(*counts.shape[1:2], 1), (1, *counts.shape[2:])]:
        rows, columns = (side.reshape(len(counts), -1) for side in sides)
        sums = _kernels.fit_pairs(fitted, rows, columns, iterations, enough, STALLED)
        met = (sums > 0) & (np.abs(sums - totals) <= SAME * np.maximum(sums, totals))
        return fitted if met.all() else _with_totals(fitted, counts > 0, totals)
    possible, unfinished, gaps = counts > 0, np.arange(len(counts)), np.full(len(counts), np.inf)
    for _ in range(iterations):
        before, gaps, missed = gaps, np.zeros(len(unfinished)), np.zeros(len(unfinished))
        for margin in sides:
            summed = tuple(axis for axis in range(1, counts.ndim) if margin.shape[axis] == 1)
            sums = counts.sum(axis=summed, keepdims=True)
            gap = np.abs(sums - margin).reshape(len(unfinished), -1)
            gaps, missed = gaps + gap.sum(axis=1), np.maximum(missed, gap.max(axis=1))
            # Of a smaller sum the ratio could not be represented, and nearly nothing is there.
            scalable = (sums > 0) & (sums > SMALLEST * margin)
            counts = counts * np.divide(margin, sums, out=np.zeros_like(sums), where=scalable)
        done = (missed <= enough * sums_of(counts)) | (before - gaps <= STALLED * gaps)
        if done.any():
            fitted[unfinished[done]] = counts[done]
            unfinished, counts, gaps = unfinished[~done], counts[~done], gaps[~done]
            sides = [margin[~done] for margin in sides]
            if not len(unfinished):
                break
    fitted[unfinished] = counts
    return _with_totals(fitted, possible, totals)


def _with_totals(counts: Floats, possible: Mask, totals: Floats) -> Floats:
    """Return tables scaled to their totals; where all counts are 0, equal counts in all `possible` cells."""
    for empty in np.flatnonzero(~(sums_of(counts) > 0)):
        counts[empty] = possible[empty] if possible[empty].any() else 1.0
    sums = sums_of(counts)
    off = np.abs(sums - totals) > SAME * np.maximum(sums, np.abs(totals))
    counts[off] *= (totals[off] / sums[off]).reshape(-1, *(1,) * (counts.ndim - 1))
    return counts


def sums_of(counts: Floats) -> Floats:
    """Return the sum of each table."""
    return np.asarray(counts.reshape(len(counts), -1).sum(axis=1))
