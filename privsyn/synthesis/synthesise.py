"""Stage 4 as a whole: from agreeing tables to records."""

from __future__ import annotations

import numpy as np

from privsyn.marginals.domain import Domain, Records
from privsyn.marginals.marginal import Marginal
from privsyn.marginals.structural_zeros import NO_ZEROS, StructuralZeros
from privsyn.progress import Progress
from privsyn.synthesis.annealing import finish
from privsyn.synthesis.tree import tree_start

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
