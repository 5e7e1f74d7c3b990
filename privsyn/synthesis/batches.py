"""Many records, made in blocks, that together have the counts of one large sample.

A cell with 30 of ten million records has 0.3 per hundred thousand, which every block would round away. Blocks
would also repeat the same errors. So blocks are made in rounds of a few. The target of a round is the target
of all records up to its end, minus the counts of the rounds before. Each round corrects earlier errors; only
those of the last remain. Within a round, a cell's count is divided among the blocks in whole records.

Threads make the blocks of a round independently; the number of threads does not change the result. A block
depends only on the seed and the blocks of earlier rounds. So a caller can return stored blocks to resume an
interrupted run.
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
"""Returns the given number of records with counts as close as possible to the tables'."""

Keep = Callable[[int, int, Callable[[], Records]], Records]
"""Returns the block with this index and number of rows: from the function, or stored by an earlier run."""


def make_block(_place: int, _rows: int, block: Callable[[], Records]) -> Records:
    """Return a new block; store nothing."""
    return block()


MOST_ROWS, LEAST_ROWS, CELLS = 100_000, 20_000, 2**22
"""Bounds on a block's rows, and its rows times columns: enough to fit all tables, but small for the cache."""

ROUND = 8  # most blocks per round, and so of useful threads


def in_blocks(
    tables: tuple[Marginal, ...],
    ends: Sequence[int],
    make: Make,
    seeds: np.random.SeedSequence,
    keep: Keep = make_block,
) -> Iterator[Records]:
    """Yield records in blocks.

    Parameters
    ----------
    tables : tuple of Marginal
        Non-negative, agreeing counts with a positive total; scaled to the number of records.
    ends : sequence of int
        End of each block, in records; see `block_ends`.
    make : callable
    seeds : numpy.random.SeedSequence
        Each block gets its own child.
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
            yield from made  # the round before, while this one is being made
            made = [block.result() for block in begun]
            counted = Tables(made[0].domain, [t.attributes for t in tables]).count(map(block_of, made))
            held = [h + c for h, c in zip(held, counted, strict=True)]
        yield from made
    finally:
        pool.shutdown(cancel_futures=True)


def _rounds(places: Sequence[int]) -> Iterator[Sequence[int]]:
    """Yield the ends of each round's blocks; rounds shrink, so that the last corrects all earlier errors.

    A round of more than one block has an even number: with an odd number one of two cores would do nothing
    for a while, and a block of a wide table takes minutes.

    >>> [len(bounds) - 1 for bounds in _rounds(range(26))]
    [8, 8, 4, 2, 2, 1]
    >>> [len(bounds) - 1 for bounds in _rounds(range(3))]
    [2]
    """
    if len(places) == 3:
        yield places
        return
    while len(places) > 1:
        blocks = max(min(ROUND, len(places) // 2) // 2 * 2, 1)
        yield places[: blocks + 1]
        places = places[blocks:]


def block_ends(n: int, columns: int) -> list[int]:
    """Return where the blocks of `n` records end; at least one block, of about equal size.

    >>> block_ends(250_000, 15)
    [125000, 250000]
    """
    count = max(1, round(n / min(max(LEAST_ROWS, CELLS // max(columns, 1)), MOST_ROWS)))
    return [round(n * block / count) for block in range(1, count + 1)]


def _wanted(table: Marginal, held: npt.NDArray[np.float64], start: int, end: int) -> Marginal:
    """Return the target counts of records `start` to `end`, given the counts `held` by those before.

    At most twice their share plus one record: errors stay bounded even if tables cannot all be met.
    """
    share = table.counts / table.total
    return Marginal(table.domain, np.clip(share * end - held, 0, 2 * share * (end - start) + 1))


def _deal(
    tables: Sequence[Marginal], sizes: npt.NDArray[np.int64], rng: np.random.Generator
) -> list[tuple[Marginal, ...]]:
    """Return for each block of a round its target counts of each table: whole records that add up.

    The cumulated target of a cell is its share of the round's count plus one random offset per round, rounded
    down. A block gets the difference of two such numbers.
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
