"""Count rows in many tables at once. Counts are exact: for synthetic rows, or before noise is added.

The counts of two blocks of rows add up. So rows may come in blocks or lie on many machines. Only the counts
are kept.

`Packing` packs several columns of few codes into one byte, so that more rows fit in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import accumulate
from math import prod
from os import cpu_count

import numpy as np
import numpy.typing as npt

from privsyn.marginals._kernels import SMALL, STRETCH, CountedTables, add_counts, recode
from privsyn.marginals.domain import Attributes, Domain, Ints, Records
from privsyn.marginals.marginal import NO_GROUPS, Grouping

Block = tuple[npt.NDArray[np.unsignedinteger], ...]
"""Coded rows, one array per column, each of the smallest type that holds the attribute's codes."""

Ask = Callable[[Iterable[Block]], list[Ints]]
"""A counting query. Answers for several blocks add up."""

Walk = Callable[[Ask], list[Ints]]
"""Runs a counting query over all rows, wherever they are stored. It can be called repeatedly."""

CountTables = Callable[["Tables"], list[Ints]]
"""Counts tables of rows that are elsewhere, each table in its shape."""

FEW = 2**20  # cell lookups: below this, a second thread does not pay


def count(records: Records, attributes: Attributes) -> Ints:
    """Return the counts over `attributes`, in the shape of their domain.

    Examples
    --------
    >>> rows = Records(Domain(("a", "b"), (2, 2)), np.array([[0, 1], [1, 1], [0, 1]]))
    >>> count(rows, ("a", "b")).tolist()
    [[0, 2], [0, 1]]
    """
    return Tables(records.domain, (attributes,)).count([block_of(records)])[0]


def code_type(size: int) -> np.dtype[np.unsignedinteger]:
    """Return the smallest unsigned type that holds the codes of an attribute of `size` values.

    >>> code_type(256), code_type(257)
    (dtype('uint8'), dtype('uint16'))
    """
    return np.dtype(np.min_scalar_type(max(size - 1, 0)))


def ranks(owners: Ints) -> Ints:
    """Return for each row how many rows of the same owner stand before it; an owner's rows stand together.

    >>> ranks(np.array([4, 4, 4, 2])).tolist()
    [0, 1, 2, 0]
    """
    begins = np.flatnonzero(np.diff(owners, prepend=owners[:1] - 1))
    return np.arange(len(owners)) - np.repeat(begins, np.diff(begins, append=len(owners)))


def block_of(records: Records) -> Block:
    """Return records as a block."""
    columns = zip(records.codes.T, records.domain.sizes, strict=True)
    return tuple(column.astype(code_type(size)) for column, size in columns)


