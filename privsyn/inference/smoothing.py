"""What is smooth stands out in blocks: an expectation for cells that alone tell little.

A dependence between numbers is as a rule smooth: neighbouring cells depart together from what is expected.
Cell by cell that drowns in noise long before it does in blocks of many cells, whose noise grows with the
square root of their number only. So pairs are scored in blocks, and what a measured table says in blocks is
taken first, as far as it exceeds what its cells would say by themselves; it is then what is expected of the
cells. Where nothing is smooth nothing changes, and without ordered attributes there are no blocks.
"""

from __future__ import annotations

import numpy as np

from privsyn.inference.denoising import denoise
from privsyn.inference.dispersion import pooled_dispersions, residual_likelihoods
from privsyn.marginals.domain import Domain
from privsyn.marginals.ipf import fit_margins
from privsyn.marginals.marginal import Marginal, Measurement
from privsyn.marginals.recoding import Merging
from privsyn.marginals.types import Codes, Floats

RUNS = 5
"""To which the ordered codes of an attribute are joined; 4 to 8 do about as well."""


def in_runs(domain: Domain, one_ways: tuple[Marginal, ...]) -> Merging:
    """The ordered codes of each attribute joined to `RUNS` runs of about equal records; others as they are.

    Parameters
    ----------
    domain : Domain
    one_ways : tuple of Marginal, one an attribute
        Non-negative counts.

    Examples
    --------
    >>> age = Domain(("age",), (7,), ordered=(6,))  # the last code is the missing ones'
    >>> in_runs(age, (Marginal(age, np.array([2.0, 2, 2, 0, 6, 3, 9])),)).groups[0].tolist()
    [0, 1, 1, 2, 3, 4, 5]
    """
    groups = tuple(map(_runs, one_ways))
    merged = Domain(domain.names, tuple(int(group.max()) + 1 for group in groups))
    return Merging(domain, merged, groups, tuple(1 / np.bincount(group)[group] for group in groups))


def smoothed(
    blocks: Merging,
    measured: tuple[Measurement, ...],
    expected: list[Floats],
    sides: list[tuple[Marginal, ...]],
    scores: list[Floats],
) -> list[Floats]:
    """What is expected of each table's cells once its blocks have been seen.

    Cells that depart by themselves move their blocks too. Only a dispersion of the blocks beyond that of the
    cells speaks for what is smooth; what the cells do by themselves is noise here.

    Parameters
    ----------
    blocks : Merging
        Joins codes to runs.
    measured : tuple of Measurement
    expected : list of arrays, one a table and of its shape
        With the margins of `sides`.
    sides : list of tuples of Marginal
        For each table the one-way of each of its attributes.
    scores : list of arrays of shape ``DISPERSIONS.shape``
        What was known of the dispersion of each table's blocks before it was measured.

    Returns
    -------
    list of arrays: those of tables without blocks, or in which nothing is smooth, as they were.
    """
    places = [i for i, m in enumerate(measured) if has_blocks(blocks, m.marginal)]
    tables = tuple(measured[i] for i in places)
    cells = [expected[i] for i in places]
    seen = tuple(map(blocks.merge_counts, tables))
    means = [blocks.join(m.attributes, mean) for m, mean in zip(tables, cells, strict=True)]
    told = [scores[i] + r for i, r in zip(places, residual_likelihoods(seen, means), strict=True)]
    dispersions, alone = pooled_dispersions(told), pooled_dispersions(residual_likelihoods(tables, cells))

    found = list(expected)
    for place in np.flatnonzero(dispersions > alone).tolist():
        table, mean, side = seen[place], means[place], sides[places[place]]
        table = Measurement(table.marginal, table.variance + alone[place] * mean)
        margins = tuple(map(blocks.merge_table, side))
        counts = denoise(table, mean, dispersions[place] - alone[place], margins).counts
        ratio = np.divide(counts, mean, out=np.ones_like(mean), where=mean > 0)
        domain = tables[place].marginal.domain
        lifted = Marginal(domain, cells[place] * ratio[np.ix_(*blocks.groups_of(domain.names))])
        found[places[place]] = fit_margins(lifted, side).counts
    return found


def has_blocks(blocks: Merging, table: Marginal) -> bool:
    """Whether any of the table's cells are joined."""
    return blocks.merged.project(table.attributes).cells < table.domain.cells


def _runs(one_way: Marginal) -> Codes:
    """The run of each code; a code without an order is one by itself."""
    ordered = one_way.domain.ordered[0]
    counts = one_way.counts[:ordered]
    if ordered <= RUNS or counts.sum() <= 0:
        return np.arange(len(one_way.counts), dtype=np.int32)
    middles = (np.cumsum(counts) - counts / 2) / counts.sum()
    runs = np.minimum((RUNS * middles).astype(np.int64), RUNS - 1)
    places = np.cumsum(np.diff(runs, prepend=runs[0]) > 0)  # a run that no code falls in is none
    return np.concatenate([places, places[-1] + 1 + np.arange(len(one_way.counts) - ordered)]).astype(
        np.int32
    )
