"""Stage 4 as published: attributes that lie in a single pair are left out of GUM and appended afterwards."""

from __future__ import annotations

from dataclasses import dataclass

from privsyn.marginals.domain import Attributes
from privsyn.marginals.graphs import components as connected
from privsyn.marginals.marginal import Marginal


@dataclass(frozen=True)
class Peeled:
    """Tables, split into a core for GUM and leaves that can be appended exactly.

    Parameters
    ----------
    core : tuple of Marginal
    leaves : tuple of Marginal over (anchor, leaf)
        In the order of appending: each anchor exists before its leaf.
    """

    core: tuple[Marginal, ...]
    leaves: tuple[Marginal, ...]


def components(names: Attributes, tables: tuple[Marginal, ...]) -> list[Attributes]:
    """Return the sets of attributes that tables connect, each in the order of `names`."""
    parts = connected([*((name,) for name in names), *(table.attributes for table in tables)])
    return [tuple(name for name in names if name in part) for part in parts]


def peel(tables: tuple[Marginal, ...]) -> Peeled:
    """Remove attributes that lie in a single table, if it is a pair, until none is left.

    References
    ----------
    Zhang et al., "PrivSyn", USENIX Security 2021, Section 5.3, "appending".

    Examples
    --------
    A chain a - b - c is peeled to its last attribute, and nothing is left for GUM:

    >>> import numpy as np
    >>> from privsyn.marginals.domain import Domain
    >>> ab = Marginal(Domain(("a", "b"), (1, 1)), np.ones((1, 1)))
    >>> bc = Marginal(Domain(("b", "c"), (1, 1)), np.ones((1, 1)))
    >>> peeled = peel((ab, bc))
    >>> peeled.core, [leaf.attributes for leaf in peeled.leaves]
    ((), [('c', 'b'), ('b', 'a')])
    """
    core = list(tables)
    leaves: list[Marginal] = []
    while leaf := _leaf(core):
        place, anchor, name = leaf
        leaves.append(core.pop(place).project((anchor, name)))
    return Peeled(tuple(core), tuple(reversed(leaves)))


def _leaf(tables: list[Marginal]) -> tuple[int, str, str] | None:
    """Return a pair of which one attribute lies in no other table: (index, anchor, leaf)."""
    for place, table in enumerate(tables):
        if len(table.attributes) == 2:
            others = {name for other in tables if other is not table for name in other.attributes}
            for anchor, name in (table.attributes[::-1], table.attributes):
                if name not in others:
                    return place, anchor, name
    return None
