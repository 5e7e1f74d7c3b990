"""From agreeing tables to records.

Many records are made in blocks, which together have the counts of one large sample. A cell with 30 of ten
million records has 0.3 per hundred thousand, which every block would round away. So a cell's count is
divided among the blocks in whole records. Threads make the blocks independently; the number of threads does
not change the result.

The start draws records attribute by attribute along a tree of strong pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from os import cpu_count

import numpy as np

from privsyn.marginals.counting import code_type
from privsyn.marginals.domain import Codes, Domain, Floats, Integers, Records
from privsyn.marginals.marginal import Marginal
from privsyn.marginals.statistics import mutual_informations, pairs_within, strongest_tree
from privsyn.progress import Progress
from privsyn.synthesis._kernels import round_with_offset
from privsyn.synthesis.annealing import finish
from privsyn.synthesis.targets import Targets
from privsyn.threads import ahead

ENOUGH = 10_000
"""Least number of records made together: fewer cannot represent many tables."""


def synthesise(
    targets: Targets,
    n: int,
    rng: np.random.Generator,
    *,
    sweeps: int | None = None,
    progress: Progress | None = None,
) -> Records:
    """Return `n` records whose counts are as close as possible to the targets, scaled to `n`.

    Parameters
    ----------
    targets : Targets
    n : int
    rng : numpy.random.Generator
    sweeps : int, optional
        Number of annealing sweeps. Default: those of `finish`.
    progress : callable, optional
    """
    if progress is not None:
        progress("synthesising", 0, 1)
    records = tree_start(targets, n, rng)
    if not targets.are_a_star:
        records = finish(records, targets, rng, sweeps=sweeps)
    if progress is not None:
        progress("synthesising", 1, 1)
    return records


Make = Callable[[tuple[Marginal, ...], int, np.random.Generator], Records]
"""Returns the given number of records with counts as close as possible to the tables'."""

MOST_ROWS, LEAST_ROWS, CELLS = 100_000, 20_000, 2**22
"""Bounds on a block's rows, and its rows times columns: enough to fit all tables, but small for the cache."""


def in_blocks(
    tables: tuple[Marginal, ...],
    ends: Sequence[int],
    make: Make,
    seeds: np.random.SeedSequence,
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
    """
    dealing, *block_seeds = seeds.spawn(len(ends) + 1)
    rng = np.random.default_rng(dealing)
    offsets = [rng.random(table.domain.shape) for table in tables]

    starts = (0, *ends)

    def block(index: int) -> Records:
        start, end = starts[index : index + 2]
        targets = tuple(_between(*pair, start, end) for pair in zip(tables, offsets, strict=True))
        return make(targets, end - start, np.random.default_rng(block_seeds[index]))

    return ahead(block, range(len(ends)), cpu_count() or 1)


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


def tree_start(targets: Targets, n: int, rng: np.random.Generator, present: Records | None = None) -> Records:
    """Return `n` records drawn along a maximum spanning tree of the pairs that the tables hold.

    One-way counts and the counts of pairs on the tree are met to within rounding. Only the other pairs
    remain to be fitted. An attribute in no table is drawn independently.

    Parameters
    ----------
    targets : Targets
    n : int
    rng : numpy.random.Generator
    present : Records, optional
        The codes of some attributes of all `n` records. The others are drawn given these.
    """
    domain, one_ways, pairs = targets.domain, targets.one_ways, pairs_within(targets.tables)
    weights = dict(zip(pairs, mutual_informations([*pairs.values()]).tolist(), strict=True))
    columns: dict[str, Codes] = {}
    if present is not None:  # its attributes are connected first, so that the tree begins with them
        columns = dict(zip(present.domain.names, present.codes.T, strict=True))
        weights |= dict.fromkeys(pairwise(present.domain.names), np.inf)
    for parent, child in strongest_tree(tuple(dict.fromkeys((*columns, *domain.names))), weights):
        if child in columns:
            continue
        if parent is None:
            columns[child] = draw_by_quota(one_ways[domain.axes((child,))[0]].counts, n, rng)
        else:
            table = pairs[parent, child] if (parent, child) in pairs else pairs[child, parent]
            columns[child] = draw_given(table.project((parent, child)), columns[parent], rng)
    return stack(domain, columns, n)


def independent_start(
    domain: Domain, one_ways: tuple[Marginal, ...], n: int, rng: np.random.Generator
) -> Records:
    """Return `n` records with independent attributes, each with its own counts: the published start."""
    columns = {name: draw_by_quota(m.counts, n, rng) for name, m in zip(domain.names, one_ways, strict=True)}
    return stack(domain, columns, n)


def stack(domain: Domain, columns: dict[str, Codes], n: int) -> Records:
    """Return records from columns, in the domain's order; `n` rows even if there is no column."""
    codes = np.empty((n, len(domain)), np.int32, order="F")
    for axis, name in enumerate(domain.names):
        codes[:, axis] = columns[name]
    return Records(domain, codes)


def draw_by_quota(weights: Floats, n: int, rng: np.random.Generator) -> Codes:
    """Return `n` codes in random order, each as often as its weight implies, to within one.

    Parameters
    ----------
    weights : array of shape (size,)
        Non-negative, in any unit; equal weights are used if all are 0.

    Examples
    --------
    >>> codes = draw_by_quota(np.array([3.0, 1.0]), 8, np.random.default_rng(0))
    >>> np.bincount(codes).tolist()
    [6, 2]
    """
    weights = weights if weights.sum() > 0 else np.ones(len(weights))
    quota = round_with_offset(weights * (n / weights.sum()), rng.random())
    codes = np.repeat(np.arange(len(weights), dtype=np.int32), quota)
    # Floating-point rounding can make the quotas miss n by one row.
    codes = np.resize(codes, n) if len(codes) else np.full(n, int(np.argmax(weights)), np.int32)
    rng.shuffle(codes)
    return codes


def draw_given(table: Marginal, first: Integers, rng: np.random.Generator) -> Codes:
    """Return a second attribute for rows whose first is known, by quota within each value of the first.

    Parameters
    ----------
    table : Marginal over two attributes, the known one first
        Non-negative counts.
    first : array of shape (n,)
        Codes of the known attribute.

    Examples
    --------
    >>> from privsyn.marginals.domain import Domain
    >>> same = Marginal(Domain(("a", "b"), (2, 2)), np.array([[5.0, 0.0], [0.0, 5.0]]))
    >>> draw_given(same, np.array([0, 1, 1, 0], np.int32), np.random.default_rng(0)).tolist()
    [0, 1, 1, 0]
    """
    drawn = np.empty(len(first), np.int32)
    overall = table.counts.sum(axis=0)
    # numpy sorts codes of 8 or 16 bits without comparing them
    rows = np.argsort(first.astype(code_type(len(table.counts))), kind="stable")
    ends = np.cumsum(np.bincount(first, minlength=len(table.counts)))
    for value, (start, end) in enumerate(zip(np.r_[0, ends[:-1]], ends, strict=True)):
        if end > start:
            weights = table.counts[value]
            drawn[rows[start:end]] = draw_by_quota(
                weights if weights.sum() > 0 else overall, end - start, rng
            )
    return drawn
