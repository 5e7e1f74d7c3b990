"""The encoded private rows, wherever they are: exact counts of them, to which `measure` adds noise.

Rows arrive in blocks, and only counts stay. A walk reads all rows once. Each question takes one walk if its
counts fit in memory, and several if not. Blocks that fit in the memory limit are kept, so that no source is
read twice.

If a person may have many rows, each question says what one person may add to the counts: a `Bound`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import InitVar, dataclass, field, replace
from itertools import pairwise
from math import prod
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from privsyn.marginals.counting import (
    Ask,
    Block,
    CountTables,
    Packing,
    Tables,
    Walk,
    block_of,
    code_type,
    ranks,
)
from privsyn.marginals.domain import Attributes, Codes, Domain, Integers, Ints, Records
from privsyn.marginals.marginal import NO_GROUPS, Grouping
from privsyn.marginals.recoding import Merging
from privsyn.private.contribution import ONE_ROW, Bound, WithinSquares, first_rows

CELL = 8  # bytes of a count

ROWS_AT_ONCE = 2**18
"""Rows of a block that is counted, unless one person has more. No part that is read alone is smaller."""

Known = tuple[Attributes, Bound]
"""What a table of counts is of."""


class CachedWalk:
    """A walk over blocks that keeps them and, if all fit in memory, walks over the kept ones from then on.

    They are kept packed. Each row is packed and unpacked on its own, and unpacked codes are the codes.

    Parameters
    ----------
    walk : Walk
        A walk whose blocks pass through this process.
    packing : Packing
        Of the columns of the blocks.
    memory : float
        Bytes that may be kept.
    check : callable, optional
        Raises if the source has changed. Kept blocks must not be used then: a walk over the source would
        raise, and whether the blocks fit in memory follows from the number of rows, which is private.
    """

    def __init__(
        self, walk: Walk, packing: Packing, memory: float, check: Callable[[], None] = lambda: None
    ) -> None:
        self._walk = walk
        self._packing = packing
        self._memory = memory
        self._check = check
        self._kept: list[Block] | None = None

    def __call__(self, ask: Ask) -> list[Ints]:
        """Return the answer of `ask` for all blocks."""
        if self._kept is not None:
            self._check()
            counts = ask(map(self._packing.unpack, self._kept))
            self._check()
            return counts
        return self._walk(lambda blocks: ask(self._keep(blocks)))

    def _keep(self, blocks: Iterable[Block]) -> Iterator[Block]:
        packed: list[Block] = []
        size = 0
        for block in blocks:
            if size <= self._memory:
                packed.append(self._packing.pack(block))
                size += sum(column.nbytes for column in packed[-1])
                if size > self._memory:
                    packed.clear()
            yield block
        if size <= self._memory:
            self._kept = packed


@dataclass(eq=False, repr=False)
class PersonsTogether:
    """A walk over blocks in which the rows of each person stand together, in random order.

    Each block has more columns: those of the person, those of the rows before each row that have the same
    parent, and how many rows of the same person stand before it in random order. A row without a previous one
    has one code more in each of the columns of the latter. All rows pass through this process. Their packed
    codes are kept if they fit in memory. If not, each walk reads the source several times, for some of the
    persons each time.

    Parameters
    ----------
    walk : Walk
        A walk over blocks of all rows, in the same order each time.
    persons : integer array of shape (rows,)
        Rows with the same code belong to one person.
    order : integer array
        The places of the rows that are kept, person by person; see `random_order`.
    of_persons : Block
        Columns of the person of each row, in the order of `order`. They depend on the person's rows alone.
    previous : integer array, optional
        The place in `order` of the previous row of the same person, and -1 where there is none. It depends on
        the person's rows alone. Default: no columns of previous rows.
    lags : int, optional
        How many rows before each row are looked at: 2 for the previous one, and for the one before that.
    packing : Packing
        Of the columns of the blocks.
    memory : float
        Bytes that packed codes may take.
    check : callable
        Raises if the source has changed.
    """

    walk: Walk
    persons: InitVar[Ints]
    order: Ints
    of_persons: Block
    packing: Packing
    memory: InitVar[float]
    check: Callable[[], None] = lambda: None
    previous: Ints | None = None
    lags: int = 1

    def __post_init__(self, persons: Ints, memory: float) -> None:
        self._before, self._rows = ranks(persons[self.order]).astype(np.uint32), len(persons)
        fitting = memory / max(len(self.packing.groups), 1)  # of a row, a group takes a byte or a little more
        self._parts = _between_persons(self._before, max(int(min(fitting, len(self.order))), ROWS_AT_ONCE))
        self._kept: Block | None = None

    def __call__(self, ask: Ask) -> list[Ints]:
        """Return the answer of `ask` for all blocks."""
        self.check()
        counts = ask(self._blocks())
        self.check()
        return counts

    def _blocks(self) -> Iterator[Block]:
        for start, end in pairwise(self._parts):
            packed = self._packed(start, end)
            within = self._before[start:end]
            for first, last in pairwise(_between_persons(within, ROWS_AT_ONCE)):
                block = self.packing.unpack(tuple(column[first:last] for column in packed))
                of_persons = (column[start + first : start + last] for column in self.of_persons)
                before: list[npt.NDArray[np.unsignedinteger]] = []
                if self.previous is not None:  # the rows before each row are in the same block
                    at = np.arange(start + first, start + last)
                    for _ in range(self.lags):
                        at = np.where(at < 0, -1, self.previous[at])
                        none, row = at < 0, np.maximum(at - start - first, 0)
                        before.extend(
                            np.where(none, size, column[row]).astype(code_type(size + 1))
                            for column, size in zip(block, self.packing.sizes, strict=True)
                        )
                yield *block, *of_persons, *before, within[first:last]

    def _packed(self, start: int, end: int) -> Block:
        """Return the packed codes of the rows at some places of the order."""
        if self._kept is not None:
            return self._kept
        rows = self.order[start:end]
        positions = np.full(self._rows, -1, np.int64)
        positions[rows] = np.arange(len(rows))
        columns: list[Any] = []
        seen = 0

        def collect(blocks: Iterable[Block]) -> list[Ints]:
            nonlocal seen  # a source may ask part by part
            for block in blocks:
                packed = self.packing.pack(block)
                if not columns:
                    columns.extend(np.zeros(len(rows), column.dtype) for column in packed)
                at = positions[seen : seen + len(block[0])]
                seen += len(block[0])
                for column, into in zip(packed, columns, strict=True):
                    into[at[at >= 0]] = column[at >= 0]
            return []

        self.walk(collect)
        if seen != self._rows:
            self.check()
            raise RuntimeError("not all rows passed through this process: near=False says so")
        if len(self._parts) == 2:
            self._kept = tuple(columns)
        return tuple(columns)


def _between_persons(before: Integers, rows: int) -> list[int]:
    """Return where parts of about `rows` rows begin and end, so that no person is in two.

    >>> _between_persons(np.array([0, 1, 0, 0, 1, 2]), 2)
    [0, 2, 3, 6]
    """
    begins = np.flatnonzero(before == 0)
    wanted = np.arange(0, len(before), max(rows, 1))
    return [*np.unique(begins[np.searchsorted(begins, wanted, side="right") - 1]).tolist(), len(before)]


@dataclass(frozen=True, eq=False)
class Rows:
    """The private rows. Their answers are exact, and only `privsyn.private.measure` may ask.

    Parameters
    ----------
    domain : Domain
        Public.
    walk : Walk
        A walk over the rows in their original codes.
    memory : float
        Bytes that the counts of one walk may take, and as many again for counts that are kept.
    grouping : Grouping, optional
        Of the original codes.
    of_persons : bool
        Whether a person may have several rows. Then the blocks are those of `PersonsTogether`. If not, each
        row is a person, or the walk has at most as many rows of a person as any bound allows.

    Examples
    --------
    >>> rows = Rows.in_memory(Records(Domain(("a", "b"), (2, 2)), np.array([[0, 1], [1, 1], [0, 1]])))
    >>> [table.tolist() for table in rows.count([("a",), ("a", "b")])]
    [[2, 1], [[0, 2], [0, 1]]]
    """

    domain: Domain
    walk: Walk = field(repr=False)
    memory: float
    grouping: Grouping = field(default=NO_GROUPS, repr=False)
    of_persons: bool = False
    _known: dict[Known, Ints] = field(default_factory=dict, repr=False)

    @classmethod
    def in_memory(cls, records: Records) -> Rows:
        """Return the rows of records that are in memory."""
        blocks = [block_of(records)]
        return cls(records.domain, lambda ask: ask(blocks), np.inf)

    def merge(self, merging: Merging) -> Rows:
        """Return the rows in merged codes. Each row is recoded on its own, so neighbours stay neighbours.

        The kept counts of single attributes are added up. All others are counted again when needed.

        Raises
        ------
        ValueError
            If `merging` is of other codes. Compiled loops would read groups that it does not have.
        """
        if merging.original != self.domain:
            raise ValueError(f"a merging of {merging.original.shape} for rows of {self.domain.shape}")
        counted: dict[Known, Ints] = {}
        for axis, name in enumerate(self.domain.names):
            for (attributes, bound), counts in self._known.items():
                if (
                    attributes == (name,) and bound.by == "rows"
                ):  # in merged codes, other rows are within squares
                    counted[attributes, bound] = np.zeros(merging.merged.sizes[axis], np.int64)
                    np.add.at(counted[attributes, bound], merging.groups[axis], counts)
        grouping = self.grouping.then(Grouping(merging.groups))
        return replace(self, domain=merging.merged, grouping=grouping, _known=counted)

    def extend(self, domain: Domain, groups: Sequence[Codes]) -> Rows:
        """Return the rows with more attributes: the columns that stand behind those of the domain in a block.

        These are columns of the same row or of another row of the same person, recoded row by row.

        Parameters
        ----------
        domain : Domain
            Of all attributes: those that the rows have, and then those that are added.
        groups : sequence of arrays
            The code of each original code of an added attribute.
        """
        if domain.names[: len(self.domain)] != self.domain.names or not self.of_persons:
            raise ValueError(f"attributes {domain.names} for rows of {self.domain.names}")
        merged = self.grouping.groups or tuple(np.arange(size, dtype=np.int32) for size in self.domain.sizes)
        return replace(self, domain=domain, grouping=Grouping((*merged, *groups)), _known={})

    def project(self, domain: Domain) -> Rows:
        """Return the rows with the attributes of `domain` only, which are the first in each block.

        Raises
        ------
        ValueError
            If the rows begin with other attributes.
        """
        if domain == self.domain:
            return self
        if self.grouping or self.domain.project(self.domain.names[: len(domain)]) != domain:
            raise ValueError(f"rows of {self.domain.shape} do not begin with {domain.shape}")
        return replace(self, domain=domain, _known={})

    def count(
        self, sets: Sequence[Attributes], bound: Bound = ONE_ROW, groupings: Sequence[Grouping] = ()
    ) -> Iterator[Ints]:
        """Yield the exact counts over each set of attributes, in order.

        One walk counts as many sets as fit in memory. The counts are kept if they fit too. How many these are
        depends on the sets and the settings only.

        Parameters
        ----------
        sets : sequence of attributes
        bound : Bound
            What one person may add to each table, in its groups.
        groupings : sequence of Grouping, one per set, optional
            The groups of the codes of each set.
        """
        of_sets = groupings or (NO_GROUPS,) * len(sets)
        if bound.by == "squares":
            if not self.of_persons:
                raise ValueError("squares bound the rows of persons that stand together")
            yield from self._within_squares(sets, bound.limit, of_sets)
            return
        for batch in self._batches(sets, bound):
            new = [sets[i] for i in batch if (sets[i], bound) not in self._known]
            tables = Tables(self.domain, list(dict.fromkeys(new)), self.grouping)
            counted = self._counts(tables, bound) if new else ()
            fresh = dict(zip(tables.sets, counted, strict=True))
            size = sum(counts.nbytes for counts in (*self._known.values(), *fresh.values()))
            if size <= self.memory:
                self._known.update({(attributes, bound): counts for attributes, counts in fresh.items()})
            for i in batch:
                counts = fresh[sets[i]] if sets[i] in fresh else self._known[sets[i], bound]
                yield of_sets[i].join(counts)

    def _counts(self, tables: Tables, bound: Bound) -> list[Ints]:
        """Return counts to which a person adds at most `bound` rows."""
        if not self.of_persons:
            return self.walk(tables.count)
        return self.walk(lambda blocks: tables.count(first_rows(blocks, bound.limit)))

    def _within_squares(
        self, sets: Sequence[Attributes], norm: int, groupings: Sequence[Grouping]
    ) -> Iterator[Ints]:
        """Yield counts to which each person adds a vector of norm `norm`. They are not kept."""
        for batch in self._batches(sets, Bound(norm, "squares")):
            some, further = sets[batch.start : batch.stop], groupings[batch.start : batch.stop]
            yield from self.walk(WithinSquares(self.domain, some, self.grouping, further, norm).count)

    def _batches(self, sets: Sequence[Attributes], bound: Bound) -> Iterator[range]:
        """Yield ranges of places whose counts fit in memory together; a larger set comes alone."""
        start = size = 0
        for index, attributes in enumerate(sets):
            is_counted = (attributes, bound) in self._known
            more = 0 if is_counted else CELL * prod(self.domain.size_of[name] for name in attributes)
            if index > start and size + more > self.memory:
                yield range(start, index)
                start, size = index, 0
            size += more
        if len(sets) > start:
            yield range(start, len(sets))


@dataclass(frozen=True, eq=False)
class RowsElsewhere(Rows):
    """Rows of which none comes here: a database counts them, or collectors have shares of their counts.

    Parameters
    ----------
    counter : callable
        Returns tables of counts, or of shares of counts. Sums of shares are shares of sums, so joined codes
        need no other answer.
    """

    counter: CountTables = field(kw_only=True, repr=False)

    @classmethod
    def of(cls, domain: Domain, memory: float, counter: CountTables) -> RowsElsewhere:
        """Return rows over a domain, each of one person."""
        return cls(domain, _no_walk, memory, counter=counter)

    def _counts(self, tables: Tables, bound: Bound) -> list[Ints]:
        """Return the counts. Each row is a person, or is among as many rows of one as any bound allows."""
        return self.counter(tables)


class CountPersons(Protocol):
    """Counts the coded rows of persons where they are, within bounds. Private."""

    def first_rows(self, tables: Tables, bound: int) -> list[Ints]:
        """Return tables of counts to which each person adds at most `bound` rows."""
        ...

    def within_squares(self, tables: Tables, further: Sequence[Grouping], norm: int) -> list[Ints]:
        """Return tables in the groups of `further`, to which each person adds a vector of norm `norm`."""
        ...


@dataclass(frozen=True, eq=False)
class PersonsElsewhere(Rows):
    """Rows of persons that a database bounds and counts. None comes here.

    Parameters
    ----------
    counter : CountPersons
    """

    counter: CountPersons = field(kw_only=True, repr=False)

    @classmethod
    def of(cls, domain: Domain, memory: float, counter: CountPersons) -> PersonsElsewhere:
        """Return rows over a domain, of which each question says how many of a person it counts."""
        return cls(domain, _no_walk, memory, of_persons=True, counter=counter)

    def _counts(self, tables: Tables, bound: Bound) -> list[Ints]:
        """Return counts to which a person adds at most `bound` rows."""
        return self.counter.first_rows(tables, bound.limit)

    def _within_squares(
        self, sets: Sequence[Attributes], norm: int, groupings: Sequence[Grouping]
    ) -> Iterator[Ints]:
        """Yield counts to which each person adds a vector of norm `norm`, in the groups that are released."""
        for batch in self._batches(sets, Bound(norm, "squares")):
            tables = Tables(self.domain, sets[batch.start : batch.stop], self.grouping)
            yield from self.counter.within_squares(tables, groupings[batch.start : batch.stop], norm)


def _no_walk(ask: Ask) -> list[Ints]:
    raise ValueError("no walk over rows that are elsewhere")
