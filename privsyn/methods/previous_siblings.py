"""The rows before a row of the same parent: their columns as further attributes of the row."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import pi, prod, sqrt

import numpy as np

from privsyn.inference.all_rows import scaled_to
from privsyn.inference.higher_order import MOST_CELLS, MOST_SETS
from privsyn.inference.measured_columns import MeasuredColumns, PublicFacts
from privsyn.inference.ordered.tails import Tails
from privsyn.marginals.domain import Attributes, Codes, Domain, Floats
from privsyn.marginals.marginal import Grouping, Marginal, groups_at
from privsyn.marginals.recoding import Merging
from privsyn.marginals.tolerances import SMALLEST
from privsyn.methods.budget import PREVIOUS_ROWS
from privsyn.private.measure import PrivateTable
from privsyn.synthesis.chains import OF_ROWS, POSITION

FEWEST, MOST = 8, 32  # groups of a column with an order in the previous row, or in a row above
DROWNED = 0.5  # total variation: noise above leaves nothing of a table
ALL_ROWS = 1.0  # the same: the noise moves as many rows as there are, and hides every link
MOST_VALUES = 40  # values of a column without order; with more, the rarest are one group
OF_PREVIOUS = "previous ", "second previous "
"""How the names of the attributes of the previous row begin, and of the row before that."""


def measure_previous(
    private: PrivateTable, measured_columns: MeasuredColumns, rho: float, facts: PublicFacts
) -> tuple[PrivateTable, MeasuredColumns]:
    """Return the table and the measured columns with the attributes of the rows before, measured too.

    They have the codes of the row's own attributes in groups: see `groups_for` and `groups_at_level`. One
    code more stands for rows without such a row.

    Parameters
    ----------
    private : PrivateTable
    measured_columns : MeasuredColumns
    rho : float
        Budget of a row for the counts of all attributes of rows before it: `PREVIOUS_ROWS` of that for pairs.
    facts : PublicFacts
    """
    domain = measured_columns.domain
    total, columns = measured_columns.margins(measured_columns.one_ways)[0], len(facts.previous)
    cost = private.law.rho(rho / PREVIOUS_ROWS) / (columns * len(domain))
    level = groups_for(total, private.contribution.limit / sqrt(2 * cost))
    groups = [groups_at_level(measured_columns.alone[axis], level) for axis in domain.axes(facts.previous)]
    coarse = Grouping(tuple(groups)).domain(domain.project(facts.previous))
    sizes = [size + 1 for size in coarse.sizes] * facts.lags
    added = Domain(tuple(rows_before(coarse.names, facts.lags)), tuple(sizes), coarse.ordered * facts.lags)
    merging = extended(measured_columns.merging, facts, added, groups)
    private = private.extend(merging.merged, merging.groups[len(domain) :])
    tables = tuple((name,) for name in added.names)
    measured = private.marginals(tables, np.full(len(tables), rho / len(tables)))
    part = private.contribution.of_tables
    one_ways = (*measured_columns.one_ways, *(scaled_to(total, table, part) for table in measured))
    tails = replace(measured_columns.tails or Tails(merging, {}), merging=merging)
    return private, replace(measured_columns, merging=merging, tails=tails, one_ways=one_ways)


def rows_before(columns: Attributes, lags: int) -> dict[str, tuple[str, int]]:
    """Return the attributes of the rows before a row: of each its column, and how many rows before.

    >>> rows_before(("price",), 2)
    {'previous price': ('price', 1), 'second previous price': ('price', 2)}
    """
    whose = enumerate(OF_PREVIOUS[:lags], start=1)
    return {which + column: (column, lag) for lag, which in whose for column in columns}


def worth_asking(pairs: tuple[Attributes, ...], facts: PublicFacts, domain: Domain) -> tuple[Attributes, ...]:
    """Return the pairs of which records are made, and which are worth their noise.

    Of the second row before, each column is paired with itself: so a column that stays the same shows itself.
    A column that lasts does not need that. If it has two values, no table says what follows a value.
    """
    before = rows_before(facts.previous, facts.lags)
    context = {*facts.context_weights, *before}
    far = {name: column for name, (column, lag) in before.items() if lag > 1}
    along_paths = {
        frozenset((column, name))
        for name, (column, lag) in before.items()
        if column in facts.lasting and (lag > 1 or domain.size_of[column] < 3)
    }
    return tuple(
        pair
        for pair in pairs
        if not context.issuperset(pair)
        and all(far[name] in pair for name in far.keys() & set(pair))
        and frozenset(pair) not in along_paths
    )


def linking_sets(domain: Domain, facts: PublicFacts) -> tuple[Attributes, ...]:
    """Return the sets of an own attribute, one of a row above, and the position among the rows of its parent.

    So the first person of a household may be as old as the household says its head is, and the others need
    not be. Those with the fewest cells are returned, at most `MOST_SETS`.
    """
    if POSITION not in facts.context_weights:
        return ()
    above = [name for name in facts.context_weights if name not in OF_ROWS]
    columns = [name for name in domain.names if name not in facts.context_weights]
    sizes, index = domain.size_of, domain.names.index
    sets = [tuple(sorted((*pair, POSITION), key=index)) for pair in product(columns, above)]
    cells = {attributes: prod(sizes[name] for name in attributes) for attributes in sets}
    few = (attributes for attributes in sets if cells[attributes] <= MOST_CELLS)
    return tuple(sorted(few, key=cells.__getitem__)[:MOST_SETS])


def groups_for(rows: float, sigma: float) -> int:
    """Return the number of groups of a number with which tables of two of them err least.

    With k groups, a table has k^2 cells. Its error by noise is in proportion to k^2 sigma / rows, that by
    the width of the groups to 1 / k. The sum is smallest at a k in proportion to the cube root of
    rows / sigma.

    Parameters
    ----------
    rows : float
        Number of rows in a table.
    sigma : float
        Standard deviation of the noise in a cell.

    Examples
    --------
    >>> [groups_for(30_000, sigma) for sigma in (300, 10, 0.1)]
    [8, 14, 32]
    """
    return int(np.clip(np.cbrt(max(rows, 1.0) / sigma), FEWEST, MOST))


def lags_for(rows: float, sigma: float) -> int:
    """Return how many rows before each row are worth asking about.

    Parameters
    ----------
    rows : float
        Number of rows with two rows before them.
    sigma : float
        Standard deviation of the noise in a cell.

    Examples
    --------
    >>> lags_for(28_000, sigma=150), lags_for(5_700, sigma=300)
    (2, 1)
    """
    return 2 if _error_of_noise(rows, sigma) < DROWNED else 1


def links_drown(rows: float, sigma: float) -> bool:
    """Return whether noise of this `sigma` in each cell hides how the `rows` of a table depend on other rows.

    The error by noise of a table over two rows then exceeds `ALL_ROWS`. Each table costs all others a part of
    the budget, so that nothing is left of the columns of a row either.

    Examples
    --------
    >>> links_drown(28_000, sigma=150), links_drown(4_000, sigma=300)
    (False, True)
    """
    return _error_of_noise(rows, sigma) > ALL_ROWS


def _error_of_noise(rows: float, sigma: float) -> float:
    """Return the error of a table of two columns by noise alone, as a share of its rows.

    A cell is off by 0.8 sigma on average. Two columns have at least the square of `FEWEST` cells.
    """
    return 0.5 * FEWEST**2 * sqrt(2 / pi) * sigma / max(rows, 1.0)


def groups_at_level(one_way: Marginal, level: int) -> Codes:
    """Return the group of each code of a column, from its released counts.

    Parameters
    ----------
    one_way : Marginal
    level : int
        Largest number of groups of codes with an order. In a column without one, each of the `MOST_VALUES`
        most frequent codes has a group of its own, and the rest share one.
    """
    if one_way.domain.ordered[0]:
        return groups_at(one_way, level)
    rank = np.argsort(np.argsort(-one_way.counts, kind="stable"), kind="stable")
    return np.minimum(rank, MOST_VALUES).astype(np.int32)


def extended(merging: Merging, facts: PublicFacts, added: Domain, groups: list[Codes]) -> Merging:
    """Return the merging with the added attributes; their original codes are those of the rows before."""
    axes, codes, shares = merging.original.axes(facts.previous), [], []
    for axis, group in zip(axes, groups, strict=True):
        none = group.max() + 1  # of rows without such a row
        merged_codes = np.append(group[merging.groups[axis]], none).astype(np.int32)
        share: Floats = np.append(merging.shares[axis], 1.0)
        share = np.maximum(share, SMALLEST)
        shares.append(share / np.bincount(merged_codes, share)[merged_codes])
        codes.append(merged_codes)
    ordered = tuple(merging.original.ordered[axis] for axis in axes)
    sizes = tuple(map(len, codes))
    original = merging.original.joined(Domain(added.names, sizes * facts.lags, ordered * facts.lags))
    merged = merging.merged.joined(added)
    groups, shares = codes * facts.lags, shares * facts.lags
    return Merging(original, merged, (*merging.groups, *groups), (*merging.shares, *shares))
