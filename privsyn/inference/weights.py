"""How much an error in each table weighs, in the choice of tables and in the allocation of the budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from privsyn.inference.measured_columns import sizes_in_blocks
from privsyn.marginals.domain import Attributes, Domain, Floats, Mask

IMPORTANT = 100.0  # weight of an error in a table that matters most, as long as the others err hardly more
TARGET = 4.0  # weight of an error in a table with the target, relative to one without
LIKELY_TARGET = 2.0  # the same without target and numbers, for a column of fewest values: a likely target
SMOOTH = 2.0  # weight of an error in a table for each ordered attribute: its few components matter most
SMALL_FIRST = 0.25  # with a target: errors weigh cells^-SMALL_FIRST, for models learn from small tables


def weights_of(domain: Domain, tables: Sequence[Attributes], target: str | None) -> Floats:
    """Return the weight of an error in each table.

    >>> coins = Domain(("a", "b", "c"), (2, 2, 2))
    >>> weights_of(coins, [("a", "b"), ("a", "c")], "c").round(2).tolist()
    [0.71, 2.83]
    """
    sizes = sizes_in_blocks(domain)
    cells = np.array([prod(sizes[name] for name in attributes) for attributes in tables], float)
    many = {name for name, ordered in domain.ordered_of.items() if ordered > 2}
    if target is not None and many:
        many.add(target)  # what numbers say of it matters as much as what they say of each other
    numbers = [len(many.intersection(attributes)) for attributes in tables]
    smooth = np.power(SMOOTH, numbers)
    wanted, weight = {target}, TARGET
    if target is None:
        wanted = set() if many else {name for name, size in sizes.items() if size == min(sizes.values())}
        weight = LIKELY_TARGET
    targets = np.where([not wanted.isdisjoint(attributes) for attributes in tables], weight, 1.0)
    return np.asarray(targets * smooth * (1.0 if target is None else cells**-SMALL_FIRST))


def products_of(weights: Mapping[str, float], tables: Sequence[Attributes]) -> Floats:
    """Return the product of the weights of each table's attributes; those without one weigh 1.

    >>> products_of({"a": 3.0, "b": 0.5}, [("a", "b"), ("a", "c")]).tolist()
    [1.5, 3.0]
    """
    return np.array([prod(weights.get(name, 1.0) for name in table) for table in tables], np.float64)


def important_in(tables: Sequence[Attributes], important: Sequence[Attributes]) -> Mask:
    """Return which tables are over one of the sets that matter most, or over a part of one.

    >>> important_in([("a", "c"), ("a", "d")], [("a", "b", "c")]).tolist()
    [True, False]
    """
    return np.array([any(set(table) <= set(named) for named in important) for table in tables], np.bool_)
