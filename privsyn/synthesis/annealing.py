"""Stage 4, the end: move single values until the records fit all tables at once.

Starting along a tree fits only the pairs on the tree, and GUM leaves duplicates and rounding errors. Here
each row is offered, for one attribute, the value of a random other row. A move is accepted if the tables fit
better. A worse fit is accepted with a probability that falls to 0 (simulated annealing: Kirkpatrick et al.,
Science 1983). Such offers keep rare values rare, and need only two cells per table. If one attribute all but
determines another, neither can move alone. Such pairs also move together.
"""

from __future__ import annotations

import numpy as np

from privsyn.marginals.coarse import LEVELS, coarsen, groups_at, joined_domain
from privsyn.marginals.domain import Attributes, Records
from privsyn.marginals.marginal import Marginal
from privsyn.marginals.statistics import coupling, pairs_within
from privsyn.marginals.structural_zeros import NO_ZEROS, StructuralZeros
from privsyn.marginals.types import Codes
from privsyn.synthesis import _kernels
from privsyn.synthesis.layout import lay_out

LOOKUPS = 2000  # cell lookups per row; determines the number of sweeps
FEWEST, MOST = 10, 20  # bounds on the sweeps
WIDE = 200_000  # cell lookups per row beyond which wide tables get fewer sweeps than FEWEST
LEAST = 3  # of 100 columns the misfit after 10, 3, 2 and 1 sweeps was .0004, .0005, .0007, .0058; error .077
TEMPERATURE = 0.1  # in units of the objective; from 0.3 the misfit of Adult is 3 % larger
NEVER = 1e6  # weight of a record in a structural zero: no table gains as much by a move
COLUMNS, SUMS = 100.0, 10.0  # weights of a column and of a coarse sum, relative to a cell of a table
DENSE = 5.0  # records a cell: bigger tables with fewer are fitted in groups of codes
COARSE = 4  # groups of an attribute in a coarse sum
TOGETHER = 0.5  # least coupling of two attributes that are also moved together


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
    """Return records annealed towards the least sum over cells of (count - target)^2 / (target + 1).

    The sum is never larger than at the start. If the tables form a tree, the start may be exact.

    Parameters
    ----------
    start : Records
        Starting point; the number of rows is kept.
    tables : tuple of Marginal
        Non-negative, agreeing counts with a positive total; scaled to the number of rows. Attributes
        in no table do not change.
    rng : numpy.random.Generator
    one_ways : tuple of Marginal, optional
        The counts of each attribute. If given, records are also fitted to the columns and to coarse sums of
        pairs. A cell with a target under one half is fitted best by a count of 0. So sparse tables alone
        would move records from thin regions into dense ones.
    sweeps : int, optional
        Number of times that every row is offered a value for each attribute. Default: fewer, the more tables.
    possible : StructuralZeros
        No row is moved into a structural zero, and rows leave them at any price.
    still : tuple of str
        Attributes that do not change.

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
    pairs, groups = _coarse_pairs(tables, one_ways)
    sums = tuple(map(coarsen, pairs, groups))
    together = tightly_coupled(tables)
    joined = _sparse(tables, len(start), possible)
    tables = tuple(coarsen(t, joined[i]) if i in joined else t for i, t in enumerate(tables))
    fitted = (*tables, *sums, *one_ways)
    joined |= enumerate(groups, start=len(tables))
    layout = lay_out(start.domain, fitted, groups=joined, together=together, still=still)
    targets = np.concatenate([table.counts.ravel() * (len(start) / table.total) for table in fitted])
    cells = [sum(table.domain.cells for table in kind) for kind in (tables, sums, one_ways)]
    small = max(start.domain.sizes) <= np.iinfo(np.uint16).max + 1
    codes = start.codes.astype("uint16" if small else "uint32", order="C")  # the kernel reads whole rows
    gaps = layout.count_rows(codes, len(targets)) - targets
    weights = np.repeat([1.0, SUMS, COLUMNS], cells) / (targets + 1)
    if possible.masks:
        masks = [
            np.full(table.domain.cells, True) if place in joined else possible.of(table.domain).ravel()
            for place, table in enumerate(tables)
        ]
        weights[: cells[0]][~np.concatenate(masks)] = NEVER
    misfit = float(weights @ gaps**2)
    _kernels.anneal(codes, layout, gaps, weights, sweeps or _affordable(tables), TEMPERATURE, rng)
    return Records(start.domain, codes.astype(np.int32)) if weights @ gaps**2 < misfit else start


def _sparse(tables: tuple[Marginal, ...], n: int, possible: StructuralZeros) -> dict[int, tuple[Codes, ...]]:
    """Return the place of each sparse table of three or more attributes, and the groups to fit it in."""
    found: dict[int, tuple[Codes, ...]] = {}
    for place, table in enumerate(tables):
        big = len(table.attributes) > 2 and max(table.domain.ordered) > 2
        if big and table.domain.cells * DENSE > n and possible.of(table.domain).all():
            sides = [table.project((name,)) for name in table.attributes]
            for level in LEVELS:
                groups = tuple(groups_at(side, level) for side in sides)
                if place not in found or DENSE * joined_domain(table.domain, groups).cells <= n:
                    found[place] = groups
    return found


def _coarse_pairs(
    tables: tuple[Marginal, ...], one_ways: tuple[Marginal, ...]
) -> tuple[list[Marginal], list[tuple[Codes, ...]]]:
    """Return the pairs of ordered attributes, and few groups of the codes of each."""
    group = {one_way.attributes[0]: groups_at(one_way, COARSE) for one_way in one_ways}
    pairs = [
        table
        for table in tables
        if len(table.attributes) == 2
        and min(table.domain.ordered) > COARSE
        and set(table.attributes) <= set(group)
    ]
    return pairs, [tuple(group[name] for name in table.attributes) for table in pairs]


def _affordable(tables: tuple[Marginal, ...]) -> int:
    """Return the number of sweeps for which run time hardly depends on the number of tables."""
    looks = sum(len(table.attributes) for table in tables)
    return int(np.clip(round(LOOKUPS / looks), max(LEAST, min(FEWEST, WIDE // looks)), MOST))


def tightly_coupled(tables: tuple[Marginal, ...]) -> tuple[Attributes, ...]:
    """Return each attribute's most tightly coupled pair, if above `TOGETHER`; no pair twice."""
    strongest: dict[str, tuple[float, Attributes]] = {}
    for pair, table in pairs_within(tables).items():
        for name in pair:
            strongest[name] = max(strongest.get(name, (TOGETHER, ())), (coupling(table), pair))
    return tuple(sorted({pair for _, pair in strongest.values() if pair}))