@dataclass(frozen=True, eq=False)
class Tables:
    """Tables of counts that one pass over the rows fills.

    Parameters
    ----------
    domain : Domain
        Domain of the codes that are counted.
    sets : sequence of attributes, one per table
    grouping : Grouping, optional
        Of the codes in the blocks, if these are finer than those that are counted.

    Examples
    --------
    >>> domain = Domain(("a", "b"), (2, 3))
    >>> block = np.array([0, 0, 1], np.uint8), np.array([2, 1, 2], np.uint8)
    >>> [table.tolist() for table in Tables(domain, (("a",), ("b", "a"))).count([block, block])]
    [[4, 2], [[0, 0], [2, 0], [2, 2]]]
    """

    domain: Domain
    sets: Sequence[Attributes]
    grouping: Grouping = NO_GROUPS

    @cached_property
    def shapes(self) -> list[tuple[int, ...]]:
        """The shape of each table."""
        return [tuple(self.domain.size_of[name] for name in attributes) for attributes in self.sets]

    def count(self, blocks: Iterable[Block]) -> list[Ints]:
        """Return the counts of all rows of all blocks, each table in its shape."""
        sizes = [prod(shape) for shape in self.shapes]
        counts = np.zeros(sum(sizes), np.int64)
        parts = self._parts(sizes)
        with ExitStack() as stack:  # no two threads write to the same cells: each has its own tables
            pools = [stack.enter_context(ThreadPoolExecutor(1)) for _ in parts]
            begun: list[Future[None]] = []
            for block in blocks:
                codes = self._codes(block)  # while the blocks before are counted
                if len(parts) == 1 or codes.shape[1] * len(self.sets) < FEW:
                    _finish(begun)
                    for part in parts:
                        add_counts(codes, part, counts)
                else:
                    before, tasks = begun, zip(pools, parts, strict=True)
                    begun = [pool.submit(partial(add_counts, codes, part, counts)) for pool, part in tasks]
                    _finish(before)
            _finish(begun)
        ends = accumulate(sizes)
        return [
            counts[end - size : end].reshape(shape)
            for end, size, shape in zip(ends, sizes, self.shapes, strict=True)
        ]

    @cached_property
    def _used(self) -> list[int]:
        """Positions of the attributes that any table needs."""
        names = {name for attributes in self.sets for name in attributes}
        return [axis for axis, name in enumerate(self.domain.names) if name in names]

    def _codes(self, block: Block) -> npt.NDArray[np.unsignedinteger]:
        """Return the needed columns in the counted codes, all of one type."""
        size = max((self.domain.sizes[axis] for axis in self._used), default=1)
        kind = np.promote_types(code_type(size), np.uint16)  # two bytes if they fit: one loop is compiled
        codes = np.empty((len(self._used), len(block[0]) if block else 0), kind)
        for row, axis in enumerate(self._used):
            if self.grouping:
                column = block[axis].astype(np.promote_types(block[axis].dtype, np.uint16), copy=False)
                recode(column, self.grouping.groups[axis].astype(kind), codes[row])
            else:
                codes[row] = block[axis]
        return codes

    def _parts(self, sizes: list[int]) -> list[CountedTables]:
        """Return the tables that each core counts. Core i counts the tables i, i + cores, and so on.

        Neighbouring tables take about as long, so all cores finish together.
        """
        rows = {self.domain.names[axis]: row for row, axis in enumerate(self._used)}
        column_sizes = [self.domain.sizes[axis] for axis in self._used]
        starts = [0, *accumulate(sizes[:-1])]
        cores = min(cpu_count() or 1, len(self.sets))
        parts = []
        for core in range(cores):
            sets, shapes = self.sets[core::cores], self.shapes[core::cores]
            firsts = [0, *accumulate(map(len, sets))]
            columns = [rows[name] for attributes in sets for name in attributes]
            strides = [prod(shape[q + 1 :]) for shape in shapes for q in range(len(shape))]
            counted = zip(sets, sizes[core::cores], strict=True)
            small = [names for names, size in counted if len(names) > 1 and size <= SMALL]
            first_planes, needed = [-1] * len(rows), 0
            for row in {rows[name]: None for names in small for name in names}:
                first_planes[row], needed = needed, needed + column_sizes[row]
            numbers = column_sizes, firsts, columns, strides, starts[core::cores], first_planes
            planes = np.empty((needed + 1, STRETCH // 64), np.uint64)
            parts.append(CountedTables._make((*(np.array(part, np.int64) for part in numbers), planes)))
        return parts


def _finish(begun: list[Future[None]]) -> None:
    """Wait for threads and raise their errors."""
    for task in begun:
        task.result()


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
        for index in sorted(range(len(self.sizes)), key=lambda index: -self.sizes[index]):
            fitting = (g for g in groups if self.sizes[index] * prod(self.sizes[p] for p in g) <= BYTE)
            group = next(fitting, None)
            if group is None:
                groups.append(group := [])
            group.append(index)
        return tuple(map(tuple, groups))

    def pack(self, block: Block) -> Block:
        """Return one column for each group: the codes of a row as the digits of one number."""
        packed = []
        for first, *following in self.groups:
            column = block[first]
            for index in following:
                column = column * column.dtype.type(self.sizes[index]) + block[index]
            packed.append(column)
        return tuple(packed)

    def unpack(self, packed: Block) -> Block:
        """Return the columns that were packed."""
        columns = dict[int, npt.NDArray[np.unsignedinteger]]()
        for group, column in zip(self.groups, packed, strict=True):
            for index in group[:0:-1]:
                size = column.dtype.type(self.sizes[index])
                rest = column // size
                columns[index], column = column - rest * size, rest
            columns[group[0]] = column
        return tuple(columns[index] for index in range(len(columns)))
