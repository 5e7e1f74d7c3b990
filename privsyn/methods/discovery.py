"""Question 0: the schema, completed with what is found under privacy.

Values that enough rows share, in two rounds. Bounds in two looks: the first at cells that grow with the
numbers, and where that sees only numbers far from zero, a second at equal cells between what it saw.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial, reduce
from math import fsum
from typing import TYPE_CHECKING

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
"""The votes for values, and how many rows lie in each cell of each ruler. Private."""

# Of the whole budget, and only where there is anything of the kind to be found. Mean error of pairs without
# a schema at epsilon 1 on adult, hmeq and br2000, for shares of 0.1 and 0.06: .0328 .155 .0124, for 0.15 and
# 0.1: .0325 .148 .0113; more of either gains no more than it costs.
VALUES, BOUNDS, CLOSER_BOUNDS = 0.15, 0.1, 0.02
THRESHOLDS = 0.3  # of delta, where values are to be found


@dataclass(frozen=True)
class Opening:
    """What question 0 found.

    Parameters
    ----------
    schema : Schema
        Nothing is open in it.
    spends : tuple of Spend
    share : float
        What they are of the whole budget. A second look that nothing wants is not paid for.
    """

    schema: Schema
    spends: tuple[Spend, ...]
    share: float


def least_share(unknown: OpenSchema) -> float:
    """The part of the budget that question 0 takes, but for a second look at bounds."""
    return fsum((VALUES * bool(unknown.values), BOUNDS * bool(unknown.bounds)))


def reserved_delta(delta: float, unknown: OpenSchema) -> float:
    """The part of `delta` that thresholds take: public, and fixed before the first look."""
    return THRESHOLDS * delta if unknown.values else 0.0


def open_schema(
    unknown: OpenSchema,
    table: RawTable,
    *,
    rho: float,
    delta: float,
    noise: Noise,
    rows_per_unit: int,
    report: Progress,
) -> Opening:
    """Find what the schema leaves out.

    Parameters
    ----------
    unknown : Unknown
    table : RawTable
        Private; it is walked over up to three times.
    rho : float
        The budget of the whole run, of which a share is spent here.
    delta : float
        The chance, at most, that a value held by one person alone is found.
    noise : Noise
    rows_per_unit : int
        The most rows that one person brings.
    report : callable
    """
    if not (unknown.values or unknown.bounds):
        return Opening(unknown.schema, (), 0.0)
    table.require_again("what values and bounds the schema leaves out")
    report("finding values and bounds", 0, 3)
    heard, near = table.ask(partial(_look, unknown, {}, unknown.rulers), _add)

    def votes(found: Found) -> Votes:
        """While nothing is found, those of the first walk, which counted cells too."""
        report("finding values and bounds", int(bool(found)), 3)
        return table.ask(partial(_look, unknown, found, {}), _add)[0] if found else heard

    values, spends = find_values(
        unknown.values, votes, rho=VALUES * rho, delta=delta, noise=noise, rows_per_unit=rows_per_unit
    )
    report("finding values and bounds", 2, 3)
    cells, first_look = count_cells(near, rho=BOUNDS * rho, noise=noise, rows_per_unit=rows_per_unit)
    closer = unknown.closer(cells)
    _, close = table.ask(partial(_look, unknown, None, closer), _add) if closer else ({}, {})
    rest = CLOSER_BOUNDS * rho
    seen, second_look = count_cells(
        close, rho=rest, noise=noise, rows_per_unit=rows_per_unit, look=" (closer)"
    )
    report("finding values and bounds", 3, 3)
    schema = unknown.fill(values, unknown.bounds_of(cells, closer, seen))
    share = fsum((least_share(unknown), CLOSER_BOUNDS * bool(second_look)))
    return Opening(schema, (*spends, *first_look, *second_look), share)


def _look(
    unknown: OpenSchema, found: Found | None, rulers: Mapping[str, BoundsGrid], tables: Iterable[pd.DataFrame]
) -> Look:
    """Of some rows the votes for what is not found, or none where that is not asked, and the cells."""

    def look(table: pd.DataFrame) -> Look:
        votes = {} if found is None else count_votes(unknown.hold(table), found)
        return votes, unknown.count(table, rulers)

    return reduce(_add, map(look, tables))


def _add(some: Look, others: Look) -> Look:
    """What two parts of a table say, together."""
    cells = {name: counts + others[1][name] for name, counts in some[1].items()}
    return add_votes(some[0], others[0]), cells
