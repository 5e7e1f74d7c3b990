"""The private rows in codes, wherever they are: exact counts of them, for `measure` to put noise on.

Rows come in blocks and only counts stay. They are walked over once for each round of questions: at most four
times in a run of the default. Blocks are kept as they pass, while they fit in the memory allowed; then no
source is read twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np

from privsyn.marginals.counting import Ask, Block, Tables, Walk, block_of
from privsyn.marginals.domain import Attributes, Domain, Records
from privsyn.marginals.recoding import Merging
from privsyn.marginals.types import Integers, Ints

CELL = 8  # bytes of a count


class CachedWalk:
    """A walk that keeps the blocks as they pass and, if all fit, goes over these from then on.

    Parameters
    ----------
    walk : Walk
        In one place: its blocks pass through this process.
    room : float
        Bytes that may be kept.
    """

    def __init__(self, walk: Walk, room: float) -> None:
        self._walk = walk
        self._room = room
        self._kept: list[Block] | None = None

    def __call__(self, ask: Ask) -> list[Ints]:
        """What `ask` says of all blocks."""
        if self._kept is not None:
            return ask(self._kept)
        return self._walk(lambda blocks: ask(self._keep(blocks)))

    def _keep(self, blocks: Iterable[Block]) -> Iterator[Block]:
        kept: list[Block] = []
        size = 0
        for block in blocks:
            size += sum(column.nbytes for column in block)
            if size > self._room:
                kept.clear()
            else:
                kept.append(block)
            yield block
        if size <= self._room:
            self._kept = kept


@dataclass(frozen=True, eq=False)
class Rows:
    """The private rows. They answer exactly, and so to nobody but `privsyn.private.measure`.

    Parameters
    ----------
    domain : Domain
        Public.
    walk : Walk
        Over the rows in the codes they were first given.
    memory : float
        Bytes that the counts of one walk may take, and again those that are remembered.
    groups : tuple of integer arrays, optional
        What the first codes have been merged to.

    Examples
    --------
    >>> rows = Rows.held(Records(Domain(("a", "b"), (2, 2)), np.array([[0, 1], [1, 1], [0, 1]])))
    >>> [table.tolist() for table in rows.count([("a",), ("a", "b")])]
    [[2, 1], [[0, 2], [0, 1]]]
    """

    domain: Domain
    walk: Walk = field(repr=False)
    memory: float
    groups: tuple[Integers, ...] | None = field(default=None, repr=False)
    _known: dict[Attributes, Ints] = field(default_factory=dict, repr=False)

    @classmethod
    def held(cls, records: Records) -> Rows:
        """Rows that are in memory."""
        blocks = [block_of(records)]
        return cls(records.domain, lambda ask: ask(blocks), np.inf)

    def merge(self, merging: Merging) -> Rows:
        """The rows in merged codes; each row by itself, so neighbours stay neighbours.

        What is known of single attributes is added up; the rest is counted anew when it is asked.
        """
        groups = merging.groups
        if self.groups is not None:
            groups = tuple(later[group] for group, later in zip(self.groups, groups, strict=True))
        known: dict[Attributes, Ints] = {}
        for axis, name in enumerate(self.domain.names):
            if (counts := self._known.get((name,))) is not None:
                known[(name,)] = np.zeros(merging.merged.sizes[axis], np.int64)
                np.add.at(known[(name,)], merging.groups[axis], counts)
        return replace(self, domain=merging.merged, groups=groups, _known=known)

    def count(self, sets: Sequence[Attributes]) -> Iterator[Ints]:
        """The exact counts over each set of attributes, one after the other.

        Counted in one walk are as many as fit in memory, and if there is room for more they are remembered.
        How many these are follows from the sets and the settings alone.
        """
        for batch in self._batches(sets):
            new = [attributes for attributes in dict.fromkeys(batch) if attributes not in self._known]
            tables = Tables(self.domain, new, self.groups)
            fresh = dict(zip(new, self.walk(tables.count) if new else (), strict=True))
            held = sum(counts.nbytes for counts in (*self._known.values(), *fresh.values()))
            if held <= self.memory:
                self._known.update(fresh)
            for attributes in batch:
                yield fresh[attributes] if attributes in fresh else self._known[attributes]

    def _batches(self, sets: Sequence[Attributes]) -> Iterator[list[Attributes]]:
        """The sets in order, in stretches whose counts fit in memory together; one that is too big, alone."""
        sizes = dict(zip(self.domain.names, self.domain.sizes, strict=True))
        batch: list[Attributes] = []
        size = 0
        for attributes in sets:
            more = 0 if attributes in self._known else CELL * prod(sizes[name] for name in attributes)
            if batch and size + more > self.memory:
                yield batch
                batch, size = [], 0
            batch.append(attributes)
            size += more
        if batch:
            yield batch
