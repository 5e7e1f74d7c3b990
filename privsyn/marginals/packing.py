"""Pack several columns of few codes into one byte, so that more rows fit in memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
import numpy.typing as npt

from privsyn.marginals.counting import Block

BYTE = 256  # numbers that a byte holds


@dataclass(frozen=True)
class Packing:
    """Which columns share a byte. It follows from the sizes of the domain, which are public.

    Parameters
    ----------
    sizes : tuple of int
        Number of codes of each column.

    Examples
    --------
    >>> import numpy as np
    >>> packing = Packing((2, 300, 100))
    >>> block = np.array([1, 0], np.uint8), np.array([299, 7], np.uint16), np.array([99, 5], np.uint8)
    >>> packing.groups
    ((1,), (2, 0))
    >>> [column.tolist() for column in packing.pack(block)]
    [[299, 7], [199, 10]]
    >>> [column.tolist() for column in packing.unpack(packing.pack(block))]
    [[1, 0], [299, 7], [99, 5]]
    """

    sizes: tuple[int, ...]

    @cached_property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The places of the columns that share a byte: large columns first, each where it first fits."""
        groups: list[list[int]] = []
        for place in sorted(range(len(self.sizes)), key=lambda place: -self.sizes[place]):
            fitting = (g for g in groups if self.sizes[place] * prod(self.sizes[p] for p in g) <= BYTE)
            group = next(fitting, None)
            if group is None:
                groups.append(group := [])
            group.append(place)
        return tuple(map(tuple, groups))

    def pack(self, block: Block) -> Block:
        """Return one column for each group: the codes of a row as the digits of one number."""
        packed = []
        for first, *others in self.groups:
            column = block[first]
            for place in others:
                column = column * column.dtype.type(self.sizes[place]) + block[place]
            packed.append(column)
        return tuple(packed)

    def unpack(self, packed: Block) -> Block:
        """Return the columns that were packed."""
        columns = dict[int, npt.NDArray[np.unsignedinteger]]()
        for group, column in zip(self.groups, packed, strict=True):
            for place in group[:0:-1]:
                size = column.dtype.type(self.sizes[place])
                rest = column // size
                columns[place], column = column - rest * size, rest
            columns[group[0]] = column
        return tuple(columns[place] for place in range(len(columns)))
