"""The encoded private rows, wherever they are: exact counts of them, to which `measure` adds noise.

Rows arrive in blocks, and only counts stay. Each round of questions reads all rows once if its counts fit in
memory. The default method has three rounds: columns, pairs, and sets of three to five columns. With a target,
its pairs take one more, and so does each criterion of acceptance. Blocks that fit in the memory limit are
kept, so that no source is read twice.

If a person may have many rows, neighbouring tables differ by all rows of one person. No noise covers an
unbounded number of rows. So at most k rows of each person are kept (`kept_rows`), chosen before anything is
counted, and k is public.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from privsyn.marginals.counting import Ask, Block, Packing, Tables, Walk, block_of
from privsyn.marginals.domain import Attributes, Domain, Ints, Mask, Records
from privsyn.marginals.marginal import NO_GROUPS, Grouping
from privsyn.marginals.recoding import Merging

if TYPE_CHECKING:
    from privsyn.private.sampler import Bits

CELL = 8  # bytes of a count


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
        kept: list[Block] = []
        size = 0
        for block in blocks:
            if size <= self._memory:
                kept.append(self._packing.pack(block))
                size += sum(column.nbytes for column in kept[-1])
                if size > self._memory:
                    kept.clear()
            yield block
        if size <= self._memory:
            self._kept = kept


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
    _known: dict[Attributes, Ints] = field(default_factory=dict, repr=False)

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
        known: dict[Attributes, Ints] = {}
        for axis, name in enumerate(self.domain.names):
            if (counts := self._known.get((name,))) is not None:
                known[(name,)] = np.zeros(merging.merged.sizes[axis], np.int64)
                np.add.at(known[(name,)], merging.groups[axis], counts)
        grouping = self.grouping.then(Grouping(merging.groups))
        return replace(self, domain=merging.merged, grouping=grouping, _known=known)

    def count(self, sets: Sequence[Attributes]) -> Iterator[Ints]:
        """Yield the exact counts over each set of attributes, in order.

        One walk counts as many sets as fit in memory. The counts are kept if they fit too. How many these are
        depends on the sets and the settings only.
        """
        for batch in self._batches(sets):
            new = [attributes for attributes in dict.fromkeys(batch) if attributes not in self._known]
            tables = Tables(self.domain, new, self.grouping)
            fresh = dict(zip(new, self.walk(tables.count) if new else (), strict=True))
            size = sum(counts.nbytes for counts in (*self._known.values(), *fresh.values()))
            if size <= self.memory:
                self._known.update(fresh)
            for attributes in batch:
                yield fresh[attributes] if attributes in fresh else self._known[attributes]

    def _batches(self, sets: Sequence[Attributes]) -> Iterator[list[Attributes]]:
        """Yield the sets in order, in batches whose counts fit in memory; a larger set comes alone."""
        batch: list[Attributes] = []
        size = 0
        for attributes in sets:
            more = (
                0
                if attributes in self._known
                else CELL * prod(self.domain.size_of[name] for name in attributes)
            )
            if batch and size + more > self.memory:
                yield batch
                batch, size = [], 0
            batch.append(attributes)
            size += more
        if batch:
            yield batch


NOBODY = -1
"""The code of a row whose person is unknown."""


def kept_rows(persons: Ints, rows_per_unit: int, bits: Bits) -> Mask:
    """Return which rows are kept: `rows_per_unit` random rows of each person, or all if there are fewer.

    Parameters
    ----------
    persons : integer array of shape (n,)
        Rows with the same code belong to one person. Rows of `NOBODY` are not kept.
    rows_per_unit : int
        The most rows kept per person, at least 1. Public.
    bits : Bits
        One random word per row. The rows with the lowest words of a person are kept.

    Notes
    -----
    Privacy. The words are independent, so which rows of a person are kept depends only on the words of that
    person's rows. Remove a person: for any words of the others, their rows are kept or dropped as before, and
    the kept rows lose at most k. So for every outcome of the words, the promise holds for tables that differ
    in k rows. It also holds for the mixture, because the words have the same distribution on both sides. The
    words must be unpredictable. In the known stream of a generator, a person who joins or leaves would shift
    the words of all later rows. Hence the operating system's entropy, as for noise.

    Rows are chosen at random, and not the first k, because tables are often sorted and their first rows
    differ from later ones.

    Rows of nobody are dropped. Counting them as one more person would be unsafe. A row whose identifier was
    lost may belong to anybody. If that person leaves, then besides their k rows the choice among nobody's
    rows changes too. Counting each as a separate person would let one person contribute any number of rows.

    Examples
    --------
    >>> words = np.array([5, 1, 3, 2, 9], dtype=np.uint64)
    >>> kept_rows(np.array([0, 0, 0, 1, -1]), 2, lambda size: words)
    array([False,  True,  True,  True, False])
    """
    rows = len(persons)
    order = np.lexsort((bits(rows), persons))  # by person, and the rows of each person by their words
    begins = np.flatnonzero(np.diff(persons[order], prepend=NOBODY - 1))
    rank = np.arange(rows) - np.repeat(begins, np.diff(begins, append=rows))
    kept = np.empty(rows, dtype=bool)
    kept[order] = rank < rows_per_unit
    return kept & (persons != NOBODY)
