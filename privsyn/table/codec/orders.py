"""In which order the columns of an order are encoded: the first is counted, and the others as gaps."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from graphlib import CycleError, TopologicalSorter

from privsyn.marginals.statistics import components
from privsyn.table.encoding.encoders import Encoder, has_grid
from privsyn.table.schema.columns import Ordinal
from privsyn.table.schema.schema import Schema

Sides = tuple[dict[str, bool], dict[str, bool]]
"""The columns below and those above a column; whether each may not equal it."""


def orders_of(
    schema: Schema, encoders: Mapping[str, Encoder], nullable: Mapping[str, bool]
) -> dict[str, Sides]:
    """Return the columns on both sides of each column, from the lowest up.

    A constraint that closes a circle is left out.
    """
    orders: dict[str, Sides] = {}
    complete = {name for name, may_be_missing in nullable.items() if not may_be_missing}
    for constraint in schema.constraints:
        pairs = [
            (low, high, strict)
            for low, high, strict in constraint.orders(complete)
            if has_grid(encoders[low]) and has_grid(encoders[high])
        ]
        graph = {name: {*below} for name, (below, _) in orders.items()}
        for low, high, _ in pairs:
            graph.setdefault(high, set()).add(low)
        for low, high, strict in pairs if is_possible(graph) else ():
            for name, neighbour, side in ((high, low, 0), (low, high, 1)):
                neighbours = orders.setdefault(name, ({}, {}))[side]
                neighbours[neighbour] = neighbours.get(neighbour, False) or strict
    upward = list(TopologicalSorter({name: [*below] for name, (below, _) in orders.items()}).static_order())
    return {
        name: (
            {column: below[column] for column in upward if column in below},
            {column: above[column] for column in upward if column in above},
        )
        for name, (below, above) in ((name, orders[name]) for name in upward)
    }


def rank(column: Ordinal, *, compared: bool) -> tuple[bool, bool, float]:
    """Return the rank of a column: of an order, the one of the least rank is counted, the others as gaps.

    A gap loses little of a column without times of day, and with narrow steps. An exam begins at half past
    nine on a weekday, however long before somebody registered for it. So a column ranks first that rules
    across tables name (`compared`), then one that is not in days, then one with a wide step.
    """
    step = column.resolution * column.scale if column.fixed_decimals is not None else 0.0
    return not compared, getattr(column, "unit", None) == "D", -step


def _outward(
    orders: Mapping[str, Sides], columns: list[str], ranks: Mapping[str, tuple[bool, bool, float]]
) -> list[str]:
    """Return columns that orders connect, from the one of the least rank on, by neighbours.

    If that one is the lowest, they stay in their order, from the lowest up.
    """
    start = min(columns, key=ranks.__getitem__, default="")
    if columns[:1] in ([], [start]):
        return columns
    ordered, remaining = [start], [name for name in columns if name != start]
    while remaining:
        beside = (
            name for name in remaining if any(name in side for column in ordered for side in orders[column])
        )
        ordered.append(next(beside, remaining[0]))
        remaining.remove(ordered[-1])
    return ordered


def complete_first(
    orders: Mapping[str, Sides],
    nullable: Mapping[str, bool],
    ranks: Mapping[str, tuple[bool, bool, float]],
    compared: Collection[str],
) -> list[str]:
    """Return the columns in the order in which they are encoded.

    Complete columns come first, from the one of the least rank outwards. Then come those that may be missing:
    above a complete column from the lowest up, and below one from the highest down. If no column of an order
    is complete, one that a rule across tables names comes first.
    """
    upward = list(orders)
    first: list[str] = []
    for part in components([(name, *orders[name][0], *orders[name][1]) for name in upward]):
        complete = [name for name in upward if name in part and not nullable[name]]
        named = [name for name in upward if name in part and name in compared]
        incomplete = [name for name in upward if name in part] if named and not complete else []
        first += _outward(orders, complete or incomplete, ranks)
    beyond: list[set[str]] = []  # the columns above and those below a complete column
    for side, names in enumerate((upward, upward[::-1])):
        beyond.append(reached := set())
        reached |= {
            name
            for name in names
            if any(not nullable[neighbour] or neighbour in reached for neighbour in orders[name][side])
        }
    downward = [name for name in upward[::-1] if name in beyond[1] - beyond[0]]
    return list(dict.fromkeys([*first, *(n for n in upward if n in beyond[0]), *downward, *upward]))


def is_possible(needs: Mapping[str, set[str]]) -> bool:
    """Return whether no column needs itself, through others or not."""
    try:
        TopologicalSorter(needs).prepare()
    except CycleError:
        return False
    return True
