"""In which order the columns of an order are encoded: the first is counted, and the others as gaps."""

from __future__ import annotations

from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter

from privsyn.marginals.statistics import components
from privsyn.table.encoding.encoders import Encoder
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
            if encoders[low].ordered and encoders[high].ordered
        ]
        graph = {name: {*below} for name, (below, _) in orders.items()}
        for low, high, _ in pairs:
            graph.setdefault(high, set()).add(low)
        for low, high, strict in pairs if is_possible(graph) else ():
            for name, other, side in ((high, low, 0), (low, high, 1)):
                found = orders.setdefault(name, ({}, {}))[side]
                found[other] = found.get(other, False) or strict
    upward = list(TopologicalSorter({name: [*below] for name, (below, _) in orders.items()}).static_order())
    return {
        name: (
            {of: below[of] for of in upward if of in below},
            {of: above[of] for of in upward if of in above},
        )
        for name, (below, above) in ((name, orders[name]) for name in upward)
    }


def fineness_of(column: Ordinal) -> tuple[bool, float]:
    """Return how little a gap would lose of a column: less of one with times of day, and with wide steps.

    An exam begins at half past nine on a weekday, however long before somebody registered for it.
    """
    steps = column.resolution * column.scale if column.fixed_decimals is not None else 0.0
    return getattr(column, "unit", None) == "D", -steps


def _outward(
    orders: Mapping[str, Sides], complete: list[str], fineness: Mapping[str, tuple[bool, bool, float]]
) -> list[str]:
    """Return complete columns that orders connect, from the one of the least `fineness` on, by neighbours.

    If that one is the lowest, they stay in their order, from the lowest up.
    """
    start = min(complete, key=fineness.__getitem__, default="")
    if complete[:1] in ([], [start]):
        return complete
    found, left = [start], [name for name in complete if name != start]
    while left:
        beside = (name for name in left if any(name in side for of in found for side in orders[of]))
        found.append(next(beside, left[0]))
        left.remove(found[-1])
    return found


def complete_first(
    orders: Mapping[str, Sides],
    nullable: Mapping[str, bool],
    fineness: Mapping[str, tuple[bool, bool, float]],
) -> list[str]:
    """Return the columns in the order in which they are encoded.

    Complete columns come first, from the one of the least `fineness` outwards. Then come those that may be
    missing: above a complete column from the lowest up, and below one from the highest down.
    """
    upward = list(orders)
    known = [name for name in upward if not nullable[name]]
    together = components([(name, *orders[name][0], *orders[name][1]) for name in upward])
    parts = [[name for name in known if name in part] for part in together]
    beyond: list[set[str]] = []  # the columns above and those below a complete column
    for side, names in enumerate((upward, upward[::-1])):
        beyond.append(found := set())
        found |= {name for name in names if any(not nullable[of] or of in found for of in orders[name][side])}
    complete = [name for part in parts for name in _outward(orders, part, fineness)]
    downward = [name for name in upward[::-1] if name in beyond[1] - beyond[0]]
    return list(dict.fromkeys([*complete, *(n for n in upward if n in beyond[0]), *downward, *upward]))


def is_possible(needs: Mapping[str, set[str]]) -> bool:
    """Return whether no column needs itself, through others or not."""
    try:
        TopologicalSorter(needs).prepare()
    except CycleError:
        return False
    return True
