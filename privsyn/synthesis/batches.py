"""Many records in blocks that are quick to make, which together have the counts of one great sample.

A cell that should hold 30 of ten million records should hold 0.3 of each hundred thousand, and would be
rounded away in every block; and what the making of a block leaves undone, it leaves undone in the next in the
same way. So blocks are made in rounds of a few. What a round should hold is what all records up to its end
should hold less what those before it do hold: every fault is mended in the next round, and over the whole
sample only those of the last are left. Within a round a cell's count is dealt out to the blocks in whole
records.

Blocks of a round are made without each other, by as many threads as there are cores; how many these are
changes nothing. A block follows from the seed and those of the rounds before it, so whoever kept some of an
earlier run may give them back, and all goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from os import cpu_count
from typing import Any

import numpy as np
import numpy.typing as npt

from privsyn.marginals.counting import Tables, block_of
from privsyn.marginals.domain import Records
from privsyn.marginals.marginal import Marginal

Make = Callable[[tuple[Marginal, ...], int, np.random.Generator], Records]
"""Records of so many rows that have the tables' counts, as nearly as may be."""

Keep = Callable[[int, int, Callable[[], Records]], Records]
"""The block of this place and number of rows: what the function makes, or made in an earlier run."""


def make_block(_place: int, _rows: int, block: Callable[[], Records]) -> Records:
    """Nothing is kept."""
    return block()


MOST_ROWS, LEAST_ROWS, CELLS = 100_000, 20_000, 2**22
"""Of a block: enough for all tables to be fitted, few enough for the cache."""

ROUND = 8  # blocks: more threads than that are of no use


def in_blocks(
    tables: tuple[Marginal, ...],
    ends: Sequence[int],
    make: Make,
    seeds: np.random.SeedSequence,
    keep: Keep = make_block,
) -> Iterator[Records]:
    """Records in blocks.

    Parameters
    ----------
    tables : tuple of Marginal
        Counts that agree, not negative, of a positive total; scaled to the number of records.
    ends : sequence of int
        Where each block ends, in records; see `block_ends`.
    make : callable
    seeds : numpy.random.SeedSequence
        Each block has its own part.
    keep : callable, optional
        Called from several threads.
    """
    held: Sequence[npt.NDArray[Any]] = [np.zeros(table.domain.shape) for table in tables]
    pool, made, places = ThreadPoolExecutor(cpu_count()), list[Records](), count()
    try:
        for own in _rounds((0, *ends)):
            wanted = [_wanted(t, h, own[0], own[-1]) for t, h in zip(tables, held, strict=True)]
            dealing, *rngs = map(np.random.default_rng, seeds.spawn(len(own)))
            sizes = np.diff(own)
            parts = zip(_deal(wanted, sizes, dealing), sizes.tolist(), rngs, strict=True)
            begun = [pool.submit(keep, next(places), part[1], partial(make, *part)) for part in parts]
            yield from made  # those of the round before, while these are being made
            made = [block.result() for block in begun]
            counted = Tables(made[0].domain, [t.attributes for t in tables]).count(map(block_of, made))
            held = [h + c for h, c in zip(held, counted, strict=True)]
        yield from made
    finally:
        pool.shutdown(cancel_futures=True)


def _rounds(places: Sequence[int]) -> Iterator[Sequence[int]]:
    """The bounds of each round's blocks: ever fewer at the end, so that the last mends what all others left.

    >>> [len(bounds) - 1 for bounds in _rounds(range(26))]
    [8, 8, 5, 2, 1, 1]
    """
    while len(places) > 1:
        blocks = min(ROUND, len(places) // 2)
        yield places[: blocks + 1]
        places = places[blocks:]


def block_ends(n: int, columns: int) -> list[int]:
    """Where the blocks of `n` records end, which are as equal as may be; at least one.

    >>> block_ends(250_000, 15)
    [125000, 250000]
    """
    count = max(1, round(n / min(max(LEAST_ROWS, CELLS // max(columns, 1)), MOST_ROWS)))
    return [round(n * block / count) for block in range(1, count + 1)]


def _wanted(table: Marginal, held: npt.NDArray[np.float64], start: int, end: int) -> Marginal:
    """What the records from `start` to `end` should hold, by what those before them do hold.

    At most twice their share and a record: where tables cannot all be met, no fault grows without end.
    """
    share = table.counts / table.total
    return Marginal(table.domain, np.clip(share * end - held, 0, 2 * share * (end - start) + 1))


def _deal(
    tables: Sequence[Marginal], sizes: npt.NDArray[np.int64], rng: np.random.Generator
) -> list[tuple[Marginal, ...]]:
    """For each block of a round what it should hold of each table: whole records that add up.

    Up to the end of a block a cell is to hold its part of the round's count, plus an offset drawn once a
    round, rounded down; a block gets the difference of two such numbers.
    """
    ends = np.cumsum(sizes) / np.sum(sizes)
    blocks: list[list[Marginal]] = [[] for _ in sizes]
    for table in tables:
        offset = rng.random(table.domain.shape)
        before = np.floor(offset)
        for block, end in zip(blocks, ends, strict=True):
            after = np.floor(table.counts * end + offset)
            block.append(Marginal(table.domain, after - before))
            before = after
    return [tuple(block) for block in blocks]
