"""Stage 4 as a whole: from agreeing tables to records.

Many records are made in blocks, which together have the counts of one large sample. A cell with 30 of ten
million records has 0.3 per hundred thousand, which every block would round away. So a cell's count is
divided among the blocks in whole records. Threads make the blocks independently; the number of threads does
not change the result. A block depends only on the tables, the seed and its place. So a caller can return
stored blocks to resume an interrupted run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from os import cpu_count

import numpy as np

from privsyn.marginals.domain import Domain, Records
from privsyn.marginals.marginal import Marginal
from privsyn.marginals.structural_zeros import NO_ZEROS, StructuralZeros
from privsyn.marginals.types import Floats
from privsyn.progress import Progress
from privsyn.synthesis.annealing import finish
from privsyn.synthesis.tree import tree_start
from privsyn.threads import ahead

ENOUGH = 10_000
"""Least number of records made together: fewer cannot represent many tables."""


def synthesise(
    domain: Domain,
    one_ways: tuple[Marginal, ...],
    tables: tuple[Marginal, ...],
    n: int,
    rng: np.random.Generator,
    *,
    sweeps: int | None = None,
    progress: Progress | None = None,
    zeros: StructuralZeros = NO_ZEROS,
) -> Records:
    """Return `n` records whose counts are as close as possible to the tables', scaled to `n`.

    Parameters
    ----------
    domain : Domain
    one_ways : tuple of Marginal, one per attribute, in the domain's order
    tables : tuple of Marginal
        Non-negative and agreeing with each other and with the one-ways.
    n : int
    rng : numpy.random.Generator
    sweeps : int, optional
        Number of annealing sweeps. Default: those of `finish`.
    progress : callable, optional
    zeros : StructuralZeros
    """
    if progress is not None:
        progress("synthesising", 0, 1)
    start = tree_start(domain, one_ways, tables, n, rng)
    records = finish(start, tables, rng, one_ways=one_ways, sweeps=sweeps, possible=zeros)
    if progress is not None:
        progress("synthesising", 1, 1)
    return records


Make = Callable[[tuple[Marginal, ...], int, np.random.Generator], Records]
"""Returns the given number of records with counts as close as possible to the tables'."""

Keep = Callable[[int, int, Callable[[], Records]], Records]
"""Returns the block with this index and number of rows: from the function, or stored by an earlier run."""


def make_block(_place: int, _rows: int, block: Callable[[], Records]) -> Records:
    """Return a new block; store nothing."""
    return block()


MOST_ROWS, LEAST_ROWS, CELLS = 100_000, 20_000, 2**22
"""Bounds on a block's rows, and its rows times columns: enough to fit all tables, but small for the cache."""


def in_blocks(
    tables: tuple[Marginal, ...],
    ends: Sequence[int],
    make: Make,
    seeds: np.random.SeedSequence,
    keep: Keep = make_block,
) -> Iterator[Records]:
    """Return the blocks of records, made as they are taken.

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
    dealing, *own = seeds.spawn(len(ends) + 1)
    rng = np.random.default_rng(dealing)
    offsets = [rng.random(table.domain.shape) for table in tables]

    starts = (0, *ends)

    def block(place: int) -> Records:
        start, end = starts[place : place + 2]
        targets = tuple(_between(*pair, start, end) for pair in zip(tables, offsets, strict=True))
        return make(targets, end - start, np.random.default_rng(own[place]))

    def kept(place: int) -> Records:
        return keep(place, starts[place + 1] - starts[place], partial(block, place))

    return ahead(kept, range(len(ends)), cpu_count() or 1)


def block_ends(n: int, columns: int) -> list[int]:
    """Return where the blocks of `n` records end; at least one block, of about equal size.

    >>> block_ends(250_000, 15)
    [125000, 250000]
    """
    count = max(1, round(n / min(max(LEAST_ROWS, CELLS // max(columns, 1)), MOST_ROWS)))
    return [round(n * block / count) for block in range(1, count + 1)]


def _between(table: Marginal, offsets: Floats, start: int, end: int) -> Marginal:
    """Return the target counts of records `start` to `end`: whole records, which add up over all blocks.

    The cumulated target of a cell is its share of the records so far plus the cell's random offset, rounded
    down. A block gets the difference of two such numbers.
    """
    share = table.counts / table.total
    return Marginal(table.domain, np.floor(share * end + offsets) - np.floor(share * start + offsets))
