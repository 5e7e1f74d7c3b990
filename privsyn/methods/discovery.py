"""Question 0: complete the schema with values and bounds that are found under privacy.

Values that enough rows share are found in two rounds. Bounds are found with up to two grids. The cells of the
first grow with the numbers. If it sees only numbers far from zero, the second divides the range that it saw
evenly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial, reduce
from math import fsum
from typing import TYPE_CHECKING

from privsyn.errors import InputError
from privsyn.marginals.types import Ints
from privsyn.private.discovery import Found, Votes, add_votes, count_cells, count_votes, find_values
from privsyn.private.spend import Spend
from privsyn.progress import Progress
from privsyn.table.discovery.open_schema import OpenSchema
from privsyn.table.schema.schema import Schema

if TYPE_CHECKING:
    import pandas as pd

    from privsyn.private.noise import Noise
    from privsyn.table.discovery.bounds import BoundsGrid
    from privsyn.table.io.source import RawTable

Look = tuple[Votes, dict[str, Ints]]
"""The votes for values, and the number of rows in each cell of each grid. Private."""

# Shares of the whole budget, spent only if something of the kind is to be found. Mean total variation of
# pairs at epsilon 1 without a schema, on adult, hmeq and br2000: .0328 .155 .0124 for shares of 0.1 and 0.06,
# and .0325 .148 .0113 for 0.15 and 0.1. Larger shares cost more than they gain.
VALUES, BOUNDS, CLOSER_BOUNDS = 0.15, 0.1, 0.02
THRESHOLDS = 0.3  # share of delta, if values are to be found


@dataclass(frozen=True)
class Discovered:
    """What question 0 found.

    Parameters
    ----------
    schema : Schema
        Complete: it leaves nothing open.
    spends : tuple of Spend
    share : float
        Share of the whole budget that was spent. A second grid costs nothing if no column needs it.
    """

    schema: Schema
    spends: tuple[Spend, ...]
    share: float


def least_share(open_schema: OpenSchema) -> float:
    """Return the share of the budget that question 0 takes, without a second grid for bounds."""
    return fsum((VALUES * bool(open_schema.values), BOUNDS * bool(open_schema.bounds)))


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
    *,
    rho: float,
    delta: float,
    noise: Noise,
    rows_per_unit: int,
    report: Progress,
) -> Discovered:
    """Find the values and bounds that the schema leaves open.

    Parameters
    ----------
    open_schema : OpenSchema
    table : RawTable
        Private. It is read up to three times.
    rho : float
        Budget of the whole run for a person. A share of it is spent here.
    delta : float
        Largest probability that a value which only one person has is found.
    noise : Noise
    rows_per_unit : int
        The most rows of one person.
    report : callable
    """
    if not (open_schema.values or open_schema.bounds):
        return Discovered(open_schema.schema, (), 0.0)
    table.require_again("what values and bounds the schema leaves out")
    report("finding values and bounds", 0, 3)
    first_votes, near = table.ask(partial(_look, open_schema, {}, open_schema.grids), _add)

    def votes(found: Found) -> Votes:
        """Return the votes; for the first round those of the first walk, which counted cells too."""
        report("finding values and bounds", int(bool(found)), 3)
        return table.ask(partial(_look, open_schema, found, {}), _add)[0] if found else first_votes

    values, spends = find_values(
        open_schema.values, votes, rho=VALUES * rho, delta=delta, noise=noise, rows_per_unit=rows_per_unit
    )
    report("finding values and bounds", 2, 3)
    cells, first_look = count_cells(near, rho=BOUNDS * rho, noise=noise, rows_per_unit=rows_per_unit)
    closer = open_schema.closer(cells)
    _, close = table.ask(partial(_look, open_schema, None, closer), _add) if closer else ({}, {})
    closer_cells, second_look = count_cells(
        close, rho=CLOSER_BOUNDS * rho, noise=noise, rows_per_unit=rows_per_unit, look=" (closer)"
    )
    report("finding values and bounds", 3, 3)
    schema = open_schema.fill(values, open_schema.bounds_of(cells, closer, closer_cells))
    share = fsum((least_share(open_schema), CLOSER_BOUNDS * bool(second_look)))
    return Discovered(schema, (*spends, *first_look, *second_look), share)


def _look(
    open_schema: OpenSchema,
    found: Found | None,
    grids: Mapping[str, BoundsGrid],
    tables: Iterable[pd.DataFrame],
) -> Look:
    """Count the votes of some rows for values not found yet (none if `found` is None), and their cells."""

    def look(table: pd.DataFrame) -> Look:
        votes = {} if found is None else count_votes(open_schema.distinct_values(table), found)
        return votes, open_schema.count(table, grids)

    return reduce(_add, map(look, tables))


def _add(some: Look, others: Look) -> Look:
    """Add the votes and cells of two parts of a table; neither argument is changed."""
    cells = {name: counts + others[1][name] for name, counts in some[1].items()}
    return add_votes(some[0], others[0]), cells
