"""The encoded private rows, wherever they are: exact counts of them, to which `measure` adds noise.

Rows arrive in blocks, and only counts stay. Each round of questions reads all rows once if its counts fit in
memory. The default method has three rounds: columns, pairs, and sets of three to five columns. With a target,
its pairs take one more, and so does each criterion of acceptance. Blocks that fit in the memory limit are
kept, so that no source is read twice.

If a person may have many rows, each question says what one person may add to the counts: a `Bound`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np

from privsyn.marginals.counting import Ask, Block, Packing, Tables, Walk, block_of
from privsyn.marginals.domain import Attributes, Codes, Domain, Ints, Records
from privsyn.marginals.marginal import NO_GROUPS, Grouping
from privsyn.marginals.recoding import Merging
from privsyn.private.persons import ONE_ROW, Bound, WithinSquares, first_rows

CELL = 8  # bytes of a count

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
        known: dict[Known, Ints] = {}
        for axis, name in enumerate(self.domain.names):
            for (attributes, bound), counts in self._known.items():
                if (
                    attributes == (name,) and bound.by == "rows"
                ):  # in merged codes, other rows are within squares
                    known[attributes, bound] = np.zeros(merging.merged.sizes[axis], np.int64)
                    np.add.at(known[attributes, bound], merging.groups[axis], counts)
        grouping = self.grouping.then(Grouping(merging.groups))
        return replace(self, domain=merging.merged, grouping=grouping, _known=known)

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
        known = self.grouping.groups or tuple(np.arange(size, dtype=np.int32) for size in self.domain.sizes)
        return replace(self, domain=domain, grouping=Grouping((*known, *groups)), _known={})

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
            yield from self._within_squares(sets, bound.most, of_sets)
            return
        for batch in self._batches(sets, bound):
            new = [sets[i] for i in batch if (sets[i], bound) not in self._known]
            tables = Tables(self.domain, list(dict.fromkeys(new)), self.grouping)
            counted = self.walk(self._ask(tables, bound)) if new else ()
            fresh = dict(zip(tables.sets, counted, strict=True))
            size = sum(counts.nbytes for counts in (*self._known.values(), *fresh.values()))
            if size <= self.memory:
                self._known.update({(attributes, bound): counts for attributes, counts in fresh.items()})
            for i in batch:
                counts = fresh[sets[i]] if sets[i] in fresh else self._known[sets[i], bound]
                yield of_sets[i].join(counts)

    def _ask(self, tables: Tables, bound: Bound) -> Ask:
        """Return the question of counts to which a person adds at most `bound` rows."""
        if not self.of_persons:
            return tables.count
        return lambda blocks: tables.count(first_rows(blocks, bound.most))

    def _within_squares(
        self, sets: Sequence[Attributes], most: int, groupings: Sequence[Grouping]
    ) -> Iterator[Ints]:
        """Yield counts to which each person adds a vector of norm `most`. They are not kept."""
        for batch in self._batches(sets, Bound(most, "squares")):
            some, further = sets[batch.start : batch.stop], groupings[batch.start : batch.stop]
            yield from self.walk(WithinSquares(self.domain, some, self.grouping, further, most).count)

    def _batches(self, sets: Sequence[Attributes], bound: Bound) -> Iterator[range]:
        """Yield ranges of places whose counts fit in memory together; a larger set comes alone."""
        start = size = 0
        for place, attributes in enumerate(sets):
            known = (attributes, bound) in self._known
            more = 0 if known else CELL * prod(self.domain.size_of[name] for name in attributes)
            if place > start and size + more > self.memory:
                yield range(start, place)
                start, size = place, 0
            size += more
        if len(sets) > start:
            yield range(start, len(sets))
