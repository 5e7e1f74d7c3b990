"""How good the links of a table's rows with other rows are: from released counts, so it is free."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from privsyn.inference.fitted import Certainty, expected_distance
from privsyn.marginals.domain import Attributes, Domain
from privsyn.marginals.marginal import Marginal, Measurement
from privsyn.marginals.tolerances import TINY_SHARE
from privsyn.release.accuracy.verdicts import Relationship, error_unseen, level_of_relationships
from privsyn.synthesis.chains import POSITION

if TYPE_CHECKING:
    from privsyn.release.fitted_table import FittedTable
    from privsyn.synthesis.chains import LinkingTable, Links

ROW_BEFORE, OTHER_ROW = "the row before", "other rows of a parent"
"""What rows are linked with beside tables above: with an order, and without one."""


def name_of_row_before(links: Links) -> str:
    """Return what the row is called that a row is linked with: only an order says which one is before."""
    has_order = any(context.attribute == POSITION for context in links.context.values())
    return ROW_BEFORE if has_order else OTHER_ROW


@dataclass(frozen=True)
class LinkLevel:
    """How well the pairs of a column with one of another row are kept.

    Parameters
    ----------
    partner : str
        A table above, `ROW_BEFORE` or `OTHER_ROW`.
    pairs : int
        Number of all pairs of a column of the row and one of the other row.
    pairs_kept : tuple of str
        The pairs that are kept well or roughly, in words: measured ones, and those of columns that last.
    level : int
        0 if the links are usable, 1 if they are rough, 2 if rows that are dealt at random are as good.
    """

    partner: str
    pairs: int
    pairs_kept: tuple[str, ...]
    level: int


def relationship_of(links: Links, linking: LinkingTable) -> Relationship:
    r"""Return the relationship in a table that links rows; with rows before, among the rows that have them.

    The first row of a parent has no row before. Its code says that it is the first, and often which wave or
    day it is of: that relates the columns by construction, whatever the values before are. So these cells
    count neither for the strength nor for the error. The error e of the whole table becomes
    :math:`e \, d' / d`, with d and d' the expected distances by noise alone (`expected_distance`) of all
    cells and of the others, each as a share of its own rows.

    Parameters
    ----------
    links : Links
    linking : LinkingTable
    """
    table, measured = linking.table, linking.measured
    grouping, counts, error = measured.grouping, measured.grouping.join(table.counts), linking.error
    cells, answers, variance = counts, measured.marginal.counts, measured.variance
    for axis, (name, groups) in enumerate(
        zip(table.attributes, grouping.of_codes(table.counts.shape), strict=True)
    ):
        if (previous := links.previous.get(name)) is not None:
            first = int(groups[previous.none])
            cells, answers, variance = (np.delete(part, first, axis) for part in (cells, answers, variance))
    domain = Domain(table.attributes, cells.shape)
    remaining = Measurement(Marginal(domain, answers), variance)
    if cells.size < counts.size and (distance := expected_distance(measured, counts)) > 0:
        error = min(error * expected_distance(remaining, cells) / distance, 1.0)
    return Relationship.of(Certainty(remaining, error), Marginal(domain, cells))


def link_levels(model: FittedTable, error_of_columns: float) -> tuple[LinkLevel, ...]:
    """Return how good the links of a table are with each table above, and with the row before.

    Rows of one pair of columns that are dealt at random are independent, so the same limits decide as for the
    relationships of the columns of a row: see `level_of_relationships`.

    Parameters
    ----------
    model : FittedTable
    error_of_columns : float
        Mean expected total variation of a single column.
    """
    return () if model.links is None else tuple(_levels(model, model.links, error_of_columns))


def is_of_lasting(model: FittedTable, attributes: Attributes) -> bool:
    """Return whether a pair is of a column that lasts in one row and in the row before.

    What lasts was counted for each row above, by its first value and its changes, so it is kept whatever the
    table of the pair says.
    """
    previous = {} if model.links is None else model.links.previous
    before = {previous[name].column for name in attributes if name in previous and previous[name].lag == 1}
    return not before.isdisjoint({*attributes}.intersection(model.lasting))


def _levels(model: FittedTable, links: Links, error_of_columns: float) -> Iterator[LinkLevel]:
    """Yield the level of the links with each table above, the next one first, and with the row before."""
    partners = {name: context.table for name, context in links.context.items() if context.table}
    columns = len(model.codec.domain)
    before = name_of_row_before(links)
    nearest = {name: before for name, previous in links.previous.items() if previous.lag == 1}
    pairs = {partner: columns * [*partners.values()].count(partner) for partner in partners.values()}
    pairs |= {before: columns * len({links.previous[name].column for name in nearest})} if nearest else {}
    partners |= nearest
    measured: dict[str, list[Relationship]] = {partner: [] for partner in pairs}
    for linking in links.linking:
        linked = [partners[name] for name in linking.table.attributes if name in partners]
        if len(linking.table.attributes) == 2 and linked:
            measured[linked[0]].append(relationship_of(links, linking))
    for partner, relationships in measured.items():
        names = {*model.codec.domain.names}
        error = sum(
            pair.error_with_chance + error_unseen(model.fitted, tuple(names.intersection(pair.columns)))
            for pair in relationships
        )
        strength = sum(pair.strength_beyond_chance for pair in relationships) / max(error, TINY_SHARE)
        pairs_kept = tuple(
            " by ".join(pair.columns)
            for pair in relationships
            if pair.is_decided and not is_of_lasting(model, pair.columns)
        )
        level = level_of_relationships(
            strength,
            measured=min(len(relationships) / max(pairs[partner], 1), 1.0),
            error=error / max(len(relationships), 1),
            error_of_columns=error_of_columns,
            level_if_none_is_kept=0 if pairs_kept else 1,
        )
        if partner == before and model.lasting:  # counted as first value and changes of each row above
            pairs_kept += tuple(f"{name}, which lasts" for name in model.lasting)
            level = min(level, 1) if relationships else 0
        yield LinkLevel(partner, pairs[partner], pairs_kept, level)
