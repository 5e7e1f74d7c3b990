"""Stage 4, the end: values moved one by one until the records fit all tables at once.

A start along a tree fits the pairs on the tree only, and GUM leaves duplicates and rounding behind. Here
each row in turn is offered, for one attribute, the value of another, random row. Taken if the tables fit
better by it, or sometimes though they fit a little worse, ever more rarely (simulated annealing:
Kirkpatrick et al., Science 1983). The offer keeps rare values rare, and a look-up of two cells a table
decides it. Where one attribute all but determines another, neither can move alone: such are offered
together.
"""

from __future__ import annotations

import numpy as np

from privsyn.marginals.coarse import Coarse, coarsen, groups_at
from privsyn.marginals.domain import Attributes, Records
from privsyn.marginals.marginal import Marginal
from privsyn.marginals.statistics import coupling, pairs_within
from privsyn.marginals.structural_zeros import NO_ZEROS, StructuralZeros
from privsyn.synthesis import _kernels
from privsyn.synthesis.layout import lay_out

LOOKUPS = 2500  # a row: the time that is given to it, in tables that a proposal looks at
FEWEST, MOST = 10, 20  # sweeps, however many tables there are: with fewer, wide tables are left half fitted
TEMPERATURE = 0.3  # in units of the objective; most of the fit is found far below it
NEVER = 1e6  # weight of a record in a public zero: no table gains as much by a move
COLUMNS, SUMS = 100.0, 10.0  # weights of a column and of a coarse sum, beside a cell of a table
COARSE = 4  # groups of an attribute in a coarse sum
TOGETHER = 0.5  # of the coupling of two attributes, from which on they are also moved together


def finish(
    start: Records,
    tables: tuple[Marginal, ...],
    rng: np.random.Generator,
    *,
    one_ways: tuple[Marginal, ...] = (),
    sweeps: int | None = None,
    possible: StructuralZeros = NO_ZEROS,
    still: Attributes = (),
) -> Records:
    """Records with the smallest sum over cells of (count - target)^2 / (target + 1) that annealing finds.

    Never a larger one than at the start: where tables form a tree, the start may be exact.

    Parameters
    ----------
    start : Records
        Where to begin; its number of rows is kept.
    tables : tuple of Marginal
        Non-negative, agreeing counts with a positive total; scaled to the number of rows. Attributes
        that are in no table stay as they are.
    rng : numpy.random.Generator
    one_ways : tuple of Marginal, optional
        The counts of each attribute. With them the records are also held to the columns and to coarse sums of
        pairs. In a cell whose target is under one half the objective is least at a count of 0, so sparse
        tables alone would move records from thin regions into dense ones.
    sweeps : int, optional
        How often every row is offered a value for each attribute; the more tables, the fewer, if left out.
    possible : Possible
        Public zeros: no row is moved into one, and rows leave them at any price.
    still : tuple of str
        Attributes that no row is offered a value for.

    Examples
    --------
    Two independent coins become two coins that agree:

    >>> from privsyn.marginals.domain import Domain
    >>> domain = Domain(("left", "right"), (2, 2))
    >>> start = Records(domain, np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 50))
    >>> same = Marginal(domain, np.array([[100.0, 0.0], [0.0, 100.0]]))
    >>> records = finish(start, (same,), np.random.default_rng(0))
    >>> bool((records.codes[:, 0] == records.codes[:, 1]).all())
    True
    """
    if not tables or not len(start):
        return start
    # Nominal columns are left free: held to them, no single value could move in a table of few records.
    one_ways = tuple(one_way for one_way in one_ways if one_way.domain.ordered[0])
    sums = _coarse_sums(tables, one_ways)
    fitted: tuple[Marginal | Coarse, ...] = (*tables, *sums, *one_ways)
    layout = lay_out(start.domain, fitted, together=tightly_coupled(tables), still=still)
    targets = np.concatenate([table.counts.ravel() * (len(start) / table.total) for table in fitted])
    kinds: tuple[tuple[Marginal | Coarse, ...], ...] = (tables, sums, one_ways)
    cells = [sum(table.domain.cells for table in kind) for kind in kinds]
    gaps = layout.count_rows(start.codes, len(targets)) - targets
    weights = np.repeat([1.0, SUMS, COLUMNS], cells) / (targets + 1)
    if possible.masks:
        masks = np.concatenate([possible.of(table.domain).ravel() for table in tables])
        weights[: len(masks)][~masks] = NEVER
    misfit = float(weights @ gaps**2)
    small = max(start.domain.sizes) <= np.iinfo(np.int16).max
    codes = start.codes.astype("int16" if small else "int32", order="C")  # row by row, as they are proposed
    _kernels.anneal(codes, layout, gaps, weights, sweeps or _affordable(tables), TEMPERATURE, rng)
    return Records(start.domain, codes.astype(np.int32)) if weights @ gaps**2 < misfit else start


def _coarse_sums(tables: tuple[Marginal, ...], one_ways: tuple[Marginal, ...]) -> tuple[Coarse, ...]:
    """Return the pairs of ordered attributes once more, in few groups of codes."""
    groups = {one_way.attributes[0]: groups_at(one_way, COARSE) for one_way in one_ways}
    pairs = [table for table in tables if len(table.attributes) == 2 and min(table.domain.ordered) > COARSE]
    return tuple(
        coarsen(table, tuple(groups[name] for name in table.attributes))
        for table in pairs
        if set(table.attributes) <= set(groups)
    )


def _affordable(tables: tuple[Marginal, ...]) -> int:
    """How many sweeps take about the same time, whether few tables are to be fitted or many."""
    return int(np.clip(round(LOOKUPS / sum(len(table.attributes) for table in tables)), FEWEST, MOST))


def tightly_coupled(tables: tuple[Marginal, ...]) -> tuple[Attributes, ...]:
    """Each attribute with the one it is most tightly coupled to, where that is tight; no pair twice."""
    strongest: dict[str, tuple[float, Attributes]] = {}
    for pair, table in pairs_within(tables).items():
        for name in pair:
            strongest[name] = max(strongest.get(name, (TOGETHER, ())), (coupling(table), pair))
    return tuple(sorted({pair for _, pair in strongest.values() if pair}))
