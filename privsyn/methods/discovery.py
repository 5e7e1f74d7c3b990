"""Question 0: complete the schema with values and bounds that are found under privacy.

Values that enough rows share are found in two rounds. Bounds are found with up to two grids. The cells of the
first grow with the numbers. If it sees only numbers far from zero, the second divides the range that it saw
evenly.

Grids: one count for each column whose numbers may lie on a grid that the schema does not give shows on which.
It is made in the walk of the second grid for bounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial, reduce
from math import fsum
from typing import TYPE_CHECKING

import numpy as np

from privsyn.errors import InputError, about_not_found
from privsyn.marginals.domain import Ints
from privsyn.private.discovery import (
    GRIDS,
    Found,
    Votes,
    add_votes,
    count_cells,
    count_numbers,
    count_votes,
    find_values,
)
from privsyn.private.laws import GAUSSIAN, Law
from privsyn.private.spend import Spend
from privsyn.progress import no_progress
from privsyn.table.discovery.lattices import LatticeQuestion
from privsyn.table.discovery.open_schema import OpenSchema
from privsyn.table.encoding.steps import Heaps
from privsyn.table.schema.schema import Schema

if TYPE_CHECKING:
    import pandas as pd

    from privsyn.private.noise import Noise
    from privsyn.settings import Settings
    from privsyn.table.encoding.bounds_cells import BoundsGrid
    from privsyn.table.io.source import RawTable

Counts = tuple[Votes, dict[str, Ints], dict[str, Ints]]
"""The votes for values, and the number of rows in each cell of bounds and on each lattice. Private."""

NO_LATTICES = LatticeQuestion({}, {})

# Shares of the whole budget, spent only if something of the kind is to be found. Mean total variation of
# pairs at epsilon 1 without a schema, on adult, hmeq and br2000: .0328 .155 .0124 for shares of 0.1 and 0.06,
# and .0325 .148 .0113 for 0.15 and 0.1. Larger shares cost more than they gain.
VALUES, BOUNDS, CLOSER_BOUNDS = 0.15, 0.1, 0.02
SIZE = 0.005  # how many numbers there are, which decides the share of their bounds
MOST_BOUNDS = 0.4  # share for bounds, if few rows would not stand out of the noise otherwise
SHARES_TRIED = 16  # from the least to the most
CLEAR, LOST = 32.0, 8.0  # numbers in a column over the noise of a cell: enough, and too few for any bounds
SPREAD = 100.0  # the same: enough for dates of ten years to be found in months; with fewer, years are counted
LATTICES = 0.01  # a count of ten to twenty cells a column, of which only shares of some percent matter
THRESHOLDS = 0.3  # share of delta, if values are to be found


@dataclass(frozen=True)
class Discovered:
    """What question 0 found.

    Parameters
    ----------
    schema : Schema
        Complete: it leaves nothing open.
    heaps : mapping of a column to the heaps of its numbers
    not_found : tuple of str
        Columns of which no value and no bound exceeded the noise.
    spends : tuple of Spend
    share : float
        Share of the whole budget that was spent. A question that no column needs costs nothing.
    """

    schema: Schema
    heaps: Mapping[str, Heaps]
    not_found: tuple[str, ...]
    spends: tuple[Spend, ...]
    share: float

    @property
    def remarks(self) -> tuple[str, ...]:
        """The line of the ledger on what was not found, which every reader of the release must know."""
        return (about_not_found(self.not_found),) if self.not_found else ()


def expected_share(
    open_schema: OpenSchema, rows: int, rho: float, law: Law = GAUSSIAN, rows_per_unit: int = 1
) -> float:
    """Return the share of the budget that question 0 takes, without what depends on found bounds.

    Parameters
    ----------
    open_schema : OpenSchema
    rows : int
    rho : float
        Budget of the whole run for a person.
    law : Law
    rows_per_unit : int
        The most rows of one person.
    """
    lattices = open_schema.lattices(open_schema.fill({}, {}))
    parts = (
        VALUES * bool(open_schema.values),
        SIZE * bool(open_schema.bounds),
        bounds_share(rows, len(open_schema.bounds), rho, law, rows_per_unit),
        LATTICES * bool(lattices),
    )
    return fsum(parts)


def bounds_share(size: float, columns: int, rho: float, law: Law, rows_per_unit: int) -> float:
    """Return the share of the budget for bounds: the fewer numbers there are, the more.

    A column without bounds has invented numbers, which is worse than any noise.

    Parameters
    ----------
    size : float
        Numbers in a column, on average. Public or released.
    columns : int
        How many have no bounds.
    rho : float
        Budget of the whole run for a person.
    law : Law
    rows_per_unit : int
        The most rows of one person.

    Examples
    --------
    >>> [round(bounds_share(size, 10, 0.0166, GAUSSIAN, 1), 2) for size in (9000, 1000, 500, 50)]
    [0.1, 0.32, 0.4, 0.1]
    """
    if not columns:
        return 0.0
    shares = np.linspace(BOUNDS, MOST_BOUNDS, SHARES_TRIED).tolist()
    noise = [_noise(share * rho, columns, law, rows_per_unit) for share in shares]
    if size < LOST * noise[-1]:
        return BOUNDS
    enough = (share for share, each in zip(shares, noise, strict=True) if size >= CLEAR * each)
    return next(enough, MOST_BOUNDS)


def _noise(rho: float, columns: int, law: Law, rows_per_unit: int) -> float:
    """Return the noise in a cell of the grid of each column."""
    return law.tail(law.scale(rho, rows_per_unit * law.joint(columns)))


def reserved_delta(delta: float, open_schema: OpenSchema) -> float:
    """Return the part of `delta` for thresholds: public, and fixed before the first question.

    Raises
    ------
    InputError
        If values are to be found with a delta of 0. A search adds noise only to values that occur, so a value
        that one person has is found with some probability, and nobody else's table could release it.
    """
    if open_schema.values and delta == 0:
        names = ", ".join(map(repr, open_schema.values))
        raise InputError(
            f"delta 0 cannot find the values of {names}: list them in the schema, or give a delta (1e-9)"
        )
    return THRESHOLDS * delta if open_schema.values else 0.0


def discover(
    open_schema: OpenSchema,
    table: RawTable,
    settings: Settings,
    *,
    rho: float,
    delta: float,
    noise: Noise,
) -> Discovered:
    """Find the values, bounds and grids that the schema leaves open.

    Parameters
    ----------
    open_schema : OpenSchema
    table : RawTable
        Private. It is read up to three times. If it can be read only once, no grids are asked for.
    settings : Settings
        Grids matter only to a method that counts numbers in fine cells.
    rho : float
        Budget of the whole run for a person. A share of it is spent here.
    delta : float
        Largest probability that a value which only one person has is found.
    noise : Noise
    """
    report, rows_per_unit = settings.progress or no_progress, settings.most_rows
    is_open = bool(open_schema.values or open_schema.bounds)
    if is_open:
        table.require_again("what values and bounds the schema leaves out")
        report("finding values and bounds", 0, 3)
    first_votes, near, _ = (
        table.ask(partial(_count, open_schema, {}, open_schema.grids, NO_LATTICES), _add)
        if is_open
        else NOTHING
    )

    def votes(found: Found) -> Votes:
        """Return the votes; for the first round those of the first walk, which counted cells too."""
        report("finding values and bounds", int(bool(found)), 3)
        if not found:
            return first_votes
        return table.ask(partial(_count, open_schema, found, {}, NO_LATTICES), _add)[0]

    values, spends = find_values(
        open_schema.values, votes, rho=VALUES * rho, delta=delta, noise=noise, rows_per_unit=rows_per_unit
    )
    count = partial(count_cells, noise=noise, rows_per_unit=rows_per_unit)
    size, sized = count_numbers(near, rho=SIZE * rho, noise=noise, rows_per_unit=rows_per_unit)
    share = bounds_share(size, len(near), rho, noise.law, rows_per_unit)
    if near and size < SPREAD * _noise(share * rho, len(near), noise.law, rows_per_unit):
        near = open_schema.by_year(near)
    cells, of_bounds = count(near, rho=share * rho)
    closer = open_schema.closer(cells)
    schema = open_schema.fill(values, open_schema.bounds_of(cells, {}, {}))
    lattices = (
        open_schema.lattices(schema) if settings.algorithm.fine_cells and not table.once else NO_LATTICES
    )
    if is_open:
        report("finding values and bounds", 2, 3)
    _, close, on = (
        table.ask(partial(_count, open_schema, None, closer, lattices), _add)
        if closer or lattices
        else NOTHING
    )
    closer_cells, of_closer = count(close, rho=CLOSER_BOUNDS * rho, look=" (closer)")
    seen, of_grids = count(on, rho=LATTICES * rho, what=GRIDS)
    if closer_cells:
        schema = open_schema.fill(values, open_schema.bounds_of(cells, closer, closer_cells))
    not_found = open_schema.not_found(values, cells)
    schema, heaps = lattices.fill(schema, seen)
    if is_open:
        report("finding values and bounds", 3, 3)
    parts = (
        VALUES * bool(open_schema.values),
        SIZE * bool(sized),
        share,
        CLOSER_BOUNDS * bool(of_closer),
        LATTICES * bool(of_grids),
    )
    spends = (*spends, *sized, *of_bounds, *of_closer, *of_grids)
    return Discovered(schema, heaps, not_found, spends, fsum(parts))


NOTHING: Counts = ({}, {}, {})


def _count(
    open_schema: OpenSchema,
    found: Found | None,
    grids: Mapping[str, BoundsGrid],
    lattices: LatticeQuestion,
    tables: Iterable[pd.DataFrame],
) -> Counts:
    """Count some rows: their votes for values not found yet (none if `found` is None), cells and lattices."""

    def one(table: pd.DataFrame) -> Counts:
        votes = {} if found is None else count_votes(open_schema.distinct_values(table), found)
        return votes, open_schema.count(table, grids), lattices.count(table)

    return reduce(_add, map(one, tables))


def _add(some: Counts, others: Counts) -> Counts:
    """Add the counts of two parts of a table; neither argument is changed."""
    cells = {name: counts + others[1][name] for name, counts in some[1].items()}
    lattices = {name: counts + others[2][name] for name, counts in some[2].items()}
    return add_votes(some[0], others[0]), cells, lattices
