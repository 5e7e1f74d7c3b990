"""Lay out the swaps of the annealing: two rows exchange the codes of a whole block of tied attributes.

Questions that were not asked in one year all but determine each other, so none of them can change alone. A
swap changes no one-way table and no table inside the block, only the tables over some attributes of the block
and some others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from privsyn.marginals.domain import Attributes, Domain
from privsyn.marginals.marginal import NO_GROUPS, Grouping, Marginal
from privsyn.marginals.statistics import components, couplings, pairs_within
from privsyn.synthesis._kernels import Swap

TIED = (0.8, 0.5, 0.3)  # couplings that tie attributes: the smaller, the larger and fewer are the blocks


def pair_couplings(tables: tuple[Marginal, ...]) -> dict[Attributes, float]:
    """Return the coupling of every pair of attributes that a table holds; see `couplings`."""
    pairs = pairs_within(tables)
    return dict(zip(pairs, couplings([*pairs.values()]).tolist(), strict=True))


def tied_blocks(
    tables: tuple[Marginal, ...], strengths: Mapping[Attributes, float], names: Iterable[str]
) -> tuple[Attributes, ...]:
    """Return the sets of attributes among `names` that couplings of at least t connect, for each t of `TIED`.

    Two numbers are not tied, however strong their coupling: each can move to the next code.

    Parameters
    ----------
    tables : tuple of Marginal
    strengths : mapping of a pair of attributes to its coupling
    names : attributes that may move

    Examples
    --------
    >>> strengths = {("a", "b"): 0.9, ("b", "c"): 0.4, ("c", "d"): 0.1, ("d", "e"): 0.9}
    >>> tied_blocks((), strengths, "abcd")
    (('a', 'b'), ('a', 'b', 'c'))
    """
    domains = [table.domain for table in tables]
    numbers = {
        name for domain in domains for name in domain if domain.size_of[name] == domain.ordered_of[name]
    }
    movable = {*names}
    ties = {
        pair: strength
        for pair, strength in strengths.items()
        if movable.issuperset(pair) and not numbers.issuperset(pair)
    }
    connected = (components(pair for pair, strength in ties.items() if strength >= t) for t in TIED)
    return tuple(dict.fromkeys(tuple(sorted(block)) for blocks in connected for block in blocks))


def lay_out_swaps(
    domain: Domain,
    tables: tuple[Marginal, ...],
    blocks: Iterable[Attributes],
    groups: Mapping[int, Grouping] = MappingProxyType({}),
) -> list[Swap]:
    """Return the swap of each block, if a table is over some attributes of the block and some others.

    Parameters
    ----------
    domain : Domain
    tables : tuple of Marginal
    blocks : tuples of attributes
    groups : mapping of a place to a Grouping
        Of the tables that join codes.
    """
    begins = np.cumsum([0, *(table.domain.cells for table in tables)])
    holding: dict[str, list[int]] = {}
    for index, table in enumerate(tables):
        for name in table.attributes:
            holding.setdefault(name, []).append(index)
    swaps = []
    for block in map(set, blocks):
        held = sorted({index for name in block for index in holding.get(name, ())})
        across = [index for index in held if not block.issuperset(tables[index].attributes)]
        ends, middles, axes, offsets = [0], list[int](), list[int](), list[npt.NDArray[np.integer]]()
        for index in across:
            table_domain, inside = tables[index].domain, [name in block for name in tables[index].attributes]
            group_of_code = groups.get(index, NO_GROUPS).of_codes(table_domain.shape)
            for k in sorted(
                range(len(inside)), key=inside.__getitem__, reverse=True
            ):  # the block's come first
                axes += domain.axes(table_domain.names[k : k + 1])
                offsets.append(group_of_code[k] * prod(table_domain.shape[k + 1 :]))
            middles.append(ends[-1] + sum(inside))
            ends.append(len(axes))
        if across:
            swap = Swap(
                block=np.array(sorted(domain.axes(tuple(block)))),
                crossing=np.unique(axes),
                starts=begins[across],
                ends=np.array(ends),
                middles=np.array(middles),
                axes=np.array(axes),
                blocks=np.cumsum([0, *map(len, offsets)])[:-1],
                offsets=np.concatenate(offsets),
            )
            swaps.append(Swap(*(array.astype(np.uint32) for array in swap)))
    return swaps
